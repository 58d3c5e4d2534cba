// Training tables of no known family: software, GPU, model, exchange, batch and recompute by the names and columns that are
// printed.
#include <gmock/gmock.h>

#include "model/cluster/topology.h"
#include "published_fixture.h"

namespace cpfit {
namespace {

using test::Cells;

/// Rows in the common columns and those of `own`; what a row does not set is as in a Llama-3-8B on 16 H100.
MeasuredTable read_common(std::vector<Cells> rows, const std::vector<std::string>& own = {}) {
  const Cells usual = {{"gpu", "H100"},
                       {"nodes_or_gpus", "16"},
                       {"framework", "Megatron-LM"},
                       {"model", "Llama-3-8B"},
                       {"seq_len", "8192"},
                       {"micro_batch", "1"},
                       {"global_batch", "64"},
                       {"tp", "2"},
                       {"pp", "1"},
                       {"cp", "2"},
                       {"precision", "BF16"},
                       {"recompute", "none"},
                       {"step_time_s", "10"}};
  for (Cells& row : rows) row.insert(usual.begin(), usual.end());
  return test::read_rows(test::training_columns(own), rows);
}

MeasuredRun only_run(const Cells& row, const std::vector<std::string>& own = {}) {
  MeasuredTable table = read_common({row}, own);
  EXPECT_EQ(table.family, "common training columns");
  EXPECT_EQ(table.runs.size(), 1U) << (table.skipped.empty() ? "" : table.skipped.front().reason);
  return table.runs.empty() ? MeasuredRun{} : table.runs.front();
}

std::string only_reason(const Cells& row) {
  const MeasuredTable table = read_common({row});
  EXPECT_EQ(table.skipped.size(), 1U);
  return table.skipped.empty() ? "" : table.skipped.front().reason;
}

const Recipe& recipe(const MeasuredRun& run) { return run.scenario.base; }

TEST(CommonTable, TheSoftwareNamesTheRules) {
  const std::pair<const char*, const char*> expected[] = {{"Megatron-LM", "megatron-2024"},
                                                          {"NeMo 24.07", "nemo-24"},
                                                          {"NeMo 25.04", "megatron-bridge"},
                                                          {"torchtitan 820504e", "torchtitan"},
                                                          {"DeepSpeed", "deepspeed-ulysses"},
                                                          {"nanotron", "nanotron"},
                                                          {"MaxText", "maxtext"},
                                                          {"Composer", "llm-foundry"},
                                                          {"PyTorch FSDP", "pytorch-fsdp"},
                                                          {"PyTorch FSDP2", "torchtitan"},
                                                          {"Megatron-DeepSpeed", "megatron-2024"}};
  for (const auto& [software, rules] : expected) {
    const MeasuredRun run = only_run({{"framework", software}, {"cp", "1"}});
    EXPECT_EQ(recipe(run).framework, rules) << software;
  }
  const MeasuredRun unknown = only_run({{"framework", "our own"}});
  EXPECT_EQ(recipe(unknown).framework, "megatron-2024");
  EXPECT_THAT(unknown.conditions, testing::Contains(testing::HasSubstr("not known")));
}

/// Cells as people print them: k and M tokens are 2^10 and 2^20 as in every other input, of anything else 10^3 and 10^6.
TEST(CommonTable, NumbersAreReadAsPeoplePrintThem) {
  for (const char* text : {"8192", "8k", "8K", "8 k", "8,192", "8.192e3", "8192 tokens"})
    EXPECT_EQ(only_run({{"seq_len", text}}).scenario.training.sequence.count(), 8192) << text;
  EXPECT_EQ(only_run({{"seq_len", "1M"}}).scenario.training.sequence.count(), 1048576);
  EXPECT_EQ(only_run({{"seq_len", "1.5k"}}).scenario.training.sequence.count(), 1536);
  EXPECT_EQ(only_run({{"seq_len", "1.2e6"}}).scenario.training.sequence.count(), 1200000);
  // 1M tokens a step over sequences of 8k are 128 of them.
  EXPECT_EQ(only_run({{"global_batch", ""}, {"tokens_per_step", "1M"}}, {"tokens_per_step"}).scenario.training.global_batch, 128);
  EXPECT_EQ(only_run({{"vocab", "128k"}}).scenario.model.vocab, 128000);
  const auto measured = [](const Cells& row) { return only_run(row).measured.front().second; };
  for (const char* text : {"10.2", "10.2 s", "10.2s", "10200 ms"})
    EXPECT_DOUBLE_EQ(measured({{"step_time_s", text}}), 10.2) << text;
  for (const char* text : {"12800", "12,800", "12.8k", "1.28e4"})
    EXPECT_DOUBLE_EQ(measured({{"step_time_s", ""}, {"tokens_per_s_per_gpu", text}}), 12800) << text;
  EXPECT_DOUBLE_EQ(measured({{"step_time_s", ""}, {"mfu", "45 %"}}), 0.45);
}

TEST(CommonTable, WhatCannotBeReadIsNamed) {
  EXPECT_EQ(only_reason({{"seq_len", "8 pages"}}), "seq_len is not a number: '8 pages'");
  EXPECT_EQ(only_reason({{"seq_len", "8,19"}}), "seq_len is not a number: '8,19'");
  EXPECT_EQ(only_reason({{"tp", "two"}}), "tp is not a number: 'two'");  // not: searched, as if it were blank
  EXPECT_EQ(only_reason({{"step_time_s", "~10"}}), "step_time_s is not a number: '~10'");
  EXPECT_EQ(only_reason({{"seq_len", ""}}), "the sequence length is not printed");
}

TEST(CommonTable, TheExchangeIsTheOneThatIsNamed) {
  EXPECT_EQ(recipe(only_run({{"cp_method", "ring attention"}})).cp_comm, CpComm::kP2p);
  const MeasuredRun ulysses = only_run({{"cp_method", "Ulysses"}, {"cp", "4"}, {"tp", "1"}});
  EXPECT_EQ(recipe(ulysses).cp_comm, CpComm::kA2a);
  EXPECT_EQ(recipe(ulysses).a2a_degree, 4);
  EXPECT_EQ(recipe(only_run({{"cp_method", "all-gather"}})).cp_comm, CpComm::kAllGather);
  // Degrees of both in columns of their own: 4 x 2 = 8 ranks.
  const MeasuredRun both =
      only_run({{"framework", "USP"}, {"cp", ""}, {"tp", "1"}, {"ulysses", "4"}, {"ring", "2"}}, {"ulysses", "ring"});
  EXPECT_EQ(recipe(both).cp, 8);
  EXPECT_EQ(recipe(both).cp_comm, CpComm::kA2aP2p);
  EXPECT_EQ(recipe(both).a2a_degree, 4);
  // The split of eight ranks is not printed: searched, and said.
  EXPECT_THAT(only_run({{"cp_method", "USP"}, {"cp", "8"}, {"tp", "1"}}).unknown, testing::Contains("a2a_degree"));
  // DeepSpeed has no ring: software that has one stands in, and the row says so.
  const MeasuredRun other = only_run({{"framework", "DeepSpeed"}, {"sharding", "ZeRO-3"}, {"cp_method", "ring"}, {"tp", "1"}});
  EXPECT_EQ(recipe(other).framework, "torchtitan");
  EXPECT_THAT(other.conditions, testing::Contains(testing::HasSubstr("exchange")));
}

TEST(CommonTable, ShardedDataParallelismHasNoOtherAxes) {
  for (const char* sharding : {"FULL_SHARD", "FSDP", "ZeRO-3", "HSDP"}) {
    const MeasuredRun run = only_run({{"framework", "PyTorch FSDP"}, {"sharding", sharding}, {"tp", ""}, {"pp", ""}, {"cp", ""}});
    EXPECT_EQ(recipe(run).state_sharding, StateSharding::kZero3) << sharding;
    EXPECT_EQ(recipe(run).dp, 16);
    EXPECT_THAT(run.unknown, testing::IsEmpty());
  }
  EXPECT_THAT(only_run({{"framework", "PyTorch FSDP"}, {"sharding", "HSDP"}, {"tp", ""}, {"cp", ""}}).conditions,
              testing::Contains(testing::HasSubstr("hybrid")));
}

TEST(CommonTable, AModelOfItsOwnColumns) {
  // A Llama of 30 layers and hidden size 3072: 8/3 x 3072 = 8192, a multiple of 256 already; heads of 128.
  const MeasuredRun llama =
      only_run({{"model", "ours"}, {"layers", "30"}, {"hidden", "3072"}, {"heads", "24"}, {"kv_heads", "8"}});
  EXPECT_EQ(llama.scenario.model.ffn_hidden, 8192);
  EXPECT_EQ(llama.scenario.model.head_dim, 128);
  EXPECT_EQ(llama.scenario.model.kv_heads, 8);
  const MeasuredRun gpt = only_run({{"model", "GPT"}, {"layers", "24"}, {"hidden", "2048"}, {"heads", "16"}, {"cp", "1"}});
  EXPECT_EQ(gpt.scenario.model.ffn_hidden, 4 * 2048);
  EXPECT_EQ(gpt.scenario.model.norm, Norm::kLayer);
  EXPECT_GE(gpt.scenario.model.max_positions, 8192);
  EXPECT_THAT(only_reason({{"model", "ours"}}), testing::HasSubstr("shape of the model"));
}

TEST(CommonTable, AModelByItsName) {
  const std::pair<const char*, std::int64_t> layers[] = {
      {"GPT3-1.3B 2k context", 24}, {"Llama 2 34B", 48}, {"Qwen2.5 7B", 28},
      {"Mistral 7B", 32},           {"LLaMA-65B", 80},   {"Llama 3.3 70B", 80}};
  for (const auto& [name, count] : layers) {
    const MeasuredRun run = only_run({{"model", name}, {"cp", "1"}});
    EXPECT_EQ(run.scenario.model.layers, count) << name;
  }
}

TEST(CommonTable, TheBatchIsWhatThePartsMultiplyTo) {
  // 16 GPUs / (2 x 2) = 4 data ranks, micro-batches of 2, three of them: 24 sequences.
  const MeasuredRun run = only_run({{"global_batch", ""}, {"micro_batch", "2"}, {"grad_accum", "3"}}, {"grad_accum"});
  EXPECT_EQ(run.scenario.training.global_batch, 24);
  // Nothing printed: 2^19 tokens of 8192 are 64 sequences; the micro-batch is searched.
  const MeasuredRun blank = only_run({{"global_batch", ""}, {"micro_batch", ""}});
  EXPECT_EQ(blank.scenario.training.global_batch, 64);
  EXPECT_THAT(blank.unknown, testing::Contains("micro_batch"));
  EXPECT_THAT(blank.conditions, testing::Contains(testing::HasSubstr("supposed")));
}

TEST(CommonTable, RecomputeAsPeopleWriteIt) {
  const auto of = [](const char* text, const char* software) {
    return recipe(only_run({{"recompute", text}, {"framework", software}, {"cp", "1"}, {"tp", "1"}})).recompute;
  };
  EXPECT_EQ(of("full", "Megatron-LM").kind, RecomputeKind::kFull);
  EXPECT_EQ(of("activation checkpointing", "PyTorch FSDP").kind, RecomputeKind::kFull);
  EXPECT_EQ(of("yes", "PyTorch FSDP").kind, RecomputeKind::kFull);
  EXPECT_EQ(of("no", "PyTorch FSDP").kind, RecomputeKind::kNone);
  EXPECT_EQ(of("selective", "Megatron-LM").kind, RecomputeKind::kSelective);
  // A quarter of 32 layers.
  EXPECT_EQ(of("selective 1/4", "PyTorch FSDP"), (Recompute{RecomputeKind::kBlock, 8}));
}

TEST(CommonTable, TheAttentionKernelThatIsNamed) {
  const auto backend = [](const char* software) {
    const MeasuredRun run = only_run({{"framework", software}, {"gpu", "A100"}, {"cp", "1"}});
    return run.rules ? std::optional(run.rules->attention_backend_ampere) : std::nullopt;
  };
  EXPECT_EQ(backend("Without FlashAttention"), AttentionBackend::kUnfused);
  EXPECT_EQ(backend("FlashAttention"), AttentionBackend::kTriton);  // of the first generation
  EXPECT_EQ(backend("FlashAttention-2"), AttentionBackend::kFlash2);
  EXPECT_EQ(backend("Megatron-LM"), std::nullopt);  // its own
  // A compiler beside it takes nothing back.
  const MeasuredRun both = only_run({{"framework", "PyTorch FSDP, FlashAttention-3, compile"}, {"cp", "1"}, {"tp", "1"}});
  ASSERT_NE(both.rules, nullptr);
  EXPECT_EQ(both.rules->attention_backend, AttentionBackend::kFlash3);
  EXPECT_TRUE(both.rules->fused_elementwise);
}

TEST(CommonTable, RatesOfTheWholeJobAreSharedOut) {
  // 2 samples a second of 8192 tokens on 16 GPUs: 1024 tokens/s each.
  const MeasuredRun run = only_run({{"step_time_s", ""}, {"samples_per_s", "2"}}, {"samples_per_s"});
  EXPECT_DOUBLE_EQ(test::measured(run, Metric::kTokensPerSecondPerGpu), 1024.0);
}

TEST(CommonTable, TheFabricIsTheOneThatIsPrinted) {
  // 64 H100 are 8 nodes of 8 NICs: what all NICs of a node carry together.
  const auto node_gigabits = [](const char* text) {
    const MeasuredRun run = only_run({{"interconnect", text}, {"nodes_or_gpus", "64"}});
    double rate = 0;
    const Topology& topology = *run.scenario.cluster.topology;
    for (const Link& link : topology.links()) {
      const Vertex& from = topology.vertices()[static_cast<std::size_t>(link.from)];
      if (link.link_class == LinkClass::kNic && from.kind == VertexKind::kNic && from.node == 0) rate += link.capacity.value();
    }
    return rate * 8 / 1e9;
  };
  EXPECT_NEAR(node_gigabits("NVLink; 8 x 100 Gb/s NICs per node"), 800, 1e-6);
  EXPECT_NEAR(node_gigabits("400 GB/s NVLink; 1.6 Tb/s RDMA per node"), 1600, 1e-6);
  EXPECT_NEAR(node_gigabits("NVLink in host; 200 Gb/s RoCE per GPU"), 1600, 1e-6);
  EXPECT_NEAR(node_gigabits("EFA 3200 Gbps"), 3200, 1e-6);
  EXPECT_NEAR(node_gigabits("NVLink"), 3200, 1e-6);  // the preset's 8 x 400
}

TEST(CommonTable, ATableOfOnesOwnNeedsFewColumns) {
  // 8 GPUs of tp 8; the figures of the row alone: what has no column is 1 or searched.
  const auto table =
      read_published_text("gpu,nodes_or_gpus,model,seq_len,tp,step_time_s\nH100,8,Llama-3-8B,8192,8,4\n", "few.csv");
  ASSERT_TRUE(table.ok());
  ASSERT_EQ(table->runs.size(), 1U);
  EXPECT_EQ(table->runs.front().scenario.base.tp, 8);
  EXPECT_THAT(table->runs.front().unknown, testing::UnorderedElementsAre("pp", "micro_batch", "recompute"));
}

TEST(CommonTable, OtherSeparatorsAreNamed) {
  const auto table = read_published_text("gpu;model;seq_len\nH100;Llama-3-8B;8192\n", "semicolons.csv");
  ASSERT_FALSE(table.ok());
  EXPECT_EQ(table.problems().front().code, "published.separator");
  EXPECT_THAT(table.problems().front().message, testing::HasSubstr("semicolons"));
}

TEST(CommonTable, AGpuThatIsSoldWithTwoMemories) {
  const MeasuredRun small = only_run({{"gpu", "A100"}, {"gpu_mem_gb", "40"}});
  EXPECT_EQ(small.scenario.cluster.gpu.name, "A100-SXM4-40GB");
  EXPECT_EQ(only_run({{"gpu", "A100"}, {"gpu_mem_gb", "80"}}).scenario.cluster.gpu.name, "A100-SXM4-80GB");
  EXPECT_EQ(only_run({{"gpu", "MI300X"}}).scenario.cluster.gpu.name, "MI300X");
}

// torchtitan's local batch goes through the whole pipeline: in 2024 cut into as many micro-batches as stages unless told, later
// into micro-batches of 1.
TEST(PublishedTorchtitan, ALocalBatchIsCutByTheConfigurationsDefault) {
  const Cells usual = {{"gpu", "H100"},
                       {"nodes_or_gpus", "64"},
                       {"framework", "torchtitan"},
                       {"model", "Llama-3-8B"},
                       {"seq_len", "8192"},
                       {"global_batch", "64"},
                       {"tp", "2"},
                       {"pp", "8"},
                       {"dp", "4"},
                       {"precision", "BF16"},
                       {"recompute", "full"},
                       {"local_batch", "16"},
                       {"variant", "1F1B"},
                       {"tokens_per_s_per_gpu", "1000"}};
  Cells then = usual, later = usual, alone = usual;
  then["source"] = "torchtitan benchmarks (2024-12)";
  later["source"] = "torchtitan benchmarks (2025-06)";
  alone["source"] = then["source"];
  alone["pp"] = "1";
  alone["dp"] = "32";
  alone["global_batch"] = "512";
  const MeasuredTable table =
      test::read_rows(test::training_columns({"variant", "local_batch", "memory_definition"}), {then, later, alone});
  ASSERT_EQ(table.runs.size(), 3U) << (table.skipped.empty() ? "" : table.skipped.front().reason);
  EXPECT_EQ(table.runs[0].scenario.base.micro_batch, 2);
  EXPECT_EQ(table.runs[1].scenario.base.micro_batch, 1);
  EXPECT_EQ(table.runs[2].scenario.base.micro_batch, 16);
}

}  // namespace
}  // namespace cpfit
