#include "sim/screen/ring_time.h"

#include <algorithm>

namespace cpfit {

Seconds ring_prefetching(std::span<const double> c, double m) {
  double rest = 0.0;
  for (double step : c) rest += step;
  double longest = 0.0;
  for (std::size_t k = 0; k < c.size(); ++k) {
    longest = std::max(longest, static_cast<double>(k) * m + rest);
    rest -= c[k];
  }
  return Seconds(longest);
}

Seconds ring_two_slots(std::span<const double> c, double m) {
  double total = 0.0;
  for (std::size_t i = 0; i + 1 < c.size(); ++i) total += std::max(c[i], m);
  return Seconds(c.empty() ? 0.0 : total + c.back());
}

Seconds ring_waiting_backward(std::span<const double> c, double first, double middle, double last) {
  double total = 0.0;
  for (std::size_t i = 0; i < c.size(); ++i) {
    const double message = i == 0 ? first : (i + 1 == c.size() ? last : middle);
    total += std::max(c[i], message);
  }
  return Seconds(total);
}

Seconds gather_behind_first_step(std::span<const double> c, double gather) {
  if (c.empty()) return Seconds(gather);
  double total = std::max(c[0], gather);
  for (std::size_t i = 1; i < c.size(); ++i) total += c[i];
  return Seconds(total);
}

}  // namespace cpfit
