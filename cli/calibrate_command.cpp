// cpfit calibrate: measurements into rates with error bars.
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <map>

#include "cli/calibrate_commands.h"
#include "cli/commands.h"
#include "model/cluster/gpu.h"
#include "model/quantity/text.h"

namespace cpfit::cli {

void write_whole_file(const std::string& path, const std::string& text) {
  std::error_code ignored;
  const bool in_place = std::filesystem::exists(path, ignored) && !std::filesystem::is_regular_file(path, ignored);
  const std::string target =
      std::filesystem::is_symlink(path, ignored) ? std::filesystem::canonical(path, ignored).string() : path;
  const std::string draft = in_place ? path : target + ".new";
  std::ofstream file(draft, std::ios::binary | std::ios::trunc);
  file << text;
  file.close();
  if (file && (in_place || std::rename(draft.c_str(), target.c_str()) == 0)) return;
  const std::string reason = std::strerror(errno);
  if (!in_place) (void)std::remove(draft.c_str());
  throw Error(fmt::format("cannot write {}: {}; choose a writable folder with space", path, reason));
}

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
