// What a person designs: the question (a scenario), the recipe tried on it, and the rates it rests on. A value: edits make a new
// one.
#pragma once

#include <memory>
#include <string>

#include "model/recipe/scenario.h"
#include "model/record/calibration.h"

namespace cpfit::gui {

/// Measured rates that a person chose for the study.
struct ChosenCalibration {
  Calibration calibration;
  std::string from;  // the database or file it lies in, as a command line names it; empty: nowhere yet
};

struct Design {
  std::shared_ptr<const Scenario> scenario;
  Recipe recipe;
  std::shared_ptr<const ChosenCalibration> calibration;  // null: the defaults
  [[nodiscard]] bool empty() const { return scenario == nullptr; }
  [[nodiscard]] const Training& training() const { return scenario->training; }
};

/// Whether two clusters are the same machines, link by link: a scenario that was read again is another object, not another
/// cluster.
[[nodiscard]] bool same_hardware(const Cluster& a, const Cluster& b);

/// Whether nothing differs: what one of them computed holds for the other.
[[nodiscard]] bool same_design(const Design& a, const Design& b);

/// Whether two designs ask the same question: model, cluster, sequence, batch. Only then may their figures be compared.
[[nodiscard]] bool same_question(const Scenario& a, const Scenario& b);

/// The recipe a scenario opens with before anything is searched: its own degrees where they fill the cluster, else tp as wide as
/// its search and the node allow, and what is left on cp as far as the batch needs no replica of it, then dp. Deterministic.
[[nodiscard]] Recipe opening_recipe(const Scenario& scenario);

}  // namespace cpfit::gui
