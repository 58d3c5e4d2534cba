// Rows of scores and the tiles they lie in: our exponential, hidden keys, and what a tile may be called.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "kernels/core/cut.h"
#include "kernels/reference/score_rows.h"
#include "kernels/reference/score_tiles.h"
#include "kernels/reference/small_float.h"

namespace cpfit::kernels {
namespace {

using attention::BlockKind;
using attention::KeyRange;

/// Largest distance of exp_scores from exp in units of the last place, over `count` arguments evenly from `low` to `high`.
template <class Real>
double worst_ulps(double low, double high, std::int64_t count) {
  std::vector<Real> x(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) {
    x[static_cast<std::size_t>(i)] =
        static_cast<Real>(low + (high - low) * static_cast<double>(i) / static_cast<double>(count - 1));
  }
  std::vector<Real> y = x;
  exp_scores(y.data(), count, Real(0), Number::kFp32);
  double worst = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const long double exact = std::exp(static_cast<long double>(x[i]));
    const Real nearest = static_cast<Real>(exact);
    const long double ulp = std::nextafter(nearest, std::numeric_limits<Real>::infinity()) - nearest;
    worst = std::max(worst, static_cast<double>(std::abs(exact - static_cast<long double>(y[i])) / ulp));
  }
  return worst;
}

TEST(ScoreRows, ExponentialIsAccurateToTwoUnitsInTheLastPlace) {
  EXPECT_LE(worst_ulps<float>(-87, 0, 100001), 2);
  EXPECT_LE(worst_ulps<float>(0, 88, 10007), 2);
  EXPECT_LE(worst_ulps<float>(-1, 1, 100003), 2);
  EXPECT_LE(worst_ulps<double>(-708, 0, 100001), 2);
  EXPECT_LE(worst_ulps<double>(0, 709, 10007), 2);
  EXPECT_LE(worst_ulps<double>(-1, 1, 100003), 2);
}

template <class Real>
void expect_edges() {
  constexpr Real kInfinity = std::numeric_limits<Real>::infinity();
  const Real nan = std::numeric_limits<Real>::quiet_NaN();
  // More than one vector's worth, so that the vector loop and its rest both see every case.
  std::vector<Real> row;
  for (int i = 0; i < 5; ++i) row.insert(row.end(), {-kInfinity, Real(-1e30), Real(0), Real(1e30), nan});
  exp_scores(row.data(), static_cast<std::int64_t>(row.size()), Real(0), Number::kFp32);
  for (std::size_t i = 0; i < row.size(); i += 5) {
    EXPECT_EQ(row[i], 0);
    EXPECT_EQ(row[i + 1], 0);
    EXPECT_EQ(row[i + 2], 1);
    EXPECT_TRUE(std::isfinite(row[i + 3]) && row[i + 3] > 1e30);
    EXPECT_TRUE(std::isnan(row[i + 4]));
  }
}
TEST(ScoreRows, ExponentialAtTheEdges) {
  expect_edges<float>();
  expect_edges<double>();
}

TEST(ScoreRows, SumAndRoundingOfARow) {
  for (const std::int64_t count : {1, 7, 8, 9, 31, 64, 100}) {
    std::vector<float> row(static_cast<std::size_t>(count)), plain = row;
    for (std::size_t i = 0; i < row.size(); ++i) row[i] = plain[i] = -0.1F * static_cast<float>(i);
    const float sum = exp_scores(plain.data(), count, 0.5F, Number::kFp32);
    EXPECT_EQ(exp_scores(row.data(), count, 0.5F, Number::kBf16), sum);  // the sum is taken before rounding
    double expected = 0;
    for (std::size_t i = 0; i < row.size(); ++i) {
      expected += std::exp(-0.1 * static_cast<double>(i) - 0.5);
      EXPECT_EQ(row[i], rounded_to_bf16(plain[i]));
    }
    EXPECT_NEAR(sum, expected, 1e-6 * expected);
    EXPECT_EQ(largest(plain.data(), count), plain[0]);
  }
}

TEST(ScoreRows, HiddenKeysAreMinusInfinity) {
  const std::vector<std::int32_t> positions = {5, 0, 3, 4, 9, 2, 6, 1, 7};
  std::vector<double> scores(9, 1.0);
  hide_keys(scores.data(), positions.data(), 9, KeyRange{2, 6});
  for (std::size_t j = 0; j < 9; ++j) {
    const bool seen = positions[j] >= 2 && positions[j] < 6;
    EXPECT_EQ(scores[j], seen ? 1.0 : -std::numeric_limits<double>::infinity());
  }
}

/// A block's arrays on the host.
struct HostMask {
  std::vector<KeyRange> ranges;
  std::vector<std::int32_t> positions;
  [[nodiscard]] BlockMask view() {
    return {BlockKind::kMixed,
            {ranges.data(), Number::kInt32, static_cast<std::int64_t>(ranges.size()), 2},
            {positions.data(), Number::kInt32, static_cast<std::int64_t>(positions.size()), 1}};
  }
};

struct TileCounts {
  int skipped = 0, plain = 0, mixed = 0;
  friend bool operator==(const TileCounts&, const TileCounts&) = default;
};

/// Counts the tiles, having checked each against its pairs.
TileCounts checked_tiles(HostMask mask, std::int64_t query_tile, std::int64_t key_tile) {
  const auto queries = static_cast<std::int64_t>(mask.ranges.size()), keys = static_cast<std::int64_t>(mask.positions.size());
  const ScoreTiles tiles(mask.view(), queries, keys, query_tile, key_tile);
  TileCounts counts;
  for (std::int64_t i = 0; i < tiles.query_tiles(); ++i) {
    for (std::int64_t j = 0; j < tiles.key_tiles(); ++j) {
      const TileSpan rows = tiles.query_tile(i);
      const ScoreTile tile = tiles.tile(i, j);
      std::int64_t pairs = 0, inside = 0;
      for (std::int64_t q = rows.begin; q < rows.begin + rows.count; ++q) {
        for (std::int64_t k = j * key_tile; k < std::min((j + 1) * key_tile, keys); ++k) {
          if (!mask.ranges[static_cast<std::size_t>(q)].contains(mask.positions[static_cast<std::size_t>(k)])) continue;
          ++pairs;
          if (k >= tile.keys.begin && k < tile.keys.begin + tile.keys.count) ++inside;
        }
      }
      EXPECT_EQ(pairs, inside);  // nothing that counts is left out
      EXPECT_TRUE(tile.is_mixed || pairs == rows.count * tile.keys.count);
      ++(tile.keys.count == 0 ? counts.skipped : tile.is_mixed ? counts.mixed : counts.plain);
    }
  }
  return counts;
}

TEST(ScoreTiles, NoPairIsLostAndPlainTilesHideNothing) {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    HostMask mask;
    for (int i = 0; i < 37; ++i) {
      const auto begin = static_cast<std::int32_t>(random() % 40);
      mask.ranges.push_back({begin, static_cast<std::int32_t>(random() % 60)});  // some empty
    }
    for (int j = 0; j < 41; ++j) mask.positions.push_back(static_cast<std::int32_t>(random() % 60));
    if (round % 2 == 0) std::ranges::sort(mask.positions);
    checked_tiles(mask, 1 + random() % 16, 1 + random() % 16);
  }
}

TEST(ScoreTiles, CausalTilesAreMixedOnTheDiagonalOnly) {
  HostMask mask;
  for (std::int32_t i = 0; i < 64; ++i) {
    mask.ranges.push_back({0, i + 1});
    mask.positions.push_back(i);
  }
  // 8 x 8 tiles of 8: 8 on the diagonal, 28 below it, 28 above.
  EXPECT_EQ(checked_tiles(mask, 8, 8), (TileCounts{28, 28, 8}));
  // Where a tile is wider than it is high, the keys behind its last query are cut off: rows 0 .. 7 need keys 0 .. 7 of 32.
  const ScoreTile tile = ScoreTiles(mask.view(), 64, 64, 8, 32).tile(0, 0);
  EXPECT_TRUE(tile.is_mixed);
  EXPECT_EQ(tile.keys.begin, 0);
  EXPECT_EQ(tile.keys.count, 8);
}

TEST(ScoreTiles, TilesMayCrossTheSeamOfAZigzagShard) {
  // Rank 1 of 2, 4 chunks of 10: rows 10 .. 29, tiles of 8 cross 20. Keys of rank 0: rows 0 .. 9 and 30 .. 39.
  const Cut cut{attention::Layout::kZigzag, false, 40, 2};
  const HostMask mask{query_ranges(cut, {}, 40, 1), storage_rows(cut, {}, 0)};
  // Key tiles 0 .. 7; 8, 9, 30 .. 35; 36 .. 39. All three query tiles see the first wholly and nothing of the last.
  EXPECT_EQ(checked_tiles(mask, 8, 8), (TileCounts{3, 3, 3}));
}

}  // namespace
}  // namespace cpfit::kernels
