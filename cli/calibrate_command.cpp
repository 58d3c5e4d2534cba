// cpfit calibrate: turns measured tables into rate surfaces. `fit` writes the rates.toml that ships as the default calibration.
#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>

#include "calibrate/fit/fit_rates.h"
#include "calibrate/fit/write_rates.h"
#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/json.h"
#include "cli/terminal.h"
#include "model/cluster/gpu.h"
#include "model/presets/embedded.h"

namespace cpfit::cli {

namespace {

struct FitArguments {
  std::string folder;
  std::string out;
  bool json = false;
};

/// All of it or nothing: an old file stays until the new one is complete. A device or a pipe is written in place.
void write_file(const std::string& path, const std::string& text) {
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

int run_fit(const FitArguments& arguments) {
  const FitReport report = fit_rates(read_fitted_tables(arguments.folder), gpu_presets());
  const std::string text = rates_toml(report.tables, embedded_file("presets/rates_documented.toml"));
  for (const std::string& reason : report.left_out) fmt::print(stderr, "left out: {}\n", reason);
  if (!arguments.out.empty()) write_file(arguments.out, text);
  if (arguments.json)
    print_json({{"rates_toml", text},
                {"left_out", report.left_out},
                {"out", arguments.out.empty() ? Json(nullptr) : Json(arguments.out)}});
  else if (arguments.out.empty())
    write_result(text);
  return kDone;
}

}  // namespace

void add_calibrate(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand("calibrate", "Rate surfaces from measurements");
  command->require_subcommand(1);
  auto arguments = std::make_shared<FitArguments>();
  CLI::App* fit = command->add_subcommand("fit", "Fit the rate surfaces to a folder of published kernel and collective tables");
  fit->add_option("folder", arguments->folder, "Folder with the tables")->required()->check(CLI::ExistingDirectory);
  fit->add_option("--out", arguments->out, "File to write (default: standard output)")->check(file_name());
  fit->add_flag("--json", arguments->json, "Print one JSON object");
  fit->callback([arguments, &exit_code] { exit_code = run_fit(*arguments); });
}

}  // namespace cpfit::cli
