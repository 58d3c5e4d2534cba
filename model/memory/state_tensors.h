// Weights, gradients, optimizer, workspaces and what stays between steps. Source: cp_model.md B.1, B.5, B.10.
#pragma once

#include <algorithm>

#include "model/memory/layer_tensors.h"

namespace cpfit {

/// GEMM workspaces inside the allocator: TransformerEngine's one, three with user buffers (module/base.py initialize_ub,
/// _NUM_MAX_UB_STREAMS), and PyTorch's one per cuBLAS handle where `torch_products` run.
[[nodiscard]] inline double gemm_workspace_bytes(const RuleSet& rules, std::string_view generation, bool user_buffers,
                                                 bool torch_products) {
  const bool before_hopper = generation == "volta" || generation == "ampere" || generation == "ada";
  const double te = (!rules.te_workspace ? 0.0 : before_hopper ? 4.0 * kMiB : 32.0 * kMiB + 1024.0) * (user_buffers ? 3.0 : 1.0);
  // PyTorch's default is 4096 KiB * 2 + 16 KiB * 8; on Hopper, and with CUBLAS_WORKSPACE_CONFIG=:4096:8, 32 MiB.
  const double default_bytes = 8519680.0;
  const double cublas = rules.deterministic || generation == "hopper" ? 32.0 * kMiB : default_bytes;
  return te + (torch_products ? rules.cublas_workspaces * cublas : 0.0);
}

template <class Sink>
void sharded_state(const StageFigures& f, double shards, Sink& sink) {
  const RecipeFigures& at = f.at;
  sink({Component::kWeights, "weights.shards", "zero3_weight_bytes*N/D", "cp_model B.1"},
       at.linear_weight * f.parameters / shards);
  sink({Component::kGradients, "gradients.shards", "4*N/D", "cp_model B.1"}, at.gradient * f.parameters / shards);
  sink({Component::kOptimizer, "optimizer.shards", "zero3_optimizer_bytes*N/D", "cp_model B.1"},
       at.optimizer * f.parameters / shards);
}

template <class Sink>
void replicated_state(const StageFigures& f, Sink& sink) {
  const RecipeFigures& at = f.at;
  const StateSharding sharding = f.recipe.state_sharding;
  const double shards = sharding == StateSharding::kNone ? 1.0 : at.state_shards;
  sink({Component::kWeights, "weights.linear", "2*N, FP8 by recipe and GPU", "cp_model B.1, frameworks 1.3"},
       at.linear_weight * f.linear);
  sink({Component::kWeights, "weights.other", "2*(norms, biases, embedding, head, padding)", "cp_model B.1"},
       at.other_weight * (f.parameters - f.linear));
  sink({Component::kWeights, "weights.fp8_cache", "1 to 2.06 bytes per linear parameter", "frameworks 1.3"},
       at.weight_cache * f.linear);
  if (sharding == StateSharding::kZero2) {
    sink({Component::kGradients, "gradients.shards", "e*N/D", "cp_model B.1"}, at.gradient * f.parameters / shards);
    sink({Component::kGradients, "gradients.bucket", "one bucket", "cp_model B.1"},
         std::min(gradient_bucket(*f.at.rules, static_cast<std::int64_t>(shards)).value(), at.gradient * f.parameters));
  } else {
    sink({Component::kGradients, "gradients", "4*N (fp32) or 2*N", "cp_model B.1"}, at.gradient * f.parameters);
  }
  if (at.dp > 1.0) {
    sink({Component::kGradients, "gradients.ddp_buckets", "extra_gradient_bytes*N when dp > 1", "rule set"},
         at.rules->extra_gradient_bytes * f.parameters);
  }
  sink({Component::kOptimizer, "optimizer", "12*N/D: fp32 master 4, moments 8", "cp_model B.1"},
       at.optimizer * f.parameters / shards);
}

/// Everything that lives through the whole step.
template <class Sink>
void state_tensors(const StageFigures& f, Sink& sink) {
  const RecipeFigures& at = f.at;
  const RuleSet& rules = *at.rules;
  if (f.recipe.state_sharding == StateSharding::kZero3) {
    sharded_state(f, at.state_shards, sink);
  } else {
    replicated_state(f, sink);
    if (rules.wgrad_scratch && f.layers > 0.0) {
      sink({Component::kTransient, "scratch.weight_gradients", "2*(qkv + proj + fc1 + fc2) parameters of one layer",
            "TE get_dummy_wgrad; accuracy_notes 2.1"},
           2.0 * at.layer_linear);
    }
  }
  sink({Component::kWorkspace, "workspace.gemm", "TE 32 MiB + 1 KiB (4 MiB before Hopper) + cuBLAS 32 MiB (8.1 MiB) per handle",
        "cp_model B.10"},
       f.last ? at.gemm_workspace : at.layer_workspace);
  if (rules.unfused_attention_buffer) {
    sink({Component::kWorkspace, "workspace.attention_scores", "2*b*h_q*s*s/cp, persistent", "rule set"},
         2.0 * at.tokens * at.query_heads * at.sequence);
  }
}

/// Chunks of the stage that hold tensors of the pipeline. The model's first chunk receives nothing and, where outputs are freed
/// once sent, keeps nothing.
[[nodiscard]] inline double receiving_chunks(const StageFigures& f) {
  return f.at.vpp - (f.first && f.at.pp > 1.0 && f.at.rules->pipeline_outputs_deallocated ? 1.0 : 0.0);
}

/// What the optimizer step adds, and what of it stays until the next forward.
template <class Sink>
void step_tensors(const StageFigures& f, bool in_step, Sink& sink) {
  const RecipeFigures& at = f.at;
  const StateSharding sharding = f.recipe.state_sharding;
  const double shards = sharding == StateSharding::kNone ? 1.0 : at.state_shards;
  const bool fp16_stays = f.recipe.precision == Precision::kFp16 && at.rules->fp16_keeps_master_gradients;
  if (in_step || fp16_stays) {
    sink({Component::kGradients, "gradients.fp32_copy", "4*N/D: gradient shard in fp32 for the step", "cp_model B.1"},
         at.step_gradient * f.parameters / shards);
  }
  if (sharding == StateSharding::kZero1 && at.dp > 1.0) {
    sink({Component::kTransient, "parameters.gathered", "gathered_parameter_bytes*N", "rule set"},
         at.rules->gathered_parameter_bytes * f.parameters);
  }
  const bool whole = at.rules->resident_hidden_always_whole;
  if (at.pp > 1.0 || whole) {
    sink({Component::kPipeline, "pipeline.left_over", "resident_hidden_tensors*2*T*H/(tp if SP) per chunk that receives",
          "rule set; golden values"},
         at.rules->resident_hidden_tensors * receiving_chunks(f) * (whole ? at.hidden_full() : at.hidden_shard()));
  }
}

/// FSDP's unsharded units while `backward` or forward runs through the layers. Source: cp_model.md B.5.
template <class Sink>
void unsharded_tensors(const StageFigures& f, bool backward, Sink& sink) {
  if (f.recipe.state_sharding != StateSharding::kZero3) return;
  const RecipeFigures& at = f.at;
  const RuleSet& rules = *at.rules;
  constexpr Component kHere = Component::kTransient;
  const double unit = rules.fsdp_per_layer ? at.layer_linear + at.layer_other : f.parameters;
  if (rules.zero3_unsharded_through_step && at.pp > 1.0) {
    sink({kHere, "fsdp.stage_weights", "2*N: not resharded between forward and backward with pp > 1", "frameworks 4"},
         2.0 * f.parameters);
    if (at.micro_batches > 1.0) {
      sink({kHere, "fsdp.stage_gradients", "zero3_reduce_bytes*N: accumulated unsharded over micro-batches", "frameworks 4"},
           rules.zero3_reduce_bytes * f.parameters);
    }
  } else {
    sink({kHere, "fsdp.unit_weights", "3*2*P_unit: unsharded unit, its all-gather output, the next one's", "cp_model B.5"},
         6.0 * unit);
  }
  if (backward) {
    sink({kHere, "fsdp.unit_gradients", "2*P_unit", "cp_model B.5"}, 2.0 * unit);
    sink({kHere, "fsdp.reduce_scatter_inputs", "2*zero3_reduce_bytes*P_unit: this unit's and the previous one's", "cp_model B.5"},
         2.0 * rules.zero3_reduce_bytes * unit);
    if (shard_replicas(f.recipe) > 1 && at.micro_batches > 1.0) {
      // The first micro-batch's are the gradient shards themselves. Later ones stay beside them to the end of backward; while
      // activations are most, at the first layer of backward, it is one unit's.
      sink(
          {kHere, "fsdp.all_reduce_input", "zero3_reduce_bytes*P_unit/D when gradients accumulate over replicas", "cp_model B.5"},
          rules.zero3_reduce_bytes * unit / at.state_shards);
    }
  }
}

/// FSDP's root unit: embedding, final norm and head, unsharded at the ends of the model.
template <class Sink>
void unsharded_root(const StageFigures& f, bool backward, Sink& sink) {
  if (f.recipe.state_sharding != StateSharding::kZero3) return;
  const double unit = f.embedding_copies * f.at.embedding;
  constexpr Component kHere = Component::kTransient;
  sink({kHere, "fsdp.root_weights", "2*2*P_root: unsharded and its all-gather output", "cp_model B.5"}, 4.0 * unit);
  if (backward) {
    sink({kHere, "fsdp.root_gradients", "(2 + zero3_reduce_bytes)*P_root", "cp_model B.5"},
         (2.0 + f.at.rules->zero3_reduce_bytes) * unit);
  }
}

}  // namespace cpfit
