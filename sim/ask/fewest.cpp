#include "sim/ask/fewest.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "model/cluster/cluster_part.h"
#include "model/quantity/text.h"
#include "sim/ask/fit_space.h"
#include "sim/plan/search.h"
#include "sim/plan/verdict.h"

namespace cpfit::ask {

namespace {

constexpr std::int64_t kTimesTheScenario = 64;
constexpr std::int64_t kMostNodes = 4096;
constexpr std::size_t kPricedSizes = 12;  // sizes that fit but miss another requirement, before the search for a better one ends

struct Size {
  std::int64_t nodes = 1;
  std::int32_t gpus_per_node = 1;
};

std::vector<Size> sizes_of(const Cluster& cluster) {
  std::vector<Size> sizes;
  for (std::int32_t part = 1; part < cluster.gpus_per_node; ++part) {
    if (cluster.gpus_per_node % part == 0) sizes.push_back({1, part});
  }
  // A cluster that a file draws vertex by vertex has no more nodes than it draws; fewer are its first ones.
  const std::int64_t most = cluster.resized ? std::min(kMostNodes, cluster.nodes * kTimesTheScenario) : cluster.nodes;
  for (std::int64_t nodes = 1; nodes <= most; ++nodes) sizes.push_back({nodes, cluster.gpus_per_node});
  return sizes;
}

/// Counts only: memory does not ask for the graph.
Scenario of_size(const Scenario& scenario, const Size& size) {
  Scenario changed = scenario;
  changed.cluster.nodes = size.nodes;
  if (size.gpus_per_node < scenario.cluster.gpus_per_node) changed.cluster = part_of_node(scenario.cluster, size.gpus_per_node);
  changed.search.dp.clear();
  return changed;
}

/// Whether anything fits; fills what is missing otherwise.
bool any_fits(const Scenario& scenario, const RuleSet& rules, FewestRow& row) {
  bool fits = false;
  double least = 0.0;
  for_each_legal({scenario, scenario.training, rules}, leanest_axes(scenario, rules),
                 [&](const Recipe& recipe, const ResolvedLayout& layout) {
                   const MemoryVerdict verdict = fit_of({scenario, scenario.training, rules}, recipe, layout);
                   const double missing =
                       scenario.requirements.memory_margin_share * verdict.capacity.value() - verdict.margin.value();
                   least = row.legal == 0 ? missing : std::min(least, missing);
                   ++row.legal;
                   fits = verdict.fit == Fit::kFits;
                   return !fits;
                 });
  row.missing = Bytes(fits ? 0.0 : std::max(0.0, least));
  return fits;
}

void price(Workbench& bench, FewestRow& row) {
  const Scenario& scenario = bench.scenario();
  const SearchResult found = search(bench, scenario.training, resolve_axes(scenario, bench.rules()), {});
  row.legal = found.stats.legal;
  if (const std::optional<std::size_t> ship = choose_ship(found.candidates, scenario.requirements)) {
    row.candidate = found.candidates[*ship];
    row.feasible = true;
    return;
  }
  for (const Candidate& candidate : found.candidates) {
    if (candidate.verdict.fit != Fit::kFits) continue;
    if (!row.candidate || ranks_before(candidate, *row.candidate, scenario.requirements)) row.candidate = candidate;
  }
  if (row.candidate) row.shortfall = judge_candidate(*row.candidate, scenario.requirements).sentence;
}

}  // namespace

Outcome<FewestAnswer> fewest_gpus(const Workbench& bench) {
  const Scenario& scenario = bench.scenario();
  FewestAnswer answer;
  std::size_t priced = 0;
  for (const Size& size : sizes_of(scenario.cluster)) {
    Scenario changed = of_size(scenario, size);
    FewestRow row;
    row.gpus = changed.cluster.gpus();
    answer.largest_tried = row.gpus;
    if (any_fits(changed, bench.rules(), row)) {
      if (scenario.cluster.resized && size.gpus_per_node == scenario.cluster.gpus_per_node &&
          size.nodes != scenario.cluster.nodes) {
        Outcome<Cluster> cluster = with_nodes(scenario.cluster, size.nodes);
        if (!cluster.ok()) return cluster.problems();
        changed.cluster = std::move(cluster).value();
      }
      Workbench sized = bench.with(changed);
      price(sized, row);
      ++priced;
    }
    answer.rows.push_back(std::move(row));
    const FewestRow& last = answer.rows.back();
    if (last.candidate && !answer.fits) answer.fits = answer.rows.size() - 1;
    if (last.feasible) answer.feasible = answer.rows.size() - 1;
    if (last.feasible || priced >= kPricedSizes) break;
  }
  return answer;
}

std::string sentence_of(const FewestAnswer& answer, const Scenario& scenario) {
  const std::string question = fmt::format("{} at {} tokens", scenario.model.name, print_tokens(scenario.training.sequence));
  std::string restricted;
  for (const auto& [name, values] : {std::pair("tp", &scenario.search.tp), std::pair("cp", &scenario.search.cp),
                                     std::pair("pp", &scenario.search.pp), std::pair("vpp", &scenario.search.vpp)}) {
    if (!values->empty()) restricted += fmt::format("{}{}", restricted.empty() ? "" : ", ", name);
  }
  const std::string held =
      restricted.empty() ? "" : fmt::format(" [search] restricts {}: other values may need fewer.", restricted);
  if (!answer.fits) {
    return fmt::format("{} fits no size up to {} {} under this search space.{}", question, answer.largest_tried,
                       scenario.cluster.gpu.name, held);
  }
  const auto recipe_words = [](const FewestRow& row) {
    const Recipe& recipe = row.candidate->recipe;
    return fmt::format("cp={} x tp={} x pp={} x dp={}, recompute {}, {} per step", recipe.cp, recipe.tp, recipe.pp, recipe.dp,
                       to_text(recipe.recompute), print_time(row.candidate->time.step()));
  };
  const FewestRow& fits = answer.rows[*answer.fits];
  std::string text =
      fmt::format("{} needs at least {} {}: {}.", question, fits.gpus, scenario.cluster.gpu.name, recipe_words(fits));
  text += held;
  if (answer.feasible == answer.fits) return text;
  text += fmt::format(" There {}.", fits.shortfall);
  if (!answer.feasible) return text + fmt::format(" No size up to {} meets every requirement.", answer.largest_tried);
  const FewestRow& feasible = answer.rows[*answer.feasible];
  return text + fmt::format(" Every requirement is met from {} on: {}.", feasible.gpus, recipe_words(feasible));
}

}  // namespace cpfit::ask
