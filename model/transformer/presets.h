// The models cpfit knows by name: model/presets/models.toml, a source and a published total per row.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "model/quantity/problem.h"
#include "model/transformer/architecture.h"

namespace cpfit {

struct ModelPreset {
  Architecture architecture;  // name and source included
  std::vector<std::string> aliases;
  std::int64_t published_parameters = 0;        // 0: none is published
  std::int64_t published_unit = 1;              // 1: exact; else the unit of the last printed digit
  std::int64_t published_other_parameters = 0;  // in the published total, but not in the text model: a vision tower
};

/// All rows of the embedded models.toml, in file order. Parsed once per call: keep the result. A malformed embedded file is our
/// own mistake and stops the program.
[[nodiscard]] std::vector<ModelPreset> model_preset_rows();

/// The architectures alone.
[[nodiscard]] std::vector<Architecture> model_presets();

/// One architecture by name or alias. Case, "-", "_", spaces, an organisation before "/", and words that do not change the
/// architecture ("Instruct", "hf", "Meta") do not matter: "llama3-8b", "meta-llama/Meta-Llama-3-8B-Instruct". A problem with the
/// nearest name otherwise.
[[nodiscard]] Outcome<Architecture> find_model(const std::string& name);

/// The form in which names are compared.
[[nodiscard]] std::string normal_model_name(std::string_view name);

/// Reads presets from TOML text; what model_preset_rows() does with the embedded file. Problems name the row and the key.
[[nodiscard]] Outcome<std::vector<ModelPreset>> parse_model_presets(std::string_view text);

}  // namespace cpfit
