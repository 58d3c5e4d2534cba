#include "sim/plan/search.h"

#include <tbb/blocked_range.h>
#include <tbb/parallel_for.h>

#include <chrono>
#include <iterator>
#include <mutex>

namespace cpfit {

namespace {

/// The legal completions of one outer recipe: they share one layer cost.
struct Family {
  std::vector<Recipe> recipes;
  std::vector<const ResolvedLayout*> layouts;  // one per recipe
};

/// Serial part: enumerates, checks legality, resolves layouts and prepares the network, all of which are only read afterwards.
std::vector<Family> enumerate(Workbench& bench, const Training& training, const Axes& axes, LayoutCache& layouts,
                              PlanStats& stats) {
  std::vector<Family> families;
  std::vector<std::int64_t> rejected(legality_rules().size(), 0);
  const Scenario& scenario = bench.scenario();
  for (const Recipe& outer : outer_recipes(scenario, bench.rules(), axes)) {
    Family family;
    for_each_completion(scenario, bench.rules(), axes, outer, [&](const Recipe& recipe) {
      ++stats.considered;
      const int broken = first_violation(bench.legality(training, recipe));
      if (broken >= 0) {
        ++rejected[static_cast<std::size_t>(broken)];
        return;
      }
      const ResolvedLayout* layout = layouts.prepare(recipe);
      if (layout == nullptr) return;
      const bool new_groups =
          family.recipes.empty() || family.recipes.back().pp != recipe.pp || family.recipes.back().dp != recipe.dp;
      if (new_groups) bench.prepare(recipe);
      family.recipes.push_back(recipe);
      family.layouts.push_back(layout);
    });
    if (!family.recipes.empty()) families.push_back(std::move(family));
  }
  for (std::size_t r = 0; r < rejected.size(); ++r) {
    if (rejected[r] > 0) stats.rejected_by_rule.emplace_back(std::string(legality_rules()[r].id), rejected[r]);
  }
  return families;
}

std::vector<Candidate> screen_family(const ScreenContext& context, const Family& family) {
  std::vector<Candidate> candidates;
  candidates.reserve(family.recipes.size());
  const LayerCost layer = layer_cost(context, family.recipes.front());
  for (std::size_t i = 0; i < family.recipes.size(); ++i) {
    candidates.push_back(compose(context, family.recipes[i], *family.layouts[i], layer));
  }
  return candidates;
}

}  // namespace

SearchResult search(Workbench& bench, const Training& training, const Axes& axes, const SearchControls& controls) {
  const auto begin = std::chrono::steady_clock::now();
  SearchResult result;
  LayoutCache layouts(bench.scenario().model);
  const std::vector<Family> families = enumerate(bench, training, axes, layouts, result.stats);

  const ScreenContext context = bench.context(training);
  std::vector<std::vector<Candidate>> harvests(families.size());
  std::mutex reporting;
  std::size_t finished = 0;
  tbb::parallel_for(tbb::blocked_range<std::size_t>(0, families.size(), 1), [&](const tbb::blocked_range<std::size_t>& range) {
    for (std::size_t i = range.begin(); i != range.end(); ++i) {
      if (controls.stop != nullptr && controls.stop->load(std::memory_order_relaxed)) return;
      harvests[i] = screen_family(context, families[i]);
      if (!controls.sink && !controls.progress) continue;
      const std::lock_guard lock(reporting);
      if (controls.sink) controls.sink(harvests[i]);
      if (controls.progress) controls.progress(static_cast<double>(++finished) / static_cast<double>(families.size()));
    }
  });

  for (std::vector<Candidate>& harvest : harvests)
    std::move(harvest.begin(), harvest.end(), std::back_inserter(result.candidates));
  result.stats.legal = 0;
  for (const Family& family : families) result.stats.legal += static_cast<std::int64_t>(family.recipes.size());
  result.stats.evaluated = static_cast<std::int64_t>(result.candidates.size());
  result.stats.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return result;
}

}  // namespace cpfit
