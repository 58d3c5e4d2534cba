// What the search does not try and a person would: beside a recipe that ships already.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "model/cluster/device_order.h"
#include "model/quantity/text.h"
#include "sim/plan/explain.h"
#include "sim/plan/placed_study.h"
#include "sim/plan/search.h"

namespace cpfit {

namespace {

constexpr double kWorthIt = 0.01;  // of the step: a smaller gain is not named

/// A changed recipe that is feasible and worth it, as a lever.
std::optional<Lever> worth_it(const Workbench& bench, const Candidate& base, const Candidate& changed, std::string name) {
  const double less = 1.0 - changed.time.step() / base.time.step();
  if (less < kWorthIt || !judge_candidate(changed, bench.scenario().requirements).feasible()) return std::nullopt;
  Lever lever;
  lever.change = std::move(name);
  lever.gains = fmt::format("{} per step instead of {}", print_time(changed.time.step()), print_time(base.time.step()));
  const Bytes more = changed.memory.device - base.memory.device;
  lever.costs = more.value() > 0.0 ? fmt::format("memory +{}, {} of {}", print_bytes(more), print_bytes(changed.memory.device),
                                                 print_bytes(changed.verdict.capacity))
                                   : std::string("nothing");
  lever.gain = less;
  lever.differs = differences(base.recipe, changed.recipe);
  return lever;
}

std::vector<std::string> items_of(const std::string& text) {
  std::vector<std::string> items;
  std::string::size_type begin = 0;
  for (std::string::size_type end = 0; end != std::string::npos; begin = end + 1) {
    end = text.find(',', begin);
    items.push_back(text.substr(begin, end == std::string::npos ? end : end - begin));
  }
  return items;
}

/// "tp=4, recompute=block-18": what is to be written to get from one recipe to the other.
std::string changes_between(const Recipe& base, const Recipe& changed) {
  const std::vector<std::string> before = items_of(to_complete_text(base)), after = items_of(to_complete_text(changed));
  std::vector<std::string> differing;
  for (const std::string& item : after) {
    if (std::find(before.begin(), before.end(), item) == before.end()) differing.push_back(item);
  }
  return fmt::format("{}", fmt::join(differing, ", "));
}

/// Whole layers recomputed only as far as memory asks for it: of a few shares of a stage's layers the best recipe, and of that
/// the fewest layers that still fit with margin.
std::optional<Lever> fewer_layers_again(Workbench& bench, const Training& training, const Candidate& base) {
  if (base.recipe.recompute.kind != RecomputeKind::kFull) return std::nullopt;
  constexpr std::int32_t kShares = 8;
  const Requirements& requirements = bench.scenario().requirements;
  const std::int64_t layers = bench.scenario().model.layers;
  Axes axes = resolve_axes(bench.scenario(), bench.rules());
  axes.recompute.clear();
  for (std::int32_t part = 1; part < kShares; ++part) {
    // A block counts layers of a stage: shares of the whole model serve shallow stages too.
    const auto block = static_cast<std::int32_t>(layers * part / kShares);
    if (block > 0) axes.recompute.push_back({RecomputeKind::kBlock, block});
  }
  if (base.recipe.pp > 1) {
    for (std::int32_t part = 1; part < kShares; ++part) {
      const auto block = static_cast<std::int32_t>(layers / base.recipe.pp * part / kShares);
      if (block > 0) axes.recompute.push_back({RecomputeKind::kBlock, block});
    }
  }
  const std::vector<Candidate> found = search(bench, training, axes, {}).candidates;
  const std::optional<std::size_t> ship = choose_ship(found, requirements);
  if (!ship || found[*ship].recipe.cp > base.recipe.cp) return std::nullopt;
  Candidate best = found[*ship];
  for (std::int32_t fewer = best.recipe.recompute.block_layers - 1; fewer > 0; --fewer) {
    Recipe recipe = best.recipe;
    recipe.recompute.block_layers = fewer;
    Outcome<Candidate> tried = bench.evaluate(training, recipe);
    if (!tried.ok() || !judge_candidate(*tried, requirements).feasible()) break;
    best = std::move(tried).value();
  }
  return worth_it(bench, base, best, changes_between(base.recipe, best.recipe));
}

/// The MLP half of every layer run again, where the search was not asked to try it: most of what layers save goes with it, and at
/// long sequences most of their time is attention, which it leaves alone.
std::optional<Lever> mlp_again(Workbench& bench, const Training& training, const Candidate& base) {
  Axes axes = resolve_axes(bench.scenario(), bench.rules());
  const Recompute mlp{RecomputeKind::kMlp, 0};
  if (!bench.rules().recompute_mlp || std::ranges::find(axes.recompute, mlp) != axes.recompute.end()) return std::nullopt;
  axes.recompute = {mlp};
  const std::vector<Candidate> found = search(bench, training, axes, {}).candidates;
  const std::optional<std::size_t> ship = choose_ship(found, bench.scenario().requirements);
  if (!ship || found[*ship].recipe.cp > base.recipe.cp) return std::nullopt;
  return worth_it(bench, base, found[*ship], changes_between(base.recipe, found[*ship].recipe));
}

std::optional<Lever> overlapped_tp(Workbench& bench, const Training& training, const Candidate& base) {
  // Overlap writes into the neighbours' buffers: over NVLink or xGMI.
  if (base.recipe.tp == 1 || base.recipe.overlap_tp || bench.scenario().cluster.scale_up_domain < base.recipe.tp)
    return std::nullopt;
  Recipe recipe = base.recipe;
  recipe.overlap_tp = true;
  const Outcome<Candidate> tried = bench.evaluate(training, recipe);
  return tried.ok() ? worth_it(bench, base, *tried, "overlap_tp=true") : std::nullopt;
}

/// Layers captured in CUDA graphs, where kernels wait for the host that calls them one by one.
std::optional<Lever> captured(Workbench& bench, const Training& training, const Candidate& base) {
  if (training.cuda_graphs) return std::nullopt;
  Training graphs = training;
  graphs.cuda_graphs = true;
  const Outcome<Candidate> tried = bench.evaluate(graphs, base.recipe);
  if (!tried.ok()) return std::nullopt;
  std::optional<Lever> lever = worth_it(bench, base, *tried, "training.cuda_graphs=true");
  if (lever) lever->costs = "shapes that never change, and memory for the graphs, which is not counted";
  return lever;
}

}  // namespace

std::optional<Lever> placed_better(Workbench& bench, const Training& training, const Candidate& base) {
  const std::optional<PlacedStudy> placed = better_placed(bench, base.recipe);
  if (!placed) return std::nullopt;
  const Outcome<Candidate> there = bench.with(placed->scenario).evaluate(training, placed->recipe);
  if (!there.ok()) return std::nullopt;
  const double less = 1.0 - there->time.step() / base.time.step();
  if (less < kWorthIt) return std::nullopt;
  Lever lever;
  std::vector<std::string> changes;
  for (const std::vector<std::int32_t>& order : placed->scenario.cluster.device_orders)
    changes.push_back(fmt::format("\"{}\"", device_order_text(order)));
  if (changes.size() > 1) changes = {fmt::format("[{}]", fmt::join(changes, ", "))};
  if (!changes.empty()) changes.front() = "device_order=" + changes.front();
  lever.differs = differences(base.recipe, placed->recipe);
  if (!lever.differs.empty()) changes.push_back(fmt::format("rank_order={}", to_text(placed->recipe.rank_order)));
  lever.change = fmt::format("{}", fmt::join(changes, ", "));
  lever.gains = fmt::format("ranks on other GPUs take {} per step instead of {}", print_time(there->time.step()),
                            print_time(base.time.step()));
  const Requirements& requirements = bench.scenario().requirements;
  const bool rescued = judge_candidate(*there, requirements).feasible() && !judge_candidate(base, requirements).feasible();
  if (rescued) lever.gains += ", and the recipe becomes feasible";
  lever.costs = "nothing but the order in which processes take the GPUs";
  lever.gain = rescued ? 1.0 : less;
  return lever;
}

std::vector<Lever> ship_levers(Workbench& bench, const Training& training, const Candidate& ship) {
  std::vector<Lever> levers;
  const auto add = [&](std::optional<Lever> lever) {
    if (lever) levers.push_back(std::move(*lever));
  };
  add(placed_better(bench, training, ship));
  add(mlp_again(bench, training, ship));
  add(fewer_layers_again(bench, training, ship));
  add(overlapped_tp(bench, training, ship));
  add(captured(bench, training, ship));
  std::stable_sort(levers.begin(), levers.end(), [](const Lever& a, const Lever& b) { return a.gain > b.gain; });
  add(idle_nodes(bench, training, ship.recipe.recompute, ship.time.step()));
  return levers;
}

}  // namespace cpfit
