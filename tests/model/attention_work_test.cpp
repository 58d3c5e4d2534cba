// Masks and the work of every ring step, against counting pair by pair, and the golden cases of cp_model.md A.3 and H.8.
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "model/attention/document_mix.h"
#include "model/attention/packed_work.h"
#include "model/attention/ring_work.h"

namespace cpfit::attention {
namespace {

constexpr Layout kLayouts[] = {Layout::kZigzag, Layout::kContiguous, Layout::kStriped};

/// Documents with padding, a one-token one, an empty one; together exactly `total` tokens.
std::vector<Document> documents_of(std::int64_t total) {
  std::vector<Document> documents = {{0, 1, 1}, {1, 3, 5}, {6, 0, 0}, {6, 4, 4}};
  documents.push_back({10, total - 13, total - 10});
  return documents;
}

/// The definition of the mask again, independent of mask.h: segment ids, as a framework would build them.
struct DenseMask {
  DenseMask(const MaskView& mask, std::int64_t sequence) : segment(static_cast<std::size_t>(sequence), 0), view(mask) {
    if (mask.shape != MaskShape::kDocuments) return;
    for (auto& id : segment) id = -1;
    for (std::int32_t i = 0; i < mask.document_count; ++i) {
      const Document& document = mask.documents[i];
      for (std::int64_t t = 0; t < document.real; ++t) segment[static_cast<std::size_t>(document.start + t)] = i;
    }
  }
  bool operator()(std::int64_t q, std::int64_t k) const {
    if (view.shape == MaskShape::kFull) return true;
    const std::int64_t own = segment[static_cast<std::size_t>(q)];
    if (own < 0 || own != segment[static_cast<std::size_t>(k)] || k > q) return false;
    return view.window == 0 || q - k < view.window;
  }
  std::vector<std::int64_t> segment;
  MaskView view;
};

std::vector<MaskView> masks_of(const std::vector<Document>& documents, std::int64_t sequence) {
  const auto count = static_cast<std::int32_t>(documents.size());
  return {full_mask(),
          causal_mask(),
          window_mask(1),
          window_mask(3),
          window_mask(7),
          window_mask(sequence + 5),
          document_mask(documents.data(), count),
          document_mask(documents.data(), count, 2)};
}

TEST(Mask, PairsInEveryRectangleAgreeWithCounting) {
  constexpr std::int64_t kSequence = 18;
  const std::vector<Document> documents = documents_of(kSequence);
  for (const MaskView& mask : masks_of(documents, kSequence)) {
    const DenseMask dense(mask, kSequence);
    for (std::int64_t q = 0; q < kSequence; ++q) {
      for (std::int64_t k = 0; k < kSequence; ++k) ASSERT_EQ(attends(mask, q, k), dense(q, k)) << q << ' ' << k;
    }
    for (std::int64_t q0 = 0; q0 < kSequence; ++q0) {
      for (std::int64_t q1 = q0; q1 <= kSequence; ++q1) {
        for (std::int64_t k0 = 0; k0 < kSequence; ++k0) {
          std::int64_t counted = 0;
          for (std::int64_t k1 = k0; k1 <= kSequence; ++k1) {
            if (k1 > k0) {
              for (std::int64_t q = q0; q < q1; ++q) counted += dense(q, k1 - 1) ? 1 : 0;
            }
            ASSERT_EQ(pairs_in(mask, q0, q1, k0, k1), counted);
          }
        }
      }
    }
  }
}

TEST(Mask, BlocksAreClassifiedAsAKernelMeetsThem) {
  constexpr std::int64_t kSequence = 18;
  const std::vector<Document> documents = documents_of(kSequence);
  for (const MaskView& mask : masks_of(documents, kSequence)) {
    const DenseMask dense(mask, kSequence);
    for (std::int64_t q0 = 0; q0 < kSequence; ++q0) {
      for (std::int64_t q1 = q0 + 1; q1 <= kSequence; ++q1) {
        for (std::int64_t k0 = 0; k0 < kSequence; ++k0) {
          for (std::int64_t k1 = k0 + 1; k1 <= kSequence; ++k1) {
            bool none = true, all = true, causal = q1 == k1;
            for (std::int64_t q = q0; q < q1; ++q) {
              for (std::int64_t k = k0; k < k1; ++k) {
                none = none && !dense(q, k);
                all = all && dense(q, k);
                causal = causal && dense(q, k) == (k <= q);
              }
            }
            const BlockKind expected = none     ? BlockKind::kEmpty
                                       : all    ? BlockKind::kFull
                                       : causal ? BlockKind::kCausal
                                                : BlockKind::kMixed;
            ASSERT_EQ(classify(mask, q0, q1, k0, k1), expected);
          }
        }
      }
    }
  }
}

TEST(Mask, TotalsInClosedForm) {
  EXPECT_EQ(total_pairs(full_mask(), 1000), 1000 * 1000);
  EXPECT_EQ(total_pairs(causal_mask(), 1000), 1000 * 1001 / 2);
  EXPECT_EQ(total_pairs(window_mask(100), 1000), 100 * 1000 - 100 * 99 / 2);  // W s - W(W-1)/2
  const std::int64_t million = std::int64_t{1} << 20;
  EXPECT_EQ(total_pairs(causal_mask(), 4 * million), 4 * million * (4 * million + 1) / 2);  // no overflow at 4M tokens
}

/// Attended pairs between the tokens of two ranks, counted.
double counted_pairs(const Shard& shard, const DenseMask& dense, std::int32_t rank, std::int32_t owner) {
  double counted = 0;
  for (std::int64_t i = 0; i < shard.tokens_per_rank(); ++i) {
    for (std::int64_t j = 0; j < shard.tokens_per_rank(); ++j) {
      counted += dense(shard.global_of(rank, i), shard.global_of(owner, j)) ? 1 : 0;
    }
  }
  return counted;
}

TEST(RingWork, EveryStepAgreesWithCounting) {
  for (const Layout layout : kLayouts) {
    for (std::int32_t cp = 1; cp <= 6; ++cp) {
      for (const std::int64_t multiple : {2, 3, 5}) {
        const Shard shard{layout, 2 * cp * multiple * (cp < 4 ? 4 : 1), cp};
        if (shard.sequence < 16) continue;
        const std::vector<Document> documents = documents_of(shard.sequence);
        for (const MaskView& mask : masks_of(documents, shard.sequence)) {
          const DenseMask dense(mask, shard.sequence);
          double sum = 0;
          for (std::int32_t r = 0; r < cp; ++r) {
            double own = 0;
            for (std::int32_t step = 0; step < cp; ++step) {
              const std::int32_t owner = ring_owner(cp, r, step);
              const StepWork work = ring_step(shard, mask, r, owner);
              ASSERT_EQ(work.pairs(), counted_pairs(shard, dense, r, owner));
              own += work.pairs();
              if (work.count == 0) continue;
              const Kernel& kernel = work.kernel[0];
              const double area = static_cast<double>(kernel.q_len) * static_cast<double>(kernel.kv_len);
              ASSERT_LE(kernel.pairs, area);
              ASSERT_TRUE(kernel.kind != BlockKind::kFull || kernel.pairs == area);
              ASSERT_NE(kernel.kind, BlockKind::kEmpty);
            }
            ASSERT_EQ(own, rank_pairs(shard, mask, r));
            ASSERT_EQ(own, all_gather(shard, mask, r).pairs());
            sum += own;
          }
          ASSERT_EQ(sum, static_cast<double>(total_pairs(mask, shard.sequence)));
          ASSERT_EQ(sum, whole_sequence(mask, shard.sequence).pairs());
        }
      }
    }
  }
}

TEST(RingWork, ZigzagIsBalancedInPairs) {
  // H.8 item 1. Every rank: s_l^2 cp / 2 + s_l / 2; all ranks: s(s+1)/2.
  for (std::int32_t cp = 1; cp <= 8; ++cp) {
    const Shard shard{Layout::kZigzag, std::int64_t{2} * cp * 64, cp};
    const double local = static_cast<double>(shard.tokens_per_rank());
    const double s = static_cast<double>(shard.sequence);
    double sum = 0;
    for (std::int32_t r = 0; r < cp; ++r) {
      const double pairs = rank_pairs(shard, causal_mask(), r);
      EXPECT_EQ(pairs, local * local * cp / 2 + local / 2);
      sum += pairs;
    }
    EXPECT_EQ(sum, s * (s + 1) / 2);
  }
}

TEST(RingWork, StripedRanksDifferByOneShardOfPairs) {
  // H.8 item 2, cp 4, s_l 16: cp s_l^2 / 2 + s_l (2r + 2 - cp) / 2.
  const Shard shard{Layout::kStriped, 64, 4};
  const double expected[] = {496, 512, 528, 544};
  for (std::int32_t r = 0; r < 4; ++r) EXPECT_EQ(rank_pairs(shard, causal_mask(), r), expected[r]);
}

TEST(RingWork, ZigzagKernelsOfTheCausalMask) {
  const Shard shard{Layout::kZigzag, 4096, 4};  // s_l 1024, chunk 512
  for (std::int32_t r = 0; r < 4; ++r) {
    for (std::int32_t step = 0; step < 4; ++step) {
      const StepWork work = causal_step(shard, r, ring_owner(4, r, step));
      ASSERT_EQ(work.count, 1);
      const Kernel& kernel = work.kernel[0];
      if (step == 0) {
        EXPECT_EQ(kernel.kind, BlockKind::kCausal);
        EXPECT_EQ(kernel.pairs, 1024.0 * 1025 / 2);
      } else {
        EXPECT_EQ(kernel.kind, BlockKind::kFull);
        EXPECT_EQ(kernel.q_len, step <= r ? 1024 : 512);   // a lower rank's KV meets all queries
        EXPECT_EQ(kernel.kv_len, step <= r ? 512 : 1024);  // a higher rank's KV meets the second half of the queries
        EXPECT_EQ(kernel.pairs, 1024.0 * 1024 / 2);
      }
    }
  }
}

TEST(RingWork, ContiguousRankComputesRPlusAHalfBlocks) {
  const Shard shard{Layout::kContiguous, 800, 8};
  for (std::int32_t r = 0; r < 8; ++r) {
    EXPECT_EQ(rank_pairs(shard, causal_mask(), r), r * 100.0 * 100.0 + 100.0 * 101.0 / 2);
    for (std::int32_t step = 0; step < 8; ++step) {
      EXPECT_EQ(ring_step(shard, causal_mask(), r, ring_owner(8, r, step)).count, step <= r ? 1 : 0);
    }
  }
}

TEST(RingWork, StripedStepsAreCausalKernels) {
  const Shard shard{Layout::kStriped, 64, 4};
  const StepWork lower = causal_step(shard, 2, 1), upper = causal_step(shard, 1, 2);
  EXPECT_EQ(lower.kernel[0].q_len, 16);
  EXPECT_EQ(lower.kernel[0].pairs, 16.0 * 17 / 2);
  EXPECT_EQ(upper.kernel[0].q_len, 15);  // row 0 is empty: q[1:], k[:-1]
  EXPECT_EQ(upper.kernel[0].pairs, 16.0 * 15 / 2);
  EXPECT_EQ(causal_step({Layout::kStriped, 4, 4}, 1, 2).count, 0);  // one token per rank: nothing strictly below
}

TEST(RingWork, AllGatherHasTwoKernelsThatAddUpToTheSame) {
  const Shard shard{Layout::kZigzag, 64, 4};  // w = 8
  for (std::int32_t r = 0; r < 4; ++r) {
    const StepWork work = all_gather(shard, causal_mask(), r);
    ASSERT_EQ(work.count, 2);
    for (std::int32_t i = 0; i < 2; ++i) {
      const std::int64_t c = i == 0 ? r : 7 - r;
      EXPECT_EQ(work.kernel[i].q_len, 8);
      EXPECT_EQ(work.kernel[i].kv_len, (c + 1) * 8);
      EXPECT_EQ(work.kernel[i].pairs, static_cast<double>(8 * c * 8 + 8 * 9 / 2));
      EXPECT_EQ(work.kernel[i].kind, BlockKind::kCausal);
    }
  }
  const StepWork windowed = all_gather(shard, window_mask(5), 1);  // chunk 1 = [8, 16): keys [4, 16)
  EXPECT_EQ(windowed.kernel[0].kv_len, 12);
  EXPECT_EQ(windowed.kernel[0].pairs, 8.0 * 5);
  EXPECT_EQ(windowed.kernel[0].kind, BlockKind::kMixed);
}

TEST(RingWork, DoubleRingVisitsEveryShardOnceAndEqualsTheRingWhenThereIsOneWindow) {
  for (const std::int32_t cp : {1, 2, 4, 6, 8, 12}) {
    for (std::int32_t window = 1; window <= cp; ++window) {
      if (cp % window != 0) continue;
      for (std::int32_t r = 0; r < cp; ++r) {
        std::vector<int> visits(static_cast<std::size_t>(cp), 0);
        for (std::int32_t step = 0; step < cp; ++step) {
          const std::int32_t owner = double_ring_owner(cp, window, r, step);
          ++visits[static_cast<std::size_t>(owner)];
          if (step < window) {  // the first window stays inside
            EXPECT_EQ(owner / window, r / window);
          }
          if (window == cp) {
            EXPECT_EQ(owner, ring_owner(cp, r, step));
          }
        }
        for (const int count : visits) EXPECT_EQ(count, 1);
      }
    }
  }
}

TEST(PackedWork, DocumentsFourAndTwelveOnTwoRanks) {
  // H.8 item 8. Per document: 5 + 39 = 44 on both ranks.
  const Document documents[] = {{0, 4, 4}, {4, 12, 12}};
  const PackedShard packed{documents, 2, 2};
  EXPECT_EQ(packed_rank_pairs(packed, 0, 0), 44.0);
  EXPECT_EQ(packed_rank_pairs(packed, 0, 1), 44.0);
  // Zigzag over the flattened pack, chunks of 4: rank 0 has the first document (10 pairs) and the last four queries of the
  // second (9 + 10 + 11 + 12 = 42); rank 1 has its queries 1..8 (36).
  const Shard flattened{Layout::kZigzag, 16, 2};
  EXPECT_EQ(rank_pairs(flattened, document_mask(documents, 2), 0), 52.0);
  EXPECT_EQ(rank_pairs(flattened, document_mask(documents, 2), 1), 36.0);
  // PyTorch PR#189902: the balanced order cut in two equal parts. Rank 0 gets all of the first document and queries 1, 2, 3, 10
  // of the second: 10 + 16 = 26. Rank 1 gets 11, 12 and 4..9: 23 + 39 = 62.
  EXPECT_EQ(document_major_pairs(packed, 0), 26.0);
  EXPECT_EQ(document_major_pairs(packed, 1), 62.0);
}

TEST(PackedWork, EveryStepAgreesWithCounting) {
  for (std::int32_t cp = 1; cp <= 5; ++cp) {
    const std::int64_t unit = cp > 1 ? 2 * cp : 1;
    std::vector<Document> documents(6);
    const std::int64_t real[] = {1, 2 * cp - 1, 2 * cp, 2 * cp + 1, 0, 6 * cp - 2};
    for (std::size_t i = 0; i < documents.size(); ++i) documents[i].real = real[i];
    const std::int64_t total = place_documents(documents.data(), 6, unit);
    const PackedShard packed{documents.data(), 6, cp};
    for (const std::int64_t window : {0, 1, 3}) {
      const MaskView mask = document_mask(documents.data(), 6, window);
      const DenseMask dense(mask, total);
      double sum = 0, major = 0;
      for (std::int32_t r = 0; r < cp; ++r) {
        for (std::int32_t owner = 0; owner < cp; ++owner) {
          double counted = 0;
          for (std::int64_t i = 0; i < packed.tokens_per_rank(); ++i) {
            for (std::int64_t j = 0; j < packed.tokens_per_rank(); ++j) {
              counted += dense(packed.global_of(r, i), packed.global_of(owner, j)) ? 1 : 0;
            }
          }
          const StepWork work = packed_step(packed, window, r, owner);
          ASSERT_EQ(work.pairs(), counted) << "cp " << cp << " window " << window << " rank " << r << " owner " << owner;
          if (work.count > 0 && owner == r) {
            ASSERT_EQ(work.kernel[0].q_len, packed.tokens_per_rank());
          }
        }
        ASSERT_EQ(packed_all_gather(packed, window, r).pairs(), packed_rank_pairs(packed, window, r));
        sum += packed_rank_pairs(packed, window, r);
        if (window == 0) major += document_major_pairs(packed, r);
      }
      ASSERT_EQ(sum, static_cast<double>(total_pairs(mask, total)));
      if (window == 0) {
        ASSERT_EQ(major, sum);
      }
    }
  }
}

TEST(PackedWork, HistogramIsTheMeanOfItsDocuments) {
  struct LengthCount {
    std::int64_t length;
    double count;
  };
  constexpr std::int32_t kCp = 4;
  std::vector<Document> documents(5);
  const std::int64_t real[] = {10, 10, 10, 33, 100};
  for (std::size_t i = 0; i < documents.size(); ++i) documents[i].real = real[i];
  place_documents(documents.data(), 5, 2 * kCp);
  const PackedShard packed{documents.data(), 5, kCp};
  const std::vector<LengthCount> histogram = {{10, 3.0}, {33, 1.0}, {100, 1.0}};
  for (std::int32_t r = 0; r < kCp; ++r) {
    for (std::int32_t owner = 0; owner < kCp; ++owner) {
      const StepWork exact = packed_step(packed, 0, r, owner), mean = mean_packed_step(histogram, kCp, 0, r, owner);
      EXPECT_EQ(mean.pairs(), exact.pairs());
      EXPECT_EQ(mean.kernel[0].q_len, exact.kernel[0].q_len);
      EXPECT_EQ(mean.kernel[0].documents, exact.kernel[0].documents);
    }
  }
}

TEST(PackedWork, DocumentsCutInConsecutivePartsLoadTheLastRankMost) {
  struct LengthCount {
    std::int64_t length;
    double count;
  };
  constexpr std::int32_t kCp = 4;
  const std::vector<LengthCount> histogram = {{16, 2.0}, {64, 1.0}};
  double all = 0, last = 0;
  for (std::int32_t r = 0; r < kCp; ++r) {
    for (std::int32_t owner = 0; owner < kCp; ++owner) {
      const StepWork step = mean_packed_step(histogram, kCp, 0, r, owner, Layout::kContiguous);
      EXPECT_EQ(step.count == 0, owner > r);
      all += step.pairs();
      if (r == kCp - 1) last += step.pairs();
    }
  }
  EXPECT_EQ(all, 2 * 16 * 17 / 2 + 64 * 65 / 2);
  // Three whole blocks and the diagonal of a quarter of each document.
  EXPECT_EQ(last, 2 * (3 * 4 * 4 + 4 * 5 / 2) + (3 * 16 * 16 + 16 * 17 / 2));
}

// The whole of it is usable at compile time, as the kernels use it.
static_assert(ring_step({Layout::kZigzag, 16, 2}, causal_mask(), 0, 1).pairs() == 32.0);
static_assert(pairs_in(window_mask(2), 0, 4, 0, 4) == 7);

}  // namespace
}  // namespace cpfit::attention
