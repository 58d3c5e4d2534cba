// cpfit presets: what cpfit knows without being told, a source per row.
#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/json.h"
#include "cli/terminal.h"
#include "model/cluster/cluster_spec.h"
#include "model/framework/rule_set.h"
#include "model/presets/embedded.h"
#include "model/quantity/hash.h"
#include "model/quantity/text.h"
#include "model/rates/rate_set.h"
#include "model/transformer/parameters.h"
#include "model/transformer/presets.h"

namespace cpfit::cli {

namespace {

/// 8030261248 -> "8,030,261,248"
std::string grouped(std::int64_t count) {
  std::string digits = std::to_string(count);
  for (std::ptrdiff_t at = std::ssize(digits) - 3; at > 0; at -= 3) digits.insert(static_cast<std::size_t>(at), 1, ',');
  return digits;
}

/// As many whole words as fit into `columns`, and whether there were more.
std::string first_words(const std::string& text, std::size_t columns) {
  if (text.size() <= columns) return text;
  return text.substr(0, text.rfind(' ', columns - 4)) + " ...";
}

int show_models(bool json) {
  Json list = Json::array();
  Table table({{"model", false},
               {"parameters"},
               {"layers"},
               {"hidden"},
               {"heads"},
               {"kv heads"},
               {"head dim"},
               {"FFN"},
               {"vocabulary"},
               {"tied", false}});
  for (const Architecture& model : model_presets()) {
    const std::int64_t parameters = count_parameters(model).total();
    if (json) {
      list.push_back({{"name", model.name},
                      {"parameters", parameters},
                      {"layers", model.layers},
                      {"hidden", model.hidden},
                      {"heads", model.heads},
                      {"kv_heads", model.kv_heads},
                      {"head_dim", model.head_dim},
                      {"ffn_hidden", model.ffn_hidden},
                      {"vocab", model.vocab},
                      {"tied_embeddings", model.tied_embeddings},
                      {"source", model.source}});
    } else {
      table.row({model.name, grouped(parameters), std::to_string(model.layers), std::to_string(model.hidden),
                 std::to_string(model.heads), std::to_string(model.kv_heads), std::to_string(model.head_dim),
                 std::to_string(model.ffn_hidden), std::to_string(model.vocab), model.tied_embeddings ? "yes" : ""});
    }
  }
  if (json)
    print_json({{"models", list}});
  else
    fmt::print("{}", table.text());
  return kDone;
}

int show_gpus(bool json) {
  Json list = Json::array();
  Table table({{"GPU", false}, {"memory"}, {"HBM"}, {"BF16"}, {"FP8"}, {"scale-up"}, {"PCIe"}, {"SMs"}, {"evidence", false}});
  for (const Gpu& gpu : gpu_presets()) {
    if (json) {
      list.push_back({{"name", gpu.name},
                      {"memory_bytes", gpu.memory.value()},
                      {"memory_usable_bytes", gpu.memory_usable.value()},
                      {"hbm_bytes_per_second", gpu.hbm.value()},
                      {"bf16_flops_per_second", gpu.bf16.value()},
                      {"fp8_flops_per_second", gpu.fp8.value()},
                      {"scale_up_bytes_per_second", gpu.scale_up.value()},
                      {"pcie_bytes_per_second", gpu.pcie.value()},
                      {"sm_count", gpu.sm_count},
                      {"assumed", gpu.assumed},
                      {"source", gpu.source}});
    } else {
      table.row({gpu.name, print_bytes(gpu.memory_usable), print_rate(gpu.hbm),
                 gpu.bf16.value() > 0 ? print_flop_rate(gpu.bf16) : "-", gpu.fp8.value() > 0 ? print_flop_rate(gpu.fp8) : "-",
                 gpu.scale_up.value() > 0 ? print_rate(gpu.scale_up) : "-", print_rate(gpu.pcie), std::to_string(gpu.sm_count),
                 gpu.assumed ? "partly assumed" : ""});
    }
  }
  if (json)
    print_json({{"gpus", list}});
  else
    fmt::print("{}", table.text());
  return kDone;
}

int show_clusters(bool json) {
  Json list = Json::array();
  Table table({{"cluster", false}, {"GPU", false}, {"GPUs per node"}, {"scale-up domain"}, {"source", false}});
  for (const std::string& name : cluster_preset_names()) {
    // As many nodes as one scale-up domain joins: one node of a rack would show its own GPUs only.
    const Outcome<ClusterSpec> spec = find_cluster_spec(name);
    const Outcome<Cluster> cluster = spec.ok() ? build_cluster(*spec, std::max(1, spec->domain_nodes)) : spec.problems();
    if (!cluster.ok()) continue;
    if (json) {
      list.push_back({{"name", name},
                      {"gpu", cluster->gpu.name},
                      {"gpus_per_node", cluster->gpus_per_node},
                      {"scale_up_domain", cluster->scale_up_domain},
                      {"source", cluster->source}});
    } else {
      table.row({name, cluster->gpu.name, std::to_string(cluster->gpus_per_node), std::to_string(cluster->scale_up_domain),
                 first_words(cluster->source, 60)});
    }
  }
  if (json)
    print_json({{"clusters", list}});
  else
    fmt::print("{}", table.text());
  return kDone;
}

int show_frameworks(bool json) {
  Json list = Json::array();
  Table table({{"rule set", false}, {"CP strategies", false}, {"state sharding", false}, {"read from", false}});
  for (const RuleSet& rules : framework_presets()) {
    std::string comms, shardings;
    for (const CpComm comm : rules.cp_comms) comms += (comms.empty() ? "" : " ") + std::string(name_of(comm));
    for (const StateSharding sharding : rules.state_shardings)
      shardings += (shardings.empty() ? "" : " ") + std::string(name_of(sharding));
    if (json) {
      Json sources;
      for (const PolicySource& policy : rules.policy_sources) sources[policy.policy] = policy.source;
      list.push_back({{"name", rules.name},
                      {"version", rules.version},
                      {"cp_comm", comms},
                      {"state_sharding", shardings},
                      {"policies", sources}});
    } else {
      table.row({rules.name, comms, shardings, rules.version});
    }
  }
  if (json)
    print_json({{"frameworks", list}});
  else
    fmt::print("{}", table.text());
  return kDone;
}

int show_rates(bool json) {
  const RateSet rates = RateSet::defaults();
  const std::string_view text = embedded_file("presets/rates.toml");
  if (json)
    print_json({{"version", rates.version()}, {"sha256", sha256_hex(text)}, {"toml", std::string(text)}});
  else
    fmt::print("{}", text);
  return kDone;
}

}  // namespace

void add_presets(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand("presets", "Models, GPUs, clusters, framework rule sets and rates that cpfit knows");
  command->require_subcommand(1);
  const auto add = [&](const char* name, const char* what, int (*show)(bool)) {
    auto json = std::make_shared<bool>(false);
    CLI::App* sub = command->add_subcommand(name, what);
    sub->add_flag("--json", *json, "Print one JSON object, with the source of every row");
    sub->callback([json, show, &exit_code] { exit_code = show(*json); });
  };
  add("models", "Dense models, parameter counts exact", show_models);
  add("gpus", "GPUs of the data sheets", show_gpus);
  add("clusters", "Clusters composed from parts", show_clusters);
  add("frameworks", "Rule sets: what a framework does that changes memory or time", show_frameworks);
  add("rates", "Fitted rate surfaces and assumed constants", show_rates);
}

}  // namespace cpfit::cli
