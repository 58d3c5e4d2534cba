#include "gui/study/recipe_values.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <set>

#include "gui/study/scenario_text.h"
#include "model/cluster/cluster.h"
#include "model/cluster/device_order.h"
#include "model/framework/rule_set.h"
#include "model/quantity/text.h"
#include "model/recipe/recipe_names.h"
#include "model/transformer/presets.h"

namespace cpfit::gui {

namespace {

using enum ParameterKind;

constexpr std::array kParameters = {
    Parameter{"model", "Model", "Question", kChoice, "", "The transformer that is trained.", false},
    Parameter{"cluster", "Cluster", "Question", kChoice, "", "Kind of machine; its links decide what a ring can hide.", false},
    Parameter{"nodes", "Nodes", "Question", kCount, "nodes", "How many machines of that kind.", true},
    Parameter{"sequence_length", "Sequence", "Question", kTokens, "tokens", "Tokens of one (packed) sequence; 128k is 131,072.",
              true},
    Parameter{"global_batch", "Global batch", "Question", kCount, "sequences", "Sequences per optimizer step, over all replicas.",
              true},
    Parameter{"cp", "CP", "Parallel sizes", kDegree, "GPUs", "Context parallelism: GPUs that share one sequence.", true},
    Parameter{"tp", "TP", "Parallel sizes", kDegree, "GPUs", "Tensor parallelism: GPUs that share each layer's matrices.", true},
    Parameter{"pp", "PP", "Parallel sizes", kDegree, "stages", "Pipeline parallelism: stages of layers.", true},
    Parameter{"dp", "DP", "Parallel sizes", kDegree, "replicas", "Data parallelism: replicas with their own sequences.", true},
    Parameter{"cp_comm", "CP exchange", "Sequence and attention", kChoice, "",
              "How ranks of a context group meet each other's keys and values.", true},
    Parameter{"a2a_degree", "Inner a2a group", "Sequence and attention", kDegree, "GPUs",
              "a2a+p2p: ranks of the inner head exchange.", true},
    Parameter{"window", "Inner ring", "Sequence and attention", kDegree, "GPUs", "Double ring: ranks of the inner ring.", true},
    Parameter{"shard_layout", "Sharding", "Sequence and attention", kChoice, "",
              "How a sequence is cut over CP; zigzag balances a causal mask.", true},
    Parameter{"recompute", "Recompute", "Memory", kChoice, "", "Activations that are computed again instead of kept.", true},
    Parameter{"micro_batch", "Micro-batch", "Memory", kCount, "sequences", "Sequences per micro-batch and replica.", true},
    Parameter{"state_sharding", "State sharding", "Memory", kChoice, "",
              "ZeRO: how optimizer, gradients and weights are shared over DP and CP.", true},
    Parameter{"state_shards", "State shards", "Memory", kChoice, "",
              "Ranks of DP × CP that share one copy of the states (HSDP); gradients are summed over the copies.", true},
    Parameter{"precision", "Precision", "Memory", kChoice, "", "Number format of matrix products.", true},
    Parameter{"vpp", "Chunks per stage", "Schedule", kCount, "chunks", "Interleaved pipeline: model chunks on each stage.", true},
    Parameter{"stage_layout", "Stage layout", "Schedule", kChoice, "", "How layers are spread over stages.", false},
    Parameter{"sequence_parallel", "Sequence parallel", "Schedule", kFlag, "", "Norms and dropout sharded over TP as well.",
              false},
    Parameter{"overlap_tp", "Overlap TP", "Schedule", kFlag, "", "TP collectives behind matrix products.", false},
    Parameter{"overlap_grad_reduce", "Overlap gradients", "Schedule", kFlag, "", "Gradients reduced while backward runs.", false},
    Parameter{"overlap_param_gather", "Overlap parameters", "Schedule", kFlag, "", "Parameters gathered while forward runs.",
              false},
    Parameter{"framework", "Framework", "Schedule", kChoice, "", "Whose rules and buffers hold.", false},
};

constexpr std::size_t kMostValues = 20;

std::optional<std::int64_t> whole(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

Problem not_whole(std::string_view key, const std::string& value) {
  return {"gui.value", std::string(key), fmt::format("'{}' is not a whole number of at least 1", value), "write 1, 2, 4 …"};
}

/// Sets the derived degree so that the world fills the cluster, where it divides.
void derive(Design& design, std::string_view derived) {
  Recipe& r = design.recipe;
  std::int64_t others = 1;
  std::int32_t* target = nullptr;
  for (const auto& [key, field] :
       {std::pair<std::string_view, std::int32_t*>("tp", &r.tp), {"cp", &r.cp}, {"pp", &r.pp}, {"dp", &r.dp}}) {
    if (key == derived)
      target = field;
    else
      others *= *field;
  }
  const std::int64_t gpus = design.scenario->cluster.gpus();
  if (target == nullptr || others <= 0 || gpus % others != 0) return;
  const auto degree = static_cast<std::int32_t>(gpus / others);
  const Outcome<Recipe> filled = parse_recipe(fmt::format("{}={}", derived, degree), r);
  if (filled.ok()) r = *filled;
}

template <class Change>
Design with_scenario(const Design& design, Change change) {
  auto scenario = std::make_shared<Scenario>(*design.scenario);
  change(*scenario);
  Design changed = design;
  changed.scenario = std::move(scenario);
  return changed;
}

Outcome<Design> with_sequence_length(const Design& design, const std::string& value) {
  const Outcome<Tokens> tokens = parse_tokens(value);
  if (!tokens.ok()) return tokens.problems();
  if (tokens->count() < 1)
    return Problem{"gui.value", "sequence_length", "a sequence has at least one token", "write 32k, 128k or 1M"};
  // How documents fill a sequence depends on its length: only the reader knows how.
  if (design.training().mask.kind == MaskKind::kDocuments)
    return reread(design,
                  with_toml_value(design.scenario->text, "training", "sequence_length", toml_string(print_tokens(*tokens))));
  return with_scenario(design, [&](Scenario& scenario) { scenario.training.sequence = *tokens; });
}

/// Edits of the question's fixed parts go through the file's text; sequence and batch as they are now go with them.
std::string current_text(const Design& design) {
  std::string text = with_toml_value(design.scenario->text, "training", "sequence_length",
                                     toml_string(print_tokens(design.training().sequence)));
  text = without_toml_key(text, "training", "global_batch_tokens");
  return with_toml_value(text, "training", "global_batch", std::to_string(design.training().global_batch));
}

Outcome<Design> with_cluster(const Design& design, const std::string& preset, std::int64_t nodes) {
  std::string text = without_toml_key(current_text(design), "", "cluster");
  text = without_toml_section(text, "cluster");
  text = with_toml_value(text, "cluster", "preset", toml_string(preset));
  text = with_toml_value(text, "cluster", "nodes", std::to_string(nodes));
  return reread(design, text);
}

Outcome<Design> with_node_count(const Design& design, std::int64_t nodes) {
  Outcome<Cluster> cluster = with_nodes(design.scenario->cluster, nodes);
  if (!cluster.ok()) return cluster.problems();
  return with_scenario(design, [&](Scenario& scenario) {
    scenario.cluster = std::move(cluster).value();
    std::string text = without_toml_key(scenario.text, "cluster", "gpus");
    scenario.text = with_toml_value(text, "cluster", "nodes", std::to_string(nodes));
  });
}

Outcome<Design> with_model(const Design& design, const std::string& name) {
  std::string text = without_toml_section(without_toml_key(current_text(design), "", "model"), "model");
  return reread(design, with_toml_value(text, "", "model", toml_string(name)));
}

}  // namespace

Outcome<Design> with_placement(const Design& design, const RankOrder& rank_order, const DeviceOrders& device_orders) {
  std::string text = without_toml_key(current_text(design), "cluster", "device_order");
  std::vector<std::string> orders;
  for (const std::vector<std::int32_t>& order : device_orders) orders.push_back(toml_string(device_order_text(order)));
  if (!orders.empty()) text = with_toml_value(text, "cluster", "device_order", fmt::format("[{}]", fmt::join(orders, ", ")));
  Outcome<Design> changed = reread(design, text);
  if (changed.ok()) changed.value().recipe.rank_order = rank_order;
  return changed;
}

namespace {

std::vector<std::string> as_text(const std::set<std::int64_t>& values) {
  std::vector<std::string> text;
  for (const std::int64_t value : values) text.push_back(std::to_string(value));
  return text;
}

std::set<std::int64_t> divisors_of(std::int64_t n) {
  std::set<std::int64_t> found;
  for (std::int64_t d = 1; d * d <= n; ++d) {
    if (n % d == 0) found.insert({d, n / d});
  }
  return found;
}

/// The nearest `kMostValues` of a set around a value.
std::set<std::int64_t> near(std::set<std::int64_t> values, std::int64_t around) {
  while (values.size() > kMostValues) {
    const std::int64_t low = *values.begin(), high = *values.rbegin();
    // Distances as ratios: degrees are compared by their factor.
    const bool low_is_farther =
        static_cast<double>(around) / static_cast<double>(low) > static_cast<double>(high) / static_cast<double>(around);
    values.erase(low_is_farther ? low : high);
  }
  return values;
}

std::set<std::int64_t> powers(std::int64_t from, std::int64_t to) {
  std::set<std::int64_t> values;
  for (std::int64_t v = from; v <= to; v *= 2) values.insert(v);
  return values;
}

}  // namespace

std::span<const Parameter> parameters() { return kParameters; }

const Parameter* find_parameter(std::string_view key) {
  const auto found = std::ranges::find(kParameters, key, &Parameter::key);
  return found == kParameters.end() ? nullptr : &*found;
}

std::string recipe_value(const Recipe& recipe, std::string_view key) {
  const std::string text = "," + to_complete_text(recipe);
  const std::size_t at = text.find("," + std::string(key) + "=");
  if (at == std::string::npos) return {};
  const std::size_t begin = at + key.size() + 2;
  return text.substr(begin, text.find(',', begin) - begin);
}

std::string value_of(const Design& design, std::string_view key) {
  const Scenario& scenario = *design.scenario;
  if (key == "model") return scenario.model.name;
  if (key == "cluster") return scenario.cluster.name;
  if (key == "nodes") return std::to_string(scenario.cluster.nodes);
  if (key == "sequence_length") return print_tokens(scenario.training.sequence);
  if (key == "global_batch") return std::to_string(scenario.training.global_batch);
  return recipe_value(design.recipe, key);
}

bool is_degree(std::string_view key) { return key == "tp" || key == "cp" || key == "pp" || key == "dp"; }

std::string world_equation(const Design& design) {
  const Recipe& r = design.recipe;
  return fmt::format("tp {} × cp {} × pp {} × dp {} = {} of {} GPUs", r.tp, r.cp, r.pp, r.dp, r.world(),
                     design.scenario->cluster.gpus());
}

Outcome<Design> with_value(const Design& design, std::string_view key, const std::string& value, std::string_view derived) {
  if (key == "sequence_length") return with_sequence_length(design, value);
  if (key == "model") return with_model(design, value);
  if (key == "cluster" || key == "nodes" || key == "global_batch") {
    const std::optional<std::int64_t> count = whole(value);
    if (key != "cluster" && (!count || *count < 1)) return not_whole(key, value);
    if (key == "global_batch") return with_scenario(design, [&](Scenario& s) { s.training.global_batch = *count; });
    Outcome<Design> changed =
        key == "cluster" ? with_cluster(design, value, design.scenario->cluster.nodes) : with_node_count(design, *count);
    if (changed.ok()) derive(changed.value(), derived);
    return changed;
  }
  Outcome<Recipe> recipe = parse_recipe(fmt::format("{}={}", key, value), design.recipe);
  if (!recipe.ok()) return recipe.problems();
  if (key == "framework") {
    const Outcome<RuleSet> rules = find_framework(value);
    if (!rules.ok()) return rules.problems();
    Design changed = with_scenario(design, [&](Scenario& scenario) { scenario.base.framework = value; });
    changed.recipe = *recipe;
    return changed;
  }
  Design changed = design;
  changed.recipe = *recipe;
  if (is_degree(key) && key != derived) derive(changed, derived);
  return changed;
}

std::vector<std::string> values_along(const Design& design, std::string_view key) {
  const Scenario& scenario = *design.scenario;
  const std::int64_t gpus = scenario.cluster.gpus();
  const auto numbers = [&](std::set<std::int64_t> values) {
    const std::int64_t now = whole(value_of(design, key)).value_or(1);
    values.insert(std::max<std::int64_t>(1, now));
    return as_text(near(std::move(values), std::max<std::int64_t>(1, now)));
  };
  if (key == "tp") {
    std::set<std::int64_t> values = divisors_of(gpus);
    std::erase_if(values, [&](std::int64_t v) { return v > 2 * scenario.cluster.gpus_per_node; });
    return numbers(values);
  }
  if (key == "cp" || key == "dp") return numbers(divisors_of(gpus));
  if (key == "pp") {
    std::set<std::int64_t> values = divisors_of(gpus);
    std::erase_if(values, [&](std::int64_t v) { return v > scenario.model.layers; });
    return numbers(values);
  }
  if (key == "state_shards") {
    const Recipe& r = design.recipe;
    const std::int64_t ranks = std::int64_t{r.dp} * r.cp;
    std::set<std::int64_t> values = divisors_of(ranks);
    values.erase(ranks);
    if (r.state_shards > 0 && r.state_shards != ranks) values.insert(r.state_shards);
    std::vector<std::string> text = as_text(near(std::move(values), shard_ranks(r)));
    if (text.size() == kMostValues) text.erase(text.begin());
    text.emplace_back("all");
    return text;
  }
  if (key == "a2a_degree" || key == "window") return numbers(divisors_of(design.recipe.cp));
  if (key == "nodes") return numbers(powers(1, std::max<std::int64_t>(64, scenario.cluster.nodes * 4)));
  if (key == "global_batch") return numbers(powers(1, std::max<std::int64_t>(64, scenario.training.global_batch * 8)));
  if (key == "micro_batch") return numbers(powers(1, 16));
  if (key == "vpp") {
    std::set<std::int64_t> values;
    for (std::int64_t v = 1; v <= 12; ++v) values.insert(v);
    return numbers(values);
  }
  if (key == "sequence_length") {
    std::set<std::int64_t> values = powers(4096, std::int64_t{4} << 20);
    values.insert(scenario.training.sequence.count());
    std::vector<std::string> text;
    for (const std::int64_t v : near(values, scenario.training.sequence.count())) text.push_back(print_tokens(Tokens(v)));
    return text;
  }
  if (key == "cp_comm") return names_of<CpComm>();
  if (key == "shard_layout") return names_of<ShardLayout>();
  if (key == "state_sharding") return names_of<StateSharding>();
  if (key == "precision") return names_of<Precision>();
  std::vector<std::string> values;
  if (key == "recompute") values = {"none", "selective", "mlp", "full"};
  if (key == "stage_layout") values = {"even", "embedding_loss", "cost_balanced"};
  if (key == "model") {
    for (const Architecture& model : model_presets()) values.push_back(model.name);
  }
  if (key == "cluster") values = cluster_preset_names();
  if (key == "framework") {
    for (const RuleSet& rules : framework_presets()) values.push_back(rules.name);
  }
  const std::string now = value_of(design, key);
  if (!values.empty() && std::ranges::find(values, now) == values.end()) values.push_back(now);
  return values;
}

std::string idle_reason(const Design& design, std::string_view key) {
  const Recipe& r = design.recipe;
  if (key == "a2a_degree" && r.cp_comm != CpComm::kA2aP2p) return "only a2a+p2p has an inner head exchange";
  if (key == "window" && r.cp_comm != CpComm::kDoubleRing) return "only a double ring has an inner ring";
  if ((key == "cp_comm" || key == "shard_layout") && r.cp == 1) return "nothing is exchanged at CP 1";
  if (key == "vpp" && r.pp == 1) return "chunks need a pipeline: PP above 1";
  if (key == "stage_layout" && r.pp == 1) return "one stage holds every layer";
  if (key == "sequence_parallel" && r.tp == 1) return "it shards over TP: TP above 1";
  if (key == "overlap_tp" && r.tp == 1) return "there is no TP traffic at TP 1";
  return {};
}

}  // namespace cpfit::gui
