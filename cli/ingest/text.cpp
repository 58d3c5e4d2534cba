#include "cli/ingest/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "cli/terminal.h"
#include "model/quantity/counted.h"
#include "model/quantity/text.h"

namespace cpfit::cli {

namespace {

std::string figure_text(RunFigure figure, double value) {
  switch (figure) {
    case RunFigure::kTokensPerSecondPerGpu:
    case RunFigure::kTflopsPerGpu:
      return value >= 1000 ? fmt::format("{:.0f}", value) : fmt::format("{:.4g}", value);  // the figure's name is the unit
    case RunFigure::kMfu:
      return percent(value);
    case RunFigure::kResidentBytes:
    case RunFigure::kPeakBytes:
    case RunFigure::kReservedBytes:
      return print_bytes(Bytes(value));
    default:
      return print_time(Seconds(value));
  }
}

Style style_of(Standing standing) {
  switch (standing) {
    case Standing::kInside:
      return Style::kGood;
    case Standing::kOutside:
      return Style::kWarn;
    case Standing::kOutlier:
      return Style::kBad;
    case Standing::kNotPredicted:
      break;
  }
  return Style::kPlain;
}

/// Of tables with more rows than this only what lies outside is shown.
constexpr std::size_t kShownFigures = 40;

/// What of the job a figure is of: its stage, else its rank, else the device of the trace, which only its basis names.
std::string place_of(const MeasuredFigure& measured) {
  if (measured.stage >= 0) return fmt::format("stage {}", measured.stage);
  if (measured.rank >= 0) return fmt::format("rank {}", measured.rank);
  constexpr std::string_view kDevice = ", device ";
  const std::size_t at = measured.basis.rfind(kDevice);
  if (at == std::string::npos) return "";
  const std::size_t begin = at + 2;
  return measured.basis.substr(begin, measured.basis.find(',', begin) - begin);
}

std::string figures_table(const MeasuredJob& job) {
  const bool of_table = !job.sources.empty() && job.sources.front().format.starts_with("table");
  const bool all = job.figures.size() <= kShownFigures;
  std::array<std::int64_t, kStandingCount> count{};
  Table table({{"figure", false},
               {"of", false},
               {"measured"},
               {"from", true},
               {"to", true},
               {"samples"},
               {"predicted"},
               {"90 % from"},
               {"to"},
               {"off"},
               {"", false}});
  for (const ComparedFigure& row : job.figures) {
    const MeasuredFigure& measured = row.measured;
    const bool predicted = row.standing != Standing::kNotPredicted;
    ++count[static_cast<std::size_t>(row.standing)];
    if (!all && row.standing != Standing::kOutlier) continue;
    const auto print = [&](double value) { return figure_text(measured.figure, value); };
    table.row({std::string(name_of(measured.figure)), place_of(measured), print(measured.median),
               measured.samples > 1 ? print(measured.low) : "", measured.samples > 1 ? print(measured.high) : "",
               std::to_string(measured.samples), predicted ? print(row.predicted) : "-", predicted ? print(row.low) : "",
               predicted ? print(row.high) : "",
               predicted && measured.median > 0 && row.predicted > 0 ? signed_percent(row.predicted / measured.median - 1) : "",
               std::string(predicted ? name_of(row.standing) : "") + (of_table ? "  " + measured.basis : "")},
              style_of(row.standing));
  }
  std::string out = count[static_cast<std::size_t>(Standing::kOutlier)] > 0 || all ? table.text() : std::string();
  if (!all) {
    out += fmt::format("{}: {} inside their 90 % interval, {} outside, {}{}\n", counted(job.figures.size(), "figure"), count[1],
                       count[2], counted(count[3], "outlier"),
                       count[0] > 0 ? fmt::format(", {} not predicted", count[0]) : std::string());
  }
  return out;
}

}  // namespace

std::string job_text(const MeasuredJob& job) {
  std::string out;
  for (const RunSource& source : job.sources) out += fmt::format("{}: {}\n", source.path, source.format);
  if (!job.recipe.empty())
    out += wrapped((job.run > 0 ? fmt::format("run {}: ", job.run) : std::string()) + job.recipe, 2) + "\n";
  if (job.logged_steps > 0) {
    out += fmt::format("{}{}, {}, {} with NaN\n", counted(job.logged_steps, "logged step"),
                       job.attempts > 1 ? fmt::format(" in {} attempts", job.attempts) : std::string(),
                       counted(job.skipped_updates, "skipped update"), job.nan_steps);
  }
  out += "\n" + (job.figures.empty() ? std::string("Nothing to compare was found.\n") : figures_table(job));
  std::string notes;
  const auto note = [&](const std::string& text) {
    const std::string line = wrapped("  " + text, 4) + "\n";
    if (notes.find(line) == std::string::npos) notes += line;
  };
  for (const ComparedFigure& row : job.figures) {
    if (!row.note.empty()) note(fmt::format("{}: {}", name_of(row.measured.figure), row.note));
  }
  const bool of_table = !job.sources.empty() && job.sources.front().format.starts_with("table");
  if (!of_table) {
    std::vector<std::pair<std::string, std::string>> by_basis;  // basis, the figures that rest on it
    for (const ComparedFigure& row : job.figures) {
      const auto known = std::ranges::find(by_basis, row.measured.basis, &std::pair<std::string, std::string>::first);
      const std::string name(name_of(row.measured.figure));
      if (known == by_basis.end())
        by_basis.emplace_back(row.measured.basis, name);
      else
        known->second += ", " + name;
    }
    for (const auto& [basis, names] : by_basis) note(fmt::format("{}: {}", names, basis));
  }
  for (const std::string& remark : job.remarks) note(remark);
  if (!notes.empty()) out += heading("What it rests on") + notes;
  if (!job.left_out.empty()) {
    constexpr std::size_t kShown = 12;
    out += heading("Left out: " + counted(job.left_out.size(), "step"));
    for (std::size_t i = 0; i < std::min(kShown, job.left_out.size()); ++i) {
      const LeftOutStep& step = job.left_out[i];
      out += fmt::format("  iteration {} (line {}){}: {}\n", step.iteration, step.line,
                         step.seconds > 0 ? ", " + print_time(Seconds(step.seconds)) : "", step.reason);
    }
    if (job.left_out.size() > kShown) out += fmt::format("  and {} more (--json lists all)\n", job.left_out.size() - kShown);
  }
  return out;
}

Json job_json(const MeasuredJob& job) {
  Json figures = Json::array(), left_out = Json::array(), sources = Json::array();
  std::int64_t outliers = 0;
  for (const ComparedFigure& row : job.figures) {
    const MeasuredFigure& measured = row.measured;
    const bool predicted = row.standing != Standing::kNotPredicted;
    const auto known = [&](double value) { return predicted ? Json(value) : Json(nullptr); };
    outliers += row.standing == Standing::kOutlier ? 1 : 0;
    figures.push_back({{"figure", name_of(measured.figure)},
                       {"stage", measured.stage >= 0 ? Json(measured.stage) : Json(nullptr)},
                       {"rank", measured.rank >= 0 ? Json(measured.rank) : Json(nullptr)},
                       {"measured", measured.median},
                       {"measured_low", measured.low},
                       {"measured_high", measured.high},
                       {"samples", measured.samples},
                       {"left_out", measured.left_out},
                       {"predicted", known(row.predicted)},
                       {"low", known(row.low)},
                       {"high", known(row.high)},
                       {"error", predicted && measured.median > 0 ? Json(row.predicted / measured.median - 1) : Json(nullptr)},
                       {"standing", name_of(row.standing)},
                       {"basis", measured.basis},
                       {"note", row.note}});
  }
  for (const LeftOutStep& step : job.left_out)
    left_out.push_back({{"iteration", step.iteration},
                        {"line", step.line},
                        {"seconds", step.seconds > 0 ? Json(step.seconds) : Json(nullptr)},
                        {"reason", step.reason}});
  for (const RunSource& source : job.sources) sources.push_back({{"path", source.path}, {"format", source.format}});
  return {{"sources", sources},
          {"framework", job.framework.empty() ? Json(nullptr) : Json(job.framework)},
          {"scenario", job.scenario_name.empty() ? Json(nullptr) : Json(job.scenario_name)},
          {"recipe", job.recipe.empty() ? Json(nullptr) : Json(job.recipe)},
          {"run", job.run > 0 ? Json(job.run) : Json(nullptr)},
          {"gpus", job.gpus},
          {"sequence_tokens", job.sequence_tokens},
          {"global_batch", job.global_batch},
          {"logged_steps", job.logged_steps},
          {"attempts", job.attempts},
          {"skipped_updates", job.skipped_updates},
          {"nan_steps", job.nan_steps},
          {"figures", figures},
          {"outliers", outliers},
          {"left_out", left_out},
          {"remarks", job.remarks}};
}

std::string jobs_text(const std::vector<MeasuredJobListing>& jobs) {
  if (jobs.empty()) return "no measured jobs\n";
  Table table({{"job"},
               {"framework", false},
               {"scenario", false},
               {"run"},
               {"figures"},
               {"compared"},
               {"inside"},
               {"outliers"},
               {"files", false}});
  for (const MeasuredJobListing& job : jobs) {
    table.row({std::to_string(static_cast<std::int64_t>(job.id)), job.framework.empty() ? "-" : job.framework,
               job.scenario_name.empty() ? "-" : job.scenario_name, job.run > 0 ? std::to_string(job.run) : "-",
               std::to_string(job.figures), std::to_string(job.compared), std::to_string(job.inside),
               std::to_string(job.outliers), job.source + (job.sources > 1 ? fmt::format(" and {} more", job.sources - 1) : "")});
  }
  return table.text();
}

Json jobs_json(const std::vector<MeasuredJobListing>& jobs) {
  Json rows = Json::array();
  for (const MeasuredJobListing& job : jobs) {
    rows.push_back({{"job", static_cast<std::int64_t>(job.id)},
                    {"source", job.source},
                    {"sources", job.sources},
                    {"framework", job.framework},
                    {"scenario", job.scenario_name},
                    {"recipe", job.recipe},
                    {"run", job.run > 0 ? Json(job.run) : Json(nullptr)},
                    {"stored_unix_seconds", job.stored_unix_seconds},
                    {"figures", job.figures},
                    {"compared", job.compared},
                    {"inside", job.inside},
                    {"outliers", job.outliers}});
  }
  return rows;
}

}  // namespace cpfit::cli
