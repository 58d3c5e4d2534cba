#include "kernels/strategy/step_plan.h"

#include <algorithm>
#include <numeric>

#include "model/attention/packed_work.h"
#include "model/attention/ring_work.h"

namespace cpfit::kernels {

namespace {

using attention::BlockKind;
using attention::MaskShape;

attention::Shard shard_of(const Cut& cut) { return {cut.layout, cut.tokens, cut.cp}; }

attention::PackedShard packed_of(const Layer& layer) {
  const std::vector<attention::Document>& documents = layer.mask.documents;
  return {documents.data(), static_cast<std::int32_t>(documents.size()), layer.queries.cp};
}

bool is_cross(const Layer& layer) { return layer.queries.tokens != layer.keys.tokens; }

/// How far a query's position lies beyond its storage row: cross lengths are aligned at their ends.
std::int64_t shift_of(const Layer& layer) {
  return layer.mask.shape == MaskShape::kFull ? 0 : layer.keys.tokens - layer.queries.tokens;
}

/// Any of the keys at ascending `positions` in any of the ranges.
bool any_pair(const std::vector<attention::KeyRange>& ranges, const std::vector<std::int32_t>& positions) {
  return std::ranges::any_of(ranges, [&](const attention::KeyRange& range) {
    const auto first = std::ranges::lower_bound(positions, range.begin);
    return first != positions.end() && *first < range.end;
  });
}

Rectangle whole(const Layer& layer, std::int64_t keys, bool attended) {
  if (!attended) return {};
  const bool full = layer.mask.shape == MaskShape::kFull;
  return {0, layer.queries.tokens_per_rank(), 0, keys, full ? BlockKind::kFull : BlockKind::kMixed};
}

Rectangle cross_rectangle(const Layer& layer, std::int32_t rank, std::int32_t owner) {
  const bool attended =
      layer.mask.shape == MaskShape::kFull ||
      any_pair(query_ranges(layer.queries, layer.mask, layer.keys.tokens, rank), storage_rows(layer.keys, layer.mask, owner));
  return whole(layer, layer.keys.tokens_per_rank(), attended);
}

// --- faults

/// Real lengths rounded down to a multiple of cp, as cu_seqlens // cp has it.
Mask floored(Mask mask, std::int32_t cp) {
  for (attention::Document& document : mask.documents) document.real = document.real / cp * cp;
  return mask;
}

/// The first query of every piece of the shard (a row that does not follow its predecessor) takes the range of the position
/// before.
void lower_seams(const Layer& layer, std::int32_t rank, std::vector<attention::KeyRange>& ranges) {
  const std::vector<std::int32_t> rows = storage_rows(layer.queries, layer.mask, rank);
  const std::int32_t stride = layer.queries.layout == attention::Layout::kStriped ? layer.queries.cp : 1;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const bool seam = rows[i] > 0 && (i == 0 || rows[i] != rows[i - 1] + stride);
    if (seam) ranges[i] = attention::visible_keys(layer.mask.view(), rows[i] - 1 + shift_of(layer), layer.keys.tokens);
  }
}

/// The last real query of every padded document attends to one key more, the first padded one.
void reach_into_padding(const Layer& layer, std::vector<attention::KeyRange>& ranges) {
  for (const attention::Document& document : layer.mask.documents) {
    const std::int64_t end = document.start + document.real;
    if (document.real == document.padded) continue;
    for (attention::KeyRange& range : ranges) {
      if (range.end == end && range.begin >= document.start && !range.empty()) ++range.end;
    }
  }
}

/// Whose positions a step's mask takes for those of `owner`.
std::int32_t masked_owner(Fault fault, std::int32_t owner, std::int32_t cp) {
  return fault == Fault::kMaskShiftedByBlock ? (owner + 1) % cp : owner;
}

}  // namespace

Rectangle ring_rectangle(const Layer& layer, std::int32_t rank, std::int32_t owner) {
  if (is_cross(layer)) return cross_rectangle(layer, rank, owner);
  const std::int64_t own = layer.queries.tokens_per_rank();
  if (layer.queries.per_document) {
    return whole(layer, own, attention::packed_step(packed_of(layer), layer.mask.window, rank, owner).count > 0);
  }
  const attention::StepWork work = attention::ring_step(shard_of(layer.queries), layer.mask.view(), rank, owner);
  if (work.count == 0) return {};
  // Every shorter rectangle of ring_work.h takes the last queries (zigzag: the second chunk; striped: all but the first) and the
  // first keys.
  const attention::Kernel& kernel = work.kernel[0];
  return {own - kernel.q_len, kernel.q_len, 0, kernel.kv_len, kernel.kind};
}

std::vector<Rectangle> gathered_rectangles(const Layer& layer, std::int32_t rank) {
  const std::int64_t keys = layer.keys.tokens;
  const auto one = [](const Rectangle& rectangle) {
    return rectangle.kind == BlockKind::kEmpty ? std::vector<Rectangle>{} : std::vector<Rectangle>{rectangle};
  };
  const attention::MaskView mask = layer.mask.view();
  if (is_cross(layer)) {
    const std::vector<attention::KeyRange> ranges = query_ranges(layer.queries, layer.mask, keys, rank);
    return one(whole(layer, keys, std::ranges::any_of(ranges, [](const auto& range) { return !range.empty(); })));
  }
  const attention::Shard shard = shard_of(layer.queries);
  if (layer.queries.per_document) {
    return one(whole(layer, keys, attention::packed_rank_pairs(packed_of(layer), mask.window, rank) > 0));
  }
  if (shard.layout == attention::Layout::kStriped && shard.cp > 1) {
    return one(whole(layer, keys, attention::rank_pairs(shard, mask, rank) > 0));
  }
  std::vector<Rectangle> rectangles;
  const attention::RankPositions parts = attention::positions_of(shard, rank);
  for (std::int32_t i = 0; i < parts.count; ++i) {
    const std::int64_t begin = parts.part[i].first;
    const std::int64_t end = begin + parts.part[i].count;
    const std::int64_t k_begin = mask.window > 0 ? attention::clamp(begin - mask.window + 1, 0, begin) : 0;
    const std::int64_t k_end = mask.shape == MaskShape::kFull ? keys : end;
    const BlockKind kind = attention::classify(mask, begin, end, k_begin, k_end);
    if (kind != BlockKind::kEmpty) rectangles.push_back({shard.local_of(begin), end - begin, k_begin, k_end - k_begin, kind});
  }
  return rectangles;
}

StepPlan::StepPlan(const Layer& layer, Fault fault, Operators& operators, std::int32_t rank)
    : layer_(layer),
      fault_(fault),
      operators_(operators),
      rank_(rank),
      ranges_differ_(fault == Fault::kSeamOffByOne || fault == Fault::kPaddedKeyAttended),
      key_position_(static_cast<std::size_t>(layer.keys.cp)) {
  if (fault == Fault::kLengthFloored) layer_.mask = floored(layer.mask, layer.queries.cp);
  std::vector<attention::KeyRange> ranges = query_ranges(layer_.queries, layer_.mask, layer_.keys.tokens, rank);
  if (fault == Fault::kSeamOffByOne) lower_seams(layer_, rank, ranges);
  if (fault == Fault::kPaddedKeyAttended) reach_into_padding(layer_, ranges);
  std::vector<std::int32_t> flat;
  flat.reserve(2 * ranges.size());
  for (const attention::KeyRange& range : ranges) flat.insert(flat.end(), {range.begin, range.end});
  query_range_ = operators.upload_int(static_cast<std::int64_t>(ranges.size()), 2, flat);
}

Block StepPlan::block(const Rectangle& at, const View& key_position) const {
  Block block{at, {}};
  block.mask = {at.kind, block.queries(query_range_), block.keys(key_position)};
  return block;
}

const Array& StepPlan::key_position(std::int32_t owner) {
  Array& positions = key_position_[static_cast<std::size_t>(owner)];
  if (positions.empty()) {
    const std::vector<std::int32_t> rows = storage_rows(layer_.keys, layer_.mask, owner);
    positions = operators_.upload_int(static_cast<std::int64_t>(rows.size()), 1, rows);
  }
  return positions;
}

std::optional<Block> StepPlan::step(std::int32_t owner) {
  const std::int32_t masked = masked_owner(fault_, owner, layer_.keys.cp);
  Rectangle at = ring_rectangle(layer_, rank_, masked);
  if (ranges_differ_) at = {0, layer_.queries.tokens_per_rank(), 0, layer_.keys.tokens_per_rank(), BlockKind::kMixed};
  if (at.kind == BlockKind::kEmpty) return std::nullopt;
  return block(at, key_position(masked));
}

std::vector<Block> StepPlan::gathered() {
  std::vector<std::int32_t> positions(static_cast<std::size_t>(layer_.keys.tokens));
  std::iota(positions.begin(), positions.end(), 0);
  std::vector<Rectangle> rectangles = gathered_rectangles(layer_, rank_);
  const bool shifted = fault_ == Fault::kMaskShiftedByBlock;
  if (shifted) {
    for (std::int32_t owner = 0; owner < layer_.keys.cp; ++owner) {
      const std::vector<std::int32_t> true_rows = storage_rows(layer_.keys, layer_.mask, owner);
      const std::vector<std::int32_t> rows = storage_rows(layer_.keys, layer_.mask, masked_owner(fault_, owner, layer_.keys.cp));
      for (std::size_t i = 0; i < rows.size(); ++i) positions[static_cast<std::size_t>(true_rows[i])] = rows[i];
    }
  }
  if (shifted || ranges_differ_) {
    rectangles = {{0, layer_.queries.tokens_per_rank(), 0, layer_.keys.tokens, BlockKind::kMixed}};
  }
  const Array key_position = operators_.upload_int(layer_.keys.tokens, 1, positions);
  key_position_.push_back(key_position);  // lives as long as the blocks that slice it
  std::vector<Block> blocks;
  for (const Rectangle& rectangle : rectangles) blocks.push_back(block(rectangle, key_position));
  return blocks;
}

}  // namespace cpfit::kernels
