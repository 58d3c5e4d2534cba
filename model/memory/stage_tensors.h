// Every tensor alive on a rank of a pipeline stage at one moment of the step: the one walk that the sums and the lists share.
// Moments: model/memory/ledger.h. Source: cp_model.md B.3, B.4, B.7, B.11.
#pragma once

#include "model/memory/cp_tensors.h"
#include "model/memory/state_tensors.h"

namespace cpfit {

/// Saved activations of all in-flight micro-batches; `missing` halves of the last layer are not (or no longer) there.
template <class Sink>
void saved_tensors(const StageFigures& f, LayerHalves missing, Sink& sink) {
  const RecipeFigures& at = f.at;
  const bool stored = f.stored_layers > 0.0;
  const LayerHalves copies{f.stored_layers - (stored ? missing.attention : 0.0), f.stored_layers - (stored ? missing.mlp : 0.0)};
  if constexpr (Sink::kTotalsOnly) {
    sink.total += copies.attention * at.saved_unit.attention + copies.mlp * at.saved_unit.mlp;
  } else {
    saved_layer_tensors(at, f.recipe.recompute, copies, sink);
  }
  sink({Component::kActivations, "checkpoint.layer_input", "2*T*H/(tp if SP) per fully recomputed layer", "cp_model B.3"},
       f.input_layers * at.hidden_shard());
  if (at.rules->checkpoint_kept_attention > 0.0) {
    sink({Component::kActivations, "checkpoint.attention_output", "(Q + LSE) * kept share per fully recomputed layer",
          "frameworks 5.4"},
         f.input_layers * at.rules->checkpoint_kept_attention * (at.q_bytes() + at.lse_bytes()));
  }
}

/// ZB-H1: what the weight gradients of earlier micro-batches wait for, the inputs of the products (gathered, as
/// TransformerEngine keeps them) and the gradients of their outputs.
template <class Sink>
void pending_tensors(const StageFigures& f, Sink& sink) {
  const RecipeFigures& at = f.at;
  if (f.in_flight.pending <= 0.0) return;
  constexpr Component kHere = Component::kActivations;
  const double copies = f.in_flight.pending * f.layers, element = at.linear_input;
  sink({kHere, "weight_gradient.inputs", "T*(2*e*H + 2*h_q*d + e*F) per layer and micro-batch that waits", "cp_model B.6"},
       copies * (2.0 * element * at.tokens * at.hidden + at.q_bytes() + element * at.tokens * at.ffn));
  sink({kHere, "weight_gradient.output_gradients", "e*T*((h_q + 2*h_kv)*d + 2*H + 2*F gated, else F) per layer and micro-batch",
        "cp_model B.6"},
       copies * element * at.tokens * (at.query + 2.0 * at.kv + 2.0 * at.hidden + (at.gated ? 2.0 : 1.0) * at.ffn));
  if (f.last) {
    sink({kHere, "weight_gradient.head", "2*T*H/(tp if SP) + 2*T*V/tp per micro-batch that waits", "cp_model B.6"},
         f.in_flight.pending * (at.hidden_shard() + 2.0 * at.logits()));
  }
}

/// The unit being recomputed: a whole layer, its MLP half, or what selective recompute dropped.
template <class Sink>
void recomputed_tensors(const StageFigures& f, LayerHalves live, Sink& sink) {
  const RecipeFigures& at = f.at;
  constexpr Component kHere = Component::kRecompute;
  const Recompute& recompute = f.recipe.recompute;
  if (recompute.kind == RecomputeKind::kNone || f.layers <= 0.0) return;
  const SelectiveRecompute selective = at.rules->selective_recompute;
  if (recompute.kind != RecomputeKind::kSelective || selective == SelectiveRecompute::kEverySecondMatmul) {
    if constexpr (Sink::kTotalsOnly) {
      sink.total += live.attention * at.again_unit.attention + live.mlp * at.again_unit.mlp;
    } else if (recompute.kind == RecomputeKind::kMlp) {
      mlp_again_tensors(at, kHere, live.mlp, sink);
    } else {
      layer_tensors(at, kHere, live, LayerParts{}, sink);
    }
    return;
  }
  if (selective == SelectiveRecompute::kCoreAttention) {
    if (at.backend == AttentionBackend::kUnfused) {
      sink({kHere, "attention.scores", "(2, or 5 with dropout)*T*h_q*s/cp", "Korthikanti 2022"},
           live.attention * (at.attention_dropout ? 5.0 : 2.0) * at.tokens * at.query_heads * at.sequence / at.cp);
    }
    return;
  }
  const double norms = at.linear_input * at.tokens * at.hidden / at.sp;
  sink({kHere, "norm.output", "e*T*H/(tp if SP) per norm", "frameworks 5.3"}, (live.attention + live.mlp) * norms);
  sink({kHere, "mlp.product", "e*T*F", "frameworks 5.3"}, live.mlp * at.linear_input * at.tokens * at.ffn);
}

/// Inputs of the micro-batch, the embedding's dropout, pipeline buffers.
template <class Sink>
void stage_ends(const StageFigures& f, Sink& sink) {
  const RecipeFigures& at = f.at;
  if (f.first && at.hidden_dropout) {
    sink({Component::kActivations, "embedding.dropout_mask", "T*H/(tp if SP) per in-flight micro-batch", "cp_model B.4"},
         f.in_flight.first_chunk * at.tokens * at.hidden / at.sp);
  }
  if (f.first || f.last) {
    sink({Component::kActivations, "batch.tokens", "28*T: ids, positions, labels int64, loss mask fp32", "cp_model B.4"},
         28.0 * at.tokens);
    if (at.rules->dense_attention_mask) {
      sink({Component::kActivations, "batch.attention_mask", "b*s*s, and its 1/cp slice", "cp_model B.4"},
           at.micro_batch * at.sequence * at.sequence * (at.cp > 1.0 ? 1.0 + 1.0 / at.cp : 1.0));
    }
  }
  if (at.pp > 1.0 && receiving_chunks(f) > 0.0) {
    sink({Component::kPipeline, "pipeline.buffers", "pipeline_hidden_tensors*2*T*H/(tp if SP)", "rule set; cp_model B.6"},
         at.rules->pipeline_hidden_tensors * at.hidden_shard());
  }
}

/// Final norm, head and loss. GPipe keeps those of every micro-batch until its backward.
template <class Sink>
void loss_tensors(const StageFigures& f, double bytes_per_logit, Sink& sink) {
  const RecipeFigures& at = f.at;
  const double earlier = f.in_flight.micro_batches - 1.0;
  sink({Component::kLoss, "final_norm", "input and output, 2*2*T*H/(tp if SP)", "cp_model B.4"},
       (1.0 + earlier) * 2.0 * at.hidden_shard());
  sink({Component::kLoss, "loss.logits", "bytes per logit by phase * T*V/tp", "cp_model B.4; rule set"},
       bytes_per_logit * at.logits());
  sink({Component::kLoss, "loss.earlier_micro_batches", "loss_saved_bytes_per_logit*T*V/tp, GPipe", "derived"},
       earlier * at.rules->loss_saved_bytes_per_logit * at.logits());
}

template <class Sink>
void head_backward_tensors(const StageFigures& f, Sink& sink) {
  const RecipeFigures& at = f.at;
  constexpr Component kHere = Component::kTransient;
  sink({kHere, "head.weight_gradient", "2*V*H/tp", "accuracy_notes 2.1"}, 2.0 * at.embedding);
  sink({kHere, "head.input_gradient", "2*T*H", "derived"}, at.hidden_full());
  if (at.sp > 1.0) {
    sink({kHere, "head.gathered_input", "2*T*H with SP", "derived"}, at.hidden_full());
    sink(
        {kHere, "head.scattered_gradient", "2*T*H/tp with SP", "Megatron layers.py: reduce-scattered before the weight gradient"},
        at.hidden_shard());
  }
}

template <class Sink>
void mlp_backward_tensors(const StageFigures& f, Sink& sink) {
  const RecipeFigures& at = f.at;
  constexpr Component kHere = Component::kTransient;
  sink({kHere, "mlp.output_gradient", "2*T*H, gathered with SP", "derived"}, at.hidden_full());
  if (at.sp > 1.0) sink({kHere, "mlp.residual_gradient", "2*T*H/tp with SP", "derived"}, at.hidden_shard());
  sink({kHere, "mlp.in_gradient", "4*T*F gated, else 2*T*F", "derived; SimuMax stage 0"},
       (at.gated ? 4.0 : 2.0) * at.tokens * at.ffn);
  if (!at.rules->wgrad_scratch && f.recipe.state_sharding != StateSharding::kZero3) {
    sink({kHere, "mlp.weight_gradient", "2*max(fc1, fc2)", "derived"}, 2.0 * std::max(at.mlp_in_weight, at.mlp_out_weight));
  }
}

/// Attention's backward without CP's buffers: gradients of q, k, v and out, and the kernel's workspace (cp_model.md B.7).
template <class Sink>
void attention_backward_tensors(const StageFigures& f, Sink& sink) {
  const RecipeFigures& at = f.at;
  constexpr Component kHere = Component::kTransient;
  sink({kHere, "attention.residual_gradient", "2*T*H/(tp if SP)", "derived"}, at.hidden_shard());
  sink({kHere, "attention.gradients", "dO, dQ, dKV: 2*Q + KV", "derived"}, 2.0 * at.q_bytes() + at.kv_bytes());
  if (at.backend == AttentionBackend::kUnfused) {
    sink({kHere, "attention.score_gradients", "2*T*h_q*s/cp", "derived"}, 2.0 * at.tokens * at.query_heads * at.sequence / at.cp);
    return;
  }
  sink({Component::kWorkspace, "attention.dq_accumulator", "4*T*h_q*d + 4*T*h_q", "cp_model B.7"},
       2.0 * at.q_bytes() + at.lse_bytes());
  if (at.kv < at.query) {
    // FA2 expands dK and dV to the query heads in bf16; FA3 accumulates them in fp32 with the KV heads.
    const double expanded = at.backend == AttentionBackend::kFlash2 || at.backend == AttentionBackend::kTriton
                                ? 2.0 * at.q_bytes()
                                : 2.0 * at.kv_bytes();
    sink({Component::kWorkspace, "attention.grouped_gradients", "FA2: 2*Q expanded; else 2*KV in fp32", "cp_model B.7"},
         expanded);
  }
}

template <class Sink>
void forward_moment(const StageFigures& f, Moment moment, Sink& sink) {
  stage_ends(f, sink);
  pending_tensors(f, sink);
  if (moment == Moment::kAttentionForward) {
    saved_tensors(f, {0.0, 1.0}, sink);
    if (f.stored_layers <= 0.0) recomputed_tensors(f, {1.0, 0.0}, sink);  // the layer runs although little of it is kept
    cp_tensors(f.at, f.recipe, false, sink);
    unsharded_tensors(f, false, sink);
    return;
  }
  saved_tensors(f, {}, sink);
  if (moment == Moment::kLoss) {
    loss_tensors(f, f.at.rules->loss_bytes_per_logit, sink);
    unsharded_root(f, false, sink);
  } else {
    sink({Component::kPipeline, "stage.output", "2*T*H/(tp if SP)", "derived"}, f.at.hidden_shard());
    unsharded_tensors(f, false, sink);
  }
}

template <class Sink>
void backward_moment(const StageFigures& f, Moment moment, Sink& sink) {
  stage_ends(f, sink);
  pending_tensors(f, sink);
  if (moment == Moment::kHeadBackward) {
    saved_tensors(f, {}, sink);
    loss_tensors(f, f.at.rules->loss_backward_bytes_per_logit, sink);
    head_backward_tensors(f, sink);
    unsharded_root(f, true, sink);
    return;
  }
  unsharded_tensors(f, true, sink);
  if (moment == Moment::kMlpBackward) {
    saved_tensors(f, {}, sink);
    recomputed_tensors(f, {1.0, 1.0}, sink);
    mlp_backward_tensors(f, sink);
    return;
  }
  saved_tensors(f, {0.0, 1.0}, sink);
  recomputed_tensors(f, {1.0, 0.0}, sink);
  attention_backward_tensors(f, sink);
  cp_tensors(f.at, f.recipe, true, sink);
}

/// What is alive at `moment` beyond state_tensors().
template <class Sink>
void moment_tensors(const StageFigures& f, Moment moment, Sink& sink) {
  switch (moment) {
    case Moment::kBetweenSteps:
      return step_tensors(f, false, sink);
    case Moment::kOptimizerStep:
      return step_tensors(f, true, sink);
    case Moment::kAttentionForward:
    case Moment::kForwardEnd:
    case Moment::kLoss:
      return forward_moment(f, moment, sink);
    case Moment::kHeadBackward:
    case Moment::kMlpBackward:
    case Moment::kAttentionBackward:
      return backward_moment(f, moment, sink);
  }
}

/// Does the stage pass through the moment at all?
[[nodiscard]] inline bool passes(const StageFigures& f, Moment moment) {
  if (moment == Moment::kLoss || moment == Moment::kHeadBackward) return f.last;
  if (moment == Moment::kAttentionForward || moment == Moment::kAttentionBackward || moment == Moment::kMlpBackward) {
    return f.layers > 0.0;
  }
  return true;
}

}  // namespace cpfit
