// The mask of a block as kernels read it: every kind is one interval of key numbers per query row and one number per key row, so
// there is one text for full, causal and mixed blocks. Numbers are rows of the block for full and causal, storage rows for mixed
// (operators.h). From the extremes of a tile's rows and keys a kernel knows whether the tile is empty (skipped), full (no
// comparisons) or partial. Extremes of mixed blocks come from a kernel of their own (tile_extremes.cuh), launched before.
#pragma once

#include <climits>

#include "model/attention/visible.h"

namespace cpfit::kernels::device {

using attention::BlockKind;
using attention::KeyRange;

/// Over the rows of a tile that see anything: the lowest begin and the highest end (what the tile may see); over all its rows:
/// the highest begin and the lowest end (what every row sees; nothing when a row sees nothing).
struct RowExtremes {
  int low_begin = INT_MAX;
  int high_begin = INT_MIN;
  int low_end = INT_MAX;
  int high_end = INT_MIN;

  CPFIT_HD void take(const KeyRange& range) {
    if (range.empty()) {
      low_end = INT_MIN;
      return;
    }
    low_begin = range.begin < low_begin ? range.begin : low_begin;
    high_begin = range.begin > high_begin ? range.begin : high_begin;
    low_end = range.end < low_end ? range.end : low_end;
    high_end = range.end > high_end ? range.end : high_end;
  }
};
struct KeyExtremes {
  int low = INT_MAX;
  int high = INT_MIN;
};

enum class TileKind : int { kEmpty, kPartial, kFull };

CPFIT_HD inline TileKind classify_tile(const RowExtremes& rows, const KeyExtremes& keys) {
  if (keys.high < rows.low_begin || keys.low >= rows.high_end) return TileKind::kEmpty;
  return keys.low >= rows.high_begin && keys.high < rows.low_end ? TileKind::kFull : TileKind::kPartial;
}

/// No key: below every begin.
inline constexpr int kNoKey = INT_MIN;

struct DeviceMask {
  BlockKind kind = BlockKind::kFull;
  int queries = 0;                            // s_q
  int keys = 0;                               // s_kv
  const KeyRange* ranges = nullptr;           // [s_q], kMixed only
  const int* positions = nullptr;             // [s_kv], kMixed only
  const RowExtremes* row_extremes = nullptr;  // [tiles of queries], kMixed only
  const KeyExtremes* key_extremes = nullptr;  // [tiles of keys], kMixed only

  /// Of query row `row`; empty beyond the last one.
  CPFIT_HD KeyRange range(int row) const {
    if (row >= queries) return {0, 0};
    if (kind == BlockKind::kFull) return {0, keys};
    if (kind == BlockKind::kCausal) return {0, row + 1 + keys - queries};
    return ranges[row];
  }
  /// Number of key row `key`; kNoKey beyond the last one.
  CPFIT_HD int position(int key) const {
    if (key >= keys) return kNoKey;
    return kind == BlockKind::kMixed ? positions[key] : key;
  }
  /// Of query rows [tile * size, (tile + 1) * size), which begin inside the block.
  CPFIT_HD RowExtremes rows_of(int tile, int size) const {
    if (kind == BlockKind::kMixed) return row_extremes[tile];
    const int first = tile * size;
    const int last = first + size < queries ? first + size - 1 : queries - 1;
    RowExtremes extremes;
    extremes.take(range(first));
    extremes.take(range(last));  // ends grow with the row
    return extremes;
  }
  CPFIT_HD KeyExtremes keys_of(int tile, int size) const {
    if (kind == BlockKind::kMixed) return key_extremes[tile];
    const int first = tile * size;
    return {first, first + size < keys ? first + size - 1 : keys - 1};
  }
};

CPFIT_HD constexpr int tiles_in(int rows, int size) { return (rows + size - 1) / size; }

/// A tile and what it is; none when tile is past the last one.
struct TileStep {
  int tile = 0;
  TileKind kind = TileKind::kEmpty;
};

/// The first tile of keys at or after `tile` that these rows see something of. `size`: keys per tile. A tile that reaches past
/// the last key is partial: its scores there must not count.
CPFIT_HD inline TileStep next_key_tile(const DeviceMask& mask, const RowExtremes& rows, int tile, int size) {
  for (const int tiles = tiles_in(mask.keys, size); tile < tiles; ++tile) {
    const KeyExtremes keys = mask.keys_of(tile, size);
    const TileKind kind = classify_tile(rows, keys);
    if (kind == TileKind::kEmpty) {
      if (mask.kind != BlockKind::kMixed && keys.low >= rows.high_end) break;  // and so are all that follow
      continue;
    }
    return {tile, (tile + 1) * size > mask.keys ? TileKind::kPartial : kind};
  }
  return {tile, TileKind::kEmpty};
}
/// The first tile of queries at or after `tile` that sees something of these keys. `size`: queries per tile.
CPFIT_HD inline TileStep next_query_tile(const DeviceMask& mask, const KeyExtremes& keys, int tile, int size) {
  if (mask.kind == BlockKind::kCausal) {  // earlier rows see none of these keys
    const int first = (keys.low - (mask.keys - mask.queries)) / size;
    if (tile < first) tile = first;
  }
  for (const int tiles = tiles_in(mask.queries, size); tile < tiles; ++tile) {
    const TileKind kind = classify_tile(mask.rows_of(tile, size), keys);
    if (kind != TileKind::kEmpty) return {tile, kind};
  }
  return {tile, TileKind::kEmpty};
}

}  // namespace cpfit::kernels::device
