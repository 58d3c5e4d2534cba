#include "kernels/cuda/moves.cuh"

#include "kernels/cuda/cuda_call.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/with_numbers.cuh"

namespace cpfit::kernels::cuda {

namespace {

unsigned blocks_of(std::int64_t items) {
  return static_cast<unsigned>((items + device::kMoveThreads - 1) / device::kMoveThreads);
}

/// Calls run.template operator()<Word>() with the largest word that divides all of `bytes` (counts and places).
template <class Run>
void with_word(std::initializer_list<std::uintptr_t> bytes, const Run& run) {
  std::uintptr_t all = 16;
  for (const std::uintptr_t value : bytes) all |= value;
  if (all % 16 == 0) return run.template operator()<uint4>();
  if (all % 8 == 0) return run.template operator()<uint2>();
  if (all % 4 == 0) return run.template operator()<std::uint32_t>();
  run.template operator()<std::uint16_t>();
}

std::uintptr_t place(const void* data) { return reinterpret_cast<std::uintptr_t>(data); }

}  // namespace

void launch_convert(const Target& target, const View& from, const View& to) {
  const std::int64_t count = to.elements();
  if (count == 0) return;
  with_number(from.number, [&]<class From>() {
    with_number(to.number, [&]<class To>() {
      device::convert_kernel<From, To><<<blocks_of(count), device::kMoveThreads, 0, target.stream>>>(
          static_cast<const From*>(from.data), static_cast<To*>(to.data), count);
    });
  });
  check_launch("copy");
}

void launch_fill(const Target& target, const View& to, double value) {
  const std::int64_t count = to.elements();
  if (count == 0) return;
  if (to.number == Number::kInt32) {
    device::fill_kernel<int>
        <<<blocks_of(count), device::kMoveThreads, 0, target.stream>>>(static_cast<int*>(to.data), count, value);
  } else {
    with_number(to.number, [&]<class To>() {
      device::fill_kernel<To>
          <<<blocks_of(count), device::kMoveThreads, 0, target.stream>>>(static_cast<To*>(to.data), count, value);
    });
  }
  check_launch("fill");
}

void launch_gather_rows(const Target& target, const View& from, const View& index, const View& to) {
  const std::int64_t row_bytes = to.row_elements * bytes_of(to.number);
  if (to.rows == 0 || row_bytes == 0) return;
  with_word({static_cast<std::uintptr_t>(row_bytes), place(from.data), place(to.data)}, [&]<class Word>() {
    const std::int64_t words = row_bytes / static_cast<std::int64_t>(sizeof(Word));
    device::gather_rows_kernel<Word><<<blocks_of(to.rows * words), device::kMoveThreads, 0, target.stream>>>(
        static_cast<const Word*>(from.data), from.rows, static_cast<const int*>(index.data), static_cast<Word*>(to.data), to.rows,
        static_cast<int>(words));
  });
  check_launch("gather_rows");
}

void launch_copy_columns(const Target& target, const View& from, std::int64_t from_begin, const View& to, std::int64_t to_begin,
                         std::int64_t count) {
  if (to.rows == 0 || count == 0) return;
  const std::int64_t width = bytes_of(from.number);
  const char* const source = static_cast<const char*>(from.data) + from_begin * width;
  char* const goal = static_cast<char*>(to.data) + to_begin * width;
  const std::int64_t from_bytes = from.row_elements * width;
  const std::int64_t to_bytes = to.row_elements * width;
  const std::int64_t bytes = count * width;
  with_word({static_cast<std::uintptr_t>(from_bytes), static_cast<std::uintptr_t>(to_bytes), static_cast<std::uintptr_t>(bytes),
             place(source), place(goal)},
            [&]<class Word>() {
              constexpr auto kBytes = static_cast<std::int64_t>(sizeof(Word));
              device::copy_columns_kernel<Word>
                  <<<blocks_of(to.rows * (bytes / kBytes)), device::kMoveThreads, 0, target.stream>>>(
                      reinterpret_cast<const Word*>(source), from_bytes / kBytes, reinterpret_cast<Word*>(goal),
                      to_bytes / kBytes, to.rows, static_cast<int>(bytes / kBytes));
            });
  check_launch("copy_columns");
}

void launch_transpose(const Target& target, const float* from, float* to, std::int64_t rows, int columns) {
  const std::int64_t count = rows * columns;
  if (count == 0) return;
  device::transpose_kernel<float><<<blocks_of(count), device::kMoveThreads, 0, target.stream>>>(from, to, rows, columns);
  check_launch("transpose");
}

}  // namespace cpfit::kernels::cuda
