// cpfit validate: predicted against measured rows of a published table.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <memory>

#include "calibrate/read/imported.h"
#include "calibrate/read/published.h"
#include "cli/calibrate/choice.h"
#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/json.h"
#include "cli/terminal.h"
#include "cli/version.h"
#include "db/store/validation_store.h"
#include "model/quantity/counted.h"
#include "model/quantity/text.h"
#include "sim/evaluate/evaluate.h"
#include "sim/evaluate/ring_validation.h"

namespace cpfit::cli {

namespace {

struct ValidateArguments {
  std::vector<std::string> files;
  std::string database, calibration;
  std::size_t worst = 5;
  bool rows = false;
  bool json = false;
};

/// A figure of a metric with its unit.
std::string figure(Metric metric, double value) {
  switch (metric) {
    case Metric::kStepSeconds:
    case Metric::kKernelSeconds:
    case Metric::kCollectiveSeconds:
    case Metric::kExposedSeconds:
      return print_time(Seconds(value));
    case Metric::kPeakBytes:
    case Metric::kResidentBytes:
    case Metric::kReservedBytes:
      return print_bytes(Bytes(value));
    case Metric::kMfu:
      return percent(value);
    case Metric::kTokensPerSecondPerGpu:
    case Metric::kTflopsPerGpu:
      break;
  }
  return fmt::format("{:.4g}", value);  // the metric's name is the unit
}

/// What the rows' predictions rest on beside the columns, and what was searched because no column says it.
std::string grounds_text(const std::vector<MeasuredRun>& runs, const std::vector<ValidationRow>& rows) {
  std::map<std::string, std::int64_t> known, searched;
  for (const ValidationRow& row : rows) {
    if (row.metric == Metric::kKernelSeconds && !row.searched.empty())
      ++known[row.searched + " read otherwise than printed, as the source's own scripts and times say"];
  }
  for (const MeasuredRun& run : runs) {
    for (const std::string& condition : run.conditions) ++known[condition];
    for (const std::string& field : run.unknown) ++searched[field];
  }
  std::string text;
  for (const auto& [condition, count] : known) text += wrapped(fmt::format("  {} x {}", count, condition), 6) + "\n";
  for (const auto& [field, count] : searched)
    text += wrapped(fmt::format("  {} x {} is not printed: the fastest that is legal and fits", count, field), 6) + "\n";
  return text.empty() ? text : "known or supposed of these rows, beside their columns:\n" + text;
}

void print_summary(const ValidationResult& result, const std::vector<MeasuredRun>& runs, const ValidateArguments& arguments) {
  fmt::print("{}\n", styled(result.path, Style::kBold));
  Table table({{"metric", false}, {"rows"}, {"median |error|"}, {"mean |error|"}, {"worst"}, {"bias"}, {"inside interval"}});
  const auto add = [&](const std::string& label, const MetricSummary& metric) {
    table.row({label, std::to_string(metric.rows), percent(metric.median_abs_error), percent(metric.mape),
               percent(metric.max_abs_error), percent(metric.bias), percent(metric.coverage)});
  };
  for (const MetricSummary& metric : result.summary) add(std::string(name_of(metric.metric)), metric);
  for (const GroupSummary& group : result.groups) {
    for (const MetricSummary& metric : group.summary) add(fmt::format("  {} [{}]", name_of(metric.metric), group.group), metric);
  }
  if (result.summary.empty())
    fmt::print("no row could be predicted\n");
  else
    fmt::print("{}", table.text());
  if (result.out_of_memory) {
    const OutOfMemoryScore& score = *result.out_of_memory;
    fmt::print("out of memory: {}, {} decided, {} right, {} at risk, {} dead called fits, {} live called oom\n",
               counted(score.rows, "row"), score.decided, score.right, score.at_risk, score.dead_called_fits,
               score.live_called_oom);
  }
  fmt::print("{}", grounds_text(runs, result.rows));
  std::map<std::string, std::int64_t> reasons;
  for (const SkippedRow& row : result.skipped) ++reasons[row.reason];
  if (!result.skipped.empty()) fmt::print("{} skipped:\n", counted(result.skipped.size(), "row"));
  for (const auto& [reason, count] : reasons) fmt::print("{}\n", wrapped(fmt::format("  {} x {}", count, reason), 6));
  std::vector<const ValidationRow*> shown;
  for (const ValidationRow& row : result.rows) shown.push_back(&row);
  if (!arguments.rows) {
    std::stable_sort(shown.begin(), shown.end(),
                     [](const ValidationRow* a, const ValidationRow* b) { return std::abs(a->error) > std::abs(b->error); });
    if (shown.size() > arguments.worst) shown.resize(arguments.worst);
    if (!shown.empty()) fmt::print("worst rows:\n");
  }
  Table rows({{"line"}, {"metric", false}, {"measured"}, {"predicted"}, {"error"}, {"label", false}});
  for (const ValidationRow* row : shown) {
    rows.row({std::to_string(row->line), std::string(name_of(row->metric)), figure(row->metric, row->measured),
              figure(row->metric, row->predicted), percent(row->error), row->label});
  }
  if (!shown.empty()) fmt::print("{}", rows.text());
  fmt::print("\n");
}

/// One line per file and metric, as the README's table.
class Overview {
 public:
  void add(const ValidationResult& result) {
    const std::string file = std::filesystem::path(result.path).stem().string();
    for (const MetricSummary& metric : result.summary) {
      table_.row({file, std::string(name_of(metric.metric)), std::to_string(metric.rows), percent(metric.median_abs_error),
                  percent(metric.mape), percent(metric.max_abs_error), percent(metric.bias), percent(metric.coverage)});
    }
    if (result.out_of_memory) {
      const OutOfMemoryScore& score = *result.out_of_memory;
      verdicts_.row({file, std::to_string(score.rows), std::to_string(score.decided), std::to_string(score.right),
                     std::to_string(score.at_risk), std::to_string(score.dead_called_fits),
                     std::to_string(score.live_called_oom)});
    }
    for (const SkippedRow& row : result.skipped) ++skipped_[row.reason];
    rows_ += result.rows.size();
    skipped_rows_ += result.skipped.size();
  }
  [[nodiscard]] std::string text() const {
    std::string out = table_.text() + "\nOut-of-memory verdicts (runs)\n" + verdicts_.text();
    out += fmt::format("\n{} predicted; {} skipped:\n", counted(rows_, "figure"), counted(skipped_rows_, "row"));
    std::vector<std::pair<std::int64_t, std::string>> reasons;
    for (const auto& [reason, count] : skipped_) reasons.emplace_back(-count, reason);
    std::sort(reasons.begin(), reasons.end());
    for (const auto& [count, reason] : reasons) out += wrapped(fmt::format("  {} x {}", -count, reason), 6) + "\n";
    return out;
  }

 private:
  Table table_{{{"table", false},
                {"metric", false},
                {"rows"},
                {"median |error|"},
                {"mean |error|"},
                {"worst"},
                {"bias"},
                {"inside interval"}}};
  Table verdicts_{{{"table", false}, {"runs"}, {"decided"}, {"right"}, {"at risk"}, {"dead called fits"}, {"live called oom"}}};
  std::map<std::string, std::int64_t> skipped_;
  std::size_t rows_ = 0, skipped_rows_ = 0;
};

/// Ring steps of a measurement by cpfit-bench, predicted from the rates of the machine that they ran on.
Outcome<ValidationResult> validate_steps(const std::string& path, const ValidateArguments& arguments) {
  const Outcome<MeasurementFile> file = read_measurement(path);
  if (!file) return file.problems();
  if (arguments.calibration.empty()) {
    return Problem{"validate.calibration", path, "ring steps are predicted from rates of the machine that they were measured on",
                   "fit them (cpfit calibrate fit) and say --calibration FILE, or DATABASE:NAME"};
  }
  const Outcome<Calibration> calibration = choose_calibration(arguments.calibration, arguments.database);
  if (!calibration) return calibration.problems();
  const Outcome<RateTables> tables = tables_of(*calibration);
  if (!tables) return tables.problems();
  return evaluate_ring_steps(*file, path, ring_rates(*tables, measured_device(*file), file->machine.link));
}

int run_validate(const ValidateArguments& arguments) {
  const RateSet rates = RateSet::defaults();
  Json all = Json::array();
  Overview overview;
  for (const std::string& file : arguments.files) {
    if (std::filesystem::is_directory(file)) {
      print_problems({{"validate.folder", file, "this is a folder, not a table", "name its CSV files: " + file + "/*.csv"}});
      return kBadInput;
    }
    Json runs = Json::array();
    const auto keep = [&](const MeasuredRun& run, const Candidate& taken) { runs.push_back(to_json(run, taken)); };
    std::vector<MeasuredRun> described;  // of a table
    const auto scored = [&]() -> Outcome<ValidationResult> {
      if (std::filesystem::path(file).extension() == ".json") return validate_steps(file, arguments);
      Outcome<MeasuredTable> table = read_published(file);
      if (!table.ok()) return table.problems();
      const ValidationResult result = evaluate(*table, rates, arguments.json ? RunSeen(keep) : nullptr);
      described = std::move(table->runs);
      return result;
    }();
    if (!scored.ok()) {
      print_problems(scored.problems());
      return kBadInput;
    }
    const ValidationResult& result = *scored;
    if (!arguments.database.empty()) {
      Store store = open_store(arguments.database);
      (void)save_validation(store, result, kVersion, rates.version());
    }
    if (!arguments.json && (arguments.files.size() == 1 || arguments.rows))
      print_summary(result, described, arguments);
    else if (!arguments.json)
      overview.add(result);
    else {
      Json json = to_json(result);
      json["runs"] = std::move(runs);
      if (arguments.files.size() == 1)
        print_json(std::move(json));
      else
        all.push_back(std::move(json));
    }
  }
  if (!arguments.json && arguments.files.size() > 1 && !arguments.rows) fmt::print("{}", overview.text());
  if (arguments.json && arguments.files.size() > 1) print_json({{"files", all}});
  return kDone;
}

}  // namespace

void add_validate(CLI::App& app, int& exit_code) {
  auto arguments = std::make_shared<ValidateArguments>();
  CLI::App* command = app.add_subcommand(
      "validate", "Predicted against measured rows of published tables (CSV), or ring steps of cpfit-bench (JSON)");
  command
      ->add_option("files", arguments->files,
                   "Tables of measured rows or measurements; several give one line per file and metric")
      ->required();
  command->add_option("--db", arguments->database, "SQLite file to store the records in")->check(file_name());
  command->add_option(
      "--calibration", arguments->calibration,
      "Rates of ring steps: a file of `cpfit calibrate fit`, or DATABASE:NAME; tables are predicted with what ships");
  command->add_option("--worst", arguments->worst, "Worst rows to list per file")
      ->capture_default_str()
      ->check(CLI::Range(0, 1'000'000));
  command->add_flag("--rows", arguments->rows, "List every row");
  command->add_flag("--json", arguments->json, "Print one JSON object");
  command->callback([arguments, &exit_code] { exit_code = run_validate(*arguments); });
}

}  // namespace cpfit::cli
