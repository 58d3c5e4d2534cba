// simulate at timeline fidelity: its options, the runs they ask for (one, or a quiet one beside a disturbed one), and the files
// it writes. What is printed of it: timeline_text.h, timeline_json.h.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vector>

#include "model/record/lane.h"
#include "model/record/run.h"
#include "sim/plan/step_memory.h"
#include "sim/plan/step_timeline.h"
#include "sim/timeline/trace_export.h"

namespace cpfit::cli {

struct TimelineOptions {
  std::string trace, spans;  // files; empty: none
  std::string database;      // where the spans are stored; empty: nowhere
  bool every_rank = false;
  bool first_step = false;                                  // the files begin with the job's first step
  std::vector<std::string> slow_ranks, links, second_jobs;  // as written
};

void add_timeline_options(CLI::App& command, TimelineOptions& options);

/// The options that only a timeline has a use for, each as a problem; empty when none was given.
[[nodiscard]] Problems only_for_timelines(const TimelineOptions& options);

struct SimulatedStep {
  StepTimeline now;
  std::optional<StepTimeline> quiet;        // without the disturbance, where there is one
  std::optional<TimeBreakdown> first;       // the job's first step; none of very large or disturbed steps
  std::optional<StepTimeline> written;      // for the files: the first step and the steady one behind it, where asked for
  std::vector<std::string> disturbances;    // in words
  std::vector<std::string> notes;           // sentences: which ranks stand for which, slow hops
  std::vector<timeline::RankPlace> places;  // of the simulated ranks
  std::vector<std::string> link_names;      // of the topology that `now` ran on
  StepMemory memory;                        // of the simulated ranks; none of very large steps
  StepMemory written_memory;                // of `written`

  /// What the files hold.
  [[nodiscard]] const StepTimeline& in_files() const { return written ? *written : now; }
};

/// Problems: of the recipe and of the options, each with the option as its place; "simulate.too_large".
[[nodiscard]] Outcome<SimulatedStep> simulate_step(Workbench& bench, const Recipe& recipe, const TimelineOptions& options);

/// Every lane of the simulated ranks, the exposed tails of their transfers marked.
[[nodiscard]] Timeline marked_lanes(const SimulatedStep& step);

/// Writes what --trace and --spans name. Throws Error with path and reason.
void write_timeline_files(const SimulatedStep& step, const TimelineOptions& options);

/// Stores the spans of every lane where --db says; the number of the timeline there. Throws Error.
[[nodiscard]] std::optional<std::int64_t> store_timeline(const SimulatedStep& step, const TimelineOptions& options,
                                                         const Provenance& provenance);

}  // namespace cpfit::cli
