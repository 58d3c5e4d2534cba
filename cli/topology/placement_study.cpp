#include "cli/topology/placement_study.h"

#include "cli/study.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "model/quantity/text.h"
#include "model/recipe/legality.h"
#include "model/recipe/rank_grid.h"
#include "model/transformer/config_json.h"
#include "model/transformer/presets.h"

namespace cpfit::cli {

namespace {

/// Everything but the recipe's axes.
Outcome<Scenario> scenario_of(const Cluster& cluster, const PlacementOptions& options) {
  Problems problems;
  Scenario scenario;
  scenario.name = "placement";
  scenario.cluster = cluster;
  Outcome<Architecture> model = options.model.ends_with(".json") ? load_config_json(options.model) : find_model(options.model);
  for (Problem problem : model.problems()) {
    problem.where = problem.where.empty() ? "--model" : "--model: " + problem.where;
    problems.push_back(std::move(problem));
  }
  const Outcome<Tokens> sequence = parse_tokens(options.sequence);
  for (Problem problem : sequence.problems()) {
    problem.where = "--seq";
    problems.push_back(std::move(problem));
  }
  if (sequence.ok() && sequence->count() < 1)
    problems.push_back({"topology.sequence", "--seq", "a sequence has at least one token", "write e.g. 128k"});
  if (!problems.empty()) return problems;
  scenario.model = std::move(model).value();
  scenario.training.sequence = *sequence;
  return scenario;
}

Problems in_recipe(Problems problems) {
  for (Problem& problem : problems) problem.where = problem.where.empty() ? "--recipe" : "--recipe: " + problem.where;
  return problems;
}

std::int64_t batch_of(const PlacementOptions& options, const Recipe& recipe) {
  return options.global_batch > 0 ? options.global_batch : std::int64_t{recipe.dp} * recipe.micro_batch * recipe.pp;
}

}  // namespace

void add_placement_options(CLI::App& command, PlacementOptions& options) {
  command.add_option("--recipe", options.recipe, "Recipe to place, e.g. \"tp=2,cp=8,dp=1,pp=1\"");
  command.add_option("--model", options.model, "Model whose messages are priced (cpfit presets models, or a config.json)")
      ->capture_default_str();
  command.add_option("--seq", options.sequence, "Tokens of one sequence")->capture_default_str();
  command
      .add_option("--global-batch", options.global_batch,
                  "Sequences per optimizer step (default: one micro-batch per dp rank and stage)")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 40));
}

PlacementStudy::PlacementStudy(Scenario scenario, const Recipe& recipe)
    : rates_(std::make_shared<const RateSet>(RateSet::defaults())), recipe_(recipe) {
  scenario.base = recipe;
  bench_.emplace(Workbench::build(scenario, *rates_).value());
}

Outcome<PlacementStudy> PlacementStudy::build(const Cluster& cluster, const PlacementOptions& options) {
  Outcome<Scenario> scenario = scenario_of(cluster, options);
  Outcome<Recipe> recipe = parse_recipe_on(options.recipe, Recipe{}, cluster.gpus());
  Problems problems = scenario.problems();
  for (Problem& problem : in_recipe(recipe.problems())) problems.push_back(std::move(problem));
  if (!problems.empty()) return problems;
  const Outcome<RuleSet> rules = find_framework(recipe->framework);
  if (!rules.ok()) return in_recipe(rules.problems());
  scenario.value().training.global_batch = batch_of(options, *recipe);
  // A recipe may leave GPUs idle here: what is asked is where its ranks go.
  const LegalityCase judged = legality_case(*scenario, *rules, *recipe);
  const std::int64_t world = std::max<std::int64_t>(1, recipe->world());
  if (world > cluster.gpus())
    return Problem{"topology.recipe", "--recipe",
                   fmt::format("tp * cp * pp * dp = {} ranks do not fit {} GPUs", world, cluster.gpus()),
                   "give more --nodes, or lower a degree"};
  Problems broken = explain_violations(
      {judged.model, judged.training, judged.recipe, judged.rules, world, judged.gpus_per_node, nullptr, false});
  if (!broken.empty()) return in_recipe(std::move(broken));
  return PlacementStudy(std::move(scenario).value(), *recipe);
}

Outcome<PlacementStudy> PlacementStudy::build(const Cluster& cluster, const PlacementOptions& options, std::int32_t tp,
                                              std::int32_t cp) {
  Outcome<Scenario> scenario = scenario_of(cluster, options);
  if (!scenario.ok()) return scenario.problems();
  Recipe recipe;
  recipe.tp = tp;
  recipe.cp = cp;
  recipe.dp = static_cast<std::int32_t>(std::max<std::int64_t>(1, cluster.gpus() / (std::int64_t{tp} * cp)));
  scenario.value().training.global_batch = batch_of(options, recipe);
  return PlacementStudy(std::move(scenario).value(), recipe);
}

std::string PlacementStudy::subject() const {
  const Scenario& scenario = bench_->scenario();
  return fmt::format("{} at {} tokens, {} sequence{} per step", scenario.model.name, print_tokens(scenario.training.sequence),
                     scenario.training.global_batch, scenario.training.global_batch == 1 ? "" : "s");
}

bool PlacementStudy::routed() const {
  const Placement usual = default_placement(recipe_);
  const Topology& topology = *cluster().topology;
  for (const Axis axis : {Axis::kTp, Axis::kCp, Axis::kDp, Axis::kPp}) {
    for (const auto& group : placed_groups(cluster(), recipe_, usual, std::span(&axis, 1))) {
      for (std::size_t i = 0; i + 1 < group.size(); ++i)
        if (!topology.reachable(group[i], group[i + 1])) return false;
    }
  }
  return true;
}

Json placement_json(const Placement& placement) {
  Json orders = Json::array();
  for (const auto& order : placement.gpu_orders) orders.push_back(order);
  return {{"name", placement.name}, {"rank_order", to_text(placement.rank_order)}, {"gpu_orders", orders}};
}

Json price_json(const PlacementPrice& price) {
  Json json;
  json["placement"] = placement_json(price.placement);
  json["seconds_per_layer"] = {{"cp", price.cp.value()},
                               {"tp", price.tp.value()},
                               {"pp", price.pp.value()},
                               {"dp", price.dp.value()},
                               {"total", price.total().value()}};
  json["kv_message_bytes"] = price.kv_message.value();
  const auto hop_json = [](const PlacedHop& hop) -> Json {
    return {{"from_rank", hop.from_rank},
            {"to_rank", hop.to_rank},
            {"from_gpu", hop.from_gpu},
            {"to_gpu", hop.to_gpu},
            {"bytes_per_second", hop.network.rate.value()},
            {"latency_seconds", hop.network.latency.value()},
            {"message_seconds", hop.message.value()},
            {"link", hop.network.link},
            {"flows", hop.network.flows},
            {"slowest", name_of(hop.network.slowest)},
            {"crosses_node", hop.route.crosses_node},
            {"crosses_socket", hop.route.crosses_socket},
            {"crosses_rail", hop.route.crosses_rail},
            {"crosses_spine", hop.route.crosses_spine}};
  };
  json["slowest_hop"] = price.ring.empty() ? Json(nullptr) : hop_json(price.slowest);
  json["ring"] = Json::array();
  for (const PlacedHop& hop : price.ring) json["ring"].push_back(hop_json(hop));
  json["hops"] = {{"rings", price.counts.rings},
                  {"all", price.counts.hops},
                  {"leaving_node", price.counts.leaving},
                  {"cross_rail", price.counts.cross_rail},
                  {"cross_socket", price.counts.cross_socket},
                  {"slowest", price.counts.slowest}};
  return json;
}

}  // namespace cpfit::cli
