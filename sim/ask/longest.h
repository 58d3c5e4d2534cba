// ask longest: the longest sequence that fits with margin on these GPUs, by CP degree and recompute policy. Held constant: the
// cluster and the sequences per optimizer step, so that the tokens of a step grow with the length.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "model/record/candidate.h"
#include "sim/plan/workbench.h"

namespace cpfit::ask {

/// Lengths beyond this are not tried: no context is longer, and sums of tokens stay exact.
inline constexpr std::int64_t kLongestTried = std::int64_t{1} << 32;

struct LongestRow {
  std::int32_t cp = 1;
  std::vector<std::pair<Recompute, std::int64_t>> by_recompute;  // tokens under each policy of the space; 0: nothing fits
  std::int64_t tokens = 0;                                       // the longest of them; 0: nothing fits
  std::optional<Candidate> candidate;                            // the recipe of `tokens`, at that length
  std::string reason;                                            // why there is none
};

struct LongestAnswer {
  std::vector<LongestRow> rows;     // one per CP degree, ascending
  std::optional<std::size_t> best;  // row with the longest sequence, of equals the smallest degree
  std::int64_t gpus = 0, sequences_per_step = 0;
  std::int64_t asked = 0;  // the scenario's length
};

/// Memory grows with the length, so each recipe's longest is found by bisection among the multiples of 2 * cp * tp tokens, which
/// every cut of a sequence divides. With `fixed`, only its CP degree varies and dp makes up the GPUs; else every recipe of the
/// scenario's search space with its smallest micro-batch is tried.
[[nodiscard]] LongestAnswer longest_sequence(Workbench& bench, const std::optional<Recipe>& fixed);

/// The answer in one or two sentences.
[[nodiscard]] std::string sentence_of(const LongestAnswer& answer);

}  // namespace cpfit::ask
