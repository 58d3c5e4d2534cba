// Which ranks a timeline simulates. Ranks that differ only in their tp or dp coordinate do the same work at the same time as long
// as the network treats them alike, so one of them may stand for all (folded); the flows of the others are counted on shared
// links. All ranks are simulated when replicas differ (a slow rank, a dead link) or when someone wants to see every lane.
#pragma once

#include <cstdint>

#include "model/recipe/rank_grid.h"

namespace cpfit::schedule {

class SimulatedRanks {
 public:
  SimulatedRanks(const Recipe& recipe, bool every_rank)
      : recipe_(recipe), tp_(every_rank ? recipe.tp : 1), dp_(every_rank ? recipe.dp : 1) {}

  [[nodiscard]] std::int32_t tp() const { return tp_; }  // simulated tensor-parallel lanes
  [[nodiscard]] std::int32_t dp() const { return dp_; }  // simulated data-parallel replicas
  [[nodiscard]] bool every_rank() const { return tp_ == recipe_.tp && dp_ == recipe_.dp; }
  [[nodiscard]] std::int32_t count() const { return tp_ * recipe_.cp * dp_ * recipe_.pp; }

  /// Place of a coordinate among the simulated ranks: tp fastest, then cp, dp, pp. Folded coordinates must be 0.
  [[nodiscard]] std::int32_t index(const Coordinate& at) const {
    return at.tp + tp_ * (at.cp + recipe_.cp * (at.dp + dp_ * at.pp));
  }
  [[nodiscard]] Coordinate coordinate(std::int32_t index) const {
    Coordinate at;
    at.tp = index % tp_;
    index /= tp_;
    at.cp = index % recipe_.cp;
    index /= recipe_.cp;
    at.dp = index % dp_;
    at.pp = index / dp_;
    return at;
  }
  /// The simulated rank that stands for a rank of the cluster.
  [[nodiscard]] std::int32_t index_of(std::int64_t rank) const {
    Coordinate at = coordinate_of(recipe_, rank);
    if (tp_ == 1) at.tp = 0;
    if (dp_ == 1) at.dp = 0;
    return index(at);
  }
  /// The rank of the cluster that the simulated rank is.
  [[nodiscard]] std::int64_t global(std::int32_t index) const { return rank_of(recipe_, coordinate(index)); }

 private:
  Recipe recipe_;
  std::int32_t tp_, dp_;
};

}  // namespace cpfit::schedule
