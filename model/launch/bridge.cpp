// Megatron-Bridge: the same choices as Megatron-LM under the names of its configuration groups. Pairs of names:
// docs/megatron-lm-to-megatron-bridge.md and scripts/translate_mlm_to_bridge.py; those under model.* are the fields of Megatron
// core's configuration classes. The group comm_overlap does not exist unless the Bridge recipe builds it, and then overrules
// ddp.overlap_* and model.overlap_p2p_comm; mixed_precision overrules ddp.grad_reduce_in_fp32: what only they hold is not said.
#include <fmt/format.h>

#include "model/launch/formats.h"
#include "model/launch/taker.h"
#include "model/launch/writer.h"

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
    {"--hidden-size", "model.hidden_size"},
    {"--ffn-hidden-size", "model.ffn_hidden_size"},
    {"--num-attention-heads", "model.num_attention_heads"},
    {"--num-query-groups", "model.num_query_groups"},
    {"--kv-channels", "model.kv_channels"},
    {"--vocab-size", "model.vocab_size"},
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
    {"--num-distributed-optimizer-instances", "ddp.num_distributed_optimizer_instances"},
    {"--use-megatron-fsdp", "ddp.use_megatron_fsdp"},
    {"--data-parallel-sharding-strategy", "ddp.data_parallel_sharding_strategy"},
    {"--ckpt-format", "checkpoint.ckpt_format"},
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
  const char* overruled = "as planned; a Bridge recipe with comm_overlap switches it on again when dp > 1";
  off("ddp.overlap_grad_reduce", "overlap_grad_reduce", overruled);
  off("ddp.overlap_param_gather", "overlap_param_gather", overruled);
  off("ddp.use_distributed_optimizer", "state_sharding", "states are not sharded");
  if (recipe.tp > 1) off("model.sequence_parallel", "sequence_parallel", "model recipes may switch it on");
}

}  // namespace

Outcome<Launch> write_bridge(const LaunchCase& what) {
  Outcome<Launch> written = write_megatron(what, LaunchFormat::kBridge);
  if (!written.ok()) return written;
  Launch launch = std::move(written).value();
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
                             what.recipe.precision == Precision::kFp8Current
                                 ? "preset applied to model, optimizer and ddp; it keeps the first and the last layer in bf16, "
                                   "which the figures count in FP8"
                                 : "preset of number formats; it is applied to model, optimizer and ddp",
                             false});
      }
      continue;
    }
    if (argument.name == "--accumulate-allreduce-grads-in-fp32") {
      launch.unexpressed.push_back({"training", "grad_dtype=fp32",
                                    "fp16_mixed reduces gradients in fp16: set grad_reduce_in_fp32 in the Bridge recipe's own "
                                    "MixedPrecisionConfig",
                                    true});
      continue;
    }
    if (argument.name == "--no-overlap-p2p-communication" || argument.name == "--no-gradient-accumulation-fusion") {
      continue;  // the first is said below for either value, the second Bridge does by itself
    }
    if (argument.name == "--tp-comm-overlap") {
      launch.unexpressed.push_back({"overlap_tp", "true",
                                    "the group comm_overlap is absent by default: set "
                                    "comm_overlap=CommOverlapConfig(tp_comm_overlap=True) in the Bridge recipe's Python",
                                    true});
      continue;
    }
    if (argument.name == "--grad-reduce-in-bf16") {
      launch.unexpressed.push_back({"training", "grad_dtype=bf16",
                                    "the mixed_precision preset overwrites ddp.grad_reduce_in_fp32: set it in the Bridge "
                                    "recipe's own MixedPrecisionConfig",
                                    true});
      continue;
    }
    for (const NamePair& pair : kNames) {
      if (pair.megatron != argument.name) continue;
      arguments.push_back({std::string(pair.bridge), argument.values.empty() ? std::vector<std::string>{"true"} : argument.values,
                           argument.recipe_key, argument.reason, false});
    }
    if (argument.name == "--use-distributed-optimizer") {
      arguments.push_back({"optimizer.use_distributed_optimizer", {"true"}, argument.recipe_key, "both groups hold it", false});
    }
    if (argument.name == "--seq-length") {
      arguments.push_back({"dataset.seq_length", argument.values, "training", "must be the model's", false});
    }
    if (argument.name == "--num-virtual-stages-per-pipeline-rank" || argument.name == "--pipeline-model-parallel-layout") {
      if (what.recipe.vpp == 1) continue;
      const bool overlapped = what.recipe.overlap_p2p;
      arguments.push_back({"model.overlap_p2p_comm",
                           {overlapped ? "true" : "false"},
                           "overlap_p2p",
                           "the model's own default is false; a Bridge recipe with comm_overlap sets true itself",
                           false});
      arguments.push_back({"model.batch_p2p_comm",
                           {overlapped ? "false" : "true"},
                           "overlap_p2p",
                           "overlapped messages are single ones, waiting ones are batched",
                           false});
    }
  }
  launch.arguments = std::move(arguments);
  state_switches(launch, what.recipe);
  return launch;
}

Outcome<LaunchReading> read_bridge(const Settings& settings, std::optional<std::int64_t> gpus) {
  Settings as_megatron;
  as_megatron.variables = settings.variables;
  bool precise = false;
  std::string sequence, dataset;
  std::vector<Setting> overruling;  // comm_overlap decides over ddp, wherever it stands
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
    if (setting.name == "comm_overlap.overlap_p2p_comm" || setting.name == "model.overlap_p2p_comm") {
      if (off) add("--no-overlap-p2p-communication", {});
      continue;
    }
    if (setting.name == "comm_overlap.tp_comm_overlap") {
      add("--tp-comm-overlap", setting.values);
      continue;
    }
    if (setting.name == "dist.use_megatron_fsdp") {
      if (!off) add("--use-megatron-fsdp", {});
      continue;
    }
    if (setting.name == "comm_overlap.overlap_grad_reduce" || setting.name == "comm_overlap.overlap_param_gather") {
      overruling.push_back(
          {setting.name.ends_with("gather") ? "--overlap-param-gather" : "--overlap-grad-reduce", setting.values, setting.where});
      continue;
    }
    if (setting.name == "dataset.seq_length") {
      dataset = value;
      continue;
    }
    if (setting.name == "model.seq_length") sequence = value;
    if (setting.name == "optimizer.use_distributed_optimizer" || setting.name == "model.batch_p2p_comm" ||
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
  if (!sequence.empty() && !dataset.empty() && sequence != dataset) {
    return Problem{"launch.sequence", "dataset.seq_length",
                   fmt::format("the dataset's {} tokens are not the model's {}: Bridge stops", dataset, sequence),
                   "write the same length for both"};
  }
  for (Setting& setting : overruling) as_megatron.options.push_back(std::move(setting));
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
