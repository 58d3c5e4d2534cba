// A recipe as arguments of Megatron-LM. Names and their meaning: megatron/training/arguments.py and the configuration classes of
// megatron/core.
#include <fmt/format.h>

#include <algorithm>

#include "model/launch/formats.h"
#include "model/launch/megatron_names.h"
#include "model/launch/writer.h"
#include "model/recipe/recipe_names.h"

namespace cpfit::launch {

namespace {

void write_context(Writer& out, const Recipe& recipe) {
  out.number("--context-parallel-size", recipe.cp, "cp",
             fmt::format("each sequence is cut over {} rank{}; 2*cp chunks balance the causal mask", recipe.cp,
                         recipe.cp == 1 ? "" : "s"));
  if (recipe.cp == 1) return;
  if (recipe.cp_comm == CpComm::kDoubleRing) {
    out.refuse("launch.cp_comm", "cp_comm", "Megatron has no double ring: the job would run another attention than was planned",
               "plan with cp_comm p2p, all_gather, a2a or a2a+p2p");
    return;
  }
  out.add("--cp-comm-type", {std::string(name_of(recipe.cp_comm))}, "cp_comm",
          "how keys and values travel; TransformerEngine's own name, passed on unchanged");
  if (recipe.cp_comm != CpComm::kA2aP2p) return;
  if (recipe.a2a_degree < 2 || recipe.a2a_degree >= recipe.cp || recipe.cp % recipe.a2a_degree != 0) {
    out.refuse("launch.hierarchical_sizes", "a2a_degree",
               fmt::format("a2a+p2p needs two sizes above 1 whose product is cp {}; a2a_degree {} gives none", recipe.cp,
                           recipe.a2a_degree),
               "choose an a2a_degree that divides cp, or cp_comm p2p or a2a");
    return;
  }
  out.add("--hierarchical-context-parallel-sizes",
          {std::to_string(recipe.a2a_degree), std::to_string(recipe.cp / recipe.a2a_degree)}, "a2a_degree",
          "all-to-all inside, ring outside; without both sizes a2a+p2p moves nothing and the job is wrong and too fast "
          "(Megatron-Bridge PR 2665)");
}

std::string chunk_text(const StageLayout& layout) {
  std::string text = "E";
  for (std::size_t i = 0; i < layout.layers.size(); ++i) {
    if (i > 0) text += '|';
    text.append(static_cast<std::size_t>(layout.layers[i]), 't');
  }
  return text + "L";
}

void write_pipeline(Writer& out, const Recipe& recipe) {
  out.number("--pipeline-model-parallel-size", recipe.pp, "pp", fmt::format("pipeline stages: {}", recipe.pp));
  const StageLayout& layout = recipe.stage_layout;
  const bool explicit_layout = layout.kind == LayoutKind::kExplicit && recipe.pp > 1;
  const bool of_chunks = static_cast<std::int64_t>(layout.layers.size()) == std::int64_t{recipe.pp} * recipe.vpp;
  if (recipe.vpp > 1 && recipe.pp == 1) return;  // refused below
  if (recipe.vpp > 1 && !(explicit_layout && of_chunks)) {
    out.number("--num-virtual-stages-per-pipeline-rank", recipe.vpp, "vpp", "model chunks per stage: the interleaved schedule");
  }
  if (recipe.vpp > 1 && !recipe.overlap_p2p && recipe.pp == 2) {
    out.refuse("launch.interleaving", "overlap_p2p", "Megatron interleaves two stages only with overlapped pipeline messages",
               "set overlap_p2p, or vpp to 1");
  } else if (recipe.vpp > 1 && !recipe.overlap_p2p) {
    out.add("--no-overlap-p2p-communication", {}, "overlap_p2p", "pipeline messages wait, as planned");
  }
  if (recipe.pp == 1) {
    return;
  } else if (layout.kind == LayoutKind::kEmbeddingAndLossAsLayers) {
    out.add("--account-for-embedding-in-pipeline-split", {}, "stage_layout",
            "the embedding counts as a layer of the first stage");
    out.add("--account-for-loss-in-pipeline-split", {}, "stage_layout", "the loss counts as a layer of the last stage");
  } else if (layout.kind == LayoutKind::kFirstLast) {
    if (layout.first > 0)
      out.number("--decoder-first-pipeline-num-layers", layout.first, "stage_layout", "layers of the first stage");
    if (layout.last > 0)
      out.number("--decoder-last-pipeline-num-layers", layout.last, "stage_layout", "layers of the last stage");
  } else if (explicit_layout && of_chunks) {
    out.add("--pipeline-model-parallel-layout", {chunk_text(layout)}, "stage_layout",
            "E embedding, t one layer each, L loss, | between chunks; it states the chunks per stage too");
  } else if (layout.kind != LayoutKind::kEven) {
    out.cannot("stage_layout", to_text(layout),
               layout.kind == LayoutKind::kExplicit ? "Megatron lists layers per chunk, this layout lists them per stage"
                                                    : "Megatron has no split by cost",
               "write stage_layout=explicit=... with one count per chunk (pp * vpp of them)");
  }
  if ((recipe.schedule == Schedule::kGpipe || recipe.schedule == Schedule::kZeroBubble) && recipe.pp > 1) {
    out.cannot("schedule", std::string(name_of(recipe.schedule)), "Megatron runs 1F1B, interleaved when vpp > 1",
               "plan with schedule=1f1b");
  }
}

void write_recompute(Writer& out, const Recipe& recipe) {
  const std::string granularity = "--recompute-granularity", method = "--recompute-method", layers = "--recompute-num-layers";
  const char* why = "a whole layer runs again in backward: only its input stays";
  switch (recipe.recompute.kind) {
    case RecomputeKind::kNone:
      return;
    case RecomputeKind::kSelective:
      out.add(granularity, {"selective"}, "recompute", "part of a layer runs again in backward");
      out.add("--recompute-modules", {"core_attn"}, "recompute", "the attention core, as the rule set counts it");
      return;
    case RecomputeKind::kMlp:
      out.add(granularity, {"selective"}, "recompute", "part of a layer runs again in backward");
      out.add("--recompute-modules", {"mlp"}, "recompute", "the MLP and the norm fused into it");
      return;
    case RecomputeKind::kFull:
      out.add(granularity, {"full"}, "recompute", why);
      out.add(method, {"uniform"}, "recompute", "every layer; full without a method is an error");
      out.number(layers, 1, "recompute", "one layer per checkpoint");
      return;
    case RecomputeKind::kBlock:
      break;
  }
  if (recipe.recompute.block_layers % recipe.vpp != 0) {
    out.cannot("recompute", to_text(recipe.recompute),
               fmt::format("Megatron counts layers per model chunk, and {} does not divide by vpp {}",
                           recipe.recompute.block_layers, recipe.vpp),
               fmt::format("choose a multiple of {}", recipe.vpp));
    return;
  }
  out.add(granularity, {"full"}, "recompute", why);
  out.add(method, {"block"}, "recompute", "only the first layers of each chunk");
  out.number(layers, recipe.recompute.block_layers / recipe.vpp, "recompute", "layers per model chunk");
}

void write_precision(Writer& out, const LaunchCase& what) {
  const Recipe& recipe = what.recipe;
  if (recipe.precision == Precision::kFp16) {
    out.add("--fp16", {}, "precision", "parameters and activations in fp16");
    if (what.training.grad_dtype == GradDtype::kFp32) {
      out.add("--accumulate-allreduce-grads-in-fp32", {}, "training",
              "with fp16 gradients are reduced in fp16 unless this is said");
    } else {
      out.cannot("grad_dtype", "bf16", "with fp16 the gradients are fp16 or fp32",
                 "plan with grad_dtype fp32, or precision=bf16");
    }
    return;
  }
  out.add("--bf16", {}, "precision", "parameters and activations in bf16");
  for (const Fp8Row& row : kFp8) {
    if (row.precision != recipe.precision) continue;
    out.add("--fp8-format", {std::string(row.format)}, "precision", "turns FP8 on: a recipe alone leaves the job in bf16");
    out.add("--fp8-recipe", {std::string(row.recipe)}, "precision", "scaling of the FP8 tensors");
  }
  if (recipe.precision == Precision::kNvfp4) {
    out.add("--fp4-format", {"e2m1"}, "precision", "turns FP4 on");
    out.add("--fp4-recipe", {"nvfp4"}, "precision", "scaling of the FP4 tensors");
  }
}

void write_instances(Writer& out, const Recipe& recipe) {
  if (!check_state_shards(out, recipe) || shard_replicas(recipe) == 1) return;
  if (fully_sharded(recipe)) {
    out.cannot("state_shards", std::to_string(recipe.state_shards),
               "how Megatron-FSDP reduces over replicas of its shards was not read", "plan with state_sharding=zero1");
    return;
  }
  out.number("--num-distributed-optimizer-instances", shard_replicas(recipe), "state_shards",
             fmt::format("each instance holds the states on {} of dp x cp = {} ranks", shard_ranks(recipe),
                         shard_ranks(recipe) * shard_replicas(recipe)));
}

void write_states(Writer& out, const Recipe& recipe) {
  if (fully_sharded(recipe)) {
    const bool parameters = recipe.state_sharding == StateSharding::kZero3;
    out.add("--use-megatron-fsdp", {}, "state_sharding", "states sharded over dp x cp");
    out.add("--data-parallel-sharding-strategy", {parameters ? "optim_grads_params" : "optim_grads"}, "state_sharding",
            parameters ? "optimizer, gradients and parameters" : "optimizer and gradients");
    out.add("--no-gradient-accumulation-fusion", {}, "state_sharding",
            "not every TransformerEngine fuses the accumulation into sharded gradients");
    out.add("--ckpt-format", {"fsdp_dtensor"}, "state_sharding", "the only checkpoint format of Megatron-FSDP");
  }
  if (recipe.state_sharding != StateSharding::kNone) {
    out.add("--use-distributed-optimizer", {}, "state_sharding", "optimizer states sharded over dp x cp");
    write_instances(out, recipe);
  }
  if (recipe.overlap_grad_reduce) {
    out.add("--overlap-grad-reduce", {}, "overlap_grad_reduce", "gradient buckets are reduced during backward");
  }
  if (recipe.state_sharding == StateSharding::kNone) {
    return;  // nothing is gathered: overlap_param_gather has no effect
  }
  if (recipe.overlap_param_gather && !recipe.overlap_grad_reduce) {
    out.refuse("launch.overlap_param_gather", "overlap_param_gather",
               "Megatron gathers parameters behind compute only together with "
               "the overlapped gradient reduction",
               "set overlap_grad_reduce, or clear overlap_param_gather");
  } else if (recipe.overlap_param_gather) {
    out.add("--overlap-param-gather", {}, "overlap_param_gather", "parameters are gathered during the next forward");
  }
}

void write_environment(Writer& out, const LaunchCase& what) {
  const Recipe& recipe = what.recipe;
  const char* name = "CUDA_DEVICE_MAX_CONNECTIONS";
  if (fully_sharded(recipe)) {
    out.launch.environment.push_back({name, "", "FSDP needs several hardware queues: with one its gathers wait behind compute"});
  } else if (recipe.tp == 1 && recipe.cp == 1) {
    out.launch.environment.push_back({name, "",
                                      "with one hardware queue the gradient reduction does not overlap, and nothing here needs "
                                      "that order (Megatron-LM 1468)"});
  } else if (what.generation == "blackwell") {
    out.launch.environment.push_back({name, "", "not needed on Blackwell: launch order is kept without it"});
  } else {
    out.launch.environment.push_back(
        {name, "1", "TP and CP messages must start before the kernels that hide them: one queue keeps the launch order"});
  }
}

}  // namespace

Outcome<Launch> write_megatron(const LaunchCase& what, LaunchFormat as) {
  const Recipe& recipe = what.recipe;
  Writer out;
  out.launch.format = as;
  if (!check_framework(out, recipe)) return std::move(out.problems);
  add_torchrun(out, what);
  out.number("--tensor-model-parallel-size", recipe.tp, "tp",
             fmt::format("ranks that each layer's weights are cut over: {}", recipe.tp));
  write_context(out, recipe);
  write_pipeline(out, recipe);
  if (recipe.tp > 1 && recipe.sequence_parallel) {
    out.add("--sequence-parallel", {}, "sequence_parallel", "norms and residuals are cut over the tensor ranks too");
  }
  if (recipe.overlap_tp && (recipe.tp == 1 || !recipe.sequence_parallel)) {
    out.refuse("launch.overlap_tp", "overlap_tp", "TP overlap needs tp above 1 and sequence_parallel",
               "set them, or clear overlap_tp");
  } else if (recipe.overlap_tp) {
    out.add("--tp-comm-overlap", {}, "overlap_tp", "TP collectives run behind GEMMs over user buffers");
  }
  out.number("--micro-batch-size", recipe.micro_batch, "micro_batch", "sequences per micro-batch and data rank");
  out.number("--global-batch-size", what.training.global_batch, "training", "sequences per optimizer step");
  out.number("--seq-length", what.training.sequence.count(), "training", "tokens per sequence, padding included");
  if (what.training.grad_dtype == GradDtype::kBf16 && recipe.precision != Precision::kFp16) {
    out.add("--grad-reduce-in-bf16", {}, "training", "gradients are reduced in bf16");
  }
  write_recompute(out, recipe);
  write_precision(out, what);
  write_states(out, recipe);
  if (recipe.rank_order == kPipelineBeforeData) {
    if (recipe.cp > 1) {
      out.refuse("launch.rank_order", "rank_order", "--use-tp-pp-dp-mapping must not be used with context parallelism",
                 "keep tp-cp-dp-pp, or cp 1");
    } else {
      out.add("--use-tp-pp-dp-mapping", {}, "rank_order", "pipeline neighbours before data neighbours");
    }
  } else if (recipe.rank_order != kMegatronOrder) {
    out.cannot("rank_order", to_text(recipe.rank_order),
               "Megatron knows tp-cp-dp-pp and tp-cp-pp-dp only: ranks would sit elsewhere than planned",
               "plan with rank_order=tp-cp-dp-pp");
  }
  if (recipe.shard_layout != ShardLayout::kZigzag && recipe.cp > 1) {
    out.cannot("shard_layout", std::string(name_of(recipe.shard_layout)), "Megatron always cuts zigzag: chunks r and 2cp-1-r",
               "plan with shard_layout=zigzag");
  }
  list_without_effect(out, recipe, ShardLayout::kZigzag);
  list_training(out, what.training);
  write_environment(out, what);
  return finish(std::move(out), what);
}

}  // namespace cpfit::launch
