#include "gui/look/ticks.h"

#include <algorithm>
#include <cmath>

namespace cpfit::gui {

std::vector<double> nice_ticks(double low, double high, int wanted) {
  if (!(high > low) || wanted < 1 || !std::isfinite(low) || !std::isfinite(high)) return {};
  const double raw = (high - low) / wanted;
  const double power = std::pow(10.0, std::floor(std::log10(raw)));
  double step = 10.0 * power;
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= raw * (1.0 - 1e-9)) {
      step = factor * power;
      break;
    }
  }
  std::vector<double> ticks;
  const auto last = static_cast<std::int64_t>(std::floor(high / step + 1e-9));
  for (auto i = static_cast<std::int64_t>(std::ceil(low / step - 1e-9)); i <= last; ++i)
    ticks.push_back(static_cast<double>(i) * step);
  return ticks;
}

QString tick_text(double value, double step) {
  const int decimals = step > 0.0 ? std::clamp(static_cast<int>(std::ceil(-std::log10(step) - 1e-9)), 0, 9) : 0;
  return QString::number(value, 'f', decimals);
}

std::vector<std::int64_t> power_ticks(std::int64_t low, std::int64_t high) {
  std::vector<std::int64_t> ticks;
  for (std::int64_t tick = 1; tick > 0 && tick <= high; tick *= 2) {
    if (tick >= low) ticks.push_back(tick);
  }
  return ticks;
}

}  // namespace cpfit::gui
