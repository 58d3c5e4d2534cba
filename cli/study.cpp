#include "cli/study.h"

#include <fmt/format.h>

#include <cstdio>

#include "cli/terminal.h"
#include "cli/version.h"
#include "model/framework/rule_set.h"
#include "model/presets/embedded.h"
#include "model/quantity/hash.h"

namespace cpfit::cli {

std::optional<Study> load_study(const std::string& path, const std::string& calibration, const std::string& database) {
  Outcome<Scenario> scenario = load_scenario(path);
  if (!scenario.ok()) {
    print_problems(scenario.problems());
    return std::nullopt;
  }
  if (calibration.empty()) return Study{std::move(scenario).value(), RateSet::defaults(), std::nullopt};
  const Outcome<Calibration> chosen = choose_calibration(calibration, database);
  if (!chosen.ok()) {
    print_argument_problems("--calibration", chosen.problems());
    return std::nullopt;
  }
  Outcome<CalibratedRates> calibrated = calibrated_rates(*chosen, *scenario);
  if (!calibrated.ok()) {
    print_argument_problems("--calibration", calibrated.problems());
    return std::nullopt;
  }
  for (const std::string& warning : calibrated->use.warnings)
    fmt::print(stderr, "cpfit: calibration '{}': {}\n", chosen->name, warning);
  CalibratedRates rates = std::move(calibrated).value();
  return Study{std::move(scenario).value(), std::move(rates.rates), std::move(rates.use)};
}

void print_argument_problems(const std::string& argument, Problems problems) {
  for (Problem& problem : problems) problem.where = argument + (problem.where.empty() ? "" : ": " + problem.where);
  print_problems(problems);
}

Provenance provenance_of(const Study& study) {
  Provenance provenance;
  provenance.tool_version = kVersion;
  provenance.scenario_name = study.scenario.name;
  provenance.scenario_path = study.scenario.path;
  provenance.scenario_text = study.scenario.text;
  provenance.input_hashes.emplace_back("scenario", sha256_hex(study.scenario.text));
  for (const EmbeddedFile& file : embedded_files())
    provenance.input_hashes.emplace_back(std::string(file.name), sha256_hex(file.text));
  for (const ScenarioInput& input : study.scenario.inputs)
    provenance.input_hashes.emplace_back(input.path, sha256_hex(input.text));
  if (const Outcome<RuleSet> rules = find_framework(study.scenario.base.framework); rules.ok()) {
    provenance.rule_set = rules->name + " (" + rules->version + ")";
  }
  if (study.calibration) provenance.input_hashes.emplace_back("calibration " + study.calibration->name, study.calibration->id);
  provenance.rates_version = study.rates.version();
  return provenance;
}

}  // namespace cpfit::cli
