// A mask as one interval of key positions per query: every mask here is such an interval, so a kernel needs two integers per
// query row and one per key row, whatever the mask and however the sequence was cut. The CPU truth and the CUDA kernels read
// masks in this form only; it must agree with attends() (mask.h), which the simulator's pair counts agree with too.
#pragma once

#include <cstdint>

#include "model/attention/mask.h"

namespace cpfit::attention {

/// Key positions [begin, end); empty when end <= begin (a padded query attends to nothing).
struct KeyRange {
  std::int32_t begin = 0;
  std::int32_t end = 0;
  CPFIT_HD constexpr bool contains(std::int32_t key) const { return key >= begin && key < end; }
  CPFIT_HD constexpr bool empty() const { return end <= begin; }
};

/// What the query at position `q` may attend to among `keys` key positions.
CPFIT_HD constexpr KeyRange visible_keys(const MaskView& mask, std::int64_t q, std::int64_t keys) {
  std::int64_t begin = 0;
  std::int64_t end = keys;
  if (mask.shape != MaskShape::kFull) {
    end = clamp(q + 1, 0, keys);
    if (mask.window > 0) begin = clamp(q - mask.window + 1, 0, keys);
  }
  if (mask.shape == MaskShape::kDocuments) {
    std::int64_t start = end;  // in no document: empty
    for (std::int32_t i = 0; i < mask.document_count; ++i) {
      const Document& document = mask.documents[i];
      if (document.start > q) break;
      if (q < document.start + document.real) start = document.start;
    }
    if (start > begin) begin = start;
  }
  return {static_cast<std::int32_t>(begin), static_cast<std::int32_t>(end)};
}

}  // namespace cpfit::attention
