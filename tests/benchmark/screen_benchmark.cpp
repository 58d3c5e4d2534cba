// Recipes per second of the screen, legality, ledger and verdict included, on one core and on all; the whole plan of the 405B
// example. Figures are printed, never asserted.
#include <benchmark/benchmark.h>
#include <tbb/global_control.h>

#include <cstdio>
#include <cstdlib>

#include "sim/plan/plan.h"

namespace {

using namespace cpfit;

Scenario example(const char* name) {
  Outcome<Scenario> scenario = load_scenario(std::string(CPFIT_SOURCE_DIR) + "/examples/" + name);
  if (!scenario.ok()) {
    for (const Problem& problem : scenario.problems()) std::fprintf(stderr, "%s\n", to_text(problem).c_str());
    std::exit(1);
  }
  return std::move(scenario).value();
}

void search_recipes(benchmark::State& state, const char* name) {
  const tbb::global_control threads(tbb::global_control::max_allowed_parallelism, static_cast<std::size_t>(state.range(0)));
  const Scenario scenario = example(name);
  const RateSet rates = RateSet::defaults();
  Workbench bench = Workbench::build(scenario, rates).value();
  const Axes axes = resolve_axes(scenario, bench.rules());
  (void)search(bench, scenario.training, axes, {});  // the network's shapes are priced once per scenario, not per search
  std::int64_t considered = 0, evaluated = 0;
  for (auto _ : state) {
    const SearchResult result = search(bench, scenario.training, axes, {});
    considered += result.stats.considered;
    evaluated += result.stats.evaluated;
  }
  state.counters["recipes_per_second"] = benchmark::Counter(static_cast<double>(evaluated), benchmark::Counter::kIsRate);
  state.counters["considered_per_second"] = benchmark::Counter(static_cast<double>(considered), benchmark::Counter::kIsRate);
}
BENCHMARK_CAPTURE(search_recipes, llama3_8b_2nodes, "llama3-8b-128k-2nodes.toml")
    ->Arg(1)
    ->Arg(2)
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();
BENCHMARK_CAPTURE(search_recipes, llama31_405b, "llama3.1-405b-128k.toml")
    ->Arg(1)
    ->Arg(2)
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();

void whole_plan(benchmark::State& state, const char* name) {
  const Scenario scenario = example(name);
  const RateSet rates = RateSet::defaults();
  for (auto _ : state) benchmark::DoNotOptimize(plan(scenario, rates, {}));
}
BENCHMARK_CAPTURE(whole_plan, llama31_405b, "llama3.1-405b-128k.toml")->Unit(benchmark::kMillisecond)->UseRealTime();
BENCHMARK_CAPTURE(whole_plan, llama3_8b_1node, "llama3-8b-128k-1node.toml")->Unit(benchmark::kMillisecond)->UseRealTime();

}  // namespace
