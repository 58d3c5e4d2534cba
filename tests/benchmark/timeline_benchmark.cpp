// Recipes per second on the timeline (program, run, answer of the rank that ends last), and every rank of a large step; what a
// kept span takes, and the most memory that was resident by then. Figures are printed, never asserted.
#include <benchmark/benchmark.h>
#include <sys/resource.h>

#include <cstdio>
#include <cstdlib>

#include "sim/plan/kept_memory.h"
#include "sim/plan/step_timeline.h"
#include "sim/timeline/lanes.h"

namespace {

using namespace cpfit;

Scenario study(const char* model, std::int64_t nodes, std::int64_t global_batch) {
  const std::string text = std::string("name = \"benchmark\"\nmodel = \"") + model +
                           "\"\n[cluster]\npreset = \"dgx-h100\"\nnodes = " + std::to_string(nodes) +
                           "\n[training]\nsequence_length = \"128k\"\nglobal_batch = " + std::to_string(global_batch) + "\n";
  Outcome<Scenario> scenario = read_scenario(text, "benchmark.toml");
  if (!scenario.ok()) {
    for (const Problem& problem : scenario.problems()) std::fprintf(stderr, "%s\n", to_text(problem).c_str());
    std::exit(1);
  }
  return std::move(scenario).value();
}

/// Of the whole process until now: what a benchmark before this one took counts too.
double peak_resident_mib() {
  rusage usage{};
  (void)getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024.0;
}

template <class Value>
double bytes_of(const std::vector<Value>& values) {
  return static_cast<double>(values.size() * sizeof(Value));
}

/// What of a step stays in memory while it is looked at: the program with its run, and the lanes that are drawn, exported and
/// stored. Bytes per span of each.
void count_bytes(benchmark::State& state, const engine::Program& program, const engine::Run& run) {
  const double held = bytes_of(program.activities) + bytes_of(program.slots) + bytes_of(program.released) +
                      bytes_of(program.release_begin) + bytes_of(run.start) + bytes_of(run.end) + bytes_of(run.posted);
  state.counters["program_bytes_per_span"] = held / static_cast<double>(program.slots.size());
  const Timeline lanes = timeline::timeline_of(timeline::History(program, run));
  double bytes = 0, spans = 0;
  for (const SpanLane& lane : lanes.lanes) {
    bytes += static_cast<double>(lane.spans.capacity() * sizeof(LaneSpan));
    spans += static_cast<double>(lane.spans.size());
  }
  state.counters["kept_bytes_per_span"] = bytes / spans;
}

void simulate(benchmark::State& state, Scenario scenario, const char* text, const schedule::StepOptions& options) {
  keep_freed_memory();  // as the programs do
  const RateSet rates = RateSet::defaults();
  const Recipe recipe = parse_recipe(text, scenario.base).value();
  scenario.base = recipe;
  Workbench bench = Workbench::build(scenario, rates).value();
  bench.prepare(recipe);
  const ScreenContext context = bench.context(scenario.training);
  const ResolvedLayout layout = resolve_layout(context.model, recipe).value();
  std::int64_t events = 0, slots = 0;
  for (auto _ : state) {
    const schedule::StepProgram step = schedule::step_program(context, recipe, layout, options).value();
    const Outcome<engine::Run> run = engine::run(step.program);
    if (!run.ok()) {
      state.SkipWithError(to_text(run.problems().front()).c_str());
      return;
    }
    const timeline::History history(step.program, *run);
    benchmark::DoNotOptimize(timeline::rank_answer(history, timeline::last_rank(history)));
    events += run->events;
    slots = static_cast<std::int64_t>(step.program.slots.size());
  }
  state.counters["recipes_per_second"] = benchmark::Counter(static_cast<double>(state.iterations()), benchmark::Counter::kIsRate);
  state.counters["events_per_second"] = benchmark::Counter(static_cast<double>(events), benchmark::Counter::kIsRate);
  state.counters["spans"] = benchmark::Counter(static_cast<double>(slots));
  state.counters["peak_resident_MiB"] = peak_resident_mib();
  const schedule::StepProgram step = schedule::step_program(context, recipe, layout, options).value();
  count_bytes(state, step.program, engine::run(step.program).value());
}

schedule::StepOptions folded(bool layers, bool replicas) {
  schedule::StepOptions options;
  options.fold_layers = layers;
  options.every_rank = !replicas;
  return options;
}

// cp 8, 32 layers, one micro-batch. Head exchanges and gathers bring the ranks together in every layer, so layers repeat; ranks
// of a ring drift apart and settle over tens of layers, so rings are simulated layer by layer.
BENCHMARK_CAPTURE(simulate, cp8_a2a_folded, study("llama3-8b", 1, 1), "tp=1,cp=8,pp=1,dp=1,cp_comm=a2a", folded(true, true))
    ->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(simulate, cp8_all_gather_folded, study("llama3-8b", 1, 1), "tp=1,cp=8,pp=1,dp=1,cp_comm=all_gather",
                  folded(true, true))
    ->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(simulate, cp8_ring_unfolded, study("llama3-8b", 1, 1), "tp=1,cp=8,pp=1,dp=1", folded(false, true))
    ->Unit(benchmark::kMicrosecond);
// tp 8, cp 8, pp 8, dp 2, 80 layers, 16 micro-batches: one lane and replica for all, and every one of the 1,024 ranks.
BENCHMARK_CAPTURE(simulate, llama3_70b_folded_replicas, study("llama3-70b", 128, 32), "tp=8,cp=8,pp=8,dp=2", folded(false, true))
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(simulate, llama3_70b_every_rank, study("llama3-70b", 128, 32), "tp=8,cp=8,pp=8,dp=2", folded(false, false))
    ->Unit(benchmark::kMillisecond)
    ->Iterations(1);

}  // namespace
