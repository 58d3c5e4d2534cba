// ask matters: does this input matter? One key is varied around a recipe, everything else held, and the step, the memory and the
// verdict are compared; where nothing moves, the reason is said.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/record/candidate.h"
#include "sim/plan/workbench.h"

namespace cpfit::ask {

struct Variation {
  std::string value;                   // "cp=4 (dp=2)", "attention 10 % slower"
  std::optional<Candidate> candidate;  // none: it is not legal, or only the step was asked
  std::string reason;                  // why there is none
  double speed_change = 0;             // relative change of tokens/s per GPU
  Bytes memory_change;                 // of the worst stage
  bool fit_changes = false;            // the verdict on memory is another
};

struct Sensitivity {
  std::string key, now;
  Candidate base;
  std::vector<Variation> variations;
  std::string because;  // why nothing changes; empty when something does
  [[nodiscard]] bool matters() const { return because.empty(); }
};

/// Keys that can be asked: every key of a recipe, sequence_length, global_batch, grad_dtype, memory_margin, exposed_budget, and
/// rates.attention, rates.gemm, rates.memory, rates.launch, rates.p2p, rates.collective, rates.overlap.
[[nodiscard]] std::vector<std::string> sensitivity_keys();

/// `base` must be legal on the scenario. Problems: "ask.unknown_key" with the nearest, and those of Workbench::evaluate.
[[nodiscard]] Outcome<Sensitivity> sensitivity(Workbench& bench, const RateSet& rates, const Recipe& base, std::string_view key);

[[nodiscard]] std::string sentence_of(const Sensitivity& answer);

}  // namespace cpfit::ask
