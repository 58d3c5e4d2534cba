#include "warp_instructions.h"

#include <cuda_fp16.h>

#include <cstring>
#include <vector>

namespace simt {

namespace {

template <class Operand>
Operand& of(void* const (&lanes)[32], int lane) {
  return *static_cast<Operand*>(lanes[lane]);
}

std::uint32_t element(const void* row, int number) {
  std::uint16_t bits;
  std::memcpy(&bits, static_cast<const unsigned char*>(row) + 2 * number, sizeof bits);
  return bits;
}

/// Lane l of register i gets two elements of matrix i: row l / 4, columns 2 (l % 4) and one more; transposed: rows and columns
/// change places.
void load(void* const (&lanes)[32], bool transposed) {
  for (int lane = 0; lane < 32; ++lane) {
    for (int matrix = 0; matrix < 4; ++matrix) {
      std::uint32_t pair[2];
      for (int i = 0; i < 2; ++i) {
        const int row = transposed ? 2 * (lane % 4) + i : lane / 4;
        const int column = transposed ? lane / 4 : 2 * (lane % 4) + i;
        pair[i] = element(of<LoadMatrices>(lanes, 8 * matrix + row).row, column);
      }
      of<LoadMatrices>(lanes, lane).to[matrix] = pair[0] | pair[1] << 16;
    }
  }
}

float from_bf16(std::uint32_t bits) {
  const std::uint32_t wide = bits << 16;
  float value;
  std::memcpy(&value, &wide, sizeof value);
  return value;
}

float from_fp16(std::uint32_t bits) {
  static const std::vector<float> kValues = [] {
    std::vector<float> values(65536);
    for (std::uint32_t i = 0; i < 65536; ++i) {
      __half_raw raw;
      raw.x = static_cast<unsigned short>(i);
      values[i] = __half2float(__half(raw));
    }
    return values;
  }();
  return kValues[bits];
}

/// Rows of fragments: A's register r of lane l holds row l / 4 + 8 (r % 2), columns 2 (l % 4) + 8 (r / 2) and one more; B's
/// register r rows 2 (l % 4) + 8 r and one more of column l / 4; C's number r row l / 4 + 8 (r / 2), column 2 (l % 4) + r % 2.
template <float (*from_bits)(std::uint32_t)>
void multiply(void* const (&lanes)[32]) {
  float a[16][16];
  float b[8][16];  // by column
  for (int lane = 0; lane < 32; ++lane) {
    const MultiplyAdd& operand = of<MultiplyAdd>(lanes, lane);
    const int group = lane / 4;
    const int pair = 2 * (lane % 4);
    for (int r = 0; r < 4; ++r) {
      a[group + 8 * (r % 2)][pair + 8 * (r / 2)] = from_bits(operand.a[r] & 0xFFFFU);
      a[group + 8 * (r % 2)][pair + 8 * (r / 2) + 1] = from_bits(operand.a[r] >> 16);
    }
    for (int r = 0; r < 2; ++r) {
      b[group][pair + 8 * r] = from_bits(operand.b[r] & 0xFFFFU);
      b[group][pair + 8 * r + 1] = from_bits(operand.b[r] >> 16);
    }
  }
  for (int lane = 0; lane < 32; ++lane) {
    float* const c = of<MultiplyAdd>(lanes, lane).c;
    for (int r = 0; r < 4; ++r) {
      const float(&row)[16] = a[lane / 4 + 8 * (r / 2)];
      const float(&column)[16] = b[2 * (lane % 4) + r % 2];
      float sum = c[r];
      for (int k = 0; k < 16; ++k) sum += row[k] * column[k];
      c[r] = sum;
    }
  }
}

}  // namespace

void execute_shuffle_xor(void* const (&lanes)[32]) {
  for (int lane = 0; lane < 32; ++lane) {
    Shuffle& operand = of<Shuffle>(lanes, lane);
    operand.result = of<Shuffle>(lanes, lane ^ operand.mask).value;
  }
}
void execute_load_matrices(void* const (&lanes)[32]) { load(lanes, false); }
void execute_load_matrices_transposed(void* const (&lanes)[32]) { load(lanes, true); }
void execute_multiply_add_bf16(void* const (&lanes)[32]) { multiply<&from_bf16>(lanes); }
void execute_multiply_add_fp16(void* const (&lanes)[32]) { multiply<&from_fp16>(lanes); }

}  // namespace simt
