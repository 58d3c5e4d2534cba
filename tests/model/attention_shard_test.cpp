// Shards, packed documents and padding: every token has exactly one home, and the golden cases of cp_model.md E.4, H.8.
#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "model/attention/document_mix.h"
#include "model/attention/packed.h"

namespace cpfit::attention {
namespace {

constexpr Layout kLayouts[] = {Layout::kZigzag, Layout::kContiguous, Layout::kStriped};

TEST(Shard, IsABijectionWithItsInverse) {
  for (const Layout layout : kLayouts) {
    for (std::int32_t cp = 1; cp <= 8; ++cp) {
      const std::int64_t unit = cp == 1 ? 1 : (layout == Layout::kZigzag ? 2 * cp : cp);
      for (const std::int64_t multiple : {1, 2, 3, 5, 7, 31}) {  // odd chunk lengths included
        const Shard shard{layout, unit * multiple, cp};
        ASSERT_TRUE(shard.divides());
        std::set<std::int64_t> seen;
        for (std::int32_t r = 0; r < cp; ++r) {
          std::int64_t previous = -1;
          for (std::int64_t j = 0; j < shard.tokens_per_rank(); ++j) {
            const std::int64_t t = shard.global_of(r, j);
            ASSERT_TRUE(seen.insert(t).second) << "token " << t << " twice";
            ASSERT_EQ(shard.owner_of(t), r);
            ASSERT_EQ(shard.local_of(t), j);
            ASSERT_GT(t, previous);  // local order is global order: a local causal kernel is right on the diagonal step
            previous = t;
          }
        }
        ASSERT_EQ(static_cast<std::int64_t>(seen.size()), shard.sequence);
        ASSERT_EQ(*seen.rbegin(), shard.sequence - 1);
      }
    }
  }
}

TEST(Shard, KnowsWhichLengthsItCannotServe) {
  EXPECT_FALSE((Shard{Layout::kZigzag, 12, 4}.divides()));  // needs a multiple of 8
  EXPECT_TRUE((Shard{Layout::kContiguous, 12, 4}.divides()));
  EXPECT_TRUE((Shard{Layout::kZigzag, 7, 1}.divides()));  // one rank holds everything
}

TEST(RankPositions, HoldTheTokensOfTheShardInOrder) {
  for (const Layout layout : kLayouts) {
    for (std::int32_t cp = 1; cp <= 6; ++cp) {
      const Shard shard{layout, std::int64_t{2} * cp * 3, cp};
      for (std::int32_t r = 0; r < cp; ++r) {
        const RankPositions parts = positions_of(shard, r);
        std::int64_t j = 0;
        for (std::int32_t i = 0; i < parts.count; ++i) {
          for (std::int64_t n = 0; n < parts.part[i].count; ++n, ++j) {
            ASSERT_EQ(parts.part[i].first + n * parts.part[i].stride, shard.global_of(r, j));
          }
        }
        ASSERT_EQ(j, shard.tokens_per_rank());
      }
    }
  }
}

TEST(RankPositions, ClipKeepsExactlyThePositionsInside) {
  for (std::int64_t first = 0; first < 4; ++first) {
    for (std::int64_t stride = 1; stride < 4; ++stride) {
      const Positions all{first, 5, stride};
      for (std::int64_t begin = 0; begin < 20; ++begin) {
        for (std::int64_t end = begin; end < 20; ++end) {
          std::vector<std::int64_t> expected;
          for (std::int64_t i = 0; i < all.count; ++i) {
            const std::int64_t t = all.first + i * all.stride;
            if (t >= begin && t < end) expected.push_back(t);
          }
          const Positions clipped = clip(all, begin, end);
          ASSERT_EQ(clipped.count, static_cast<std::int64_t>(expected.size()));
          if (!expected.empty()) {
            ASSERT_EQ(clipped.first, expected.front());
          }
        }
      }
    }
  }
}

TEST(PackedShard, ReadsTheFrequencyTableAtTheDocumentsRows) {
  // Megatron PR#5243: cu_seqlens [0, 4, 8], cp 2, rank 0 reads rows [0, 3, 4, 7]; positions inside a document are [0, 3, 0, 3].
  const Document documents[] = {{0, 4, 4}, {4, 4, 4}};
  const PackedShard packed{documents, 2, 2};
  const std::int64_t rows[] = {0, 3, 4, 7};
  const std::int64_t positions[] = {0, 3, 0, 3};
  for (std::int64_t j = 0; j < 4; ++j) {
    EXPECT_EQ(packed.global_of(0, j), rows[j]);
    EXPECT_EQ(packed.position_of(0, j), positions[j]);
  }
  EXPECT_EQ(packed.global_of(0, 4), -1);
}

TEST(PackedShard, IsABijectionOverMixedAndEmptyDocuments) {
  for (std::int32_t cp = 1; cp <= 8; ++cp) {
    std::vector<Document> documents(6);
    const std::int64_t real[] = {5, 0, 40, 2 * cp - 1, 2 * cp + 1, 0};
    for (std::size_t i = 0; i < documents.size(); ++i) documents[i].real = real[i];
    const std::int64_t total = place_documents(documents.data(), 6, cp > 1 ? 2 * cp : 1);
    const PackedShard packed{documents.data(), 6, cp};
    ASSERT_EQ(packed.tokens_per_rank() * cp, total);
    std::set<std::int64_t> seen;
    for (std::int32_t r = 0; r < cp; ++r) {
      for (std::int64_t j = 0; j < packed.tokens_per_rank(); ++j) {
        const std::int64_t t = packed.global_of(r, j);
        ASSERT_TRUE(seen.insert(t).second);
        ASSERT_EQ(packed.owner_of(t), r);
        ASSERT_EQ(packed.local_of(t), j);
      }
    }
    ASSERT_EQ(static_cast<std::int64_t>(seen.size()), total);
  }
}

TEST(Padding, TailOfOneDocument) {
  // 698 real tokens in 704, cp 4: chunks of 704 / 8 = 88. Rank 0 holds chunks 0 and 7; chunk 7 starts at 616, 698 - 616 = 82 of
  // its tokens are real: 88 + 82 = 170. All other chunks are full: 176.
  EXPECT_EQ(valid_tokens(698, 704, 4, 0), 170);
  for (std::int32_t r = 1; r < 4; ++r) EXPECT_EQ(valid_tokens(698, 704, 4, r), 176);
}

TEST(Padding, ValidTokensAgreeWithCountingThem) {
  for (std::int32_t cp = 1; cp <= 8; ++cp) {
    const std::int64_t padded = cp == 1 ? 13 : 2 * cp * 3;
    for (std::int64_t real = 0; real <= padded; ++real) {
      const Shard shard{Layout::kZigzag, padded, cp};
      std::int64_t total = 0;
      for (std::int32_t r = 0; r < cp; ++r) {
        std::int64_t counted = 0;
        for (std::int64_t j = 0; j < shard.tokens_per_rank(); ++j) counted += shard.global_of(r, j) < real ? 1 : 0;
        ASSERT_EQ(valid_tokens(real, padded, cp, r), counted);
        total += counted;
      }
      ASSERT_EQ(total, real);
    }
  }
}

TEST(Padding, MultiplesOfTheSequence) {
  EXPECT_EQ(sequence_multiple(1, 8, {}), 1);                     // no CP, no SP: any length
  EXPECT_EQ(sequence_multiple(4, 1, {}), 8);                     // 2 chunks per rank
  EXPECT_EQ(sequence_multiple(4, 8, {2, true, false}), 64);      // torchtitan: 2 * 4 * 8
  EXPECT_EQ(sequence_multiple(4, 8, {2, false, true}), 32);      // lcm(8, 4 * 8)
  EXPECT_EQ(sequence_multiple(4, 3, {2, false, true}), 24);      // lcm(8, 4 * 3)
  EXPECT_EQ(sequence_multiple(1, 8, {2, false, true}), 8);       // SP alone
  EXPECT_EQ(sequence_multiple(4, 1, {128, false, false}), 512);  // flex attention: cp * 128
  EXPECT_EQ(round_up(698, sequence_multiple(4, 1, {})), 704);
  EXPECT_EQ(round_up(704, 8), 704);
}

struct LengthCount {  // the shape of recipe/training.h DocumentClass
  std::int64_t length;
  double count;
};

TEST(DocumentMix, MeansOfAHistogram) {
  // Three documents of 4 and one of 12: 24 tokens. Pairs 3*10 + 78 = 108. Mean context (3*16 + 144) / (2*24) = 4.
  const std::vector<LengthCount> histogram = {{4, 3.0}, {12, 1.0}};
  const DocumentMix mix = mix_of(histogram, 8);
  EXPECT_EQ(mix.documents, 4.0);
  EXPECT_EQ(mix.real_tokens, 24.0);
  EXPECT_EQ(mix.pairs, 108.0);
  EXPECT_EQ(mix.mean_context, 4.0);
  EXPECT_EQ(mix.padded_tokens, 3 * 8 + 16.0);  // 4 -> 8, 12 -> 16
  EXPECT_EQ(mix.occupancy(), 24.0 / 40.0);
  EXPECT_EQ(mix.mean_attended(), 108.0 / 24.0);
  // A window of 2: every document attends 2n - 1 pairs: 3*7 + 23.
  EXPECT_EQ(mix_of(histogram, 1, 2).pairs, 44.0);
}

TEST(DocumentMix, ValidTokensOfAllRanksAreTheRealTokens) {
  const std::vector<LengthCount> histogram = {{1000, 0.5}, {37, 2.25}, {1, 10.0}};
  for (std::int32_t cp = 1; cp <= 8; ++cp) {
    double sum = 0;
    for (std::int32_t r = 0; r < cp; ++r) sum += mean_valid_tokens(histogram, cp, r);
    EXPECT_DOUBLE_EQ(sum, 500 + 83.25 + 10);
  }
}

}  // namespace
}  // namespace cpfit::attention
