#include "kernels/reference/rope.h"

#include <cmath>
#include <cstddef>

#include "kernels/core/require.h"

namespace cpfit::kernels {

namespace {

/// direction: 1 forward, -1 back.
std::vector<double> rotated(std::span<const double> x, std::span<const std::int32_t> positions, std::int32_t heads,
                            std::int32_t dim, double base, double direction) {
  require(dim % 2 == 0, "rope: heads of {} numbers, an even count expected", dim);
  const auto half = static_cast<std::size_t>(dim / 2);
  const auto count = static_cast<std::size_t>(heads);
  require(x.size() == positions.size() * count * 2 * half, "rope: {} numbers for {} positions, {} heads of {}", x.size(),
          positions.size(), heads, dim);
  std::vector<double> y(x.size());
  for (std::size_t row = 0; row < positions.size(); ++row) {
    for (std::size_t i = 0; i < half; ++i) {
      const double angle = positions[row] * std::pow(base, -2.0 * static_cast<double>(i) / dim);
      const double cosine = std::cos(angle);
      const double sine = direction * std::sin(angle);
      for (std::size_t head = 0; head < count; ++head) {
        const std::size_t first = (row * count + head) * 2 * half + i;
        y[first] = x[first] * cosine - x[first + half] * sine;
        y[first + half] = x[first + half] * cosine + x[first] * sine;
      }
    }
  }
  return y;
}

}  // namespace

std::vector<double> rotate(std::span<const double> x, std::span<const std::int32_t> positions, std::int32_t heads,
                           std::int32_t dim, double base) {
  return rotated(x, positions, heads, dim, base, 1);
}

std::vector<double> rotate_gradient(std::span<const double> dy, std::span<const std::int32_t> positions, std::int32_t heads,
                                    std::int32_t dim, double base) {
  return rotated(dy, positions, heads, dim, base, -1);
}

}  // namespace cpfit::kernels
