// The commands of cpfit. Each adds its subcommand to the application; when it is called it stores its exit code.
#pragma once

#include <CLI/CLI.hpp>

namespace cpfit::cli {

/// Refuses an empty name, as an unset shell variable gives it: what follows would silently not be stored.
[[nodiscard]] inline CLI::Validator file_name() {
  return {[](std::string& name) { return name.empty() ? std::string("the file name is empty") : std::string(); }, "FILE"};
}

void add_plan(CLI::App& app, int& exit_code);
void add_simulate(CLI::App& app, int& exit_code);
void add_curve(CLI::App& app, int& exit_code);
void add_topology(CLI::App& app, int& exit_code);
void add_verify(CLI::App& app, int& exit_code);
void add_validate(CLI::App& app, int& exit_code);
void add_presets(CLI::App& app, int& exit_code);
void add_runs(CLI::App& app, int& exit_code);
void add_calibrate(CLI::App& app, int& exit_code);
void add_trace(CLI::App& app, int& exit_code);
void add_report(CLI::App& app, int& exit_code);
void add_launch(CLI::App& app, int& exit_code);
void add_ask(CLI::App& app, int& exit_code);
void add_ingest(CLI::App& app, int& exit_code);
void add_describe(CLI::App& app, int& exit_code);

}  // namespace cpfit::cli
