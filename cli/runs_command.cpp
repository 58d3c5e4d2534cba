// cpfit runs: what is stored, whether it still holds, and how it travels. One file a subcommand in cli/runs/.
#include <ctime>

#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/runs/commands.h"
#include "cli/terminal.h"

namespace cpfit::cli {

std::string date_of(std::int64_t unix_seconds) {
  const std::time_t when = unix_seconds;
  std::tm parts{};
  gmtime_r(&when, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &parts);
  return text;
}

int refuse_input(const Problems& problems) {
  print_problems(problems);
  return kBadInput;
}

void add_runs_options(CLI::App& command, RunsArguments& arguments) {
  command.add_option("--db", arguments.database, "SQLite file")->capture_default_str()->check(file_name());
  command.add_flag("--json", arguments.json, "Print one JSON object");
}

void add_runs(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand(
      "runs", "Stored runs: list, show, export and import as bundles, diff, requalify after a change, reproduce");
  command->require_subcommand(1);
  add_runs_list(*command, exit_code);
  add_runs_show(*command, exit_code);
  add_runs_export(*command, exit_code);
  add_runs_import(*command, exit_code);
  add_runs_diff(*command, exit_code);
  add_runs_requalify(*command, exit_code);
  add_runs_reproduce(*command, exit_code);
}

}  // namespace cpfit::cli
