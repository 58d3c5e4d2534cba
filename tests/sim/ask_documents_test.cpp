// ask documents and ask hazards.
#include "fixture.h"

#include <algorithm>
#include <set>

#include "sim/ask/documents.h"
#include "sim/ask/hazards.h"

namespace cpfit::ask {
namespace {

TEST(AskDocuments, ReadsLengthsWithAndWithoutCounts) {
  const Outcome<std::vector<DocumentClass>> classes =
      parse_lengths("length,count\n# a comment\n4k, 2\n100\n100\n4096 1.5 # again\n\n");
  ASSERT_TRUE(classes.ok());
  ASSERT_EQ(classes->size(), 2u);
  EXPECT_EQ((*classes)[0].length, 100);
  EXPECT_DOUBLE_EQ((*classes)[0].count, 2.0);
  EXPECT_EQ((*classes)[1].length, 4096);
  EXPECT_DOUBLE_EQ((*classes)[1].count, 3.5);
  for (const char* wrong : {"", "length\n", "100, many", "100, 2, 3", "-5", "100\nx, 2", "100, 0", "1.1k"}) {
    const Outcome<std::vector<DocumentClass>> none = parse_lengths(wrong);
    ASSERT_FALSE(none.ok()) << wrong;
    EXPECT_EQ(none.problems().front().code, "ask.lengths");
  }
}

TEST(AskDocuments, PacksTheLongestFirst) {
  // 60 + 40 and 50 + 50 fill two sequences of 100.
  const Packing full = pack({{60, 1}, {40, 1}, {50, 2}}, 100, 1);
  EXPECT_EQ(full.sequences, 2);
  EXPECT_DOUBLE_EQ(full.waste_share(), 0.0);
  // Multiples of 8: 60 -> 64, 40 -> 40 (104 > 100), 50 -> 56 twice: four sequences of 100 with 200 real tokens of 400.
  const Packing padded = pack({{60, 1}, {40, 1}, {50, 2}}, 100, 8);
  EXPECT_EQ(padded.sequences, 3);  // 64; 56 + 40; 56
  EXPECT_DOUBLE_EQ(padded.real_tokens, 200);
  EXPECT_DOUBLE_EQ(padded.padded_tokens, 64 + 40 + 2 * 56);
  EXPECT_DOUBLE_EQ(padded.waste_share(), 100.0 / 300.0);
  EXPECT_NEAR(padded.padding_share() + padded.gap_share(), padded.waste_share(), 1e-12);
}

TEST(AskDocuments, OneLongDocumentGainsNothing) {
  const Scenario scenario =
      test::llama_on_dgx(1, 65536, 8, "[search]\ntp = [1]\npp = [1]\nmicro_batch = [1]\nrecompute = [\"full\"]\n");
  const RateSet rates = RateSet::defaults();
  Workbench bench = Workbench::build(scenario, rates).value();
  const Outcome<DocumentsAnswer> whole = documents(bench, {{65536, 4}});
  ASSERT_TRUE(whole.ok());
  EXPECT_DOUBLE_EQ(whole->one_a_sequence_waste, 0.0);
  ASSERT_EQ(whole->rows.size(), 4u);
  for (const DocumentsRow& row : whole->rows) {
    EXPECT_DOUBLE_EQ(row.packing.waste_share(), 0.0);
    EXPECT_NEAR(row.whole_cut_imbalance, 1.0, 1e-12) << "zigzag balances one causal document";
    EXPECT_NEAR(row.per_document_gain, 0.0, 1e-12);
    EXPECT_DOUBLE_EQ(row.local_share, row.cp == 1 ? 1.0 : 0.0);
    ASSERT_TRUE(row.candidate) << row.reason;
  }
  // Eight documents of 8,192: at cp 8 each fits a rank's 65,536 / 8 tokens; cut as one sequence in 16 chunks of 4,096, rank r has
  // chunks r and 15 - r: one is the first half of a document, the other the second half of another, for every rank alike.
  const Outcome<DocumentsAnswer> equal = documents(bench, {{8192, 32}});
  ASSERT_TRUE(equal.ok());
  EXPECT_DOUBLE_EQ(equal->one_a_sequence_waste, 0.875);
  EXPECT_DOUBLE_EQ(equal->rows.back().local_share, 1.0);
  EXPECT_NEAR(equal->rows.back().whole_cut_imbalance, 1.0, 1e-12);
  // One of 32,768 and four of 8,192, longest first, at cp 2 (4 chunks of 16,384): chunks hold n^2/2, 3 n^2/2 (n = 16,384), and
  // two documents of (n/2)^2 / 2 each = n^2/4, n^2/4. Ranks: 1/2 + 1/4 = 3/4 against 3/2 + 1/4 = 7/4; mean 5/4: imbalance 1.4.
  const Outcome<DocumentsAnswer> mixed = documents(bench, {{32768, 1}, {8192, 4}});
  ASSERT_TRUE(mixed.ok());
  EXPECT_NEAR(mixed->rows[1].whole_cut_imbalance, 1.4, 1e-3);  // n (n + 1) / 2, not n^2 / 2
  EXPECT_GT(mixed->rows[1].per_document_gain, 0.0);
  EXPECT_LT(mixed->rows[1].per_document_gain, 0.4);
  EXPECT_DOUBLE_EQ(mixed->rows[2].local_share, 0.5);  // cp 4: 16,384 tokens a rank
  EXPECT_EQ(documents(bench, {{65537, 1}}).problems().front().code, "ask.document_too_long");
}

std::set<std::string> ids(const Scenario& scenario, const std::string& text) {
  const Recipe recipe = parse_recipe(text, scenario.base).value();
  const RuleSet rules = find_framework(recipe.framework).value();
  std::set<std::string> found;
  for (const Hazard& hazard : hazards_of({scenario, rules, recipe})) found.insert(std::string(hazard.id));
  return found;
}

TEST(AskHazards, ConcernWhatTheRecipeDoes) {
  const Scenario plain = test::llama_on_dgx(1, 65536, 8);
  EXPECT_EQ(ids(plain, "tp=2,cp=1,pp=1,dp=4"), std::set<std::string>{});
  EXPECT_EQ(ids(plain, "tp=1,cp=1,pp=1,dp=8"), std::set<std::string>{"one_queue"});
  EXPECT_EQ(ids(plain, "tp=1,cp=2,pp=1,dp=4"), (std::set<std::string>{"te_ring_gradients", "nominal_accumulation"}));
  EXPECT_EQ(ids(plain, "tp=1,cp=8,pp=1,dp=1,cp_comm=a2a+p2p,a2a_degree=4"),
            (std::set<std::string>{"hierarchy_without_sizes", "masked_rank"}));
  EXPECT_EQ(ids(plain, "tp=1,cp=2,pp=1,dp=4,cp_comm=a2a,shard_layout=contiguous,state_sharding=none,framework=deepspeed-ulysses"),
            std::set<std::string>{"replicated_gradients"});
  Scenario packed = plain;
  packed.training.mask = {MaskKind::kDocuments, 0, {{4096, 16}}};
  EXPECT_TRUE(ids(packed, "tp=1,cp=2,pp=1,dp=4").contains("tail_padding"));
  EXPECT_TRUE(ids(packed, "tp=1,cp=2,pp=1,dp=4").contains("packed_backward_nan"));  // H100
  EXPECT_FALSE(ids(packed, "tp=2,cp=1,pp=1,dp=4").contains("tail_padding"));
  std::set<std::string_view> names;
  for (const Hazard& hazard : all_hazards()) {
    EXPECT_TRUE(names.insert(hazard.id).second) << hazard.id;
    EXPECT_NE(hazard.source.find_first_of("#0123456789"), std::string_view::npos) << "a thread with its number: " << hazard.id;
    EXPECT_FALSE(hazard.check.empty());
  }
}

}  // namespace
}  // namespace cpfit::ask
