#include "calibrate/probe/measure.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <ctime>
#include <map>
#include <optional>

#include "calibrate/probe/bench_device.h"
#include "calibrate/probe/measurement_store.h"
#include "calibrate/probe/plan.h"
#include "calibrate/probe/points.h"
#include "calibrate/probe/ranks.h"
#include "model/quantity/counted.h"
#include "model/quantity/text.h"

namespace cpfit::probe {

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

std::string host_name() {
  std::array<char, 256> name{};
  (void)::gethostname(name.data(), name.size() - 1);
  return name.data();
}

std::string utc_now() { return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr))); }

/// What carries messages inside a host, as far as it can be told: MPI says it in its variables where somebody has chosen.
std::string link_inside(const std::string& backend, const std::string& given) {
  if (!given.empty()) return given;
  if (backend == "loopback") return "copies inside one GPU";
  if (backend == "cuda") return "inside a host";
  const char* const chosen = std::getenv("OMPI_MCA_btl");
  const std::string text = chosen == nullptr ? "" : chosen;
  const bool only_tcp = text.find("tcp") != std::string::npos && text.find("vader") == std::string::npos && text.front() != '^';
  return only_tcp ? "tcp" : "shared memory";
}

constexpr int kMostFailuresInARow = 3;

StoppingRule rule_of(const BenchOptions& options) {
  if (options.smoke) return {1, 3, 3, 1, 0, 0.02};
  return {};
}

MeasurementFile head_of(const BenchOptions& options, const BenchDevice& device, const std::vector<std::string>& hosts) {
  MeasurementFile file;
  file.tool_version = CPFIT_BENCH_VERSION;
  file.started_at = utc_now();
  file.backend = options.backend;
  file.ranks = static_cast<std::int32_t>(hosts.size());
  file.seed = options.seed;
  file.smoke = options.smoke;
  std::map<std::string, std::int32_t> ranks;
  for (const std::string& host : hosts) {
    if (++ranks[host] == 1) file.machine.hosts.push_back(host);
    file.ranks_per_host = std::max(file.ranks_per_host, ranks[host]);
  }
  file.machine.mpi = hosts.size() > 1 ? mpi_version() : "";
  device.describe(file.machine);
  const std::string inside = link_inside(options.backend, options.link);
  file.machine.link = file.machine.hosts.size() > 1 ? (options.link.empty() ? "network" : options.link) : inside;
  return file;
}

/// One line per point, for a person who gave no --out.
std::string table_line(const MeasuredPoint& point) {
  std::string line = fmt::format("{:<11} {}", point.probe, axes_text(point.axes));
  if (point.outcome != MeasuredOutcome::kMeasured) return line + fmt::format(": {}: {}", name_of(point.outcome), point.reason);
  for (const MeasuredResult& result : point.results) {
    const bool time = result.name.ends_with("seconds");
    line += fmt::format("  {} {}", result.name, time ? print_time(Seconds(result.median)) : fmt::format("{:.6g}", result.median));
    if (result.samples > 1 && result.median > 0)
      line += fmt::format(" +-{:.1f} %", 50 * (result.high - result.low) / result.median);
  }
  return line;
}

/// One measurement on one rank. What decides is on rank 0; the others are told.
class Run {
 public:
  Run(const BenchOptions& options, kernels::Transport& host, ProgressLines& progress, const std::function<bool()>& interrupted)
      : options_(options), together_(host), progress_(progress), interrupted_(interrupted), host_(host) {}

  MeasureEnd operator()(const std::vector<std::string>& probes) {
    device_ = make_bench_device(options_.backend, host_, options_.timeout);
    const std::vector<std::string> hosts = together_.texts(host_name());
    plan_ = plan_points(request_of(probes, hosts));
    if (options_.budget_seconds > 0) plan_ = interleaved(std::move(plan_));
    if (!open(hosts)) return MeasureEnd::kRefused;
    choose();
    report("running");
    bool wrong = false;
    try {
      for (std::size_t i = 0; i < plan_.size(); ++i) {
        if (!todo_[i]) continue;
        look_at_clock();
        if (!step(i)) {
          end_early("interrupted");
          return MeasureEnd::kInterrupted;
        }
        wrong = wrong || plan_[i].outcome == MeasuredOutcome::kFailed;
      }
    } catch (const Interrupted&) {
      end_early("interrupted");
      return MeasureEnd::kInterrupted;
    }
    finish_machine();
    progress_.report("all", done_, total_, 0, "done", "");
    wrong = together_.any(wrong);
    return wrong ? MeasureEnd::kProbeFailed : MeasureEnd::kDone;
  }

 private:
  [[nodiscard]] PlanRequest request_of(const std::vector<std::string>& probes, const std::vector<std::string>& hosts) {
    PlanRequest request;
    request.backend = options_.backend;
    request.kernels.clear();
    for (const std::string& kernel : device_->attention_kernels()) {
      if (device_->why_no_kernel(kernel).empty()) request.kernels.push_back(kernel);
    }
    request.launch_modes = device_->launch_modes();
    request.dtype = kernels::name_of(device_->number());
    request.host_of_rank = hosts;
    request.link_inside = link_inside(options_.backend, options_.link);
    if (!options_.link.empty()) request.link_between = options_.link;
    request.smoke = options_.smoke;
    request.seed = options_.seed;
    request.probes = probes;
    return request;
  }

  bool open(const std::vector<std::string>& hosts) {
    const MeasurementFile head = head_of(options_, *device_, hosts);
    double opened = 1;
    if (together_.rank() == 0) {
      Outcome<MeasurementStore> store = MeasurementStore::open(options_.out, head);
      if (store.ok()) {
        store_.emplace(std::move(store).value());
      } else {
        fmt::print(stderr, "cpfit-bench: {}\n", to_text(store.problems().front()));
        progress_.fail(store.problems().front().message);
        opened = 0;
      }
    }
    together_.share({&opened, 1});
    return opened > 0;
  }

  /// Which points are still to be measured; those that make no sense here go into the file as they are.
  void choose() {
    std::vector<double> wanted(plan_.size(), 1.0);
    if (together_.rank() == 0) {
      for (std::size_t i = 0; i < plan_.size(); ++i) {
        if (store_->has(plan_[i].probe, plan_[i].axes)) wanted[i] = 0;
      }
      if (store_->taken_over() > 0) {
        fmt::print(stderr, "cpfit-bench: going on in {}: {} there already\n", options_.out,
                   counted(store_->taken_over(), "point"));
      }
    }
    together_.share(wanted);
    for (const double one : wanted) todo_.push_back(one > 0);
    total_ = static_cast<std::int64_t>(plan_.size());
    done_ = total_ - std::count(todo_.begin(), todo_.end(), true);
  }

  /// False: somebody wants the end.
  bool step(std::size_t i) {
    MeasuredPoint& point = plan_[i];
    probe_ = point.probe;
    if (together_.any(interrupted_())) return false;
    const Clock::time_point begin = Clock::now();
    if (point.outcome == MeasuredOutcome::kMeasured) {
      if (!budget_left()) {
        if (together_.rank() == 0 && !said_budget_) {
          fmt::print(stderr, "cpfit-bench: the budget is spent; run again with the same --out for the rest\n");
        }
        said_budget_ = true;
        return true;
      }
      measure_checked(point);
    }
    if (together_.rank() == 0) {
      time_left_.took(point.probe, seconds_since(begin));
      todo_[i] = false;
      ++done_;
      if (options_.out.empty()) fmt::print(stderr, "{}\n", table_line(point));
      store_->add(point);
      report("running");
    }
    return true;
  }

  void measure_checked(MeasuredPoint& point) {
    const PointContext context{together_, *device_, rule_now(), options_.seed, interrupted_};
    const std::string key = check_key(point);
    auto found = checks_.find(key);
    try {
      if (found == checks_.end()) found = checks_.emplace(key, check_probe(context, point)).first;
      if (found->second.empty()) {
        measure_point(context, point);
      } else {
        point.outcome = MeasuredOutcome::kFailed;
        point.reason = found->second + "; nothing is timed that is not right";
      }
      failures_in_a_row_ = 0;
    } catch (const Interrupted&) {
      throw;
    } catch (const std::exception& failure) {
      point.outcome = MeasuredOutcome::kFailed;
      point.reason = failure.what();
      point.results.clear();
      point.windows.clear();
      // One rank goes on: it may be that only this point is too large. A device that does nothing any more fails again and again.
      if (together_.size() == 1 && ++failures_in_a_row_ < kMostFailuresInARow) return;
      // Several are no longer at the same place: this point ends the measurement, and the file says at what.
      if (store_) {
        store_->add(point);
        fmt::print(stderr, "cpfit-bench: {} of {} kept{}\n", done_, counted(total_, "point"),
                   options_.out.empty() ? "" : " in " + options_.out);
      }
      throw;
    }
  }

  [[nodiscard]] bool budget_left() {
    double left = options_.budget_seconds <= 0 || seconds_since(begin_) < options_.budget_seconds ? 1 : 0;
    together_.share({&left, 1});
    return left > 0;
  }

  [[nodiscard]] StoppingRule rule_now() const {
    const StoppingRule rule = rule_of(options_);
    if (options_.budget_seconds <= 0) return rule;
    return within_budget(rule, options_.budget_seconds - seconds_since(begin_), total_ - done_);
  }

  void report(const std::string& outcome) {
    if (together_.rank() != 0) return;
    std::vector<TimeLeft::Share> left;
    for (std::size_t i = 0; i < plan_.size(); ++i) {
      if (!todo_[i]) continue;
      if (left.empty() || left.back().probe != plan_[i].probe) left.push_back({plan_[i].probe, 0});
      ++left.back().points;
    }
    const std::string& probe = !probe_.empty() ? probe_ : left.empty() ? probe_ : left.front().probe;
    double seconds = left.empty() ? 0 : time_left_.seconds(left);
    if (options_.budget_seconds > 0) seconds = std::min(seconds, std::max(0.0, options_.budget_seconds - seconds_since(begin_)));
    progress_.report(probe.empty() ? "all" : probe, done_, total_, seconds, outcome, "");
  }

  void look_at_clock() {
    if (clocks_.size() > 1 && seconds_since(clock_looked_) < 1) return;
    clock_looked_ = Clock::now();
    if (const auto clock = device_->clock_mhz()) clocks_.push_back(*clock);
    if (const std::string reason = device_->throttle_reason(); !reason.empty()) throttled_ = reason;
  }

  /// Clocks of the run, and what slowed it down, of the rank that was slowed down most.
  void finish_machine() {
    look_at_clock();
    std::string text = throttled_;
    if (text.empty()) {
      const double seen = clocks_.empty() ? 0 : *std::ranges::max_element(clocks_);
      text = throttle_text(clocks_, device_->highest_clock_mhz().value_or(seen));
    }
    const std::vector<std::string> texts = together_.texts(text);
    if (!store_) return;
    MeasuredMachine machine = store_->file().machine;
    for (std::size_t rank = 0; rank < texts.size(); ++rank) {
      if (!texts[rank].empty()) machine.throttled = fmt::format("rank {}: {}", rank, texts[rank]);
    }
    if (!clocks_.empty()) {
      machine.clocks_mhz = ClockRange{*std::ranges::min_element(clocks_), median_of(clocks_), *std::ranges::max_element(clocks_)};
    }
    store_->set_machine(machine);
    store_->write();
  }

  void end_early(const char* why) {
    if (store_) {
      store_->write();
      fmt::print(
          stderr, "cpfit-bench: {}: {} of {} points are measured{}\n", why, done_, total_,
          options_.out.empty() ? "" : fmt::format(" and kept in {}; run again with the same --out to go on", options_.out));
    }
    progress_.report(probe_.empty() ? "all" : probe_, done_, total_, -1, "failed", why);
  }

  const BenchOptions& options_;
  Together together_;
  ProgressLines& progress_;
  const std::function<bool()>& interrupted_;
  kernels::Transport& host_;
  std::unique_ptr<BenchDevice> device_;
  std::vector<MeasuredPoint> plan_;
  std::vector<bool> todo_;
  std::int64_t total_ = 0;
  std::int64_t done_ = 0;  // rank 0
  std::optional<MeasurementStore> store_;
  std::map<std::string, std::string> checks_;
  TimeLeft time_left_;
  std::string probe_;
  std::string throttled_;
  std::vector<double> clocks_;
  Clock::time_point clock_looked_;
  Clock::time_point begin_ = Clock::now();
  bool said_budget_ = false;
  int failures_in_a_row_ = 0;
};

}  // namespace

MeasureEnd measure(const BenchOptions& options, const std::vector<std::string>& probes, kernels::Transport& host,
                   ProgressLines& progress, const std::function<bool()>& interrupted) {
  return Run(options, host, progress, interrupted)(probes);
}

}  // namespace cpfit::probe
