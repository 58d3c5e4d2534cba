// The interval form of a mask, which every kernel reads, against the definition, pair by pair.
#include "model/attention/visible.h"

#include <gtest/gtest.h>

#include <vector>

namespace cpfit::attention {
namespace {

/// Queries before the first key and behind the last one too: cross lengths place them there.
void expect_agreement(const MaskView& mask, std::int64_t first_query, std::int64_t end_query, std::int64_t keys) {
  for (std::int64_t q = first_query; q < end_query; ++q) {
    const KeyRange range = visible_keys(mask, q, keys);
    ASSERT_GE(range.begin, 0);
    ASSERT_LE(range.end, keys);
    for (std::int32_t k = 0; k < keys; ++k) {
      ASSERT_EQ(range.contains(k), attends(mask, q, k))
          << "window " << mask.window << " query " << q << " key " << k << " of " << keys;
    }
  }
}

TEST(VisibleKeys, AgreeWithTheDefinitionOfPlainMasks) {
  for (std::int64_t keys = 0; keys <= 9; ++keys) {
    expect_agreement(full_mask(), -3, keys + 4, keys);
    expect_agreement(causal_mask(), -3, keys + 4, keys);
    for (std::int64_t window = 1; window <= keys + 2; ++window) expect_agreement(window_mask(window), -3, keys + 4, keys);
  }
}

TEST(VisibleKeys, AgreeWithTheDefinitionOfEveryListOfThreeSmallDocuments) {
  // Real lengths 0 to 3, padded by 0 or 1: 8^3 lists; empty documents in every place, windows inside documents.
  for (int list = 0; list < 8 * 8 * 8; ++list) {
    std::vector<Document> documents;
    std::int64_t start = 0;
    for (int rest = list, i = 0; i < 3; ++i, rest /= 8) {
      documents.push_back({start, rest % 4, rest % 4 + rest / 4 % 2});
      start += documents.back().padded;
    }
    for (std::int64_t window = 0; window <= 3; ++window) {
      expect_agreement(document_mask(documents.data(), 3, window), 0, start, start);
    }
  }
}

TEST(VisibleKeys, BehindTheLastDocumentNothingIsSeen) {
  const Document documents[] = {{0, 2, 4}};
  for (std::int64_t q = 2; q < 8; ++q) EXPECT_TRUE(visible_keys(document_mask(documents, 1), q, 8).empty());
}

}  // namespace
}  // namespace cpfit::attention
