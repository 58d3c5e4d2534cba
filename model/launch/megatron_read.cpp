// Arguments of Megatron-LM as a recipe.
#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>

#include "model/launch/formats.h"
#include "model/launch/megatron_names.h"
#include "model/launch/taker.h"
#include "model/recipe/recipe_names.h"

namespace cpfit::launch {

namespace {

void read_context(Taker& in, Recipe& recipe) {
  const Setting* named = in.take("--cp-comm-type");
  const Setting* sizes_at = in.take("--hierarchical-context-parallel-sizes");
  const std::vector<std::int64_t> sizes = in.numbers("--hierarchical-context-parallel-sizes");
  std::string kind = named == nullptr || named->values.empty() ? "p2p" : named->values.front();
  if (named != nullptr && named->values.size() > 1 &&
      std::any_of(named->values.begin(), named->values.end(), [&](const std::string& other) { return other != kind; })) {
    in.problem("launch.cp_comm", named->where, "layers with different --cp-comm-type: a recipe has one",
               "name one kind for all layers");
    return;
  }
  if (kind == "allgather") {
    in.problem("launch.cp_comm", named->where,
               "--cp-comm-type allgather: the help text says so, but TransformerEngine knows only all_gather",
               "write all_gather");
    return;
  }
  const std::optional<CpComm> comm = value_named<CpComm>(kind);
  if (!comm || *comm == CpComm::kDoubleRing) {
    in.problems.push_back(unknown_word("launch.cp_comm", named->where, kind, {"p2p", "all_gather", "a2a", "a2a+p2p"}));
    return;
  }
  if (recipe.cp == 1) return;
  recipe.cp_comm = *comm;
  if (*comm == CpComm::kA2a) recipe.a2a_degree = recipe.cp;
  const bool stated = sizes_at != nullptr && !sizes_at->values.empty() && sizes_at->values.front() != "null";
  if (*comm == CpComm::kA2aP2p) {
    if (!stated) {
      in.problem("launch.hierarchical_sizes", named->where,
                 "a2a+p2p without --hierarchical-context-parallel-sizes: no rank sends anything, the job looks fast and is wrong",
                 fmt::format("add --hierarchical-context-parallel-sizes A B with A * B = {}, A inside a node", recipe.cp));
    } else if (sizes.size() != 2 || sizes[0] * sizes[1] != recipe.cp) {
      in.problem("launch.hierarchical_sizes", sizes_at->where,
                 fmt::format("a2a+p2p needs two sizes whose product is --context-parallel-size {}", recipe.cp),
                 fmt::format("write two factors of {}", recipe.cp));
    } else {
      recipe.a2a_degree = static_cast<std::int32_t>(sizes[0]);
    }
  } else if (stated) {
    in.problem("launch.ignored_option", sizes_at->where,
               fmt::format("--hierarchical-context-parallel-sizes has no effect with --cp-comm-type {}", kind),
               "set --cp-comm-type a2a+p2p, or leave the sizes out");
  }
}

/// "Ett|tt|ttL" with "t*3" and "(tt|)*2" written out; empty when it is not such a text.
std::vector<std::int32_t> chunks_of(const std::string& text) {
  std::string flat;
  std::vector<std::size_t> opened;
  std::size_t unit = 0;  // where the last repeated unit begins in `flat`
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '(') {
      opened.push_back(flat.size());
    } else if (c == ')') {
      if (opened.empty()) return {};
      unit = opened.back();
      opened.pop_back();
    } else if (c == '*') {
      std::size_t times = 0, digits = 0;
      while (i + 1 < text.size() && text[i + 1] >= '0' && text[i + 1] <= '9' && digits < 5) {
        times = times * 10 + static_cast<std::size_t>(text[++i] - '0');
        ++digits;
      }
      const std::string repeated = flat.substr(unit);
      if (times == 0 || flat.size() + repeated.size() * times > 100000) return {};
      for (std::size_t k = 1; k < times; ++k) flat += repeated;
    } else if (c == 'E' || c == 't' || c == 'L' || c == '|') {
      unit = flat.size();
      flat += c;
    } else if (c != ',' && c != ' ') {
      return {};
    }
  }
  if (!opened.empty() || !flat.starts_with('E') || !flat.ends_with('L') || std::count(flat.begin(), flat.end(), 'E') != 1 ||
      std::count(flat.begin(), flat.end(), 'L') != 1) {
    return {};
  }
  std::vector<std::int32_t> chunks(1, 0);
  for (const char c : flat) {
    if (c == '|') chunks.push_back(0);
    if (c == 't') ++chunks.back();
  }
  return chunks;
}

void read_pipeline(Taker& in, Recipe& recipe) {
  const std::int64_t layers = in.number("--num-layers", 0);
  const bool embedding = in.flag("--account-for-embedding-in-pipeline-split"),
             loss = in.flag("--account-for-loss-in-pipeline-split");
  const std::int64_t first = in.number("--decoder-first-pipeline-num-layers", 0),
                     last = in.number("--decoder-last-pipeline-num-layers", 0);
  const Setting* layout = in.take("--pipeline-model-parallel-layout");
  const std::optional<std::int64_t> virtual_stages = in.number("--num-virtual-stages-per-pipeline-rank");
  const std::optional<std::int64_t> per_chunk = in.number("--num-layers-per-virtual-pipeline-stage");
  if ((virtual_stages ? 1 : 0) + (per_chunk ? 1 : 0) + (layout != nullptr ? 1 : 0) > 1 ||
      (per_chunk && (first > 0 || last > 0))) {
    in.problem("launch.stage_layout", "", "two statements of the virtual stages: Megatron stops",
               "keep --num-virtual-stages-per-pipeline-rank, or the layout text");
    return;
  }
  const int kinds = (embedding || loss ? 1 : 0) + (first > 0 || last > 0 ? 1 : 0) + (layout != nullptr ? 1 : 0);
  if (kinds > 1) {
    in.problem("launch.stage_layout", "", "two ways to split the layers at once", "keep one of layout, first/last, account-for");
    return;
  }
  if (virtual_stages) {
    recipe.vpp = static_cast<std::int32_t>(std::clamp<std::int64_t>(*virtual_stages, 1, kMaxDegree));
  } else if (per_chunk && *per_chunk > 0) {
    const std::int64_t counted = layers + (embedding ? 1 : 0) + (loss ? 1 : 0), each = *per_chunk * recipe.pp;
    if (layers == 0 || counted % each != 0) {
      in.problem("launch.interleaving", "",
                 fmt::format("--num-layers-per-virtual-pipeline-stage {} does not divide the layers of a stage", *per_chunk),
                 "name --num-layers too, or use --num-virtual-stages-per-pipeline-rank");
    } else {
      recipe.vpp = static_cast<std::int32_t>(counted / each);
    }
  }
  if (layout != nullptr && !layout->values.empty()) {
    recipe.stage_layout = {LayoutKind::kExplicit, 0, 0, chunks_of(layout->values.front())};
    const auto chunks = static_cast<std::int64_t>(recipe.stage_layout.layers.size());
    if (chunks == 0 || chunks % recipe.pp != 0) {
      in.problem("launch.stage_layout", layout->where,
                 chunks == 0 ? fmt::format("'{}' is not a layout that a recipe can hold", layout->values.front())
                             : fmt::format("'{}' has {} chunks, no multiple of pp {}", layout->values.front(), chunks, recipe.pp),
                 "write pp * vpp chunks of E, t and L between |, E first and L last");
    } else {
      recipe.vpp = static_cast<std::int32_t>(chunks / recipe.pp);
    }
  } else if (embedding && loss) {
    recipe.stage_layout.kind = LayoutKind::kEmbeddingAndLossAsLayers;
  } else if (embedding || loss) {
    in.problem("launch.stage_layout", "", "only one of embedding and loss counts as a layer: a recipe has both or none",
               "add the other, or state the layout as text");
  } else if (first > 0 || last > 0) {
    recipe.stage_layout = {LayoutKind::kFirstLast, static_cast<std::int32_t>(first), static_cast<std::int32_t>(last), {}};
  }
  if (recipe.vpp > 1 && recipe.pp == 1) {
    in.problem("launch.interleaving", "", "virtual stages need --pipeline-model-parallel-size above 1", "leave them out");
  }
  if (recipe.vpp > 1) recipe.schedule = Schedule::kInterleaved;
  const bool waits = in.flag("--no-overlap-p2p-communication");
  if (recipe.vpp > 1) recipe.overlap_p2p = !waits;
  if (recipe.vpp > 1 && recipe.pp == 2 && waits) {
    in.problem("launch.interleaving", "", "--no-overlap-p2p-communication with two interleaved stages: Megatron stops",
               "leave it out, or use more stages");
  }
}

bool one_of(const std::vector<std::string>& values, std::initializer_list<std::string_view> names) {
  return values.size() == 1 && std::find(names.begin(), names.end(), values.front()) != names.end();
}

void read_recompute(Taker& in, Recipe& recipe) {
  const std::string granularity = in.word("--recompute-granularity"), method = in.word("--recompute-method");
  const std::int64_t layers = in.number("--recompute-num-layers", 1);
  const Setting* modules = in.take("--recompute-modules");
  const bool selective = in.flag("--recompute-activations") || granularity == "selective";
  if (selective) {
    if (!method.empty()) {
      in.problem("launch.recompute", "", "--recompute-method is not supported with selective recompute", "leave it out");
    } else if (modules != nullptr && !one_of(modules->values, {"core_attn", "mlp"})) {
      in.problem("launch.recompute", modules->where, "a recipe recomputes core_attn alone, mlp alone or whole layers",
                 "name core_attn or mlp only, or full");
    }
    const bool mlp = modules != nullptr && one_of(modules->values, {"mlp"});
    recipe.recompute.kind = mlp ? RecomputeKind::kMlp : RecomputeKind::kSelective;
  } else if (granularity == "full") {
    if (method == "uniform" && layers == 1) {
      recipe.recompute.kind = RecomputeKind::kFull;
    } else if (method == "block") {
      recipe.recompute = {RecomputeKind::kBlock,
                          static_cast<std::int32_t>(std::min<std::int64_t>(layers * recipe.vpp, kMaxDegree))};
    } else {
      in.problem("launch.recompute", "",
                 method.empty() ? "full recompute without --recompute-method"
                                : fmt::format("full recompute, {} over {} layers", method, layers),
                 "write --recompute-method uniform --recompute-num-layers 1, or block with a count");
    }
  } else if (!granularity.empty() && granularity != "null") {
    in.problems.push_back(unknown_word("launch.recompute", "--recompute-granularity", granularity, {"selective", "full"}));
  } else if (!method.empty() && method != "null") {
    in.problem("launch.ignored_option", "", "--recompute-method has no effect without --recompute-granularity full",
               "add --recompute-granularity full, or leave the method out");
  }
}

void read_precision(Taker& in, Recipe& recipe) {
  const bool bf16 = in.flag("--bf16"), fp16 = in.flag("--fp16");
  const Setting* fp8_recipe = in.take("--fp8-recipe");
  const std::string format = in.word("--fp8-format"), fp4 = in.word("--fp4-format");
  const std::string kind = fp8_recipe == nullptr || fp8_recipe->values.empty() ? "delayed" : fp8_recipe->values.front();
  (void)in.word("--fp4-recipe");
  (void)in.flag("--accumulate-allreduce-grads-in-fp32");
  (void)in.flag("--grad-reduce-in-bf16");
  if (!bf16 && !fp16) {
    in.problem("launch.precision", "", "neither --bf16 nor --fp16: Megatron would train in fp32", "add --bf16");
  } else if (bf16 && fp16) {
    in.problem("launch.precision", "", "both --bf16 and --fp16", "keep one");
  }
  recipe.precision = fp16 ? Precision::kFp16 : Precision::kBf16;
  if (!fp4.empty()) {
    recipe.precision = Precision::kNvfp4;
  } else if (!format.empty()) {
    const Fp8Row* found = nullptr;
    for (const Fp8Row& row : kFp8) {
      if (row.recipe == kind) found = &row;
    }
    if (found == nullptr) {
      in.problems.push_back(
          unknown_word("launch.precision", "--fp8-recipe", kind, {"delayed", "tensorwise", "blockwise", "mxfp8"}));
    } else {
      recipe.precision = found->precision;
    }
  } else if (fp8_recipe != nullptr && kind != "delayed") {
    in.problem("launch.ignored_option", fp8_recipe->where,
               fmt::format("--fp8-recipe {} without --fp8-format: nothing runs in FP8, the job trains in bf16", kind),
               "add --fp8-format hybrid (e4m3 for blockwise and mxfp8), or leave the recipe out");
  }
}

void read_states(Taker& in, Recipe& recipe) {
  const bool fsdp = in.flag("--use-megatron-fsdp"), distributed = in.flag("--use-distributed-optimizer");
  const std::string strategy = in.word("--data-parallel-sharding-strategy", "no_shard");
  (void)in.flag("--no-gradient-accumulation-fusion");
  recipe.state_sharding = distributed ? StateSharding::kZero1 : StateSharding::kNone;
  if (fsdp) {
    (void)in.word("--ckpt-format");
    if (strategy == "optim_grads_params") {
      recipe.state_sharding = StateSharding::kZero3;
    } else if (strategy == "optim_grads") {
      recipe.state_sharding = StateSharding::kZero2;
    } else if (strategy == "optim") {
      recipe.state_sharding = StateSharding::kZero1;
    } else {
      recipe.state_sharding = StateSharding::kNone;
    }
  } else if (strategy != "no_shard") {
    in.problem("launch.ignored_option", "",
               fmt::format("--data-parallel-sharding-strategy {} has no effect without --use-megatron-fsdp", strategy),
               "add --use-megatron-fsdp, or leave the strategy out");
  }
  recipe.overlap_grad_reduce = in.flag("--overlap-grad-reduce");
  const bool gather = in.flag("--overlap-param-gather");
  if (gather && (recipe.state_sharding == StateSharding::kNone || !recipe.overlap_grad_reduce)) {
    in.problem("launch.overlap_param_gather", "",
               "--overlap-param-gather needs --use-distributed-optimizer (or Megatron-FSDP) and --overlap-grad-reduce",
               "add them, or leave it out");
  }
  if (recipe.state_sharding != StateSharding::kNone) recipe.overlap_param_gather = gather;
}

/// After dp is known: so many instances share dp x cp.
void read_instances(Taker& in, Recipe& recipe) {
  const std::int64_t instances = in.number("--num-distributed-optimizer-instances", 1);
  const std::int64_t ranks = std::int64_t{recipe.dp} * recipe.cp;
  if (instances <= 1 || !in.problems.empty()) return;
  if (fully_sharded(recipe)) {
    in.problem("launch.instances", "--num-distributed-optimizer-instances",
               "how Megatron-FSDP reduces over replicas of its shards was not read",
               "leave it out, or use the distributed optimizer");
  } else if (recipe.state_sharding == StateSharding::kNone) {
    in.problem("launch.ignored_option", "--num-distributed-optimizer-instances",
               "has no effect without --use-distributed-optimizer", "add it, or leave the instances out");
  } else if (ranks % instances != 0) {
    in.problem("launch.instances", "--num-distributed-optimizer-instances",
               fmt::format("{} instances do not divide dp {} x cp {}", instances, recipe.dp, recipe.cp),
               "change it so that it divides");
  } else {
    recipe.state_shards = static_cast<std::int32_t>(ranks / instances);
  }
}

void read_tensor(Taker& in, Recipe& recipe, Problems& notes) {
  const bool sequence = in.flag("--sequence-parallel");
  if (recipe.tp > 1) {
    recipe.sequence_parallel = sequence;
  } else if (sequence) {
    notes.push_back({"launch.no_effect", "", "--sequence-parallel is switched off by Megatron when tensor parallelism is 1", ""});
  }
  recipe.overlap_tp = in.flag("--tp-comm-overlap");
  if (recipe.overlap_tp && (recipe.tp == 1 || !sequence)) {
    in.problem("launch.overlap_tp", "", "--tp-comm-overlap needs tensor parallelism above 1 and --sequence-parallel",
               "add --sequence-parallel, or leave it out");
  }
}

void check_environment(Taker& in, const Recipe& recipe, Problems& notes) {
  const std::optional<std::string> queues = in.variable("CUDA_DEVICE_MAX_CONNECTIONS");
  const bool one = queues && *queues == "1";
  if (fully_sharded(recipe) && one) {
    in.problem("launch.one_queue", "CUDA_DEVICE_MAX_CONNECTIONS", "with one hardware queue FSDP's gathers wait behind compute",
               "unset CUDA_DEVICE_MAX_CONNECTIONS");
  } else if (!fully_sharded(recipe) && recipe.tp == 1 && recipe.cp == 1 && one && recipe.overlap_grad_reduce) {
    in.problem(
        "launch.one_queue", "CUDA_DEVICE_MAX_CONNECTIONS",
        "with one hardware queue --overlap-grad-reduce overlaps nothing (Megatron-LM 1468), and tp = cp = 1 does not need it",
        "unset CUDA_DEVICE_MAX_CONNECTIONS");
  } else if (!fully_sharded(recipe) && (recipe.tp > 1 || recipe.cp > 1) && !one) {
    notes.push_back({"launch.many_queues", "CUDA_DEVICE_MAX_CONNECTIONS",
                     "is not 1: before Blackwell Megatron stops with tp or cp above 1, because their messages may then start "
                     "after the kernels that should hide them",
                     "export CUDA_DEVICE_MAX_CONNECTIONS=1 on Ampere and Hopper"});
  }
}

}  // namespace

Outcome<LaunchReading> read_megatron(const Settings& settings, std::optional<std::int64_t> gpus, LaunchFormat as) {
  Taker in(settings);
  LaunchReading reading;
  Recipe& recipe = reading.recipe;
  recipe.framework = std::string(framework_of(as));
  recipe.tp = static_cast<std::int32_t>(in.number("--tensor-model-parallel-size", 1));
  recipe.cp = static_cast<std::int32_t>(in.number("--context-parallel-size", 1));
  recipe.pp = static_cast<std::int32_t>(in.number("--pipeline-model-parallel-size", 1));
  recipe.micro_batch = static_cast<std::int32_t>(in.number("--micro-batch-size", 1));
  if (in.number("--expert-model-parallel-size", 1) > 1 || in.number("--num-experts", 0) > 0) {
    in.problem("launch.experts", "", "the job trains a mixture of experts", "cpfit plans dense models only");
  }
  if (recipe.cp > 1 && in.word("--transformer-impl") == "local") {
    in.problem("launch.transformer_impl", "--transformer-impl", "the local attention has no context parallelism",
               "use --transformer-impl transformer_engine");
  }
  read_context(in, recipe);
  read_pipeline(in, recipe);
  read_recompute(in, recipe);
  read_precision(in, recipe);
  read_states(in, recipe);
  read_tensor(in, recipe, reading.notes);
  if (in.flag("--use-tp-pp-dp-mapping")) {
    recipe.rank_order = kPipelineBeforeData;
    if (recipe.cp > 1) {
      in.problem("launch.rank_order", "", "--use-tp-pp-dp-mapping must not be used with context parallelism", "leave it out");
    }
  }
  if (const auto sequence = in.number("--seq-length"); sequence && *sequence > 0) {
    reading.sequence = Tokens(*sequence);
    const std::int64_t chunks = 2 * std::int64_t{recipe.cp};
    if (recipe.cp > 1 && *sequence % chunks != 0) {
      in.problem("launch.sequence", "--seq-length",
                 fmt::format("{} tokens do not divide into 2 * cp = {} chunks", *sequence, chunks),
                 fmt::format("pad to {}", (*sequence / chunks + 1) * chunks));
    }
  }
  reading.global_batch = in.number("--global-batch-size");
  reading.model = launched_model(in);
  // Without the switch every head has keys of its own, whatever the groups are; Bridge has no such switch.
  const bool grouped = in.flag("--group-query-attention") || as == LaunchFormat::kBridge;
  if (!grouped && !in.flag("--use-checkpoint-args")) reading.model.kv_heads = reading.model.heads;
  reading.world = launched_world(in);
  resolve_dp(recipe, reading.world, gpus, in);
  read_instances(in, recipe);
  if (!reading.world) reading.world = gpus;
  check_environment(in, recipe, reading.notes);
  if (in.problems.empty() && reading.global_batch &&
      *reading.global_batch % (std::int64_t{recipe.micro_batch} * recipe.dp) != 0) {
    in.problem(
        "launch.global_batch", "--global-batch-size",
        fmt::format("{} sequences do not divide by micro-batch {} x dp {}", *reading.global_batch, recipe.micro_batch, recipe.dp),
        "change the batch or the degrees");
  }
  if (!in.problems.empty()) return in.problems;
  for (const char* offload : {"--optimizer-cpu-offload", "--cpu-offloading", "--offload-optimizer-states"}) {
    if (in.flag(offload)) note_offload(reading, offload);
  }
  reading.passed_over = in.rest();
  return reading;
}

}  // namespace cpfit::launch
