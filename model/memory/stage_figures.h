// The numbers the ledger's formulas are made of, worked out once per recipe and once per stage: shards, widths on the rank,
// parameter counts, element sizes. Doubles throughout: they hold every count below 2^53 exactly.
#pragma once

#include <cstdint>

#include "model/framework/rule_set.h"
#include "model/memory/in_flight.h"
#include "model/memory/ledger.h"

namespace cpfit {

/// Halves of layers: how many attention halves and MLP halves of a layer exist, or the bytes of one of each.
struct LayerHalves {
  double attention = 0;
  double mlp = 0;
};

/// Symbols of cp_model.md section 0 on the right. "Rank" values are already divided by tp.
struct RecipeFigures {
  const RuleSet* rules = nullptr;
  AttentionBackend backend = AttentionBackend::kCudnn;

  double gemm_workspace = 0;   // of the last stage, whose head is a product of PyTorch
  double layer_workspace = 0;  // of the others: all products may be TransformerEngine's
  double tokens = 0;           // T = b*s/cp
  double micro_batch = 0;      // b
  double sequence = 0;         // s
  double hidden = 0;           // H
  double ffn = 0;              // F/tp
  double query_heads = 0;      // h_q
  double kv_heads = 0;         // h_kv, at least one per rank
  double query = 0;            // h_q*d
  double kv = 0;               // h_kv*d, one of K or V
  double vocab = 0;            // V/tp, padded
  double tp = 1, cp = 1, pp = 1, dp = 1, vpp = 1;
  double a2a = 1;            // ranks of the head exchange, a part of cp
  double sp = 1;             // what sequence parallelism divides by: tp, or 1 without
  double state_shards = 1;   // D = dp*cp, or the ranks that share one copy of the states
  double micro_batches = 1;  // m per step and dp rank
  bool gated = false;
  bool layer_norm = false;  // LayerNorm keeps mean and rstd, RMSNorm rstd
  bool qk_norm = false;
  bool causal = true;
  bool hidden_dropout = false;
  bool attention_dropout = false;
  double post_norms = 0;            // norms per layer beyond two
  double linear_input = 2;          // bytes per element of what a linear layer saves of its input (FP8: 1)
  double fp8_attention_output = 0;  // bytes per element of the copy the output projection keeps (delayed scaling)

  // Bytes per parameter.
  double linear_weight = 2, other_weight = 2, weight_cache = 0;
  double gradient = 4, optimizer = 12, step_gradient = 0;

  // Parameters of one layer on the rank.
  double layer_linear = 0;  // matrices
  double layer_other = 0;   // biases and norms
  double qkv_weight = 0, output_weight = 0, mlp_in_weight = 0, mlp_out_weight = 0;
  double embedding = 0;     // V*H/tp
  double padding_unit = 1;  // the gradient buffer ends at a multiple of lcm(D, 128) elements
  double positions = 0;
  double final_norm = 0;
  bool tied = false;
  LayerHalves saved_unit;        // bytes that one layer saves, and of what runs again: sums of the walks in layer_tensors.h
  LayerHalves again_unit;        // bytes of one layer that backward runs again (full, block and mlp)
  double extra_hidden_norm = 0;  // bytes per H element and norm beyond input and output

  [[nodiscard]] double hidden_full() const { return tokens * hidden * 2.0; }     // one hidden tensor, not sharded over tp
  [[nodiscard]] double hidden_shard() const { return hidden_full() / sp; }       // as it travels between layers
  [[nodiscard]] double q_bytes() const { return tokens * query * 2.0; }          // Q, also O, dO, dQ
  [[nodiscard]] double kv_bytes() const { return 2.0 * tokens * kv * 2.0; }      // KV
  [[nodiscard]] double lse_bytes() const { return 4.0 * tokens * query_heads; }  // LSE
  [[nodiscard]] double logits() const { return tokens * vocab; }                 // count of logits on the rank
};

struct StageFigures {
  const RecipeFigures& at;  // outlives the stage's figures
  const Recipe& recipe;
  std::int32_t stage = 0;
  bool first = false, last = false;
  double layers = 0;  // of the stage
  InFlight in_flight{};
  double linear = 0;            // matrix parameters of the stage's layers
  double other = 0;             // biases, norms, positions
  double embedding_copies = 0;  // embedding and head matrices on the stage
  double parameters = 0;        // all of the rank, padded as the gradient buffer is

  double stored_layers = 0;  // layer activations saved whole
  double input_layers = 0;   // layers of which only the input is saved (full recompute)
};

[[nodiscard]] RecipeFigures recipe_figures(const MemoryCase& at);
[[nodiscard]] StageFigures stage_figures(const MemoryCase& at, const RecipeFigures& figures, std::int32_t stage);

}  // namespace cpfit
