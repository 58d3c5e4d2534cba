// Memory of one rank's arrays that is used again, as a framework's caching allocator does it, and counted: what is alive
// (allocated), what was taken from the system (reserved). Sizes are rounded up to 512 bytes; a block serves one size. So a
// repetition pays for no page that an earlier one has touched. One rank, one thread (on a GPU: one stream) uses it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "kernels/core/operators.h"

namespace cpfit::probe {

class ArrayPool {
 public:
  /// Takes blocks from `source`. `zero` clears memory where the source's arrays live.
  ArrayPool(kernels::Operators& source, std::function<void(const kernels::View&)> zero);

  /// Zero-filled. Goes back to the pool with its last copy, which may outlive the pool.
  [[nodiscard]] kernels::Array allocate(kernels::Number number, std::int64_t rows, std::int64_t row_elements);
  /// Counts an array that was made elsewhere, for as long as it lives.
  [[nodiscard]] kernels::Array adopt(const kernels::Array& array);

  [[nodiscard]] std::int64_t allocated_bytes() const;  // now
  [[nodiscard]] std::int64_t peak_bytes() const;       // since reset_peak
  [[nodiscard]] std::int64_t reserved_bytes() const;   // the most so far; blocks are kept while the pool lives
  void reset_peak();

  /// Marks the array of this pool that holds `data`: a buffer that messages leave from or arrive in. Arrays allocated before
  /// reset_peak are the caller's own and are not counted.
  void mark_buffer(const void* data);
  [[nodiscard]] std::int64_t buffer_bytes() const;  // of all marked since reset_peak, each once

 private:
  struct Books;
  kernels::Operators& source_;
  std::function<void(const kernels::View&)> zero_;
  std::shared_ptr<Books> books_;
};

}  // namespace cpfit::probe
