#include "calibrate/read/published.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <set>

#include "calibrate/read/csv.h"
#include "tests/calibrate/published_fixture.h"
#include "tests/shared_folder.h"

namespace cpfit {
namespace {

using test::Cells;
using test::measured;
using test::read_rows;
using test::training_columns;

const std::vector<std::string> kDgxc = training_columns({"task", "grad_accum", "etp", "total_tokens_per_s", "step_time_raw",
                                                         "model_flops_per_sample_stated", "tags_with_same_number", "arch_key"});

Cells dgxc_row() {
  return {{"gpu", "H100"},
          {"nodes_or_gpus", "64"},
          {"framework", "NeMo (Megatron-Core)"},
          {"model", "Llama 3.1 70b FP8"},
          {"seq_len", "8192"},
          {"micro_batch", "1"},
          {"global_batch", "64"},
          {"tp", "4"},
          {"pp", "4"},
          {"vpp", "5"},
          {"cp", "2"},
          {"precision", "FP8"},
          {"step_time_s", "9.5"},
          {"mfu", "44.35%"},
          {"task", "pretrain"},
          {"arch_key", "llama3_70b"}};
}

TEST(PublishedNemo, DerivesDpAndReadsConventions) {
  const MeasuredTable table = read_rows(kDgxc, {dgxc_row()});
  ASSERT_EQ(table.runs.size(), 1u);
  const MeasuredRun& run = table.runs[0];
  EXPECT_EQ(run.scenario.base.dp, 2);  // 64 / (4 * 4 * 2)
  EXPECT_EQ(run.scenario.base.precision, Precision::kFp8Delayed);
  EXPECT_EQ(run.scenario.training.grad_dtype, GradDtype::kBf16);
  EXPECT_EQ(run.flops.attention, AttentionCount::kFull);
  EXPECT_DOUBLE_EQ(measured(run, Metric::kMfu), 0.4435);
  EXPECT_DOUBLE_EQ(run.peak_flops_for_mfu, run.scenario.cluster.gpu.fp8.value());
  EXPECT_TRUE(run.unknown.empty());  // no recompute in the recipes behind these tables
}

TEST(PublishedNemo, RefusesWhatItCannotExpressWithAReason) {
  Cells experts = dgxc_row();
  experts["model"] = "Grok 1 314b BF16";
  experts["arch_key"] = "";
  Cells adapter = dgxc_row();
  adapter["model"] = "Llama3 70b Finetuning LORA FP8";
  Cells unequal = dgxc_row();
  unequal["nodes_or_gpus"] = "48";  // tp*cp*pp = 32 does not divide it
  Cells layers = dgxc_row();
  layers["layers"] = "7";  // neither 7 nor 9 divides over 4 * 5 chunks
  const MeasuredTable table = read_rows(kDgxc, {experts, adapter, unequal, layers});
  EXPECT_TRUE(table.runs.empty());
  ASSERT_EQ(table.skipped.size(), 4u);
  EXPECT_EQ(table.skipped[0].reason, "mixture-of-experts model");
  EXPECT_NE(table.skipped[1].reason.find("LoRA"), std::string::npos);
  EXPECT_NE(table.skipped[2].reason.find("does not divide"), std::string::npos);
  EXPECT_NE(table.skipped[3].reason.find("layers"), std::string::npos);
}

TEST(PublishedNemo, BlankInterleavingOfAPipelineIsUnknownNotOne) {
  Cells row = dgxc_row();
  row["vpp"] = "";
  const MeasuredTable table = read_rows(kDgxc, {row});
  ASSERT_EQ(table.runs.size(), 1u);
  const auto& unknown = table.runs[0].unknown;
  EXPECT_NE(std::find(unknown.begin(), unknown.end(), "vpp"), unknown.end());
}

TEST(PublishedSimuMax, TheNullTokenizerCountsItsEndOfDocument) {
  const auto columns = training_columns({"peak_reserved_gib", "max_allocated_mb_by_rank"});
  const Cells row = {{"gpu", "B200"},
                     {"nodes_or_gpus", "8"},
                     {"framework", "Megatron-LM"},
                     {"model", "llama3-70b"},
                     {"layers", "12"},
                     {"hidden", "8192"},
                     {"ffn_hidden", "28672"},
                     {"heads", "64"},
                     {"kv_heads", "8"},
                     {"vocab", "128256"},
                     {"seq_len", "4096"},
                     {"micro_batch", "1"},
                     {"global_batch", "8"},
                     {"tp", "8"},
                     {"pp", "1"},
                     {"vpp", "1"},
                     {"cp", "1"},
                     {"dp", "1"},
                     {"precision", "BF16"},
                     {"recompute", "none"},
                     {"peak_mem_gb", "28.29"}};
  const MeasuredTable table = read_rows(columns, {row});
  ASSERT_EQ(table.runs.size(), 1u) << (table.skipped.empty() ? "" : table.skipped[0].reason);
  EXPECT_EQ(table.runs[0].scenario.model.vocab, 128257);
  EXPECT_EQ(measured(table.runs[0], Metric::kPeakBytes), 28.29 * kGiB);
}

TEST(PublishedKwai, WholeJobThroughputAndOffload) {
  const auto columns =
      training_columns({"table", "method", "layers_per_virtual_stage", "offload_alpha", "total_tokens_per_s", "peak_mem_bytes"});
  const Cells row = {{"gpu", "H800"},
                     {"nodes_or_gpus", "16"},
                     {"framework", "Megatron-Kwai"},
                     {"model", "Llama-9B"},
                     {"layers", "8"},
                     {"hidden", "1024"},
                     {"ffn_hidden", "4096"},
                     {"heads", "8"},
                     {"kv_heads", "8"},
                     {"vocab", "32004"},
                     {"seq_len", "4096"},
                     {"micro_batch", "1"},
                     {"global_batch", "16"},
                     {"tp", "2"},
                     {"pp", "4"},
                     {"vpp", "2"},
                     {"cp", "2"},
                     {"dp", "1"},
                     {"recompute", "none (activation offload only)"},
                     {"offload_alpha", "0.5"},
                     {"total_tokens_per_s", "32000"},
                     {"table", "Figure 9 values"}};
  const MeasuredTable table = read_rows(columns, {row});
  ASSERT_EQ(table.runs.size(), 1u) << table.skipped.at(0).reason;
  EXPECT_DOUBLE_EQ(measured(table.runs[0], Metric::kTokensPerSecondPerGpu), 2000);  // 32000 / 16
  EXPECT_DOUBLE_EQ(table.runs[0].activation_offload, 0.5);
  EXPECT_EQ(table.runs[0].scenario.base.cp_comm, CpComm::kAllGather);
}

/// A row of the Megatron papers, with what a test sets of it.
Cells paper_row(Cells set) {
  const Cells all = {{"gpu", "A100"},
                     {"nodes_or_gpus", "3072"},
                     {"model", "GPT 1008B"},
                     {"layers", "128"},
                     {"hidden", "25600"},
                     {"heads", "160"},
                     {"vocab", "51200"},
                     {"seq_len", "2048"},
                     {"global_batch", "3072"},
                     {"tp", "8"},
                     {"pp", "64"},
                     {"cp", "1"},
                     {"precision", "FP16"},
                     {"recompute", "full"}};
  set.insert(all.begin(), all.end());
  return set;
}

MeasuredRun paper_run(const Cells& row) {
  const auto columns = training_columns({"aggregate_pflops", "model_parallel_size", "table"});
  const MeasuredTable table = read_rows(columns, {row});
  EXPECT_EQ(table.runs.size(), 1u);
  return table.runs.at(0);
}

TEST(PublishedMegatron, EachPaperHasTheSoftwareOfItsYear) {
  // 2021: micro-batch and interleaving are those of the authors' script, gradients are added up in 16 bits by a pass of its own.
  const MeasuredRun scaling = paper_run(paper_row({{"source", "Narayanan et al. 2021"},
                                                   {"framework", "Megatron-LM"},
                                                   {"table", "T1"},
                                                   {"dp", "6"},
                                                   {"tflops_per_gpu", "163"}}));
  EXPECT_EQ(scaling.scenario.base.framework, "megatron-2021");
  EXPECT_EQ(scaling.scenario.base.micro_batch, 1);
  EXPECT_EQ(scaling.scenario.base.vpp, 1);
  EXPECT_TRUE(scaling.unknown.empty());
  EXPECT_FALSE(scaling.scenario.base.overlap_p2p);
  EXPECT_EQ(scaling.scenario.training.grad_dtype, GradDtype::kBf16);
  // 2022: 1T is not interleaved; asynchronous all-reduces and fused accumulation have come, pipeline messages still wait.
  const MeasuredRun recompute = paper_run(paper_row({{"source", "Korthikanti et al. 2022"},
                                                     {"framework", "Megatron-LM"},
                                                     {"table", "T5"},
                                                     {"micro_batch", "1"},
                                                     {"dp", "6"},
                                                     {"step_time_s", "94"}}));
  EXPECT_EQ(recompute.scenario.base.framework, "megatron-2022");
  EXPECT_EQ(recompute.scenario.base.vpp, 1);
  EXPECT_TRUE(recompute.unknown.empty());
  EXPECT_EQ(recompute.scenario.training.grad_dtype, GradDtype::kFp32);
  const RuleSet old = *find_framework("megatron-2021"), later = *find_framework("megatron-2022");
  EXPECT_FALSE(old.tp_backward_async);
  EXPECT_TRUE(later.tp_backward_async);
  EXPECT_GT(old.accumulation_traffic_per_parameter, 0.0);
  EXPECT_EQ(later.accumulation_traffic_per_parameter, 0.0);
}

TEST(PublishedMegatron, DeepSpeedOf2021GathersTensorByTensorInSixteenBits) {
  const auto columns = training_columns({"aggregate_pflops", "model_parallel_size", "peak_pct", "training_days"});
  const Cells row = {{"source", "Narayanan et al. 2021"},
                     {"gpu", "A100"},
                     {"nodes_or_gpus", "64"},
                     {"framework", "DeepSpeed"},
                     {"model", "GPT 1B"},
                     {"layers", "16"},
                     {"hidden", "2048"},
                     {"heads", "16"},
                     {"vocab", "51200"},
                     {"seq_len", "2048"},
                     {"micro_batch", "1"},
                     {"global_batch", "64"},
                     {"dp", "64"},
                     {"sharding", "ZeRO-3"},
                     {"precision", "FP16"},
                     {"recompute", "full"},
                     {"tflops_per_gpu", "100"}};
  const MeasuredTable table = read_rows(columns, {row});
  ASSERT_EQ(table.runs.size(), 1u) << table.skipped.at(0).reason;
  const MeasuredRun& run = table.runs[0];
  EXPECT_EQ(run.scenario.base.state_sharding, StateSharding::kZero3);
  EXPECT_EQ(run.scenario.training.grad_dtype, GradDtype::kBf16);
  ASSERT_NE(run.rules, nullptr);
  EXPECT_TRUE(run.rules->zero3_waits);
  EXPECT_EQ(run.rules->attention_backend_ampere, AttentionBackend::kUnfused);
}

TEST(PublishedMegatron, TheLlamaExampleReducesInBf16AndGathersFp8Weights) {
  const Cells row = {{"source", "Megatron-LM examples/llama README (FP8)"},
                     {"gpu", "H100"},
                     {"nodes_or_gpus", "8"},
                     {"framework", "Megatron-Core"},
                     {"model", "Llama-3-8B"},
                     {"layers", "32"},
                     {"hidden", "4096"},
                     {"ffn_hidden", "14336"},
                     {"heads", "32"},
                     {"kv_heads", "8"},
                     {"vocab", "128256"},
                     {"seq_len", "8192"},
                     {"micro_batch", "1"},
                     {"global_batch", "128"},
                     {"tp", "1"},
                     {"pp", "1"},
                     {"vpp", "1"},
                     {"cp", "2"},
                     {"precision", "FP8 hybrid"},
                     {"tokens_per_s_per_gpu", "10000"}};
  const MeasuredTable table = read_rows(training_columns({"arch_key"}), {row});
  ASSERT_EQ(table.runs.size(), 1u) << table.skipped.at(0).reason;
  const MeasuredRun& run = table.runs[0];
  EXPECT_EQ(run.scenario.base.precision, Precision::kFp8Delayed);
  EXPECT_EQ(run.scenario.training.grad_dtype, GradDtype::kBf16);
  ASSERT_NE(run.rules, nullptr);
  EXPECT_TRUE(run.rules->fp8_param_gather);
}

TEST(PublishedOperators, IterationsPerSecondAreSeconds) {
  const auto columns = training_columns({"head_dim", "tokens_per_gpu", "api", "pass_", "iters_per_s"});
  const Cells ring = {{"gpu", "A100"},
                      {"nodes_or_gpus", "8"},
                      {"model", "attention op"},
                      {"heads", "32"},
                      {"kv_heads", "8"},
                      {"seq_len", "65536"},
                      {"cp", "8"},
                      {"cp_method", "zigzag_ring"},
                      {"head_dim", "128"},
                      {"tokens_per_gpu", "8192"},
                      {"pass_", "fwd+bwd"},
                      {"iters_per_s", "12.5"}};
  const MeasuredTable table = read_rows(columns, {ring});
  ASSERT_EQ(table.kernels.size(), 1u) << table.skipped.at(0).reason;
  EXPECT_DOUBLE_EQ(table.kernels[0].seconds, 0.08);
  EXPECT_TRUE(table.kernels[0].forward && table.kernels[0].backward);
  EXPECT_EQ(table.kernels[0].recipe.shard_layout, ShardLayout::kZigzag);
}

/// A row of yunchang's or the USP paper's operators.
Cells yunchang(const std::string& place, const std::string& tokens, const std::string& head_dim) {
  return {{"gpu", "A100-SXM4-80GB"},
          {"nodes_or_gpus", "8"},
          {"interconnect", "NVLink"},
          {"model", "attention op only"},
          {"heads", "32"},
          {"seq_len", tokens},
          {"micro_batch", "2"},
          {"cp", "8"},
          {"cp_method", "zigzag qkvpack"},
          {"head_dim", head_dim},
          {"group_num", "1"},
          {"ulysses", "4"},
          {"ring", "2"},
          {"pass_", "fwd"},
          {"iters_per_s", "100"},
          {"source_location", place}};
}

TEST(PublishedOperators, YunchangsCellsMeanWhatItsScriptsRan) {
  const auto columns = training_columns({"head_dim", "group_num", "ulysses", "ring", "pass_", "iters_per_s"});
  const MeasuredTable table =
      read_rows(columns, {yunchang("media/gqa.png", "4096", "128"), yunchang("media/benchmark_results.png", "32768", "32"),
                          yunchang("media/benchmark_results.png", "131072", "32"), yunchang("Table 4", "131072", "128")});
  ASSERT_EQ(table.kernels.size(), 4u) << table.skipped.at(0).reason;
  EXPECT_EQ(table.kernels[0].attention.q_len, 8 * 4096);  // its picture counts the tokens of one GPU
  EXPECT_EQ(table.kernels[0].attention.pairs, 32768.0 * 32769.0 / 2);
  EXPECT_EQ(table.kernels[0].supposed, "");
  EXPECT_EQ(table.kernels[1].attention.head_dim, 128);  // short sequences ran with the script's other head size
  EXPECT_EQ(table.kernels[1].supposed, "head_dim");
  EXPECT_EQ(table.kernels[2].attention.head_dim, 32);
  EXPECT_EQ(table.kernels[3].attention.q_len, 262144);  // SEQLEN=32768 on each of 8 GPUs, called 128K
  EXPECT_EQ(table.kernels[3].supposed, "seq_len");
  EXPECT_TRUE(table.kernels[0].packed_qkv && !table.kernels[0].synchronized);  // that script queues its calls
}

TEST(PublishedOperators, VarlenRowsTakeFourPackingsInTurn) {
  const auto columns = training_columns({"head_dim", "tokens_per_gpu", "api", "pass_", "iters_per_s"});
  const Cells ring = {{"gpu", "A100"},      {"nodes_or_gpus", "8"},     {"model", "attention op"},
                      {"heads", "32"},      {"kv_heads", "8"},          {"seq_len", "65536"},
                      {"cp", "8"},          {"cp_method", "ring_attn"}, {"tokens_per_gpu", "8192"},
                      {"head_dim", "128"},  {"api", "varlen api"},      {"pass_", "fwd"},
                      {"iters_per_s", "40"}};
  Cells zigzag = ring;
  zigzag["cp_method"] = "zigzag_ring";
  const MeasuredTable table = read_rows(columns, {ring, zigzag});
  ASSERT_EQ(table.kernels.size(), 2u) << table.skipped.at(0).reason;
  const MeasuredKernel& kernel = table.kernels[0];
  EXPECT_TRUE(kernel.packed_kv && !kernel.indexed_halves);
  EXPECT_TRUE(table.kernels[1].packed_kv && table.kernels[1].indexed_halves);  // benchmark_varlen_kvpacked_func.py
  ASSERT_EQ(kernel.packings.size(), 4u);
  double pairs = 0;
  for (const auto& documents : kernel.packings) {
    std::int64_t tokens = 0;
    for (const DocumentClass& document : documents) {
      tokens += document.length;
      pairs += static_cast<double>(document.length) * static_cast<double>(document.length + 1) / 2;
    }
    EXPECT_EQ(tokens, 65536);
  }
  EXPECT_DOUBLE_EQ(kernel.attention.pairs, pairs / 4);
}

TEST(PublishedOperators, FiguresThatContradictEachOtherAreRefused) {
  const auto columns = training_columns({"head_dim", "pass_", "time_ms", "fwd_ms", "mem_mb"});
  // Forward and backward of the causal half, 7 s^2 d h FLOPs over 32 GPUs, at 100 TFLOP/s each: 7 * 131072^2 * 5120 / 3.2e15 s.
  const double ms = 7.0 * 131072 * 131072 * 5120 / 32 / 100e12 * 1e3;
  const auto row = [&](double time) {
    return Cells{{"source", "BurstEngine kernel benchmark"},
                 {"gpu", "A800"},
                 {"nodes_or_gpus", "32"},
                 {"model", "attention op"},
                 {"heads", "40"},
                 {"hidden", "5120"},
                 {"seq_len", "131072"},
                 {"micro_batch", "1"},
                 {"cp", "32"},
                 {"cp_method", "BurstAttention"},
                 {"head_dim", "128"},
                 {"pass_", "fwd+bwd"},
                 {"tflops_per_gpu", "100"},
                 {"time_ms", std::to_string(time)}};
  };
  const MeasuredTable table = read_rows(columns, {row(ms * 1.08), row(ms * 0.7)});
  ASSERT_EQ(table.kernels.size(), 1u) << table.skipped.at(0).reason;
  EXPECT_NEAR(table.kernels[0].seconds, ms / 1e3, 1e-6);
  ASSERT_EQ(table.skipped.size(), 1u);
  EXPECT_EQ(table.skipped[0].reason, "its time and its rate contradict each other");
}

// Method names stand for layouts and options that the authors' scripts hold.
TEST(PublishedBurstEngine, ScriptsSayWhatTheSheetDoesNot) {
  const auto columns = training_columns({"seq_k", "std", "raw"});
  const auto row = [](const char* gpus, const char* model, const char* method, const char* cp, const char* notes = "") {
    return Cells{{"source", "BurstEngine"},
                 {"gpu", "A800"},
                 {"gpu_mem_gb", "80"},
                 {"nodes_or_gpus", gpus},
                 {"framework", "BurstEngine / baselines"},
                 {"model", model},
                 {"layers", "40"},
                 {"hidden", "5120"},
                 {"ffn_hidden", "13824"},
                 {"heads", "40"},
                 {"vocab", "32000"},
                 {"seq_len", "65536"},
                 {"cp", cp},
                 {"cp_method", method},
                 {"precision", "BF16"},
                 {"tokens_per_s_per_gpu", "900"},
                 {"notes", notes}};
  };
  const MeasuredTable table =
      read_rows(columns, {row("8", "LLaMA 13b", "burst", "4"), row("8", "LLaMA 13b", "loong-train-cp-ckpt", "8"),
                          row("32", "LLaMA 14b", "LoongTrain-USP", "32"),
                          row("32", "LLaMA 14b", "BurstEngine", "32", "optimizer offload=1"),
                          row("8", "LLaMA 13b", "burst", "8", "optimizer offload=0"), row("8", "LLaMA 13b", "megatron-cp", "8")});
  ASSERT_EQ(table.runs.size(), 6u) << (table.skipped.empty() ? "" : table.skipped[0].reason);
  const auto on_host = [&](std::size_t i) { return table.runs[i].rules != nullptr && table.runs[i].rules->optimizer_on_host; };
  EXPECT_EQ(table.runs[0].scenario.model.vocab, 120000);  // the sheet's 13b has the words of its 14b, its baselines have not
  EXPECT_EQ(table.runs[1].scenario.model.vocab, 32000);
  EXPECT_EQ(table.runs[1].scenario.base.cp_comm, CpComm::kP2p);  // a ring alone
  EXPECT_EQ(table.runs[2].scenario.base.cp_comm, CpComm::kA2aP2p);
  EXPECT_EQ(table.runs[2].scenario.base.a2a_degree, 4);  // rings of eight
  EXPECT_EQ(std::count(table.runs[2].unknown.begin(), table.runs[2].unknown.end(), "a2a_degree"), 0);
  EXPECT_TRUE(on_host(0) && on_host(1) && on_host(3));
  EXPECT_FALSE(on_host(2) || on_host(4) || on_host(5));
}

TEST(Published, UnknownColumnsNameTheNearestTable) {
  const auto table = read_published_text("system,m,n,latency_ms\na,1,2,3\n", "t.csv");
  ASSERT_FALSE(table.ok());
  EXPECT_EQ(table.problems()[0].code, "published.columns");
  EXPECT_NE(table.problems()[0].repair.find("k"), std::string::npos);
  EXPECT_FALSE(read_published("/no/such/table.csv").ok());
}

TEST(PublishedShared, EveryFileIsReadAndEveryRowIsAccountedFor) {
  CPFIT_REQUIRE_SHARED("published");
  std::size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(test::shared_path("published"))) {
    const auto path = entry.path();
    if (path.extension() != ".csv" || path.stem() == "model_architectures") continue;  // a join table, not measurements
    ++files;
    const auto csv = CsvTable::load(path.string());
    ASSERT_TRUE(csv.ok()) << path;
    const auto table = read_published(path.string());
    ASSERT_TRUE(table.ok()) << to_text(table.problems().front());
    std::set<std::int64_t> lines;
    for (const auto& run : table->runs) EXPECT_TRUE(lines.insert(run.line).second) << path << ":" << run.line;
    for (const auto& kernel : table->kernels) lines.insert(kernel.line);  // one line may time two passes
    for (const auto& row : table->skipped) {
      EXPECT_TRUE(lines.insert(row.line).second) << path << ":" << row.line;
      EXPECT_FALSE(row.reason.empty());
    }
    EXPECT_EQ(lines.size(), csv->size()) << path;
  }
  EXPECT_GT(files, 30u);
}

}  // namespace
}  // namespace cpfit
