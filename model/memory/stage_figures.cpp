#include "model/memory/stage_figures.h"

#include "model/memory/state_tensors.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace cpfit {
namespace {

double ratio(std::int64_t count, std::int32_t by) { return static_cast<double>(count) / by; }

bool is_fp8(Precision precision) { return precision != Precision::kBf16 && precision != Precision::kFp16; }

// Bytes per element of a low-precision operand with its scales (frameworks.md 1.2).
double low_precision_bytes(Precision precision) {
  switch (precision) {
    case Precision::kFp8Delayed:
    case Precision::kFp8Current:
      return 1.0;
    case Precision::kFp8Block:
      return 1.0 + 4.0 / 128.0;
    case Precision::kMxfp8:
      return 1.0 + 1.0 / 32.0;
    case Precision::kNvfp4:
      return 0.5 + 1.0 / 16.0;
    case Precision::kBf16:
    case Precision::kFp16:
      break;
  }
  return 2.0;
}

// Bytes per parameter of the quantised weight with what its transpose costs (frameworks.md 1.2, 1.3).
double quantised_weight_bytes(Precision precision, bool hopper) {
  switch (precision) {
    case Precision::kFp8Delayed:
    case Precision::kFp8Current:
      return hopper ? 2.0 : 1.0;  // Hopper keeps a transposed copy
    case Precision::kFp8Block:
      return 2.0 + 8.0 / 16384.0;  // both directions, 128x128 scales
    case Precision::kMxfp8:
      return 2.0625;  // two different tensors
    case Precision::kNvfp4:
      return 1.125;
    case Precision::kBf16:
    case Precision::kFp16:
      break;
  }
  return 2.0;
}

double optimizer_bytes(OptimizerKind kind) {
  switch (kind) {
    case OptimizerKind::kAdam:
      return 12.0;  // fp32 master 4, moments 8
    case OptimizerKind::kAdamPrecisionAware:
      return 10.0;  // master kept as bf16 + 16-bit remainder
    case OptimizerKind::kSgdMomentum:
      return 8.0;
  }
  return 12.0;
}

void set_state_bytes(const MemoryCase& at, RecipeFigures& f) {
  const Precision precision = at.recipe.precision;
  const bool zero3 = at.recipe.state_sharding == StateSharding::kZero3;
  f.gradient = at.training.grad_dtype == GradDtype::kFp32 ? 4.0 : 2.0;
  f.optimizer = optimizer_bytes(at.training.optimizer);
  if (precision == Precision::kFp16) {
    f.gradient = 2.0;
    f.step_gradient = 4.0;  // fp32 copy of the gradients for the step
  } else if (f.gradient < 4.0 && at.training.optimizer != OptimizerKind::kAdamPrecisionAware && !zero3) {
    f.step_gradient = 4.0;
  }
  if (is_fp8(precision) && !zero3) {
    const double quantised = quantised_weight_bytes(precision, at.gpu.generation == "hopper");
    if (at.rules.fp8_param_gather && precision != Precision::kFp8Block) {
      f.linear_weight = quantised;
    } else if (at.rules.fp8_weight_cache) {
      f.weight_cache = quantised;
    }
  }
  if (zero3) {
    f.linear_weight = f.other_weight = at.rules.zero3_weight_bytes;
    f.optimizer = std::max(0.0, at.rules.zero3_optimizer_bytes - (12.0 - f.optimizer));
  }
  if (at.rules.optimizer_on_host) f.optimizer = 0.0;
}

void set_parameters(const MemoryCase& at, RecipeFigures& f) {
  const ParameterCount count = count_parameters(at.model);
  const LayerParameters& layer = count.layer;
  const std::int32_t tp = at.recipe.tp;
  // KV heads are replicated when tp exceeds them: the rank then holds one whole head of each.
  const double head_dim = static_cast<double>(at.model.head_dim);
  f.qkv_weight = f.hidden * (f.query + 2.0 * f.kv);
  f.output_weight = ratio(layer.attention_output, tp);
  f.mlp_in_weight = ratio(layer.mlp_in, tp);
  f.mlp_out_weight = ratio(layer.mlp_out, tp);
  f.layer_linear = f.qkv_weight + f.output_weight + f.mlp_in_weight + f.mlp_out_weight;
  const double qkv_bias = layer.qkv_bias > 0 ? (f.query_heads + 2.0 * f.kv_heads) * head_dim : 0.0;
  f.layer_other = qkv_bias + ratio(layer.mlp_in_bias, tp) + static_cast<double>(layer.replicated());
  f.embedding = f.vocab * f.hidden;
  f.positions = static_cast<double>(count.positions);
  f.final_norm = static_cast<double>(count.final_norm);
  f.tied = at.model.tied_embeddings;
}

void set_layer_units(const Recompute& recompute, RecipeFigures& f) {
  TotalSink attention, mlp;
  saved_layer_tensors(f, recompute, {1.0, 0.0}, attention);
  saved_layer_tensors(f, recompute, {0.0, 1.0}, mlp);
  f.saved_unit = {attention.total, mlp.total};
  if (recompute.kind == RecomputeKind::kNone) return;
  attention.total = mlp.total = 0.0;
  if (recompute.kind == RecomputeKind::kMlp) {
    mlp_again_tensors(f, Component::kRecompute, 1.0, mlp);
  } else {
    layer_tensors(f, Component::kRecompute, {1.0, 0.0}, LayerParts{}, attention);
    layer_tensors(f, Component::kRecompute, {0.0, 1.0}, LayerParts{}, mlp);
  }
  f.again_unit = {attention.total, mlp.total};
}

}  // namespace

RecipeFigures recipe_figures(const MemoryCase& at) {
  const Architecture& model = at.model;
  const Recipe& recipe = at.recipe;
  RecipeFigures f;
  f.rules = &at.rules;
  f.backend = attention_backend_on(at.rules, at.gpu.generation, model.head_dim);
  const bool user_buffers =
      recipe.overlap_tp && recipe.tp > 1 && recipe.sequence_parallel && at.rules.tp_overlap == TpOverlap::kUserBuffers;
  f.gemm_workspace = gemm_workspace_bytes(at.rules, at.gpu.generation, user_buffers, true);
  f.layer_workspace = gemm_workspace_bytes(at.rules, at.gpu.generation, user_buffers,
                                           !at.rules.te_workspace || f.backend == AttentionBackend::kUnfused);
  f.micro_batch = recipe.micro_batch;
  f.sequence = static_cast<double>(at.training.sequence.count());
  f.tokens = f.micro_batch * f.sequence / recipe.cp;
  f.hidden = static_cast<double>(model.hidden);
  f.ffn = ratio(model.ffn_hidden, recipe.tp);
  f.query_heads = ratio(model.heads, recipe.tp);
  f.kv_heads = std::max(1.0, ratio(model.kv_heads, recipe.tp));
  f.query = f.query_heads * static_cast<double>(model.head_dim);
  f.kv = f.kv_heads * static_cast<double>(model.head_dim);
  f.vocab = ratio(padded_vocab(model.vocab, at.training.vocab_divisor, recipe.tp), recipe.tp);
  f.tp = recipe.tp;
  f.cp = recipe.cp;
  f.a2a = a2a_ranks(recipe);
  f.pp = recipe.pp;
  f.dp = recipe.dp;
  f.vpp = recipe.vpp;
  f.sp = recipe.sequence_parallel ? f.tp : 1.0;
  f.state_shards = static_cast<double>(shard_ranks(recipe));
  f.micro_batches = std::max<double>(1.0, std::floor(static_cast<double>(at.training.global_batch) / (f.dp * f.micro_batch)));
  f.gated = model.gated();
  f.layer_norm = model.norm == Norm::kLayer;
  f.qk_norm = model.qk_norm;
  f.causal = at.training.mask.kind != MaskKind::kFull;
  f.hidden_dropout = model.hidden_dropout > 0.0;
  f.attention_dropout = model.attention_dropout > 0.0;
  f.post_norms = static_cast<double>(std::max<std::int64_t>(0, model.norms_per_layer - 2));
  f.extra_hidden_norm = at.rules.norm_activation_bytes_per_hidden / 2.0 - 4.0;
  if (is_fp8(recipe.precision) && at.rules.fp8_saves_low_precision) {
    f.linear_input = low_precision_bytes(recipe.precision);
    if (recipe.precision == Precision::kFp8Delayed) f.fp8_attention_output = 1.0;
  }
  if (at.rules.grad_buffer_padding && recipe.state_sharding != StateSharding::kNone) {
    f.padding_unit = static_cast<double>(std::lcm(shard_ranks(recipe), std::int64_t{128}));
  }
  set_state_bytes(at, f);
  set_parameters(at, f);
  set_layer_units(recipe.recompute, f);
  return f;
}

StageFigures stage_figures(const MemoryCase& at, const RecipeFigures& figures, std::int32_t stage) {
  const Recipe& recipe = at.recipe;
  StageFigures f{figures, recipe};
  f.stage = stage;
  f.first = stage == 0;
  f.last = stage == recipe.pp - 1;
  f.layers = at.layout.layers_of_stage[static_cast<std::size_t>(stage)];
  f.in_flight = in_flight(recipe, at.layout, stage, static_cast<std::int64_t>(figures.micro_batches));

  f.linear = f.layers * figures.layer_linear;
  f.other = f.layers * figures.layer_other + (f.first ? figures.positions : 0.0) + (f.last ? figures.final_norm : 0.0);
  // A tied model holds one matrix when both ends share a stage, else a copy on each.
  f.embedding_copies = (f.first ? 1.0 : 0.0) + (f.last ? 1.0 : 0.0);
  if (figures.tied && f.first && f.last) f.embedding_copies = 1.0;
  f.parameters = f.linear + f.other + f.embedding_copies * figures.embedding;
  if (figures.padding_unit > 1.0) f.parameters = std::ceil(f.parameters / figures.padding_unit) * figures.padding_unit;

  f.stored_layers = f.in_flight.layers;
  if (recipe.recompute.kind == RecomputeKind::kFull) {
    f.stored_layers = 0.0;
  } else if (recipe.recompute.kind == RecomputeKind::kBlock && f.layers > 0.0) {
    const double repeated = std::min<double>(recipe.recompute.block_layers, f.layers);
    f.stored_layers *= 1.0 - repeated / f.layers;
  }
  f.input_layers = f.in_flight.layers - f.stored_layers;
  return f;
}

}  // namespace cpfit
