// What the engine asks of the fair shares at every event, inline: flows that come and go, holds, and the settling of changes that
// concern one flow only. Included by fair_share.h alone.
#pragma once

#include <algorithm>

#include "model/quantity/index.h"
#include "sim/engine/fair_share.h"

namespace cpfit::engine {

inline FairShare::Load& FairShare::soil(ResourceId resource) {
  Load& load = loads_[at(resource)];
  if (load.dirty) return load;
  load.dirty = true;
  load.lowest_capacity = std::numeric_limits<std::int64_t>::max();
  load.highest_weight = 0;
  dirty_.push_back(resource);
  return load;
}

/// Rates change from the level at which the resource could stop somebody. Told by the division only where a solve wants to know.
inline void FairShare::reaches_down(Load& load, std::int64_t capacity) {
  load.lowest_capacity = std::min(load.lowest_capacity, capacity);
  load.highest_weight = std::max(load.highest_weight, load.weight);
}

inline FlowId FairShare::add(PatternId of, double cap, Picoseconds now) {
  Pattern& pattern = patterns_[at(of)];
  if (pattern.cap != cap) compile(pattern, cap);
  const std::uint32_t count = pattern.end - pattern.begin;
  const Drawn* const uses = &uses_[pattern.begin];
  std::vector<FlowId>& idle = idle_[count];
  FlowId id = 0;
  if (idle.empty()) {
    id = new_flow(count);
  } else {
    id = idle.back();
    idle.pop_back();
  }
  Flow& flow = flows_[at(id)];
  flow.cap = cap;
  flow.pattern = of;
  std::uint32_t* const places = &places_[flow.first_place];
  bool fits = true;
  for (std::uint32_t u = 0; u < count; ++u) {
    const Drawn& use = uses[u];
    Load& load = loads_[at(use.resource)];
    const std::size_t before = load.members.size();
    if (before == 0) load.busy_since = now;
    if (before == kMostFlows) too_many(use.resource);
    places[u] = static_cast<std::uint32_t>(before);
    load.members.push_back({id, u});
    const bool was_contended = load.contended();
    load.demand += use.demand;
    load.weight += use.weight;
    if (!load.contended()) continue;
    // Where it fits with a margin beyond all rounding, a solve would let it run at its cap and change nobody.
    const bool spares = was_contended && !load.dirty && !load.binding &&
                        static_cast<double>(load.spare) > use.units * cap + static_cast<double>(load.slack());
    if (!spares) fits = false;
  }
  if (fits) {
    flow.rate = cap;
    for (std::uint32_t u = 0; u < count; ++u) loads_[at(uses[u].resource)].spare -= uses[u].drawn;
    return id;
  }
  flow.rate = 0;
  changes_from(cap);
  for (std::uint32_t u = 0; u < count; ++u) {
    if (!loads_[at(uses[u].resource)].contended()) continue;
    Load& load = soil(uses[u].resource);
    reaches_down(load, load.capacity);
  }
  return id;
}

inline void FairShare::remove(FlowId id, Picoseconds now) {
  const Flow& flow = flows_[at(id)];
  Pattern& pattern = patterns_[at(flow.pattern)];
  if (pattern.cap != flow.cap) compile(pattern, flow.cap);
  const std::uint32_t count = pattern.end - pattern.begin;
  const Drawn* const uses = &uses_[pattern.begin];
  const std::uint32_t* const places = &places_[flow.first_place];
  const bool at_its_cap = flow.rate == flow.cap;
  for (std::uint32_t u = 0; u < count; ++u) {
    const Drawn& use = uses[u];
    Load& load = loads_[at(use.resource)];
    const Member last = load.members.back();
    load.members.pop_back();
    if (last.flow != id) {
      load.members[places[u]] = last;
      places_[flows_[at(last.flow)].first_place + last.use] = places[u];
    }
    if (load.members.empty()) load.busy += now - load.busy_since;
    load.demand -= use.demand;
    load.weight -= use.weight;
    load.spare += at_its_cap ? use.drawn : whole(use.units * flow.rate);
    if (!load.binding) continue;
    changes_from(flow.rate);
    soil(use.resource);
  }
  idle_[count].push_back(id);
}

inline void FairShare::change_held(ResourceId resource, double amount, int sign) {
  Load& load = loads_[at(resource)];
  if (load.hold != amount) compile_hold(load, amount);
  load.held += sign * load.hold_units;
  const std::int64_t capacity = std::max(load.whole - load.held, load.least);
  const std::int64_t before = load.capacity;
  const bool was_contended = load.contended();
  load.hold_back(capacity);
  load.spare += capacity - before;
  if (!was_contended && !load.contended()) return;
  const bool unnoticed = was_contended && load.contended() && !load.binding && (capacity >= before || load.spare > load.slack());
  if (unnoticed) return;
  reaches_down(soil(resource), std::min(before, capacity));
}

inline std::span<const FlowId> FairShare::settle() {
  changed_.clear();
  if (!dirty_.empty()) solve();
  return changed_;
}

/// What gather() and fill() come to, to the bit, where at most one flow draws on the resource and no other contended or changed
/// one. False where that is not so: nothing has happened then.
inline bool FairShare::settle_alone(ResourceId resource) {
  Load& load = loads_[at(resource)];
  if (load.members.size() > 1) return false;
  if (load.members.empty()) {
    load.binding = false;
    load.dirty = false;
    return true;
  }
  const FlowId id = load.members.front().flow;
  Flow& flow = flows_[at(id)];
  const Pattern& drawn = patterns_[at(flow.pattern)];
  for (std::uint32_t u = drawn.begin; u < drawn.end; ++u) {
    const Load& other = loads_[at(uses_[u].resource)];
    if (&other != &load && (other.dirty || other.contended())) return false;
  }
  load.binding = false;
  load.dirty = false;
  const Drawn& own = uses_[drawn.begin + load.members.front().use];
  double rate = flow.cap;
  if (load.contended()) {
    const std::int64_t spare = load.spare + whole(own.units * flow.rate);
    const double level = level_of(spare, own.weight, load.level_per);
    load.binding = flow.cap > level * kCapSlack;
    if (load.binding) rate = level;
  }
  if (flow.rate == rate) return true;
  for (std::uint32_t u = drawn.begin; u < drawn.end; ++u) {
    loads_[at(uses_[u].resource)].spare += whole(uses_[u].units * flow.rate) - whole(uses_[u].units * rate);
  }
  flow.rate = rate;
  changed_.push_back(id);
  return true;
}

}  // namespace cpfit::engine
