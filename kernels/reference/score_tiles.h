// The mask of one block cut into tiles of queries x keys: which tiles to skip, which need no mask. Read from the two arrays of a
// BlockMask (operators.h); blocks that are full or causal as a whole get the arrays that say so.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/core/operators.h"

namespace cpfit::kernels {

/// Rows [begin, begin + count) of a block.
struct TileSpan {
  std::int64_t begin = 0;
  std::int64_t count = 0;
};

/// What there is to do in one tile.
struct ScoreTile {
  TileSpan keys;          // those that a query of the tile may see, without hidden ones at either end; count 0: skip the tile
  bool is_mixed = false;  // some of their scores do not count
};

class ScoreTiles {
 public:
  /// `mask`'s arrays are on the host. Tiles hold `query_tile` x `key_tile` scores, fewer at the edges.
  ScoreTiles(const BlockMask& mask, std::int64_t queries, std::int64_t keys, std::int64_t query_tile, std::int64_t key_tile);

  [[nodiscard]] std::int64_t query_tiles() const { return static_cast<std::int64_t>(query_bounds_.size()); }
  [[nodiscard]] std::int64_t key_tiles() const { return static_cast<std::int64_t>(key_bounds_.size()); }
  [[nodiscard]] TileSpan query_tile(std::int64_t i) const;

  [[nodiscard]] ScoreTile tile(std::int64_t query_tile, std::int64_t key_tile) const;

  [[nodiscard]] attention::KeyRange visible(std::int64_t query) const { return ranges_[static_cast<std::size_t>(query)]; }
  /// Positions of the keys from `key` on.
  [[nodiscard]] const std::int32_t* positions(std::int64_t key) const { return positions_.data() + key; }

 private:
  /// Over the queries of a tile that see anything.
  struct QueryBounds {
    attention::KeyRange all;  // what every one of them sees, if it is not empty
    attention::KeyRange any;  // contains what each sees
    bool has_blind = false;   // one sees nothing
  };

  std::vector<attention::KeyRange> ranges_;
  std::vector<std::int32_t> positions_;
  std::vector<QueryBounds> query_bounds_;
  std::vector<attention::KeyRange> key_bounds_;  // of the positions in a tile
  std::int64_t query_tile_;
  std::int64_t key_tile_;
};

}  // namespace cpfit::kernels
