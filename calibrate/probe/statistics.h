// When enough samples of one quantity are there, and what they say: the median with its 95 % interval by order statistics, the
// spread as the scaled median absolute deviation, outliers marked, a drift named. Pure: samples and seconds come from the caller.
//
// Interval: of n independent samples in ascending order the l-th and the u-th hold the median between them with probability
// 1 - 2 P(Bin(n, 1/2) < l); l is the largest that leaves 2.5 % on each side. Fewer than six samples cannot tell: their extremes.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "model/record/measurement.h"

namespace cpfit::probe {

struct StoppingRule {
  std::int64_t warm_ups = 3;
  std::int64_t least_samples = 10;
  std::int64_t most_samples = 1000;
  double settled = 0.02;       // half of the interval over the median
  double least_seconds = 0.1;  // however soon it settles: slow changes of the machine are to be seen
  double most_seconds = 2;     // after which it ends unsettled, three samples at least
};

enum class SeriesState : std::uint8_t { kGoOn, kSettled, kOutOfTime, kOutOfSamples };
/// `seconds`: spent on this series so far, warm-ups included.
[[nodiscard]] SeriesState state_of(const StoppingRule& rule, std::span<const double> samples, double seconds);

/// Places of the interval's ends among n > 0 samples in ascending order, from 0.
struct OrderInterval {
  std::int64_t low = 0;
  std::int64_t high = 0;
};
[[nodiscard]] OrderInterval order_interval(std::int64_t n);

[[nodiscard]] double median_of(std::vector<double> values);
/// 1.4826 * median |x - median|: the standard deviation where the noise is normal.
[[nodiscard]] double scaled_deviation(std::span<const double> samples);

/// Samples further than this many scaled deviations from the median are outliers. The deviation counts as at least a thousandth
/// of the median: a clock's steps are no outliers. Among fewer than six samples nobody can tell.
inline constexpr double kOutlierDistance = 5;
inline constexpr std::size_t kFewestForOutliers = 6;
[[nodiscard]] std::vector<bool> outliers_of(std::span<const double> samples);

/// What the samples that are no outliers say. `samples` is not empty.
[[nodiscard]] MeasuredResult summary_of(const std::string& name, std::span<const double> samples);
/// A quantity that is counted and has no noise.
[[nodiscard]] MeasuredResult exact(const std::string& name, double value);

/// Change of the median from the first to the last third of the samples, in the order they were taken, over the median of all:
/// 0 unless it is above 5 % and beyond what the spread explains (four standard errors of a difference of two medians).
[[nodiscard]] double drift_of(std::span<const double> samples);

/// Empty where nothing is to be said; else what to beware of: not settled, drifted.
[[nodiscard]] std::string caution_of(SeriesState state, const StoppingRule& rule, std::span<const double> samples,
                                     double seconds);

/// Clocks seen during a run, in MHz: below 75 % of the highest something throttles. Empty: nothing seen.
inline constexpr double kThrottledShare = 0.75;
[[nodiscard]] std::string throttle_text(std::span<const double> clocks_mhz, double highest_mhz);

/// How long what is left will take: by the mean of the same probe's points so far, of all points where it has none yet.
class TimeLeft {
 public:
  void took(const std::string& probe, double seconds);
  /// Points left by probe. Below 0: nothing is known yet.
  struct Share {
    std::string probe;
    std::int64_t points = 0;
  };
  [[nodiscard]] double seconds(std::span<const Share> left) const;

 private:
  struct Spent {
    std::string probe;
    std::int64_t points = 0;
    double seconds = 0;
  };
  std::vector<Spent> spent_;
};

/// The rule for the next of `points_left` points with `seconds_left` of a budget: an equal share each, never more than the rule
/// allows; fewer samples and a wider interval rather than no point.
[[nodiscard]] StoppingRule within_budget(StoppingRule rule, double seconds_left, std::int64_t points_left);

}  // namespace cpfit::probe
