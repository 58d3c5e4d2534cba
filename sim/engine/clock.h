// The simulator's clock: whole picoseconds. 2^63 ps are 106 days; a second is 10^12. Seconds become picoseconds here and nowhere
// else, rounded upward, so that nothing ever takes less than it should and sums have no error.
#pragma once

#include <cmath>
#include <cstdint>

#include "model/quantity/units.h"

namespace cpfit::engine {

using Picoseconds = std::int64_t;

inline constexpr double kPicosecondsPerSecond = 1e12;

/// Rounded upward. A product that is whole but for the error of the multiplication (1 part in 10^13) counts as whole.
[[nodiscard]] inline Picoseconds to_picoseconds(Seconds time) {
  const double exact = time.value() * kPicosecondsPerSecond;
  return static_cast<Picoseconds>(std::ceil(exact - exact * 1e-13));
}
[[nodiscard]] inline Seconds to_seconds(Picoseconds time) { return Seconds(static_cast<double>(time) / kPicosecondsPerSecond); }

}  // namespace cpfit::engine
