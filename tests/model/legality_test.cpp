// For every rule of the legality table, a case that breaks this rule and no other.
#include "model/recipe/legality.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <map>
#include <new>
#include <set>

namespace {
std::size_t allocations = 0;  // counts for the test that the search's path does not allocate
}

[[gnu::noinline]] void* operator new(std::size_t size) {
  ++allocations;
  if (void* memory = std::malloc(size)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace cpfit {
namespace {

using testing::HasSubstr;

/// Llama 3 8B, 128k tokens, 16 sequences per step, 64 H100 in nodes of 8: tp 2, cp 4, pp 2, dp 4, 4 micro-batches.
struct Case {
  Architecture model;
  Training training;
  Recipe recipe;
  RuleSet rules;
  Gpu gpu;
  std::int64_t gpus = 64;
  std::int32_t gpus_per_node = 8;

  Case() {
    model.name = "llama3-8b";
    model.layers = 32;
    model.hidden = 4096;
    model.ffn_hidden = 14336;
    model.heads = 32;
    model.kv_heads = 8;
    model.head_dim = 128;
    model.vocab = 128256;
    training.sequence = Tokens(131072);
    training.global_batch = 16;
    recipe.tp = 2;
    recipe.cp = 4;
    recipe.pp = 2;
    recipe.dp = 4;
    rules.name = "megatron-core";
    gpu.name = "H100";
    gpu.generation = "hopper";
    gpu.bf16 = tflops(989);
    gpu.fp8 = tflops(1979);
  }
  LegalityCase at() const { return {model, training, recipe, rules, gpus, gpus_per_node, &gpu}; }
};

std::set<std::string> violated(const Case& c) {
  std::set<std::string> ids;
  for (const Problem& problem : explain_violations(c.at())) ids.insert(problem.code);
  return ids;
}

std::string explanation(const Case& c) {
  const Problems problems = explain_violations(c.at());
  return problems.empty() ? std::string("legal") : to_text(problems.front());
}

const std::map<std::string, std::function<void(Case&)>>& breakers() {
  static const std::map<std::string, std::function<void(Case&)>> kBreakers = {
      {"positive", [](Case& c) { c.recipe.cp = 0; }},
      {"world_size", [](Case& c) { c.gpus = 128; }},
      {"batch_large_enough", [](Case& c) { c.training.global_batch = 2; }},
      {"batch_divides", [](Case& c) { c.training.global_batch = 18; }},
      {"tp_in_domain", [](Case& c) { c.gpus_per_node = 1; }},
      // (2 + embedding + loss) over 4 stages is one each, but two stages have no layer.
      {"pp_within_layers",
       [](Case& c) {
         c.model.layers = 2;
         c.recipe.pp = 4;
         c.gpus = 128;
         c.recipe.stage_layout.kind = LayoutKind::kEmbeddingAndLossAsLayers;
       }},
      {"vpp_needs_pp",
       [](Case& c) {
         c.recipe.pp = 1;
         c.gpus = 32;
         c.recipe.vpp = 2;
         c.recipe.schedule = Schedule::kInterleaved;
       }},
      {"schedule_matches_vpp", [](Case& c) { c.recipe.schedule = Schedule::kInterleaved; }},
      {"axis_offered", [](Case& c) { c.rules.axes = {Axis::kCp, Axis::kDp, Axis::kPp}; }},
      // 20 / 4 = 5 micro-batches on 2 stages.
      {"schedule_offered", [](Case& c) { c.rules.schedules = {Schedule::kGpipe}; }},
      {"zero_bubble",
       [](Case& c) {
         c.rules.schedules = {Schedule::kZeroBubble};
         c.recipe.schedule = Schedule::kZeroBubble;
         c.recipe.overlap_param_gather = false;  // but not overlap_grad_reduce
       }},
      {"interleaving_micro_batches",
       [](Case& c) {
         c.recipe.vpp = 2;
         c.recipe.schedule = Schedule::kInterleaved;
         c.training.global_batch = 20;
       }},
      {"interleaving_messages",
       [](Case& c) {
         c.recipe.vpp = 2;
         c.recipe.schedule = Schedule::kInterleaved;
         c.recipe.overlap_p2p = false;
       }},
      {"pipeline_filled",
       [](Case& c) {
         c.rules.micro_batches_short_of_pp = 0;
         c.training.global_batch = 4;
       }},
      {"layout_offered", [](Case& c) { c.recipe.stage_layout.kind = LayoutKind::kCostBalanced; }},
      {"stage_layout", [](Case& c) { c.model.layers = 33; }},
      {"empty_stage",
       [](Case& c) {
         c.recipe.vpp = 2;
         c.recipe.schedule = Schedule::kInterleaved;
         c.recipe.stage_layout = parse_stage_layout("explicit=16/0/8/8").value();
       }},
      {"recompute_block", [](Case& c) { c.recipe.recompute = {RecomputeKind::kBlock, 17}; }},  // 16 layers per stage
      {"recompute_mlp",
       [](Case& c) {
         c.recipe.recompute.kind = RecomputeKind::kMlp;
         c.rules.recompute_mlp = false;
       }},
      {"rank_order", [](Case& c) { c.recipe.rank_order.axes[3] = Axis::kDp; }},
      {"heads_over_tp", [](Case& c) { c.model.heads = 33; }},
      {"kv_heads_over_tp", [](Case& c) { c.model.kv_heads = 3; }},
      {"ffn_over_tp", [](Case& c) { c.model.ffn_hidden = 14337; }},
      {"cp_comm_offered", [](Case& c) { c.rules.cp_comms = {CpComm::kAllGather}; }},
      {"shard_layout_offered", [](Case& c) { c.recipe.shard_layout = ShardLayout::kContiguous; }},
      {"a2a_degree",
       [](Case& c) {
         c.recipe.cp_comm = CpComm::kA2aP2p;
         c.recipe.a2a_degree = 4;  // = cp: that is plain a2a
       }},
      {"ring_window",
       [](Case& c) {
         c.rules.cp_comms = {CpComm::kDoubleRing};
         c.recipe.cp_comm = CpComm::kDoubleRing;
         c.recipe.window = 3;
       }},
      // cp 4 ranks, 2 KV heads over tp 2 leave one per rank.
      {"a2a_heads",
       [](Case& c) {
         c.recipe.cp_comm = CpComm::kA2a;
         c.model.kv_heads = 2;
       }},
      // 131076 = 4 * 32769 is no multiple of 8 chunks. A framework of contiguous shards would take it, and sequence parallelism
      // would leave 32769 tokens over tp 2: both are kept out of the way.
      {"sequence_chunks",
       [](Case& c) {
         c.training.sequence = Tokens(131076);
         c.rules.cp_chunk_multiple = 1;
         c.recipe.sequence_parallel = false;
       }},
      {"sequence_framework",
       [](Case& c) {
         c.training.sequence = Tokens(131080);  // 8 * 16385, but torchtitan asks for 2*4*2 = 16
         c.rules.sequence_multiple_has_tp = true;
         c.recipe.sequence_parallel = false;
       }},
      // 131076 / 4 = 32769 contiguous tokens are odd.
      {"sequence_over_tp",
       [](Case& c) {
         c.training.sequence = Tokens(131076);
         c.rules.cp_chunk_multiple = 1;
         c.rules.shard_layouts = {ShardLayout::kContiguous};
         c.recipe.shard_layout = ShardLayout::kContiguous;
       }},
      {"window_comm", [](Case& c) { c.model.sliding_window = 4096; }},
      {"bias_comm",
       [](Case& c) {
         c.model.position = PositionKind::kAlibi;
         c.recipe.cp_comm = CpComm::kA2aP2p;
         c.recipe.a2a_degree = 2;
       }},
      {"positions",
       [](Case& c) {
         c.model.position = PositionKind::kLearned;
         c.model.max_positions = 8192;
       }},
      // 130 documents of 1001 tokens, padded to 1008 = 126 * 8: 131,040 fit. 131 do not: 132,048.
      {"documents_fit",
       [](Case& c) {
         c.training.mask.kind = MaskKind::kDocuments;
         c.training.mask.documents = {{1001, 131}};
       }},
      {"documents_comm",
       [](Case& c) {
         c.training.mask.kind = MaskKind::kDocuments;
         c.training.mask.documents = {{1001, 130}};
         c.rules.cp_comms = {CpComm::kDoubleRing};
         c.recipe.cp_comm = CpComm::kDoubleRing;
         c.recipe.window = 2;
       }},
      // 8 KV heads over tp 2 leave 4, of 3 elements of 2 bytes: 24.
      {"state_sharding_offered", [](Case& c) { c.rules.state_shardings = {StateSharding::kNone}; }},
      {"gradient_sharding_with_pp",
       [](Case& c) {
         c.rules.state_shardings = {StateSharding::kZero2};
         c.recipe.state_sharding = StateSharding::kZero2;
       }},
      {"state_shards_divide",
       [](Case& c) {
         c.rules.partial_shardings = {StateSharding::kZero1};
         c.recipe.state_shards = 3;
       }},
      {"state_shards_offered", [](Case& c) { c.recipe.state_shards = 2; }},
      {"state_shards_nest",
       [](Case& c) {
         c.rules.partial_shardings = {StateSharding::kZero1};
         c.rules.shard_groups_hold_cp = true;
         c.recipe.state_shards = 2;
       }},
      {"overlap_tp",
       [](Case& c) {
         c.recipe.overlap_tp = true;
         c.recipe.sequence_parallel = false;
       }},
      {"cp_needs_fused_attention", [](Case& c) { c.model.head_dim = 264; }},
      {"precision_on_gpu",
       [](Case& c) {
         c.gpu.fp8 = FlopsPerSecond();
         c.recipe.precision = Precision::kFp8Current;
       }},
      {"precision_sizes",
       [](Case& c) {
         c.model.hidden = 4104;  // 513 * 8
         c.recipe.precision = Precision::kFp8Delayed;
       }},
  };
  return kBreakers;
}

TEST(Legality, TheBaseCaseIsLegal) {
  const Case base;
  EXPECT_EQ(first_violation(base.at()), -1) << explanation(base);
}

TEST(Legality, EveryRuleCanBeBrokenAlone) {
  for (const LegalityRule& rule : legality_rules()) {
    const auto breaker = breakers().find(std::string(rule.id));
    ASSERT_NE(breaker, breakers().end()) << "no case breaks " << rule.id;
    Case broken;
    breaker->second(broken);
    EXPECT_EQ(violated(broken), std::set<std::string>{"recipe." + std::string(rule.id)}) << rule.id;
    const int first = first_violation(broken.at());
    ASSERT_GE(first, 0) << rule.id;
    EXPECT_EQ(legality_rules()[static_cast<std::size_t>(first)].id, rule.id);
  }
  EXPECT_EQ(breakers().size(), legality_rules().size()) << "a case names a rule that does not exist";
}

TEST(Legality, EveryRuleSaysWhatWhyAndWhatToDo) {
  std::set<std::string_view> ids;
  for (const LegalityRule& rule : legality_rules()) {
    EXPECT_TRUE(ids.insert(rule.id).second) << rule.id;
    EXPECT_FALSE(rule.what.empty() || rule.why.empty() || rule.repair.empty()) << rule.id;
  }
}

TEST(Legality, FirstViolationDoesNotAllocate) {
  Case legal;
  Case late;
  breakers().at("precision_sizes")(late);
  Case split;
  split.recipe.stage_layout.kind = LayoutKind::kCostBalanced;
  split.rules.layout_kinds = {LayoutKind::kCostBalanced};
  const std::size_t before = allocations;
  const int a = first_violation(legal.at());
  const int b = first_violation(late.at());
  const int c = first_violation(split.at());
  EXPECT_EQ(allocations, before);
  EXPECT_EQ(a, -1);
  EXPECT_GT(b, 0);
  EXPECT_EQ(c, -1);
}

TEST(Legality, ExplanationsCarryValuesAndTheNearestLegalOnes) {
  const auto text_of = [](const std::string& id) {
    Case broken;
    breakers().at(id)(broken);
    return explanation(broken);
  };
  EXPECT_THAT(text_of("world_size"), HasSubstr("2 * 4 * 2 * 4 is not 128 GPUs"));
  EXPECT_THAT(text_of("world_size"), HasSubstr("dp must be 8"));  // 128 / 16
  EXPECT_THAT(text_of("batch_divides"), HasSubstr("global_batch may be 16 or 20"));
  EXPECT_THAT(text_of("batch_large_enough"), HasSubstr("dp may be 2"));
  EXPECT_THAT(text_of("a2a_heads"), HasSubstr("4 a2a ranks, 16 query heads and 1 KV heads"));
  EXPECT_THAT(text_of("a2a_heads"), HasSubstr("degree may be 1"));
  EXPECT_THAT(text_of("sequence_chunks"), HasSubstr("131072 or 131080"));
  EXPECT_THAT(text_of("stage_layout"), HasSubstr("33 layers do not divide"));
  EXPECT_THAT(text_of("kv_heads_over_tp"), HasSubstr("tp may be 1 or 3"));
  EXPECT_THAT(text_of("a2a_degree"), HasSubstr("a2a_degree may be 2"));
  EXPECT_THAT(text_of("documents_fit"), HasSubstr("132048 padded tokens"));
  EXPECT_THAT(text_of("precision_on_gpu"), HasSubstr("H100 has no fp8_current"));
  EXPECT_THAT(text_of("cp_comm_offered"), HasSubstr("it offers all_gather"));
}

TEST(Legality, KvHeadsBeyondTp) {
  Case c;  // 2 KV heads, tp 4: two ranks share each head where the framework replicates
  c.model.kv_heads = 2;
  c.recipe.tp = 4;
  c.recipe.dp = 2;
  EXPECT_EQ(first_violation(c.at()), -1) << explanation(c);
  c.rules.kv_heads_replicated_over_tp = false;
  EXPECT_EQ(violated(c), std::set<std::string>{"recipe.kv_heads_over_tp"});
}

TEST(Legality, RepeatedKvHeadsLiftTheLimitOfA2a) {
  Case c;
  breakers().at("a2a_heads")(c);
  c.rules.kv_heads_repeated_for_a2a = true;
  EXPECT_EQ(first_violation(c.at()), -1) << explanation(c);
}

TEST(Legality, AWindowAsLongAsTheSequenceIsNoWindow) {
  Case c;
  c.model.sliding_window = 131072;
  EXPECT_EQ(first_violation(c.at()), -1) << explanation(c);
  c.training.mask = {MaskKind::kSlidingWindow, 4096, {}};
  EXPECT_EQ(violated(c), std::set<std::string>{"recipe.window_comm"});
  c.recipe.cp_comm = CpComm::kAllGather;
  EXPECT_EQ(first_violation(c.at()), -1) << explanation(c);
}

TEST(Legality, DocumentsThatFitOnlyWithoutPadding) {
  Case c;
  breakers().at("documents_fit")(c);
  c.training.mask.documents = {{1001, 130}};
  EXPECT_EQ(first_violation(c.at()), -1) << explanation(c);
  c.training.mask.documents = {{1001, 130.94}};  // 131,072 / 1001: fits as it is, not padded to 1008
  EXPECT_EQ(violated(c), std::set<std::string>{"recipe.documents_fit"});
  c.recipe.cp = 1;
  c.gpus = 16;
  EXPECT_EQ(first_violation(c.at()), -1) << explanation(c);
}

TEST(Legality, ReplayingARunKeepsOnlyTheFrameworksRules) {
  Case c;  // nanotron's sweep ran tp 16 and 32 across nodes of 8
  c.recipe.tp = 16;
  c.recipe.cp = 1;
  c.recipe.dp = 2;
  c.model.kv_heads = 32;
  EXPECT_EQ(violated(c), std::set<std::string>{"recipe.tp_in_domain"});
  LegalityCase replay = c.at();
  replay.search_limits = false;
  EXPECT_EQ(first_violation(replay), -1);
}

TEST(Legality, TpThatIsNotFastestNeedsTheWholeSpan) {
  Case c;  // cp fastest: a tp group of 2 spans 4 * 2 = 8 ranks, still one node
  c.recipe.rank_order = parse_rank_order("cp-tp-dp-pp").value();
  EXPECT_EQ(first_violation(c.at()), -1) << explanation(c);
  c.recipe.rank_order = parse_rank_order("dp-cp-tp-pp").value();  // 4 * 4 * 2 = 32
  EXPECT_EQ(violated(c), std::set<std::string>{"recipe.tp_in_domain"});
}

TEST(Legality, VoltaTrainsInFp16WithoutARing) {
  Case c;
  c.gpu.name = "V100";
  c.gpu.generation = "volta";
  c.gpu.bf16 = c.gpu.fp8 = FlopsPerSecond();
  EXPECT_EQ(violated(c), (std::set<std::string>{"recipe.precision_on_gpu", "recipe.cp_needs_fused_attention"}));
  c.recipe.precision = Precision::kFp16;
  c.recipe.dp *= c.recipe.cp;
  c.recipe.cp = 1;
  EXPECT_EQ(first_violation(c.at()), -1) << explanation(c);
}

TEST(Legality, BlackwellNumbersNeedBlackwell) {
  Case c;
  c.recipe.precision = Precision::kMxfp8;
  EXPECT_EQ(violated(c), std::set<std::string>{"recipe.precision_on_gpu"});
  c.gpu.fp4 = tflops(9000);
  EXPECT_EQ(first_violation(c.at()), -1) << explanation(c);
  LegalityCase unknown = c.at();
  unknown.gpu = nullptr;
  EXPECT_EQ(first_violation(unknown), -1);
}

TEST(Legality, Llama405BAsPublished) {
  // Llama 3 paper, table 4, 128k: tp 8, cp 16, pp 16, dp 8 on 16,384 GPUs; 16M tokens = 128 sequences, 16 micro-batches.
  Case c;
  c.model = Architecture{};
  c.model.layers = 126;
  c.model.hidden = 16384;
  c.model.ffn_hidden = 53248;
  c.model.heads = 128;
  c.model.kv_heads = 8;
  c.model.head_dim = 128;
  c.model.vocab = 128256;
  c.training.global_batch = 128;
  c.gpus = 16384;
  c.rules.cp_comms = {CpComm::kAllGather};
  c.rules.state_shardings = {StateSharding::kZero2};
  c.rules.gradient_sharding_with_pp = true;
  c.recipe = parse_recipe(
                 "tp=8,cp=16,cp_comm=all_gather,pp=16,dp=8,vpp=8,stage_layout=embedding_loss,state_sharding=zero2,"
                 "rank_order=tp-cp-pp-dp",
                 Recipe{})
                 .value();
  EXPECT_EQ(first_violation(c.at()), -1) << explanation(c);
  c.recipe.vpp = 1;
  c.recipe.schedule = Schedule::kOneFOneB;
  c.recipe.stage_layout = parse_stage_layout("first=7;last=7").value();
  EXPECT_EQ(first_violation(c.at()), -1) << explanation(c);
}

TEST(Legality, HugeDegreesDoNotOverflow) {
  Case c;
  c.recipe.tp = c.recipe.cp = c.recipe.pp = c.recipe.dp = kMaxDegree;
  EXPECT_TRUE(violated(c).contains("recipe.world_size"));
  EXPECT_GE(first_violation(c.at()), 0);
}

}  // namespace
}  // namespace cpfit
