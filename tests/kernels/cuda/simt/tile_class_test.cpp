// A tile that is called empty must have no pair that counts, one that is called full no pair that does not: against all pairs.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "device_twin.h"
#include "kernels/cuda/tile_extremes.cuh"

namespace cpfit::kernels::device {
namespace {

constexpr int kSize = 4;  // queries and keys per tile

struct TileCounts {
  int empty = 0;
  int partial = 0;
  int full = 0;
};

/// Every tile of the block, by the walks of the kernels; tiles that a walk leaves out are empty.
void check_block(const DeviceMask& mask, TileCounts& counts) {
  for (int r = 0; r < tiles_in(mask.queries, kSize); ++r) {
    std::vector<TileKind> kinds(static_cast<std::size_t>(tiles_in(mask.keys, kSize)), TileKind::kEmpty);
    const RowExtremes rows = mask.rows_of(r, kSize);
    for (TileStep step = next_key_tile(mask, rows, 0, kSize); step.kind != TileKind::kEmpty;
         step = next_key_tile(mask, rows, step.tile + 1, kSize)) {
      kinds[static_cast<std::size_t>(step.tile)] = step.kind;
    }
    for (int c = 0; c < tiles_in(mask.keys, kSize); ++c) {
      TileStep down = next_query_tile(mask, mask.keys_of(c, kSize), r, kSize);
      if (down.tile != r) down.kind = TileKind::kEmpty;
      int pairs = 0;
      int visible = 0;
      for (int row = r * kSize; row < (r + 1) * kSize && row < mask.queries; ++row) {
        for (int key = c * kSize; key < (c + 1) * kSize && key < mask.keys; ++key) {
          ++pairs;
          if (mask.range(row).contains(mask.position(key))) ++visible;
        }
      }
      const TileKind kind = kinds[static_cast<std::size_t>(c)];
      for (const TileKind said : {kind, down.kind}) {
        EXPECT_TRUE(said != TileKind::kEmpty || visible == 0);
        EXPECT_TRUE(said != TileKind::kFull || visible == pairs);
      }
      const bool whole = (c + 1) * kSize <= mask.keys;
      EXPECT_TRUE(kind != TileKind::kFull || whole);  // zeros behind the last key must not count
      if (mask.kind != BlockKind::kMixed) {           // then the classes are exact
        EXPECT_EQ(kind == TileKind::kEmpty, visible == 0);
        EXPECT_EQ(kind == TileKind::kFull, visible == pairs && whole);
        EXPECT_EQ(down.kind == TileKind::kEmpty, visible == 0);
      }
      ++(kind == TileKind::kEmpty ? counts.empty : kind == TileKind::kFull ? counts.full : counts.partial);
    }
  }
}

TEST(TileClass, OfFullAndCausalBlocksIsExact) {
  TileCounts counts;
  for (const BlockKind kind : {BlockKind::kFull, BlockKind::kCausal}) {
    for (int queries = 1; queries <= 13; ++queries) {
      for (int keys = 1; keys <= 17; ++keys) {
        DeviceMask mask;
        mask.kind = kind;
        mask.queries = queries;
        mask.keys = keys;
        check_block(mask, counts);
      }
    }
  }
  EXPECT_GT(std::min({counts.empty, counts.partial, counts.full}), 100);
}

TEST(TileClass, OfMixedBlocksNeverLies) {
  std::mt19937 random(7);
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  TileCounts counts;
  for (int trial = 0; trial < 300; ++trial) {
    const int queries = 1 + below(13);
    const int keys = 1 + below(17);
    std::vector<KeyRange> ranges;
    std::vector<int> positions;
    const int spread = 1 + below(20);
    for (int i = 0; i < queries; ++i) {
      const int begin = below(spread);
      ranges.push_back({begin, begin + below(24) - 2});  // some are empty
    }
    const int first = below(8);
    for (int j = 0; j < keys; ++j) positions.push_back(trial % 2 == 0 ? first + j : below(24));
    DeviceMask mask;
    mask.kind = BlockKind::kMixed;
    mask.queries = queries;
    mask.keys = keys;
    mask.ranges = ranges.data();
    mask.positions = positions.data();
    std::vector<RowExtremes> rows(static_cast<std::size_t>(tiles_in(queries, kSize)));
    std::vector<KeyExtremes> columns(static_cast<std::size_t>(tiles_in(keys, kSize)));
    ASSERT_EQ(simt::run({static_cast<int>(rows.size() + columns.size()), 1, 32, 0, false},
                        [&] { tile_extremes_kernel<32>(mask, kSize, kSize, rows.data(), columns.data()); }),
              "");
    mask.row_extremes = rows.data();
    mask.key_extremes = columns.data();
    check_block(mask, counts);
  }
  EXPECT_GT(std::min({counts.empty, counts.partial, counts.full}), 30);
}

}  // namespace
}  // namespace cpfit::kernels::device
