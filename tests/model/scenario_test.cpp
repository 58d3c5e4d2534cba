// Scenario files: the examples all load, and every slip is answered at its place.
#include "model/recipe/scenario.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "model/cluster/topology.h"
#include "model/framework/rule_set.h"
#include "model/recipe/legality.h"
#include "model/recipe/scenario_files.h"

namespace cpfit {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr const char* kHead = "model = \"llama3-8b\"\ncluster = {preset = \"dgx-h100\", nodes = 2}\n";
constexpr const char* kTraining = "[training]\nsequence_length = \"128k\"\nglobal_batch = 8\n";

std::string whole(const std::string& rest) { return std::string(kHead) + kTraining + rest; }

std::string all_of(const Problems& problems) {
  std::string text;
  for (const Problem& problem : problems) text += to_text(problem) + "\n";
  return text;
}

Scenario read(const std::string& text) {
  const Outcome<Scenario> outcome = read_scenario(text, "a.toml");
  EXPECT_TRUE(outcome.ok()) << text << "\n" << all_of(outcome.problems());
  return outcome.ok() ? outcome.value() : Scenario{};
}

/// The only problem of a scenario that must be refused.
Problem refused(const std::string& text) {
  const Outcome<Scenario> outcome = read_scenario(text, "a.toml");
  EXPECT_FALSE(outcome.ok()) << text;
  EXPECT_EQ(outcome.problems().size(), 1u) << text << "\n" << all_of(outcome.problems());
  return outcome.problems().empty() ? Problem{} : outcome.problems().front();
}

Scenario example(const std::string& file) {
  const Outcome<Scenario> outcome = load_scenario(std::string(CPFIT_SOURCE_DIR) + "/examples/" + file);
  EXPECT_TRUE(outcome.ok()) << all_of(outcome.problems());
  return outcome.ok() ? outcome.value() : Scenario{};
}

TEST(Scenario, EveryExampleLoads) {
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(std::string(CPFIT_SOURCE_DIR) + "/examples")) {
    if (entry.path().extension() != ".toml") continue;
    ++files;
    const Outcome<Scenario> outcome = load_scenario(entry.path().string());
    ASSERT_TRUE(outcome.ok()) << entry.path() << "\n" << all_of(outcome.problems());
    EXPECT_FALSE(outcome->name.empty());
    EXPECT_THAT(outcome->text, HasSubstr("# "));  // the question stands on top
    EXPECT_GT(outcome->model.layers, 0);
    EXPECT_GT(outcome->cluster.gpus(), 0);
    EXPECT_GT(outcome->training.sequence.count(), 0);
  }
  EXPECT_GE(files, 9);
}

TEST(Scenario, Meta405BIsLegalAsPublished) {
  const Scenario scenario = example("llama3.1-405b-128k.toml");
  EXPECT_EQ(scenario.cluster.gpus(), 16384);
  EXPECT_EQ(scenario.training.global_batch, 128);  // 16 Mi / 128 Ki
  EXPECT_EQ(scenario.base.world(), 16384);
  EXPECT_EQ(to_text(scenario.base.rank_order), "tp-cp-pp-dp");
  const RuleSet rules = find_framework(scenario.base.framework).value();
  EXPECT_EQ(first_violation(legality_case(scenario, rules, scenario.base)), -1)
      << all_of(explain_violations(legality_case(scenario, rules, scenario.base)));
}

TEST(Scenario, NemoLongSequenceIsLegalAsPublished) {
  const Scenario scenario = example("llama2-7b-256k.toml");
  EXPECT_EQ(scenario.cluster.gpus(), 256);
  EXPECT_EQ(scenario.base.world(), 256);
  EXPECT_EQ(scenario.base.precision, Precision::kFp8Delayed);
  EXPECT_EQ(scenario.training.grad_dtype, GradDtype::kBf16);
  const RuleSet rules = find_framework(scenario.base.framework).value();
  EXPECT_EQ(first_violation(legality_case(scenario, rules, scenario.base)), -1)
      << all_of(explain_violations(legality_case(scenario, rules, scenario.base)));
}

TEST(Scenario, TwoKvHeadsLimitTheHeadExchange) {
  const Scenario scenario = example("qwen2.5-3b-64k-2kv.toml");
  EXPECT_EQ(scenario.model.kv_heads, 2);
  const RuleSet rules = find_framework(scenario.base.framework).value();
  const auto verdict = [&](const std::string& text) {
    const Recipe recipe = parse_recipe(text, scenario.base).value();
    return all_of(explain_violations(legality_case(scenario, rules, recipe)));
  };
  EXPECT_THAT(verdict("cp=8,cp_comm=p2p"), IsEmpty());
  EXPECT_THAT(verdict("cp=8,cp_comm=a2a"), HasSubstr("a2a degree may be 2"));
  EXPECT_THAT(verdict("cp=8,cp_comm=a2a+p2p,a2a_degree=2"), IsEmpty());
  EXPECT_THAT(verdict("cp=2,dp=4,cp_comm=a2a"), IsEmpty());
}

TEST(Scenario, WindowedModelsRefuseTheRing) {
  const Scenario scenario = example("gemma3-12b-128k-window.toml");
  const RuleSet rules = find_framework(scenario.base.framework).value();
  const auto verdict = [&](const std::string& text) {
    const Recipe recipe = parse_recipe(text, scenario.base).value();
    return all_of(explain_violations(legality_case(scenario, rules, recipe)));
  };
  EXPECT_THAT(verdict("cp=8,dp=2,cp_comm=p2p"), HasSubstr("all_gather or a2a"));
  EXPECT_THAT(verdict("cp=8,dp=2,cp_comm=all_gather"), IsEmpty());
}

TEST(Scenario, DefaultsAndValues) {
  const Scenario scenario = read(whole(""));
  EXPECT_EQ(scenario.name, "a");
  EXPECT_EQ(scenario.cluster.nodes, 2);
  EXPECT_EQ(scenario.training.sequence.count(), 131072);
  EXPECT_EQ(scenario.training.global_batch, 8);
  EXPECT_EQ(scenario.training.mask.kind, MaskKind::kCausal);
  EXPECT_EQ(scenario.base, Recipe{});
  EXPECT_THAT(scenario.search.tp, IsEmpty());
  EXPECT_FALSE(scenario.search.sequence_parallel.has_value());
  EXPECT_DOUBLE_EQ(scenario.requirements.memory_margin_share, 0.05);
  EXPECT_EQ(scenario.text, whole(""));
}

TEST(Scenario, SearchAxes) {
  const Scenario scenario =
      read(whole("[search]\ntp = 2\ncp = [2, 4, 8, 4]\npp = \"auto\"\nmicro_batch = [1, 2]\ncp_comm = [\"p2p\", \"a2a+p2p\"]\n"
                 "a2a_degree = 2\nrecompute = [\"none\", \"block-5\"]\nstate_sharding = \"none\"\nstate_shards = [\"all\", "
                 "8]\nshard_layout = \"zigzag\"\n"
                 "stage_layout = [\"even\", \"first=7;last=7\"]\nsequence_parallel = false\n"));
  EXPECT_THAT(scenario.search.tp, ElementsAre(2));
  EXPECT_THAT(scenario.search.cp, ElementsAre(2, 4, 8));  // a value named twice is one value
  EXPECT_THAT(scenario.search.pp, IsEmpty());
  EXPECT_THAT(scenario.search.cp_comm, ElementsAre(CpComm::kP2p, CpComm::kA2aP2p));
  EXPECT_EQ(scenario.search.recompute[1], (Recompute{RecomputeKind::kBlock, 5}));
  EXPECT_THAT(scenario.search.state_shards, ElementsAre(0, 8));
  EXPECT_EQ(to_text(scenario.search.stage_layout[1]), "first=7;last=7");
  EXPECT_EQ(scenario.search.sequence_parallel, false);
  // Axes with one value are what a recipe starts from.
  EXPECT_EQ(scenario.base.tp, 2);
  EXPECT_EQ(scenario.base.a2a_degree, 2);
  EXPECT_EQ(scenario.base.state_sharding, StateSharding::kNone);
  EXPECT_FALSE(scenario.base.sequence_parallel);
}

TEST(Scenario, RecipeSectionIsTheStartNotALimit) {
  const Scenario scenario =
      read(whole("[recipe]\ntp = 2\ncp = 4\nvpp = 2\npp = 2\noverlap_tp = true\nrank_order = \"cp-tp-dp-pp\"\n"));
  EXPECT_EQ(scenario.base.tp, 2);
  EXPECT_EQ(scenario.base.dp, 1);  // 16 GPUs / (2*4*2)
  EXPECT_EQ(scenario.base.schedule, Schedule::kInterleaved);
  EXPECT_TRUE(scenario.base.overlap_tp);
  EXPECT_EQ(to_text(scenario.base.rank_order), "cp-tp-dp-pp");
  EXPECT_THAT(scenario.search.tp, IsEmpty());
  EXPECT_EQ(read(whole("[recipe]\ncp = 4\n")).base.dp, 4);
  EXPECT_EQ(read(whole("[recipe]\ncp = 4\ndp = 2\n")).base.dp, 2);
}

TEST(Scenario, ABaseTheFrameworkOffers) {
  const Scenario scenario = read(std::string(kHead) + kTraining + "framework = \"llama3-meta\"\n");
  const RuleSet rules = find_framework("llama3-meta").value();
  EXPECT_EQ(scenario.base.cp_comm, CpComm::kAllGather);
  EXPECT_NE(std::find(rules.state_shardings.begin(), rules.state_shardings.end(), scenario.base.state_sharding),
            rules.state_shardings.end());
}

TEST(Scenario, BatchInTokens) {
  const std::string start = std::string(kHead) + "[training]\nsequence_length = \"128k\"\n";
  EXPECT_EQ(read(start + "global_batch_tokens = \"4M\"\n").training.global_batch, 32);
  EXPECT_EQ(read(start + "global_batch_tokens = 1048576\n").training.global_batch, 8);
  EXPECT_THAT(refused(start + "global_batch_tokens = 1000000\n").repair, HasSubstr("917504 or 1048576"));  // 7 or 8 sequences
  EXPECT_EQ(refused(start).code, "scenario.missing_key");
  EXPECT_EQ(refused(whole("global_batch_tokens = \"1M\"\n")).code, "scenario.contradiction");
}

TEST(Scenario, Masks) {
  const Mask window = read(whole("mask = {kind = \"sliding_window\", window = \"4k\"}\n")).training.mask;
  EXPECT_EQ(window.kind, MaskKind::kSlidingWindow);
  EXPECT_EQ(window.window, 4096);
  EXPECT_EQ(read(whole("mask = \"full\"\n")).training.mask.kind, MaskKind::kFull);

  const Mask list = read(whole("[training.mask]\nkind = \"documents\"\nlengths = [\"64k\", \"32k\", \"32k\"]\n")).training.mask;
  ASSERT_EQ(list.documents.size(), 2u);
  EXPECT_EQ(list.documents[0].length, 32768);
  EXPECT_DOUBLE_EQ(list.documents[0].count, 2.0);

  // Counts 3 : 1 of 8k and 16k: 40k tokens per unit. Filling half of 128k takes 64k / 40k = 1.6 units: 4.8 and 1.6 documents.
  const Mask mix = read(whole("[training.mask]\nkind = \"documents\"\nfill = \"50 %\"\n"
                              "histogram = [{length = \"8k\", count = 300}, {length = \"16k\", count = 100}]\n"))
                       .training.mask;
  ASSERT_EQ(mix.documents.size(), 2u);
  EXPECT_NEAR(mix.documents[0].count, 4.8, 1e-9);
  EXPECT_NEAR(mix.documents[1].count, 1.6, 1e-9);
}

TEST(Scenario, BadMasks) {
  EXPECT_EQ(refused(whole("mask = \"sliding_window\"\n")).code, "scenario.missing_key");
  EXPECT_EQ(refused(whole("mask = \"documents\"\n")).code, "scenario.missing_key");
  EXPECT_THAT(refused(whole("mask = \"casual\"\n")).repair, HasSubstr("'causal'"));
  EXPECT_EQ(refused(whole("mask = 3\n")).code, "scenario.wrong_type");
  EXPECT_EQ(refused(whole("mask = {kind = \"sliding_window\"}\n")).code, "scenario.missing_key");
  EXPECT_EQ(refused(whole("mask = {kind = \"documents\"}\n")).code, "scenario.missing_key");
  EXPECT_EQ(refused(whole("mask = {kind = \"causal\", window = \"4k\"}\n")).code, "scenario.unknown_key");
  EXPECT_THAT(refused(whole("mask = {kind = \"documents\", lengths = [\"256k\"]}\n")).message,
              HasSubstr("longer than the sequence"));
  EXPECT_THAT(refused(whole("mask = {kind = \"documents\", lengths = [\"128k\", \"1k\"]}\n")).message, HasSubstr("132096"));
  EXPECT_EQ(refused(whole("mask = {kind = \"documents\", histogram = [{length = \"8k\"}]}\n")).code, "scenario.missing_key");
  EXPECT_EQ(refused(whole("mask = {kind = \"documents\", histogram = [{length = \"8k\", count = -1}]}\n")).code,
            "scenario.out_of_range");
  EXPECT_EQ(refused(whole("mask = {kind = \"documents\", histogram = [{length = \"8k\", count = 0}]}\n")).code,
            "scenario.impossible");
}

TEST(Scenario, SyntaxErrorsHaveLineAndColumn) {
  const Problem problem = refused("model = \"llama3-8b\"\ncluster = dgx\n");
  EXPECT_EQ(problem.code, "scenario.syntax");
  EXPECT_THAT(problem.where, HasSubstr("a.toml:2:"));
  EXPECT_EQ(refused("[training]\na = 1\na = 2\n").code, "scenario.syntax");
  EXPECT_EQ(refused("a = [1, 2").code, "scenario.syntax");
  EXPECT_EQ(refused("a = 99999999999999999999\n").code, "scenario.syntax");
  EXPECT_EQ(refused(std::string("a = \0", 5)).code, "scenario.syntax");
  EXPECT_EQ(refused("\xff\xfe").code, "scenario.syntax");
}

TEST(Scenario, UnknownKeysGetASuggestion) {
  const Problem typo = refused(whole("precison = \"bf16\"\n"));
  EXPECT_EQ(typo.code, "scenario.unknown_key");
  EXPECT_EQ(typo.where, "a.toml:6:12");  // the value, right of its key
  EXPECT_THAT(typo.message, HasSubstr("[training] has no key 'precison'"));
  EXPECT_EQ(typo.repair, "did you mean 'precision'?");
  EXPECT_EQ(refused(whole("[serch]\n")).repair, "did you mean 'search'?");
  EXPECT_THAT(refused(whole("tp = 2\n")).repair, HasSubstr("[search]"));  // still inside [training]
  EXPECT_THAT(refused(whole("[search]\nprecision = \"bf16\"\n")).repair, HasSubstr("[training]"));
  EXPECT_THAT(refused(whole("[search]\nmbs = 2\n")).repair, HasSubstr("'micro_batch'"));
  EXPECT_EQ(refused(whole("[search]\nseq_len = 2\n")).repair, "did you mean 'sequence_length' under [training]?");
  EXPECT_THAT(refused(whole("[recipe]\nframework = \"x\"\n")).repair, HasSubstr("[training]"));
  EXPECT_EQ(refused("sequence_length = \"8k\"\n" + whole("")).repair, "it belongs under [training]");
}

TEST(Scenario, WrongTypes) {
  const auto training = [](const std::string& lines) { return std::string(kHead) + "[training]\n" + lines; };
  EXPECT_EQ(refused(training("sequence_length = \"8k\"\nglobal_batch = \"8\"\n")).code, "scenario.wrong_type");
  EXPECT_EQ(refused(training("sequence_length = \"8k\"\nglobal_batch = 8.5\n")).code, "scenario.wrong_type");
  EXPECT_EQ(refused(training("sequence_length = 8.5\nglobal_batch = 8\n")).code, "scenario.wrong_type");
  EXPECT_EQ(refused(whole("precision = 16\n")).code, "scenario.wrong_type");
  EXPECT_EQ(refused(whole("precision = \"\"\n")).code, "scenario.empty");
  EXPECT_EQ(refused(whole("[search]\ntp = \"2\"\n")).code, "scenario.wrong_type");
  EXPECT_EQ(refused(whole("[search]\ntp = [2, \"4\"]\n")).code, "scenario.wrong_type");
  EXPECT_EQ(refused(whole("[search]\ntp = []\n")).code, "scenario.empty_list");
  EXPECT_EQ(refused(whole("[search]\ntp = 0\n")).code, "scenario.out_of_range");
  EXPECT_EQ(refused(whole("[search]\ncp_comm = 2\n")).code, "scenario.wrong_type");
  EXPECT_EQ(refused(whole("[search]\nsequence_parallel = \"yes\"\n")).code, "scenario.wrong_type");
  EXPECT_EQ(refused(whole("[recipe]\ntp = [2, 4]\n")).code, "scenario.wrong_type");
  EXPECT_EQ(refused("model = 3\ncluster = \"dgx-h100\"\n" + std::string(kTraining)).code, "scenario.wrong_type");
  EXPECT_EQ(refused("model = \"llama3-8b\"\ncluster = [1]\n" + std::string(kTraining)).code, "scenario.wrong_type");
  EXPECT_EQ(refused(std::string("search = 3\n") + whole("")).code, "scenario.wrong_type");
}

TEST(Scenario, OrdersTheGpusOfAHost) {
  const auto cluster = [](const std::string& order) {
    return "model = \"llama3-8b\"\ncluster = {preset = \"dgx-h100\", nodes = 2, device_order = " + order + "}\n" + kTraining;
  };
  const Scenario turned = read_scenario(cluster("[\"0,1,2,3,4,5,6,7\", \"7,6,5,4,3,2,1,0\"]"), "s.toml").value();
  EXPECT_EQ(turned.cluster.device_orders.size(), 2u);
  const Topology& topology = *turned.cluster.topology;
  EXPECT_EQ(topology.vertices()[static_cast<std::size_t>(topology.gpus()[8])].name, "n1.gpu7");
  for (const char* wrong : {"\"0,1,2\"", "3", "\"0,1,2,3,4,5,6,six\"", "[\"0,1,2,3,4,5,6,7\", 3]"}) {
    const Problem problem = refused(cluster(wrong));
    EXPECT_THAT(problem.message, HasSubstr("order")) << wrong;
    EXPECT_THAT(problem.where, HasSubstr("2:")) << wrong;
    EXPECT_FALSE(problem.repair.empty());
  }
}

TEST(Scenario, UnitMistakes) {
  const auto cluster = [](const std::string& memory) {
    return "model = \"llama3-8b\"\ncluster = {preset = \"dgx-h100\", gpu_memory = " + memory + "}\n" + kTraining;
  };
  EXPECT_DOUBLE_EQ(read(cluster("\"96 GiB\"")).cluster.gpu.memory_usable.value(), 96.0 * 1024 * 1024 * 1024);
  EXPECT_THAT(refused(cluster("80")).repair, HasSubstr("GiB"));
  EXPECT_THAT(refused(cluster("\"80\"")).repair, HasSubstr("GiB"));
  EXPECT_THAT(refused(cluster("\"80 GB/s\"")).message, HasSubstr("cluster.gpu_memory"));

  const auto length = [](const std::string& value) {
    return std::string(kHead) + "[training]\nglobal_batch = 8\nsequence_length = " + value + "\n";
  };
  EXPECT_EQ(read(length("8192")).training.sequence.count(), 8192);
  EXPECT_THAT(refused(length("\"128kb\"")).message, HasSubstr("training.sequence_length"));
  EXPECT_FALSE(read_scenario(length("0"), "a.toml").ok());
  EXPECT_FALSE(read_scenario(length("-4096"), "a.toml").ok());
  EXPECT_EQ(refused(length("9223372036854775807")).code, "scenario.out_of_range");
  EXPECT_EQ(refused(length("\"2048M\"")).code, "scenario.out_of_range");

  EXPECT_DOUBLE_EQ(read(whole("[requirements]\nmemory_margin = \"8 %\"\n")).requirements.memory_margin_share, 0.08);
  EXPECT_DOUBLE_EQ(read(whole("[requirements]\nexposed_budget = 0.1\n")).requirements.exposed_budget_share, 0.1);
  EXPECT_THAT(refused(whole("[requirements]\nexposed_budget = 5\n")).repair, HasSubstr("%"));
  EXPECT_THAT(refused(whole("[requirements]\nmemory_margin = 5\n")).repair, HasSubstr("%"));
  EXPECT_THAT(refused(whole("[requirements]\nmemory_margin = \"80\"\n")).repair, HasSubstr("GiB"));
  EXPECT_EQ(refused(whole("[requirements]\nmemory_margin = \"900 GiB\"\n")).code, "scenario.impossible");
  const Scenario margin = read(whole("[requirements]\nmemory_margin = \"4 GiB\"\n"));
  EXPECT_NEAR(margin.requirements.memory_margin_share * margin.cluster.gpu.memory_usable.value(), 4.0 * 1024 * 1024 * 1024, 1.0);
}

TEST(Scenario, Models) {
  const auto with = [](const std::string& model) { return "cluster = \"dgx-h100\"\nmodel = " + model + "\n" + kTraining; };
  EXPECT_EQ(read(with("{preset = \"llama3-70b\", layers = 12}")).model.layers, 12);
  EXPECT_EQ(read(with("{preset = \"llama3-70b\", layers = 12}")).model.hidden, 8192);
  const Architecture own =
      read(with("{layers = 4, hidden = 1024, ffn_hidden = 4096, heads = 16, vocab = 32000, norm = \"layer\"}")).model;
  EXPECT_EQ(own.kv_heads, 16);
  EXPECT_EQ(own.head_dim, 64);
  EXPECT_EQ(own.norm, Norm::kLayer);
  EXPECT_FALSE(read_scenario(with("{layers = 4, hidden = 1024}"), "a.toml").ok());
  EXPECT_FALSE(read_scenario(with("\"llama3-9b\""), "a.toml").ok());
  EXPECT_EQ(refused(with("{preset = \"llama3-70b\", num_experts = 8}")).code, "scenario.mixture_of_experts");
  EXPECT_EQ(refused(with("{preset = \"llama3-70b\", config = \"x.json\"}")).code, "scenario.contradiction");
  EXPECT_THAT(refused(with("{preset = \"llama3-70b\", num_layers = 8}")).repair, HasSubstr("'layers'"));
  EXPECT_EQ(refused(with("{preset = \"llama3-70b\", layers = 0}")).code, "scenario.out_of_range");
  EXPECT_FALSE(read_scenario(with("{config = \"absent.json\"}"), "a.toml").ok());
}

TEST(Scenario, ConfigJsonIsFoundBesideTheScenario) {
  const std::filesystem::path folder =
      std::filesystem::path(testing::TempDir()) / ("cpfit_scenario_test_" + std::to_string(::getpid()));
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "config.json")
      << R"({"model_type": "llama", "num_hidden_layers": 6, "hidden_size": 512, "intermediate_size": 1024,
             "num_attention_heads": 8, "num_key_value_heads": 2, "vocab_size": 1000, "rms_norm_eps": 1e-5})";
  std::ofstream(folder / "s.toml") << "model = {config = \"config.json\"}\ncluster = \"dgx-h100\"\n" << kTraining;
  const Outcome<Scenario> outcome = load_scenario((folder / "s.toml").string());
  ASSERT_TRUE(outcome.ok()) << all_of(outcome.problems());
  EXPECT_EQ(outcome->model.layers, 6);
  EXPECT_EQ(outcome->model.kv_heads, 2);
  std::filesystem::remove_all(folder);
}

TEST(Scenario, Clusters) {
  const auto with = [](const std::string& cluster) { return "model = \"llama3-8b\"\ncluster = " + cluster + "\n" + kTraining; };
  EXPECT_EQ(read(with("\"dgx-h100\"")).cluster.gpus(), 8);
  EXPECT_EQ(read(with("{preset = \"dgx-h100\", gpus = 64}")).cluster.nodes, 8);
  EXPECT_THAT(refused(with("{preset = \"dgx-h100\", gpus = 12}")).repair, HasSubstr("8 or 16"));
  const Cluster half = read(with("{preset = \"dgx-h100\", gpus = 4}")).cluster;
  EXPECT_EQ(half.gpus(), 4);
  EXPECT_EQ(half.scale_up_domain, 4);
  EXPECT_FALSE(with_nodes(half, 2).ok()) << "two halves are no cluster";
  EXPECT_THAT(refused(with("{preset = \"dgx-h100\", gpus = 3}")).repair, HasSubstr("divides"));
  EXPECT_EQ(refused(with("{preset = \"dgx-h100\", gpus = 16, nodes = 2}")).code, "scenario.contradiction");
  EXPECT_EQ(refused(with("{nodes = 2}")).code, "scenario.missing_key");
  EXPECT_EQ(refused(with("{preset = \"dgx-h100\", nodes = 0}")).code, "scenario.out_of_range");
  EXPECT_THAT(refused(with("\"dgx-h10\"")).repair, HasSubstr("dgx-h100"));
  EXPECT_FALSE(read_scenario(with("{topology = \"absent.json\"}"), "a.toml").ok());
}

TEST(Scenario, WhatNoRecipeCanRepairIsSaidAtOnce) {
  EXPECT_EQ(refused(whole("precision = \"nvfp4\"\n")).code, "recipe.precision_on_gpu");
  EXPECT_THAT(refused(whole("precision = \"fp8\"\n")).repair, HasSubstr("fp8_delayed"));
  EXPECT_THAT(refused(whole("framework = \"megatron-cor\"\n")).repair, HasSubstr("megatron-core"));
}

TEST(Scenario, EveryMistakeIsNamedInOneGo) {
  const Outcome<Scenario> outcome = read_scenario(
      "model = \"llama3-8b\"\ncluster = {preset = \"dgx-h100\", node = 2}\n[training]\nsequence_length = \"128kb\"\n"
      "global_batch = 0\nprecision = \"bf61\"\n[search]\ntp = [0]\nrecompute = \"som\"\n[x]\n",
      "a.toml");
  EXPECT_EQ(outcome.problems().size(), 7u) << all_of(outcome.problems());
  for (const Problem& problem : outcome.problems()) {
    EXPECT_THAT(problem.where, HasSubstr("a.toml:")) << to_text(problem);
    EXPECT_FALSE(problem.repair.empty()) << to_text(problem);
  }
}

TEST(Scenario, BrokenTextNeverThrows) {
  const std::string text = whole(
      "mask = {kind = \"documents\", histogram = [{length = \"8k\", count = 3}]}\n[search]\ntp = [1, 2]\n"
      "stage_layout = \"first=7;last=7\"\n[requirements]\nmemory_margin = \"5 %\"\n");
  ASSERT_TRUE(read_scenario(text, "a.toml").ok());
  for (std::size_t i = 0; i < text.size(); i += 3) {
    std::string cut = text.substr(0, i);
    std::string changed = text;
    changed[i] = static_cast<char>("\"=[{9-\n"[i / 3 % 7]);
    for (const std::string& broken : {cut, changed}) {
      const Outcome<Scenario> outcome = read_scenario(broken, "a.toml");
      for (const Problem& problem : outcome.problems()) EXPECT_FALSE(problem.message.empty()) << broken;
      EXPECT_EQ(outcome.ok(), outcome.problems().empty()) << broken;
    }
  }
}

TEST(Scenario, UnreadableFiles) {
  EXPECT_EQ(load_scenario("/nonexistent/s.toml").problems().front().code, "scenario.unreadable");
  EXPECT_THAT(load_scenario(testing::TempDir()).problems().front().message, HasSubstr("folder"));
  const Outcome<Scenario> empty = read_scenario("", "a.toml");
  EXPECT_EQ(empty.problems().size(), 3u) << all_of(empty.problems());  // model, cluster and training are missing
}

TEST(ScenarioFiles, AreTakenFromWhatIsGivenAndNowhereElse) {
  const std::string config =
      R"({"model_type": "llama", "hidden_size": 1024, "intermediate_size": 4096, "num_hidden_layers": 3,
          "num_attention_heads": 8, "num_key_value_heads": 2, "vocab_size": 32000})";
  const std::string topology = R"({"schema": "cpfit-topology/1", "base": "dgx-h100", "set": {"nic_rate": "100 Gb/s"}})";
  const std::string text =
      std::string("model = {config = \"c/config.json\"}\ncluster = {topology = \"t.json\", nodes = 2}\n") + kTraining;
  const std::vector<ScenarioInput> files = {{"/nowhere/t.json", topology}, {"/nowhere/c/config.json", config}};
  const Outcome<Scenario> read = read_scenario(text, "/nowhere/a.toml", files);
  ASSERT_TRUE(read.ok()) << all_of(read.problems());
  EXPECT_EQ(read->model.layers, 3);
  EXPECT_EQ(read->cluster.gpus(), 16);
  ASSERT_EQ(read->inputs.size(), 2u);
  EXPECT_EQ(read->inputs[0].text, config);
  EXPECT_EQ(read->inputs[1].text, topology);

  // A file that exists is not opened all the same.
  const std::string path = testing::TempDir() + "cpfit_scenario_files.json";
  std::ofstream(path) << config;
  const Outcome<Scenario> refused =
      read_scenario("model = {config = \"" + path + "\"}\ncluster = \"dgx-h100\"\n" + kTraining, "/nowhere/a.toml", files);
  std::filesystem::remove(path);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.problems()[0].code, "scenario.file_not_given");
}

TEST(ScenarioFiles, ASlipInAFileIsPlacedInBoth) {
  const std::string text =
      std::string("model = {config = \"config.json\"}\ncluster = {topology = \"t.json\", nodes = 2}\n") + kTraining;
  const std::vector<ScenarioInput> files = {
      {"/nowhere/t.json", R"({"schema": "cpfit-topology/1", "base": "dgx-h100", "set": {"nic_rat": "1"}})"},
      {"/nowhere/config.json", R"({"model_type": "llama", "num_hidden_layers": "x"})"}};
  const Outcome<Scenario> read = read_scenario(text, "/nowhere/a.toml", files);
  ASSERT_FALSE(read.ok());
  const auto said = [&](const std::string& place, const std::string& message) {
    return std::any_of(read.problems().begin(), read.problems().end(), [&](const Problem& problem) {
      return problem.where.starts_with("/nowhere/a.toml:" + place) && problem.message.find(message) != std::string::npos;
    });
  };
  EXPECT_TRUE(said("1:", "config.json#/num_hidden_layers"));
  EXPECT_TRUE(said("2:", "cluster.topology: /nowhere/t.json: set.nic_rat"));  // the file's line, not that of nodes
}

}  // namespace
}  // namespace cpfit
