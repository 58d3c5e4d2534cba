// Rotary position embedding as Llama applies it: the first half of a head's numbers is rotated against the second,
// (x_i, x_{i + d/2}) by the angle position * base^(-2 i / d). Positions are global: kernels/core/cut.h gives them for a shard.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace cpfit::kernels {

/// x [positions][heads * dim] rotated; dim is even.
[[nodiscard]] std::vector<double> rotate(std::span<const double> x, std::span<const std::int32_t> positions, std::int32_t heads,
                                         std::int32_t dim, double base = 10000);
/// Gradient of `rotate`: its transpose, which is the rotation back.
[[nodiscard]] std::vector<double> rotate_gradient(std::span<const double> dy, std::span<const std::int32_t> positions,
                                                  std::int32_t heads, std::int32_t dim, double base = 10000);

}  // namespace cpfit::kernels
