// The search: screens every legal recipe of a scenario at equal GPUs, in parallel, deterministically.
#pragma once

#include <atomic>
#include <functional>
#include <vector>

#include "model/record/run.h"
#include "sim/plan/search_space.h"
#include "sim/plan/workbench.h"

namespace cpfit {

struct SearchControls {
  CandidateSink sink;                          // receives every evaluated candidate; may be empty
  std::function<void(double share)> progress;  // 0..1, called now and then from the calling thread's search
  const std::atomic<bool>* stop = nullptr;     // set to end early; what was evaluated is kept
};

struct SearchResult {
  std::vector<Candidate> candidates;  // every legal recipe, in the order of the search space
  PlanStats stats;
};

/// Screens all recipes of the scenario's space under `training`.
[[nodiscard]] SearchResult search(Workbench& bench, const Training& training, const Axes& axes, const SearchControls& controls);

}  // namespace cpfit
