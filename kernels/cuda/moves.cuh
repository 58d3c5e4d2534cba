// Moving numbers: conversion between types, filling, rows by index (shard, unshard, padding), columns (head exchange).
#pragma once

#include <cstdint>
#include <type_traits>

#include "kernels/cuda/elements.cuh"
#include "kernels/cuda/ptx.cuh"

namespace cpfit::kernels::device {

inline constexpr int kMoveThreads = 256;

__device__ __forceinline__ std::int64_t place_of_thread() {
  return std::int64_t{ptx::block_x()} * kMoveThreads + ptx::thread_x();
}

/// Rounded once; by way of double only where one side is double.
template <class From, class To>
__global__ void __launch_bounds__(kMoveThreads) convert_kernel(const From* from, To* to, std::int64_t count) {
  using Real = std::conditional_t<sizeof(From) == 8 || sizeof(To) == 8, double, float>;
  const std::int64_t i = place_of_thread();
  if (i < count) to[i] = from_real<To>(to_real<Real>(from[i]));
}

template <class To>
__global__ void __launch_bounds__(kMoveThreads) fill_kernel(To* to, std::int64_t count, double value) {
  const std::int64_t i = place_of_thread();
  if (i < count) to[i] = from_real<To>(value);
}

/// Word: the largest of 16, 8, 4, 2 bytes that divides a row and its place. An index outside of [0, from_rows) gives zeros.
template <class Word>
__global__ void __launch_bounds__(kMoveThreads)
    gather_rows_kernel(const Word* from, std::int64_t from_rows, const int* index, Word* to, std::int64_t rows, int row_words) {
  const std::int64_t i = place_of_thread();
  if (i >= rows * row_words) return;
  const std::int64_t row = index[i / row_words];
  to[i] = row >= 0 && row < from_rows ? from[row * row_words + i % row_words] : Word{};
}

/// `words` of each row, from rows from_stride words apart to rows to_stride apart.
template <class Word>
__global__ void __launch_bounds__(kMoveThreads) copy_columns_kernel(const Word* from, std::int64_t from_stride, Word* to,
                                                                    std::int64_t to_stride, std::int64_t rows, int words) {
  const std::int64_t i = place_of_thread();
  if (i >= rows * words) return;
  to[i / words * to_stride + i % words] = from[i / words * from_stride + i % words];
}

/// [rows][columns] to [columns][rows]: log-sum-exps between our order and the one by heads that cuDNN has.
template <class Element>
__global__ void __launch_bounds__(kMoveThreads)
    transpose_kernel(const Element* from, Element* to, std::int64_t rows, int columns) {
  const std::int64_t i = place_of_thread();
  if (i < rows * columns) to[i % columns * rows + i / columns] = from[i];
}

}  // namespace cpfit::kernels::device
