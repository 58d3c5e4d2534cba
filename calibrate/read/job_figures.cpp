#include "calibrate/read/job_figures.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <utility>

#include "model/quantity/counted.h"
#include "model/quantity/text.h"
#include "model/recipe/rank_grid.h"

namespace cpfit {

namespace {

/// A share of the exposed time whose group is unknown up to this leaves the axes comparable.
constexpr double kUnknownShare = 0.05;
constexpr std::size_t kMostListed = 1000;  // steps left out

class Collector {
 public:
  Collector(const JobFiles& files, const std::optional<JobShape>& shape, const JobReading& reading)
      : files_(files), shape_(shape), reading_(reading) {}

  MeasuredJob collect() {
    if (shape_) {
      job_.gpus = shape_->recipe.world();
      job_.sequence_tokens = shape_->training.sequence.count();
      job_.global_batch = shape_->training.global_batch;
      job_.recipe = to_complete_text(shape_->recipe);
    }
    take_logs();
    for (const MemorySnapshot& snapshot : files_.snapshots) take_snapshot(snapshot);
    for (const KernelTrace& trace : files_.traces) take_trace(trace);
    return std::move(job_);
  }

 private:
  void add(MeasuredFigure figure) { job_.figures.push_back({std::move(figure), 0, 0, 0, Standing::kNotPredicted, ""}); }
  void add_one(RunFigure figure, double value, std::int32_t stage, std::int64_t rank, std::string basis) {
    MeasuredFigure made = figure_of(figure, {value}, std::move(basis));
    made.stage = stage;
    made.rank = rank;
    add(std::move(made));
  }
  void remark(const Problem& problem) { job_.remarks.push_back(problem.where + ": " + problem.message); }

  /// The stage of a rank; -1 when neither the rank nor a single stage is known.
  [[nodiscard]] std::int32_t stage_of(std::int64_t rank) const {
    if (!shape_) return -1;
    if (shape_->recipe.pp == 1) return 0;
    return rank < 0 || rank >= shape_->recipe.world() ? -1 : coordinate_of(shape_->recipe, rank).pp;
  }

  void take_logs() {
    std::vector<CountedSteps> counted;
    std::size_t best = 0;
    for (std::size_t i = 0; i < files_.logs.size(); ++i) {
      const JobLog& log = files_.logs[i];
      job_.sources.push_back({log.path, std::string(name_of(log.framework)) + " log"});
      for (const Problem& problem : log.remarks) remark(problem);
      counted.push_back(log.attempts.empty() ? CountedSteps{} : count_steps(log, reading_.warm_up));
      if (counted[i].steps.size() > counted[best].steps.size()) best = i;
    }
    if (files_.logs.empty()) return;
    const JobLog& log = files_.logs[best];
    job_.framework = std::string(name_of(log.framework));
    if (!shape_) {
      job_.gpus = log.facts.world.value_or(0);
      job_.sequence_tokens = log.facts.sequence.value_or(0);
      job_.global_batch = counted[best].global_batch > 0 ? counted[best].global_batch : log.facts.global_batch.value_or(0);
    }
    if (!log.attempts.empty()) take_steps(log, counted[best]);
    take_memory();
  }

  void take_steps(const JobLog& log, const CountedSteps& counted) {
    job_.attempts = static_cast<std::int64_t>(log.attempts.size());
    for (const JobAttempt& attempt : log.attempts) job_.logged_steps += static_cast<std::int64_t>(attempt.steps.size());
    job_.skipped_updates = log.skipped;
    job_.nan_steps = log.nan;
    job_.left_out = counted.left_out;
    if (job_.left_out.size() > kMostListed) {
      job_.remarks.push_back(fmt::format("{}: {} left out, the first {} are listed", log.path,
                                         cpfit::counted(job_.left_out.size(), "step"), kMostListed));
      job_.left_out.resize(kMostListed);
    }
    left_out_ = static_cast<std::int64_t>(counted.left_out.size());
    for (const std::string& text : counted.remarks) job_.remarks.push_back(log.path + ": " + text);
    if (counted.steps.empty()) {
      job_.remarks.push_back(log.path + ": no step is left that counts");
      return;
    }
    const std::string basis =
        fmt::format("{} of {} logged steps, iterations {} to {}", counted.steps.size(),
                    log.attempts[counted.attempt].steps.size(), counted.steps.front().iteration, counted.steps.back().iteration);
    const double tokens = static_cast<double>(job_.sequence_tokens) * static_cast<double>(job_.global_batch);
    const auto gpus = static_cast<double>(job_.gpus);
    std::vector<double> seconds, rates, tflops, mfu;
    bool derived_seconds = false, derived_rates = false;
    for (const JobStep& step : counted.steps) {
      double time = step.seconds, rate = step.tokens_per_second_per_gpu;
      if (time <= 0 && rate > 0 && tokens > 0 && gpus > 0) time = tokens / (rate * gpus);
      if (time <= 0 && step.samples_per_second > 0 && job_.global_batch > 0)
        time = static_cast<double>(job_.global_batch) / step.samples_per_second;
      derived_seconds = derived_seconds || step.seconds <= 0;
      derived_rates = derived_rates || rate <= 0;
      if (rate <= 0 && time > 0 && tokens > 0 && gpus > 0) rate = tokens / (time * gpus);
      if (time > 0) seconds.push_back(time);
      if (rate > 0) rates.push_back(rate);
      if (step.tflops_per_gpu > 0) tflops.push_back(step.tflops_per_gpu);
      if (step.mfu > 0) mfu.push_back(step.mfu);
    }
    const std::string from_rate = log.framework == JobFramework::kDeepspeed
                                      ? "; global batch over logged samples/s (the engine's time, without data loading)"
                                      : "; tokens of a step over logged tokens/s";
    add_steps(RunFigure::kStepSeconds, std::move(seconds), basis + (derived_seconds ? from_rate : ""));
    add_steps(RunFigure::kTokensPerSecondPerGpu, std::move(rates),
              basis + (derived_rates ? "; tokens of a step over its time and GPUs" : ""));
    add_steps(RunFigure::kTflopsPerGpu, std::move(tflops), basis + "; the framework's own count of FLOPs");
    add_steps(RunFigure::kMfu, std::move(mfu), basis + "; the framework's own count of FLOPs and peak");
  }

  void add_steps(RunFigure figure, std::vector<double> values, std::string basis) {
    if (values.empty()) return;
    MeasuredFigure made = figure_of(figure, std::move(values), std::move(basis));
    made.left_out = left_out_;
    add(std::move(made));
  }

  void take_memory() {
    struct Highest {
      double bytes = 0;
      std::int64_t rank = -1;
    };
    std::array<std::map<std::int32_t, Highest>, 3> by_stage;
    std::map<std::int32_t, std::int64_t> ranks;
    for (const JobLog& log : files_.logs) {
      for (const JobMemory& memory : log.memory) {
        const std::int32_t stage = stage_of(memory.rank);
        ++ranks[stage];
        const std::array<double, 3> bytes = {memory.allocated, memory.peak_allocated, memory.peak_reserved};
        for (std::size_t i = 0; i < bytes.size(); ++i) {
          if (Highest& highest = by_stage[i][stage]; bytes[i] > highest.bytes) highest = {bytes[i], memory.rank};
        }
      }
    }
    constexpr std::array<RunFigure, 3> kFigures = {RunFigure::kResidentBytes, RunFigure::kPeakBytes, RunFigure::kReservedBytes};
    for (std::size_t i = 0; i < kFigures.size(); ++i) {
      for (const auto& [stage, highest] : by_stage[i]) {
        if (highest.bytes <= 0) continue;
        add_one(kFigures[i], highest.bytes, stage, highest.rank,
                fmt::format("highest of {}{}", counted(ranks[stage], "logged rank"),
                            highest.rank >= 0 ? fmt::format(", rank {}", highest.rank) : ""));
      }
    }
  }

  /// "…rank3…" in the last part of a path.
  static std::int64_t rank_in_name(const std::string& path) {
    const std::string name = path.substr(path.rfind('/') + 1);
    std::size_t at = name.find("rank");
    if (at == std::string::npos) return -1;
    at += 4;
    while (at < name.size() && (name[at] == '_' || name[at] == '-')) ++at;
    std::int64_t rank = -1;
    for (std::size_t digits = 0; at < name.size() && digits < 7 && std::isdigit(static_cast<unsigned char>(name[at])) != 0;
         ++at, ++digits)
      rank = std::max<std::int64_t>(rank, 0) * 10 + (name[at] - '0');
    return rank;
  }

  void take_snapshot(const MemorySnapshot& snapshot) {
    job_.sources.push_back({snapshot.path, snapshot.format});
    for (const Problem& problem : snapshot.remarks) remark(problem);
    const std::int64_t rank = rank_in_name(snapshot.path);
    const std::int32_t stage = stage_of(rank);
    for (const DeviceSnapshot& device : snapshot.devices) {
      if (device.out_of_memory > 0) {
        job_.remarks.push_back(fmt::format("{}: an allocation failed {} time{} on device {}", snapshot.path, device.out_of_memory,
                                           device.out_of_memory == 1 ? "" : "s", device.device));
      }
      std::string held;
      for (std::size_t i = 0; i < std::min<std::size_t>(5, device.at_peak.size()); ++i) {
        const HeldMemory& at = device.at_peak[i];
        held += fmt::format("{}{} ({})", held.empty() ? "" : "; ", print_bytes(Bytes(static_cast<double>(at.bytes))), at.frame);
      }
      if (!held.empty())
        job_.remarks.push_back(fmt::format("{}: most of its peak on device {}: {}", snapshot.path, device.device, held));
      if (device.events == 0) continue;  // a peak is not known
      const std::string basis =
          fmt::format("replayed from {} of {}, device {}", counted(device.events, "event"), snapshot.path, device.device);
      add_one(RunFigure::kPeakBytes, static_cast<double>(device.peak_allocated), stage, rank, basis);
      add_one(RunFigure::kReservedBytes, static_cast<double>(device.peak_reserved), stage, rank, basis);
    }
  }

  /// The only axis of the recipe with more than one rank.
  [[nodiscard]] std::optional<MessageAxis> only_axis() const {
    if (!shape_) return std::nullopt;
    const Recipe& recipe = shape_->recipe;
    std::optional<MessageAxis> only;
    for (const auto& [degree, axis] : {std::pair(recipe.cp, MessageAxis::kCp), std::pair(recipe.tp, MessageAxis::kTp),
                                       std::pair(recipe.pp, MessageAxis::kPp), std::pair(recipe.dp, MessageAxis::kDp)}) {
      if (degree == 1) continue;
      if (only) return std::nullopt;
      only = axis;
    }
    return only;
  }

  struct Windows {
    std::vector<std::pair<std::int64_t, std::int64_t>> spans;
    double steps_per_span = 1;
    std::string basis;
  };
  [[nodiscard]] std::optional<Windows> windows_of(const KernelTrace& trace, const std::vector<TracedKernel>& kernels) {
    Windows windows;
    if (!trace.steps.empty()) {
      const std::size_t first = trace.steps.size() >= 3 ? 1 : 0;
      for (std::size_t i = first; i < trace.steps.size(); ++i)
        windows.spans.emplace_back(trace.steps[i].start, trace.steps[i].end);
      windows.basis =
          fmt::format("{} of {} of {}", windows.spans.size(), counted(trace.steps.size(), "profiled step"), trace.path);
      return windows;
    }
    std::int64_t from = INT64_MAX, to = INT64_MIN;
    for (const TracedKernel& kernel : kernels) {
      from = std::min(from, kernel.start);
      to = std::max(to, kernel.end);
    }
    const std::int64_t steps = trace.format == "cpfit" ? 1 : reading_.trace_steps;
    if (steps < 1 || from >= to) return std::nullopt;
    windows.spans = {{from, to}};
    windows.steps_per_span = static_cast<double>(steps);
    windows.basis = fmt::format("{} as {}", trace.path, counted(steps, "step"));
    return windows;
  }

  void take_trace(const KernelTrace& trace) {
    job_.sources.push_back({trace.path, trace.format + " trace"});
    for (const auto& [device, kernels] : trace.devices) {
      const std::optional<Windows> windows = windows_of(trace, kernels);
      if (!windows) {
        job_.remarks.push_back(
            trace.path +
            ": holds no step marks (\"ProfilerStep#\"), so nothing is known per step; say how many it holds (--trace-steps)");
        return;
      }
      take_device(trace, device, kernels, *windows);
    }
  }

  void take_device(const KernelTrace& trace, const std::string& device, const std::vector<TracedKernel>& kernels,
                   const Windows& windows) {
    std::array<std::vector<double>, kMessageAxes> by_axis;
    std::vector<double> total, seconds;
    double unknown = 0, all = 0;
    for (const auto& [from, to] : windows.spans) {
      AxisExposure exposure = axis_exposure(kernels, from, to);
      if (const std::optional<MessageAxis> only = only_axis()) {
        std::int64_t& strange = exposure.exposed[static_cast<std::size_t>(MessageAxis::kUnknown)];
        exposure.exposed[static_cast<std::size_t>(*only)] += std::exchange(strange, 0);
      }
      const auto per_step = [&](std::int64_t picoseconds) {
        return static_cast<double>(picoseconds) * 1e-12 / windows.steps_per_span;
      };
      for (std::size_t axis = 0; axis < kMessageAxes; ++axis) by_axis[axis].push_back(per_step(exposure.exposed[axis]));
      unknown += per_step(exposure.exposed[static_cast<std::size_t>(MessageAxis::kUnknown)]);
      all += per_step(exposure.total());
      total.push_back(per_step(exposure.total()));
      seconds.push_back(per_step(to - from));
    }
    const auto own = trace.ranks.find(device);
    const std::string place = own != trace.ranks.end() ? fmt::format("rank {}", own->second) : "device " + device;
    std::string basis = windows.basis + (trace.devices.size() > 1 ? ", " + place : "");
    if (files_.logs.empty() && trace.format != "cpfit")
      add(figure_of(RunFigure::kStepSeconds, seconds, basis + ", slowed by the profiler"));
    const auto add_exposed = [&](RunFigure figure, const std::vector<double>& values) {
      MeasuredFigure made = figure_of(figure, values, basis);
      made.rank = own != trace.ranks.end() ? own->second : trace.rank.value_or(-1);
      add(std::move(made));
    };
    add_exposed(RunFigure::kExposedSeconds, total);
    if (unknown > kUnknownShare * all) {
      job_.remarks.push_back(fmt::format(
          "{}: {:.0f} % of its exposed communication is of process groups whose axis is not known: only its total is compared",
          trace.path, 100 * unknown / all));
      return;
    }
    constexpr std::array<RunFigure, 4> kFigures = {RunFigure::kExposedCpSeconds, RunFigure::kExposedTpSeconds,
                                                   RunFigure::kExposedPpSeconds, RunFigure::kExposedDpSeconds};
    for (std::size_t axis = 0; axis < kFigures.size(); ++axis) {
      const bool silent = std::all_of(by_axis[axis].begin(), by_axis[axis].end(), [](double value) { return value <= 0; });
      if (!silent || degree(static_cast<MessageAxis>(axis)) > 1) add_exposed(kFigures[axis], by_axis[axis]);
    }
  }

  [[nodiscard]] std::int32_t degree(MessageAxis axis) const {
    if (!shape_) return 1;
    switch (axis) {
      case MessageAxis::kCp:
        return shape_->recipe.cp;
      case MessageAxis::kTp:
        return shape_->recipe.tp;
      case MessageAxis::kPp:
        return shape_->recipe.pp;
      case MessageAxis::kDp:
        return shape_->recipe.dp;
      case MessageAxis::kUnknown:
        break;
    }
    return 1;
  }

  const JobFiles& files_;
  const std::optional<JobShape>& shape_;
  const JobReading& reading_;
  MeasuredJob job_;
  std::int64_t left_out_ = 0;
};

}  // namespace

MeasuredJob measured_job(const JobFiles& files, const std::optional<JobShape>& shape, const JobReading& reading) {
  return Collector(files, shape, reading).collect();
}

}  // namespace cpfit
