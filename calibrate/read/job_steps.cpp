#include "calibrate/read/job_steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

namespace cpfit {

namespace {

constexpr double kDeviations = 5.0, kNormal = 1.4826, kRounding = 0.02;

double median_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t n = values.size();
  return n % 2 == 1 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

/// What a step took, in whatever the log prints: only ratios to the median matter here.
double duration(const JobStep& step) {
  if (step.seconds > 0) return step.seconds;
  if (step.tokens_per_second_per_gpu > 0) return 1.0 / step.tokens_per_second_per_gpu;
  return step.samples_per_second > 0 ? 1.0 / step.samples_per_second : 0.0;
}

std::int64_t usual_batch(const std::vector<JobStep>& steps) {
  std::map<std::int64_t, std::int64_t> count;
  for (const JobStep& step : steps) ++count[step.global_batch];
  const auto most =
      std::max_element(count.begin(), count.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  return most->first;
}

CountedSteps count_attempt(const std::vector<JobStep>& steps, std::int64_t warm_up) {
  CountedSteps counted;
  counted.global_batch = usual_batch(steps);
  const auto leave = [&](const JobStep& step, std::string reason) {
    counted.left_out.push_back({step.iteration, step.line, step.seconds, std::move(reason)});
  };
  const auto total = static_cast<std::int64_t>(steps.size());
  const std::int64_t first = total == 1 ? 0 : total > 2 * warm_up ? warm_up : std::min<std::int64_t>(1, warm_up);
  std::vector<const JobStep*> left;
  for (std::int64_t i = 0; i < total; ++i) {
    const JobStep& step = steps[static_cast<std::size_t>(i)];
    if (step.global_batch != counted.global_batch) {
      leave(step, fmt::format("global batch {}, most steps have {}", step.global_batch, counted.global_batch));
    } else if (step.skipped > 0) {
      leave(step,
            step.skipped == 1 ? std::string("its update was skipped") : fmt::format("{} updates were skipped", step.skipped));
    } else if (i < first) {
      leave(step, "warm-up");
    } else if (duration(step) > 0) {
      left.push_back(&step);
    }
  }
  std::vector<double> durations;
  for (const JobStep* step : left) durations.push_back(duration(*step));
  const std::vector<std::size_t> kept = without_outliers(durations);
  std::size_t next = 0;
  const double median = durations.empty() ? 0 : median_of(durations);
  for (std::size_t i = 0; i < left.size(); ++i) {
    if (next < kept.size() && kept[next] == i) {
      counted.steps.push_back(*left[i]);
      ++next;
    } else {
      leave(*left[i], fmt::format("took {:.2f} times the median", durations[i] / median));
    }
  }
  std::stable_sort(counted.left_out.begin(), counted.left_out.end(),
                   [](const LeftOutStep& a, const LeftOutStep& b) { return a.iteration < b.iteration; });
  return counted;
}

}  // namespace

MeasuredFigure figure_of(RunFigure figure, std::vector<double> values, std::string basis) {
  std::sort(values.begin(), values.end());
  const auto n = static_cast<double>(values.size());
  std::size_t low = 0, high = values.size() - 1;
  if (values.size() >= 6) {
    const double half = 1.96 * std::sqrt(n) / 2;
    low = static_cast<std::size_t>(std::max(0.0, std::floor(n / 2 - half)));
    high = static_cast<std::size_t>(std::min(n - 1, std::ceil(n / 2 + half)));
  }
  MeasuredFigure result;
  result.figure = figure;
  result.low = values[low];
  result.high = values[high];
  result.median = median_of(std::move(values));
  result.samples = static_cast<std::int64_t>(n);
  result.basis = std::move(basis);
  return result;
}

std::vector<std::size_t> without_outliers(const std::vector<double>& values) {
  std::vector<std::size_t> kept;
  if (values.empty()) return kept;
  const double median = median_of(values);
  std::vector<double> deviations;
  for (const double value : values) deviations.push_back(std::abs(value - median));
  const double limit = std::max(kDeviations * kNormal * median_of(deviations), kRounding * std::abs(median));
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (std::abs(values[i] - median) <= limit) kept.push_back(i);
  }
  return kept;
}

CountedSteps count_steps(const JobLog& log, std::int64_t warm_up) {
  std::vector<CountedSteps> attempts;
  std::size_t best = 0;
  for (std::size_t i = 0; i < log.attempts.size(); ++i) {
    attempts.push_back(count_attempt(log.attempts[i].steps, warm_up));
    if (attempts[i].steps.size() >= attempts[best].steps.size()) best = i;
  }
  CountedSteps counted = std::move(attempts[best]);
  counted.attempt = best;
  for (std::size_t i = 0; i < attempts.size(); ++i) {
    if (i == best) continue;
    const std::vector<JobStep>& steps = log.attempts[i].steps;
    std::string text = fmt::format("attempt {} of {} ({} logged steps, iterations {} to {}) is kept apart", i + 1,
                                   attempts.size(), steps.size(), steps.front().iteration, steps.back().iteration);
    std::vector<double> seconds;
    for (const JobStep& step : attempts[i].steps) {
      if (step.seconds > 0) seconds.push_back(step.seconds);
    }
    if (!seconds.empty()) text += fmt::format("; its median step took {:.4g} s", median_of(std::move(seconds)));
    counted.remarks.push_back(std::move(text));
  }
  return counted;
}

}  // namespace cpfit
