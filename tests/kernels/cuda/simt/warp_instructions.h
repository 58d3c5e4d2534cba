// What a warp's lanes bring to an instruction that they carry out together, and what it does. Layouts: PTX ISA, mma.m16n8k16 with
// 16-bit elements, ldmatrix.m8n8.x4.b16; written from the ISA's tables, not from the kernels.
#pragma once

#include <cstdint>

namespace simt {

struct Shuffle {
  std::uint64_t value;
  std::uint64_t result;
  int mask;
};
void execute_shuffle_xor(void* const (&lanes)[32]);

struct LoadMatrices {
  const void* row;    // of 16 bytes: row lane % 8 of matrix lane / 8
  std::uint32_t* to;  // [4]
};
void execute_load_matrices(void* const (&lanes)[32]);
void execute_load_matrices_transposed(void* const (&lanes)[32]);

struct MultiplyAdd {
  float* c;                // [4]
  const std::uint32_t* a;  // [4]
  std::uint32_t b[2];
};
void execute_multiply_add_bf16(void* const (&lanes)[32]);
void execute_multiply_add_fp16(void* const (&lanes)[32]);

}  // namespace simt
