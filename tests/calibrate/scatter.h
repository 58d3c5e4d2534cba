#pragma once

#include <cmath>
#include <cstdint>

namespace cpfit {

/// A scatter of the given relative size that is the same everywhere: a linear congruence, uniform, scaled to its deviation.
class Scatter {
 public:
  explicit Scatter(double relative) : half_width_(relative * std::sqrt(3.0)) {}
  double operator()() {
    state_ = state_ * 6364136223846793005ULL + 1442695040888963407ULL;
    const double unit = static_cast<double>(state_ >> 11U) / 9007199254740992.0;
    return 1 + half_width_ * (2 * unit - 1);
  }

 private:
  double half_width_;
  std::uint64_t state_ = 7;
};

}  // namespace cpfit
