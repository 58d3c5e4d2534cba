#include "sim/screen/pipeline_time.h"

#include <algorithm>
#include <vector>

#include "model/recipe/pipeline_order.h"

namespace cpfit {

namespace {

class PipelineClock {
 public:
  PipelineClock(const Recipe& recipe, std::int32_t micro_batches, std::span<const double> forward,
                std::span<const double> backward, std::span<const double> weights)
      : recipe_(recipe),
        micro_batches_(static_cast<std::size_t>(micro_batches)),
        forward_(forward),
        backward_(backward),
        weights_(weights),
        forward_end_(forward.size() * micro_batches_, kNotYet),
        backward_end_(forward_end_) {}

  double run() {
    std::vector<std::vector<StageTurn>> turns;
    for (std::int32_t stage = 0; stage < recipe_.pp; ++stage) {
      turns.push_back(stage_turns(recipe_, stage, static_cast<std::int32_t>(micro_batches_)));
    }
    std::vector<std::size_t> next(turns.size(), 0);
    std::vector<double> free(turns.size(), 0.0);
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t stage = 0; stage < turns.size(); ++stage) {
        while (next[stage] < turns[stage].size() &&
               take(static_cast<std::int32_t>(stage), turns[stage][next[stage]], free[stage])) {
          ++next[stage];
          moved = true;
        }
      }
    }
    return *std::max_element(free.begin(), free.end());
  }

 private:
  static constexpr double kNotYet = -1.0;

  double& end(std::vector<double>& ends, std::size_t chunk, std::int32_t micro_batch) const {
    return ends[chunk * micro_batches_ + static_cast<std::size_t>(micro_batch)];
  }

  /// False while the turn's input does not exist.
  bool take(std::int32_t stage, const StageTurn& turn, double& free) {
    const std::size_t chunk = chunk_index(recipe_, stage, turn.chunk);
    if (turn.weights) {
      free += weights_[chunk];
      return true;
    }
    const std::size_t last = forward_.size() - 1;
    double input = 0.0;
    if (turn.forward) {
      if (chunk > 0) input = end(forward_end_, chunk - 1, turn.micro_batch);
    } else {
      input = chunk < last ? end(backward_end_, chunk + 1, turn.micro_batch) : end(forward_end_, last, turn.micro_batch);
    }
    if (input == kNotYet) return false;
    free = std::max(free, input) + (turn.forward ? forward_[chunk] : backward_[chunk]);
    end(turn.forward ? forward_end_ : backward_end_, chunk, turn.micro_batch) = free;
    return true;
  }

  const Recipe& recipe_;
  std::size_t micro_batches_;
  std::span<const double> forward_, backward_, weights_;
  std::vector<double> forward_end_, backward_end_;  // (chunk, micro-batch)
};

}  // namespace

double chunk_by_chunk(double each, double gap, std::int32_t chunks) { return each + (chunks - 1) * std::max(0.0, each - gap); }

double pipeline_time(const Recipe& recipe, std::int64_t micro_batches, std::span<const double> forward,
                     std::span<const double> backward, std::span<const double> weights) {
  const auto time = [&](std::int64_t count) {
    return PipelineClock(recipe, static_cast<std::int32_t>(count), forward, backward, weights).run();
  };
  const std::int64_t group = recipe.pp;  // the turns repeat by groups of pp micro-batches
  const std::int64_t followed = 4 * group + micro_batches % group;
  if (micro_batches <= followed + group) return time(micro_batches);
  const double before = time(followed);
  const double pace = time(followed + group) - before;
  const std::int64_t groups_more = (micro_batches - followed) / group;  // a whole number: `followed` keeps the rest
  return before + pace * static_cast<double>(groups_more);
}

}  // namespace cpfit
