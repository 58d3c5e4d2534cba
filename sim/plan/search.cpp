#include "sim/plan/search.h"

#include <tbb/blocked_range.h>
#include <tbb/parallel_for.h>

#include <chrono>
#include <iterator>
#include <mutex>

namespace cpfit {

namespace {

/// The legal completions of one outer recipe (they share one layer cost) and why the others were refused.
struct Family {
  std::vector<Recipe> recipes;
  std::vector<const ResolvedLayout*> layouts;  // one per recipe, filled by prepare
  std::vector<std::int64_t> rejected;          // by rule index
  std::int64_t considered = 0;
};

Family enumerate(const Workbench& bench, const Training& training, const Axes& axes, const Recipe& outer) {
  Family family;
  family.rejected.assign(legality_rules().size(), 0);
  for_each_completion(bench.scenario(), bench.rules(), axes, outer, [&](const Recipe& recipe) {
    ++family.considered;
    const int broken = first_violation(bench.legality(training, recipe));
    if (broken >= 0)
      ++family.rejected[static_cast<std::size_t>(broken)];
    else
      family.recipes.push_back(recipe);
  });
  return family;
}

/// Serial: resolves layouts and prices process groups, all of which the parallel parts only read.
void prepare(Workbench& bench, LayoutCache& layouts, Family& family) {
  for (const Recipe& recipe : family.recipes) {
    family.layouts.push_back(layouts.prepare(recipe));
    const Recipe* before = &recipe == &family.recipes.front() ? nullptr : &recipe - 1;
    const bool new_groups = before == nullptr || before->pp != recipe.pp || before->dp != recipe.dp ||
                            before->state_shards != recipe.state_shards || before->state_sharding != recipe.state_sharding;
    if (new_groups) bench.prepare(recipe);
  }
}

std::vector<Candidate> screen_family(const ScreenContext& context, const Family& family) {
  std::vector<Candidate> candidates;
  candidates.reserve(family.recipes.size());
  const LayerCost layer = layer_cost(context, family.recipes.front());
  for (std::size_t i = 0; i < family.recipes.size(); ++i) {
    if (family.layouts[i] == nullptr) continue;  // no rule set lets an unresolvable layout pass; a belt for explicit lists
    candidates.push_back(compose(context, family.recipes[i], *family.layouts[i], layer));
  }
  return candidates;
}

}  // namespace

SearchResult search(Workbench& bench, const Training& training, const Axes& axes, const SearchControls& controls) {
  const auto begin = std::chrono::steady_clock::now();
  SearchResult result;
  const std::vector<Recipe> outers = outer_recipes(bench.scenario(), axes);
  std::vector<Family> families(outers.size());
  tbb::parallel_for(std::size_t{0}, outers.size(),
                    [&](std::size_t i) { families[i] = enumerate(bench, training, axes, outers[i]); });
  LayoutCache layouts(bench.scenario().model);
  for (Family& family : families) prepare(bench, layouts, family);

  const ScreenContext context = bench.context(training);
  std::vector<std::vector<Candidate>> harvests(families.size());
  std::mutex reporting;
  std::size_t finished = 0;
  tbb::parallel_for(tbb::blocked_range<std::size_t>(0, families.size(), 1), [&](const tbb::blocked_range<std::size_t>& range) {
    for (std::size_t i = range.begin(); i != range.end(); ++i) {
      if (controls.stop != nullptr && controls.stop->load(std::memory_order_relaxed)) return;
      if (!families[i].recipes.empty()) harvests[i] = screen_family(context, families[i]);
      if (!controls.sink && !controls.progress) continue;
      const std::lock_guard lock(reporting);
      if (controls.sink) controls.sink(harvests[i]);
      if (controls.progress) controls.progress(static_cast<double>(++finished) / static_cast<double>(families.size()));
    }
  });

  for (std::vector<Candidate>& harvest : harvests)
    std::move(harvest.begin(), harvest.end(), std::back_inserter(result.candidates));
  std::vector<std::int64_t> rejected(legality_rules().size(), 0);
  for (const Family& family : families) {
    result.stats.considered += family.considered;
    result.stats.legal += static_cast<std::int64_t>(family.recipes.size());
    for (std::size_t r = 0; r < rejected.size(); ++r) rejected[r] += family.rejected[r];
  }
  for (std::size_t r = 0; r < rejected.size(); ++r) {
    if (rejected[r] > 0) result.stats.rejected_by_rule.emplace_back(std::string(legality_rules()[r].id), rejected[r]);
  }
  result.stats.evaluated = static_cast<std::int64_t>(result.candidates.size());
  result.stats.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return result;
}

}  // namespace cpfit
