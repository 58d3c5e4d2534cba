// How a sequence is cut over the ranks, as the lists a rank needs: which storage row each local token is, which position it has,
// which keys its query may see. From model/attention's shards (contiguous, zigzag, striped over the whole sequence) or document
// by document (packed, zigzag on each). One sequence per cut: a batch is packed documents, or several calls.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/attention/packed.h"
#include "model/attention/visible.h"

namespace cpfit::kernels {

/// Owns the documents that a MaskView borrows.
struct Mask {
  attention::MaskShape shape = attention::MaskShape::kCausal;
  std::int64_t window = 0;
  std::vector<attention::Document> documents;
  [[nodiscard]] attention::MaskView view() const {
    return {shape, window, documents.data(), static_cast<std::int32_t>(documents.size())};
  }
};

struct Cut {
  attention::Layout layout = attention::Layout::kZigzag;
  bool per_document = false;  // zigzag on each of mask.documents; their padded lengths divide by 2 * cp
  std::int64_t tokens = 0;    // stored, padding included
  std::int32_t cp = 1;

  [[nodiscard]] std::int64_t tokens_per_rank() const { return tokens / cp; }
};

/// Storage row of each local token of `rank`, in local order: what gather_rows takes to shard, and inverted to unshard.
[[nodiscard]] std::vector<std::int32_t> storage_rows(const Cut& cut, const Mask& mask, std::int32_t rank);
/// Local row (rank-major: rank * tokens_per_rank + local) of each storage row: the inverse over all ranks.
[[nodiscard]] std::vector<std::int32_t> unshard_rows(const Cut& cut, const Mask& mask);
/// Position id for RoPE of each local token: restarts at each document of a packed mask (however it is cut: a token's position
/// belongs to the token), else the storage row.
[[nodiscard]] std::vector<std::int32_t> position_ids(const Cut& cut, const Mask& mask, std::int32_t rank);
/// Visible keys of each local query, in STORAGE rows of the keys (what BlockMask compares). `keys`: stored tokens of the key
/// side; with cross lengths (keys != cut.tokens) a causal query at row i stands at i + keys - cut.tokens (bottom-right).
[[nodiscard]] std::vector<attention::KeyRange> query_ranges(const Cut& cut, const Mask& mask, std::int64_t keys,
                                                            std::int32_t rank);
/// True where the local token is real (not padding).
[[nodiscard]] std::vector<std::uint8_t> real_tokens(const Cut& cut, const Mask& mask, std::int32_t rank);
/// Empty when the cut can serve this mask; else the reason and what would serve, for a person.
[[nodiscard]] std::string why_not(const Cut& cut, const Mask& mask);

}  // namespace cpfit::kernels
