// torchtitan, in the form whose configuration is a TOML file of sections: torchtitan/config/job_config.py at 6404b93. There
// compile is a switch of [training]; later TOML forms have a section [compile], which is read too. Still later forms are
// Python functions; their --parallelism.* degrees keep these names, the rotation and async-TP options are gone.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "model/launch/formats.h"
#include "model/launch/taker.h"
#include "model/launch/writer.h"
#include "model/recipe/recipe_names.h"

namespace cpfit::launch {

namespace {

constexpr RankOrder kMeshOrder{};  // mesh, outermost first: pp, dp, cp, tp

void write_pipeline(Writer& out, const LaunchCase& what) {
  const Recipe& recipe = what.recipe;
  out.number("parallelism.pipeline_parallel_degree", recipe.pp, "pp", fmt::format("pipeline ranks: {}", recipe.pp));
  if (recipe.pp == 1) return;
  out.number("parallelism.pipeline_parallel_microbatch_size", recipe.micro_batch, "micro_batch", "sequences per micro-batch");
  const char* schedule = recipe.vpp > 1 ? "Interleaved1F1B" : recipe.schedule == Schedule::kGpipe ? "GPipe" : "1F1B";
  if (recipe.schedule == Schedule::kZeroBubble) {
    out.cannot("schedule", "zb_h1",
               "InterleavedZeroBubble and ZBVZeroBubble, which it has, need two chunks a rank and are others",
               "plan with schedule=1f1b");
  }
  out.add("parallelism.pipeline_parallel_schedule", {schedule}, "schedule", "the default for several chunks per rank is two");
  const bool counted = recipe.stage_layout.kind == LayoutKind::kEmbeddingAndLossAsLayers;
  if (!counted && recipe.stage_layout.kind != LayoutKind::kEven) {
    out.cannot("stage_layout", to_text(recipe.stage_layout), "torchtitan lists module names per chunk, which depend on the model",
               "plan with stage_layout=even or embedding_loss");
  }
  const char* less = counted ? "the embedding and the head count as a layer each"
                             : "the default takes one layer from each end; planned is an even split";
  out.number("parallelism.pipeline_parallel_first_stage_less_layers", counted ? 1 : 0, "stage_layout", less);
  out.number("parallelism.pipeline_parallel_last_stage_less_layers", counted ? 1 : 0, "stage_layout", less);
  if (recipe.vpp > 2) {
    const std::int64_t layers = what.layers + (counted ? 2 : 0), chunks = std::int64_t{recipe.pp} * recipe.vpp;
    if (what.layers == 0 || layers % chunks != 0) {
      out.cannot("vpp", std::to_string(recipe.vpp), "torchtitan counts layers per chunk, and these do not divide",
                 "choose a vpp so that layers divide over pp * vpp chunks");
    } else {
      out.number("parallelism.pipeline_parallel_layers_per_stage", layers / chunks, "vpp",
                 fmt::format("{} chunks per rank", recipe.vpp));
    }
  }
  if (recipe.vpp > 1 && !recipe.overlap_p2p)
    out.cannot("overlap_p2p", "false", "the schedule decides", "plan with overlap_p2p=true");
}

void write_data(Writer& out, const Recipe& recipe) {
  const char* replicate = "parallelism.data_parallel_replicate_degree";
  const char* shard = "parallelism.data_parallel_shard_degree";
  const bool replicated = recipe.state_sharding == StateSharding::kNone && recipe.cp == 1 && recipe.dp > 1;
  const std::int64_t replicas = check_state_shards(out, recipe) ? shard_replicas(recipe) : 1;
  if (!replicated && replicas > 1) {
    if (shard_ranks(recipe) % recipe.cp != 0) {
      out.cannot("state_shards", std::to_string(recipe.state_shards), "a shard group is data_parallel_shard_degree x cp",
                 "plan with a multiple of cp");
    }
    out.number(replicate, replicas, "state_shards", "groups that hold all states, each a copy of the others");
    out.number(shard, recipe.dp / replicas, "state_shards",
               fmt::format("x cp = {} ranks that share one copy of the states", shard_ranks(recipe)));
  } else {
    out.number(replicate, replicated ? recipe.dp : 1, "state_sharding",
               replicated ? "whole states on every data rank" : "no replicas");
    out.number(shard, replicated ? 1 : recipe.dp, "dp",
               "said, not -1: the product of all degrees is checked against the job's size");
  }
  if (recipe.state_sharding == StateSharding::kZero2) {
    out.add("parallelism.fsdp_reshard_after_forward", {"never"}, "state_sharding", "parameters stay gathered after forward");
  } else if (recipe.state_sharding == StateSharding::kZero3) {
    out.add("parallelism.fsdp_reshard_after_forward", {"always"}, "state_sharding",
            "parameters are gathered again in backward; the default keeps them gathered when pp > 1");
  } else if (!replicated) {
    out.cannot("state_sharding", std::string(name_of(recipe.state_sharding)), "FSDP2 shards everything over dp x cp",
               "plan with state_sharding=zero3");
  }
  if (!recipe.overlap_grad_reduce)
    out.cannot("overlap_grad_reduce", "false", "FSDP2 always reduces during backward", "plan with overlap_grad_reduce=true");
  if (!recipe.overlap_param_gather)
    out.cannot("overlap_param_gather", "false", "FSDP2 always prefetches", "plan with overlap_param_gather=true");
}

void write_work(Writer& out, const Recipe& recipe) {
  switch (recipe.recompute.kind) {
    case RecomputeKind::kNone:
      out.add("activation_checkpoint.mode", {"none"}, "recompute", "the default is selective");
      break;
    case RecomputeKind::kSelective:
      out.add("activation_checkpoint.mode", {"selective"}, "recompute", "part of a layer runs again");
      out.add("activation_checkpoint.selective_ac_option", {"op"}, "recompute", "attention and every second matmul are kept");
      break;
    case RecomputeKind::kFull:
      out.add("activation_checkpoint.mode", {"full"}, "recompute", "a whole layer runs again: only its input stays");
      break;
    case RecomputeKind::kMlp:
    case RecomputeKind::kBlock:
      out.cannot("recompute", to_text(recipe.recompute), "torchtitan recomputes every layer, every n-th, or its own selection",
                 "plan with recompute none, selective or full");
      break;
  }
  switch (recipe.precision) {
    case Precision::kBf16:
      break;
    case Precision::kFp8Current:
      out.add("model.converters", {"float8"}, "precision", "swaps the linears; the recipe alone changes nothing");
      out.add("float8.recipe_name", {"tensorwise"}, "precision", "one scale per tensor, from the current values");
      break;
    case Precision::kMxfp8:
      out.add("model.converters", {"mx"}, "precision", "swaps the linears; the recipe alone changes nothing");
      out.add("mx.recipe_name", {"mxfp8_cublas"}, "precision", "one scale per 32 values");
      break;
    case Precision::kFp16:
    case Precision::kFp8Delayed:
    case Precision::kFp8Block:
    case Precision::kNvfp4:
      out.cannot("precision", std::string(name_of(recipe.precision)), "torchtitan has bf16, float8 tensorwise and mxfp8",
                 "plan with precision bf16, fp8_current or mxfp8");
      break;
  }
}

/// "70B" of model.flavor: torchtitan names its models' sizes, not their shapes.
std::optional<double> parameters_of(const std::string& flavor) {
  double billions = 0;
  const auto [end, error] = std::from_chars(flavor.data(), flavor.data() + flavor.size(), billions);
  if (error != std::errc{} || std::string_view(end, flavor.data() + flavor.size()) != "B" || !(billions > 0)) return std::nullopt;
  return billions * 1e9;
}

Settings without_dashes(const Settings& settings) {
  Settings plain;
  plain.variables = settings.variables;
  for (Setting setting : settings.options) {
    if (setting.name.starts_with("--") && setting.name.find('.') != std::string::npos) {
      setting.name = setting.name.substr(2);
      std::replace(setting.name.begin(), setting.name.end(), '-', '_');
    }
    plain.options.push_back(std::move(setting));
  }
  return plain;
}

void read_pipeline(Taker& in, Recipe& recipe, std::int64_t layers) {
  const std::string schedule = in.word("parallelism.pipeline_parallel_schedule", "1F1B");
  const std::optional<std::int64_t> first = in.number("parallelism.pipeline_parallel_first_stage_less_layers"),
                                    last = in.number("parallelism.pipeline_parallel_last_stage_less_layers"),
                                    each = in.number("parallelism.pipeline_parallel_layers_per_stage");
  if (recipe.pp == 1) return;
  const std::int64_t less_first = first.value_or(1), less_last = last.value_or(1);
  if (less_first == 1 && less_last == 1) {
    recipe.stage_layout.kind = LayoutKind::kEmbeddingAndLossAsLayers;
  } else if (less_first != 0 || less_last != 0) {
    in.problem("launch.stage_layout", "", fmt::format("{} and {} layers less at the ends", less_first, less_last),
               "write 0 and 0, or 1 and 1");
  }
  if (schedule == "GPipe") {
    recipe.schedule = Schedule::kGpipe;
  } else if (schedule == "Interleaved1F1B") {
    recipe.schedule = Schedule::kInterleaved;
    recipe.vpp = 2;
    const std::int64_t counted = layers + less_first + less_last;
    if (each && (layers == 0 || *each < 1 || counted % (*each * recipe.pp) != 0)) {
      in.problem("launch.interleaving", "pipeline_parallel_layers_per_stage",
                 layers == 0 ? "counts layers per chunk, and nothing says how many the model has"
                             : fmt::format("{} per chunk do not divide {} over {} ranks", *each, counted, recipe.pp),
                 layers == 0 ? "say --layers" : "change it so that it divides");
    } else if (each) {
      recipe.vpp = static_cast<std::int32_t>(std::clamp<std::int64_t>(counted / (*each * recipe.pp), 1, kMaxDegree));
    }
  } else if (schedule != "1F1B") {
    in.problems.push_back(
        unknown_word("launch.schedule", "pipeline_parallel_schedule", schedule, {"1F1B", "GPipe", "Interleaved1F1B"}));
  }
}

void read_data(Taker& in, Recipe& recipe, std::optional<std::int64_t> world) {
  const std::int64_t replicate = in.number("parallelism.data_parallel_replicate_degree", 1);
  std::int64_t shard = in.number("parallelism.data_parallel_shard_degree").value_or(-1);
  const std::string reshard = in.word("parallelism.fsdp_reshard_after_forward", "default");
  const std::int64_t others = std::int64_t{recipe.tp} * recipe.cp * recipe.pp * replicate;
  if (shard < 1) {
    if (!world) {
      in.problem("launch.world_unknown", "parallelism.data_parallel_shard_degree",
                 "-1 takes what is left, and nothing says of how many", "write the degree, or say --gpus");
      return;
    }
    shard = std::max<std::int64_t>(1, *world / others);
  }
  if (shard > kMaxDegree || replicate * shard > kMaxDegree) {
    in.problem("launch.not_a_degree", "", "a data degree is too large", "check data_parallel_shard_degree");
    return;
  }
  recipe.dp = static_cast<std::int32_t>(replicate * shard);
  if (world && recipe.world() != *world) {
    in.problem("launch.world_size", "",
               fmt::format("tp {} x cp {} x pp {} x dp {} = {} is not the job's {} processes", recipe.tp, recipe.cp, recipe.pp,
                           recipe.dp, recipe.world(), *world),
               "change a degree so that the product is the number of processes");
  }
  const bool whole = replicate > 1 && shard == 1 && recipe.cp == 1;  // plain data parallelism
  if (replicate > 1 && !whole) recipe.state_shards = static_cast<std::int32_t>(shard * recipe.cp);
  recipe.state_sharding = whole                                                           ? StateSharding::kNone
                          : reshard == "never" || (reshard == "default" && recipe.pp > 1) ? StateSharding::kZero2
                                                                                          : StateSharding::kZero3;
}

void read_work(Taker& in, Recipe& recipe, bool compiled) {
  const std::string mode = in.word("activation_checkpoint.mode", "selective"),
                    option = in.word("activation_checkpoint.selective_ac_option", "2");
  if (mode == "full") {
    recipe.recompute.kind = RecomputeKind::kFull;
  } else if (mode == "selective" && option == "op") {
    recipe.recompute.kind = RecomputeKind::kSelective;
  } else if (mode == "selective") {
    in.problem("launch.recompute", "activation_checkpoint",
               fmt::format("selective, one layer in {}: a recipe has no such kind", option),
               "set selective_ac_option to op, or mode to full or none");
  } else if (mode != "none") {
    in.problems.push_back(unknown_word("launch.recompute", "activation_checkpoint.mode", mode, {"none", "selective", "full"}));
  }
  const Setting* converters = in.take("model.converters");
  const auto converts = [&](const char* name) {
    return converters != nullptr &&
           std::find(converters->values.begin(), converters->values.end(), name) != converters->values.end();
  };
  const std::string float8 = in.word("float8.recipe_name"), mx = in.word("mx.recipe_name");
  if (converts("float8")) {
    if (float8 == "tensorwise" || float8.empty()) {
      recipe.precision = Precision::kFp8Current;
    } else {
      in.problem("launch.precision", "float8.recipe_name", fmt::format("'{}' is no precision of a recipe", float8),
                 "use tensorwise");
    }
  } else if (converts("mx")) {
    recipe.precision = Precision::kMxfp8;
  } else if (!float8.empty() || !mx.empty()) {
    in.problem("launch.ignored_option", float8.empty() ? "mx.recipe_name" : "float8.recipe_name",
               "has no effect without model.converters: the job trains in bf16", "add the converter, or leave the recipe out");
  }
  recipe.overlap_tp = in.flag("parallelism.enable_async_tensor_parallel");
  if (recipe.overlap_tp && !compiled) {
    in.problem("launch.ignored_option", "parallelism.enable_async_tensor_parallel",
               "has no effect without compile: the collectives stay exposed", "set training.compile, or leave it out");
  } else if (recipe.overlap_tp && recipe.tp == 1) {
    in.problem("launch.ignored_option", "parallelism.enable_async_tensor_parallel", "has no effect at tensor_parallel_degree 1",
               "leave it out");
  }
}

}  // namespace

Outcome<Launch> write_torchtitan(const LaunchCase& what) {
  const Recipe& recipe = what.recipe;
  Writer out;
  out.launch.format = LaunchFormat::kTorchtitan;
  if (!check_framework(out, recipe)) return std::move(out.problems);
  add_torchrun(out, what);
  const std::int64_t per_rank = what.training.global_batch / recipe.dp;
  if (what.training.global_batch % (std::int64_t{recipe.dp} * recipe.micro_batch) != 0) {
    out.refuse("launch.global_batch", "global_batch",
               fmt::format("{} sequences do not divide by micro-batch {} x dp {}", what.training.global_batch, recipe.micro_batch,
                           recipe.dp),
               "change the batch or the degrees");
  }
  out.number("training.seq_len", what.training.sequence.count(), "training", "tokens per sequence, padding included");
  out.number("training.global_batch_size", what.training.global_batch, "training", "sequences per optimizer step");
  out.number("training.local_batch_size", recipe.pp == 1 ? recipe.micro_batch : per_rank,
             recipe.pp == 1 ? "micro_batch" : "training",
             recipe.pp == 1 ? "sequences per micro-batch; the rest is accumulated" : "the whole pipeline batch of a data rank");
  if (recipe.overlap_tp) out.add("training.compile", {"true"}, "overlap_tp", "async TP has no effect without compile");
  write_data(out, recipe);
  out.number("parallelism.tensor_parallel_degree", recipe.tp, "tp",
             fmt::format("ranks that each layer's weights are cut over: {}", recipe.tp));
  if (recipe.tp > 1 && !recipe.sequence_parallel)
    out.cannot("sequence_parallel", "false", "tensor parallelism always cuts the sequence too",
               "plan with sequence_parallel=true");
  out.number("parallelism.context_parallel_degree", recipe.cp, "cp",
             fmt::format("ranks that each sequence is cut over: {}", recipe.cp));
  if (recipe.cp > 1 && recipe.cp_comm != CpComm::kP2p) {
    out.refuse("launch.cp_comm", "cp_comm",
               fmt::format("torchtitan has no {}: the job would run another attention than was planned", name_of(recipe.cp_comm)),
               "plan with framework=torchtitan, cp_comm=p2p (its own exchange)");
  } else if (recipe.cp > 1) {
    out.add("parallelism.context_parallel_rotate_method", {"allgather"}, "cp_comm",
            "what the rule set counts: all keys and values after the first step");
  }
  if (recipe.cp > 1 && recipe.shard_layout != ShardLayout::kZigzag) {
    out.cannot("shard_layout", std::string(name_of(recipe.shard_layout)), "this form always balances head and tail",
               "plan with shard_layout=zigzag");
  }
  write_pipeline(out, what);
  if (recipe.overlap_tp && recipe.tp == 1) {
    out.refuse("launch.overlap_tp", "overlap_tp", "async TP needs tp above 1", "clear overlap_tp");
  } else if (recipe.overlap_tp) {
    out.add("parallelism.enable_async_tensor_parallel", {"true"}, "overlap_tp", "TP collectives run behind GEMMs");
  }
  write_work(out, recipe);
  if (what.training.grad_dtype == GradDtype::kBf16)
    out.cannot("grad_dtype", "bf16", "mixed_precision_reduce has float32 only", "plan with grad_dtype fp32");
  list_without_effect(out, recipe, ShardLayout::kZigzag);
  list_training(out, what.training);
  if (recipe.rank_order != kMeshOrder)
    out.cannot("rank_order", to_text(recipe.rank_order), "the mesh is always pp, dp, cp, tp from outside in",
               "plan with rank_order=tp-cp-dp-pp");
  return finish(std::move(out), what);
}

Outcome<LaunchReading> read_torchtitan(const Settings& settings, std::optional<std::int64_t> gpus, std::int64_t layers) {
  const Settings plain = without_dashes(settings);
  Taker in(plain);
  LaunchReading reading;
  Recipe& recipe = reading.recipe;
  recipe.framework = std::string(framework_of(LaunchFormat::kTorchtitan));
  recipe.tp = static_cast<std::int32_t>(in.number("parallelism.tensor_parallel_degree", 1));
  recipe.cp = static_cast<std::int32_t>(in.number("parallelism.context_parallel_degree", 1));
  recipe.pp = static_cast<std::int32_t>(in.number("parallelism.pipeline_parallel_degree", 1));
  const std::int64_t local = in.number("training.local_batch_size", 8);  // its default
  const std::int64_t micro = in.number("parallelism.pipeline_parallel_microbatch_size", 1);
  recipe.micro_batch = static_cast<std::int32_t>(recipe.pp == 1 ? local : micro);
  if (in.number("parallelism.expert_parallel_degree", 1) > 1) {
    in.problem("launch.experts", "parallelism.expert_parallel_degree", "the job trains a mixture of experts",
               "cpfit plans dense models only");
  }
  if (const std::string rotate = in.word("parallelism.context_parallel_rotate_method", "allgather"); rotate != "allgather") {
    in.problem("launch.ignored_option", "parallelism.context_parallel_rotate_method",
               fmt::format("'{}': the rotation was reported to change nothing (torchtitan 3086)", rotate), "write allgather");
  }
  read_pipeline(in, recipe, layers);
  reading.world = launched_world(in);
  if (reading.world && gpus && *reading.world != *gpus) {
    in.problem("launch.world_size", "",
               fmt::format("the launcher starts {} processes, but {} GPUs were said", *reading.world, *gpus), "leave one out");
  }
  if (!reading.world) reading.world = gpus;
  read_data(in, recipe, reading.world);
  const bool switched = in.flag("training.compile"), sectioned = in.flag("compile.enable");
  read_work(in, recipe, switched || sectioned);
  if (!reading.world) reading.world = recipe.world();
  if (const auto sequence = in.number("training.seq_len"); sequence && *sequence > 0) {
    reading.sequence = Tokens(*sequence);
    const std::int64_t chunks = 2 * std::int64_t{recipe.cp} * recipe.tp;
    if (recipe.cp > 1 && *sequence % chunks != 0) {
      in.problem("launch.sequence", "training.seq_len",
                 fmt::format("{} tokens do not divide by 2 * cp * tp = {}", *sequence, chunks),
                 fmt::format("pad to {}", (*sequence / chunks + 1) * chunks));
    }
  }
  reading.global_batch = in.number("training.global_batch_size");
  reading.model.parameters = parameters_of(in.word("model.flavor"));
  if (!in.problems.empty()) return in.problems;
  reading.passed_over = in.rest();
  return reading;
}

}  // namespace cpfit::launch
