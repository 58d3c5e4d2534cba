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

constexpr std::string_view kMatrixProducts = "matrix products", kAttention = "attention", kMemoryBound = "memory-bound operators",
                           kCollectives = "collectives and messages", kOther = "launches";

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

/// What a surface's name begins with, in a reader's words.
std::string_view kind_of(const Surface& surface) {
  constexpr std::pair<std::string_view, std::string_view> kKinds[] = {
      {"gemm ", kMatrixProducts}, {"attention ", kAttention}, {"memory ", kMemoryBound}, {"kernel launch", kOther}};
  for (const auto& [begin, kind] : kKinds) {
    if (surface.name.starts_with(begin)) return kind;
  }
  return kCollectives;
}

/// Hold-out errors of the curves that were scored on shapes kept out.
struct HoldOut {
  std::vector<double> medians;

  [[nodiscard]] std::ptrdiff_t within() const {
    return std::ranges::count_if(medians, [](double error) { return error <= 0.05; });
  }
  /// Over the curves; of none -1.
  [[nodiscard]] double median() const {
    if (medians.empty()) return -1;
    std::vector<double> sorted = medians;
    std::ranges::sort(sorted);
    return sorted[sorted.size() / 2];
  }
};

HoldOut hold_out(const std::vector<Surface>& surfaces, std::string_view kind = {}) {
  HoldOut scored;
  for (const Surface& surface : surfaces) {
    if (surface.quality.held_out > 0 && (kind.empty() || kind_of(surface) == kind))
      scored.medians.push_back(surface.quality.median_error);
  }
  return scored;
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
    const double error = hold_out(surfaces).median();
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
  const std::vector<Surface> surfaces = surfaces_in(calibration);
  for (const Surface& surface : surfaces) {
    const FitQuality& q = surface.quality;
    table.row({surface.device, surface.name, q.rows > 0 ? std::to_string(q.rows) : "-", percent(q.median_error),
               percent(q.p90_error), q.noise > 0 ? percent(q.noise) : "-", std::string(name_of(q.evidence)), surface.range},
              q.evidence == Evidence::kAssumed ? Style::kFaint : Style::kPlain);
  }
  text += "\n" + table.text();
  if (const HoldOut all = hold_out(surfaces); !all.medians.empty()) {
    text += "\nHold-out errors (shapes the scored fit had not seen), medians over curves\n";
    Table errors({{"curves of", false}, {"curves"}, {"median"}, {"at most 5 %"}});
    const auto add = [&](std::string_view name, const HoldOut& of) {
      if (!of.medians.empty())
        errors.row({std::string(name), std::to_string(of.medians.size()), percent(of.median()), std::to_string(of.within())});
    };
    for (const std::string_view kind : {kMatrixProducts, kAttention, kMemoryBound, kCollectives, kOther})
      add(kind, hold_out(surfaces, kind));
    add("all", all);
    text += errors.text();
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
