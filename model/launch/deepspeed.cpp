// DeepSpeed with Ulysses sequence parallelism: the configuration JSON. The degree of sequence parallelism is no key of that
// file but an argument of UlyssesSPAttentionHF.register_with_transformers in the training script, so reading needs the GPUs.
#include <fmt/format.h>

#include "model/launch/settings.h"
#include "model/recipe/recipe_names.h"

namespace cpfit::launch {

Outcome<Launch> write_deepspeed(const LaunchCase& what) {
  const Recipe& recipe = what.recipe;
  Writer out;
  out.launch.format = LaunchFormat::kDeepspeed;
  if (recipe.pp > 1) {
    out.refuse("launch.pipeline", "pp", "DeepSpeed builds pipeline stages in the model's code, not in its configuration",
               "plan with pp=1");
  }
  if (recipe.cp > 1 && recipe.cp_comm != CpComm::kA2a) {
    out.refuse("launch.cp_comm", "cp_comm",
               fmt::format("DeepSpeed has no {}: the job would run another attention than was planned", name_of(recipe.cp_comm)),
               "plan with framework=deepspeed-ulysses, cp_comm=a2a");
  }
  const std::int64_t slot = std::int64_t{recipe.dp} * recipe.micro_batch;
  if (what.training.global_batch % slot != 0) {
    out.refuse("launch.global_batch", "global_batch",
               fmt::format("{} sequences do not divide by micro-batch {} x dp {}", what.training.global_batch, recipe.micro_batch,
                           recipe.dp),
               "change the batch or the degrees");
  }
  if (recipe.tp > 1 && recipe.state_sharding == StateSharding::kZero3) {
    out.refuse("launch.tensor_parallel", "tp", "automatic tensor parallelism does not go with ZeRO stage 3",
               "use zero1 or zero2, or tp=1");
  }
  const int stage = static_cast<int>(recipe.state_sharding);
  out.launch.arguments.push_back({"UlyssesSPAttentionHF.register_with_transformers(sequence_parallel_size=)",
                                  {std::to_string(recipe.cp)},
                                  "cp",
                                  "an argument in the training script: no key of the JSON holds it",
                                  true});
  out.launch.arguments.push_back({"UlyssesSPAttentionHF.register_with_transformers(max_length=)",
                                  {std::to_string(what.training.sequence.count())},
                                  "training",
                                  "tokens per sequence; in the training script",
                                  true});
  out.number("train_batch_size", what.training.global_batch, "training",
             "sequences per optimizer step = micro-batch x accumulation x dp");
  out.number("train_micro_batch_size_per_gpu", recipe.micro_batch, "micro_batch", "sequences per micro-batch and data rank");
  out.number("gradient_accumulation_steps", what.training.global_batch / slot, "training", "micro-batches per step");
  out.number("zero_optimization.stage", stage, "state_sharding",
             "0 none, 1 optimizer, 2 and gradients, 3 and parameters; over dp x cp");
  if (stage > 0) {
    out.add("zero_optimization.overlap_comm", {recipe.overlap_grad_reduce ? "true" : "false"}, "overlap_grad_reduce",
            "gradients are reduced during backward");
  }
  if (recipe.tp > 1) {
    out.number("tensor_parallel.autotp_size", recipe.tp, "tp", fmt::format("weights are cut over {} ranks", recipe.tp));
    if (recipe.sequence_parallel) out.cannot("sequence_parallel", "true", "AutoTP keeps whole sequences on every tensor rank");
    if (recipe.overlap_tp) out.cannot("overlap_tp", "true", "no key of the configuration was found for it");
  }
  if (recipe.precision == Precision::kBf16 || recipe.precision == Precision::kFp16) {
    out.add(recipe.precision == Precision::kBf16 ? "bf16.enabled" : "fp16.enabled", {"true"}, "precision",
            "parameters and activations");
  } else {
    out.cannot("precision", std::string(name_of(recipe.precision)), "the configuration has bf16 and fp16");
  }
  if (recipe.recompute.kind != RecomputeKind::kNone) {
    out.cannot(
        "recompute", to_text(recipe.recompute),
        "switched on in the model's code; activation_checkpointing in the JSON only configures it and switches nothing on");
  }
  if (!recipe.overlap_param_gather)
    out.cannot("overlap_param_gather", "false", "stage 3 always prefetches, lower stages gather after the step");
  if (recipe.shard_layout != ShardLayout::kContiguous) {
    out.cannot("shard_layout", std::string(name_of(recipe.shard_layout)), "Ulysses cuts the sequence into consecutive parts");
  }
  if (recipe.rank_order != RankOrder{})
    out.cannot("rank_order", to_text(recipe.rank_order), "sequence ranks are neighbours, data ranks outside");
  if (recipe.framework != framework_of(LaunchFormat::kDeepspeed)) {
    out.cannot("framework", recipe.framework, "the recipe's figures hold for that rule set; the file starts DeepSpeed");
  }
  return finish(std::move(out), what);
}

Outcome<LaunchReading> read_deepspeed(const Settings& settings, std::optional<std::int64_t> gpus) {
  Taker in(settings);
  LaunchReading reading;
  Recipe& recipe = reading.recipe;
  recipe.framework = std::string(framework_of(LaunchFormat::kDeepspeed));
  recipe.shard_layout = ShardLayout::kContiguous;
  recipe.tp = static_cast<std::int32_t>(in.number("tensor_parallel.autotp_size", 1));
  if (recipe.tp > 1) recipe.sequence_parallel = false;
  recipe.micro_batch = static_cast<std::int32_t>(in.number("train_micro_batch_size_per_gpu", 1));
  const std::int64_t stage = in.number("zero_optimization.stage").value_or(0);
  if (stage < 0 || stage > 3) {
    in.problem("launch.state_sharding", "zero_optimization.stage", fmt::format("there is no stage {}", stage),
               "write 0, 1, 2 or 3");
  } else {
    recipe.state_sharding = static_cast<StateSharding>(stage);
  }
  if (recipe.tp > 1 && stage == 3) {
    in.problem("launch.tensor_parallel", "tensor_parallel.autotp_size",
               "automatic tensor parallelism does not go with ZeRO stage 3", "use stage 1 or 2");
  }
  const bool overlap = in.flag("zero_optimization.overlap_comm", stage == 3);
  if (stage > 0) {
    recipe.overlap_grad_reduce = overlap;
  } else if (overlap) {
    in.problem("launch.ignored_option", "zero_optimization.overlap_comm", "has no effect at stage 0",
               "use a stage above 0, or leave it out");
  }
  const bool bf16 = in.flag("bf16.enabled"), fp16 = in.flag("fp16.enabled");
  if (bf16 == fp16) {
    in.problem("launch.precision", "",
               bf16 ? "both bf16 and fp16 are enabled" : "neither bf16 nor fp16 is enabled: the job trains in fp32",
               "enable one of them");
  }
  recipe.precision = fp16 ? Precision::kFp16 : Precision::kBf16;
  const std::optional<std::int64_t> batch = in.number("train_batch_size"), steps = in.number("gradient_accumulation_steps");
  reading.global_batch = batch;
  if (!batch || !steps || *batch < 1 || *steps < 1) {
    in.problem("launch.world_unknown", "train_batch_size",
               "without train_batch_size and gradient_accumulation_steps dp is unknown", "write both as numbers");
  } else if (*batch % (*steps * recipe.micro_batch) != 0 || *batch / (*steps * recipe.micro_batch) > kMaxDegree) {
    in.problem("launch.global_batch", "train_batch_size",
               fmt::format("{} is not micro-batch {} x accumulation {} x dp", *batch, recipe.micro_batch, *steps),
               "change one of the three");
  } else {
    recipe.dp = static_cast<std::int32_t>(*batch / (*steps * recipe.micro_batch));
    const std::int64_t others = std::int64_t{recipe.dp} * recipe.tp;
    if (!gpus) {
      in.problem("launch.world_unknown", "", "the configuration does not hold sequence_parallel_size",
                 "say --gpus: what dp and tp leave of it is cp");
    } else if (*gpus < 1 || *gpus % others != 0 || *gpus / others > kMaxDegree) {
      in.problem("launch.world_size", "", fmt::format("{} GPUs are no multiple of dp {} x tp {}", *gpus, recipe.dp, recipe.tp),
                 "change the batch arithmetic or the number of GPUs");
    } else {
      recipe.cp = static_cast<std::int32_t>(*gpus / others);
    }
  }
  recipe.cp_comm = recipe.cp > 1 ? CpComm::kA2a : CpComm::kP2p;
  if (recipe.cp > 1) recipe.a2a_degree = recipe.cp;
  reading.world = gpus;
  if (!in.problems.empty()) return in.problems;
  reading.passed_over = in.rest();
  for (const std::string& name : reading.passed_over) {
    if (name.starts_with("activation_checkpointing.")) {
      reading.notes.push_back({"launch.no_effect", "activation_checkpointing",
                               "configures checkpointing but does not switch it on: the model's code does",
                               "state recompute in the recipe yourself"});
      break;
    }
  }
  return reading;
}

}  // namespace cpfit::launch
