// NVIDIA's performance tables: NeMo 24.x and 25.04, the DGX Cloud recipes, Megatron-Bridge.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "calibrate/read/published_adapters.h"

namespace cpfit::published {

namespace {

constexpr FlopsConvention kFullAttention{AttentionCount::kFull, true, false};
constexpr FlopsConvention kCausalHalf{AttentionCount::kCausalHalf, true, false};

void refuse_adapters(Draft& draft, std::string_view task) {
  if (contains_word(task, "lora")) draft.refuse("LoRA: frozen weights are not modelled");
}

}  // namespace

void nemo_defaults(Draft& draft) {
  Recipe& recipe = draft.recipe();
  draft.training().grad_dtype = GradDtype::kBf16;
  recipe.overlap_tp = recipe.tp > 1;
  if (recipe.precision == Precision::kFp8Current) recipe.precision = Precision::kFp8Delayed;
}

void bridge_defaults(Draft& draft) {
  Recipe& recipe = draft.recipe();
  std::erase(draft.run.unknown, "recompute");
  draft.training().grad_dtype = GradDtype::kBf16;
  if (recipe.precision == Precision::kBf16) draft.training().optimizer = OptimizerKind::kAdamPrecisionAware;
  recipe.overlap_tp = recipe.tp > 1 && recipe.precision != Precision::kNvfp4;
}

void megatron_layout(Draft& draft) {
  Recipe& recipe = draft.recipe();
  const std::int64_t chunks = std::int64_t{recipe.pp} * recipe.vpp;
  if (draft.model().layers % chunks == 0) return;
  if ((draft.model().layers + 2) % chunks == 0) {
    recipe.stage_layout.kind = LayoutKind::kEmbeddingAndLossAsLayers;
  } else {
    draft.refuse("the layers do not divide over the pipeline as printed");
  }
}

void read_nemo_long_sequence(const Row& row, Reading& reading) {
  Draft draft = draft_of(row, reading, "nemo-24");
  nemo_defaults(draft);
  // The B200 table printed a multiple of the GPUs that its own layouts need; an earlier revision printed the consistent count.
  if (const auto consistent = row.integer("gpus_alt")) {
    draft.run.gpus = *consistent;
    if (auto cluster = reading.cluster(cluster_preset_of(row.text("gpu")), *consistent)) {
      draft.run.scenario.cluster = std::move(*cluster);
    }
    draft.run.conditions.push_back("GPUs of the earlier revision of the table, which agree with the layout");
  }
  const bool with_cp = row.says("variant", "with CP");
  if (with_cp) {
    std::erase(draft.run.unknown, "recompute");  // the release's defaults recompute nothing
  } else {
    draft.not_said("dp");
  }
  measure_throughput(draft, row, kFullAttention);
  draft.run.group = fmt::format("{} {}", row.text("gpu"), row.text("variant"));
  file(std::move(draft), row, reading);
}

void read_nemo_summary(const Row& row, Reading& reading) {
  Draft draft = draft_of(row, reading, "nemo-24");
  nemo_defaults(draft);
  std::erase(draft.run.unknown, "recompute");
  refuse_adapters(draft, row.text("task"));
  megatron_layout(draft);
  measure_throughput(draft, row, kFullAttention);
  draft.run.group = std::string(row.text("task"));
  file(std::move(draft), row, reading);
}

void read_dgxc(const Row& row, Reading& reading) {
  const bool megatron = row.says("framework", "Megatron");
  Draft draft = draft_of(row, reading, megatron ? "nemo-24" : "maxtext");
  Recipe& recipe = draft.recipe();
  if (row.says("model", "Nemotron-H")) draft.refuse("state-space layers");
  refuse_adapters(draft, row.text("model"));
  if (megatron) {
    nemo_defaults(draft);
    std::erase(draft.run.unknown, "recompute");
    if (recipe.pp > 1 && !row.blank("vpp")) megatron_layout(draft);
    // From tag v25.04 on the recipes run NeMo 2 in containers of 2025 (v25.05.01 names nemo:25.04.01), whose TransformerEngine
    // prefers cuDNN's attention on Hopper (get_attention_backend).
    const auto tags = row.text("tags_with_same_number");
    if (tags.starts_with("v25.04") || tags.starts_with("v25.05")) {
      draft.run.rules = reading.rules(recipe.framework, "TransformerEngine 2",
                                      [](RuleSet& rules) { rules.attention_backend = AttentionBackend::kCudnn; });
      draft.run.conditions.push_back("attention by cuDNN: TransformerEngine 2 prefers it on Hopper");
    }
  } else if (const auto sharding = row.text("sharding"); sharding.starts_with("FSDP=")) {
    recipe.state_sharding = StateSharding::kZero3;
    std::erase(draft.run.unknown, "tp");
    std::erase(draft.run.unknown, "pp");
    const auto group = std::atoll(std::string(sharding.substr(5)).c_str());
    if (group != draft.run.gpus) draft.refuse("FSDP groups smaller than the data-parallel group (hybrid sharding)");
  } else {
    draft.refuse("the FSDP degree is not printed");
  }
  // The README of GPT-175B prints 1204 for 1024: with 1024 its own MFU comes out (accuracy_notes 5).
  if (draft.training().global_batch == 1204 && row.says("model", "NeMo Megatron")) {
    draft.training().global_batch = 1024;
    draft.run.conditions.push_back("global batch 1024: the printed 1204 is a misprint");
  }
  measure_throughput(draft, row, kFullAttention);
  // Nemotron's FLOPs formula changed between tags and differs from every other by 13 to 17 %: only its step times compare.
  if (row.says("model", "nemotron")) {
    std::erase_if(draft.run.measured, [](const auto& figure) { return figure.first == Metric::kMfu; });
  }
  draft.run.group = std::string(megatron ? (row.says("gpu", "GB200") ? "NeMo GB200" : "NeMo H100") : "MaxText");
  file(std::move(draft), row, reading);
}

void read_megatron_bridge(const Row& row, Reading& reading) {
  Draft draft = draft_of(row, reading, "megatron-bridge");
  Recipe& recipe = draft.recipe();
  refuse_adapters(draft, row.text("phase"));
  if (row.blank("precision")) draft.refuse("the precision is not printed");
  bridge_defaults(draft);
  if (const auto sharding = row.text("sharding"); sharding.starts_with("FSDP=") && sharding != "FSDP=0") {
    recipe.state_sharding = StateSharding::kZero3;
  } else {
    megatron_layout(draft);
  }
  measure_throughput(draft, row, kCausalHalf);
  draft.run.group = std::string(row.text("gpu"));
  file(std::move(draft), row, reading);
}

}  // namespace cpfit::published
