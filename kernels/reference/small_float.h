// The two 16-bit number types as bits, and their conversions: to float exactly, from float and double to the nearest, ties to
// even, overflow to infinity, NaN stays NaN. bf16: 8 exponent and 7 fraction bits. fp16: 5 and 10, with subnormals (IEEE 754
// binary16).
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace cpfit::kernels {

[[nodiscard]] constexpr float float_of_bf16(std::uint16_t bits) { return std::bit_cast<float>(std::uint32_t{bits} << 16); }

[[nodiscard]] constexpr std::uint16_t bf16_of(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7fffffffU) > 0x7f800000U) return static_cast<std::uint16_t>((bits >> 16) | 0x40U);  // NaN, made quiet
  return static_cast<std::uint16_t>((bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16);
}

/// `value` rounded to 11 significant bits or to a multiple of 2^-24, whichever is coarser; beyond fp16's largest number infinity.
[[nodiscard]] constexpr float rounded_to_fp16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t magnitude = bits & 0x7fffffffU;
  const std::uint32_t sign = bits & 0x80000000U;
  const std::uint32_t normal = (magnitude + 0xfffU + ((magnitude >> 13) & 1U)) & ~0x1fffU;
  // Numbers in [0.5, 1) are 2^-24 apart, so the addition rounds to a multiple of it, nearest even.
  const auto small = std::bit_cast<std::uint32_t>((std::bit_cast<float>(magnitude) + 0.5F) - 0.5F);
  std::uint32_t rounded = magnitude < 0x38800000U ? small : normal;  // 2^-14, the smallest normal number
  rounded = rounded >= 0x47800000U ? 0x7f800000U : rounded;          // 2^16: beyond 65504 after rounding
  rounded = magnitude > 0x7f800000U ? magnitude : rounded;           // NaN
  return std::bit_cast<float>(rounded | sign);
}
[[nodiscard]] constexpr float rounded_to_bf16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t rounded = (bits + 0x7fffU + ((bits >> 16) & 1U)) & 0xffff0000U;
  return std::bit_cast<float>((bits & 0x7fffffffU) > 0x7f800000U ? bits : rounded);
}

[[nodiscard]] constexpr std::uint16_t fp16_of(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(rounded_to_fp16(value));
  const std::uint32_t magnitude = bits & 0x7fffffffU;
  const std::uint32_t sign = (bits >> 16) & 0x8000U;
  if (magnitude > 0x7f800000U) return static_cast<std::uint16_t>(sign | 0x7e00U);
  if (magnitude == 0x7f800000U) return static_cast<std::uint16_t>(sign | 0x7c00U);
  if (magnitude >= 0x38800000U) return static_cast<std::uint16_t>(sign | ((magnitude - 0x38000000U) >> 13));
  // A subnormal is a count of 2^-24.
  return static_cast<std::uint16_t>(sign | static_cast<std::uint32_t>(std::bit_cast<float>(magnitude) * 16777216.0F));
}

[[nodiscard]] constexpr float float_of_fp16(std::uint16_t bits) {
  const std::uint32_t sign = (std::uint32_t{bits} & 0x8000U) << 16;
  const std::uint32_t magnitude = bits & 0x7fffU;
  std::uint32_t wide = 0;
  if (magnitude >= 0x7c00U) {
    wide = 0x7f800000U | ((magnitude & 0x3ffU) << 13);
  } else if (magnitude >= 0x400U) {
    wide = (magnitude << 13) + 0x38000000U;
  } else {
    wide = std::bit_cast<std::uint32_t>(static_cast<float>(magnitude) * (1.0F / 16777216.0F));
  }
  return std::bit_cast<float>(wide | sign);
}

/// A float between whose rounding to 16 bits and that of `value` itself there is no difference: the value cut to 24 bits, its
/// last bit set when anything was cut ("round to odd"). Rounding first to the nearest float could make a tie that is none.
[[nodiscard]] inline float odd_float_of(double value) {
  const auto nearest = static_cast<float>(value);
  if (static_cast<double>(nearest) == value || std::isnan(value)) return nearest;
  auto bits = std::bit_cast<std::uint32_t>(nearest);
  const bool went_outward = std::abs(static_cast<double>(nearest)) > std::abs(value);  // away from zero, to infinity too
  if (went_outward) --bits;
  return std::bit_cast<float>(bits | 1U);
}

}  // namespace cpfit::kernels
