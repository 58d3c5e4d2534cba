// `cpfit`, the headless front end: reads arguments, calls a command, turns what went wrong into a message and an exit code.
#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <new>
#include <system_error>

#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/usage.h"
#include "cli/version.h"
#include "model/quantity/given_path.h"
#include "sim/plan/kept_memory.h"
#include "sim/plan/worker_threads.h"

int main(int argc, char** argv) {
  using namespace cpfit;
  keep_freed_memory();
  const WorkerThreads workers;
  CLI::App app{
      "cpfit finds the smallest context-parallel degree, inside the best complete CP x TP x PP x DP recipe, that fits a\n"
      "target sequence with margin and keeps its ring traffic hidden on the real topology.",
      "cpfit"};
  app.set_version_flag("--version", std::string("cpfit ") + cli::kVersion);
  app.require_subcommand(1);
  app.footer(
      "Exit codes: 0 done, 1 failed (disk full, no permission), 2 wrong usage or bad input (also a path that is a folder, is "
      "not\n"
      "there, or is no database of cpfit), 3 no legal or fitting recipe, 4 waived.\n"
      "First steps: cpfit plan examples/llama3-8b-128k-1node.toml");
  int exit_code = cli::kDone;
  cli::add_plan(app, exit_code);
  cli::add_simulate(app, exit_code);
  cli::add_curve(app, exit_code);
  cli::add_ask(app, exit_code);
  cli::add_topology(app, exit_code);
  cli::add_verify(app, exit_code);
  cli::add_validate(app, exit_code);
  cli::add_calibrate(app, exit_code);
  cli::add_trace(app, exit_code);
  cli::add_report(app, exit_code);
  cli::add_launch(app, exit_code);
  cli::add_ingest(app, exit_code);
  cli::add_runs(app, exit_code);
  cli::add_presets(app, exit_code);
  cli::add_describe(app, exit_code);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() != 0) {
      fmt::print(stderr, "{}", cli::usage_message(app, error));
      return cli::kBadInput;
    }
    (void)app.exit(error);             // prints the help or the version
  } catch (const InputError& error) {  // a path that cannot be what was meant, wherever it was used
    fmt::print(stderr, "cpfit: {}\n", error.what());
    return cli::kBadInput;
  } catch (const Error& error) {
    fmt::print(stderr, "cpfit: {}\n", error.what());
    return cli::kFailed;
  } catch (const std::bad_alloc&) {
    fmt::print(stderr, "cpfit: out of memory; narrow the search (fewer values per axis in [search])\n");
    return cli::kFailed;
  } catch (const std::system_error& error) {
    // {fmt} reports a failed write to a stream as "cannot write to file" with the reason.
    fmt::print(stderr, "cpfit: {}: {}\n", std::ferror(stdout) != 0 ? "standard output could not be written" : "the system failed",
               error.code().message());
    return cli::kFailed;
  } catch (const std::exception& error) {
    fmt::print(stderr, "cpfit: {}\n", error.what());
    return cli::kFailed;
  }
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
    fmt::print(stderr, "cpfit: standard output could not be written: {}\n", std::strerror(errno));
    return cli::kFailed;
  }
  return exit_code;
}
