// The commands of cpfit. Each adds its subcommand to the application; when it is called it stores its exit code.
#pragma once

#include <CLI/CLI.hpp>

namespace cpfit::cli {

void add_plan(CLI::App& app, int& exit_code);
void add_simulate(CLI::App& app, int& exit_code);
void add_curve(CLI::App& app, int& exit_code);
void add_topology(CLI::App& app, int& exit_code);
void add_validate(CLI::App& app, int& exit_code);
void add_presets(CLI::App& app, int& exit_code);
void add_runs(CLI::App& app, int& exit_code);
void add_calibrate(CLI::App& app, int& exit_code);

}  // namespace cpfit::cli
