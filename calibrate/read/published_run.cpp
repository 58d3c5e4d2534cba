#include "calibrate/read/published_run.h"

#include <fmt/format.h>

#include <algorithm>

namespace cpfit::published {

namespace {

std::optional<Architecture> model_of_row(const Row& row) {
  auto model = model_by_key(row.text("arch_key"));
  if (!model) model = model_by_name(row.text("model"));
  if (!model) return std::nullopt;
  return with_printed_shape(std::move(*model), row);
}

std::int32_t degree(const Row& row, std::string_view column, Draft& draft) {
  if (const auto value = row.integer(column); value && *value > 0) return static_cast<std::int32_t>(*value);
  draft.not_said(std::string(column));
  return 1;
}

}  // namespace

std::optional<Recompute> recompute_of(std::string_view text) {
  if (text.empty()) return std::nullopt;
  if (contains_word(text, "none") || text == "no") return Recompute{};
  if (contains_word(text, "full") && !contains_word(text, "selective")) return Recompute{RecomputeKind::kFull, 0};
  if (contains_word(text, "selective")) return Recompute{RecomputeKind::kSelective, 0};
  return std::nullopt;
}

std::optional<Precision> precision_of(std::string_view text) {
  if (contains_word(text, "nvfp4")) return Precision::kNvfp4;
  if (contains_word(text, "mxfp8") || contains_word(text, "fp8-mx")) return Precision::kMxfp8;
  if (contains_word(text, "blockwise") || contains_word(text, "fp8-sc") || contains_word(text, "subchannel"))
    return Precision::kFp8Block;
  if (contains_word(text, "fp8") || contains_word(text, "float8")) return Precision::kFp8Current;
  if (contains_word(text, "bf16") || contains_word(text, "bfloat16") || text.empty()) return Precision::kBf16;
  if (contains_word(text, "fp16")) return Precision::kFp16;
  return std::nullopt;
}

Draft draft_of(const Row& row, Reading& reading, const std::string& framework, std::string preset) {
  Draft draft;
  MeasuredRun& run = draft.run;
  run.line = row.line();
  run.label = std::string(row.text("model"));
  Recipe& recipe = draft.recipe();
  recipe.framework = framework;

  if (is_mixture_of_experts(row.text("model"))) draft.refuse("mixture-of-experts model");
  if (auto model = model_of_row(row)) draft.model() = std::move(*model);

  if (const auto tokens = row.integer("seq_len")) draft.training().sequence = Tokens(*tokens);
  draft.training().global_batch = row.integer("global_batch").value_or(0);
  recipe.tp = degree(row, "tp", draft);
  recipe.pp = degree(row, "pp", draft);
  recipe.cp = static_cast<std::int32_t>(std::max<std::int64_t>(1, row.integer("cp").value_or(1)));
  recipe.vpp = static_cast<std::int32_t>(std::max<std::int64_t>(1, row.integer("vpp").value_or(1)));
  if (recipe.pp > 1 && row.blank("vpp")) draft.not_said("vpp");
  recipe.micro_batch = degree(row, "micro_batch", draft);
  recipe.dp = 0;
  if (const auto printed = precision_of(row.text("precision"))) {
    recipe.precision = *printed;
  } else {
    draft.refuse(fmt::format("precision \"{}\" is not one cpfit knows", row.text("precision")));
  }
  if (const auto printed = recompute_of(row.text("recompute"))) {
    recipe.recompute = *printed;
  } else {
    draft.not_said("recompute");
  }

  run.gpus = row.integer("nodes_or_gpus").value_or(0);
  if (preset.empty()) preset = cluster_preset_of(row.text("gpu"));
  if (preset.empty()) {
    draft.refuse(row.blank("gpu") ? "the GPU is not printed" : fmt::format("no preset for the device \"{}\"", row.text("gpu")));
  } else if (auto cluster = reading.cluster(preset, std::max<std::int64_t>(1, run.gpus))) {
    run.scenario.cluster = std::move(*cluster);
  } else {
    draft.refuse(fmt::format("no cluster of {} GPUs can be built from the preset \"{}\"", run.gpus, preset));
  }
  return draft;
}

void measure_throughput(Draft& draft, const Row& row, const FlopsConvention& convention) {
  MeasuredRun& run = draft.run;
  run.flops = convention;
  run.peak_flops_for_mfu = dense_peak(run.scenario.cluster.gpu, draft.recipe().precision).value();
  draft.measure(Metric::kStepSeconds, row.figure("step_time_s"));
  draft.measure(Metric::kTokensPerSecondPerGpu, row.figure("tokens_per_s_per_gpu"));
  draft.measure(Metric::kTflopsPerGpu, row.figure("tflops_per_gpu"));
  draft.measure(Metric::kMfu, row.share("mfu"));
}

void file(Draft draft, const Row& row, Reading& reading) {
  MeasuredRun& run = draft.run;
  Recipe& recipe = draft.recipe();
  if (draft.model().layers <= 0 || draft.model().hidden <= 0 || draft.model().heads <= 0) {
    draft.refuse(row.blank("model") ? "the model is not printed"
                                    : fmt::format("the shape of the model \"{}\" is not known", row.text("model")));
  }
  if (draft.training().sequence.count() <= 0) draft.refuse("the sequence length is not printed");
  if (run.measured.empty() && !run.died) draft.refuse("no figure that cpfit predicts");

  const std::int64_t group = std::int64_t{recipe.tp} * recipe.cp * recipe.pp;
  const bool degrees_known = std::find(run.unknown.begin(), run.unknown.end(), "tp") == run.unknown.end();
  if (run.gpus == 0 && recipe.dp > 0) run.gpus = group * recipe.dp;
  if (run.gpus == 0) draft.refuse("the number of GPUs is not printed");
  if (recipe.dp == 0 && run.gpus > 0) {
    if (run.gpus % group != 0) {
      draft.refuse(fmt::format("tp*cp*pp does not divide the GPUs"));
    } else {
      recipe.dp = static_cast<std::int32_t>(run.gpus / group);
    }
  }
  if (degrees_known && recipe.world() != run.gpus) draft.refuse("tp*cp*pp*dp as printed differs from the GPUs");
  Training& training = draft.training();
  if (training.global_batch <= 0) draft.refuse("the global batch is not printed");
  const std::int64_t slice = std::int64_t{recipe.dp} * recipe.micro_batch;
  if (slice > 0 && training.global_batch % slice != 0 && run.unknown.empty()) {
    draft.refuse("the global batch is not a multiple of dp * micro-batch");
  }
  if (recipe.vpp > 1) recipe.schedule = Schedule::kInterleaved;
  if (draft.refused) {
    reading.skip(row, *std::move(draft.refused));
    return;
  }
  run.label = fmt::format("{} s={} {}", draft.model().name.empty() ? run.label : draft.model().name, training.sequence.count(),
                          to_text(recipe));
  run.scenario.name = run.label;
  reading.add(std::move(run));
}

}  // namespace cpfit::published
