// The subcommands of `cpfit runs`. Each adds itself and stores its exit code when it is called.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "model/quantity/problem.h"

namespace cpfit::cli {

inline constexpr const char* kDefaultDatabase = "cpfit.sqlite";

struct RunsArguments {
  std::string database = kDefaultDatabase;
  bool json = false;
};

void add_runs_list(CLI::App& runs, int& exit_code);
void add_runs_show(CLI::App& runs, int& exit_code);
void add_runs_export(CLI::App& runs, int& exit_code);
void add_runs_import(CLI::App& runs, int& exit_code);
void add_runs_diff(CLI::App& runs, int& exit_code);
void add_runs_requalify(CLI::App& runs, int& exit_code);
void add_runs_reproduce(CLI::App& runs, int& exit_code);

/// --db and --json, which all of them have.
void add_runs_options(CLI::App& command, RunsArguments& arguments);

/// Prints what is wrong with a person's input; the exit code of that.
[[nodiscard]] int refuse_input(const Problems& problems);

/// "2026-11-30 15:27:47", UTC.
[[nodiscard]] std::string date_of(std::int64_t unix_seconds);

}  // namespace cpfit::cli
