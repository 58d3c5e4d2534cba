// Physical quantities that cross function boundaries, as distinct types: a byte count cannot be added to a time.
// Only the operators that physics has exist. Values are doubles: they hold every integer up to 2^53 exactly (8 PiB per
// device), and fractions of a byte per element (block scales of FP8 and FP4) without rounding on the way.
#pragma once

#include <compare>
#include <cstdint>

namespace cpfit {

template <class Dimension>
class Quantity {
 public:
  constexpr Quantity() = default;
  constexpr explicit Quantity(double value) : value_(value) {}
  [[nodiscard]] constexpr double value() const { return value_; }

  constexpr Quantity& operator+=(Quantity other) {
    value_ += other.value_;
    return *this;
  }
  constexpr Quantity& operator-=(Quantity other) {
    value_ -= other.value_;
    return *this;
  }
  constexpr Quantity& operator*=(double factor) {
    value_ *= factor;
    return *this;
  }
  constexpr Quantity& operator/=(double divisor) {
    value_ /= divisor;
    return *this;
  }
  friend constexpr Quantity operator+(Quantity a, Quantity b) { return Quantity(a.value_ + b.value_); }
  friend constexpr Quantity operator-(Quantity a, Quantity b) { return Quantity(a.value_ - b.value_); }
  friend constexpr Quantity operator*(Quantity a, double factor) { return Quantity(a.value_ * factor); }
  friend constexpr Quantity operator*(double factor, Quantity a) { return Quantity(a.value_ * factor); }
  friend constexpr Quantity operator/(Quantity a, double divisor) { return Quantity(a.value_ / divisor); }
  friend constexpr double operator/(Quantity a, Quantity b) { return a.value_ / b.value_; }  // a pure ratio
  friend constexpr auto operator<=>(Quantity a, Quantity b) = default;

 private:
  double value_ = 0.0;
};

using Bytes = Quantity<struct BytesDimension>;                    // bytes
using Seconds = Quantity<struct SecondsDimension>;                // seconds
using Flops = Quantity<struct FlopsDimension>;                    // floating point operations (1 MAC = 2)
using BytesPerSecond = Quantity<struct BytesPerSecondDimension>;  // bytes/s, one direction
using FlopsPerSecond = Quantity<struct FlopsPerSecondDimension>;  // FLOP/s

constexpr Seconds operator/(Bytes amount, BytesPerSecond rate) { return Seconds(amount.value() / rate.value()); }
constexpr Seconds operator/(Flops work, FlopsPerSecond rate) { return Seconds(work.value() / rate.value()); }
constexpr BytesPerSecond operator/(Bytes amount, Seconds time) { return BytesPerSecond(amount.value() / time.value()); }
constexpr FlopsPerSecond operator/(Flops work, Seconds time) { return FlopsPerSecond(work.value() / time.value()); }
constexpr Bytes operator*(BytesPerSecond rate, Seconds time) { return Bytes(rate.value() * time.value()); }
constexpr Flops operator*(FlopsPerSecond rate, Seconds time) { return Flops(rate.value() * time.value()); }

/// A count of tokens of one sequence or one batch. Integer: tokens are never fractional.
class Tokens {
 public:
  constexpr Tokens() = default;
  constexpr explicit Tokens(std::int64_t count) : count_(count) {}
  [[nodiscard]] constexpr std::int64_t count() const { return count_; }
  friend constexpr auto operator<=>(Tokens a, Tokens b) = default;

 private:
  std::int64_t count_ = 0;
};

inline constexpr double kKiB = 1024.0;
inline constexpr double kMiB = 1024.0 * kKiB;
inline constexpr double kGiB = 1024.0 * kMiB;

constexpr Bytes gib(double count) { return Bytes(count * kGiB); }
constexpr Bytes mib(double count) { return Bytes(count * kMiB); }
constexpr BytesPerSecond gb_per_s(double count) { return BytesPerSecond(count * 1e9); }
constexpr FlopsPerSecond tflops(double count) { return FlopsPerSecond(count * 1e12); }
constexpr Seconds microseconds(double count) { return Seconds(count * 1e-6); }
constexpr Seconds milliseconds(double count) { return Seconds(count * 1e-3); }

template <class D>
constexpr Quantity<D> max(Quantity<D> a, Quantity<D> b) {
  return a < b ? b : a;
}
template <class D>
constexpr Quantity<D> min(Quantity<D> a, Quantity<D> b) {
  return b < a ? b : a;
}

}  // namespace cpfit
