// The event engine's speed: on a jittered ring and under an oversubscribed spine beside SimGrid on the same flows in the same
// run, and in events per second on a program of 1024 ranks. Figures are printed, never asserted.
#include "sim/engine/engine.h"

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <ctime>

#include "sim/engine/program_builder.h"
#include "tests/sim/engine_simgrid.h"
#include "tests/sim/engine_workload.h"

namespace {

using namespace cpfit::engine;

double worst_difference(const std::vector<std::vector<double>>& a, const std::vector<std::vector<double>>& b) {
  double worst = 0;
  for (std::size_t s = 0; s < a.size(); ++s) {
    for (std::size_t e = 0; e < a[s].size(); ++e) worst = std::max(worst, std::abs(a[s][e] - b[s][e]) / b[s][e]);
  }
  return worst;
}

/// Both in turn and by the processor's time, so that what else the machine does meets both and counts for neither.
void beside_simgrid(benchmark::State& state, const Workload& workload) {
  const WorkloadProgram program = to_program(workload);
  double ours = 0, theirs = 0, difference = 0;
  std::int64_t events = 0, runs = 0;
  for (auto _ : state) {
    const std::clock_t before = std::clock();
    const auto outcome = run(program.program);
    const double seconds = static_cast<double>(std::clock() - before) / CLOCKS_PER_SEC;
    state.SetIterationTime(seconds);
    ours += seconds;
    events += outcome->events;
    ++runs;
    state.PauseTiming();
    const Peer peer = run_in_simgrid(workload);
    if (!peer.absent.empty()) {
      if (runs == 1) std::fprintf(stderr, "waived: comparison with SimGrid: %s\n", peer.absent.c_str());
    } else {
      theirs += peer.seconds;
      difference = std::max(difference, worst_difference(completions(program, *outcome), peer.completions));
    }
    state.ResumeTiming();
  }
  const double messages = static_cast<double>(workload.messages() * runs);
  state.counters["messages_per_second"] = messages / ours;
  state.counters["events_per_second"] = static_cast<double>(events) / ours;
  if (theirs > 0) {
    state.counters["simgrid_messages_per_second"] = messages / theirs;
    state.counters["times_simgrid"] = theirs / ours;
    state.counters["worst_relative_difference"] = difference;
  }
}

void jittered_ring_64(benchmark::State& state) { beside_simgrid(state, jittered_ring(64, 1000, 1048576)); }
BENCHMARK(jittered_ring_64)->UseManualTime()->Unit(benchmark::kMillisecond)->Iterations(5);

void oversubscribed_64(benchmark::State& state) { beside_simgrid(state, oversubscribed(64, 200, 1048576)); }
BENCHMARK(oversubscribed_64)->UseManualTime()->Unit(benchmark::kMillisecond)->Iterations(5);

/// Messages so large that the picosecond's rounding disappears: how far the two engines are apart.
void oversubscribed_64_large_messages(benchmark::State& state) { beside_simgrid(state, oversubscribed(64, 200, 268435456)); }
BENCHMARK(oversubscribed_64_large_messages)->UseManualTime()->Unit(benchmark::kMillisecond)->Iterations(1);

/// tp 8, cp 8, pp 8, dp 2: per layer and rank a kernel, an all-gather and a reduce-scatter of the tensor-parallel group, and
/// eight ring steps, each a message beside a kernel that is slowed by the SMs the message holds; a message to the next stage
/// after four layers.
Program step_of_1024_ranks(int micro_batches) {
  constexpr int kTp = 8, kCp = 8, kPp = 8, kDp = 2, kLayers = 4;
  ProgramBuilder builder;
  const int ranks = kTp * kCp * kPp * kDp;
  const auto rank_of = [&](int tp, int cp, int pp, int dp) { return ((pp * kDp + dp) * kCp + cp) * kTp + tp; };
  std::vector<PatternId> kernel, nic, nvlink;
  std::vector<HoldId> hold;
  for (int r = 0; r < ranks; ++r) {
    const ResourceId sms = builder.resource({1.0, kNone, r}), memory = builder.resource({3.35, kNone, r});
    kernel.push_back(builder.pattern({{sms, 1.0}, {memory, 1.2}}));
    hold.push_back(builder.hold({sms, 0.06}));
    nic.push_back(builder.pattern({{builder.resource({0.05, r, kNone}), 1.0}, {builder.resource({0.05, r, kNone}), 1.0}}));
    nvlink.push_back(builder.pattern({{builder.resource({0.45, r, kNone}), 1.0}}));
  }
  std::vector<ActivityId> from_before(static_cast<std::size_t>(ranks), kNone);
  const auto at = [](int index) { return static_cast<std::size_t>(index); };
  std::uint64_t jitter = 1;
  const auto jittered = [&](double time) {
    jitter = jitter * 6364136223846793005ULL + 1442695040888963407ULL;
    return std::floor(time * (1.0 + 0.05 * static_cast<double>(jitter >> 40U) / 16777216.0));
  };
  const auto collective = [&](int cp, int pp, int dp) {
    std::vector<LaneId> lanes;
    for (int tp = 0; tp < kTp; ++tp) lanes.push_back(builder.lane(rank_of(tp, cp, pp, dp), LaneKind::kTp));
    const ActivityId id =
        builder.add({.fixed = 5000000, .amount = 8e6, .cap = 0.3, .pattern = nvlink[at(rank_of(0, cp, pp, dp))]}, lanes);
    for (int tp = 0; tp < kTp; ++tp) {
      builder.wait(id, lanes[at(tp)], builder.last_on(builder.lane(rank_of(tp, cp, pp, dp), LaneKind::kCompute)));
    }
    return id;
  };
  for (int mb = 0; mb < micro_batches; ++mb) {
    for (int pp = 0; pp < kPp; ++pp) {
      for (int dp = 0; dp < kDp; ++dp) {
        for (int layer = 0; layer < kLayers; ++layer) {
          for (int cp = 0; cp < kCp; ++cp) {
            const ActivityId gathered = collective(cp, pp, dp);
            for (int tp = 0; tp < kTp; ++tp) {
              const int r = rank_of(tp, cp, pp, dp);
              const ActivityId gemm =
                  builder.add({.amount = jittered(3e8), .pattern = kernel[at(r)]}, {builder.lane(r, LaneKind::kCompute)});
              builder.wait(gemm, gathered);
              if (layer == 0) builder.wait(gemm, from_before[at(r)]);
            }
          }
          std::vector<ActivityId> arrived(at(kCp * kTp), kNone);
          for (int ring = 0; ring < kCp; ++ring) {
            std::vector<ActivityId> arriving(at(kCp * kTp), kNone);
            for (int cp = 0; cp < kCp; ++cp) {
              for (int tp = 0; tp < kTp; ++tp) {
                const int r = rank_of(tp, cp, pp, dp), next = rank_of(tp, (cp + 1) % kCp, pp, dp);
                const ActivityId before = builder.last_on(builder.lane(r, LaneKind::kCompute));
                const ActivityId work =
                    builder.add({.amount = jittered(2e8), .pattern = kernel[at(r)]}, {builder.lane(r, LaneKind::kCompute)});
                builder.wait(work, arrived[at(cp * kTp + tp)]);
                if (ring + 1 == kCp) continue;
                const std::vector<LaneId> lanes{builder.lane(r, LaneKind::kCpSend), builder.lane(next, LaneKind::kCpReceive)};
                const std::vector<HoldId> holds{hold[at(r)], -1};
                const ActivityId message =
                    builder.add({.fixed = 8000000, .amount = 4e6, .cap = 0.046, .pattern = nic[at(r)]}, lanes, holds);
                builder.wait(message, lanes[0], before);
                builder.wait(message, lanes[0], arrived[at(cp * kTp + tp)]);
                arriving[at((cp + 1) % kCp * kTp + tp)] = message;
              }
            }
            arrived = arriving;
          }
          for (int cp = 0; cp < kCp; ++cp) (void)collective(cp, pp, dp);
        }
        for (int cp = 0; cp < kCp && pp + 1 < kPp; ++cp) {
          for (int tp = 0; tp < kTp; ++tp) {
            const int r = rank_of(tp, cp, pp, dp), next = rank_of(tp, cp, pp + 1, dp);
            const ActivityId before = builder.last_on(builder.lane(r, LaneKind::kTp));
            const LaneId send = builder.lane(r, LaneKind::kPpSend);
            const ActivityId message = builder.add({.fixed = 8000000, .amount = 4e6, .cap = 0.046, .pattern = nic[at(r)]},
                                                   {send, builder.lane(next, LaneKind::kPpReceive)});
            builder.wait(message, send, before);
            from_before[at(next)] = message;
          }
        }
      }
    }
  }
  return builder.take();
}

void ranks_1024(benchmark::State& state) {
  const Program program = step_of_1024_ranks(static_cast<int>(state.range(0)));
  std::int64_t events = 0;
  for (auto _ : state) {
    const auto outcome = run(program);
    if (!outcome.ok()) {
      state.SkipWithError(outcome.problems()[0].message.c_str());
      return;
    }
    events += outcome->events;
  }
  state.counters["events_per_second"] = benchmark::Counter(static_cast<double>(events), benchmark::Counter::kIsRate);
  state.counters["activities"] = static_cast<double>(program.activities.size());
  state.counters["slots"] = static_cast<double>(program.slots.size());
  const double bytes = static_cast<double>(program.activities.size() * sizeof(Activity) + program.slots.size() * sizeof(Slot) +
                                           program.released.size() * sizeof(SlotId) + program.release_begin.size() * 4);
  state.counters["program_bytes_per_activity"] = bytes / static_cast<double>(program.activities.size());
  state.counters["program_bytes_per_slot"] = bytes / static_cast<double>(program.slots.size());
}
BENCHMARK(ranks_1024)->Arg(2)->Arg(16)->Unit(benchmark::kMillisecond);

}  // namespace
