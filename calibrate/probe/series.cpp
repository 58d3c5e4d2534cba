#include "calibrate/probe/series.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "kernels/core/require.h"

namespace cpfit::probe {

namespace {

using Clock = std::chrono::steady_clock;

constexpr double kBlockSeconds = 0.01;
constexpr std::int64_t kMostInBlock = 64;

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

enum class Verdict : std::uint8_t { kGoOn, kEnough, kInterrupted };

/// Of one quantity over the ranks; `last` is the rank that was ready last.
double sample_of(const std::vector<double>& by_rank, Combine combine, std::size_t last) {
  if (combine == Combine::kOfLast) return by_rank[last];
  double sum = 0;
  double largest = 0;
  double parts = 0;
  for (const double value : by_rank) {
    if (value == kNoPart) continue;
    sum += value;
    largest = std::max(largest, value);
    parts += 1;
  }
  return combine == Combine::kLargest ? largest : sum / std::max(parts, 1.0);
}

std::int64_t place_of_median(const std::vector<double>& samples) {
  std::vector<std::size_t> order(samples.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::ranges::sort(order, {}, [&](std::size_t i) { return samples[i]; });
  return static_cast<std::int64_t>(order[(order.size() - 1) / 2]);
}

}  // namespace

std::vector<std::vector<double>> combined(const std::vector<double>& all, std::size_t ranks, std::size_t quantities,
                                          const std::vector<Combine>& combine) {
  const std::size_t per_rank = all.size() / ranks;
  const std::size_t repetitions = per_rank / quantities;
  std::vector<std::vector<double>> samples(quantities);
  for (std::size_t repetition = 0; repetition < repetitions; ++repetition) {
    const auto of_ranks = [&](std::size_t quantity) {
      std::vector<double> values(ranks);
      for (std::size_t rank = 0; rank < ranks; ++rank) values[rank] = all[rank * per_rank + repetition * quantities + quantity];
      return values;
    };
    const std::vector<double> first = of_ranks(0);
    const auto last = static_cast<std::size_t>(std::ranges::max_element(first) - first.begin());
    for (std::size_t quantity = 0; quantity < quantities; ++quantity) {
      samples[quantity].push_back(sample_of(of_ranks(quantity), combine[quantity % combine.size()], last));
    }
  }
  return samples;
}

Series take_series(Together& together, const SeriesRequest& request) {
  const std::size_t quantities = request.quantities.size();
  const StoppingRule& rule = request.rule;
  Series series;
  const Clock::time_point begin = Clock::now();
  // Warming up ends early where one repetition is long against the time that the point has; rank 0 decides.
  double more = rule.warm_ups > 0 ? 1 : 0;
  while (more > 0) {
    (void)request.once();
    ++series.warm_ups;
    more = series.warm_ups < rule.warm_ups && seconds_since(begin) < rule.most_seconds / 2 ? 1 : 0;
    together.share({&more, 1});
  }
  std::vector<std::vector<double>> samples(quantities);
  std::int64_t block = 1;
  SeriesState state = SeriesState::kGoOn;
  auto verdict = Verdict::kGoOn;
  while (verdict == Verdict::kGoOn) {
    std::vector<double> own;
    const Clock::time_point block_begin = Clock::now();
    for (std::int64_t i = 0; i < block; ++i) {
      const std::vector<double> values = request.once();
      kernels::require(values.size() == quantities, "series: {} values for {} quantities", values.size(), quantities);
      own.insert(own.end(), values.begin(), values.end());
    }
    const double per_repetition = seconds_since(block_begin) / static_cast<double>(block);
    own.push_back(request.interrupted() ? 1 : 0);
    std::vector<double> all = together.gather(own);
    double answer[2] = {};
    if (together.rank() == 0) {
      bool stop = false;
      std::vector<double> values;
      for (std::size_t rank = 0; rank < all.size() / own.size(); ++rank) {
        const auto first = all.begin() + static_cast<std::ptrdiff_t>(rank * own.size());
        values.insert(values.end(), first, first + static_cast<std::ptrdiff_t>(own.size() - 1));
        stop = stop || *(first + static_cast<std::ptrdiff_t>(own.size() - 1)) > 0;
      }
      const auto more_samples = combined(values, static_cast<std::size_t>(together.size()), quantities, request.combine);
      for (std::size_t i = 0; i < quantities; ++i) {
        samples[i].insert(samples[i].end(), more_samples[i].begin(), more_samples[i].end());
      }
      state = state_of(rule, samples[0], seconds_since(begin));
      verdict = stop ? Verdict::kInterrupted : state == SeriesState::kGoOn ? Verdict::kGoOn : Verdict::kEnough;
      const auto fitting = static_cast<std::int64_t>(kBlockSeconds / std::max(per_repetition, 1e-9));
      const std::int64_t left = rule.most_samples - static_cast<std::int64_t>(samples[0].size());
      block = std::clamp<std::int64_t>(std::min(fitting, left), 1, kMostInBlock);
      answer[0] = static_cast<double>(verdict);
      answer[1] = static_cast<double>(block);
    }
    together.share(answer);
    verdict = static_cast<Verdict>(answer[0]);
    block = static_cast<std::int64_t>(answer[1]);
  }
  if (verdict == Verdict::kInterrupted) throw Interrupted();
  double median_at = 0;
  if (together.rank() == 0) {
    for (std::size_t i = 0; i < quantities; ++i) series.results.push_back(summary_of(request.quantities[i], samples[i]));
    series.caution = caution_of(state, rule, samples[0], seconds_since(begin));
    median_at = static_cast<double>(place_of_median(samples[0]));
  }
  together.share({&median_at, 1});
  series.median_repetition = static_cast<std::int64_t>(median_at);
  return series;
}

}  // namespace cpfit::probe
