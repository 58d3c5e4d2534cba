// Validations (predicted against measured rows) in a store.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "db/store/store.h"
#include "model/record/validation.h"

namespace cpfit {

enum class ValidationId : std::int64_t {};

/// One transaction. `tool_version` and `rates_version` say what predicted.
[[nodiscard]] ValidationId save_validation(Store& store, const ValidationResult& result, const std::string& tool_version,
                                           const std::string& rates_version);

struct ValidationListing {
  ValidationId id{};
  std::string path;
  std::string tool_version, rates_version;
  std::int64_t stored_unix_seconds = 0;
  std::int64_t rows = 0, skipped = 0;
};

/// Youngest first.
[[nodiscard]] std::vector<ValidationListing> list_validations(const Store& store);

/// Problem "validation.unknown" when there is none of that id.
[[nodiscard]] Outcome<ValidationResult> load_validation(const Store& store, ValidationId id);

}  // namespace cpfit
