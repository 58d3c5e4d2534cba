// What changes along the sequence length and the CP degree: the crossover lengths, and the controlled sweep.
#pragma once

#include <string>
#include <vector>

#include "model/record/run.h"
#include "sim/plan/search.h"

namespace cpfit {

/// The scenario's training with another sequence length: tokens per step stay as near as whole sequences allow, and the number of
/// sequences is a power of two times what divides the original batch, so that dp stays legal.
[[nodiscard]] Training with_sequence(const Training& training, std::int64_t tokens);

/// Shortest sequence at which no CP=1 recipe fits, and at which some CP>1 recipe is faster than the best CP=1 recipe at equal
/// GPUs, under the policy of `ship` (recompute, precision, micro-batch, state sharding, CP strategy). Lengths are evaluated on a
/// ladder (every power of two and its quarters), never bisected: feasible sets need not be intervals. Without a legal CP=1 recipe
/// at any length there is nothing to compare: the result is empty, held_constant included.
[[nodiscard]] Crossover find_crossover(Workbench& bench, const Candidate& ship, std::int64_t shortest, std::int64_t longest);

/// Lengths of the ladder from shortest to longest, quarters of an octave, rounded to multiples of `multiple`.
[[nodiscard]] std::vector<std::int64_t> length_ladder(std::int64_t shortest, std::int64_t longest, std::int64_t multiple,
                                                      int per_octave);

/// One recipe at one (cp, sequence): the controlled sweep keeps tp, pp, dp, recompute and grows CP and with it the GPUs.
struct SweepPointOrReason {
  std::int32_t cp = 1;
  std::int64_t sequence = 0;
  std::int64_t gpus = 0;
  std::optional<Candidate> candidate;
  std::string reason;  // why there is none
};

/// Sweeps cp (given degrees) and sequence lengths around `base`.
[[nodiscard]] std::vector<SweepPointOrReason> controlled_sweep(const Scenario& scenario, const RateSet& rates, const Recipe& base,
                                                               const std::vector<std::int32_t>& cps,
                                                               const std::vector<std::int64_t>& sequences);

}  // namespace cpfit
