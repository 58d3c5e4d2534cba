// Numbers for fixtures: any language can reproduce them bit for bit, from integers alone, at any index without those before it.
// Value i of a seed is a multiple of 2^-fraction_bits in [-2, 2), evenly spread: the top fraction_bits + 2 bits of SplitMix64's
// output function (Steele, Lea, Flood 2014) at seed * 2^32 + i. 10 bits are exact in fp16, 7 in bf16 too.
#pragma once

#include <cstdint>
#include <vector>

namespace cpfit::kernels {

[[nodiscard]] constexpr double grid_number(std::uint32_t seed, std::uint32_t index, int fraction_bits = 10) {
  std::uint64_t z = ((std::uint64_t{seed} << 32) + index + 1) * 0x9e3779b97f4a7c15U;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
  z ^= z >> 31;
  const int bits = fraction_bits + 2;
  const auto whole = static_cast<std::int64_t>(z >> (64 - bits)) - (std::int64_t{1} << (bits - 1));
  return static_cast<double>(whole) / static_cast<double>(std::int64_t{1} << fraction_bits);
}

/// The first `count` numbers of a seed.
[[nodiscard]] inline std::vector<double> grid_numbers(std::uint32_t seed, std::int64_t count, int fraction_bits = 10) {
  std::vector<double> numbers(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    numbers[i] = grid_number(seed, static_cast<std::uint32_t>(i), fraction_bits);
  }
  return numbers;
}

}  // namespace cpfit::kernels
