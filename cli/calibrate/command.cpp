// cpfit calibrate: measurements into rates with error bars.
#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <map>

#include "cli/calibrate/commands.h"
#include "cli/commands.h"
#include "model/cluster/gpu.h"
#include "model/quantity/text.h"

namespace cpfit::cli {

std::int64_t unix_now() { return static_cast<std::int64_t>(std::time(nullptr)); }

void add_hint_options(CLI::App& command, HintArguments& arguments) {
  command.add_option("--gpu", arguments.gpu, "GPU that the files were measured on, where they do not say (cpfit presets gpus)");
  command.add_option("--network-rate", arguments.network_rate,
                     "Rate of one node's NICs together, \"400 GB/s\": collectives between nodes are fitted as shares of it");
}

Outcome<ImportHints> import_hints(const HintArguments& arguments) {
  ImportHints options;
  const auto placed = [](Problems problems, const char* option) {
    for (Problem& problem : problems) problem.where = option;
    return problems;
  };
  if (!arguments.gpu.empty()) {
    const Outcome<Gpu> gpu = find_gpu(arguments.gpu);
    if (!gpu) return placed(gpu.problems(), "--gpu");
    options.gpu = gpu->name;
  }
  if (!arguments.network_rate.empty()) {
    const Outcome<BytesPerSecond> rate = parse_rate(arguments.network_rate);
    if (!rate) return placed(rate.problems(), "--network-rate");
    options.network_rate = rate->value();
  }
  return options;
}

std::vector<std::pair<std::string, std::int64_t>> reasons_counted(const std::vector<UnusedRow>& unused) {
  std::map<std::string, std::int64_t> counts;
  for (const UnusedRow& row : unused) ++counts[row.reason];
  std::vector<std::pair<std::string, std::int64_t>> reasons(counts.begin(), counts.end());
  std::stable_sort(reasons.begin(), reasons.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  return reasons;
}

void add_calibrate(CLI::App& app, int& exit_code) {
  CLI::App* command =
      app.add_subcommand("calibrate", "Measurements into rates with error bars: import, fit, show, suggest, loop");
  command->require_subcommand(1);
  add_calibrate_import(*command, exit_code);
  add_calibrate_fit(*command, exit_code);
  add_calibrate_show(*command, exit_code);
  add_calibrate_suggest(*command, exit_code);
  add_calibrate_loop(*command, exit_code);
}

}  // namespace cpfit::cli
