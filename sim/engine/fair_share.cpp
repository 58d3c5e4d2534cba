#include "sim/engine/fair_share.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "model/quantity/index.h"
#include "sim/engine/trouble.h"

namespace cpfit::engine {

namespace {

// A resource has 2^51 to 2^52 units of capacity; demand, which may be many times the capacity, is counted in 256 units.
constexpr int kUnitBits = 52;
// Weights: the heaviest use of a resource has 2^45 to 2^46, so that 2^17 of them can be added.
constexpr int kWeightBits = 46;
// Flows slower than what changed by more than this are certainly settled before it.
constexpr double kCertainlySlower = 1.0 - 1e-9;
constexpr double kNoLevel = std::numeric_limits<double>::infinity();
constexpr double kUntouched = -1.0;
constexpr std::size_t kBlock = 32;

/// The power of two that brings `value` to [2^(bits-1), 2^bits).
double scale_to(double value, int bits) {
  int exponent = 0;
  (void)std::frexp(value, &exponent);
  return std::ldexp(1.0, bits - exponent);
}

}  // namespace

FairShare::FairShare(std::span<const Resource> resources, std::span<const Use> uses, std::span<const std::uint32_t> pattern_begin)
    : loads_(resources.size()), units_(resources.size(), 0.0) {
  std::vector<double> weights;  // of uses_
  std::vector<double> heaviest(resources.size(), 0.0);
  std::size_t longest = 0;
  for (std::size_t p = 0; p + 1 < pattern_begin.size(); ++p) {
    const std::size_t begin = uses_.size();
    for (std::uint32_t u = pattern_begin[p]; u < pattern_begin[p + 1]; ++u) {
      if (!(uses[u].weight > 0.0)) continue;
      Load* const load = &loads_[at(uses[u].resource)];
      const auto known = std::find_if(uses_.begin() + static_cast<std::ptrdiff_t>(begin), uses_.end(),
                                      [&](const Drawn& drawn) { return drawn.load == load; });
      if (known == uses_.end()) {
        uses_.emplace_back().load = load;
        weights.push_back(uses[u].weight);
      } else {
        weights[at(known - uses_.begin())] += uses[u].weight;
      }
    }
    longest = std::max(longest, uses_.size() - begin);
    for (std::size_t u = begin; u < uses_.size(); ++u) {
      double& most = heaviest[at(id_of(*uses_[u].load))];
      most = std::max(most, weights[u]);
    }
    patterns_.push_back({static_cast<std::uint32_t>(begin), static_cast<std::uint32_t>(uses_.size()), 0.0});
  }
  idle_.resize(longest + 1);

  std::vector<double> weight_units(resources.size(), 1.0);
  for (std::size_t r = 0; r < resources.size(); ++r) {
    const double capacity = resources[r].capacity;
    if (!(capacity > 0.0)) continue;  // nobody may draw on it: see without_rate()
    Load& load = loads_[r];
    units_[r] = scale_to(capacity, kUnitBits);
    load.whole = whole(capacity * units_[r]);
    load.least = static_cast<std::int64_t>(static_cast<double>(load.whole) * kLeastShare);
    load.hold_back(load.whole);
    load.spare = load.whole;
    if (heaviest[r] > 0.0) weight_units[r] = scale_to(heaviest[r], kWeightBits);
    load.level_per = weight_units[r] / units_[r];
  }
  for (std::size_t u = 0; u < uses_.size(); ++u) {
    const std::size_t r = at(id_of(*uses_[u].load));
    uses_[u].units = weights[u] * units_[r];
    uses_[u].weight = std::max<std::int64_t>(1, whole(weights[u] * weight_units[r]));
  }
}

std::int64_t FairShare::demand_of(const Drawn& use, const Load& load, double cap) {
  // More than everything is as good as a little more than everything; also keeps caps without bound from overflowing the sum.
  const std::int64_t most = 2 * load.whole / kDemandStep + 2;
  const double exact = use.units * cap / kDemandStep;
  return exact < static_cast<double>(most) ? whole(exact) : most;
}

/// What flows of the pattern ask of its resources at this cap.
void FairShare::compile(Pattern& pattern, double cap) {
  pattern.cap = cap;
  for (std::uint32_t u = pattern.begin; u < pattern.end; ++u) {
    uses_[u].demand = demand_of(uses_[u], *uses_[u].load, cap);
    uses_[u].drawn = whole(uses_[u].units * cap);
  }
}

void FairShare::compile_hold(Load& load, double amount) const {
  load.hold = amount;
  load.hold_units = whole(std::min(amount * units_[at(id_of(load))], 4.0 * static_cast<double>(load.whole)));
}

FlowId FairShare::new_flow(std::uint32_t uses) {
  const FlowId id = static_cast<FlowId>(flows_.size());
  flows_.emplace_back().first_place = static_cast<std::uint32_t>(places_.size());
  places_.resize(places_.size() + uses);
  return id;
}

void FairShare::too_many(ResourceId resource) { mistake("too many flows at a time on resource", resource); }

void FairShare::solve() {
  // Those that are alone leave the list; nobody else's rates hang on them.
  std::size_t left = 0;
  for (const ResourceId resource : dirty_) {
    if (!settle_alone(loads_[at(resource)])) dirty_[left++] = resource;
  }
  dirty_.resize(left);
  if (left > 0) {
    for (const ResourceId resource : dirty_) {
      const Load& load = loads_[at(resource)];
      if (load.highest_weight > 0) changes_from(load.least_level());
    }
    gather(changes_from_ * kCertainlySlower);
    fill();
    for (const ResourceId resource : dirty_) loads_[at(resource)].dirty = false;
    dirty_.clear();
  }
  changes_from_ = kNoLevel;
}

void FairShare::gather(double from) {
  mark_ += 2;
  resources_.clear();
  component_.clear();
  const auto visit = [&](ResourceId resource, Load& load) {
    load.mark = mark_;
    load.place = static_cast<std::int32_t>(resources_.size());
    load.open = 0;
    load.binding = false;
    resources_.push_back(resource);
  };
  for (const ResourceId resource : dirty_) visit(resource, loads_[at(resource)]);
  for (std::size_t i = 0; i < resources_.size(); ++i) {
    for (const Member member : loads_[at(resources_[i])].members) {
      Flow& flow = flows_[at(member.flow)];
      if (flow.mark == mark_ || (flow.rate < from && flow.rate > 0.0)) continue;
      flow.mark = mark_;
      component_.push_back(member.flow);
      const Pattern& drawn = patterns_[at(flow.pattern)];
      for (std::uint32_t u = drawn.begin; u < drawn.end; ++u) {
        const Drawn& use = uses_[u];
        Load& load = *use.load;
        load.spare += whole(use.units * flow.rate);
        if (load.mark != mark_) {
          if (!load.contended()) continue;
          visit(id_of(load), load);
        }
        load.open += use.weight;
      }
    }
  }
}

void FairShare::freeze(FlowId id, double rate, double level) {
  Flow& flow = flows_[at(id)];
  flow.mark = mark_ + 1;
  if (flow.rate != rate) {
    flow.rate = rate;
    changed_.push_back(id);
  }
  const Pattern& drawn = patterns_[at(flow.pattern)];
  for (std::uint32_t u = drawn.begin; u < drawn.end; ++u) {
    const Drawn& use = uses_[u];
    Load& load = *use.load;
    load.spare -= whole(use.units * rate);
    if (load.mark != mark_) continue;
    load.open -= use.weight;
    const std::size_t place = at(load.place);
    if (floor_[place] == level) continue;  // already among the touched ones of this step
    floor_[place] = level;
    touched_.push_back(static_cast<std::uint32_t>(place));
  }
}

/// Their levels anew; never below the level reached, whatever the rounding of the units says.
void FairShare::raise_touched() {
  for (const std::uint32_t place : touched_) {
    const Load& load = loads_[at(resources_[place])];
    level_[place] = load.open > 0 && load.contended() ? std::max(load.level(), floor_[place]) : kNoLevel;
    least_of_block_[place / kBlock] = -1.0;  // to be found anew
    floor_[place] = kUntouched;
  }
  touched_.clear();
}

/// The resource of the lowest level, of equal ones the one of lowest id: the order in which they were gathered leaves no trace.
std::size_t FairShare::lowest() {
  double least = kNoLevel;
  if (least_of_block_.size() == 1) {  // nearly always
    std::size_t first = resources_.size();
    for (std::size_t i = 0; i < resources_.size(); ++i) {
      if (level_[i] > least || level_[i] == kNoLevel) continue;
      if (level_[i] == least && resources_[i] > resources_[first]) continue;
      least = level_[i];
      first = i;
    }
    return first;
  }
  for (std::size_t block = 0; block < least_of_block_.size(); ++block) {
    double& known = least_of_block_[block];
    if (known < 0.0) {
      known = kNoLevel;
      const std::size_t end = std::min((block + 1) * kBlock, resources_.size());
      for (std::size_t i = block * kBlock; i < end; ++i) known = std::min(known, level_[i]);
    }
    least = std::min(least, known);
  }
  std::size_t found = resources_.size();
  if (least == kNoLevel) return found;
  for (std::size_t block = 0; block < least_of_block_.size(); ++block) {
    if (least_of_block_[block] != least) continue;
    const std::size_t end = std::min((block + 1) * kBlock, resources_.size());
    for (std::size_t i = block * kBlock; i < end; ++i) {
      if (level_[i] == least && (found == resources_.size() || resources_[i] < resources_[found])) found = i;
    }
  }
  return found;
}

void FairShare::fill() {
  const std::size_t count = resources_.size();
  level_.resize(count);
  floor_.assign(count, kUntouched);
  least_of_block_.assign((count + kBlock - 1) / kBlock, -1.0);
  for (std::size_t i = 0; i < count; ++i) {
    const Load& load = loads_[at(resources_[i])];
    level_[i] = load.open > 0 && load.contended() ? load.level() : kNoLevel;
  }
  for (std::size_t i = lowest(); i < count; i = lowest()) {
    const double level = level_[i];
    const std::vector<Member>& members = loads_[at(resources_[i])].members;
    // Who stops at its cap before this level is reached, first: the others' level rises.
    for (const Member member : members) {
      const Flow& flow = flows_[at(member.flow)];
      if (flow.mark == mark_ && flow.cap <= level * kCapSlack) freeze(member.flow, flow.cap, level);
    }
    if (touched_.empty()) {
      loads_[at(resources_[i])].binding = true;
      for (const Member member : members) {
        if (flows_[at(member.flow)].mark == mark_) freeze(member.flow, level, level);
      }
    }
    raise_touched();
  }
  // Those whose resources are all loose now.
  for (const FlowId id : component_) {
    const Flow& flow = flows_[at(id)];
    if (flow.mark == mark_) freeze(id, flow.cap, kNoLevel);
  }
  touched_.clear();
}

}  // namespace cpfit::engine
