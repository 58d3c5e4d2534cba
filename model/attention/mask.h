// Which keys a query attends to, and how many (query, key) pairs lie in a rectangle of the score matrix: exact, in closed form,
// O(1) for full, causal and sliding-window masks and O(documents) for packed documents. Nothing here allocates.
// A window of W lets a query see the W last keys, itself included. A document attends causally inside itself (and through the
// window, when one is set); its padding attends to nothing and nothing attends to it. Source: cp_model.md A.3, A.8, E.5.
#pragma once

#include <cstdint>

#include "model/attention/positions.h"

namespace cpfit::attention {

enum class MaskShape : std::uint8_t { kFull, kCausal, kWindow, kDocuments };

/// One document of a packed sequence: storage is [start, start + padded), of which the first `real` tokens are valid.
struct Document {
  std::int64_t start = 0;
  std::int64_t real = 0;
  std::int64_t padded = 0;
};

/// A mask as a view; the documents belong to the caller and are in storage order.
struct MaskView {
  MaskShape shape = MaskShape::kCausal;
  std::int64_t window = 0;  // W; kWindow: > 0. kDocuments: 0 = no window inside a document
  const Document* documents = nullptr;
  std::int32_t document_count = 0;
};

CPFIT_HD constexpr MaskView full_mask() { return {MaskShape::kFull, 0, nullptr, 0}; }
CPFIT_HD constexpr MaskView causal_mask() { return {}; }
CPFIT_HD constexpr MaskView window_mask(std::int64_t window) { return {MaskShape::kWindow, window, nullptr, 0}; }
CPFIT_HD constexpr MaskView document_mask(const Document* documents, std::int32_t count, std::int64_t window = 0) {
  return {MaskShape::kDocuments, window, documents, count};
}

/// Does query position q attend to key position k? The definition that every count below must agree with.
CPFIT_HD constexpr bool attends(const MaskView& mask, std::int64_t q, std::int64_t k) {
  if (mask.shape == MaskShape::kFull) return true;
  if (k > q) return false;
  if (mask.window > 0 && k <= q - mask.window) return false;
  if (mask.shape != MaskShape::kDocuments) return true;
  for (std::int32_t i = 0; i < mask.document_count; ++i) {
    const Document& document = mask.documents[i];
    if (k >= document.start && q < document.start + document.real) return true;
    if (k < document.start) return false;
  }
  return false;
}

/// Causal pairs of two sets of positions of equal stride, through a window when window > 0.
CPFIT_HD constexpr std::int64_t causal_pairs(const Positions& q, const Positions& k, std::int64_t window) {
  return pairs_lagging(q, k, 0) - (window > 0 ? pairs_lagging(q, k, window) : 0);
}

/// Attended pairs between the queries at some positions and the keys at others (same stride).
CPFIT_HD constexpr std::int64_t pairs_between(const MaskView& mask, const Positions& q, const Positions& k) {
  if (q.count == 0 || k.count == 0) return 0;
  if (mask.shape == MaskShape::kFull) return q.count * k.count;
  if (mask.shape != MaskShape::kDocuments) return causal_pairs(q, k, mask.window);
  std::int64_t pairs = 0;
  for (std::int32_t i = 0; i < mask.document_count; ++i) {
    const Document& document = mask.documents[i];
    if (document.start > q.last()) break;
    const std::int64_t end = document.start + document.real;
    pairs += causal_pairs(clip(q, document.start, end), clip(k, document.start, end), mask.window);
  }
  return pairs;
}

/// Attended pairs of the rectangle of queries [q_begin, q_end) and keys [k_begin, k_end).
CPFIT_HD constexpr std::int64_t pairs_in(const MaskView& mask, std::int64_t q_begin, std::int64_t q_end, std::int64_t k_begin,
                                         std::int64_t k_end) {
  return pairs_between(mask, {q_begin, q_end - q_begin, 1}, {k_begin, k_end - k_begin, 1});
}

/// What a kernel meets in a rectangle. Causal: key <= query exactly, with the last query and the last key at the same position
/// (bottom-right aligned; a square on the diagonal, or a chunk of queries against the whole prefix). Mixed: anything else.
enum class BlockKind : std::uint8_t { kEmpty, kFull, kCausal, kMixed };

CPFIT_HD constexpr BlockKind classify(const MaskView& mask, std::int64_t q_begin, std::int64_t q_end, std::int64_t k_begin,
                                      std::int64_t k_end) {
  const std::int64_t pairs = pairs_in(mask, q_begin, q_end, k_begin, k_end);
  if (pairs == 0) return BlockKind::kEmpty;
  if (pairs == (q_end - q_begin) * (k_end - k_begin)) return BlockKind::kFull;
  // Every mask but the full one is a subset of the causal one, so an equal count is an equal set.
  if (q_end == k_end && mask.shape != MaskShape::kFull && pairs == pairs_in(causal_mask(), q_begin, q_end, k_begin, k_end)) {
    return BlockKind::kCausal;
  }
  return BlockKind::kMixed;
}

/// Attended pairs of the whole sequence: s^2, s(s+1)/2, W s - W(W-1)/2, or the sum over documents.
CPFIT_HD constexpr std::int64_t total_pairs(const MaskView& mask, std::int64_t sequence) {
  return pairs_in(mask, 0, sequence, 0, sequence);
}

}  // namespace cpfit::attention
