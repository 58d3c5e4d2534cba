// `cpfit-bench`: what runs on the nodes of a cluster, launched alone, by mpirun or by srun. Few libraries, no window, no
// database.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>

#include "calibrate/probe/backend.h"
#include "calibrate/probe/bench_device.h"
#include "calibrate/probe/interrupt_watch.h"
#include "calibrate/probe/measure.h"
#include "calibrate/probe/parent_watch.h"
#include "calibrate/probe/plan.h"
#include "calibrate/probe/probe.h"
#include "calibrate/probe/ranks.h"
#include "model/quantity/problem.h"

namespace {

using cpfit::probe::BenchOptions;
using cpfit::probe::MeasureEnd;

constexpr int kBadInput = 2;
constexpr int kWaived = 4;

/// Backends that a program can have; which ones this one has depends on how it was built.
constexpr const char* kKnownBackends[] = {"host", "cuda", "loopback"};

std::string summaries() {
  std::string text = "Probes:\n";
  for (const auto& probe : cpfit::probe::measuring_probes()) text += fmt::format("  {:<12}{}\n", probe.name, probe.summary);
  text +=
      fmt::format("  {:<12}one rank's part of cases of `cpfit verify`: --job FILE --results FOLDER\n", cpfit::probe::kVerifyCase);
  text += "Without --probe all that measure are measured.\n";
  text += fmt::format("Backends of this program: {}; {}.\n", fmt::join(cpfit::probe::measuring_backends(), ", "),
                      cpfit::probe::ranks_text());
  return text + "Exit codes: 0 done, 1 failed or interrupted, 2 wrong usage, 4 waived.";
}

bool is_asked_to_verify(const BenchOptions& options) {
  return std::ranges::find(options.probes, cpfit::probe::kVerifyCase) != options.probes.end();
}

/// Empty when the options make sense together.
std::string wrong_with(const BenchOptions& options) {
  std::vector<std::string> names;
  for (const auto& probe : cpfit::probe::measuring_probes()) names.push_back(probe.name);
  names.emplace_back(cpfit::probe::kVerifyCase);
  for (const std::string& name : options.probes) {
    if (std::ranges::find(names, name) == names.end()) {
      return fmt::format("there is no probe '{}'; there are: {}", name, fmt::join(names, ", "));
    }
  }
  if (std::ranges::find(kKnownBackends, options.backend) == std::end(kKnownBackends)) {
    return fmt::format("there is no backend '{}'; there are: {}", options.backend, fmt::join(kKnownBackends, ", "));
  }
  if (!is_asked_to_verify(options)) {
    if (!options.job.empty() || !options.results.empty()) return "--job and --results belong to --probe verify-case";
    return "";
  }
  if (options.probes.size() > 1) return "verify-case is asked for alone: it measures nothing";
  if (options.backend == "loopback") return "verify-case needs real ranks, which the backend 'loopback' has not";
  if (options.job.empty() || options.results.empty()) return "verify-case needs --job FILE and --results FOLDER";
  return "";
}

int exit_code(MeasureEnd end) { return end == MeasureEnd::kDone ? 0 : end == MeasureEnd::kRefused ? kBadInput : 1; }

/// The exit code.
int run_bench(const BenchOptions& options) {
  using namespace cpfit;
  const bool verifies = is_asked_to_verify(options);
  const auto watch = verifies ? nullptr : std::make_unique<probe::InterruptWatch>();
  const std::jthread parent = probe::end_with_parent();
  int code = 0;
  const auto work = [&](kernels::Transport& transport) {
    probe::ProgressLines progress(transport.rank() == 0);
    try {
      if (verifies) {
        progress.enter(probe::kVerifyCase);
        probe::verify_case(options, transport, progress);
      } else {
        code = exit_code(probe::measure(options, options.probes, transport, progress, [&] { return watch->interrupted(); }));
      }
    } catch (const std::exception& failure) {
      progress.fail(failure.what());
      throw;
    }
  };
  const int ended = probe::run_as_rank(options.timeout, work, !verifies);
  return ended != 0 ? ended : code;
}

}  // namespace

int main(int argc, char** argv) {
  using namespace cpfit;
  CLI::App app{"cpfit-bench measures a machine or a cluster for cpfit, and runs its equivalence cases there.", "cpfit-bench"};
  BenchOptions options;
  double timeout = 60;
  app.add_option("--probe", options.probes, "What to measure, or verify-case; may be given several times");
  app.add_option("--backend", options.backend, "What ranks compute with")->capture_default_str();
  app.add_option("--out", options.out, "The measurement's file; a run with the same file goes on where the last one ended");
  app.add_flag("--smoke", options.smoke, "Tiny sizes, under a second: does everything run?");
  double minutes = 0;
  app.add_option("--budget", minutes, "Minutes that the whole measurement may take; 0: as long as it takes");
  app.add_option("--seed", options.seed, "Of the order of points and of the numbers")->capture_default_str();
  app.add_option("--link", options.link, "What carries the messages, in words: \"nvlink\", \"tcp tbf 10 Gbit/s\"");
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
  if (!(minutes >= 0 && minutes <= 1e6)) {
    fmt::print(stderr, "cpfit-bench: --budget {}: minutes, 0 or more, are needed\n", minutes);
    return kBadInput;
  }
  options.budget_seconds = 60 * minutes;
  options.timeout = std::chrono::milliseconds(static_cast<std::int64_t>(std::ceil(timeout * 1000)));
  if (const std::string wrong = wrong_with(options); !wrong.empty()) {
    fmt::print(stderr, "cpfit-bench: {}\n", wrong);
    return kBadInput;
  }
  const std::vector<std::string> backends = probe::measuring_backends();
  if (std::ranges::find(backends, options.backend) == backends.end()) {
    fmt::print(stderr, "cpfit-bench: waived: this program was built without the backend '{}'; it has: {}\n", options.backend,
               fmt::join(backends, ", "));
    return kWaived;
  }
  if (const std::string reason = probe::why_no_backend(options.backend == "loopback" ? "cuda" : options.backend);
      !reason.empty()) {
    fmt::print(stderr, "cpfit-bench: waived: {}\n", reason);
    return kWaived;
  }
  try {
    return run_bench(options);
  } catch (const std::exception& failure) {
    fmt::print(stderr, "cpfit-bench: {}\n", failure.what());
    return 1;
  }
}
