// Megatron-LM and its relatives: functional-test golden values, SimuMax's B200 runs, the Megatron papers, the model zoo, Kwai.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <sstream>

#include "calibrate/read/published_adapters.h"

namespace cpfit::published {

namespace {

constexpr FlopsConvention kFullAttention{AttentionCount::kFull, true, false};
constexpr FlopsConvention kCausalHalf{AttentionCount::kCausalHalf, true, false};

std::vector<std::string> words_of(std::string_view text) {
  std::istringstream stream{std::string(text)};
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

/// The rule set of a functional test, from its arguments, its name and the age of its golden file. Where the arguments name no
/// attention backend TransformerEngine chooses; its long-term container had no deterministic flash kernel before November 2025.
std::string functional_test_rules(const Row& row) {
  if (row.says("args", "transformer-impl=local")) return "megatron-core-local";
  const bool deterministic = row.says("args", "deterministic-mode");
  const auto commit = row.text("golden_last_commit");
  const std::string_view date = commit.size() >= 10 ? commit.substr(commit.size() - 10) : std::string_view();
  const bool old_container = row.says("framework", "lts") && !date.empty() && date < "2025-11";
  if (row.says("args", "attention-backend=unfused") || (deterministic && old_container)) return "megatron-core-unfused";
  if (deterministic) return "megatron-core-deterministic";
  return row.says("model", "cross_entropy_loss_fusion") ? "megatron-core-ci-jit-loss" : "megatron-core-ci";
}

/// Tests whose memory depends on something the table does not keep.
std::optional<std::string> undetermined_test(const Row& row) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 7> kWords{{
      {"mla", "multi-latent attention"},
      {"distill", "knowledge distillation: a teacher shares the GPU"},
      {"multi_dist", "several optimizer instances: their number is not kept"},
      {"uneven", "uneven pipeline whose layout the table does not keep"},
      {"defer_embedding", "deferred embedding gradients: their number is not kept"},
      {"tunable", "tunable schedule whose group size is not kept"},
      {"uninstall_te", "TransformerEngine removed in the test"},
  }};
  for (const auto& [word, reason] : kWords) {
    if (row.says("model", word)) return std::string(reason);
  }
  if (row.says("model", "loss_fusion") && row.says("golden_last_commit", "2025-10"))
    return "golden file older than the loss it names";
  return std::nullopt;
}

/// The GPT of a functional test. The table keeps a selection of arguments; what it leaves out has Megatron's default.
Architecture functional_test_model(const Row& row, const std::vector<std::string>& args) {
  const auto given = [&](std::string_view word) { return std::find(args.begin(), args.end(), word) != args.end(); };
  constexpr std::int64_t kGpt2Vocabulary = 50257;  // GPT2BPETokenizer of the tests
  Architecture model =
      gpt_model(row.integer("layers").value_or(0), row.integer("hidden").value_or(0), row.integer("heads").value_or(0),
                row.integer("vocab").value_or(kGpt2Vocabulary), row.integer("seq_len").value_or(0));
  model.name = std::string(row.text("model"));
  if (given("untie-embeddings-and-output-weights")) model.tied_embeddings = false;
  if (given("position-embedding-type=rope")) model.position = PositionKind::kRope;
  if (given("position-embedding-type=none")) model.position = PositionKind::kNone;
  if (model.position != PositionKind::kLearned) model.max_positions = 0;
  if (given("swiglu")) {
    model.activation = Activation::kSwiGlu;
    model.ffn_hidden = 4 * model.hidden * 2 / 3 / 64 * 64;  // Megatron arguments.py: reduce by 2/3, round to 64
  }
  if (const auto ffn = row.integer("ffn_hidden")) model.ffn_hidden = *ffn;
  if (given("group-query-attention")) model.kv_heads = row.integer("kv_heads").value_or(1);  // --num-query-groups defaults to 1
  model.hidden_dropout = model.attention_dropout = 0.1;                                      // Megatron's defaults
  if (row.says("model", "disable_bias_linear")) model.qkv_bias = model.attention_output_bias = model.mlp_bias = false;
  model.qk_norm = row.says("model", "qk_layernorm");
  return model;
}

/// Micro-batch and chunks a stage of Narayanan's Table 1, which the paper leaves out and the script of its runs has
/// (github NVIDIA/Megatron-LM examples/sc21/run_table_1.sh).
struct ScalingRun {
  std::int64_t hidden;
  std::int32_t micro_batch, vpp;
};
constexpr std::array<ScalingRun, 10> kScalingRuns{{{2304, 16, 1},
                                                   {3072, 16, 1},
                                                   {4096, 16, 1},
                                                   {6144, 8, 1},
                                                   {8192, 4, 1},
                                                   {10240, 2, 3},
                                                   {12288, 2, 2},
                                                   {16384, 1, 2},
                                                   {20480, 1, 3},
                                                   {25600, 1, 1}}};

/// What one of those runs did by its script: DDP of PyTorch without a pipeline, else Megatron's own, which waits.
void as_scripted(const Row& row, Draft& draft) {
  if (!row.says("table", "T1")) return;
  const auto run = std::find_if(kScalingRuns.begin(), kScalingRuns.end(),
                                [&](const ScalingRun& one) { return one.hidden == draft.model().hidden; });
  if (run == kScalingRuns.end()) return;
  Recipe& recipe = draft.recipe();
  recipe.micro_batch = run->micro_batch;
  recipe.vpp = run->vpp;
  recipe.overlap_grad_reduce = recipe.pp == 1;
  std::erase(draft.run.unknown, "micro_batch");
  std::erase(draft.run.unknown, "vpp");
  draft.run.conditions.push_back("micro-batch and interleaving from the script of the runs (examples/sc21/run_table_1.sh)");
}

}  // namespace

void read_megatron_functional_test(const Row& row, Reading& reading) {
  const auto args = words_of(row.text("args"));
  const auto mentions = [&](std::string_view start) {
    return std::any_of(args.begin(), args.end(), [&](const std::string& word) { return word.starts_with(start); });
  };
  Draft draft = draft_of(row, reading, functional_test_rules(row));
  if (mentions("num-experts") || row.says("model", "moe/") || row.says("model", "mixtral"))
    draft.refuse("mixture-of-experts model");
  if (mentions("multi-latent-attention")) draft.refuse("multi-latent attention");
  if (mentions("mtp-num-layers")) draft.refuse("multi-token prediction");
  if (row.says("model", "hybrid/") || row.says("model", "mamba")) draft.refuse("state-space layers");
  if (row.says("notes", "WARNING")) draft.refuse("golden file copied from another configuration");
  if (auto reason = undetermined_test(row)) draft.refuse(*std::move(reason));
  draft.model() = functional_test_model(row, args);

  Recipe& recipe = draft.recipe();
  const auto given = [&](std::string_view word) { return std::find(args.begin(), args.end(), word) != args.end(); };
  draft.run.unknown.clear();  // the test's configuration says everything; what the table leaves blank is Megatron's default
  if (row.says("cp_method", "a2a+p2p")) {
    recipe.cp_comm = CpComm::kA2aP2p;
    recipe.a2a_degree = 2;  // hierarchical-context-parallel-sizes 2 2
  }
  recipe.sequence_parallel = given("sequence-parallel");
  recipe.overlap_grad_reduce = given("overlap-grad-reduce");
  recipe.overlap_param_gather = given("overlap-param-gather");
  recipe.overlap_tp = given("tp-comm-overlap");
  recipe.state_sharding = row.says("sharding", "FSDP")                    ? StateSharding::kZero3
                          : row.says("sharding", "distributed optimizer") ? StateSharding::kZero1
                                                                          : StateSharding::kNone;
  if (row.says("model", "account_for_embedding_loss")) recipe.stage_layout.kind = LayoutKind::kEmbeddingAndLossAsLayers;
  const std::int64_t chunks = std::int64_t{recipe.pp} * recipe.vpp;
  const std::int64_t counted = draft.model().layers + (recipe.stage_layout.kind == LayoutKind::kEven ? 0 : 2);
  if (counted % chunks != 0) draft.refuse("uneven pipeline whose layout the table does not keep");
  if (recipe.state_sharding == StateSharding::kZero3) draft.refuse("Megatron-FSDP: its unit size is not kept");
  if (row.says("precision", "FP8")) draft.refuse("FP8 recipe of a test: its amax history and parameter gather are not kept");
  constexpr std::int64_t kTestNode = 8;  // the functional tests run on one node unless the table prints another number
  const std::int64_t group = std::int64_t{recipe.tp} * recipe.pp * recipe.cp;
  if (draft.run.gpus == 0 && row.says("model", "release")) draft.refuse("the number of GPUs is not printed");
  if (draft.run.gpus == 0 && group <= kTestNode && kTestNode % group == 0) {
    draft.run.gpus = kTestNode;
    recipe.dp = static_cast<std::int32_t>(kTestNode / group);
    draft.run.conditions.push_back("eight GPUs: one node of the test cluster");
    if (auto cluster = reading.cluster(cluster_preset_of(row.text("gpu")), kTestNode)) {
      draft.run.scenario.cluster = std::move(*cluster);
    }
  }
  draft.run.memory_stage = recipe.pp - 1;  // golden values are logged on the last rank
  draft.measure(Metric::kPeakBytes, row.number("peak_mem_bytes"));
  draft.measure(Metric::kResidentBytes, row.number("mem_allocated_bytes_last"));
  // A step of the small tests is host launches and checks: it says nothing about the operators cpfit rates.
  constexpr std::int64_t kLaunchBoundHidden = 1024;
  if (draft.model().hidden > kLaunchBoundHidden) draft.measure(Metric::kStepSeconds, row.number("step_time_s"));
  draft.run.group = fmt::format("{} {}", row.text("gpu"), draft.model().hidden > kLaunchBoundHidden ? "full size" : "small test");
  file(std::move(draft), row, reading);
}

void read_simumax(const Row& row, Reading& reading) {
  Draft draft = draft_of(row, reading, "megatron-core-fused-loss");
  Recipe& recipe = draft.recipe();
  draft.run.unknown.clear();  // the launch script prints every degree and recomputes nothing
  ++draft.model().vocab;      // --tokenizer-type NullTokenizer adds an end-of-document token, which the padding counts
  if (row.says("cp_method", "A2A")) recipe.cp_comm = CpComm::kA2a;
  recipe.overlap_grad_reduce = recipe.overlap_param_gather = recipe.overlap_tp = recipe.overlap_p2p = false;
  draft.run.conditions.push_back("no communication overlap flags in the launch script");
  draft.measure(Metric::kStepSeconds, row.number("step_time_s"));
  if (const auto gib_max = row.number("peak_mem_gb")) draft.measure(Metric::kPeakBytes, *gib_max * kGiB);
  if (const auto gib_max = row.number("peak_reserved_gib")) draft.measure(Metric::kReservedBytes, *gib_max * kGiB);
  draft.run.group = recipe.cp > 1 ? "with CP" : "without CP";
  file(std::move(draft), row, reading);
}

void read_kwai(const Row& row, Reading& reading) {
  const bool fork = !row.says("framework", "NVIDIA Megatron-LM");
  Draft draft = draft_of(row, reading, fork ? "megatron-kwai" : "megatron-2024", row.says("gpu", "H800") ? "h800-8x100g" : "");
  if (draft.model().layers == 0) {
    draft.model() =
        llama_model(row.integer("layers").value_or(0), row.integer("hidden").value_or(0), row.integer("ffn_hidden").value_or(0),
                    row.integer("heads").value_or(0), row.integer("kv_heads").value_or(0), row.integer("vocab").value_or(0));
    draft.model().name = std::string(row.text("model"));
  }
  Architecture& model = draft.model();
  model.hidden = row.integer("hidden").value_or(model.hidden);
  model.heads = row.integer("heads").value_or(model.heads);
  Recipe& recipe = draft.recipe();
  draft.run.unknown.clear();
  if (row.says("recompute", "norm only")) {
    recipe.recompute = {RecomputeKind::kSelective, 0};  // the fork's rule set says what it drops
  } else if (!recompute_of(row.text("recompute"))) {
    draft.not_said("recompute");
  }
  if (fork && recipe.cp > 1) recipe.cp_comm = CpComm::kAllGather;
  recipe.overlap_tp = fork && recipe.tp > 1;
  draft.run.activation_offload = row.number("offload_alpha").value_or(0);
  if (draft.run.activation_offload > 0) {
    draft.run.conditions.push_back("activation offload: that share of each chunk lies in host memory, its copies behind compute");
  }
  measure_throughput(draft, row, kCausalHalf);
  draft.run.peak_flops_for_mfu = dense_peak(draft.run.scenario.cluster.gpu, Precision::kBf16).value();
  if (const auto total = row.number("total_tokens_per_s"); total && draft.run.gpus > 0) {
    draft.measure(Metric::kTokensPerSecondPerGpu, *total / static_cast<double>(draft.run.gpus));
  }
  draft.measure(Metric::kPeakBytes, row.number("peak_mem_bytes"));
  draft.run.died = row.says("notes", "OOM");
  draft.run.group = std::string(row.text("table"));
  file(std::move(draft), row, reading);
}

void read_megatron_paper(const Row& row, Reading& reading) {
  const bool narayanan = row.says("source", "Narayanan"), korthikanti = row.says("source", "Korthikanti");
  const bool megascale = row.says("source", "MegaScale"), readme = row.says("source", "README");
  const bool zero3 = row.says("sharding", "ZeRO-3");
  const bool baseline = megascale && row.says("framework", "Megatron-LM");  // 285068c8, of January 2023
  Draft draft = draft_of(row, reading,
                         zero3                     ? "deepspeed-2021"
                         : narayanan               ? "megatron-2021"
                         : korthikanti || baseline ? "megatron-2022"
                                                   : "megatron-2024",
                         row.says("gpu", "H100")   ? "dgx-h100"
                         : row.says("gpu", "H800") ? "h800-8x400g"
                                                   : "dgx-a100");
  Recipe& recipe = draft.recipe();
  if (row.says("model", "ONE transformer layer")) draft.refuse("time of a single layer, not of a training step");

  std::int64_t layers = row.integer("layers").value_or(0), hidden = row.integer("hidden").value_or(0);
  std::int64_t heads = row.integer("heads").value_or(0);
  if (layers == 0 && row.says("model", "174.6B")) layers = 96, hidden = 12288, heads = 96;    // Table 1 of the same paper
  if (layers == 0 && row.says("model", "529.6B")) layers = 105, hidden = 20480, heads = 128;  // same
  draft.model() = gpt_model(layers, hidden, heads, row.integer("vocab").value_or(51200), row.integer("seq_len").value_or(2048));
  draft.model().name = std::string(row.text("model"));
  if (narayanan || korthikanti) {
    recipe.precision = Precision::kFp16;
    recipe.state_sharding = StateSharding::kNone;
    recipe.sequence_parallel = korthikanti && !row.says("recompute", "no sequence");
    recipe.overlap_grad_reduce = recipe.overlap_param_gather = false;
    recipe.overlap_p2p = false;  // p2p_communication.py waited for every message until 2023
    draft.model().hidden_dropout = draft.model().attention_dropout = 0.1;  // Megatron's defaults, as in the papers' formulas
    if (zero3)
      draft.run.rules = reading.rules(recipe.framework, "unfused attention",
                                      [](RuleSet& rules) { rules.attention_backend_ampere = AttentionBackend::kUnfused; });
    draft.run.conditions.push_back("attention kernel of 2021-22: no FlashAttention, fused softmax only");
  }
  if (narayanan) draft.training().grad_dtype = GradDtype::kBf16;  // accumulated and reduced in the 16 bits of the parameters
  if (narayanan && !zero3) as_scripted(row, draft);
  if (korthikanti) std::erase(draft.run.unknown, "vpp");  // section 6: interleaved for 175B and 530B, printed there; else not
  if (const auto size = row.integer("model_parallel_size"); size && *size >= 8 && row.blank("tp")) {
    recipe.tp = 8;  // assumed: one node of eight, as in every layout of that paper which is printed in full at this size
    recipe.pp = static_cast<std::int32_t>(*size / recipe.tp);
    std::erase(draft.run.unknown, "tp");
    std::erase(draft.run.unknown, "pp");
    if (recipe.pp > 1) draft.not_said("vpp");
  }
  if (zero3) {
    recipe.state_sharding = StateSharding::kZero3;
    std::erase(draft.run.unknown, "tp");
    std::erase(draft.run.unknown, "pp");
  }
  if (megascale && row.says("framework", "MegaScale")) recipe.overlap_tp = true;
  if (baseline) {  // overlaps and the attention kernel are what Table 3 and section 3.3 of the paper add to it
    recipe.overlap_p2p = recipe.overlap_grad_reduce = recipe.overlap_param_gather = false;
    draft.run.conditions.push_back("Megatron-LM of January 2023: no FlashAttention, no overlap of messages and gradients");
  }
  measure_throughput(draft, row, {AttentionCount::kFull, true, narayanan});
  draft.run.peak_flops_for_mfu = dense_peak(draft.run.scenario.cluster.gpu, Precision::kBf16).value();
  if (const auto total = row.count("total_tokens_per_s"); total && draft.run.gpus > 0) {
    draft.measure(Metric::kTokensPerSecondPerGpu, *total / static_cast<double>(draft.run.gpus));
  }
  draft.run.group = narayanan ? "Narayanan 2021" : korthikanti ? "Korthikanti 2022" : readme ? "README H100" : "MegaScale";
  file(std::move(draft), row, reading);
}

void read_model_zoo(const Row& row, Reading& reading) {
  Draft draft = draft_of(row, reading, "megatron-core");
  Recipe& recipe = draft.recipe();
  recipe.overlap_tp = recipe.tp > 1;
  if (row.says("source", "examples/llama")) {
    // The flags of that example's scripts: --fp8-format hybrid (delayed scaling) --fp8-param-gather --grad-reduce-in-bf16.
    if (recipe.precision == Precision::kFp8Current) recipe.precision = Precision::kFp8Delayed;
    draft.training().grad_dtype = GradDtype::kBf16;
    draft.run.rules = reading.rules(recipe.framework, "fp8 param gather", [](RuleSet& rules) { rules.fp8_param_gather = true; });
    draft.run.conditions.push_back("flags of the example's script: FP8 weights gathered, gradients reduced in bf16");
  }
  // The example's README is older than the change of Megatron's FLOPs formula: 800/13812 = 57.9 GFLOP/token counts all keys.
  measure_throughput(draft, row, kFullAttention);
  file(std::move(draft), row, reading);
}

}  // namespace cpfit::published
