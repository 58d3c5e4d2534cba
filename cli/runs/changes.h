// What separates the inputs of two studies: of two stored ones, or of a stored one and the same as it would be computed now.
// Files and presets are told apart by their hashes; where the texts behind these are known, by their values, and of presets only
// those that speak of the study's GPU, cluster, model and framework count.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "cli/json.h"
#include "db/store/store.h"
#include "model/presets/entries.h"
#include "model/record/bundle.h"
#include "model/record/run.h"

namespace cpfit::cli {

struct InputChange {
  std::string kind;                  // "framework", "driver", "kernel library", "topology", "model", "mask", "calibration", ...
  std::string input;                 // "presets/gpus.toml", "scenario", "cpfit"
  std::string then, now;             // hashes or versions; empty: not there
  std::vector<EntryChange> entries;  // values that differ
  std::int64_t elsewhere = 0;        // others that speak of something else
  bool told = false;                 // whether the values are known: else only that the hash differs
  /// Whether it can change a figure of this study.
  [[nodiscard]] bool matters() const { return !told || !entries.empty(); }
};

/// The inputs of a study and how to look up the texts behind its hashes.
struct Inputs {
  const Provenance* provenance = nullptr;
  std::function<std::optional<std::string>(const std::string& name, const std::string& sha256)> text_of;
  const NamedTexts* entries = nullptr;  // of the presets, where a bundle carries them instead of whole files
};

/// Looks in the store, then among this cpfit's presets.
[[nodiscard]] Inputs stored_inputs(const Provenance& provenance, const Store& store, const Bundle* bundle = nullptr);

/// `names`: under which presets speak of the study.
[[nodiscard]] std::vector<InputChange> changed_inputs(const Inputs& then, const Inputs& now, const std::set<std::string>& names);

/// "topology: presets/gpus.toml (12ab then, 34cd now): gpu[X].memory '80 GiB' -> '79 GiB'", one line; two stored studies are
/// called by their names instead ("12ab in run 7, 34cd in run 9").
[[nodiscard]] std::string change_text(const InputChange& change, const std::string& then = "then",
                                      const std::string& now = "now");
[[nodiscard]] Json changes_json(const std::vector<InputChange>& changes);

}  // namespace cpfit::cli
