#include "sim/plan/study_rates.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "model/framework/rule_set.h"
#include "model/presets/embedded.h"
#include "model/quantity/hash.h"
#include "model/rates/overlay.h"

namespace cpfit {

namespace {

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

Provenance provenance_of(const Scenario& scenario, const RateSet& rates, const std::string& tool_version,
                         const CalibrationUse* calibration) {
  Provenance provenance;
  provenance.tool_version = tool_version;
  provenance.scenario_name = scenario.name;
  provenance.scenario_path = scenario.path;
  provenance.scenario_text = scenario.text;
  provenance.input_hashes.emplace_back("scenario", sha256_hex(scenario.text));
  for (const EmbeddedFile& file : embedded_files())
    provenance.input_hashes.emplace_back(std::string(file.name), sha256_hex(file.text));
  for (const ScenarioInput& input : scenario.inputs) provenance.input_hashes.emplace_back(input.path, sha256_hex(input.text));
  if (const Outcome<RuleSet> rules = find_framework(scenario.base.framework); rules.ok())
    provenance.rule_set = rules->name + " (" + rules->version + ")";
  if (calibration != nullptr) provenance.input_hashes.emplace_back("calibration " + calibration->name, calibration->id);
  provenance.rates_version = rates.version();
  return provenance;
}

}  // namespace cpfit
