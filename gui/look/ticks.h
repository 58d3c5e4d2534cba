// Places and texts of an axis' ticks: pure.
#pragma once

#include <QString>
#include <cstdint>
#include <vector>

namespace cpfit::gui {

/// 1, 2 or 5 times a power of ten apart, all within [low, high], about `wanted` of them; empty when the range is.
[[nodiscard]] std::vector<double> nice_ticks(double low, double high, int wanted);

/// A tick's number in a unit: as many decimals as `step` between ticks needs.
[[nodiscard]] QString tick_text(double value, double step);

/// Powers of two within [low, high]: the ticks of sequence lengths and degrees.
[[nodiscard]] std::vector<std::int64_t> power_ticks(std::int64_t low, std::int64_t high);

}  // namespace cpfit::gui
