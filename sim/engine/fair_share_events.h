// What the engine asks of the fair shares at every event, inline: flows that come and go, holds, and the settling of changes that
// concern one flow only. Included by fair_share.h alone.
#pragma once

#include <algorithm>

#include "model/quantity/index.h"
#include "sim/engine/fair_share.h"

namespace cpfit::engine {

/// A solve is due, and rates change from the level at which the resource could stop somebody: told by its capacity and its flows'
/// weight, because only few solves want to know it.
inline void FairShare::soil(Load& load, std::int64_t capacity) {
  if (load.dirty) {
    load.lowest_capacity = std::min(load.lowest_capacity, capacity);
    load.highest_weight = std::max(load.highest_weight, load.weight);
    return;
  }
  load.dirty = true;
  load.lowest_capacity = capacity;
  load.highest_weight = load.weight;
  dirty_.push_back(id_of(load));
}

inline FlowId FairShare::add(PatternId of, double cap, Picoseconds now) {
  Pattern& pattern = patterns_[at(of)];
  if (pattern.cap != cap) compile(pattern, cap);
  const std::uint32_t count = pattern.end - pattern.begin;
  const FlowId id = next_flow(count);
  Flow& flow = flows_[at(id)];
  flow.cap = cap;
  flow.pattern = of;
  flow.rate = cap;
  if (count != 1) return add_to_many(pattern, id, now);
  const Drawn& use = uses_[pattern.begin];
  join(use, 0, id, flow.first_place, now);
  Load& load = *use.load;
  const bool was_contended = load.contended();
  load.demand += use.demand;
  load.weight += use.weight;
  if (!load.contended() || (was_contended && spares(load, load.spare, use, cap))) {
    load.spare -= use.drawn;
    return id;
  }
  flow.rate = 0;
  changes_from(cap);
  soil(load, load.capacity);
  return id;
}

inline FlowId FairShare::next_flow(std::uint32_t uses) {
  std::vector<FlowId>& idle = idle_[uses];
  if (idle.empty()) return new_flow(uses);
  const FlowId id = idle.back();
  idle.pop_back();
  return id;
}

/// The flow becomes one of those on the resource.
inline void FairShare::join(const Drawn& use, std::uint32_t number, FlowId id, std::uint32_t place, Picoseconds now) {
  Load& load = *use.load;
  const std::size_t before = load.members.size();
  if (before == 0) load.busy_since = now;
  if (before == kMostFlows) too_many(id_of(load));
  places_[place] = static_cast<std::uint32_t>(before);
  load.members.push_back({id, number});
}

inline void FairShare::leave(const Drawn& use, FlowId id, std::uint32_t place, Picoseconds now) {
  Load& load = *use.load;
  const Member last = load.members.back();
  load.members.pop_back();
  if (load.members.empty()) {
    load.busy += now - load.busy_since;
  } else if (last.flow != id) {
    load.members[places_[place]] = last;
    places_[flows_[at(last.flow)].first_place + last.use] = places_[place];
  }
}

/// Where it fits with a margin beyond all rounding, a solve would let it run at its cap and change nobody.
inline bool FairShare::spares(const Load& load, std::int64_t spare, const Drawn& use, double cap) {
  return !load.dirty && !load.binding && static_cast<double>(spare) > use.units * cap + static_cast<double>(load.slack());
}

/// The rest of add() and remove() for flows on several resources. Not inline: few registers are left where these are called.
[[gnu::noinline]] inline FlowId FairShare::add_to_many(const Pattern& pattern, FlowId id, Picoseconds now) {
  const Drawn* const uses = &uses_[pattern.begin];
  const Drawn* const end = uses + (pattern.end - pattern.begin);
  Flow& flow = flows_[at(id)];
  const double cap = flow.cap;
  std::uint32_t place = flow.first_place;
  bool fits = true;
  for (const Drawn* use = uses; use != end; ++use, ++place) {
    join(*use, static_cast<std::uint32_t>(use - uses), id, place, now);
    Load& load = *use->load;
    const bool was_contended = load.contended();
    const std::int64_t spare = load.spare;
    load.demand += use->demand;
    load.weight += use->weight;
    load.spare = spare - use->drawn;
    if (load.contended() && !(was_contended && spares(load, spare, *use, cap))) fits = false;
  }
  if (fits) return id;
  flow.rate = 0;
  changes_from(cap);
  for (const Drawn* use = uses; use != end; ++use) {
    Load& load = *use->load;
    load.spare += use->drawn;
    if (load.contended()) soil(load, load.capacity);
  }
  return id;
}

inline void FairShare::remove(FlowId id, Picoseconds now) {
  const Flow& flow = flows_[at(id)];
  Pattern& pattern = patterns_[at(flow.pattern)];
  if (pattern.cap != flow.cap) compile(pattern, flow.cap);
  const std::uint32_t count = pattern.end - pattern.begin;
  idle_[count].push_back(id);
  if (count != 1) return remove_from_many(pattern, id, now);
  const Drawn& use = uses_[pattern.begin];
  leave(use, id, flow.first_place, now);
  give_up(use, flow);
}

[[gnu::noinline]] inline void FairShare::remove_from_many(const Pattern& pattern, FlowId id, Picoseconds now) {
  const Flow& flow = flows_[at(id)];
  std::uint32_t place = flow.first_place;
  const Drawn* const end = &uses_[pattern.begin] + (pattern.end - pattern.begin);
  for (const Drawn* use = &uses_[pattern.begin]; use != end; ++use, ++place) {
    leave(*use, id, place, now);
    give_up(*use, flow);
  }
}

/// What the flow drew is there for others.
inline void FairShare::give_up(const Drawn& use, const Flow& flow) {
  Load& load = *use.load;
  load.demand -= use.demand;
  load.weight -= use.weight;
  load.spare += flow.rate == flow.cap ? use.drawn : whole(use.units * flow.rate);
  if (!load.binding) return;
  changes_from(flow.rate);
  soil(load, load.capacity);
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
  soil(load, std::min(before, capacity));
}

inline std::span<const FlowId> FairShare::settle() {
  changed_.clear();
  if (dirty_.empty()) return changed_;
  if (dirty_.size() > 1 || !settle_alone(loads_[at(dirty_.front())])) {
    solve();
  } else {
    dirty_.clear();
    changes_from_ = std::numeric_limits<double>::infinity();
  }
  return changed_;
}

/// What gather() and fill() come to, to the bit, where at most one flow draws on the resource and no other contended or changed
/// one. False where that is not so: nothing has happened then.
inline bool FairShare::settle_alone(Load& load) {
  if (load.members.size() > 1) return false;
  if (load.members.empty()) {
    load.binding = false;
    load.dirty = false;
    return true;
  }
  const Member alone = load.members.front();
  Flow& flow = flows_[at(alone.flow)];
  const Pattern& pattern = patterns_[at(flow.pattern)];
  const Drawn* const uses = &uses_[pattern.begin];
  const Drawn* const end = uses + (pattern.end - pattern.begin);
  for (const Drawn* use = uses; use != end; ++use) {
    if (use->load != &load && (use->load->dirty || use->load->contended())) return false;
  }
  load.dirty = false;
  double rate = flow.cap;
  load.binding = false;
  if (load.contended()) {
    // It is alone: what the others leave is the capacity. Mostly one of two, with a communication kernel beside and without.
    if (load.capacity != load.level_capacity || uses[alone.use].weight != load.level_weight) {
      load.level_capacity = load.capacity;
      load.level_weight = uses[alone.use].weight;
      load.level_alone = level_of(load.capacity, load.level_weight, load.level_per);
    }
    const double level = load.level_alone;
    load.binding = flow.cap > level * kCapSlack;
    if (load.binding) rate = level;
  }
  if (flow.rate == rate) return true;
  if (end - uses == 1) {
    load.spare = load.capacity - whole(uses->units * rate);
    flow.rate = rate;
    changed_.push_back(alone.flow);
    return true;
  }
  for (const Drawn* use = uses; use != end; ++use) {
    use->load->spare += whole(use->units * flow.rate) - whole(use->units * rate);
  }
  flow.rate = rate;
  changed_.push_back(alone.flow);
  return true;
}

}  // namespace cpfit::engine
