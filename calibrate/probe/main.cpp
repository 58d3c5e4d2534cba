// `cpfit-bench`: what runs on the nodes of a cluster, launched alone, by mpirun or by srun. Few libraries, no window, no
// database.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdio>

#include "calibrate/probe/backend.h"
#include "calibrate/probe/parent_watch.h"
#include "calibrate/probe/probe.h"
#include "calibrate/probe/ranks.h"
#include "model/quantity/problem.h"

namespace {

using cpfit::probe::BenchOptions;
using cpfit::probe::Probe;

constexpr int kBadInput = 2;
constexpr int kWaived = 4;

/// Backends that a program can have; which ones this one has depends on how it was built.
constexpr const char* kKnownBackends[] = {"host", "cuda"};

std::string summaries() {
  std::string text = "Probes:\n";
  for (const Probe& probe : cpfit::probe::probes()) text += fmt::format("  {:<14}{}\n", probe.name, probe.summary);
  text +=
      fmt::format("Backends of this program: {}; {}.\n", fmt::join(cpfit::probe::backends(), ", "), cpfit::probe::ranks_text());
  return text + "Exit codes: 0 done, 1 failed, 2 wrong usage, 4 waived.";
}

const Probe* find_probe(const std::string& name) {
  const auto& all = cpfit::probe::probes();
  const auto found = std::ranges::find(all, name, &Probe::name);
  return found == all.end() ? nullptr : &*found;
}

/// Empty when the options make sense together.
std::string wrong_with(const BenchOptions& options) {
  std::vector<std::string> names;
  for (const Probe& probe : cpfit::probe::probes()) names.push_back(probe.name);
  for (const std::string& name : options.probes) {
    if (find_probe(name) == nullptr) return fmt::format("there is no probe '{}'; there are: {}", name, fmt::join(names, ", "));
  }
  if (std::ranges::find(kKnownBackends, options.backend) == std::end(kKnownBackends)) {
    return fmt::format("there is no backend '{}'; there are: {}", options.backend, fmt::join(kKnownBackends, ", "));
  }
  const bool verifies = std::ranges::find(options.probes, "verify-case") != options.probes.end();
  if (verifies && (options.job.empty() || options.results.empty())) return "verify-case needs --job FILE and --results FOLDER";
  return "";
}

}  // namespace

int main(int argc, char** argv) {
  using namespace cpfit;
  CLI::App app{"cpfit-bench measures a machine or a cluster for cpfit, and runs its equivalence cases there.", "cpfit-bench"};
  BenchOptions options;
  double timeout = 60;
  app.add_option("--probe", options.probes, "What to do; may be given several times")->required();
  app.add_option("--backend", options.backend, "What ranks compute with")->capture_default_str();
  app.add_option("--job", options.job, "File of cases, one JSON object a line (verify-case)");
  app.add_option("--results", options.results, "Folder for the tensors (verify-case)");
  app.add_option("--timeout", timeout, "Seconds that a rank waits for another")->capture_default_str();
  app.footer(summaries());
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);
    fmt::print(stderr, "cpfit-bench: {}\n       see cpfit-bench --help\n", error.what());
    return kBadInput;
  }
  if (!(timeout > 0 && timeout <= 1e6)) {
    fmt::print(stderr, "cpfit-bench: --timeout {}: a number of seconds above 0 is needed\n", timeout);
    return kBadInput;
  }
  options.timeout = std::chrono::milliseconds(static_cast<std::int64_t>(std::ceil(timeout * 1000)));
  if (const std::string wrong = wrong_with(options); !wrong.empty()) {
    fmt::print(stderr, "cpfit-bench: {}\n", wrong);
    return kBadInput;
  }
  const std::vector<std::string> backends = probe::backends();
  if (std::ranges::find(backends, options.backend) == backends.end()) {
    fmt::print(stderr, "cpfit-bench: waived: this program was built without the backend '{}'; it has: {}\n", options.backend,
               fmt::join(backends, ", "));
    return kWaived;
  }
  if (const std::string reason = probe::why_no_backend(options.backend); !reason.empty()) {
    fmt::print(stderr, "cpfit-bench: waived: {}\n", reason);
    return kWaived;
  }
  try {
    const std::jthread watch = probe::end_with_parent();
    return probe::run_as_rank(options.timeout, [&](kernels::Transport& transport) {
      probe::ProgressLines progress(transport.rank() == 0);
      try {
        for (const std::string& name : options.probes) {
          progress.enter(name);
          find_probe(name)->run(options, transport, progress);
        }
      } catch (const std::exception& failure) {
        progress.fail(failure.what());
        throw;
      }
    });
  } catch (const std::exception& failure) {
    fmt::print(stderr, "cpfit-bench: {}\n", failure.what());
    return 1;
  }
}
