#include "calibrate/probe/statistics.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace cpfit::probe {

namespace {

constexpr double kTail = 0.025;
constexpr double kScale = 1.4826;  // of a normal distribution's median absolute deviation
constexpr std::int64_t kFewest = 3;

std::vector<double> kept_of(std::span<const double> samples) {
  const std::vector<bool> out = outliers_of(samples);
  std::vector<double> kept;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    if (!out[i]) kept.push_back(samples[i]);
  }
  return kept;
}

/// Half of the interval over the median; of a median of 0: 0 where the interval is a point, else infinite.
double half_width(std::span<const double> samples) {
  std::vector<double> sorted = kept_of(samples);
  std::ranges::sort(sorted);
  const OrderInterval at = order_interval(static_cast<std::int64_t>(sorted.size()));
  const double half = (sorted[static_cast<std::size_t>(at.high)] - sorted[static_cast<std::size_t>(at.low)]) / 2;
  const double median = std::abs(median_of(sorted));
  if (half == 0) return 0;
  return median > 0 ? half / median : HUGE_VAL;
}

}  // namespace

SeriesState state_of(const StoppingRule& rule, std::span<const double> samples, double seconds) {
  const auto count = static_cast<std::int64_t>(samples.size());
  if (count >= rule.most_samples) return half_width(samples) <= rule.settled ? SeriesState::kSettled : SeriesState::kOutOfSamples;
  if (count >= rule.least_samples && seconds >= rule.least_seconds && half_width(samples) <= rule.settled) {
    return SeriesState::kSettled;
  }
  return seconds >= rule.most_seconds && count >= std::min(kFewest, rule.least_samples) ? SeriesState::kOutOfTime
                                                                                        : SeriesState::kGoOn;
}

OrderInterval order_interval(std::int64_t n) {
  // P(Bin(n, 1/2) <= k), summed up from k = 0; in logarithms because 2^-n leaves the range of a double.
  const auto count = static_cast<double>(n);
  double below = 0;
  std::int64_t low = 0;
  for (std::int64_t k = 0; k < n / 2; ++k) {
    const auto successes = static_cast<double>(k);
    below += std::exp(std::lgamma(count + 1) - std::lgamma(successes + 1) - std::lgamma(count - successes + 1) -
                      count * std::log(2.0));
    if (below > kTail) break;
    low = k + 1;  // P(Bin < low) <= 2.5 %: the low-th in ascending order, from 1, is place low - 1
  }
  if (low == 0) return {0, n - 1};
  return {low - 1, n - low};
}

double median_of(std::vector<double> values) {
  if (values.empty()) return 0;
  const std::size_t middle = values.size() / 2;
  std::ranges::nth_element(values, values.begin() + static_cast<std::ptrdiff_t>(middle));
  if (values.size() % 2 == 1) return values[middle];
  const double above = values[middle];
  return (above + *std::max_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(middle))) / 2;
}

double scaled_deviation(std::span<const double> samples) {
  const double median = median_of({samples.begin(), samples.end()});
  std::vector<double> distances;
  distances.reserve(samples.size());
  for (const double sample : samples) distances.push_back(std::abs(sample - median));
  return kScale * median_of(std::move(distances));
}

std::vector<bool> outliers_of(std::span<const double> samples) {
  const double median = median_of({samples.begin(), samples.end()});
  const double limit = kOutlierDistance * std::max(scaled_deviation(samples), std::abs(median) / 1000);
  if (samples.size() < kFewestForOutliers) return std::vector<bool>(samples.size(), false);
  std::vector<bool> out;
  out.reserve(samples.size());
  for (const double sample : samples) out.push_back(std::abs(sample - median) > limit);
  return out;
}

MeasuredResult summary_of(const std::string& name, std::span<const double> samples) {
  std::vector<double> kept = kept_of(samples);
  std::ranges::sort(kept);
  const auto count = static_cast<std::int64_t>(kept.size());
  const OrderInterval at = order_interval(count);
  return {name,
          median_of(kept),
          kept[static_cast<std::size_t>(at.low)],
          kept[static_cast<std::size_t>(at.high)],
          scaled_deviation(kept),
          count,
          static_cast<std::int64_t>(samples.size()) - count};
}

MeasuredResult exact(const std::string& name, double value) { return {name, value, value, value, 0, 1, 0}; }

double drift_of(std::span<const double> samples) {
  const std::size_t third = samples.size() / 3;
  if (third < 4) return 0;
  const auto first = samples.subspan(0, third);
  const auto last = samples.subspan(samples.size() - third, third);
  const double median = median_of({samples.begin(), samples.end()});
  if (!(median > 0)) return 0;
  const double change = median_of({last.begin(), last.end()}) - median_of({first.begin(), first.end()});
  // A median's standard error is 1.2533 sigma / sqrt(n); the noise inside a third is what the drift must exceed.
  const double sigma = std::max(scaled_deviation(first), scaled_deviation(last));
  const double error = 1.2533 * sigma * std::sqrt(2.0 / static_cast<double>(third));
  return std::abs(change) > 0.05 * median && std::abs(change) > 4 * error ? change / median : 0;
}

std::string caution_of(SeriesState state, const StoppingRule& rule, std::span<const double> samples, double seconds) {
  std::string text;
  if (state == SeriesState::kOutOfTime || state == SeriesState::kOutOfSamples) {
    const double half = half_width(samples);
    if (half > rule.settled) text = fmt::format("interval still +-{:.1f} % after {:.1f} s", 100 * half, seconds);
  }
  if (const double drift = drift_of(samples); drift != 0) {
    if (!text.empty()) text += "; ";
    text += fmt::format("samples {} by {:.0f} % while they were taken", drift > 0 ? "rose" : "fell", 100 * std::abs(drift));
  }
  return text;
}

std::string throttle_text(std::span<const double> clocks_mhz, double highest_mhz) {
  if (clocks_mhz.empty() || !(highest_mhz > 0)) return "";
  const double lowest = *std::ranges::min_element(clocks_mhz);
  if (lowest >= kThrottledShare * highest_mhz) return "";
  return fmt::format("clock at {:.0f} MHz, {:.0f} % of {:.0f} MHz", lowest, 100 * lowest / highest_mhz, highest_mhz);
}

void TimeLeft::took(const std::string& probe, double seconds) {
  auto found = std::ranges::find(spent_, probe, &Spent::probe);
  if (found == spent_.end()) found = spent_.insert(spent_.end(), {probe, 0, 0});
  ++found->points;
  found->seconds += seconds;
}

double TimeLeft::seconds(std::span<const Share> left) const {
  Spent all;
  for (const Spent& one : spent_) {
    all.points += one.points;
    all.seconds += one.seconds;
  }
  if (all.points == 0) return -1;
  double seconds = 0;
  for (const Share& share : left) {
    const auto found = std::ranges::find(spent_, share.probe, &Spent::probe);
    const Spent& like = found == spent_.end() ? all : *found;
    seconds += static_cast<double>(share.points) * like.seconds / static_cast<double>(like.points);
  }
  return seconds;
}

StoppingRule within_budget(StoppingRule rule, double seconds_left, std::int64_t points_left) {
  const double share = std::max(0.0, seconds_left) / static_cast<double>(std::max<std::int64_t>(points_left, 1));
  rule.most_seconds = std::min(rule.most_seconds, share);
  rule.least_seconds = std::min(rule.least_seconds, share);
  return rule;
}

}  // namespace cpfit::probe
