// The host's twin of kernels/cuda/ptx.cuh: the same names, carried out by the emulator (engine.h). Include it before any kernel
// header: it defines the guard of ptx.cuh, whose text is then skipped. Layouts of fragments: head of ptx.cuh.
#pragma once
#define CPFIT_KERNELS_CUDA_PTX_CUH

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime_api.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>

#undef __forceinline__  // a GPU's need; here it would only take time to compile
#define __forceinline__ inline
#if !defined(__launch_bounds__)
#define __launch_bounds__(...)  // a host compiler's headers leave it out
#endif

#include "engine.h"
#include "warp_instructions.h"

namespace cpfit::kernels::ptx {

inline int thread_x() { return simt::place().thread; }
inline int threads() { return simt::place().launch.threads; }
inline int block_x() { return simt::place().block_x; }
inline int block_y() { return simt::place().block_y; }
inline int blocks_x() { return simt::place().launch.blocks_x; }
inline unsigned char* dynamic_shared() { return simt::shared_memory(); }

inline void sync_block() { simt::sync_block(); }
inline void sync_warp() {
  simt::meet_warp("sync_warp", nullptr, [](void* const(&)[32]) {});
}
template <class T>
T shuffle_xor(T value, int mask) {
  static_assert(sizeof(T) <= 8);
  simt::Shuffle operand{0, 0, mask};
  std::memcpy(&operand.value, &value, sizeof value);
  simt::meet_warp("shuffle_xor", &operand, &simt::execute_shuffle_xor);
  T result;
  std::memcpy(&result, &operand.result, sizeof result);
  return result;
}

inline float exp2_fast(float x) { return std::exp2(x); }

inline std::uint32_t shared_address(const void* shared) { return simt::shared_address(shared); }
inline void copy_16_async(std::uint32_t shared, const void* global, bool valid) { simt::start_copy_16(shared, global, valid); }
inline void commit_copies() { simt::commit_copies(); }
template <int kPending>
void wait_copies() {
  simt::wait_copies(kPending);
}

inline void load_matrices(std::uint32_t (&to)[4], std::uint32_t shared_row) {
  simt::LoadMatrices operand{simt::shared_place(shared_row, 16), &to[0]};
  simt::meet_warp("load_matrices", &operand, &simt::execute_load_matrices);
}
inline void load_matrices_transposed(std::uint32_t (&to)[4], std::uint32_t shared_row) {
  simt::LoadMatrices operand{simt::shared_place(shared_row, 16), &to[0]};
  simt::meet_warp("load_matrices_transposed", &operand, &simt::execute_load_matrices_transposed);
}

template <class Element>
void multiply_add(float (&c)[4], const std::uint32_t (&a)[4], std::uint32_t b0, std::uint32_t b1) {
  simt::MultiplyAdd operand{&c[0], &a[0], {b0, b1}};
  if constexpr (std::is_same_v<Element, __half>) {
    simt::meet_warp("multiply_add fp16", &operand, &simt::execute_multiply_add_fp16);
  } else {
    simt::meet_warp("multiply_add bf16", &operand, &simt::execute_multiply_add_bf16);
  }
}

}  // namespace cpfit::kernels::ptx
