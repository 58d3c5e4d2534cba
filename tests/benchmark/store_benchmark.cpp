// How fast a search can store what it evaluates (candidates per second, one writer), and read it back.
#include <benchmark/benchmark.h>

#include "db/query/runs.h"
#include "db/store/run_store.h"
#include "tests/db/sample_records.h"

namespace cpfit {
namespace {

void store_candidates(benchmark::State& state) {
  const sample::TemporaryFolder folder;
  Store store = open_store(folder.file("study.cpfit"));
  const RunId run = create_run(store, sample::provenance());
  const CandidateSink sink = candidate_sink(store, run);
  const std::vector<Candidate> batch = sample::batch(0, static_cast<std::int32_t>(state.range(0)));
  for (auto _ : state) sink(batch);
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(store_candidates)->Arg(256)->Arg(1024)->Arg(4096)->Arg(16384)->UseRealTime()->Unit(benchmark::kMillisecond);

void read_candidates(benchmark::State& state) {
  const sample::TemporaryFolder folder;
  Store store = open_store(folder.file("study.cpfit"));
  const RunId run = create_run(store, sample::provenance());
  candidate_sink(store, run)(sample::batch(0, static_cast<std::int32_t>(state.range(0))));
  CandidateQuery query;
  query.order = CandidateOrder::kStepSeconds;
  for (auto _ : state) benchmark::DoNotOptimize(candidates_of(store, run, query));
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(read_candidates)->Arg(16384)->UseRealTime()->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace cpfit
