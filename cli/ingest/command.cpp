// cpfit ingest: results of real jobs, beside what was predicted for them.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>

#include "calibrate/read/job_check.h"
#include "calibrate/read/trace_points.h"
#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/ingest/files.h"
#include "cli/ingest/text.h"
#include "cli/ingest/trace.h"
#include "cli/json.h"
#include "cli/study.h"
#include "cli/terminal.h"
#include "cli/version.h"
#include "db/query/runs.h"
#include "model/quantity/counted.h"
#include "model/quantity/text.h"
#include "sim/evaluate/compare_job.h"
#include "sim/evaluate/evaluate.h"

namespace cpfit::cli {

namespace {

struct IngestArguments {
  std::vector<std::string> files;
  std::string scenario, recipe, calibration, database, measurements;
  std::int64_t run = 0, show = 0;
  JobReading reading;
  bool list = false, json = false;
  [[nodiscard]] bool compares() const { return !scenario.empty() || run > 0; }
};

/// What the job is compared with.
struct Against {
  Study study;                      // its scenario's base is the recipe
  std::optional<Candidate> stored;  // of the run
};

Problem nothing_ships(const IngestArguments& arguments) {
  return {"ingest.nothing_ships", arguments.database, fmt::format("run {} ships no recipe", arguments.run),
          "look at it with cpfit runs show, or name a scenario and --recipe"};
}

/// A stored run's scenario, ship, and the rates it was planned with.
Outcome<Against> stored_run(const IngestArguments& arguments) {
  const Store store = open_store(arguments.database, {.access = StoreAccess::kRead});
  const Outcome<PlanResult> result = load_run(store, RunId{arguments.run});
  if (!result.ok()) return result.problems();
  if (!result->ships) return nothing_ships(arguments);
  Outcome<Scenario> scenario = read_scenario(result->provenance.scenario_text, result->provenance.scenario_path);
  if (!scenario.ok()) return scenario.problems();
  scenario.value().base = result->ship.recipe;
  std::string which = arguments.calibration;
  for (const auto& [name, hash] : result->provenance.input_hashes) {
    if (which.empty() && name.starts_with("calibration ")) which = hash;
  }
  if (which.empty()) return Against{{std::move(scenario).value(), RateSet::defaults(), std::nullopt}, result->ship};
  const Outcome<Calibration> chosen = choose_calibration(which, arguments.database);
  if (!chosen.ok()) return chosen.problems();
  Outcome<CalibratedRates> calibrated = calibrated_rates(*chosen, *scenario);
  if (!calibrated.ok()) return calibrated.problems();
  CalibratedRates rates = std::move(calibrated).value();
  return Against{{std::move(scenario).value(), std::move(rates.rates), std::move(rates.use)}, result->ship};
}

/// The scenario with the recipe that is given, or that the job's log holds.
std::optional<Against> named_scenario(const IngestArguments& arguments, const JobFiles& files) {
  std::optional<Study> study = load_study(arguments.scenario, arguments.calibration, arguments.database);
  if (!study) return std::nullopt;
  Recipe& base = study->scenario.base;
  if (!arguments.recipe.empty()) {
    const Outcome<Recipe> parsed = parse_recipe(arguments.recipe, base);
    if (!parsed.ok()) {
      print_argument_problems("--recipe", parsed.problems());
      return std::nullopt;
    }
    base = *parsed;
    return Against{std::move(*study), std::nullopt};
  }
  const Outcome<std::optional<Recipe>> logged = recipe_in(files, base);
  if (!logged.ok()) {
    print_problems(logged.problems());
    return std::nullopt;
  }
  if (!*logged) {
    print_problems(
        {{"ingest.no_recipe", arguments.scenario, "which recipe ran is not known: the files hold no block of arguments",
          "name it: --recipe \"tp=2,cp=4,pp=1,dp=1\""}});
    return std::nullopt;
  }
  base = **logged;
  return Against{std::move(*study), std::nullopt};
}

/// Says where the run's stored step and the one predicted now part.
void note_changed_prediction(const Against& against, const Candidate& now, MeasuredJob& job) {
  if (!against.stored) return;
  const double stored = against.stored->time.step().value(), step = now.time.step().value();
  constexpr double kSame = 1e-3;
  if (std::abs(step / stored - 1) <= kSame) return;
  job.remarks.push_back(fmt::format("the run was stored with a step of {}, this cpfit predicts {}: compared with the latter",
                                    print_time(Seconds(stored)), print_time(Seconds(step))));
}

/// The job with its figures compared; problems printed and nothing otherwise.
std::optional<MeasuredJob> compared_job(const IngestArguments& arguments, const IngestedFiles& files,
                                        const std::optional<Against>& against) {
  std::optional<JobShape> shape;
  if (against) shape = JobShape{against->study.scenario.base, against->study.scenario.training};
  MeasuredJob job = measured_job(files.job, shape, arguments.reading);
  for (const RunSource& source : files.overlap_only) job.sources.push_back(source);
  for (const MeasuredFigure& figure : files.overlap) job.figures.push_back({figure, 0, 0, 0, Standing::kNotPredicted, ""});
  if (!files.overlap_only.empty() && files.overlap.empty())
    job.remarks.push_back("Nsight's exports hold no step marks: say with --trace-steps how many steps they hold");
  job.tool_version = kVersion;
  if (!against) return job;
  const Study& study = against->study;
  job.scenario_name = study.scenario.name;
  job.run = arguments.run;
  job.rates_version = study.rates.version();
  JobCase what{study.scenario, 0, {}, {}};
  for (const JobLog& log : files.job.logs) what.peak_flops = std::max(what.peak_flops, log.facts.peak_flops);
  for (const ComparedFigure& figure : job.figures) what.figures.push_back(figure.measured);
  const std::vector<KernelTrace>& recorded = files.job.traces;
  const bool simulated =
      std::all_of(recorded.begin(), recorded.end(), [](const KernelTrace& trace) { return trace.format == "cpfit"; });
  PredictedTraces traces = predicted_traces(study.scenario, study.rates, what.figures, simulated);
  what.exposed = std::move(traces.of_rank);
  if (!traces.note.empty()) job.remarks.push_back("exposed communication: " + traces.note);
  Outcome<JobComparison> comparison = compare_job(what, study.rates);
  if (!comparison.ok()) {
    print_argument_problems("--recipe", comparison.problems());
    return std::nullopt;
  }
  note_changed_prediction(*against, comparison->predicted, job);
  job.figures = std::move(comparison.value().figures);
  return job;
}

std::optional<RunFigure> figure_of_metric(Metric metric) {
  for (int i = 0; i < kRunFigureCount; ++i) {
    if (name_of(static_cast<RunFigure>(i)) == name_of(metric)) return static_cast<RunFigure>(i);
  }
  return std::nullopt;
}

/// Rows of a published table are jobs of their own, each with its recipe: compared as `cpfit validate` does.
MeasuredJob compared_table(const MeasuredTable& table) {
  const RateSet rates = RateSet::defaults();
  const ValidationResult result = evaluate(table, rates);
  MeasuredJob job;
  job.sources.push_back({table.path, "table (" + table.family + ")"});
  job.tool_version = kVersion;
  job.rates_version = rates.version();
  std::int64_t kernels = 0;
  for (const ValidationRow& row : result.rows) {
    const std::optional<RunFigure> figure = figure_of_metric(row.metric);
    if (!figure) {
      ++kernels;
      continue;
    }
    MeasuredFigure measured = figure_of(*figure, {row.measured}, fmt::format("line {}: {}", row.line, row.label));
    job.figures.push_back(
        {std::move(measured), row.predicted, row.low, row.high, standing_of(row.measured, row.predicted, row.low, row.high), ""});
  }
  if (kernels > 0)
    job.remarks.push_back(
        fmt::format("{} of kernels or collectives: cpfit calibrate import takes them", counted(kernels, "row")));
  std::map<std::string, std::int64_t> reasons;
  for (const SkippedRow& row : result.skipped) ++reasons[row.reason];
  for (const auto& [reason, count] : reasons) job.remarks.push_back(fmt::format("{} skipped: {}", counted(count, "row"), reason));
  return job;
}

struct Written {
  TracePoints points;
  std::string path;
};

Json written_json(const std::optional<Written>& written) {
  if (!written) return nullptr;
  return {{"path", written->path}, {"points", written->points.file.points.size()}, {"left_out", written->points.left_out}};
}

std::string written_text(const std::optional<Written>& written) {
  if (!written) return {};
  std::string out = fmt::format("\n{} in {} (cpfit calibrate fit)\n",
                                counted(written->points.file.points.size(), "measurement point"), written->path);
  for (const std::string& text : written->points.left_out) out += wrapped("  left out: " + text, 4) + "\n";
  return out;
}

int list_jobs(const IngestArguments& arguments) {
  const std::vector<MeasuredJobListing> jobs = list_measured_jobs(open_store(arguments.database, {.access = StoreAccess::kRead}));
  if (arguments.json) {
    print_json({{"jobs", jobs_json(jobs)}});
  } else {
    write_result(jobs_text(jobs));
  }
  return kDone;
}

int show_job(const IngestArguments& arguments) {
  const Outcome<MeasuredJob> job =
      load_measured_job(open_store(arguments.database, {.access = StoreAccess::kRead}), MeasuredJobId{arguments.show});
  if (!job.ok()) {
    print_problems(job.problems());
    return kBadInput;
  }
  if (arguments.json) {
    Json row = job_json(*job);
    row["stored"] = arguments.show;
    print_json({{"jobs", Json::array({std::move(row)})}});
  } else {
    write_result(job_text(*job));
  }
  return kDone;
}

void print_jobs(const IngestArguments& arguments, const std::vector<MeasuredJob>& jobs, const std::vector<std::int64_t>& stored,
                const std::optional<Written>& written) {
  if (arguments.json) {
    Json rows = Json::array();
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      Json row = job_json(jobs[i]);
      row["stored"] = i < stored.size() ? Json(stored[i]) : Json(nullptr);
      rows.push_back(std::move(row));
    }
    print_json({{"jobs", std::move(rows)}, {"measurements", written_json(written)}});
    return;
  }
  std::string out;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    out += (i > 0 ? "\n" : "") + job_text(jobs[i]);
    if (i < stored.size()) out += fmt::format("\nMeasured job {} in {}\n", stored[i], arguments.database);
  }
  write_result(out + written_text(written));
}

int run_ingest(const IngestArguments& arguments) {
  if (arguments.list) return list_jobs(arguments);
  if (arguments.show > 0) return show_job(arguments);
  if (arguments.files.empty()) {
    print_problems({{"ingest.nothing", "", "no file to read", "name logs, traces, memory snapshots or tables, or --list"}});
    return kBadInput;
  }
  const Outcome<IngestedFiles> files = read_ingested(arguments.files, arguments.reading);
  if (!files.ok()) {
    print_problems(files.problems());
    return kBadInput;
  }
  std::optional<Against> against;
  if (arguments.run > 0) {
    Outcome<Against> stored = stored_run(arguments);
    if (!stored.ok()) {
      print_problems(stored.problems());
      return stored.problems().front().code == "ingest.nothing_ships" ? kNothingFits : kBadInput;
    }
    against = std::move(stored).value();
  } else if (arguments.compares()) {
    against = named_scenario(arguments, files->job);
    if (!against) return kBadInput;
  }
  if (against) {
    const Scenario& scenario = against->study.scenario;
    if (const Problems problems = contradictions(files->job, scenario, scenario.base); !problems.empty()) {
      print_problems(problems);
      return kBadInput;
    }
  }
  std::vector<MeasuredJob> jobs;
  if (arguments.files.size() > files->tables.size()) {
    std::optional<MeasuredJob> job = compared_job(arguments, *files, against);
    if (!job) return kBadInput;
    jobs.push_back(std::move(*job));
  }
  for (const MeasuredTable& table : files->tables) jobs.push_back(compared_table(table));
  std::optional<Written> written;
  if (!arguments.measurements.empty()) {
    Outcome<TracePoints> points = points_of(files->job.traces, kVersion);
    if (!points.ok()) {
      print_argument_problems("--measurements", points.problems());
      return kBadInput;
    }
    written = Written{std::move(points).value(), arguments.measurements};
    write_measurement(written->points.file, arguments.measurements);
  }
  std::vector<std::int64_t> stored;
  if (!arguments.database.empty()) {
    Store store = open_store(arguments.database);
    for (const MeasuredJob& job : jobs) stored.push_back(static_cast<std::int64_t>(save_measured_job(store, job)));
  }
  print_jobs(arguments, jobs, stored, written);
  return kDone;
}

}  // namespace

void add_ingest(CLI::App& app, int& exit_code) {
  auto arguments = std::make_shared<IngestArguments>();
  CLI::App* command =
      app.add_subcommand("ingest", "Results of real jobs beside what was predicted: logs, traces, memory snapshots, tables");
  command
      ->add_option(
          "FILE", arguments->files,
          "Files of one job: logs of Megatron-LM, Megatron-Bridge, torchtitan, DeepSpeed or nanotron; Kineto traces; Nsight\n"
          "exports; PyTorch memory snapshots (.pickle, .json). Tables in published columns (.csv)")
      ->check(file_name());
  CLI::Option* database =
      command->add_option("--db", arguments->database, "SQLite file to store the job in, and of --run and --list")
          ->check(file_name());
  CLI::Option* scenario =
      command->add_option("--scenario", arguments->scenario, "What the job trained, on which cluster")->check(file_name());
  command
      ->add_option("--recipe", arguments->recipe,
                   "What ran; missing keys take the scenario's values. Default: the block of arguments in the log")
      ->needs(scenario);
  command->add_option("--run", arguments->run, "Number of a stored run: the job ran what it ships")
      ->needs(database)
      ->excludes(scenario)
      ->check(CLI::PositiveNumber);
  command
      ->add_option("--calibration", arguments->calibration,
                   "Rates to predict with: a file of `calibrate fit --out`, DATABASE:NAME, or a name or id in --db; \"defaults\"")
      ->check(file_name());
  command
      ->add_option("--measurements", arguments->measurements,
                   "File for kernels and collectives of the traces as points for `cpfit calibrate fit`")
      ->check(file_name());
  command->add_option("--warm-up", arguments->reading.warm_up, "Logged steps to leave out at each start of the job")
      ->capture_default_str()
      ->check(CLI::Range(0, 1'000'000));
  command->add_option("--trace-steps", arguments->reading.trace_steps, "Steps that a trace without step marks holds")
      ->check(CLI::Range(1, 1'000'000));
  command->add_flag("--list", arguments->list, "List the measured jobs in --db")->needs(database);
  command->add_option("--show", arguments->show, "Number of a measured job in --db to show again")
      ->needs(database)
      ->check(CLI::PositiveNumber);
  command->add_flag("--json", arguments->json, "Print one JSON object");
  command->callback([arguments, &exit_code] { exit_code = run_ingest(*arguments); });
}

}  // namespace cpfit::cli
