// The tensors that one transformer layer saves for its backward, for `attention` copies of its attention half and `mlp`
// copies of its MLP half (at the peak inside a layer the other half may not exist yet, or no longer).
// Source: cp_model.md B.3 (Korthikanti et al., TransformerEngine), frameworks.md 1.4 for FP8.
#pragma once

#include "model/memory/stage_figures.h"
#include "model/memory/tensor_text.h"

namespace cpfit {

/// Which parts of a layer's tensors a walk emits; recompute = selective keeps some and drops others.
struct LayerParts {
  bool norm_outputs = true;
  bool mlp = true;  // all of the MLP half but the residual that its norm reads
  bool activation_product = true;
  bool unfused_scores = true;
};

template <class Sink>
void norm_tensors(const RecipeFigures& f, Component component, double copies, const LayerParts& parts, Sink& sink) {
  const double elements = copies * f.tokens * f.hidden / f.sp;
  const double statistics = f.layer_norm ? 8.0 : 4.0;
  sink({component, "norm.input", "2*T*H/(tp if SP) per norm", "cp_model B.3"}, 2.0 * elements);
  if (parts.norm_outputs) {
    sink({component, "norm.output", "e*T*H/(tp if SP) per norm, e = 2 or the FP8 copy's bytes", "cp_model B.3, frameworks 1.4"},
         f.linear_input * elements);
  }
  sink({component, "norm.copies", "(norm_activation_bytes/2 - 4)*T*H/(tp if SP) per norm", "rule set"},
       f.extra_hidden_norm * elements);
  sink({component, "norm.statistics", "4 (RMS) or 8 (layer norm) bytes per token, norm and layer", "cp_model B.3"},
       statistics * copies * f.tokens / f.sp);
  if (f.hidden_dropout) sink({component, "dropout.mask", "T*H/(tp if SP) per dropout", "Korthikanti 2022"}, elements);
  if (f.post_norms > 0.0) {
    sink({component, "post_norm.input", "2*T*H/(tp if SP) per post-norm", "derived"}, f.post_norms * elements);
  }
}

template <class Sink>
void attention_tensors(const RecipeFigures& f, Component component, double copies, const LayerParts& parts, Sink& sink) {
  norm_tensors(f, component, copies, parts, sink);
  sink({component, "attention.query", "2*T*h_q*d per layer", "cp_model B.3"}, copies * f.q_bytes());
  sink({component, "attention.key_value", "4*T*h_kv*d per layer", "cp_model B.3"}, copies * f.kv_bytes());
  if (f.qk_norm) {
    // q and k before the norm, and their contiguous copies (golden values of a qk-layernorm run: 4 tensors of T*H*2/tp)
    sink({component, "qk_norm.input", "2*2*T*(h_q+h_kv)*d per layer", "golden values"},
         copies * (2.0 * f.q_bytes() + f.kv_bytes()));
  }
  sink({component, "attention.output", "2*T*h_q*d per layer", "cp_model B.3"}, copies * f.q_bytes());
  if (f.a2a > 1.0 && f.rules->a2a_keeps_both_outputs && f.fp8_attention_output == 0.0) {
    // The kernel's backward wants the heads together, the projection's the sequence: one output on either side of the exchange.
    sink({component, "attention.output_before_exchange",
          "e*T*h_q*d per layer with a head exchange, e = 2 or the FP8 copy's bytes", "cp_model B.3"},
         copies * f.linear_input * f.tokens * f.query);
  }
  const bool flash =
      f.backend == AttentionBackend::kFlash2 || f.backend == AttentionBackend::kFlash3 || f.backend == AttentionBackend::kTriton;
  if (flash && f.rules->sequence_first_attention && f.micro_batch > 1.0) {
    // FlashAttention works on [b, s]; its output is kept and its [s, b] copy is the projection's input. At b = 1 both are one.
    sink({component, "attention.output_transposed", "2*T*h_q*d per layer when b > 1", "rule set"}, copies * f.q_bytes());
  }
  if (f.fp8_attention_output > 0.0) {
    sink({component, "attention.output_fp8", "T*h_q*d per layer, delayed scaling", "frameworks 1.4"},
         copies * f.fp8_attention_output * f.tokens * f.query);
  }
  if (f.backend == AttentionBackend::kUnfused) {
    if (parts.unfused_scores) {
      // softmax output 2; with dropout also its mask 1 and the dropped output 2
      const double bytes = f.attention_dropout ? 5.0 : 2.0;
      sink({component, "attention.scores", "(2, or 5 with dropout)*T*h_q*s/cp per layer", "Korthikanti 2022"},
           copies * bytes * f.tokens * f.query_heads * f.sequence / f.cp);
    }
  } else {
    sink({component, "attention.log_sum_exp", "4*T*h_q per layer", "cp_model B.3"}, copies * f.lse_bytes());
  }
}

/// Between the MLP's two products.
template <class Sink>
void mlp_width_tensors(const RecipeFigures& f, Component component, double copies, const LayerParts& parts, Sink& sink) {
  const double elements = copies * f.tokens * f.ffn;
  sink({component, "mlp.in", "2*T*F per layer, 4*T*F when gated", "cp_model B.3"}, (f.gated ? 4.0 : 2.0) * elements);
  if (!parts.activation_product) return;
  sink({component, "mlp.product", "e*T*F per layer, e = 2 or the FP8 copy's bytes", "cp_model B.3, frameworks 1.4"},
       f.linear_input * elements);
  if (f.gated) {
    sink({component, "mlp.unfused_copies", "(mlp_activation_bytes - 6)*T*F per layer", "rule set"},
         (f.rules->mlp_activation_bytes_per_ffn - 6.0) * elements);
  }
}

template <class Sink>
void mlp_tensors(const RecipeFigures& f, Component component, double copies, const LayerParts& parts, Sink& sink) {
  LayerParts of_norm = parts;
  of_norm.norm_outputs = parts.norm_outputs && parts.mlp;
  norm_tensors(f, component, copies, of_norm, sink);
  if (parts.mlp) mlp_width_tensors(f, component, copies, parts, sink);
}

/// What a run of the MLP half alone makes anew; the residual that its norm reads was kept.
template <class Sink>
void mlp_again_tensors(const RecipeFigures& f, Component component, double copies, Sink& sink) {
  const double hidden = copies * f.tokens * f.hidden / f.sp;
  sink({component, "norm.output", "e*T*H/(tp if SP), e = 2 or the FP8 copy's bytes", "cp_model B.3, frameworks 1.4"},
       f.linear_input * hidden);
  mlp_width_tensors(f, component, copies, LayerParts{}, sink);
  sink({component, "mlp.output", "2*T*H/(tp if SP)", "Megatron random.py CheckpointFunction.backward holds the outputs"},
       2.0 * hidden);
}

template <class Sink>
void layer_tensors(const RecipeFigures& f, Component component, LayerHalves copies, const LayerParts& parts, Sink& sink) {
  attention_tensors(f, component, copies.attention, parts, sink);
  mlp_tensors(f, component, copies.mlp, parts, sink);
}

/// torchtitan's op-level selective checkpointing: the layer's input, attention's output and every second matmul's output.
template <class Sink>
void second_matmul_tensors(const RecipeFigures& f, LayerHalves copies, Sink& sink) {
  constexpr Component kSaved = Component::kActivations;
  sink({kSaved, "layer.input", "2*T*H/(tp if SP) per layer", "frameworks 4"}, copies.attention * f.hidden_shard());
  sink({kSaved, "attention.output", "2*T*h_q*d per layer", "frameworks 4"}, copies.attention * f.q_bytes());
  sink({kSaved, "attention.log_sum_exp", "4*T*h_q per layer", "frameworks 4"}, copies.attention * f.lse_bytes());
  sink({kSaved, "attention.query_and_value", "2*T*(h_q+h_kv)*d per layer: wq and wv kept, wk and wo repeated", "frameworks 4"},
       copies.attention * (f.q_bytes() + f.kv_bytes() / 2.0));
  sink({kSaved, "mlp.w1", "2*T*F per layer: w1 and w2 kept, w3 repeated", "frameworks 4"}, copies.mlp * 2.0 * f.tokens * f.ffn);
  if (!f.rules->fused_elementwise) {
    // The policy keeps the product, but backward reads it nowhere: what a compiler fuses does not save it.
    sink({kSaved, "mlp.w2", "2*T*H/(tp if SP) per layer, unless compiled", "frameworks 4"}, copies.mlp * f.hidden_shard());
  }
}

/// What `copies` layers save under the recipe's recompute choice, apart from fully recomputed layers.
template <class Sink>
void saved_layer_tensors(const RecipeFigures& f, const Recompute& recompute, LayerHalves copies, Sink& sink) {
  LayerParts parts;
  parts.mlp = recompute.kind != RecomputeKind::kMlp;
  if (recompute.kind == RecomputeKind::kSelective) {
    const SelectiveRecompute kind = f.rules->selective_recompute;
    if (kind == SelectiveRecompute::kEverySecondMatmul) return second_matmul_tensors(f, copies, sink);
    if (kind == SelectiveRecompute::kCoreAttention) parts.unfused_scores = false;
    if (kind == SelectiveRecompute::kNormsAndActivation) parts.norm_outputs = parts.activation_product = false;
  }
  layer_tensors(f, Component::kActivations, copies, parts, sink);
}

}  // namespace cpfit
