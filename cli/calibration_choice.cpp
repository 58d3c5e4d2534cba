#include "cli/calibration_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>

#include "db/store/calibration_store.h"
#include "model/presets/embedded.h"
#include "model/rates/overlay.h"

namespace cpfit::cli {

namespace {

Outcome<Calibration> calibration_in(const std::string& database, const std::string& which) {
  return find_calibration(open_store(database, {.access = StoreAccess::kRead}), which);
}

Outcome<Calibration> calibration_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  if (!file || file.bad()) return Problem{"calibration.unreadable", path, "the file cannot be read", "check its permissions"};
  if (text.starts_with("SQLite format 3")) {
    return Problem{"calibration.which", path, "this is a database of calibrations",
                   "name one of them: --calibration " + path + ":NAME"};
  }
  return parse_calibration(text, path);
}

template <class Row, class Name>
void list_devices(const std::vector<Row>& rows, const std::string& own, std::set<std::string>& others, Name name) {
  for (const Row& row : rows) {
    if (name(row) != own) others.insert(name(row));
  }
}

std::string joined_words(const std::set<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

/// Group sizes that a kind was measured on, of a link.
void warn_of_groups(const RateTables& rows, std::vector<std::string>& warnings) {
  std::set<std::string> kinds;
  for (const CollectiveRow& row : rows.collective) {
    if (row.kind != CollectiveKind::kSendRecv) kinds.insert(fmt::format("{} over {}", name_of(row.kind), row.link));
  }
  for (const std::string& kind : kinds) {
    std::string sizes;
    for (const CollectiveRow& row : rows.collective) {
      if (fmt::format("{} over {}", name_of(row.kind), row.link) == kind)
        sizes += fmt::format("{}{}", sizes.empty() ? "" : ", ", row.curve.ranks);
    }
    warnings.push_back(fmt::format("{} was measured on {} ranks; other group sizes rest on the defaults' curves", kind, sizes));
  }
}

}  // namespace

Outcome<Calibration> choose_calibration(const std::string& which, const std::string& database) {
  if (which == "defaults") return default_calibration();
  std::error_code ignored;
  if (std::filesystem::is_regular_file(which, ignored)) return calibration_file(which);
  if (const std::size_t colon = which.rfind(':'); colon != std::string::npos && colon > 0) {
    const std::string path = which.substr(0, colon);
    if (std::filesystem::exists(path, ignored)) return calibration_in(path, which.substr(colon + 1));
  }
  if (!database.empty()) return calibration_in(database, which);
  return Problem{"calibration.unknown", which, "there is no such file, and no database says what calibration this is",
                 "give a file of `cpfit calibrate fit --out`, DATABASE:NAME, or \"defaults\""};
}

Outcome<CalibratedRates> calibrated_rates(const Calibration& calibration, const Scenario& scenario) {
  CalibrationUse use{calibration.id, calibration.name, calibration.assumed, {}, {}};
  const Outcome<RateTables> all = tables_of(calibration);
  if (!all) return all.problems();
  const Gpu& gpu = scenario.cluster.gpu;
  const Outcome<RateTables> base = parse_rate_tables(embedded_file("presets/rates.toml"));
  if (!base) return base.problems();
  if (calibration.assumed) {
    Outcome<RateSet> rates = RateSet::from_tables(*base);
    if (!rates) return rates.problems();
    return CalibratedRates{std::move(rates).value(), std::move(use)};
  }

  RateTables rows = rows_for(*all, gpu);
  std::set<std::string> others;
  const auto gpu_of = [](const auto& row) { return row.gpu; };
  list_devices(all->gemm, gpu.name, others, gpu_of);
  list_devices(all->attention, gpu.name, others, gpu_of);
  list_devices(all->memory, gpu.name, others, gpu_of);
  const std::string label = fmt::format("calibration '{}' ({})", calibration.name, calibration.short_id());
  if (empty(rows)) {
    return Problem{"calibration.other_cluster", label,
                   fmt::format("it was measured on {}; nothing of it speaks of {} or its links",
                               others.empty() ? std::string("other links") : joined_words(others), gpu.name),
                   "measure this cluster (cpfit calibrate suggest lists what), or leave --calibration away"};
  }
  if (!others.empty()) {
    use.warnings.push_back(
        fmt::format("kernels of {} are in it, the scenario has {}: they are not used", joined_words(others), gpu.name));
  }
  if (rows.gemm.empty() && rows.attention.empty() && rows.memory.empty()) {
    use.warnings.push_back(fmt::format("no kernel was measured on {}: only links come from it", gpu.name));
  }
  for (const Surface& surface : surfaces_of(rows)) {
    use.used.push_back(surface.device == gpu.name ? surface.name : fmt::format("{} over {}", surface.name, surface.device));
  }
  warn_of_groups(rows, use.warnings);
  const bool between =
      std::any_of(rows.collective.begin(), rows.collective.end(), [](const CollectiveRow& row) { return row.link == "nic"; }) ||
      std::any_of(rows.link.begin(), rows.link.end(), [](const LinkRow& row) { return row.link == "nic"; });
  if (scenario.cluster.nodes > 1 && !between)
    use.warnings.push_back("nothing was measured between nodes: those links rest on the defaults");

  const StatedSoftware& stated = scenario.software;
  MeasuredMachine here;
  here.driver = stated.driver;
  here.cuda = stated.cuda;
  here.nccl = stated.nccl;
  here.cudnn = stated.cudnn;
  here.mpi = stated.mpi;
  for (const std::string& difference : software_differences(calibration.machine, here))
    use.warnings.push_back("stale: " + difference);
  const MeasuredMachine& machine = calibration.machine;
  if (machine.gpus_per_host > 1 && machine.gpus_per_host != scenario.cluster.gpus_per_node) {
    use.warnings.push_back(fmt::format("stale: topology: measured with {} GPUs per node, the scenario has {}",
                                       machine.gpus_per_host, scenario.cluster.gpus_per_node));
  }
  if (!machine.throttled.empty()) use.warnings.push_back("the machine was throttled while it was measured: " + machine.throttled);

  rows.version = fmt::format("calibration {} ({})", calibration.name, calibration.short_id());
  Outcome<RateSet> rates = RateSet::from_tables(overlaid(*base, rows), calibration.name);
  if (!rates) return rates.problems();
  return CalibratedRates{std::move(rates).value(), std::move(use)};
}

std::string calibration_text(const std::optional<CalibrationUse>& use) {
  if (!use) return "";
  std::string text = fmt::format("Rates: calibration '{}' ({})", use->name, use->id.substr(0, 12));
  if (use->assumed) return text + ", data-sheet defaults\n";
  text += fmt::format(" over the defaults: {} {}", use->used.size(), use->used.size() == 1 ? "surface" : "surfaces");
  for (std::size_t i = 0; i < std::min<std::size_t>(use->used.size(), 4); ++i) text += (i == 0 ? " (" : ", ") + use->used[i];
  if (use->used.size() > 4) text += fmt::format(" and {} more", use->used.size() - 4);
  return text + (use->used.empty() ? "\n" : ")\n");
}

Json calibration_json(const std::optional<CalibrationUse>& use) {
  if (!use) return nullptr;
  return {{"id", use->id}, {"name", use->name}, {"assumed", use->assumed}, {"used", use->used}, {"warnings", use->warnings}};
}

}  // namespace cpfit::cli
