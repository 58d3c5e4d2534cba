#include "kernels/core/cut.h"

#include <fmt/format.h>

#include <cstddef>

#include "kernels/core/require.h"

namespace cpfit::kernels {

namespace {

using attention::Document;
using attention::MaskShape;
using attention::Shard;

Shard whole(const Cut& cut) { return {cut.layout, cut.tokens, cut.cp}; }

std::vector<std::int32_t> as_rows(std::int64_t count) { return std::vector<std::int32_t>(static_cast<std::size_t>(count)); }

/// The documents start at 0 and follow one another without gaps up to `tokens`; names the first that does not.
std::string gap_of(const Cut& cut, const Mask& mask) {
  std::int64_t next = 0;
  for (std::size_t i = 0; i < mask.documents.size(); ++i) {
    const Document& document = mask.documents[i];
    if (document.start != next) return fmt::format("document {} starts at {}, not at {}", i, document.start, next);
    next += document.padded;
  }
  return next == cut.tokens ? "" : fmt::format("the documents store {} tokens, the sequence has {}", next, cut.tokens);
}

}  // namespace

std::vector<std::int32_t> storage_rows(const Cut& cut, const Mask& mask, std::int32_t rank) {
  require(why_not(cut, mask).empty(), "cut: {}", why_not(cut, mask));
  require(rank >= 0 && rank < cut.cp, "cut: rank {} of {}", rank, cut.cp);
  std::vector<std::int32_t> rows;
  rows.reserve(static_cast<std::size_t>(cut.tokens_per_rank()));
  const auto append = [&](const Shard& shard, std::int64_t start) {
    for (std::int64_t j = 0; j < shard.tokens_per_rank(); ++j) {
      rows.push_back(static_cast<std::int32_t>(start + shard.global_of(rank, j)));
    }
  };
  if (!cut.per_document) {
    append(whole(cut), 0);
  } else {
    for (const Document& document : mask.documents) append(attention::shard_of(document, cut.cp), document.start);
  }
  return rows;
}

std::vector<std::int32_t> unshard_rows(const Cut& cut, const Mask& mask) {
  std::vector<std::int32_t> locals = as_rows(cut.tokens);
  std::int32_t local = 0;
  for (std::int32_t rank = 0; rank < cut.cp; ++rank) {
    for (const std::int32_t row : storage_rows(cut, mask, rank)) locals[static_cast<std::size_t>(row)] = local++;
  }
  return locals;
}

std::vector<std::int32_t> position_ids(const Cut& cut, const Mask& mask, std::int32_t rank) {
  std::vector<std::int32_t> positions = storage_rows(cut, mask, rank);
  if (mask.shape != MaskShape::kDocuments || mask.documents.empty()) return positions;
  const attention::PackedShard packed{mask.documents.data(), static_cast<std::int32_t>(mask.documents.size()), cut.cp};
  for (std::int32_t& position : positions) position -= static_cast<std::int32_t>(packed.at(position).start);
  return positions;
}

std::vector<attention::KeyRange> query_ranges(const Cut& cut, const Mask& mask, std::int64_t keys, std::int32_t rank) {
  require(mask.shape != MaskShape::kDocuments || keys == cut.tokens, "cut: packed documents with {} queries and {} keys",
          cut.tokens, keys);
  std::vector<attention::KeyRange> ranges;
  ranges.reserve(static_cast<std::size_t>(cut.tokens_per_rank()));
  for (const std::int32_t row : storage_rows(cut, mask, rank)) {
    ranges.push_back(attention::visible_keys(mask.view(), row + keys - cut.tokens, keys));
  }
  return ranges;
}

std::vector<std::uint8_t> real_tokens(const Cut& cut, const Mask& mask, std::int32_t rank) {
  const std::vector<std::int32_t> rows = storage_rows(cut, mask, rank);
  std::vector<std::uint8_t> real(rows.size(), 1);
  if (mask.shape != MaskShape::kDocuments) return real;
  // A real token of a packed sequence sees at least itself; padding sees nothing.
  for (std::size_t j = 0; j < rows.size(); ++j) {
    real[j] = attention::visible_keys(mask.view(), rows[j], cut.tokens).empty() ? 0 : 1;
  }
  return real;
}

std::string why_not(const Cut& cut, const Mask& mask) {
  if (cut.cp < 1) return fmt::format("{} ranks: at least 1 is needed", cut.cp);
  if (mask.shape == MaskShape::kWindow && mask.window < 1) return "a sliding window of 0 tokens: give its length";
  if (!cut.per_document) {
    if (whole(cut).divides()) return "";
    const std::int64_t multiple = std::int64_t{whole(cut).zigzag() ? 2 : 1} * cut.cp;
    return fmt::format("{} tokens do not divide by {}: pad to {}", cut.tokens, multiple,
                       attention::round_up(cut.tokens, multiple));
  }
  if (mask.shape != MaskShape::kDocuments) return "a cut document by document needs a mask of documents";
  if (cut.layout != attention::Layout::kZigzag) return "documents are cut zigzag, one by one: no other layout does that";
  for (std::size_t i = 0; i < mask.documents.size(); ++i) {
    const std::int64_t padded = mask.documents[i].padded;
    if (!attention::shard_of(mask.documents[i], cut.cp).divides()) {
      return fmt::format("document {} is stored in {} tokens, which do not divide by {}: pad it to {}", i, padded, 2 * cut.cp,
                         attention::round_up(padded, std::int64_t{2} * cut.cp));
    }
  }
  const std::string gap = gap_of(cut, mask);
  return gap.empty() ? "" : gap + ": documents that are cut one by one follow each other without gaps";
}

}  // namespace cpfit::kernels
