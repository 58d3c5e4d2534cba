// Every instruction that C++ has no word for, one function each: where a thread stands, barriers, shuffles, asynchronous copies,
// ldmatrix and mma. No other file of this folder names a register or a built-in variable, so the kernels' text also compiles for
// the host against the twin of this header (tests/kernels/cuda/simt/device_twin.h), which is included first and defines the
// same guard. Source of the fragment layouts: PTX ISA, sections on mma.m16n8k16 and ldmatrix. Needs sm_80.
//
// Fragments of one warp; lane = 4 g + t. Elements that one register holds are (row, column), the lower half first:
//   A 16 x 16: a0 (g, 2t..+1)   a1 (g+8, 2t..+1)   a2 (g, 2t+8..+1)   a3 (g+8, 2t+8..+1)
//   B 16 x 8 : b0 (2t..+1, g)   b1 (2t+8..+1, g)
//   C 16 x 8 : c0 c1 (g, 2t..+1)   c2 c3 (g+8, 2t..+1), fp32
#ifndef CPFIT_KERNELS_CUDA_PTX_CUH
#define CPFIT_KERNELS_CUDA_PTX_CUH

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

namespace cpfit::kernels::ptx {

__device__ __forceinline__ int thread_x() { return static_cast<int>(threadIdx.x); }
__device__ __forceinline__ int threads() { return static_cast<int>(blockDim.x); }
__device__ __forceinline__ int block_x() { return static_cast<int>(blockIdx.x); }
__device__ __forceinline__ int block_y() { return static_cast<int>(blockIdx.y); }
__device__ __forceinline__ int blocks_x() { return static_cast<int>(gridDim.x); }

/// The block's dynamic shared memory, as many bytes as the launch asked for; aligned to 128 bytes.
__device__ __forceinline__ unsigned char* dynamic_shared() {
  extern __shared__ __align__(128) unsigned char memory[];
  return memory;
}

__device__ __forceinline__ void sync_block() { __syncthreads(); }
__device__ __forceinline__ void sync_warp() { __syncwarp(); }
/// The value of the lane whose number differs by the bits of `mask`.
template <class T>
__device__ __forceinline__ T shuffle_xor(T value, int mask) {
  return __shfl_xor_sync(0xffffffffU, value, mask);
}

/// 2^x to 2 units in the last place; 0 for -inf.
__device__ __forceinline__ float exp2_fast(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

/// A place in the block's shared memory as the instructions below take it.
__device__ __forceinline__ std::uint32_t shared_address(const void* shared) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(shared));
}

/// Starts copying 16 bytes to shared memory; zeros when not `valid` (global is not read then). Both aligned to 16 bytes.
__device__ __forceinline__ void copy_16_async(std::uint32_t shared, const void* global, bool valid) {
  const int bytes = valid ? 16 : 0;
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared), "l"(global), "r"(bytes) : "memory");
}
/// Closes the group of this thread's copies started since the last call; the group may be empty.
__device__ __forceinline__ void commit_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
/// Waits until at most kPending of this thread's groups are unfinished. The others' copies are seen after sync_block().
template <int kPending>
__device__ __forceinline__ void wait_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kPending) : "memory");
}

/// Four 8 x 8 matrices of 16-bit elements: lanes 8i..8i+7 give the rows of matrix i (16 bytes each, aligned to 16). Register i of
/// lane 4g+t: elements (g, 2t) and (g, 2t+1) of matrix i; transposed: (2t, g) and (2t+1, g).
__device__ __forceinline__ void load_matrices(std::uint32_t (&to)[4], std::uint32_t shared_row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(shared_row)
               : "memory");
}
__device__ __forceinline__ void load_matrices_transposed(std::uint32_t (&to)[4], std::uint32_t shared_row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(shared_row)
               : "memory");
}

/// c += a b, products of bf16 or fp16 summed in fp32.
template <class Element>
__device__ __forceinline__ void multiply_add(float (&c)[4], const std::uint32_t (&a)[4], std::uint32_t b0, std::uint32_t b1);
template <>
__device__ __forceinline__ void multiply_add<__nv_bfloat16>(float (&c)[4], const std::uint32_t (&a)[4], std::uint32_t b0,
                                                            std::uint32_t b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
template <>
__device__ __forceinline__ void multiply_add<__half>(float (&c)[4], const std::uint32_t (&a)[4], std::uint32_t b0,
                                                     std::uint32_t b1) {
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
               : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

}  // namespace cpfit::kernels::ptx

#endif  // CPFIT_KERNELS_CUDA_PTX_CUH
