// Rows of numbers of any type into the type that the CPU computes in, and back, rounding to nearest even. Used for every
// operator: whatever a view's type is, the arithmetic is in float or double.
#pragma once

#include <cstdint>

#include "kernels/core/array.h"

namespace cpfit::kernels {

/// Elements [first, first + count) of `from`, as Real.
template <class Real>
void read_numbers(const View& from, std::int64_t first, std::int64_t count, Real* to);
/// The same place of `to` becomes the `count` numbers at `from`, each rounded once.
template <class Real>
void write_numbers(const Real* from, std::int64_t count, const View& to, std::int64_t first);

extern template void read_numbers(const View&, std::int64_t, std::int64_t, float*);
extern template void read_numbers(const View&, std::int64_t, std::int64_t, double*);
extern template void write_numbers(const float*, std::int64_t, const View&, std::int64_t);
extern template void write_numbers(const double*, std::int64_t, const View&, std::int64_t);

/// The number type of Real itself.
template <class Real>
constexpr Number number_of() {
  return sizeof(Real) == 8 ? Number::kFp64 : Number::kFp32;
}

}  // namespace cpfit::kernels
