#include "kernels/reference/score_tiles.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "kernels/core/require.h"

namespace cpfit::kernels {

namespace {

using attention::BlockKind;
using attention::KeyRange;

constexpr std::int32_t kLowest = std::numeric_limits<std::int32_t>::min();
constexpr std::int32_t kHighest = std::numeric_limits<std::int32_t>::max();

TileSpan span_of(std::int64_t tile, std::int64_t size, std::int64_t total) {
  return {tile * size, std::min(size, total - tile * size)};
}

std::vector<KeyRange> ranges_of(const BlockMask& mask, std::int64_t queries, std::int64_t keys) {
  std::vector<KeyRange> ranges(static_cast<std::size_t>(queries));
  if (mask.kind == BlockKind::kMixed) {
    require(mask.query_range.number == Number::kInt32 && mask.query_range.rows == queries && mask.query_range.row_elements == 2,
            "block mask: {} x {} {} for the ranges of {} queries", mask.query_range.rows, mask.query_range.row_elements,
            name_of(mask.query_range.number), queries);
    std::copy_n(static_cast<const KeyRange*>(mask.query_range.data), queries, ranges.begin());
    return ranges;
  }
  for (std::int64_t i = 0; i < queries; ++i) {
    const std::int64_t end = mask.kind == BlockKind::kFull ? keys : attention::clamp(i + 1 + keys - queries, 0, keys);
    ranges[static_cast<std::size_t>(i)] = {0, static_cast<std::int32_t>(end)};
  }
  return ranges;
}

std::vector<std::int32_t> positions_of(const BlockMask& mask, std::int64_t keys) {
  std::vector<std::int32_t> positions(static_cast<std::size_t>(keys));
  if (mask.kind == BlockKind::kMixed) {
    require(mask.key_position.number == Number::kInt32 && mask.key_position.elements() == keys,
            "block mask: {} {} for the positions of {} keys", mask.key_position.elements(), name_of(mask.key_position.number),
            keys);
    std::copy_n(static_cast<const std::int32_t*>(mask.key_position.data), keys, positions.begin());
  } else {
    std::iota(positions.begin(), positions.end(), 0);
  }
  return positions;
}

}  // namespace

ScoreTiles::ScoreTiles(const BlockMask& mask, std::int64_t queries, std::int64_t keys, std::int64_t query_tile,
                       std::int64_t key_tile)
    : ranges_(ranges_of(mask, queries, keys)),
      positions_(positions_of(mask, keys)),
      query_tile_(query_tile),
      key_tile_(key_tile) {
  require(mask.kind != BlockKind::kEmpty, "block mask: an empty block of {} x {} was handed over", queries, keys);
  for (std::int64_t begin = 0; begin < queries; begin += query_tile) {
    QueryBounds bounds{{kLowest, kHighest}, {kHighest, kLowest}, false};
    for (std::int64_t i = begin; i < std::min(begin + query_tile, queries); ++i) {
      const KeyRange range = visible(i);
      if (range.empty()) {
        bounds.has_blind = true;
        continue;
      }
      bounds.all = {std::max(bounds.all.begin, range.begin), std::min(bounds.all.end, range.end)};
      bounds.any = {std::min(bounds.any.begin, range.begin), std::max(bounds.any.end, range.end)};
    }
    query_bounds_.push_back(bounds);
  }
  for (std::int64_t begin = 0; begin < keys; begin += key_tile) {
    const auto [low, high] = std::minmax_element(positions(begin), positions(std::min(begin + key_tile, keys)));
    key_bounds_.push_back({*low, *high + 1});
  }
}

TileSpan ScoreTiles::query_tile(std::int64_t i) const {
  return span_of(i, query_tile_, static_cast<std::int64_t>(ranges_.size()));
}

ScoreTile ScoreTiles::tile(std::int64_t query_tile, std::int64_t key_tile) const {
  const QueryBounds& queries = query_bounds_[static_cast<std::size_t>(query_tile)];
  const KeyRange keys = key_bounds_[static_cast<std::size_t>(key_tile)];
  TileSpan span = span_of(key_tile, key_tile_, static_cast<std::int64_t>(positions_.size()));
  if (keys.begin >= queries.any.end || keys.end <= queries.any.begin) return {{span.begin, 0}, false};
  if (!queries.has_blind && keys.begin >= queries.all.begin && keys.end <= queries.all.end) return {span, false};
  while (span.count > 0 && !queries.any.contains(*positions(span.begin))) ++span.begin, --span.count;
  while (span.count > 0 && !queries.any.contains(*positions(span.begin + span.count - 1))) --span.count;
  return {span, true};
}

}  // namespace cpfit::kernels
