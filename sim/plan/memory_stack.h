// Live memory of one simulated rank over time, by component: what a stacked curve beside the lanes is made of.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/memory/ledger.h"
#include "sim/plan/step_timeline.h"

namespace cpfit {

struct MemoryStack {
  std::int32_t rank = 0;                     // simulated
  std::vector<Component> components;         // that occur, in the order of the enumeration
  std::vector<timeline::Picoseconds> times;  // (points) ascending; of one instant first its highest value, then its last
  std::vector<std::int64_t> totals;          // (points) allocated bytes from then on
  std::vector<std::int64_t> parts;           // (points, components)
  std::size_t peak = 0;                      // point of the first highest total
  struct Part {
    std::string name;  // "saved by the MLP half"
    std::int64_t bytes = 0, tensors = 0;
  };
  std::vector<Part> at_peak;  // beyond what is resident, largest first
  std::int64_t resident = 0;
  [[nodiscard]] std::int64_t part(std::size_t point, std::size_t component) const {
    return parts[point * components.size() + component];
  }
};

/// The ledger's tensors on the clock of the run (step_memory.h); its totals are those of step_memory's track. Nothing for a
/// layout that does not resolve.
[[nodiscard]] std::optional<MemoryStack> memory_stack(const Workbench& bench, const Training& training,
                                                      const StepTimeline& timeline, std::int32_t rank);

}  // namespace cpfit
