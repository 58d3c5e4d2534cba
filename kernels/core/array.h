// Memory of one rank: an array of one number type, on the host or on a device, and views into it. Arrays are made by Operators
// (operators.h), which know where they live; nobody else looks at what `data` points to. Rows are tokens, the outermost axis.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

namespace cpfit::kernels {

enum class Number : std::uint8_t { kFp64, kFp32, kBf16, kFp16, kInt32 };

[[nodiscard]] constexpr std::int64_t bytes_of(Number number) {
  return number == Number::kFp64 ? 8 : number == Number::kFp32 || number == Number::kInt32 ? 4 : 2;
}
[[nodiscard]] constexpr const char* name_of(Number number) {
  constexpr const char* kNames[] = {"fp64", "fp32", "bf16", "fp16", "int32"};
  return kNames[static_cast<int>(number)];
}

/// rows x row_elements numbers without gaps; borrowed. `row_elements` is heads * dim of the tensor.
struct View {
  void* data = nullptr;
  Number number = Number::kFp32;
  std::int64_t rows = 0;
  std::int64_t row_elements = 0;

  [[nodiscard]] std::int64_t elements() const { return rows * row_elements; }
  [[nodiscard]] std::int64_t bytes() const { return elements() * bytes_of(number); }
  /// Rows [begin, begin + count).
  [[nodiscard]] View slice(std::int64_t begin, std::int64_t count) const {
    return {static_cast<std::byte*>(data) + begin * row_elements * bytes_of(number), number, count, row_elements};
  }
};

/// The owner of a view's memory. Copies share it (a received buffer that is also saved for the backward pass is one buffer).
class Array {
 public:
  Array() = default;
  Array(std::shared_ptr<void> storage, Number number, std::int64_t rows, std::int64_t row_elements)
      : storage_(std::move(storage)), number_(number), rows_(rows), row_elements_(row_elements) {}
  [[nodiscard]] View view() const { return {storage_.get(), number_, rows_, row_elements_}; }
  operator View() const { return view(); }  // NOLINT(google-explicit-constructor): an owner stands for its view in every call
  [[nodiscard]] bool empty() const { return storage_ == nullptr; }

 private:
  std::shared_ptr<void> storage_;
  Number number_ = Number::kFp32;
  std::int64_t rows_ = 0;
  std::int64_t row_elements_ = 0;
};

}  // namespace cpfit::kernels
