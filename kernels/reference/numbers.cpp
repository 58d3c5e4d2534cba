#include "kernels/reference/numbers.h"

#include <algorithm>
#include <cmath>

#include "kernels/reference/small_float.h"

namespace cpfit::kernels {

namespace {

template <class Stored>
Stored* at(const View& view, std::int64_t first) {
  return static_cast<Stored*>(view.data) + first;
}

float to_float(float value) { return value; }
float to_float(double value) { return odd_float_of(value); }

}  // namespace

template <class Real>
void read_numbers(const View& from, std::int64_t first, std::int64_t count, Real* to) {
  const auto cast = [](auto value) { return static_cast<Real>(value); };
  switch (from.number) {
    case Number::kFp64:
      std::transform(at<const double>(from, first), at<const double>(from, first + count), to, cast);
      return;
    case Number::kFp32:
      std::transform(at<const float>(from, first), at<const float>(from, first + count), to, cast);
      return;
    case Number::kInt32:
      std::transform(at<const std::int32_t>(from, first), at<const std::int32_t>(from, first + count), to, cast);
      return;
    case Number::kBf16:
      std::transform(at<const std::uint16_t>(from, first), at<const std::uint16_t>(from, first + count), to,
                     [](std::uint16_t bits) { return static_cast<Real>(float_of_bf16(bits)); });
      return;
    case Number::kFp16:
      std::transform(at<const std::uint16_t>(from, first), at<const std::uint16_t>(from, first + count), to,
                     [](std::uint16_t bits) { return static_cast<Real>(float_of_fp16(bits)); });
      return;
  }
}

template <class Real>
void write_numbers(const Real* from, std::int64_t count, const View& to, std::int64_t first) {
  const Real* end = from + count;
  switch (to.number) {
    case Number::kFp64:
      std::transform(from, end, at<double>(to, first), [](Real value) { return double{value}; });
      return;
    case Number::kFp32:
      std::transform(from, end, at<float>(to, first), [](Real value) { return static_cast<float>(value); });
      return;
    case Number::kInt32:
      std::transform(from, end, at<std::int32_t>(to, first),
                     [](Real value) { return static_cast<std::int32_t>(std::lrint(value)); });
      return;
    case Number::kBf16:
      std::transform(from, end, at<std::uint16_t>(to, first), [](Real value) { return bf16_of(to_float(value)); });
      return;
    case Number::kFp16:
      std::transform(from, end, at<std::uint16_t>(to, first), [](Real value) { return fp16_of(to_float(value)); });
      return;
  }
}

template void read_numbers(const View&, std::int64_t, std::int64_t, float*);
template void read_numbers(const View&, std::int64_t, std::int64_t, double*);
template void write_numbers(const float*, std::int64_t, const View&, std::int64_t);
template void write_numbers(const double*, std::int64_t, const View&, std::int64_t);

}  // namespace cpfit::kernels
