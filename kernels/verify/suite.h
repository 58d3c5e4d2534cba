// Which cases `cpfit verify` runs: every method on every shape that it can serve, over cp 2, 3, 4 and 8 and the number types.
// Shapes are the lengths at which codes in the field have failed (cp_model.md E.5, F): a padded tail, documents shorter than
// their cut, empty ones, ranks that hold nothing but padding, cross lengths, grouped heads with d_qk != d_v.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "kernels/verify/case.h"

namespace cpfit::kernels {

enum class SuiteSize : std::uint8_t { kQuick, kFull };

/// Empty: all; of cp and numbers what the size says.
struct SuiteFilter {
  std::vector<std::string> methods;
  std::vector<attention::MaskShape> masks;
  std::vector<std::int32_t> cp;  // any degrees, from 2
  std::vector<Number> numbers;
};

struct SuiteCases {
  std::vector<Case> cases;
  /// Combinations that a method cannot serve, by its own reason, most frequent first.
  std::vector<std::pair<std::string, std::int64_t>> left_out;
};
[[nodiscard]] SuiteCases suite_cases(SuiteSize size, const SuiteFilter& filter);

/// The case each fault of attention is planted in; the last three faults belong to the block (block_run.h).
[[nodiscard]] std::vector<Case> control_cases();

/// The same case with more padding behind every document: no real number may change. Only for padded fp64 cases; false: none.
[[nodiscard]] bool has_padded_twin(const Case& verified);
[[nodiscard]] Case padded_twin(const Case& verified);

/// SHA-256 over the hashes of the cases' inputs, each sequence once, in the order of the cases.
[[nodiscard]] std::string hash_of_fixtures(const std::vector<Case>& cases);

/// "zigzag", "zigzag per document", ...
[[nodiscard]] std::string layout_text(const Case& verified);
/// "4 query heads, 2 KV heads, d_qk 32, d_v 16"
[[nodiscard]] std::string heads_text(const Heads& heads);

}  // namespace cpfit::kernels
