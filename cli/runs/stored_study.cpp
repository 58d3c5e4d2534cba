#include "cli/runs/stored_study.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>

#include "cli/calibrate/choice.h"
#include "db/store/bundle_store.h"
#include "db/store/calibration_store.h"
#include "model/quantity/hash.h"
#include "model/quantity/text_file.h"
#include "model/recipe/scenario_files.h"

namespace cpfit::cli {

namespace {

constexpr std::string_view kPresets = "presets/", kCalibration = "calibration ";

/// Paths come from a database, whoever made it: devices and pipes are not opened.
std::optional<std::string> file_text(const std::string& path) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored)) return std::nullopt;
  Outcome<std::string> text = read_text_file(path, kMostTableBytes, "run.file");
  if (!text) return std::nullopt;
  return std::move(text).value();
}

/// The files that a run's scenario named, as they were: kept in the database, or on disk if they are still the same.
std::vector<ScenarioInput> files_of(const Provenance& provenance, const Store& store) {
  std::vector<ScenarioInput> files;
  for (const auto& [name, hash] : provenance.input_hashes) {
    if (input_kind(name) != InputKind::kFile) continue;
    std::optional<std::string> text = find_input(store, hash);
    if (!text) {
      text = file_text(name);
      if (text && sha256_hex(*text) != hash) text.reset();
    }
    if (text) files.push_back({name, std::move(*text)});
  }
  return files;
}

BundledRecipe stored_recipe(const std::string& role, const Candidate& candidate) {
  return {role,
          to_complete_text(candidate.recipe),
          candidate.recipe.world(),
          std::string(name_of(candidate.verdict.fit)),
          "",
          figures_of(candidate)};
}

void read_scenario_of(StoredStudy& study, const std::vector<ScenarioInput>& files) {
  Outcome<Scenario> scenario = read_scenario(study.provenance.scenario_text, study.provenance.scenario_path, files);
  if (scenario.ok())
    study.scenario = std::move(scenario).value();
  else
    study.scenario_trouble = scenario.problems();
}

/// Name and id of the calibration among the inputs.
void name_calibration(StoredStudy& study) {
  for (const auto& [name, hash] : study.provenance.input_hashes) {
    if (input_kind(name) != InputKind::kCalibration) continue;
    study.calibrated = true;
    study.calibration_name = name.substr(kCalibration.size());
    study.calibration_id = hash;
  }
}

Outcome<StoredStudy> study_of_run(const Store& store, RunId run) {
  Outcome<PlanResult> result = load_run(store, run);
  if (!result.ok()) return result.problems();
  StoredStudy study;
  study.label = fmt::format("run {}", static_cast<std::int64_t>(run));
  study.provenance = result->provenance;
  for (const RunSummary& summary : list_runs(store)) {
    if (summary.run == run) study.status = std::string(name_of(summary.status));
  }
  read_scenario_of(study, files_of(study.provenance, store));
  name_calibration(study);
  if (study.calibrated) {
    const Calibration defaults = default_calibration();
    if (study.calibration_id == defaults.id) {
      study.calibration = defaults;
    } else if (Outcome<Calibration> found = find_calibration(store, study.calibration_id); found.ok()) {
      study.calibration = std::move(found).value();
    }
  }
  if (result->ships) study.predicted.push_back(stored_recipe("ship", result->ship));
  if (result->has_control && !(result->ships && result->control.recipe == result->ship.recipe))
    study.predicted.push_back(stored_recipe("control", result->control));
  study.plan = std::move(result).value();
  return study;
}

}  // namespace

InputKind input_kind(const std::string& name) {
  if (name == "scenario") return InputKind::kScenario;
  if (name.starts_with(kPresets)) return InputKind::kPreset;
  return name.starts_with(kCalibration) ? InputKind::kCalibration : InputKind::kFile;
}

Outcome<Reference> parse_reference(const std::string& word) {
  Reference reference;
  std::string rest = word;
  for (const auto& [prefix, kind] : {std::pair("run:", Reference::Kind::kRun), std::pair("bundle:", Reference::Kind::kBundle),
                                     std::pair("verification:", Reference::Kind::kVerification)}) {
    if (!word.starts_with(prefix)) continue;
    reference.kind = kind;
    rest = word.substr(std::string_view(prefix).size());
  }
  const Problem wrong{"runs.reference", word, "this names nothing that is stored",
                      "write 7 or run:7, bundle:3f2a (the first digits of its hash), or verification:2"};
  if (reference.kind == Reference::Kind::kBundle) {
    if (rest.size() < 4 || rest.find_first_not_of("0123456789abcdef") != std::string::npos) return wrong;
    reference.digits = rest;
    return reference;
  }
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), reference.number);
  if (error != std::errc() || end != rest.data() + rest.size() || reference.number < 1) return wrong;
  return reference;
}

std::string name_of(const Reference& reference) {
  switch (reference.kind) {
    case Reference::Kind::kRun:
      return fmt::format("run {}", reference.number);
    case Reference::Kind::kBundle:
      return "bundle " + reference.digits.substr(0, 12);
    case Reference::Kind::kVerification:
      break;
  }
  return fmt::format("verification {}", reference.number);
}

Outcome<StoredStudy> study_of(Bundle bundle, const std::string& label) {
  StoredStudy study;
  study.label = label;
  study.provenance.tool_version = bundle.tool_version;
  study.provenance.scenario_name = bundle.scenario_name;
  study.provenance.scenario_path = bundle.scenario.path;
  study.provenance.scenario_text = bundle.scenario.text;
  for (const auto& [name, hash] : bundle.inputs) study.provenance.input_hashes.emplace_back(name, hash);
  const auto text_of = [&](const NamedTexts& texts, const std::string& key) {
    const auto found = std::ranges::find(texts, key, &NamedTexts::value_type::first);
    return found == texts.end() ? std::string() : found->second;
  };
  study.provenance.rule_set =
      text_of(bundle.implementation, "rule_set") + " (" + text_of(bundle.implementation, "rule_set_version") + ")";
  study.provenance.rates_version = bundle.rates_version;
  std::vector<ScenarioInput> files;
  for (const BundledFile& file : bundle.files) files.push_back({file.path, file.text});
  read_scenario_of(study, files);
  name_calibration(study);
  Outcome<Calibration> calibration = parse_calibration(bundle.calibration, "calibration " + bundle.calibration_name);
  if (!calibration.ok()) return calibration.problems();
  if (calibration->id != bundle.calibration_id) {
    return Problem{"bundle.calibration", "calibration " + bundle.calibration_name,
                   "its rates are not those that its id names: " + calibration->short_id() + " against " +
                       bundle.calibration_id.substr(0, 12),
                   "export the bundle again"};
  }
  study.calibration_name = bundle.calibration_name;
  study.calibration_id = bundle.calibration_id;
  study.calibration = std::move(calibration).value();
  study.predicted.push_back(bundle.predicted);
  for (const BundledRecipe& control : bundle.controls) study.predicted.push_back(control);
  study.bundle = std::move(bundle);
  return study;
}

Outcome<StoredStudy> stored_study(const Store& store, const Reference& reference) {
  if (reference.kind == Reference::Kind::kRun) return study_of_run(store, RunId{reference.number});
  if (reference.kind == Reference::Kind::kVerification)
    return Problem{"runs.reference", name_of(reference), "a verification has no recipe", "name a run or a bundle"};
  const Outcome<std::string> text = load_bundle(store, reference.digits);
  if (!text.ok()) return text.problems();
  Outcome<Bundle> bundle = parse_bundle(*text, store.path());
  if (!bundle.ok()) return bundle.problems();
  return study_of(std::move(bundle).value(), "bundle " + bundle_id(*text).substr(0, 12));
}

Outcome<RateSet> rates_of(const Calibration* calibration, const Scenario& scenario, std::vector<std::string>* warnings) {
  if (calibration == nullptr) return RateSet::defaults();
  if (calibration->assumed && calibration->id != default_calibration().id) {
    const Outcome<RateTables> tables = tables_of(*calibration);
    if (!tables.ok()) return tables.problems();
    return RateSet::from_tables(*tables);
  }
  Outcome<CalibratedRates> rates = calibrated_rates(*calibration, scenario);
  if (!rates.ok()) return rates.problems();
  CalibratedRates chosen = std::move(rates).value();
  if (warnings != nullptr) *warnings = std::move(chosen.use.warnings);
  return std::move(chosen.rates);
}

}  // namespace cpfit::cli
