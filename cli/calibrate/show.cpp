// cpfit calibrate show: the calibrations there are, or one of them surface by surface.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "cli/calibrate/choice.h"
#include "cli/calibrate/commands.h"
#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/terminal.h"
#include "db/store/calibration_store.h"
#include "model/quantity/counted.h"
#include "model/rates/overlay.h"

namespace cpfit::cli {

namespace {

struct CalibrateShowArguments {
  std::string which, database;
  bool json = false;
};

std::string age_text(std::int64_t created, std::int64_t now) {
  if (created <= 0) return "-";
  const std::int64_t days = (now - created) / 86400;
  if (days < 1) return "today";
  return days < 60 ? fmt::format("{} {}", days, days == 1 ? "day" : "days") : fmt::format("{} months", days / 30);
}

std::string device_of(const Calibration& calibration) {
  if (calibration.assumed) return "data sheets";
  if (!calibration.machine.gpu.empty()) return calibration.machine.gpu;
  return calibration.machine.cpu.empty() ? "-" : calibration.machine.cpu;
}

std::string software_of(const MeasuredMachine& machine) {
  std::string text;
  for (const auto& [name, version] :
       {std::pair("driver", &machine.driver), std::pair("CUDA", &machine.cuda), std::pair("NCCL", &machine.nccl),
        std::pair("cuDNN", &machine.cudnn), std::pair("MPI", &machine.mpi), std::pair("BLAS", &machine.blas)}) {
    if (!version->empty()) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name, *version);
  }
  return text;
}

std::vector<Surface> surfaces_in(const Calibration& calibration) {
  const Outcome<RateTables> tables = tables_of(calibration);
  return tables.ok() ? surfaces_of(*tables) : std::vector<Surface>();
}

/// Median over curves, of those that were scored on shapes kept out.
double median_hold_out(const std::vector<Surface>& surfaces) {
  std::vector<double> errors;
  for (const Surface& surface : surfaces) {
    if (surface.quality.held_out > 0) errors.push_back(surface.quality.median_error);
  }
  if (errors.empty()) return -1;
  std::sort(errors.begin(), errors.end());
  return errors[errors.size() / 2];
}

Json head_json(const Calibration& c) {
  return {{"id", c.id},
          {"name", c.name},
          {"assumed", c.assumed},
          {"created_unix_seconds", c.created_unix_seconds > 0 ? Json(c.created_unix_seconds) : Json(nullptr)},
          {"tool_version", c.tool_version},
          {"device", device_of(c)}};
}

int list_all(const CalibrateShowArguments& arguments) {
  std::vector<Calibration> all;
  if (!arguments.database.empty()) all = list_calibrations(open_store(arguments.database, {.access = StoreAccess::kRead}));
  all.push_back(default_calibration());
  if (arguments.json) {
    Json rows = Json::array();
    for (const Calibration& c : all) {
      Json row = head_json(c);
      row["surfaces"] = surfaces_in(c).size();
      rows.push_back(row);
    }
    print_json({{"calibrations", rows}});
    return kDone;
  }
  Table table({{"id", false},
               {"name", false},
               {"device", false},
               {"curves"},
               {"hold-out median"},
               {"age"},
               {"files"},
               {"made of", false}});
  for (const Calibration& c : all) {
    const std::vector<Surface> surfaces = surfaces_in(c);
    const double error = median_hold_out(surfaces);
    table.row({c.short_id(), c.name, device_of(c), std::to_string(surfaces.size()), error < 0 ? "-" : percent(error),
               age_text(c.created_unix_seconds, unix_now()), std::to_string(c.sources.size()),
               c.sources.empty() ? "-" : c.sources.front().format});
  }
  write_result(table.text());
  return kDone;
}

int run_calibrate_show(const CalibrateShowArguments& arguments) {
  if (arguments.which.empty()) return list_all(arguments);
  const Outcome<Calibration> calibration = choose_calibration(arguments.which, arguments.database);
  if (!calibration.ok()) {
    print_problems(calibration.problems());
    return kBadInput;
  }
  if (arguments.json)
    print_json(calibration_details_json(*calibration));
  else
    write_result(calibration_details(*calibration, unix_now()));
  return kDone;
}

}  // namespace

Json calibration_details_json(const Calibration& calibration) {
  Json json = head_json(calibration);
  const MeasuredMachine& m = calibration.machine;
  json["machine"] = {{"hosts", m.hosts},
                     {"cpu", m.cpu},
                     {"cores", m.cores},
                     {"gpu", m.gpu},
                     {"gpus_per_host", m.gpus_per_host},
                     {"driver", m.driver},
                     {"cuda", m.cuda},
                     {"nccl", m.nccl},
                     {"cudnn", m.cudnn},
                     {"mpi", m.mpi},
                     {"blas", m.blas},
                     {"link", m.link},
                     {"throttled", m.throttled},
                     {"power_limit_watts", m.power_limit_watts ? Json(*m.power_limit_watts) : Json(nullptr)}};
  json["groups"] = calibration.groups;
  json["sources"] = Json::array();
  for (const CalibrationSource& source : calibration.sources) {
    json["sources"].push_back({{"path", source.path},
                               {"sha256", source.sha256},
                               {"format", source.format},
                               {"points", source.points},
                               {"left_out", source.left_out}});
  }
  json["surfaces"] = Json::array();
  for (const Surface& surface : surfaces_in(calibration)) {
    const FitQuality& q = surface.quality;
    json["surfaces"].push_back({{"device", surface.device},
                                {"surface", surface.name},
                                {"range", surface.range},
                                {"points", q.rows},
                                {"held_out", q.held_out},
                                {"median_error", q.median_error},
                                {"p90_error", q.p90_error},
                                {"noise", q.noise},
                                {"evidence", std::string(name_of(q.evidence))},
                                {"source", q.source}});
  }
  json["not_covered"] = Json::array();
  for (const CalibrationGap& gap : calibration.gaps)
    json["not_covered"].push_back({{"surface", gap.surface}, {"reason", gap.reason}});
  json["excluded"] = Json::array();
  for (const ExcludedPoint& point : calibration.excluded) {
    json["excluded"].push_back(
        {{"source", point.source}, {"line", point.line}, {"point", point.point}, {"reason", point.reason}});
  }
  return json;
}

std::string calibration_details(const Calibration& calibration, std::int64_t now) {
  std::string text = fmt::format("{} {}\n", styled(calibration.name, Style::kBold), calibration.short_id());
  text += fmt::format("  {}, {}{}\n", device_of(calibration),
                      calibration.assumed ? "assumed" : "age " + age_text(calibration.created_unix_seconds, now),
                      calibration.tool_version.empty() ? "" : ", cpfit " + calibration.tool_version);
  if (const std::string software = software_of(calibration.machine); !software.empty())
    text += wrapped("  " + software, 4) + "\n";
  for (const CalibrationSource& source : calibration.sources) {
    text += wrapped(fmt::format("  {} ({}): {}, {} left out, sha256 {}", source.path, source.format,
                                counted(source.points, "point"), source.left_out, source.sha256.substr(0, 12)),
                    4) +
            "\n";
  }
  for (const ExcludedPoint& point : calibration.excluded)
    text += wrapped(fmt::format("  not fitted: {} (line {}): {}", point.point, point.line, point.reason), 4) + "\n";
  for (const std::string& group : calibration.groups) text += "  communicated: " + group + "\n";
  Table table(
      {{"device", false}, {"surface", false}, {"points"}, {"median"}, {"p90"}, {"noise"}, {"evidence", false}, {"range", false}});
  std::int64_t scored = 0, within = 0;
  const std::vector<Surface> surfaces = surfaces_in(calibration);
  for (const Surface& surface : surfaces) {
    const FitQuality& q = surface.quality;
    if (q.held_out > 0) {
      ++scored;
      if (q.median_error <= 0.05) ++within;
    }
    table.row({surface.device, surface.name, q.rows > 0 ? std::to_string(q.rows) : "-", percent(q.median_error),
               percent(q.p90_error), q.noise > 0 ? percent(q.noise) : "-", std::string(name_of(q.evidence)), surface.range},
              q.evidence == Evidence::kAssumed ? Style::kFaint : Style::kPlain);
  }
  text += "\n" + table.text();
  if (scored > 0) {
    text +=
        fmt::format("\nHold-out errors (shapes the scored fit had not seen): median {} over {} curves, {} of them at most 5 %\n",
                    percent(median_hold_out(surfaces)), scored, within);
  }
  if (!calibration.gaps.empty()) text += "\nNot covered; the defaults stand in, marked assumed\n";
  for (const CalibrationGap& gap : calibration.gaps) text += wrapped(fmt::format("  {}: {}", gap.surface, gap.reason), 4) + "\n";
  return text;
}

void add_calibrate_show(CLI::App& command, int& exit_code) {
  auto arguments = std::make_shared<CalibrateShowArguments>();
  CLI::App* show = command.add_subcommand("show", "The calibrations there are, or one of them surface by surface");
  show->add_option("WHICH", arguments->which, "A file, DATABASE:NAME, a name or id in --db, or \"defaults\"")->check(file_name());
  show->add_option("--db", arguments->database, "SQLite file with calibrations")->check(file_name());
  show->add_flag("--json", arguments->json, "Print one JSON object");
  show->callback([arguments, &exit_code] { exit_code = run_calibrate_show(*arguments); });
}

}  // namespace cpfit::cli
