// Numbers on the device: into the type that is computed in, back with one rounding to nearest even, and pairs of 16-bit numbers
// in one register as tensor cores take them.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>
#include <cstring>
#include <type_traits>

namespace cpfit::kernels::device {

template <class Element>
inline constexpr bool kSmall = std::is_same_v<Element, __nv_bfloat16> || std::is_same_v<Element, __half>;

template <class Real, class Element>
__device__ __forceinline__ Real to_real(Element x) {
  if constexpr (kSmall<Element>) {
    return static_cast<Real>(static_cast<float>(x));
  } else {
    return static_cast<Real>(x);
  }
}

template <class Element, class Real>
__device__ __forceinline__ Element from_real(Real x) {
  if constexpr (!kSmall<Element>) {
    return static_cast<Element>(x);
  } else if constexpr (std::is_same_v<Element, __half>) {
    if constexpr (sizeof(Real) == 8) return __double2half(x);  // by way of float it would be rounded twice
    return __float2half_rn(static_cast<float>(x));
  } else {
    if constexpr (sizeof(Real) == 8) return __double2bfloat16(x);
    return __float2bfloat16_rn(static_cast<float>(x));
  }
}

/// Two numbers in one register, `low` in the lower half.
template <class Element>
__device__ __forceinline__ std::uint32_t pack_pair(float low, float high) {
  std::uint32_t bits;
  if constexpr (std::is_same_v<Element, __half>) {
    const __half2 pair = __floats2half2_rn(low, high);
    memcpy(&bits, &pair, sizeof bits);
  } else {
    const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
    memcpy(&bits, &pair, sizeof bits);
  }
  return bits;
}

}  // namespace cpfit::kernels::device
