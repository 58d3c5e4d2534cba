#include "cli/runs/changes.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "cli/runs/stored_study.h"
#include "db/store/bundle_store.h"
#include "model/presets/embedded.h"
#include "model/quantity/counted.h"
#include "model/quantity/hash.h"

namespace cpfit::cli {

namespace {

using Entries = std::vector<TextEntry>;

/// What a key of a scenario is about.
std::string kind_of_key(const std::string& path) {
  const std::string section = path.substr(0, path.find('.'));
  const auto within = [&](const char* prefix) { return path.starts_with(prefix); };
  if (section == "model") return "model";
  if (section == "cluster") return "topology";
  if (within("software.driver")) return "driver";
  if (section == "software") return "kernel library";
  if (within("training.framework")) return "framework";
  if (within("training.mask")) return "mask";
  if (section == "training") return "training";
  return "scenario";
}

std::string kind_of_input(const std::string& name, const std::string& text) {
  if (name == "presets/frameworks.toml") return "framework";
  if (name == "presets/models.toml") return "model";
  if (name == "presets/gpus.toml" || name == "presets/clusters.toml") return "topology";
  if (name.starts_with("presets/rates")) return "rates";
  if (input_kind(name) == InputKind::kPreset) return "presets";
  if (input_kind(name) == InputKind::kCalibration) return "calibration";
  return text.find("cpfit-topology/") != std::string::npos ? "topology" : "model";
}

/// Values of a text in TOML or JSON; nothing where it is neither.
std::optional<Entries> entries_of(const std::string& text) {
  const Json json = Json::parse(text, nullptr, false);
  if (json.is_structured()) {
    Entries entries;
    const Json flat = json.flatten();
    for (const auto& [path, value] : flat.items())
      entries.push_back({path, value.dump(-1, ' ', false, Json::error_handler_t::replace)});
    return entries;
  }
  Outcome<Entries> entries = toml_entries(text);
  if (!entries.ok()) return std::nullopt;
  return std::move(entries).value();
}

/// The entries of one preset file out of those that a bundle carries.
std::optional<Entries> carried(const NamedTexts* texts, const std::string& file) {
  if (texts == nullptr) return std::nullopt;
  Entries entries;
  for (const auto& [name, value] : *texts) {
    if (name.starts_with(file + ": ")) entries.push_back({name.substr(file.size() + 2), value});
  }
  if (entries.empty()) return std::nullopt;
  return entries;
}

Entries only_of(const Entries& entries, const std::set<std::string>& names) {
  Entries kept;
  std::ranges::copy_if(entries, std::back_inserter(kept), [&](const TextEntry& entry) { return speaks_of(entry.path, names); });
  return kept;
}

struct Side {
  std::string sha256;
  std::optional<std::string> text;
  std::optional<Entries> carried;
};

Side side_of(const Inputs& inputs, const std::string& name) {
  Side side;
  for (const auto& [input, hash] : inputs.provenance->input_hashes) {
    if (input == name) side.sha256 = hash;
  }
  if (side.sha256.empty()) return side;
  side.text = inputs.text_of(name, side.sha256);
  side.carried = carried(inputs.entries, name);
  return side;
}

/// The values of one file on both sides, as far as both are known.
void tell_entries(const Side& then, const Side& now, const std::set<std::string>& names, bool preset, InputChange& change) {
  if (then.carried || now.carried) {  // only what speaks of the study is carried
    const auto known = [&](const Side& side) -> std::optional<Entries> {
      if (side.carried) return side.carried;
      const std::optional<Entries> all = side.text ? entries_of(*side.text) : std::nullopt;
      if (!all) return std::nullopt;
      Entries kept;
      for (const TextEntry& entry : *all) {
        if (entry.path.find('[') == std::string::npos || speaks_of(entry.path, names)) kept.push_back(entry);
      }
      return kept;
    };
    const std::optional<Entries> a = known(then), b = known(now);
    if (!a || !b) return;
    change.entries = changed_entries(*a, *b);
    change.told = true;
    return;
  }
  const std::optional<Entries> a = then.text ? entries_of(*then.text) : std::nullopt;
  const std::optional<Entries> b = now.text ? entries_of(*now.text) : std::nullopt;
  if (!a || !b) return;
  change.told = true;
  if (!preset) {
    change.entries = changed_entries(*a, *b);
    return;
  }
  change.entries = changed_entries(only_of(*a, names), only_of(*b, names));
  change.elsewhere = static_cast<std::int64_t>(changed_entries(*a, *b).size()) - static_cast<std::int64_t>(change.entries.size());
}

/// A scenario's keys, one change for each thing they are about.
void tell_scenario(const std::string& then, const std::string& now, std::vector<InputChange>& changes) {
  if (then == now) return;
  const std::string before = sha256_hex(then), after = sha256_hex(now);
  const std::optional<Entries> a = entries_of(then), b = entries_of(now);
  if (!a || !b) {
    changes.push_back({"scenario", "scenario", before, after, {}, 0, false});
    return;
  }
  std::vector<InputChange> kinds;
  for (const EntryChange& entry : changed_entries(*a, *b)) {
    const std::string kind = kind_of_key(entry.path);
    auto found = std::ranges::find(kinds, kind, &InputChange::kind);
    if (found == kinds.end()) {
      kinds.push_back({kind, "scenario", before, after, {}, 0, true});
      found = std::prev(kinds.end());
    }
    found->entries.push_back(entry);
  }
  if (kinds.empty()) kinds.push_back({"scenario", "scenario", before, after, {}, 0, true});  // comments, blanks
  changes.insert(changes.end(), kinds.begin(), kinds.end());
}

/// The one calibration of a provenance, whatever its name.
std::pair<std::string, std::string> calibration_in(const Provenance& provenance) {
  for (const auto& [name, hash] : provenance.input_hashes) {
    if (input_kind(name) == InputKind::kCalibration) return {name, hash};
  }
  return {};
}

}  // namespace

Inputs stored_inputs(const Provenance& provenance, const Store& store, const Bundle* bundle) {
  Inputs inputs;
  inputs.provenance = &provenance;
  if (bundle != nullptr) inputs.entries = &bundle->entries;
  inputs.text_of = [&store, bundle](const std::string& name, const std::string& sha256) -> std::optional<std::string> {
    if (bundle != nullptr) {
      for (const BundledFile& file : bundle->files) {
        if (file.path == name && sha256_hex(file.text) == sha256) return file.text;
      }
    }
    for (const EmbeddedFile& file : embedded_files()) {
      if (file.name == name && sha256_hex(file.text) == sha256) return std::string(file.text);
    }
    if (bundle != nullptr && name == "presets/rates.toml") {  // the defaults travel as a calibration
      const Outcome<Calibration> carried = parse_calibration(bundle->calibration, bundle->calibration_name);
      if (carried.ok() && sha256_hex(carried->rates_toml) == sha256) return carried->rates_toml;
    }
    return find_input(store, sha256);
  };
  return inputs;
}

std::vector<InputChange> changed_inputs(const Inputs& then, const Inputs& now, const std::set<std::string>& names) {
  std::vector<InputChange> changes;
  const Provenance &before = *then.provenance, &after = *now.provenance;
  if (before.tool_version != after.tool_version)
    changes.push_back({"cpfit", "cpfit", before.tool_version, after.tool_version, {}, 0, false});
  tell_scenario(before.scenario_text, after.scenario_text, changes);
  std::vector<std::string> inputs;
  for (const Provenance* side : {&after, &before}) {
    for (const auto& [name, hash] : side->input_hashes) {
      const InputKind kind = input_kind(name);
      if (kind == InputKind::kScenario || kind == InputKind::kCalibration) continue;
      if (std::ranges::find(inputs, name) == inputs.end()) inputs.push_back(name);
    }
  }
  for (const std::string& name : inputs) {
    const Side a = side_of(then, name), b = side_of(now, name);
    if (a.sha256 == b.sha256) continue;
    InputChange change{"", name, a.sha256, b.sha256, {}, 0, false};
    tell_entries(a, b, names, input_kind(name) == InputKind::kPreset, change);
    change.kind = kind_of_input(name, b.text.value_or(a.text.value_or("")));
    changes.push_back(std::move(change));
  }
  const auto [name_then, id_then] = calibration_in(before);
  const auto [name_now, id_now] = calibration_in(after);
  if (id_then != id_now)
    changes.push_back({"calibration", name_now.empty() ? name_then : name_now, id_then, id_now, {}, 0, false});
  return changes;
}

std::string change_text(const InputChange& change, const std::string& then, const std::string& now) {
  const auto digits = [&](const std::string& value) {
    if (value.empty()) return std::string("none");
    return change.input == "cpfit" ? value : value.substr(0, 12);
  };
  std::string text =
      fmt::format("{}: {} ({} {}, {} {})", change.kind, change.input, digits(change.then), then, digits(change.now), now);
  if (!change.told) return text;
  constexpr std::size_t kMost = 6;
  for (std::size_t i = 0; i < std::min(kMost, change.entries.size()); ++i) {
    const EntryChange& entry = change.entries[i];
    text += fmt::format("{} {} {} -> {}", i == 0 ? ":" : ";", entry.path, entry.before.empty() ? "(not there)" : entry.before,
                        entry.after.empty() ? "(gone)" : entry.after);
  }
  if (change.entries.size() > kMost) text += fmt::format("; {} more", change.entries.size() - kMost);
  if (change.entries.empty())
    text += change.elsewhere > 0
                ? fmt::format(": {} changed, none that speaks of this recipe", counted(change.elsewhere, "value"))
                : std::string(": no value changed");
  else if (change.elsewhere > 0)
    text += fmt::format("; {} of something else", counted(change.elsewhere, "value"));
  return text;
}

Json changes_json(const std::vector<InputChange>& changes) {
  Json rows = Json::array();
  for (const InputChange& change : changes) {
    Json entries = Json::array();
    for (const EntryChange& entry : change.entries)
      entries.push_back({{"path", entry.path}, {"then", entry.before}, {"now", entry.after}});
    rows.push_back({{"kind", change.kind},
                    {"input", change.input},
                    {"then", change.then},
                    {"now", change.now},
                    {"values_known", change.told},
                    {"values", entries},
                    {"values_elsewhere", change.elsewhere},
                    {"matters", change.matters()}});
  }
  return rows;
}

}  // namespace cpfit::cli
