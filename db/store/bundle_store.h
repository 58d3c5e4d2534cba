// Recipe bundles in a store, each once by its hash; and the texts that runs were computed from, each once by theirs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "db/store/store.h"

namespace cpfit {

struct BundleListing {
  std::string sha256;
  std::string scenario_name, recipe;
  std::string tool_version, rates_version;
  std::int64_t gpus = 0;
  double step_seconds = 0;
  std::int64_t stored_unix_seconds = 0;
};

/// One transaction; false: the same file was there before and nothing was written. stored_unix_seconds is set by the store.
[[nodiscard]] bool save_bundle(Store& store, const BundleListing& listing, const std::string& text);

/// Youngest first; none in a database from before there were any.
[[nodiscard]] std::vector<BundleListing> list_bundles(const Store& store);

/// The file of the bundle whose hash begins with `digits`, at least four. Problems: "bundle.unknown", "bundle.ambiguous".
[[nodiscard]] Outcome<std::string> load_bundle(const Store& store, const std::string& digits);

struct InputText {
  std::string name, content;
};

/// One transaction; texts that are there already are passed over.
void save_inputs(Store& store, const std::vector<InputText>& texts);

/// The text of that hash; nothing where it was never kept.
[[nodiscard]] std::optional<std::string> find_input(const Store& store, const std::string& sha256);

}  // namespace cpfit
