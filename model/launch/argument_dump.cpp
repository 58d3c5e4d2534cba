#include "model/launch/argument_dump.h"

#include <algorithm>
#include <string_view>

namespace cpfit {

namespace {

struct Row {
  std::string_view name, option;
};
constexpr Row kValues[] = {{"tensor_model_parallel_size", "--tensor-model-parallel-size"},
                           {"context_parallel_size", "--context-parallel-size"},
                           {"pipeline_model_parallel_size", "--pipeline-model-parallel-size"},
                           {"expert_model_parallel_size", "--expert-model-parallel-size"},
                           {"num_experts", "--num-experts"},
                           {"num_layers", "--num-layers"},
                           {"micro_batch_size", "--micro-batch-size"},
                           {"global_batch_size", "--global-batch-size"},
                           {"seq_length", "--seq-length"},
                           {"transformer_impl", "--transformer-impl"},
                           {"decoder_first_pipeline_num_layers", "--decoder-first-pipeline-num-layers"},
                           {"decoder_last_pipeline_num_layers", "--decoder-last-pipeline-num-layers"},
                           {"recompute_granularity", "--recompute-granularity"},
                           {"recompute_method", "--recompute-method"},
                           {"recompute_num_layers", "--recompute-num-layers"},
                           {"hierarchical_context_parallel_sizes", "--hierarchical-context-parallel-sizes"},
                           {"fp8", "--fp8-format"},
                           {"fp4", "--fp4-format"}};
constexpr Row kSwitches[] = {{"bf16", "--bf16"},
                             {"fp16", "--fp16"},
                             {"sequence_parallel", "--sequence-parallel"},
                             {"tp_comm_overlap", "--tp-comm-overlap"},
                             {"use_distributed_optimizer", "--use-distributed-optimizer"},
                             {"use_megatron_fsdp", "--use-megatron-fsdp"},
                             {"use_custom_fsdp", "--use-megatron-fsdp"},  // its name in older versions
                             {"overlap_grad_reduce", "--overlap-grad-reduce"},
                             {"overlap_param_gather", "--overlap-param-gather"},
                             {"use_tp_pp_dp_mapping", "--use-tp-pp-dp-mapping"},
                             {"account_for_embedding_in_pipeline_split", "--account-for-embedding-in-pipeline-split"},
                             {"account_for_loss_in_pipeline_split", "--account-for-loss-in-pipeline-split"}};

/// "['p2p', 'a2a']" and "[2, 4]" as words; anything else as one word, quoted where a shell would cut it.
std::string words(const std::string& value) {
  std::string plain;
  const bool list = value.starts_with('[') && value.ends_with(']');
  for (const char c : value) {
    const bool dropped = c == '\'' || c == '"' || c == '\\' || c == '\n' || (list && (c == '[' || c == ']'));
    if (!dropped) plain += list && c == ',' ? ' ' : c;
  }
  return list || plain.find_first_of(" |*()$&;<>#") == std::string::npos ? plain : "'" + plain + "'";
}

}  // namespace

std::string value_in(const ArgumentDump& dump, const std::string& name) {
  const auto found = std::find_if(dump.rbegin(), dump.rend(), [&](const auto& row) { return row.first == name; });
  return found == dump.rend() || found->second == "None" ? std::string() : found->second;
}

std::string launch_text_of(const ArgumentDump& dump) {
  std::string text;
  const auto add = [&](std::string_view option, const std::string& value) {
    text += std::string(option) + (value.empty() ? "" : " " + words(value)) + "\n";
  };
  const std::string granularity = value_in(dump, "recompute_granularity");
  for (const Row& row : kValues) {
    const std::string value = value_in(dump, std::string(row.name));
    // What has no effect without a granularity is filled in all the same.
    if (value.empty() || (granularity != "full" && (row.name == "recompute_method" || row.name == "recompute_num_layers")))
      continue;
    add(row.option, value);
  }
  for (const Row& row : kSwitches) {
    if (value_in(dump, std::string(row.name)) == "True") add(row.option, "");
  }
  const std::string virtual_stages = value_in(dump, "virtual_pipeline_model_parallel_size");
  const std::string layout = value_in(dump, "pipeline_model_parallel_layout");
  if (!layout.empty()) {
    add("--pipeline-model-parallel-layout", layout);
  } else if (!virtual_stages.empty() && virtual_stages != "1") {
    add("--num-virtual-stages-per-pipeline-rank", virtual_stages);
  }
  if ((!layout.empty() || !virtual_stages.empty()) && value_in(dump, "overlap_p2p_comm") == "False")
    add("--no-overlap-p2p-communication", "");
  if (granularity == "selective") {
    if (const std::string modules = value_in(dump, "recompute_modules"); !modules.empty()) add("--recompute-modules", modules);
  }
  if (!value_in(dump, "fp8").empty()) {
    if (const std::string recipe = value_in(dump, "fp8_recipe"); !recipe.empty()) add("--fp8-recipe", recipe);
  }
  if (value_in(dump, "use_megatron_fsdp") == "True" || value_in(dump, "use_custom_fsdp") == "True") {
    if (const std::string strategy = value_in(dump, "data_parallel_sharding_strategy"); !strategy.empty())
      add("--data-parallel-sharding-strategy", strategy);
  }
  // One kind for all layers is printed as a list of one.
  if (const std::string kind = value_in(dump, "cp_comm_type"); !kind.empty()) add("--cp-comm-type", kind);
  return text;
}

}  // namespace cpfit
