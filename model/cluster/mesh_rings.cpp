#include "model/cluster/mesh_rings.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

namespace cpfit {
namespace {

using Edges = std::vector<std::uint8_t>;  // a * members + b, a < b

/// How many rings, each over another lane, can be closed over all members at once.
class Packing {
 public:
  Packing(std::vector<int> lanes, std::size_t members) : lanes_(std::move(lanes)), members_(members) {
    std::vector<std::size_t> order{0};
    std::vector<bool> taken(members, false);
    taken[0] = true;
    close_rings(order, taken);
    int degree = std::numeric_limits<int>::max();
    for (std::size_t a = 0; a < members; ++a) {
      int sum = 0;
      for (std::size_t b = 0; b < members; ++b) sum += lane(a, b);
      degree = std::min(degree, sum);
    }
    bound_ = degree / 2;  // a ring enters and leaves every member
    pack(0, 0);
  }
  [[nodiscard]] int most() const { return most_; }

 private:
  [[nodiscard]] std::size_t edge(std::size_t a, std::size_t b) const { return std::min(a, b) * members_ + std::max(a, b); }
  [[nodiscard]] int lane(std::size_t a, std::size_t b) const { return a == b ? 0 : lanes_[edge(a, b)]; }

  /// Every ring from member 0, in one direction only.
  void close_rings(std::vector<std::size_t>& order, std::vector<bool>& taken) {
    if (order.size() == members_) {
      if (lane(order.back(), 0) == 0 || order[1] > order.back()) return;
      Edges ring;
      for (std::size_t i = 0; i < members_; ++i)
        ring.push_back(static_cast<std::uint8_t>(edge(order[i], order[(i + 1) % members_])));
      rings_.push_back(std::move(ring));
      return;
    }
    for (std::size_t next = 1; next < members_; ++next) {
      if (taken[next] || lane(order.back(), next) == 0) continue;
      taken[next] = true;
      order.push_back(next);
      close_rings(order, taken);
      order.pop_back();
      taken[next] = false;
    }
  }

  void pack(std::size_t first, int closed) {
    most_ = std::max(most_, closed);
    for (std::size_t i = first; i < rings_.size() && most_ < bound_ && tries_ > 0; ++i) {
      const Edges& ring = rings_[i];
      if (std::any_of(ring.begin(), ring.end(), [&](std::uint8_t at) { return lanes_[at] == 0; })) continue;
      --tries_;
      for (const std::uint8_t at : ring) --lanes_[at];
      pack(i, closed + 1);
      for (const std::uint8_t at : ring) ++lanes_[at];
    }
  }

  std::vector<int> lanes_;
  std::size_t members_;
  std::vector<Edges> rings_;
  int bound_ = 0, most_ = 0, tries_ = 20'000;  // enough for every mesh of the presets; beyond it, the most found so far
};

}  // namespace

double mesh_ring_rate(std::span<const double> width, std::size_t members) {
  double narrowest = std::numeric_limits<double>::infinity(), widest = 0;
  for (std::size_t a = 0; a < members; ++a) {
    for (std::size_t b = 0; b < members; ++b) {
      if (a == b) continue;
      const double link = width[a * members + b];
      if (link > 0) narrowest = std::min(narrowest, link);
      widest = std::max(widest, link);
    }
  }
  if (widest <= 0) return 0;
  std::vector<int> lanes(members * members, 0);
  bool alike = true;
  for (std::size_t a = 0; a < members; ++a) {
    for (std::size_t b = a + 1; b < members; ++b) {
      lanes[a * members + b] = static_cast<int>(std::lround(width[a * members + b] / narrowest));
      alike = alike && lanes[a * members + b] == lanes[1];
    }
  }
  if (alike) return static_cast<double>(members - 1) * widest;
  return 2.0 * Packing(std::move(lanes), members).most() * narrowest;
}

}  // namespace cpfit
