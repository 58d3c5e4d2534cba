// Deterministic damage to bytes: the same number gives the same damage everywhere.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace cpfit::fuzz {

/// xorshift64*; never 0.
class Dice {
 public:
  explicit Dice(std::uint64_t seed) : state_(seed * 2 + 1) {}
  [[nodiscard]] std::uint64_t next();
  /// 0 <= result < sides; 0 for sides 0.
  [[nodiscard]] std::size_t below(std::size_t sides) { return sides == 0 ? 0 : static_cast<std::size_t>(next() % sides); }

 private:
  std::uint64_t state_;
};

/// One of `seeds`, damaged in one to four ways: bits flipped, bytes lost, cut short, spliced with another seed, a block or line
/// repeated, a number made huge, a word of `words` put in, brackets opened thousands of times. At most `most` bytes.
[[nodiscard]] std::string mutated(const std::vector<std::string>& seeds, const std::vector<std::string>& words, Dice& dice,
                                  std::size_t most);

/// The quoted words of a dictionary in libFuzzer's format.
[[nodiscard]] std::vector<std::string> dictionary(const std::string& text);

}  // namespace cpfit::fuzz
