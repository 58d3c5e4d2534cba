// Private to calibrate/read: the columns that the training tables share, and a draft of a run that an adapter completes.
#pragma once

#include <optional>
#include <string>

#include "calibrate/read/published_row.h"
#include "model/rates/dense_peak.h"

namespace cpfit::published {

/// A run under construction. The first thing that makes it inexpressible is kept as the reason to skip the row.
struct Draft {
  MeasuredRun run;
  std::optional<std::string> refused;

  [[nodiscard]] Recipe& recipe() { return run.scenario.base; }
  [[nodiscard]] Training& training() { return run.scenario.training; }
  [[nodiscard]] Architecture& model() { return run.scenario.model; }
  void refuse(std::string reason) {
    if (!refused) refused = std::move(reason);
  }
  void not_said(const std::string& field) { run.unknown.push_back(field); }
  void measure(Metric metric, std::optional<double> value) {
    if (value) run.measured.emplace_back(metric, *value);
  }
};

/// Reads the common columns: label, model shape where printed, sequence, micro-batch, global batch, degrees, precision.
/// Degrees the row leaves blank become 1 and are listed as unknown; dp follows from the GPUs where the others are printed.
/// `cluster`: preset of the place where it ran; empty: as the gpu column says.
[[nodiscard]] Draft draft_of(const Row& row, Reading& reading, const std::string& framework, std::string cluster = {});

/// Checks that the degrees multiply to the GPUs, derives dp, the global batch and the cluster, and files the run or its reason.
/// Steps shared by every adapter; called last.
void file(Draft draft, const Row& row, Reading& reading);

/// Adds tokens/s/GPU, step time, TFLOP/s and MFU from the common columns, as far as printed.
void measure_throughput(Draft& draft, const Row& row, const FlopsConvention& convention);

/// What the 24.x releases and the 25.04 recipes of NeMo share: bf16 gradients, distributed optimizer, both overlaps, user-buffer
/// TP overlap, delayed scaling (frameworks.md 3.2).
void nemo_defaults(Draft& draft);
/// The same of Megatron-Bridge's recipes: nothing recomputed where nothing is said (3.3), bf16 gradients, moments in bf16 beside
/// bf16 weights; no user buffers in the NVFP4 recipes.
void bridge_defaults(Draft& draft);
/// Embedding and loss take one layer's place each where the layers alone do not divide (126 + 2 slots of Llama 405B).
void megatron_layout(Draft& draft);

/// "none", "full", "selective" and how the sources phrase them; nothing when the cell is blank or says something else.
[[nodiscard]] std::optional<Recompute> recompute_of(std::string_view text);
/// "BF16", "FP8 hybrid tensorwise", "MXFP8", "NVFP4", "Float8 linear (BF16 attention)"; blank counts as BF16.
[[nodiscard]] std::optional<Precision> precision_of(std::string_view text);

/// Architectures: a preset by the tables' arch_key, or by the model's printed name, or from the row's own columns.
[[nodiscard]] std::optional<Architecture> model_by_key(std::string_view arch_key);
[[nodiscard]] std::optional<Architecture> model_by_name(std::string_view printed);
/// By the presets' own names, by the sizes of the Llama and GPT-3 families, or from layers, hidden size and heads of the row.
[[nodiscard]] std::optional<Architecture> model_of_columns(const Row& row);
/// What the row prints wins over the preset: truncated models, other KV heads, padded vocabularies.
[[nodiscard]] Architecture with_printed_shape(Architecture model, const Row& row);
/// A GPT of Megatron: GELU, biases, LayerNorm, learned positions, tied embeddings, F = 4H unless printed.
[[nodiscard]] Architecture gpt_model(std::int64_t layers, std::int64_t hidden, std::int64_t heads, std::int64_t vocab,
                                     std::int64_t positions);
/// A Llama: RMSNorm, SwiGLU, RoPE, untied, no biases.
[[nodiscard]] Architecture llama_model(std::int64_t layers, std::int64_t hidden, std::int64_t ffn, std::int64_t heads,
                                       std::int64_t kv_heads, std::int64_t vocab);
[[nodiscard]] bool is_mixture_of_experts(std::string_view model);

}  // namespace cpfit::published
