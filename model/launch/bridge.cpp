// Megatron-Bridge: the same choices as Megatron-LM under the names of its configuration groups. Pairs of names:
// docs/megatron-lm-to-megatron-bridge.md; those under model.* are the fields of Megatron core's configuration classes.
#include <fmt/format.h>

#include "model/launch/settings.h"

namespace cpfit::launch {

namespace {

struct NamePair {
  std::string_view megatron, bridge;
};
constexpr NamePair kNames[] = {
    {"--tensor-model-parallel-size", "model.tensor_model_parallel_size"},
    {"--context-parallel-size", "model.context_parallel_size"},
    {"--cp-comm-type", "model.cp_comm_type"},
    {"--hierarchical-context-parallel-sizes", "model.hierarchical_context_parallel_sizes"},
    {"--pipeline-model-parallel-size", "model.pipeline_model_parallel_size"},
    {"--num-virtual-stages-per-pipeline-rank", "model.virtual_pipeline_model_parallel_size"},
    {"--account-for-embedding-in-pipeline-split", "model.account_for_embedding_in_pipeline_split"},
    {"--account-for-loss-in-pipeline-split", "model.account_for_loss_in_pipeline_split"},
    {"--decoder-first-pipeline-num-layers", "model.num_layers_in_first_pipeline_stage"},
    {"--decoder-last-pipeline-num-layers", "model.num_layers_in_last_pipeline_stage"},
    {"--pipeline-model-parallel-layout", "model.pipeline_model_parallel_layout"},
    {"--sequence-parallel", "model.sequence_parallel"},
    {"--num-layers", "model.num_layers"},
    {"--seq-length", "model.seq_length"},
    {"--recompute-granularity", "model.recompute_granularity"},
    {"--recompute-method", "model.recompute_method"},
    {"--recompute-num-layers", "model.recompute_num_layers"},
    {"--recompute-modules", "model.recompute_modules"},
    {"--micro-batch-size", "train.micro_batch_size"},
    {"--global-batch-size", "train.global_batch_size"},
    {"--use-distributed-optimizer", "ddp.use_distributed_optimizer"},
    {"--overlap-grad-reduce", "ddp.overlap_grad_reduce"},
    {"--overlap-param-gather", "ddp.overlap_param_gather"},
    {"--use-megatron-fsdp", "ddp.use_megatron_fsdp"},
    {"--data-parallel-sharding-strategy", "ddp.data_parallel_sharding_strategy"},
    {"--ckpt-format", "checkpoint.ckpt_format"},
    {"--tp-comm-overlap", "comm_overlap.tp_comm_overlap"},
    {"--use-tp-pp-dp-mapping", "dist.use_tp_pp_dp_mapping"},
    {"--expert-model-parallel-size", "model.expert_model_parallel_size"},
    {"--num-experts", "model.num_moe_experts"},
};

struct PrecisionName {
  Precision precision;
  std::string_view preset;
};
constexpr PrecisionName kPresets[] = {{Precision::kBf16, "bf16_mixed"},
                                      {Precision::kFp16, "fp16_mixed"},
                                      {Precision::kFp8Delayed, "bf16_with_fp8_delayed_scaling_mixed"},
                                      {Precision::kFp8Current, "bf16_with_fp8_current_scaling_mixed"},
                                      {Precision::kFp8Block, "bf16_with_fp8_subchannel_scaling_mixed"},
                                      {Precision::kMxfp8, "bf16_with_mxfp8_mixed"},
                                      {Precision::kNvfp4, "bf16_with_nvfp4_mixed"}};

std::string_view preset_of(Precision precision) {
  for (const PrecisionName& row : kPresets) {
    if (row.precision == precision) return row.preset;
  }
  return "bf16_mixed";
}

/// What a later argument of the same name in Bridge's own defaults would override: stated so that the recipe is complete.
void state_switches(Launch& launch, const Recipe& recipe) {
  const auto off = [&](const char* name, const char* key, const char* reason) {
    for (const LaunchArgument& argument : launch.arguments) {
      if (argument.name == name) return;
    }
    launch.arguments.push_back({name, {"false"}, key, reason, false});
  };
  off("ddp.overlap_grad_reduce", "overlap_grad_reduce", "Bridge switches it on when dp > 1");
  off("ddp.overlap_param_gather", "overlap_param_gather", "Bridge switches it on when dp > 1");
  off("ddp.use_distributed_optimizer", "state_sharding", "states are not sharded");
  if (recipe.tp > 1) off("model.sequence_parallel", "sequence_parallel", "model recipes may switch it on");
}

}  // namespace

Outcome<Launch> write_bridge(const LaunchCase& what) {
  LaunchCase as_megatron = what;
  if (what.recipe.framework == framework_of(LaunchFormat::kBridge)) {
    as_megatron.recipe.framework = std::string(framework_of(LaunchFormat::kMegatron));
  }
  Outcome<Launch> written = write_megatron(as_megatron);
  if (!written.ok()) return written;
  Launch launch = std::move(written).value();
  launch.format = LaunchFormat::kBridge;
  std::vector<LaunchArgument> arguments;
  for (LaunchArgument argument : launch.arguments) {
    if (argument.of_launcher) {
      arguments.push_back(std::move(argument));
      continue;
    }
    if (argument.recipe_key == "precision") {
      if (argument.name == "--bf16" || argument.name == "--fp16") {
        arguments.push_back({"mixed_precision",
                             {std::string(preset_of(what.recipe.precision))},
                             "precision",
                             "preset of number formats; it is applied to model, optimizer and ddp",
                             false});
      }
      continue;
    }
    if (argument.name == "--no-overlap-p2p-communication") {
      arguments.push_back({"comm_overlap.overlap_p2p_comm", {"false"}, argument.recipe_key, argument.reason, false});
      continue;
    }
    if (argument.name == "--grad-reduce-in-bf16") {
      arguments.push_back({"ddp.grad_reduce_in_fp32", {"false"}, argument.recipe_key, argument.reason, false});
      continue;
    }
    bool known = false;
    for (const NamePair& pair : kNames) {
      if (pair.megatron != argument.name) continue;
      known = true;
      arguments.push_back({std::string(pair.bridge), argument.values.empty() ? std::vector<std::string>{"true"} : argument.values,
                           argument.recipe_key, argument.reason, false});
    }
    if (argument.name == "--use-distributed-optimizer") {
      arguments.push_back({"optimizer.use_distributed_optimizer", {"true"}, argument.recipe_key, "both groups hold it", false});
    }
    if (argument.name == "--use-megatron-fsdp") {
      arguments.push_back({"dist.use_megatron_fsdp", {"true"}, argument.recipe_key, "both groups hold it", false});
    }
    if (!known && argument.name == "--no-gradient-accumulation-fusion") {
      arguments.push_back({"model.gradient_accumulation_fusion", {"false"}, argument.recipe_key, argument.reason, false});
    }
  }
  launch.arguments = std::move(arguments);
  state_switches(launch, what.recipe);
  for (Unexpressed& row : launch.unexpressed) {
    if (row.recipe_key == "framework")
      row.reason = "the recipe's figures hold for that rule set; the arguments start Megatron-Bridge";
  }
  return launch;
}

Outcome<LaunchReading> read_bridge(const Settings& settings, std::optional<std::int64_t> gpus) {
  Settings as_megatron;
  as_megatron.variables = settings.variables;
  bool precise = false;
  for (const Setting& setting : settings.options) {
    const std::string value = setting.values.empty() ? "" : setting.values.front();
    const bool off = value == "false" || value == "False" || value == "null" || value == "None";
    const auto add = [&](const std::string& name, std::vector<std::string> values) {
      as_megatron.options.push_back({name, std::move(values), setting.where});
    };
    if (setting.name == "mixed_precision") {
      const PrecisionName* found = nullptr;
      for (const PrecisionName& row : kPresets) {
        if (row.preset == value) found = &row;
      }
      if (found == nullptr) {
        std::vector<std::string> known;
        for (const PrecisionName& row : kPresets) known.emplace_back(row.preset);
        return Problem{"launch.precision", setting.where, fmt::format("mixed_precision '{}' is no preset cpfit knows", value),
                       fmt::format("did you mean {}?", nearest_name(value, known))};
      }
      precise = true;
      add(found->precision == Precision::kFp16 ? "--fp16" : "--bf16", {});
      switch (found->precision) {
        case Precision::kFp8Delayed:
          add("--fp8-format", {"hybrid"});
          add("--fp8-recipe", {"delayed"});
          break;
        case Precision::kFp8Current:
          add("--fp8-format", {"hybrid"});
          add("--fp8-recipe", {"tensorwise"});
          break;
        case Precision::kFp8Block:
          add("--fp8-format", {"e4m3"});
          add("--fp8-recipe", {"blockwise"});
          break;
        case Precision::kMxfp8:
          add("--fp8-format", {"e4m3"});
          add("--fp8-recipe", {"mxfp8"});
          break;
        case Precision::kNvfp4:
          add("--fp4-format", {"e2m1"});
          break;
        case Precision::kBf16:
        case Precision::kFp16:
          break;
      }
      continue;
    }
    if (setting.name == "comm_overlap.overlap_p2p_comm") {
      if (off) add("--no-overlap-p2p-communication", {});
      continue;
    }
    if (setting.name == "optimizer.use_distributed_optimizer" || setting.name == "dist.use_megatron_fsdp" ||
        setting.name == "model.gradient_accumulation_fusion" || setting.name == "ddp.grad_reduce_in_fp32") {
      continue;  // follow from the others
    }
    bool known = setting.name.starts_with("--");  // the launcher's
    for (const NamePair& pair : kNames) {
      if (pair.bridge != setting.name) continue;
      known = true;
      if (value != "null" && value != "None") add(std::string(pair.megatron), setting.values);
    }
    if (known && setting.name.starts_with("--")) add(setting.name, setting.values);
    if (!known) add(setting.name, setting.values);
  }
  if (!precise) as_megatron.options.push_back({"--bf16", {}, ""});
  Outcome<LaunchReading> reading = read_megatron(as_megatron, gpus, LaunchFormat::kBridge);
  if (reading.ok()) return reading;
  Problems problems = reading.problems();  // in the names that were written
  for (Problem& problem : problems) {
    for (std::string* text : {&problem.where, &problem.message, &problem.repair}) {
      for (const NamePair& pair : kNames) {
        for (std::size_t at = text->find(pair.megatron); at != std::string::npos; at = text->find(pair.megatron, at + 1)) {
          const std::size_t end = at + pair.megatron.size();
          if (end < text->size() && ((*text)[end] == '-' || ((*text)[end] >= 'a' && (*text)[end] <= 'z'))) continue;
          text->replace(at, pair.megatron.size(), pair.bridge);
        }
      }
    }
  }
  return problems;
}

}  // namespace cpfit::launch
