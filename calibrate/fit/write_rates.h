// Prints the tables of rates.toml: the inverse of parse_rate_tables, the same text for the same values on every machine.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "model/cluster/gpu.h"
#include "model/rates/rate_tables.h"

namespace cpfit {

/// The whole file: fitted tables, then `documented` (the text of rates_documented.toml) as it is.
[[nodiscard]] std::string rates_toml(const RateTables& fitted, std::string_view documented);

/// Reads the published tables below `folder`, fits, and prints the whole of rates.toml. Throws Error where a table is missing.
[[nodiscard]] std::string fitted_rates_toml(const std::string& folder, std::span<const Gpu> gpus);

}  // namespace cpfit
