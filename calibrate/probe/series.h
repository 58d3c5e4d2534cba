// Samples of one point, taken by all ranks together until rank 0 finds them enough: it gathers what each rank measured, combines
// it to one sample per repetition, and tells all whether to go on. Blocks of repetitions, so that the telling costs little.
#pragma once

#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "calibrate/probe/statistics.h"
#include "calibrate/probe/together.h"

namespace cpfit::probe {

/// Somebody wants the measurement to end; thrown on every rank at the same place.
class Interrupted : public std::runtime_error {
 public:
  Interrupted() : std::runtime_error("interrupted") {}
};

/// How the ranks' values of a repetition become the sample. A rank that takes no part says kNoPart.
enum class Combine : std::uint8_t {
  kMean,     // what a rank takes on average, all working at once
  kLargest,  // the last to be ready
  kOfLast    // all quantities of the rank whose first quantity is the largest
};
inline constexpr double kNoPart = -1;

struct SeriesRequest {
  StoppingRule rule;
  std::vector<std::string> quantities;        // the first decides when there are enough
  std::vector<Combine> combine;               // one per quantity, or one for all
  std::function<std::vector<double>()> once;  // this rank's quantities of one repetition; ranks may meet in it
  std::function<bool()> interrupted;
};

struct Series {
  std::vector<MeasuredResult> results;  // rank 0
  std::string caution;                  // rank 0
  std::int64_t warm_ups = 0;
  std::int64_t median_repetition = 0;  // whose first quantity is the median; on every rank, counted without warm-ups
};

[[nodiscard]] Series take_series(Together& together, const SeriesRequest& request);

/// Samples by quantity of the repetitions in `all`: [rank][repetition][quantity], flat.
[[nodiscard]] std::vector<std::vector<double>> combined(const std::vector<double>& all, std::size_t ranks, std::size_t quantities,
                                                        const std::vector<Combine>& combine);

}  // namespace cpfit::probe
