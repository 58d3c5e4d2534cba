// ask fewest: the fewest GPUs of the scenario's kind on which its sequence fits, and on which it also hides its ring.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "model/record/candidate.h"
#include "sim/plan/workbench.h"

namespace cpfit::ask {

struct FewestRow {
  std::int64_t gpus = 0;
  std::int64_t legal = 0;              // recipes of the search space
  Bytes missing;                       // of the recipe that misses least, the margin asked for included; 0 when one fits
  std::optional<Candidate> candidate;  // the recipe to take where one fits: what plan would ship, else the fastest that fits
  bool feasible = false;               // it meets every requirement, not memory alone
  std::string shortfall;               // what it misses otherwise
};

struct FewestAnswer {
  std::vector<FewestRow> rows;          // every size tried, ascending, to the first that is feasible
  std::optional<std::size_t> fits;      // first row that fits
  std::optional<std::size_t> feasible;  // first row that meets every requirement
  std::int64_t largest_tried = 0;
};

/// Parts of one node (its divisors), then whole nodes, one after the other: what fits n nodes need not fit n + 1, which other
/// degrees divide. Memory alone refuses a size; only sizes that fit are priced. At most 64 times the scenario's nodes and 4096
/// nodes. Problems: the cluster cannot be built with that many nodes.
[[nodiscard]] Outcome<FewestAnswer> fewest_gpus(const Workbench& bench);

[[nodiscard]] std::string sentence_of(const FewestAnswer& answer, const Scenario& scenario);

}  // namespace cpfit::ask
