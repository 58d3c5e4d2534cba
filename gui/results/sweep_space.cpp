#include "gui/results/sweep_space.h"

#include <algorithm>

#include "gui/study/recipe_values.h"
#include "gui/study/scenario_text.h"
#include "model/cluster/group_network.h"
#include "model/framework/rule_set.h"
#include "model/quantity/text.h"
#include "sim/plan/search_space.h"

namespace cpfit::gui {

namespace {

constexpr std::int32_t kMostChunks = 12;  // as the search's own "auto"

std::string word(std::int32_t value) { return std::to_string(value); }
/// Data ranks that share one copy of the states; 0 stands for all.
struct Shards {
  std::int32_t count = 0;
};
std::string word(Shards value) { return value.count == 0 ? "all" : std::to_string(value.count); }
std::string word(const Recompute& value) { return to_text(value); }
template <class Choice>
std::string word(Choice value) {
  return std::string(name_of(value));
}

template <class Value>
SweepAxis axis_of(const char* key, const char* label, std::vector<Value> every, const std::vector<Value>& asked) {
  SweepAxis axis{key, label, {}, {}};
  for (const Value& value : every) axis.offered.push_back(word(value));
  for (const Value& value : asked) {
    axis.chosen.push_back(word(value));
    if (std::ranges::find(axis.offered, axis.chosen.back()) == axis.offered.end()) axis.offered.push_back(axis.chosen.back());
  }
  return axis;
}

/// `["none", "full"]`, `[1, 2]`.
std::string literal(const SweepAxis& axis) {
  std::string text = "[";
  for (const std::string& value : axis.chosen) {
    const bool number = value.find_first_not_of("0123456789") == std::string::npos;
    text += (text.size() > 1 ? ", " : "") + (number ? value : toml_string(value));
  }
  return text + "]";
}

}  // namespace

std::vector<SweepAxis> sweep_axes(const Scenario& scenario) {
  const Outcome<RuleSet> rules = find_framework(scenario.base.framework);
  if (!rules.ok()) return {};
  Scenario open = scenario;
  open.search = {};
  const Axes every = resolve_axes(open, *rules);
  const SearchSpace& asked = scenario.search;
  // All, or what can lie inside one scale-up domain, where the framework has groups at all.
  std::vector<Shards> groups = {{0}}, asked_groups;
  if (!rules->partial_shardings.empty()) {
    for (const std::int32_t count : divisors(domain_ranks(scenario.cluster), scenario.cluster.gpus() - 1))
      groups.push_back({count});
  }
  for (const std::int32_t count : asked.state_shards) asked_groups.push_back({count});
  return {axis_of("tp", "TP", every.tp, asked.tp),
          axis_of("cp", "CP", every.cp, asked.cp),
          axis_of("pp", "PP", every.pp, asked.pp),
          axis_of("vpp", "Virtual stages", divisors(scenario.model.layers, kMostChunks), asked.vpp),
          axis_of("micro_batch", "Micro-batch", every.micro_batch, asked.micro_batch),
          axis_of("cp_comm", "CP exchange", every.cp_comm, asked.cp_comm),
          axis_of("shard_layout", "Sequence cut", every.shard_layout, asked.shard_layout),
          axis_of("recompute", "Recompute", every.recompute, asked.recompute),
          axis_of("state_sharding", "State sharding", every.state_sharding, asked.state_sharding),
          axis_of("state_shards", "State shards", groups, asked_groups)};
}

std::vector<SweepAxis> held_axes(std::vector<SweepAxis> axes, const Locks& locks, const Recipe& recipe) {
  for (SweepAxis& axis : axes) {
    if (locks.contains(axis.key)) axis.chosen = {recipe_value(recipe, axis.key)};
  }
  return axes;
}

void toggle_value(SweepAxis& axis, const std::string& value) {
  const auto place = [&](const std::string& of) { return std::ranges::find(axis.offered, of); };
  if (place(value) == axis.offered.end()) return;
  if (std::erase(axis.chosen, value) > 0) return;
  axis.chosen.push_back(value);
  std::ranges::sort(axis.chosen, [&](const std::string& a, const std::string& b) { return place(a) < place(b); });
}

Outcome<std::shared_ptr<const Scenario>> sweep_scenario(const Design& design, const std::vector<SweepAxis>& axes) {
  const Scenario& scenario = *design.scenario;
  const Outcome<Scenario> file = read_scenario(scenario.text, scenario.path);
  if (!file.ok()) return file.problems();
  std::string text = scenario.text;
  const Training& training = scenario.training;
  if (training.sequence != file->training.sequence)
    text = with_toml_value(text, "training", "sequence_length", toml_string(print_tokens(training.sequence)));
  if (training.global_batch != file->training.global_batch) {
    text = without_toml_key(text, "training", "global_batch_tokens");
    text = with_toml_value(text, "training", "global_batch", std::to_string(training.global_batch));
  }
  if (scenario.base.framework != file->base.framework)
    text = with_toml_value(text, "training", "framework", toml_string(scenario.base.framework));
  const std::vector<SweepAxis> now = sweep_axes(scenario);
  for (const SweepAxis& axis : axes) {
    const auto same = std::ranges::find(now, axis.key, &SweepAxis::key);
    if (same != now.end() && same->chosen == axis.chosen) continue;
    text = axis.chosen.empty() ? without_toml_key(text, "search", axis.key)
                               : with_toml_value(text, "search", axis.key, literal(axis));
  }
  Outcome<Scenario> read = read_scenario(text, scenario.path);
  if (!read.ok()) return read.problems();
  return std::make_shared<const Scenario>(std::move(read).value());
}

Outcome<SweepCount> count_recipes(const Scenario& scenario, const RateSet& rates, const std::atomic<bool>& stop) {
  const Outcome<Workbench> bench = Workbench::build(scenario, rates);
  if (!bench.ok()) return bench.problems();
  const Axes axes = resolve_axes(scenario, bench->rules());
  SweepCount count;
  for (const Recipe& outer : outer_recipes(scenario, axes)) {
    if (stop.load(std::memory_order_relaxed)) {
      count.whole = false;
      return count;
    }
    for_each_completion(scenario, bench->rules(), axes, outer, [&](const Recipe& recipe) {
      ++count.considered;
      count.legal += first_violation(bench->legality(scenario.training, recipe)) < 0 ? 1 : 0;
    });
  }
  return count;
}

}  // namespace cpfit::gui
