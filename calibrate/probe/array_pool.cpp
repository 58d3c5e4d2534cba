#include "calibrate/probe/array_pool.h"

#include <algorithm>
#include <cstddef>

namespace cpfit::probe {

namespace {

constexpr std::int64_t kGranule = 512;

std::int64_t rounded(std::int64_t bytes) { return std::max<std::int64_t>((bytes + kGranule - 1) / kGranule, 1) * kGranule; }

}  // namespace

struct ArrayPool::Books {
  struct Living {
    std::int64_t bytes = 0;
    bool of_pass = false;  // allocated since reset_peak
    bool buffer = false;
  };
  std::map<std::int64_t, std::vector<kernels::Array>> spare;  // by size
  std::map<const std::byte*, Living> living;                  // by first byte
  std::int64_t allocated = 0;
  std::int64_t peak = 0;
  std::int64_t reserved = 0;
  std::int64_t most_reserved = 0;
  std::int64_t buffers = 0;

  void reserve(std::int64_t bytes) {
    reserved += bytes;
    most_reserved = std::max(most_reserved, reserved);
  }
  void enter(const void* data, std::int64_t bytes) {
    living[static_cast<const std::byte*>(data)] = {bytes, true, false};
    allocated += bytes;
    peak = std::max(peak, allocated);
  }
  void leave(const void* data) {
    const auto found = living.find(static_cast<const std::byte*>(data));
    allocated -= found->second.bytes;
    living.erase(found);
  }
};

ArrayPool::ArrayPool(kernels::Operators& source, std::function<void(const kernels::View&)> zero)
    : source_(source), zero_(std::move(zero)), books_(std::make_shared<Books>()) {}

kernels::Array ArrayPool::allocate(kernels::Number number, std::int64_t rows, std::int64_t row_elements) {
  const std::int64_t bytes = rounded(rows * row_elements * kernels::bytes_of(number));
  kernels::Array block;
  std::vector<kernels::Array>& spare = books_->spare[bytes];
  if (spare.empty()) {
    block = source_.allocate(kernels::Number::kFp32, bytes / 4, 1);
    books_->reserve(bytes);
  } else {
    block = std::move(spare.back());
    spare.pop_back();
  }
  void* const data = block.view().data;
  books_->enter(data, bytes);
  std::shared_ptr<void> storage(data, [books = books_, block, bytes](void* freed) {
    books->leave(freed);
    books->spare[bytes].push_back(block);
  });
  kernels::Array array(std::move(storage), number, rows, row_elements);
  zero_(array);
  return array;
}

kernels::Array ArrayPool::adopt(const kernels::Array& array) {
  const kernels::View view = array;
  const std::int64_t bytes = rounded(view.bytes());
  books_->enter(view.data, bytes);
  books_->reserve(bytes);
  std::shared_ptr<void> storage(view.data, [books = books_, array, bytes](void* freed) {
    books->leave(freed);
    books->reserved -= bytes;
  });
  return {std::move(storage), view.number, view.rows, view.row_elements};
}

std::int64_t ArrayPool::allocated_bytes() const { return books_->allocated; }
std::int64_t ArrayPool::peak_bytes() const { return books_->peak; }
std::int64_t ArrayPool::reserved_bytes() const { return books_->most_reserved; }
std::int64_t ArrayPool::buffer_bytes() const { return books_->buffers; }

void ArrayPool::reset_peak() {
  books_->peak = books_->allocated;
  books_->buffers = 0;
  for (auto& [data, living] : books_->living) living.of_pass = living.buffer = false;
}

void ArrayPool::mark_buffer(const void* data) {
  const auto* const at = static_cast<const std::byte*>(data);
  auto found = books_->living.upper_bound(at);
  if (found == books_->living.begin()) return;
  --found;
  Books::Living& living = found->second;
  if (at >= found->first + living.bytes || !living.of_pass || living.buffer) return;
  living.buffer = true;
  books_->buffers += living.bytes;
}

}  // namespace cpfit::probe
