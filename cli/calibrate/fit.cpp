// cpfit calibrate fit: files in, a calibration out. Of a folder of published tables it writes the rates.toml that ships.
#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <memory>
#include <ostream>

#include "calibrate/fit/fit_imported.h"
#include "calibrate/fit/fit_rates.h"
#include "calibrate/fit/write_rates.h"
#include "cli/calibrate/commands.h"
#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/terminal.h"
#include "cli/version.h"
#include "cli/write_file.h"
#include "db/store/calibration_store.h"
#include "model/cluster/gpu.h"
#include "model/presets/embedded.h"
#include "model/rates/overlay.h"

namespace cpfit::cli {

namespace {

struct CalibrateFitArguments {
  std::vector<std::string> files;
  HintArguments options;
  std::string out, database, name;
  bool json = false;
};

/// The folder of published tables: the defaults are made of it.
int fit_folder(const CalibrateFitArguments& arguments) {
  const FitReport report = fit_rates(read_fitted_tables(arguments.files.front()), gpu_presets());
  const std::string text = rates_toml(report.tables, embedded_file("presets/rates_documented.toml"));
  for (const std::string& reason : report.left_out) fmt::print(stderr, "left out: {}\n", reason);
  write_file(arguments.out, [&](std::ostream& file) { file << text; });
  if (arguments.json)
    print_json({{"rates_toml", text},
                {"left_out", report.left_out},
                {"out", arguments.out.empty() ? Json(nullptr) : Json(arguments.out)}});
  else if (arguments.out.empty())
    write_result(text);
  return kDone;
}

/// Files that do not agree on what they were measured under.
std::vector<std::string> disagreements(const std::vector<ImportedFile>& files) {
  std::vector<std::string> found;
  for (std::size_t i = 1; i < files.size(); ++i) {
    for (const std::string& difference : software_differences(files[0].machine, files[i].machine))
      found.push_back(fmt::format("{} and {} differ in {}", files[0].path, files[i].path, difference));
  }
  return found;
}

int fit_files(const CalibrateFitArguments& arguments) {
  const Outcome<ImportHints> options = import_hints(arguments.options);
  if (!options.ok()) {
    print_problems(options.problems());
    return kBadInput;
  }
  std::vector<ImportedFile> files;
  Problems problems;
  for (const std::string& path : arguments.files) {
    Outcome<ImportedFile> file = import_file(path, *options);
    if (file.ok())
      files.push_back(std::move(file).value());
    else
      problems.insert(problems.end(), file.problems().begin(), file.problems().end());
  }
  if (!problems.empty()) {
    print_problems(problems);
    return kBadInput;
  }
  std::vector<std::string> warnings = disagreements(files);
  for (const ImportedFile& file : files) {
    for (const std::string& remark : file.remarks) warnings.push_back(file.path + ": " + remark);
  }
  const ImportedFit fit = fit_imported(files, gpu_presets());
  if (empty(fit.tables)) {
    Problem nothing{"calibrate.nothing_fitted", arguments.files.front(),
                    "no kind of kernel or link has enough points for a curve", ""};
    for (const std::string& reason : fit.left_out) nothing.repair += (nothing.repair.empty() ? "left out: " : "; ") + reason;
    print_problems({nothing});
    return kBadInput;
  }
  const Calibration calibration = calibration_of(fit, files, arguments.name, kVersion, unix_now());
  write_file(arguments.out, [&](std::ostream& file) { file << calibration_toml(calibration); });
  bool known = false;
  if (!arguments.database.empty()) {
    Store store = open_store(arguments.database);
    known = save_calibration(store, calibration, surfaces_of(fit.tables)).known;
  }
  for (const std::string& warning : warnings) fmt::print(stderr, "cpfit: {}\n", warning);
  if (arguments.json) {
    Json json = calibration_details_json(calibration);
    json["left_out"] = fit.left_out;
    json["warnings"] = warnings;
    json["out"] = arguments.out.empty() ? Json(nullptr) : Json(arguments.out);
    json["database"] = arguments.database.empty() ? Json(nullptr) : Json(arguments.database);
    print_json(json);
    return kDone;
  }
  std::string text = calibration_details(calibration, unix_now());
  for (const std::string& reason : fit.left_out) text += wrapped("left out: " + reason, 2) + "\n";
  if (!arguments.out.empty()) text += fmt::format("Written to {}: use it with --calibration {}\n", arguments.out, arguments.out);
  if (!arguments.database.empty()) {
    text += fmt::format("{} in {}: use it with --calibration {}:{}\n", known ? "Known already" : "Stored", arguments.database,
                        arguments.database, calibration.short_id());
  }
  write_result(text);
  return kDone;
}

int run_calibrate_fit(const CalibrateFitArguments& arguments) {
  std::error_code ignored;
  const bool folder = std::filesystem::is_directory(arguments.files.front(), ignored);
  if (folder && arguments.files.size() > 1) {
    print_problems({{"calibrate.folder_and_files", arguments.files.front(), "a folder of published tables is fitted alone",
                     "name it alone, or name files only"}});
    return kBadInput;
  }
  return folder ? fit_folder(arguments) : fit_files(arguments);
}

}  // namespace

void add_calibrate_fit(CLI::App& command, int& exit_code) {
  auto arguments = std::make_shared<CalibrateFitArguments>();
  CLI::App* fit = command.add_subcommand("fit", "Fit rates to measurement files, or to the folder of published tables");
  fit->add_option("FILE", arguments->files, "Files as `import` reads them, or one folder with the published tables")
      ->required()
      ->check(CLI::ExistingPath);
  add_hint_options(*fit, arguments->options);
  fit->add_option("--out", arguments->out, "File to write the calibration (of a folder: rates.toml) to")->check(file_name());
  fit->add_option("--db", arguments->database, "SQLite file to store the calibration in")->check(file_name());
  fit->add_option("--name", arguments->name, "What to call it (default: the device)")->check(file_name());
  fit->add_flag("--json", arguments->json, "Print one JSON object");
  fit->callback([arguments, &exit_code] { exit_code = run_calibrate_fit(*arguments); });
}

}  // namespace cpfit::cli
