// Sweeps over layouts on one cluster: vTrain, InternEvo, llm-foundry; the nanotron sweep has its own file.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "calibrate/read/published_adapters.h"

namespace cpfit::published {

void read_playbook_figure(const Row& row, Reading& reading) {
  reading.skip(row, "figure whose micro-batch and global batch are not printed");
}

void read_vtrain(const Row& row, Reading& reading) {
  Draft draft = draft_of(row, reading, "megatron-2021");
  Recipe& recipe = draft.recipe();
  constexpr std::int64_t kPaddedGpt2 = 51200;  // vocabulary of the repository's Megatron configurations
  draft.model() =
      gpt_model(row.integer("layers").value_or(0), row.integer("hidden").value_or(0), row.integer("heads").value_or(0),
                row.integer("vocab").value_or(kPaddedGpt2), row.integer("seq_len").value_or(0));
  draft.model().name = std::string(row.text("model"));
  draft.model().hidden_dropout = draft.model().attention_dropout = 0.1;
  draft.run.unknown.clear();
  recipe.precision = Precision::kFp16;
  recipe.recompute = {RecomputeKind::kFull, 0};
  recipe.sequence_parallel = false;
  recipe.state_sharding = StateSharding::kNone;
  draft.training().grad_dtype = GradDtype::kBf16;
  recipe.overlap_grad_reduce = recipe.overlap_param_gather = recipe.overlap_p2p = false;
  draft.run.conditions.push_back("Megatron-DeepSpeed: no gradient bucketing, no overlap, 1F1B, full recompute");
  draft.run.conditions.push_back("attention kernel: none fused, as in Megatron-DeepSpeed of that time");
  draft.measure(Metric::kStepSeconds, row.number("step_time_s"));
  draft.run.group = std::string(row.text("set"));
  file(std::move(draft), row, reading);
}

void read_internevo(const Row& row, Reading& reading) {
  Draft draft = draft_of(row, reading, "internevo", row.says("gpu", "A800") ? "internevo-a800" : "internevo-a100");
  Recipe& recipe = draft.recipe();
  draft.training().grad_dtype = GradDtype::kBf16;  // HybridZeroOptimizer reduces gradients in the parameters' 16 bits
  std::erase(draft.run.unknown, "pp");             // blank: no pipeline
  if (row.says("notes", "headline")) draft.refuse("tokens/s and TFLOP/s of one line come from different configurations");
  if (row.says("sharding", "fsdp")) recipe.state_sharding = StateSharding::kZero3;
  const std::int64_t group = std::int64_t{recipe.tp} * recipe.pp;
  const std::int64_t dp = group > 0 ? draft.run.gpus / group : 0;
  if (const auto micro_batches = row.integer("micro_num")) {
    draft.training().global_batch = dp * recipe.micro_batch * *micro_batches;
  }
  measure_throughput(draft, row, {AttentionCount::kFull, true, recipe.recompute.kind == RecomputeKind::kFull});
  if (const auto gigabytes = row.number("peak_mem_gb")) draft.measure(Metric::kReservedBytes, *gigabytes * 1e9);
  draft.run.group = std::string(row.text("gpu"));
  file(std::move(draft), row, reading);
}

void read_llm_foundry(const Row& row, Reading& reading) {
  const std::string cluster = row.says("gpu", "a100_40gb") ? "mosaic-a100-40gb" : row.says("gpu", "a100") ? "mosaic-a100" : "";
  Draft draft = draft_of(row, reading, "llm-foundry", cluster);
  Recipe& recipe = draft.recipe();
  draft.model().max_positions = draft.training().sequence.count();  // the parameter counts grow with max_seq_len
  recipe.state_sharding = row.says("sharding", "FULL_SHARD") ? StateSharding::kZero3 : StateSharding::kZero2;
  draft.training().vocab_divisor = 1;
  measure_throughput(draft, row, {AttentionCount::kFull, true, false});
  draft.run.peak_flops_for_mfu = dense_peak(draft.run.scenario.cluster.gpu, recipe.precision).value();
  draft.run.group = std::string(row.text("gpu"));
  file(std::move(draft), row, reading);
}

}  // namespace cpfit::published
