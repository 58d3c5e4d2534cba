// The subcommands of `cpfit calibrate`, one file each, and what they share.
#pragma once

#include <CLI/CLI.hpp>

#include <string>
#include <vector>

#include "calibrate/read/imported.h"
#include "cli/json.h"
#include "model/record/calibration.h"

namespace cpfit::cli {

void add_calibrate_import(CLI::App& command, int& exit_code);
void add_calibrate_fit(CLI::App& command, int& exit_code);
void add_calibrate_show(CLI::App& command, int& exit_code);
void add_calibrate_suggest(CLI::App& command, int& exit_code);
void add_calibrate_loop(CLI::App& command, int& exit_code);

/// --gpu and --network-rate, for files that do not say.
struct HintArguments {
  std::string gpu, network_rate;
};
void add_hint_options(CLI::App& command, HintArguments& arguments);
/// Problems of their values, with the option as place.
[[nodiscard]] Outcome<ImportHints> import_hints(const HintArguments& arguments);

/// Reasons with how often each occurs, most frequent first.
[[nodiscard]] std::vector<std::pair<std::string, std::int64_t>> reasons_counted(const std::vector<UnusedRow>& unused);

/// A table of the calibration's surfaces with its files, machine, age and gaps; and the object of --json.
[[nodiscard]] std::string calibration_details(const Calibration& calibration, std::int64_t now_unix_seconds);
[[nodiscard]] Json calibration_details_json(const Calibration& calibration);

/// Seconds since 1970.
[[nodiscard]] std::int64_t unix_now();

}  // namespace cpfit::cli
