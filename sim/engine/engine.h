// Runs a program: a discrete-event simulation in whole picoseconds, deterministic bit for bit. Resources are shared max-min
// fairly (fair_share.h); ties at one instant are settled by ascending activity id. Cost: O(events log activities), and per change
// of a contended set of flows the size of its connected component of resources.
#pragma once

#include <atomic>
#include <vector>

#include "model/quantity/problem.h"
#include "sim/engine/program.h"

namespace cpfit::engine {

/// One jump over equal copies of a section: after copy `after` the clock moved on by `skipped * period`. The times of a skipped
/// copy k (1..skipped) are those of copy `after` plus k * period. With a cycle of n copies (Section::longest_cycle) a period is
/// the time of n: copy k is copy after - n + 1 + (k - 1) % n, plus ((k - 1) / n + 1) * period.
struct Jump {
  std::int32_t section = 0;
  std::int32_t after = 0;
  std::int32_t skipped = 0;
  Picoseconds period = 0;
  std::int32_t cycle = 1;
};

/// When everything happened. Times of activities and slots of the copies that the program holds; see Jump for the others.
struct Run {
  std::vector<Picoseconds> start;   // (activities) all slots posted
  std::vector<Picoseconds> end;     // (activities)
  std::vector<Picoseconds> posted;  // (slots)
  std::vector<double> drawn;        // (resources) total amount drawn (bytes for a link), skipped copies included
  std::vector<Picoseconds> busy;    // (resources) time during which something drew on it, skipped copies included
  std::vector<Jump> jumps;
  Picoseconds makespan = 0;  // end of the last activity
  std::int64_t events = 0;   // postings, starts and ends handled
};

/// Problems, each with the names of the activities concerned: "engine.cycle" (activities that wait for each other, listed as the
/// cycle), "engine.no_rate" (a transfer over a resource of capacity zero), "engine.no_period" (a section that stands for more
/// copies than it holds did not repeat itself: build more copies), "engine.too_long" (26 days), "engine.stopped" (`stop` became
/// true meanwhile; looked at every few thousand instants).
[[nodiscard]] Outcome<Run> run(const Program& program, const std::atomic<bool>* stop = nullptr);

/// "attention 3 (rank 5, layer 2, micro-batch 0)".
[[nodiscard]] std::string describe(const Program& program, ActivityId activity);

}  // namespace cpfit::engine
