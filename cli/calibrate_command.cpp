// cpfit calibrate: turns measured tables into rate surfaces. `fit` writes the rates.toml that ships as the default calibration.
#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <memory>

#include "calibrate/fit/fit_rates.h"
#include "calibrate/fit/write_rates.h"
#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/terminal.h"
#include "model/cluster/gpu.h"
#include "model/presets/embedded.h"

namespace cpfit::cli {

namespace {

struct FitArguments {
  std::string folder;
  std::string out;
};

int run_fit(const FitArguments& arguments) {
  const FitReport report = fit_rates(read_fitted_tables(arguments.folder), gpu_presets());
  const std::string text = rates_toml(report.tables, embedded_file("presets/rates_documented.toml"));
  for (const std::string& reason : report.left_out) fmt::print(stderr, "left out: {}\n", reason);
  if (arguments.out.empty()) {
    fmt::print("{}", text);
    return kDone;
  }
  std::ofstream file(arguments.out);
  file << text;
  file.flush();
  if (!file)
    throw Error(fmt::format("could not write {}: {}; choose a writable folder with space", arguments.out, std::strerror(errno)));
  return kDone;
}

}  // namespace

void add_calibrate(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand("calibrate", "Rate surfaces from measurements");
  command->require_subcommand(1);
  auto arguments = std::make_shared<FitArguments>();
  CLI::App* fit = command->add_subcommand("fit", "Fit the rate surfaces to a folder of published kernel and collective tables");
  fit->add_option("folder", arguments->folder, "Folder with the tables")->required()->check(CLI::ExistingDirectory);
  fit->add_option("--out", arguments->out, "File to write (default: standard output)");
  fit->callback([arguments, &exit_code] { exit_code = run_fit(*arguments); });
}

}  // namespace cpfit::cli
