#include "cli/simulate/timeline.h"

#include "db/store/timeline_store.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <functional>
#include <utility>

#include "cli/commands.h"
#include "cli/write_file.h"
#include "model/quantity/text.h"
#include "sim/plan/disturbance.h"
#include "sim/plan/placed_study.h"
#include "sim/plan/placement_text.h"
#include "sim/plan/step_memory.h"
#include "sim/schedule/step_size.h"
#include "sim/timeline/counter_track.h"
#include "sim/timeline/lanes.h"

namespace cpfit::cli {

namespace {

/// Activities of about 150 bytes each with their slots, tags and times: 2.5 GB.
constexpr std::int64_t kLargestProgram = 16'000'000;
/// Activities up to which memory over time is always followed.
constexpr std::int64_t kLargestMemory = 2'000'000;

struct Wanted {
  Disturbance network;
  std::vector<schedule::SlowRank> slow_ranks;
  std::vector<std::string> words;
  [[nodiscard]] bool any() const { return !network.empty() || !slow_ranks.empty(); }
};

void append(Problems& problems, const Problems& more, const std::string& option) {
  for (Problem problem : more) {
    problem.where = option + (problem.where.empty() ? "" : ": " + problem.where);
    problems.push_back(std::move(problem));
  }
}

Outcome<Wanted> read_wanted(const TimelineOptions& options, const Recipe& recipe) {
  Wanted wanted;
  Problems problems;
  for (const std::string& text : options.slow_ranks) {
    const Outcome<schedule::SlowRank> slow = parse_slow_rank(text);
    append(problems, slow.problems(), "--slow-rank");
    if (!slow.ok()) continue;
    if (slow->rank >= recipe.world()) {
      problems.push_back({"simulate.slow_rank", "--slow-rank", fmt::format("there is no rank {}", slow->rank),
                          fmt::format("the recipe has ranks 0 to {}", recipe.world() - 1)});
      continue;
    }
    wanted.slow_ranks.push_back(*slow);
    wanted.words.push_back(fmt::format("kernels of rank {} take {:g} times as long", slow->rank, slow->factor));
  }
  for (const std::string& text : options.links) {
    const Outcome<LinkChange> change = parse_link_change(text);
    append(problems, change.problems(), "--link");
    if (!change.ok()) continue;
    wanted.network.links.push_back(*change);
    wanted.words.push_back(change->factor == 0.0 ? fmt::format("the link {} -> {} is dead", change->from, change->to)
                                                 : fmt::format("the link {} -> {} has {:g} times its capacity", change->from,
                                                               change->to, change->factor));
  }
  for (const std::string& text : options.second_jobs) {
    const Outcome<SecondJob> job = parse_second_job(text);
    append(problems, job.problems(), "--second-job");
    if (!job.ok()) continue;
    wanted.network.jobs.push_back(*job);
    wanted.words.push_back(fmt::format("another job sends {} from {} to {}", print_rate(job->rate), job->from, job->to));
  }
  if (!problems.empty()) return problems;
  return wanted;
}

/// The option that a problem of the disturbed cluster came from.
Problems with_option(const Problems& problems, const Wanted& wanted) {
  const std::string option = wanted.network.jobs.empty() ? "--link" : wanted.network.links.empty() ? "--second-job" : "";
  Problems named;
  for (Problem problem : problems) {
    if (problem.where.empty())
      problem.where = !option.empty()                                                             ? option
                      : problem.code == "disturbance.rate" || problem.code == "disturbance.route" ? "--second-job"
                                                                                                  : "--link or --second-job";
    named.push_back(std::move(problem));
  }
  return named;
}

std::vector<timeline::RankPlace> places_of(const StepTimeline& timeline, const Cluster& cluster) {
  std::vector<timeline::RankPlace> places;
  const schedule::SimulatedRanks& ranks = timeline.step->ranks;
  for (std::int32_t rank = 0; rank < ranks.count(); ++rank) {
    timeline::RankPlace place;
    const std::int64_t global = ranks.global(rank);
    place.node = static_cast<std::int32_t>(global / cluster.gpus_per_node);
    place.rank = static_cast<std::int32_t>(global);
    place.stage = ranks.coordinate(rank).pp;
    places.push_back(place);
  }
  return places;
}

std::vector<std::string> names_of_links(const Topology& topology) {
  std::vector<std::string> names;
  const auto name = [&](std::int32_t vertex) -> const std::string& {
    return topology.vertices()[static_cast<std::size_t>(vertex)].name;
  };
  for (const Link& link : topology.links()) names.push_back(name(link.from) + " -> " + name(link.to));
  return names;
}

std::string folded_sentence(const Recipe& recipe, const schedule::SimulatedRanks& ranks) {
  if (ranks.every_rank()) return {};
  std::string what;
  if (recipe.tp > 1) what += fmt::format("one tp lane stands for {}", recipe.tp);
  if (recipe.dp > 1) what += fmt::format("{}one dp replica for {}", what.empty() ? "" : ", ", recipe.dp);
  return fmt::format("{} of {} ranks are simulated: {}; --every-rank simulates all.", ranks.count(), recipe.world(), what);
}

/// Where each step begins: behind the gradient norm of the one before it.
std::vector<timeline::StepMark> step_marks(const timeline::History& history, bool from_start) {
  std::vector<timeline::StepMark> marks{{from_start ? "first step" : "step", 0}};
  for (std::size_t a = 0; a < history.program().activities.size(); ++a) {
    const engine::Picoseconds end = history.run().end[a];
    if (history.program().activities[a].host_reads != 0 && end < history.step()) marks.push_back({"step", end});
  }
  return marks;
}

/// A placement that spares the ring a slow hop, and what the timeline says of it; empty where there is none.
std::string placed_sentence(const Workbench& bench, const Recipe& recipe, const schedule::StepOptions& options,
                            const StepTimeline& now) {
  const std::optional<PlacedStudy> placed = better_placed(bench, recipe);
  if (!placed || !avoids_slow_hop(placed->advice)) return "";
  Workbench there = bench.with(placed->scenario);
  const Outcome<StepTimeline> step = step_timeline(there, placed->scenario.training, placed->recipe, options);
  if (!step.ok()) return placed->advice.sentence;
  return fmt::format("{} On the timeline the step then takes {} instead of {}.", placed->advice.sentence,
                     print_time(step->candidate.time.step()), print_time(now.candidate.time.step()));
}

}  // namespace

void add_timeline_options(CLI::App& command, TimelineOptions& options) {
  const char* group = "Timeline (--fidelity timeline)";
  command.add_option("--trace", options.trace, "Write every lane as a trace for ui.perfetto.dev or chrome://tracing")
      ->check(file_name())
      ->group(group);
  command.add_option("--spans", options.spans, "Write every span as a line of CSV")->check(file_name())->group(group);
  command.add_option("--db", options.database, "Store every span in this database; `cpfit runs list` names it")
      ->check(file_name())
      ->group(group);
  command
      .add_flag("--first-step", options.first_step,
                "Let --trace, --spans and --db begin with the job's first step; the steady one stands behind it")
      ->group(group);
  command.add_flag("--every-rank", options.every_rank, "Simulate all ranks, not one of those that do alike")->group(group);
  command
      .add_option("--slow-rank", options.slow_ranks, "RANK=FACTOR: kernels of that rank take FACTOR times as long (repeatable)")
      ->group(group);
  command
      .add_option("--link", options.links,
                  "\"FROM -> TO=FACTOR\": that link keeps FACTOR of its capacity, 0: it is dead (repeatable)")
      ->group(group);
  command
      .add_option("--second-job", options.second_jobs,
                  "\"FROM -> TO=25 GB/s\": another job sends from one GPU or NIC to another (repeatable)")
      ->group(group);
}

Problems only_for_timelines(const TimelineOptions& options) {
  Problems problems;
  const auto add = [&](bool given, const std::string& option) {
    if (given)
      problems.push_back({"simulate.fidelity", option,
                          "the screen is a closed form: it has no lanes to write and nothing to disturb",
                          "add --fidelity timeline"});
  };
  add(!options.trace.empty(), "--trace");
  add(!options.spans.empty(), "--spans");
  add(!options.database.empty(), "--db");
  add(options.first_step, "--first-step");
  add(options.every_rank, "--every-rank");
  add(!options.slow_ranks.empty(), "--slow-rank");
  add(!options.links.empty(), "--link");
  add(!options.second_jobs.empty(), "--second-job");
  return problems;
}

Outcome<SimulatedStep> simulate_step(Workbench& bench, const Recipe& recipe, const TimelineOptions& options) {
  const Scenario& scenario = bench.scenario();
  const Outcome<Wanted> wanted = read_wanted(options, recipe);
  if (!wanted.ok()) return wanted.problems();
  std::optional<Workbench> disturbed_bench;
  if (!wanted->network.empty()) {
    Outcome<Cluster> cluster = disturbed(scenario.cluster, wanted->network);
    if (!cluster.ok()) return with_option(cluster.problems(), *wanted);
    Scenario changed = scenario;
    changed.cluster = std::move(cluster).value();
    disturbed_bench.emplace(bench.with(changed));
  }

  SimulatedStep step;
  schedule::StepOptions quiet;
  quiet.every_rank = options.every_rank;
  const ScreenContext context = bench.context(scenario.training);
  // A disturbance is of one place: where memory allows, replicas and lanes elsewhere are simulated as what they are.
  if (wanted->any() && !quiet.every_rank) {
    quiet.every_rank = true;
    if (schedule::estimated_activities(context, recipe, quiet) > kLargestProgram / 4) {
      quiet.every_rank = false;
      if (recipe.tp * recipe.dp > 1)
        step.notes.emplace_back(
            "All ranks together are too many to simulate: a disturbance counts as if every replica had it, and one of a link "
            "that the simulated ranks do not use is not seen.");
    }
  }
  const std::int64_t size = schedule::estimated_activities(context, recipe, quiet);
  if (size > kLargestProgram) {
    return Problem{"simulate.too_large", options.every_rank ? "--every-rank" : "--recipe",
                   fmt::format("the step would have about {} million activities, more than {} million", size / 1'000'000,
                               kLargestProgram / 1'000'000),
                   options.every_rank ? "leave --every-rank out: one of the ranks that do alike stands for the others"
                                      : "take a smaller training.global_batch: more micro-batches of a step are alike"};
  }
  schedule::StepOptions now = quiet;
  now.slow_ranks = wanted->slow_ranks;

  Outcome<StepTimeline> ran = step_timeline(disturbed_bench ? *disturbed_bench : bench, scenario.training, recipe, now);
  if (!ran.ok()) return ran.problems();
  step.now = std::move(ran).value();
  if (wanted->any()) {
    Outcome<StepTimeline> before = step_timeline(bench, scenario.training, recipe, quiet);
    if (!before.ok()) return before.problems();
    step.quiet = std::move(before).value();
    step.now.screened = step.quiet->screened;  // the screen knows of no disturbance
    step.disturbances = wanted->words;
  }
  Workbench& ran_on = disturbed_bench ? *disturbed_bench : bench;
  if (!wanted->any() && size <= kLargestMemory) {
    schedule::StepOptions start = quiet;
    start.from_start = true;
    Outcome<StepTimeline> first = step_timeline(bench, scenario.training, recipe, start);
    if (!first.ok()) return first.problems();
    step.first = first->candidate.time;
  }
  if (options.first_step) {
    schedule::StepOptions both = now;
    both.from_start = true;
    both.steps = 2;
    Outcome<StepTimeline> written = step_timeline(ran_on, scenario.training, recipe, both);
    if (!written.ok()) return written.problems();
    step.written = std::move(written).value();
    if (!options.trace.empty()) step.written_memory = step_memory(bench, scenario.training, *step.written);
  }
  const Cluster& cluster = disturbed_bench ? disturbed_bench->scenario().cluster : scenario.cluster;
  step.places = places_of(step.now, cluster);
  step.link_names = names_of_links(*cluster.topology);
  if (const std::string folded = folded_sentence(recipe, step.now.step->ranks); !folded.empty())
    step.notes.insert(step.notes.begin(), folded);
  if (!options.trace.empty() || size <= kLargestMemory) step.memory = step_memory(bench, scenario.training, step.now);
  if (!wanted->any() && recipe.cp > 1) {
    if (std::string sentence = placed_sentence(bench, recipe, quiet, step.now); !sentence.empty())
      step.notes.push_back(std::move(sentence));
  }
  return step;
}

Timeline marked_lanes(const SimulatedStep& step) {
  Timeline lanes = timeline::timeline_of(step.in_files().history());
  for (const timeline::RankAnswer& rank : step.in_files().answer.ranks) timeline::mark_exposed(lanes, rank);
  return lanes;
}

std::optional<std::int64_t> store_timeline(const SimulatedStep& step, const TimelineOptions& options,
                                           const Provenance& provenance) {
  if (options.database.empty()) return std::nullopt;
  Store store = open_store(options.database);
  const TimelineId id =
      save_timeline(store, marked_lanes(step),
                    {provenance.scenario_path, provenance.scenario_text, to_complete_text(step.now.candidate.recipe),
                     provenance.tool_version, provenance.rates_version});
  return static_cast<std::int64_t>(id);
}

void write_timeline_files(const SimulatedStep& step, const TimelineOptions& options) {
  if (options.trace.empty() && options.spans.empty()) return;
  const timeline::History history = step.in_files().history();
  const Timeline lanes = marked_lanes(step);
  write_file(options.trace, [&](std::ostream& out) {
    std::vector<timeline::CounterTrack> counters = timeline::link_rates(history, step.link_names);
    for (timeline::CounterTrack& track : timeline::memory_counters((step.written ? step.written_memory : step.memory).tracks))
      counters.push_back(std::move(track));
    timeline::write_trace(out, lanes, step.places, counters, step_marks(step.in_files().history(), step.written.has_value()));
  });
  write_file(options.spans, [&](std::ostream& out) { timeline::write_span_csv(out, lanes, step.places); });
}

}  // namespace cpfit::cli
