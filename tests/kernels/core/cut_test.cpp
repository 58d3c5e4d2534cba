// Lists of a cut against the shards of model/attention, the inverse, positions, ranges and who owns the padding.
#include "kernels/core/cut.h"

#include <gtest/gtest.h>

#include <numeric>

namespace cpfit::kernels {
namespace {

using attention::Layout;
using attention::MaskShape;

Mask documents_of(const std::vector<std::int64_t>& real, std::int64_t multiple) {
  Mask mask{MaskShape::kDocuments, 0, {}};
  for (const std::int64_t length : real) mask.documents.push_back({0, length, 0});
  attention::place_documents(mask.documents.data(), static_cast<std::int32_t>(real.size()), multiple);
  return mask;
}
std::int64_t tokens_of(const Mask& mask) {
  return mask.documents.empty() ? 0 : mask.documents.back().start + mask.documents.back().padded;
}

/// Every cut that the tests go through, with its mask.
struct CutCase {
  Cut cut;
  Mask mask;
};
std::vector<CutCase> cases() {
  std::vector<CutCase> all;
  for (const std::int32_t cp : {1, 2, 3, 4, 8}) {
    for (const Layout layout : {Layout::kZigzag, Layout::kContiguous, Layout::kStriped}) {
      for (const std::int64_t chunk : {1, 5, 8}) {
        all.push_back({{layout, false, 2 * cp * chunk, cp}, {}});
        all.push_back({{layout, false, 2 * cp * chunk, cp}, {MaskShape::kFull, 0, {}}});
      }
    }
    // A document of one token, an empty one, one shorter than 2 cp, 2 cp k +- 1, and one that is the last tail only.
    const Mask mask = documents_of({1, 0, 2 * cp - 1, 2 * cp + 1, 6 * cp - 1, 6 * cp}, 2 * cp);
    all.push_back({{Layout::kZigzag, true, tokens_of(mask), cp}, mask});
    all.push_back({{Layout::kZigzag, false, tokens_of(mask), cp}, mask});  // the flattened pack, cut across documents
  }
  return all;
}

TEST(Cut, EachTokenIsOnceOnOneRankAndUnshardUndoesShard) {
  for (const CutCase& c : cases()) {
    std::vector<std::int32_t> gathered;  // rank after rank, as an all-gather leaves them
    for (std::int32_t rank = 0; rank < c.cut.cp; ++rank) {
      const std::vector<std::int32_t> rows = storage_rows(c.cut, c.mask, rank);
      ASSERT_EQ(static_cast<std::int64_t>(rows.size()), c.cut.tokens_per_rank());
      gathered.insert(gathered.end(), rows.begin(), rows.end());
    }
    std::vector<int> seen(static_cast<std::size_t>(c.cut.tokens));
    for (const std::int32_t row : gathered) ++seen.at(static_cast<std::size_t>(row));
    EXPECT_EQ(seen, std::vector<int>(seen.size(), 1));

    const std::vector<std::int32_t> back = unshard_rows(c.cut, c.mask);
    ASSERT_EQ(back.size(), gathered.size());
    for (std::size_t row = 0; row < back.size(); ++row) {
      EXPECT_EQ(gathered[static_cast<std::size_t>(back[row])], static_cast<std::int32_t>(row));
    }
  }
}

TEST(Cut, RowsAreThoseOfTheShards) {
  for (const CutCase& c : cases()) {
    const attention::Shard shard{c.cut.layout, c.cut.tokens, c.cut.cp};
    const attention::PackedShard packed{c.mask.documents.data(), static_cast<std::int32_t>(c.mask.documents.size()), c.cut.cp};
    for (std::int32_t rank = 0; rank < c.cut.cp; ++rank) {
      const std::vector<std::int32_t> rows = storage_rows(c.cut, c.mask, rank);
      for (std::int64_t j = 0; j < c.cut.tokens_per_rank(); ++j) {
        const std::int64_t expected = c.cut.per_document ? packed.global_of(rank, j) : shard.global_of(rank, j);
        ASSERT_EQ(rows[static_cast<std::size_t>(j)], expected);
      }
    }
  }
}

TEST(Cut, ZigzagByHand) {
  // 8 tokens, 2 ranks: 4 chunks of 2; rank 0 owns chunks 0 and 3, rank 1 chunks 1 and 2.
  const Cut cut{Layout::kZigzag, false, 8, 2};
  EXPECT_EQ(storage_rows(cut, {}, 0), (std::vector<std::int32_t>{0, 1, 6, 7}));
  EXPECT_EQ(storage_rows(cut, {}, 1), (std::vector<std::int32_t>{2, 3, 4, 5}));
  EXPECT_EQ(unshard_rows(cut, {}), (std::vector<std::int32_t>{0, 1, 4, 5, 6, 7, 2, 3}));
}

TEST(Cut, TwoDocumentsByHand) {
  // Documents of 4 and 4, 2 ranks: rank 0 has chunks 0 and 3 of each: rows 0, 3 and 4, 7 (Megatron-LM PR 5243).
  const Mask mask = documents_of({4, 4}, 4);
  const Cut cut{Layout::kZigzag, true, 8, 2};
  EXPECT_EQ(storage_rows(cut, mask, 0), (std::vector<std::int32_t>{0, 3, 4, 7}));
  EXPECT_EQ(position_ids(cut, mask, 0), (std::vector<std::int32_t>{0, 3, 0, 3}));
  EXPECT_EQ(position_ids(cut, mask, 1), (std::vector<std::int32_t>{1, 2, 1, 2}));
  // Cut as one sequence the tokens lie elsewhere, and keep their positions: rank 0 has rows 0, 1, 6, 7.
  EXPECT_EQ(position_ids({Layout::kZigzag, false, 8, 2}, mask, 0), (std::vector<std::int32_t>{0, 1, 2, 3}));
  EXPECT_EQ(position_ids({Layout::kZigzag, false, 8, 2}, {}, 0), (std::vector<std::int32_t>{0, 1, 6, 7}));
}

TEST(Cut, RangesAreWhatTheMaskLetsEachTokenSee) {
  for (const CutCase& c : cases()) {
    for (std::int32_t rank = 0; rank < c.cut.cp; ++rank) {
      const std::vector<std::int32_t> rows = storage_rows(c.cut, c.mask, rank);
      const std::vector<attention::KeyRange> ranges = query_ranges(c.cut, c.mask, c.cut.tokens, rank);
      ASSERT_EQ(ranges.size(), rows.size());
      for (std::size_t j = 0; j < rows.size(); ++j) {
        for (std::int32_t key = 0; key < c.cut.tokens; ++key) {
          ASSERT_EQ(ranges[j].contains(key), attention::attends(c.mask.view(), rows[j], key))
              << "row " << rows[j] << " key " << key;
        }
      }
    }
  }
}

TEST(Cut, CrossLengthsAreAlignedAtTheEnd) {
  // 4 queries over 6 keys: query i stands at i + 2 and sees keys 0 .. i + 2; over 2 keys it stands at i - 2.
  const Cut cut{Layout::kContiguous, false, 4, 2};
  const std::vector<attention::KeyRange> more = query_ranges(cut, {}, 6, 1);
  EXPECT_EQ(more[0].end, 5);
  EXPECT_EQ(more[1].end, 6);
  EXPECT_TRUE(query_ranges(cut, {}, 2, 0)[0].empty());
  EXPECT_TRUE(query_ranges(cut, {}, 2, 0)[1].empty());
  EXPECT_EQ(query_ranges(cut, {}, 2, 1)[1].end, 2);
  EXPECT_EQ(query_ranges(cut, {MaskShape::kFull, 0, {}}, 6, 0)[0].end, 6);
}

TEST(Cut, PaddingOfATailBelongsToTheRankThatHoldsIt) {
  // 698 real tokens stored in 704 on 4 ranks: chunks of 704 / 8 = 88. The last chunk, 616 .. 703, is rank 0's; 616 + 82 = 698, so
  // rank 0 has 88 + 82 = 170 real tokens and 6 of padding at its end; the others have 176.
  const Mask mask = documents_of({698}, 8);
  const Cut cut{Layout::kZigzag, true, 704, 4};
  for (std::int32_t rank = 0; rank < 4; ++rank) {
    const std::vector<std::uint8_t> real = real_tokens(cut, mask, rank);
    ASSERT_EQ(real.size(), 176U);
    EXPECT_EQ(std::accumulate(real.begin(), real.end(), 0), rank == 0 ? 170 : 176);
    for (std::size_t j = 0; j < real.size(); ++j) EXPECT_EQ(real[j], rank != 0 || j < 170 ? 1 : 0);
  }
}

TEST(Cut, ARankMayHoldOnlyPadding) {
  // One real token of 8 on 4 ranks: chunk 0 is rank 0's; ranks 1 to 3 hold chunks 1 to 6.
  const Mask mask = documents_of({1}, 8);
  const Cut cut{Layout::kZigzag, true, 8, 4};
  EXPECT_EQ(real_tokens(cut, mask, 0), (std::vector<std::uint8_t>{1, 0}));
  for (std::int32_t rank = 1; rank < 4; ++rank) EXPECT_EQ(real_tokens(cut, mask, rank), (std::vector<std::uint8_t>{0, 0}));
}

TEST(Cut, SaysWhyItCannotServeAndWhatWould) {
  EXPECT_EQ(why_not({Layout::kZigzag, false, 12, 4}, {}), "12 tokens do not divide by 8: pad to 16");
  EXPECT_EQ(why_not({Layout::kStriped, false, 10, 4}, {}), "10 tokens do not divide by 4: pad to 12");
  EXPECT_EQ(why_not({Layout::kZigzag, false, 7, 1}, {}), "");
  EXPECT_EQ(why_not({Layout::kZigzag, true, 8, 2}, {}), "a cut document by document needs a mask of documents");
  const Mask odd = documents_of({4, 6}, 2);
  EXPECT_EQ(why_not({Layout::kZigzag, true, 10, 2}, odd),
            "document 1 is stored in 6 tokens, which do not divide by 4: pad it to 8");
  const Mask pair = documents_of({4, 4}, 4);
  EXPECT_NE(why_not({Layout::kStriped, true, 8, 2}, pair), "");
  EXPECT_EQ(
      why_not({Layout::kZigzag, true, 12, 2}, pair),
      "the documents store 8 tokens, the sequence has 12: documents that are cut one by one follow each other without gaps");
  EXPECT_NE(why_not({Layout::kZigzag, false, 8, 0}, {}), "");
  EXPECT_NE(why_not({Layout::kZigzag, false, 8, 2}, {MaskShape::kWindow, 0, {}}), "");
}

}  // namespace
}  // namespace cpfit::kernels
