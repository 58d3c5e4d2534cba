// NumPy's .npy files, version 1.0, as numpy.save writes them: little-endian arrays in C order. What `cpfit verify emit` hands out
// and `check` reads back. bf16 has no NumPy type: it is written as '<u2', its 16 bits, and read so where bf16 is expected.
// Format: numpy.org/doc/stable/reference/generated/numpy.lib.format.html
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/core/array.h"
#include "model/quantity/problem.h"

namespace cpfit::kernels {

struct NpyArray {
  std::vector<std::int64_t> shape;
  std::string type;  // NumPy's: "<f8", "<f4", "<f2", "<u2", "<i4", "<i8"
  std::vector<double> values;
};

/// The whole file. `values` must be exact in `number` (kInt32: whole numbers) or are rounded to it, nearest even.
[[nodiscard]] std::string npy_bytes(Number number, const std::vector<std::int64_t>& shape, const std::vector<double>& values);

/// Reads the bytes of a file; float and integer types of 2 to 8 bytes, '<u2' as the bits of bf16. Problem "npy.*" with what is
/// wrong.
[[nodiscard]] Outcome<NpyArray> read_npy(const std::string& bytes, const std::string& where);

/// A whole file. Throws Error naming the path.
void write_file(const std::string& path, const std::string& bytes);
[[nodiscard]] std::string read_whole_file(const std::string& path);

/// "[704][8][64]"
[[nodiscard]] std::string shape_text(const std::vector<std::int64_t>& shape);

}  // namespace cpfit::kernels
