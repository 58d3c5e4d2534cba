#include "model/cluster/ring_order.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <numeric>

namespace cpfit {
namespace {

using Order = std::vector<std::uint16_t>;  // places in the list of GPUs

/// What is compared, better first.
struct Score {
  double slowest = 0;
  std::int32_t slowest_hops = 0;
  double latency = 0;
  [[nodiscard]] bool better_than(const Score& other) const {
    const double nearly = 1e-9;  // relative: sums of the same terms in another order
    if (slowest > other.slowest * (1 + nearly)) return true;
    if (other.slowest > slowest * (1 + nearly)) return false;
    if (slowest_hops != other.slowest_hops) return slowest_hops < other.slowest_hops;
    return latency < other.latency * (1 - nearly);
  }
};

/// Routes between all pairs, over links numbered from 0.
class Judge {
 public:
  Judge(const Topology& topology, std::span<const std::int64_t> gpus) : size_(gpus.size()), routes_(size_ * size_) {
    std::map<std::int32_t, std::uint16_t> numbers;
    for (std::size_t a = 0; a < size_; ++a) {
      for (std::size_t b = 0; b < size_; ++b) {
        for (const std::int32_t link : topology.route(gpus[a], gpus[b])) {
          const auto [where, fresh] = numbers.try_emplace(link, static_cast<std::uint16_t>(numbers.size()));
          if (fresh) {
            capacity_.push_back(topology.links()[static_cast<std::size_t>(link)].capacity.value());
            latency_.push_back(topology.links()[static_cast<std::size_t>(link)].latency.value());
          }
          routes_[a * size_ + b].push_back(where->second);
        }
      }
    }
    load_.resize(capacity_.size());
  }

  Score score(const Order& order) {
    std::fill(load_.begin(), load_.end(), 0);
    Score score{1e300, 0, 0};
    for_each_hop(order, [&](const std::vector<std::uint16_t>& route) {
      for (const std::uint16_t link : route) ++load_[link];
    });
    for_each_hop(order, [&](const std::vector<std::uint16_t>& route) {
      double share = route.empty() ? 0.0 : 1e300;
      for (const std::uint16_t link : route) {
        share = std::min(share, capacity_[link] / load_[link]);
        score.latency += latency_[link];
      }
      if (share < score.slowest * (1 - 1e-9)) {
        score.slowest = share;
        score.slowest_hops = 1;
      } else if (share <= score.slowest * (1 + 1e-9)) {
        ++score.slowest_hops;
      }
    });
    return score;
  }

  /// Capacity of the narrowest link between two places; 0 without a route.
  [[nodiscard]] double width(std::size_t a, std::size_t b) const {
    const auto& route = routes_[a * size_ + b];
    double narrowest = route.empty() ? 0.0 : 1e300;
    for (const std::uint16_t link : route) narrowest = std::min(narrowest, capacity_[link]);
    return narrowest;
  }
  [[nodiscard]] double latency(std::size_t a, std::size_t b) const {
    double sum = 0;
    for (const std::uint16_t link : routes_[a * size_ + b]) sum += latency_[link];
    return sum;
  }

 private:
  template <class Visit>
  void for_each_hop(const Order& order, Visit&& visit) const {
    for (std::size_t i = 0; i < order.size(); ++i)
      visit(routes_[std::size_t{order[i]} * size_ + order[i + 1 == order.size() ? 0 : i + 1]]);
  }

  std::size_t size_;
  std::vector<std::vector<std::uint16_t>> routes_;
  std::vector<double> capacity_, latency_;
  std::vector<std::int32_t> load_;
};

Order as_given(std::size_t size) {
  Order order(size);
  std::iota(order.begin(), order.end(), std::uint16_t{0});
  return order;
}

RingOrder result_of(std::span<const std::int64_t> gpus, const Order& order, const Score& score, bool exact) {
  RingOrder result;
  for (const std::uint16_t place : order) result.members.push_back(gpus[place]);
  result.slowest = BytesPerSecond(score.slowest);
  result.slowest_hops = score.slowest_hops;
  result.latency = Seconds(score.latency);
  result.exact = exact;
  return result;
}

/// From the first on, always to the widest way, of equals the shortest, of equals the next in the list.
Order nearest_next(const Judge& judge, std::size_t size) {
  Order order{0};
  std::vector<bool> taken(size, false);
  taken[0] = true;
  while (order.size() < size) {
    const std::size_t from = order.back();
    std::size_t best = size;
    for (std::size_t to = 0; to < size; ++to) {
      if (taken[to]) continue;
      if (best == size || judge.width(from, to) > judge.width(from, best) ||
          (judge.width(from, to) == judge.width(from, best) && judge.latency(from, to) < judge.latency(from, best)))
        best = to;
    }
    taken[best] = true;
    order.push_back(static_cast<std::uint16_t>(best));
  }
  return order;
}

/// Reverses stretches as long as one helps.
void improve(Judge& judge, Order& order, Score& score) {
  for (bool helped = true; helped;) {
    helped = false;
    for (std::size_t i = 1; i + 1 < order.size(); ++i) {
      for (std::size_t j = i + 1; j < order.size(); ++j) {
        const auto from = order.begin() + static_cast<std::ptrdiff_t>(i), to = order.begin() + static_cast<std::ptrdiff_t>(j) + 1;
        std::reverse(from, to);
        const Score turned = judge.score(order);
        if (turned.better_than(score)) {
          score = turned;
          helped = true;
        } else {
          std::reverse(from, to);
        }
      }
    }
  }
}

void require(std::span<const std::int64_t> gpus) {
  std::vector<std::int64_t> sorted(gpus.begin(), gpus.end());
  std::sort(sorted.begin(), sorted.end());
  if (gpus.size() >= 2 && std::adjacent_find(sorted.begin(), sorted.end()) == sorted.end()) return;
  std::fprintf(stderr, "cpfit: internal error: a ring of %zu GPUs needs two or more different ones\n", gpus.size());
  std::abort();
}

}  // namespace

RingOrder judge_ring_order(const Topology& topology, std::span<const std::int64_t> gpus) {
  require(gpus);
  Judge judge(topology, gpus);
  const Order order = as_given(gpus.size());
  return result_of(gpus, order, judge.score(order), false);
}

RingOrder order_ring(const Topology& topology, std::span<const std::int64_t> gpus) {
  require(gpus);
  Judge judge(topology, gpus);
  Order best = as_given(gpus.size());
  Score best_score = judge.score(best);
  if (gpus.size() <= kExactRing) {
    Order order = best;
    while (std::next_permutation(order.begin() + 1, order.end())) {
      const Score score = judge.score(order);
      if (score.better_than(best_score)) {
        best = order;
        best_score = score;
      }
    }
    return result_of(gpus, best, best_score, true);
  }
  Order greedy = nearest_next(judge, gpus.size());
  Score greedy_score = judge.score(greedy);
  improve(judge, greedy, greedy_score);
  improve(judge, best, best_score);
  if (greedy_score.better_than(best_score)) {
    best = greedy;
    best_score = greedy_score;
  }
  return result_of(gpus, best, best_score, false);
}

}  // namespace cpfit
