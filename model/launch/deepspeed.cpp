// DeepSpeed with Ulysses sequence parallelism: the configuration JSON. What cuts the sequence is an argument of
// UlyssesSPAttentionHF.register_with_transformers in the training script; the file's sequence_parallel_size is what batches are
// counted with where a model is built before that group exists. A file without it needs the GPUs to be read.
#include <fmt/format.h>

#include "model/launch/formats.h"
#include "model/launch/taker.h"
#include "model/launch/writer.h"
#include "model/recipe/recipe_names.h"

namespace cpfit::launch {

Outcome<Launch> write_deepspeed(const LaunchCase& what) {
  const Recipe& recipe = what.recipe;
  Writer out;
  out.launch.format = LaunchFormat::kDeepspeed;
  if (!check_framework(out, recipe)) return std::move(out.problems);
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
  if (recipe.tp > 1) {
    out.refuse(
        "launch.tensor_parallel", "tp",
        "how DeepSpeed counts batches with automatic tensor parallelism, alone or beside sequence ranks, is not known here",
        "plan with tp=1");
  }
  const int stage = static_cast<int>(recipe.state_sharding);
  if (stage > 0 && shard_replicas(recipe) > 1) {
    out.cannot("state_shards", std::to_string(recipe.state_shards),
               "MiCS groups come from another partitioner (zero.MiCS_Init) and were not read beside sequence ranks; "
               "zero_hpz_partition_size groups a second copy of the parameters only",
               "plan with state_shards=all");
  }
  out.launch.arguments.push_back({"UlyssesSPAttentionHF.register_with_transformers(sequence_parallel_size=)",
                                  {std::to_string(recipe.cp)},
                                  "cp",
                                  "an argument in the training script: it cuts the sequence, the JSON only counts with it",
                                  true});
  out.launch.arguments.push_back({"UlyssesSPAttentionHF.register_with_transformers(seq_length=)",
                                  {std::to_string(what.training.sequence.count())},
                                  "training",
                                  "tokens per sequence; in the training script",
                                  true});
  out.number("sequence_parallel_size", recipe.cp, "cp",
             "batches are counted over processes / sequence ranks before the script's group exists (HF zero.Init)");
  out.number("train_batch_size", what.training.global_batch, "training",
             "sequences per optimizer step = micro-batch x accumulation x dp");
  out.number("train_micro_batch_size_per_gpu", recipe.micro_batch, "micro_batch", "sequences per micro-batch and data rank");
  out.number("gradient_accumulation_steps", what.training.global_batch / slot, "training", "micro-batches per step");
  out.number("zero_optimization.stage", stage, "state_sharding",
             "0 none, 1 optimizer, 2 and gradients, 3 and parameters; over dp x cp");
  if (stage > 0) {
    out.add("zero_optimization.overlap_comm", {recipe.overlap_grad_reduce ? "true" : "false"}, "overlap_grad_reduce",
            "gradients are reduced during backward");
  } else if (!recipe.overlap_grad_reduce) {
    out.cannot("overlap_grad_reduce", "false", "overlap_comm belongs to the stages above 0",
               "plan with overlap_grad_reduce=true");
  }
  if (recipe.overlap_tp) out.without_effect("overlap_tp", "true", "there is no tensor parallelism");
  if (recipe.precision == Precision::kBf16 || recipe.precision == Precision::kFp16) {
    out.add(recipe.precision == Precision::kBf16 ? "bf16.enabled" : "fp16.enabled", {"true"}, "precision",
            "parameters and activations");
  } else {
    out.cannot("precision", std::string(name_of(recipe.precision)), "the configuration has bf16 and fp16",
               "plan with precision=bf16");
  }
  if (recipe.recompute.kind == RecomputeKind::kFull) {
    out.elsewhere(
        "recompute", "full",
        "switched on in the training script (Hugging Face: model.gradient_checkpointing_enable()); activation_checkpointing "
        "in the JSON only configures it and switches nothing on");
  } else if (recipe.recompute.kind != RecomputeKind::kNone) {
    out.cannot("recompute", to_text(recipe.recompute), "a model's code recomputes whole layers or nothing",
               "plan with recompute none or full");
  }
  if (!recipe.overlap_param_gather)
    out.cannot("overlap_param_gather", "false", "stage 3 always prefetches, lower stages gather after the step",
               "plan with overlap_param_gather=true");
  if (recipe.cp > 1 && recipe.shard_layout != ShardLayout::kContiguous) {
    out.cannot("shard_layout", std::string(name_of(recipe.shard_layout)), "Ulysses cuts the sequence into consecutive parts",
               "plan with shard_layout=contiguous");
  }
  if (recipe.rank_order != RankOrder{})
    out.cannot("rank_order", to_text(recipe.rank_order), "sequence ranks are neighbours, data ranks outside",
               "plan with rank_order=tp-cp-dp-pp");
  if (what.training.grad_dtype == GradDtype::kBf16)
    out.cannot("grad_dtype", "bf16", "the number format of gradients is not written: DeepSpeed's own default holds",
               "plan with grad_dtype fp32");
  list_without_effect(out, recipe, ShardLayout::kContiguous);
  list_training(out, what.training);
  return finish(std::move(out), what);
}

namespace {

/// What the file says of the batch; none: not named, or left to be found ("auto").
struct BatchWords {
  std::optional<std::int64_t> batch, micro, steps;
};

std::optional<std::int64_t> count_of(Taker& in, const char* name) {
  if (in.word(name) == "auto") return std::nullopt;
  const std::optional<std::int64_t> value = in.number(name);
  if (!value || (*value >= 1 && *value <= kMaxWorld)) return value;
  in.problem("launch.not_a_degree", name, fmt::format("is {}", *value), "write a whole number of at least 1");
  return std::nullopt;
}

/// With dp the third of micro-batch, accumulation and batch follows, as runtime/config.py completes them: what is missing of
/// batch = micro-batch x accumulation x dp; one accumulated step where only one of the three is there.
void complete_batch(Taker& in, const BatchWords& words, LaunchReading& reading) {
  Recipe& recipe = reading.recipe;
  const std::int64_t dp = recipe.dp;
  const auto whole = [&](std::int64_t part) {
    if (*words.batch % part == 0) return *words.batch / part;
    in.problem("launch.global_batch", "train_batch_size",
               fmt::format("{} sequences do not divide by {}, what dp {} and the other two make", *words.batch, part, dp),
               "change the batch or the degrees");
    return std::int64_t{1};
  };
  std::int64_t micro = words.micro.value_or(1);
  if (words.batch && !words.micro) micro = whole(words.steps.value_or(1) * dp);
  if (words.batch && words.micro && !words.steps) (void)whole(micro * dp);  // the rest is accumulated
  reading.global_batch = words.batch;
  if (!words.batch && (words.micro || words.steps)) reading.global_batch = micro * words.steps.value_or(1) * dp;
  if (micro > kMaxDegree) {
    in.problem("launch.not_a_degree", "train_micro_batch_size_per_gpu", fmt::format("is {}", micro),
               fmt::format("write a whole number from 1 to {}", kMaxDegree));
  } else {
    recipe.micro_batch = static_cast<std::int32_t>(micro);
  }
}

/// Sequence ranks and data ranks: from the batch where all of it is there (micro-batch 1 where it is not named and nothing else
/// says dp), else from the processes.
void read_ranks(Taker& in, std::optional<std::int64_t> gpus, LaunchReading& reading) {
  Recipe& recipe = reading.recipe;
  const std::size_t before = in.problems.size();
  const BatchWords words{count_of(in, "train_batch_size"), count_of(in, "train_micro_batch_size_per_gpu"),
                         count_of(in, "gradient_accumulation_steps")};
  const std::optional<std::int64_t> ranks = count_of(in, "sequence_parallel_size");
  if (in.problems.size() > before) return;
  std::optional<std::int64_t> dp, cp = ranks;
  if (words.batch && words.steps && (words.micro || !ranks || !gpus)) {
    const std::int64_t slot = *words.steps * words.micro.value_or(1);
    if (*words.batch % slot != 0) {
      in.problem(
          "launch.global_batch", "train_batch_size",
          fmt::format("{} is not micro-batch {} x accumulation {} x dp", *words.batch, words.micro.value_or(1), *words.steps),
          "change one of the three");
      return;
    }
    dp = *words.batch / slot;
  }
  if (!gpus && (!dp || !cp)) {
    in.problem("launch.world_unknown", dp ? "" : "train_batch_size",
               dp ? "the configuration does not hold sequence_parallel_size"
                  : "without train_batch_size, micro-batch and accumulation together dp is unknown",
               dp ? "say --gpus: what dp leaves of it is cp" : "say --gpus: what sequence_parallel_size leaves of it is dp");
    return;
  }
  if (!dp && !cp) {
    in.problem("launch.world_unknown", "sequence_parallel_size",
               "neither the batch nor sequence_parallel_size says how many of the GPUs cut a sequence",
               "write sequence_parallel_size; 1 where none do");
    return;
  }
  const std::int64_t known = dp && cp ? *dp * *cp : dp.value_or(1) * cp.value_or(1);
  if (gpus && (*gpus < 1 || *gpus % known != 0 || (dp && cp && known != *gpus))) {
    in.problem("launch.world_size", ranks ? "sequence_parallel_size" : "",
               dp && cp ? fmt::format("{} sequence ranks x dp {} are not {} GPUs", *cp, *dp, *gpus)
               : dp     ? fmt::format("{} GPUs are no multiple of dp {}", *gpus, *dp)
                        : fmt::format("{} GPUs are no multiple of {} sequence ranks", *gpus, *cp),
               "change the batch arithmetic, the sequence ranks or the number of GPUs");
    return;
  }
  if (!dp) dp = *gpus / *cp;
  if (!cp) cp = *gpus / *dp;
  if (*dp > kMaxDegree || *cp > kMaxDegree) {
    in.problem("launch.not_a_degree", "", fmt::format("dp {} x cp {}", *dp, *cp), fmt::format("each is at most {}", kMaxDegree));
    return;
  }
  recipe.dp = static_cast<std::int32_t>(*dp);
  recipe.cp = static_cast<std::int32_t>(*cp);
  complete_batch(in, words, reading);
}

}  // namespace

Outcome<LaunchReading> read_deepspeed(const Settings& settings, std::optional<std::int64_t> gpus) {
  Taker in(settings);
  LaunchReading reading;
  Recipe& recipe = reading.recipe;
  recipe.framework = std::string(framework_of(LaunchFormat::kDeepspeed));
  recipe.shard_layout = ShardLayout::kContiguous;
  if (in.number("tensor_parallel.autotp_size", 1) > 1) {
    in.problem("launch.tensor_parallel", "tensor_parallel.autotp_size",
               "how DeepSpeed counts batches with automatic tensor parallelism is not known here: dp and cp would be guessed",
               "leave it out (tp 1)");
  }
  const std::int64_t stage = in.number("zero_optimization.stage").value_or(0);
  if (stage < 0 || stage > 3) {
    in.problem("launch.state_sharding", "zero_optimization.stage", fmt::format("there is no stage {}", stage),
               "write 0, 1, 2 or 3");
  } else {
    recipe.state_sharding = static_cast<StateSharding>(stage);
  }
  for (const char* groups : {"zero_optimization.mics_shard_size", "zero_optimization.zero_hpz_partition_size"}) {
    if (in.number(groups, 1) > 1) {
      in.problem("launch.state_shards", groups,
                 "shards in smaller groups than all data ranks: DeepSpeed's groups are not modelled", "leave it out");
    }
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
  read_ranks(in, gpus, reading);
  recipe.cp_comm = recipe.cp > 1 ? CpComm::kA2a : CpComm::kP2p;
  if (recipe.cp > 1) recipe.a2a_degree = recipe.cp;
  reading.world = recipe.world();
  if (!in.problems.empty()) return in.problems;
  for (const char* offload : {"zero_optimization.offload_optimizer.device", "zero_optimization.offload_param.device"}) {
    if (const std::string where = in.word(offload, "none"); where != "none") note_offload(reading, offload);
  }
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
