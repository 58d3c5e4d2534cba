// What a sweep tries: for every axis of a search all legal values or those that were chosen, as the scenario file says it, and
// how many recipes that makes. No widget.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "gui/study/design.h"
#include "gui/study/locks.h"
#include "gui/study/simulator.h"

namespace cpfit::gui {

struct SweepAxis {
  std::string key;                   // of [search]: "tp"
  std::string label;                 // "TP"
  std::vector<std::string> offered;  // every legal value, and what the scenario names beside them
  std::vector<std::string> chosen;   // in the order of `offered`; empty: all that are legal ("auto")
  friend bool operator==(const SweepAxis&, const SweepAxis&) = default;
};

/// The axes as the scenario has them. Empty where its framework is unknown.
[[nodiscard]] std::vector<SweepAxis> sweep_axes(const Scenario& scenario);
/// The axes with locked choices held at the recipe's values, whatever was chosen.
[[nodiscard]] std::vector<SweepAxis> held_axes(std::vector<SweepAxis> axes, const Locks& locks, const Recipe& recipe);
/// Chooses a value, or leaves it out again; without any the axis is "auto". Values that are not offered change nothing.
void toggle_value(SweepAxis& axis, const std::string& value);

/// The scenario whose search is these axes: the file's text where it says so already, so that an interrupted run of it is known
/// again; else edited, and read by the scenario reader. Problems: the reader's.
[[nodiscard]] Outcome<std::shared_ptr<const Scenario>> sweep_scenario(const Design& design, const std::vector<SweepAxis>& axes);

struct SweepCount {
  std::int64_t considered = 0, legal = 0;
  bool whole = true;  // false: it was stopped before the end
};
/// Counts without pricing any. Problems: unknown rule set.
[[nodiscard]] Outcome<SweepCount> count_recipes(const Scenario& scenario, const RateSet& rates, const std::atomic<bool>& stop);

}  // namespace cpfit::gui
