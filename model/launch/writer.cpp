#include "model/launch/writer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "model/recipe/recipe_names.h"

namespace cpfit::launch {

void Writer::add(const std::string& name, std::vector<std::string> values, const std::string& key, const std::string& reason) {
  launch.arguments.push_back({name, std::move(values), key, reason, false});
}
void Writer::number(const std::string& name, std::int64_t value, const std::string& key, const std::string& reason) {
  add(name, {std::to_string(value)}, key, reason);
}
void Writer::cannot(const std::string& key, const std::string& value, const std::string& reason, const std::string& repair) {
  problems.push_back({"launch.not_expressible", key,
                      fmt::format("{} cannot say {}={}: {}", name_of(launch.format), key, value, reason), repair});
}
void Writer::elsewhere(const std::string& key, const std::string& value, const std::string& reason) {
  launch.unexpressed.push_back({key, value, reason, true});
}
void Writer::without_effect(const std::string& key, const std::string& value, const std::string& reason) {
  launch.unexpressed.push_back({key, value, reason, false});
}
void Writer::refuse(const std::string& code, const std::string& where, const std::string& message, const std::string& repair) {
  problems.push_back({code, where, message, repair});
}

void list_without_effect(Writer& writer, const Recipe& recipe, ShardLayout shards_as) {
  const auto list = [&](bool differs, const char* key, const std::string& value, const char* reason) {
    if (!differs) return;
    for (const Unexpressed& row : writer.launch.unexpressed) {
      if (row.recipe_key == key) return;
    }
    writer.without_effect(key, value, reason);
  };
  if (recipe.cp == 1) {
    const char* why = "without effect: cp is 1";
    list(recipe.cp_comm != CpComm::kP2p, "cp_comm", std::string(name_of(recipe.cp_comm)), why);
    list(recipe.shard_layout != shards_as, "shard_layout", std::string(name_of(recipe.shard_layout)), why);
  }
  const bool groups = recipe.cp > 1 && (recipe.cp_comm == CpComm::kA2a || recipe.cp_comm == CpComm::kA2aP2p);
  list(!groups && recipe.a2a_degree != 1, "a2a_degree", std::to_string(recipe.a2a_degree),
       "without effect: no all-to-all of this exchange is smaller than cp");
  list(recipe.window != 1, "window", std::to_string(recipe.window), "without effect: not a double ring");
  list(recipe.tp == 1 && !recipe.sequence_parallel, "sequence_parallel", "false", "without effect: tp is 1");
  if (recipe.pp == 1) {
    list(recipe.stage_layout.kind != LayoutKind::kEven, "stage_layout", to_text(recipe.stage_layout),
         "without effect on one stage");
    list(recipe.schedule == Schedule::kGpipe || recipe.schedule == Schedule::kZeroBubble, "schedule",
         std::string(name_of(recipe.schedule)), "without effect on one stage");
    if (recipe.vpp > 1) {
      writer.refuse("launch.interleaving", "vpp", "interleaving needs at least two pipeline stages",
                    "set vpp to 1 or pp above 1");
    }
  }
  list(recipe.vpp == 1 && !recipe.overlap_p2p, "overlap_p2p", "false", "without effect: not interleaved");
  list(recipe.state_sharding == StateSharding::kNone && !recipe.overlap_param_gather, "overlap_param_gather", "false",
       "without effect: no parameter is gathered");
}

void list_training(Writer& writer, const Training& training) {
  if (training.mask.kind == MaskKind::kDocuments) {
    writer.elsewhere(
        "training", "mask=documents",
        "attention stays inside documents only when the data pipeline packs them and passes their lengths: without that the "
        "job attends across them");
  } else if (training.mask.kind == MaskKind::kFull) {
    writer.elsewhere("training", "mask=full", "the model is causal unless its own code says otherwise");
  } else if (training.mask.kind == MaskKind::kSlidingWindow) {
    writer.elsewhere("training", "mask=sliding_window", "the window is an argument of the model");
  }
  if (training.optimizer != OptimizerKind::kAdam) {
    writer.elsewhere("training", fmt::format("optimizer={}", name_of(training.optimizer)),
                     "the job's optimizer is its own argument; with plain Adam it needs more memory than planned");
  }
  if (training.cuda_graphs) {
    writer.elsewhere("training", "cuda_graphs=true", "capturing layers in CUDA graphs is the job's own argument");
  }
  if (training.vocab_divisor != 128) {
    writer.elsewhere("training", fmt::format("vocab_divisor={}", training.vocab_divisor),
                     "how the vocabulary is padded is an argument of the model");
  }
}

bool check_framework(Writer& writer, const Recipe& recipe) {
  if (starts(writer.launch.format, recipe.framework)) return true;
  writer.refuse("launch.framework", "framework",
                fmt::format("the recipe's figures are those of {}, but {} arguments start {}", recipe.framework,
                            name_of(writer.launch.format), framework_of(writer.launch.format)),
                fmt::format("plan with framework={}, or choose another --format", framework_of(writer.launch.format)));
  return false;
}

bool check_state_shards(Writer& writer, const Recipe& recipe) {
  const std::int64_t ranks = std::int64_t{recipe.dp} * recipe.cp;
  if (ranks % shard_ranks(recipe) == 0) return true;
  writer.refuse("launch.state_shards", "state_shards",
                fmt::format("groups of {} do not divide dp {} x cp {}", recipe.state_shards, recipe.dp, recipe.cp),
                "change state_shards, dp or cp");
  return false;
}

namespace {

std::int64_t processes_per_node(const LaunchCase& what) {
  std::int64_t each = std::max<std::int32_t>(1, what.gpus_per_node);
  while (what.recipe.world() % each != 0) --each;
  return each;
}

}  // namespace

void add_torchrun(Writer& writer, const LaunchCase& what) {
  const std::int64_t each = processes_per_node(what), nodes = what.recipe.world() / each;
  const auto add = [&](const char* name, const std::string& value, const std::string& reason) {
    writer.launch.arguments.push_back({name, {value}, "world", reason, true});
  };
  const std::string reason = fmt::format("tp*cp*pp*dp = {} processes, one per GPU", what.recipe.world());
  add("--nnodes", std::to_string(nodes), reason);
  add("--nproc-per-node", std::to_string(each), reason);
  if (nodes == 1) return;
  // As Megatron's own example scripts (examples/llama/train_llama3_8b_h100_fp8.sh), port included.
  add("--node-rank", "${NODE_RANK}",
      fmt::format("0 to {}, another on every node: ranks are numbered by it, so that the rings lie as planned", nodes - 1));
  add("--master-addr", "${MASTER_ADDR}", "the host of node 0, where all processes meet");
  add("--master-port", "${MASTER_PORT:-6000}", "a free port of that host");
}

void place_devices(Writer& writer, const LaunchCase& what) {
  if (what.device_orders.empty()) return;
  const std::string reason = "ranks take the GPUs of a node in the order that the scenario's cluster.device_order names";
  const bool has_environment = writer.launch.format == LaunchFormat::kMegatron || writer.launch.format == LaunchFormat::kBridge;
  const std::int64_t nodes = what.recipe.world() / processes_per_node(what);
  if (has_environment && (what.device_orders.size() == 1 || nodes == 1)) {
    writer.launch.environment.push_back({what.devices_variable, what.device_orders.front(), reason});
    return;
  }
  if (has_environment) {
    writer.launch.environment.push_back(
        {what.devices_variable, "", reason + "; the orders alternate over the nodes", what.device_orders});
    return;
  }
  std::vector<std::string> lines;
  for (std::size_t n = 0; n < what.device_orders.size(); ++n)
    lines.push_back(fmt::format("node {}: {}={}", n, what.devices_variable, what.device_orders[n]));
  const bool alternate = lines.size() > 1;
  writer.elsewhere("cluster.device_order", fmt::format("{}", fmt::join(lines, "; ")),
                   reason + (alternate ? fmt::format("; nodes behind these take them again, {} by {}", lines.size(), lines.size())
                                       : std::string("; set it where the job's processes start")));
}

Outcome<Launch> finish(Writer writer, const LaunchCase& what) {
  place_devices(writer, what);
  if (!writer.problems.empty()) return writer.problems;
  writer.launch.world = what.recipe.world();
  return std::move(writer.launch);
}

}  // namespace cpfit::launch
