#include "sim/engine/fold.h"

#include <algorithm>
#include <bit>
#include <map>
#include <utility>

#include "model/quantity/index.h"
#include "sim/engine/trouble.h"

namespace cpfit::engine {

namespace {

constexpr std::int64_t kUneven = -1;
// Places of activities outside the section, in a snapshot; no relative id comes near.
constexpr std::int64_t kOutside = std::int64_t{1} << 40;
constexpr std::int64_t kUnposted = -1;
// Where a jump would leave the clock's range.
constexpr double kLongestRun = 2305843009213693952.0;  // 2^61 ps, 26 days

ActivityId id_in(const Section& section, std::int32_t copy, std::int32_t place) {
  return section.first + copy * section.stride + place;
}

std::size_t ranks_of(const Program& program) {
  std::int32_t ranks = 0;
  for (const Lane& lane : program.lanes) ranks = std::max(ranks, lane.rank + 1);
  return at(ranks);
}

/// Aborts where copies are not alike; answers the launches per copy and rank.
std::vector<std::int64_t> launches_per_copy(const Program& program, const Section& section) {
  std::vector<std::int64_t> launches(ranks_of(program), 0);
  if (section.stride <= 0 || section.marker < 0 || section.marker >= section.stride || section.first < 0 ||
      section.longest_cycle < 1 || at(id_in(section, section.copies, 0)) > program.activities.size()) {
    mistake("a section that is not in the program, first activity", section.first);
  }
  std::vector<bool> known(launches.size(), false);
  for (ActivityId id = id_in(section, 1, 0); id < id_in(section, section.copies, 0); ++id) {
    const Activity& a = program.activities[at(id)];
    const Activity& b = program.activities[at(id - section.stride)];
    if (a.fixed != b.fixed || a.amount != b.amount || a.cap != b.cap || a.pattern != b.pattern || a.slots != b.slots ||
        a.tag != b.tag || a.micro_batch != b.micro_batch || a.chunk != b.chunk || a.host_reads != 0) {
      mistake("a section's copies differ at activity", id);
    }
    for (std::uint16_t i = 0; i < a.slots; ++i) {
      const Slot& mine = program.slots[at(a.first_slot + i)];
      const Slot& other = program.slots[at(b.first_slot + i)];
      if (mine.lane != other.lane || mine.hold != other.hold || (mine.launch > 0) != (other.launch > 0)) {
        mistake("a section's copies differ in a slot of activity", id);
      }
      if (mine.launch == 0) continue;
      const std::size_t rank = at(program.lanes[at(mine.lane)].rank);
      const std::int64_t step = std::int64_t{mine.launch} - other.launch;
      if (known[rank] && launches[rank] != step) {
        launches[rank] = kUneven;
      } else {
        launches[rank] = step;
      }
      known[rank] = true;
    }
  }
  return launches;
}

}  // namespace

Fold::Fold(State& state) : state_(state) {
  const Program& program = state.program;
  for (std::size_t i = 0; i < program.sections.size(); ++i) {
    const Section& section = program.sections[i];
    if (section.stands_for <= section.copies) continue;
    Watch watch;
    watch.section = i;
    watch.launches = launches_per_copy(program, section);
    watch.past.resize(at(section.longest_cycle));
    watches_.push_back(std::move(watch));
  }
  if (watches_.empty()) return;
  state.folding = true;
  state.touched_place.assign(program.activities.size(), kNone);
  state.launch_bound.assign(ranks_of(program), kNotYet);
  for (const Watch& watch : watches_) {
    const Section& section = program.sections[watch.section];
    for (std::int32_t copy = 0; copy < section.copies; ++copy) state.live[at(id_in(section, copy, section.marker))].marker = 1;
  }
}

std::vector<Picoseconds> Fold::busy_now() const {
  std::vector<Picoseconds> busy(state_.program.resources.size());
  for (std::size_t r = 0; r < busy.size(); ++r) busy[r] = state_.share.busy(static_cast<ResourceId>(r), state_.now);
  return busy;
}

void Fold::snapshot(const Section& section, std::int32_t copy, std::vector<std::int64_t>& out) {
  const Program& program = state_.program;
  const Picoseconds shown = state_.now + state_.shift;  // as times in the Run
  const ActivityId begin = section.first;
  const ActivityId end = id_in(section, section.copies, 0);
  order_ = state_.touched;
  std::sort(order_.begin(), order_.end());
  std::int64_t ended_inside = 0;
  for (ActivityId id = begin; id < end; ++id) ended_inside += state_.live[at(id)].phase == Phase::kDone ? 1 : 0;
  out.clear();
  out.push_back(state_.ended - ended_inside);
  out.push_back(ended_inside - std::int64_t{copy} * section.stride);
  for (const ActivityId id : order_) {
    const Activity& activity = program.activities[at(id)];
    const SlotId last = activity.first_slot + activity.slots;
    const bool inside = id >= begin && id < end;
    if (!inside && state_.live[at(id)].unposted == activity.slots) {
      bool pending = false;  // only its launch is missing
      for (SlotId slot = activity.first_slot; slot < last; ++slot) pending = pending || state_.waits[at(slot)] == 0;
      if (!pending) continue;  // a counter
    }
    const Phase phase = state_.live[at(id)].phase;
    out.push_back(inside ? id - id_in(section, copy, 0) : id + kOutside);
    out.push_back(static_cast<std::int64_t>(phase));
    for (SlotId slot = activity.first_slot; slot < last; ++slot) {
      if (state_.run.posted[at(slot)] != kNotYet) {
        out.push_back(shown - state_.run.posted[at(slot)]);
      } else if (state_.waits[at(slot)] == 0) {
        const Slot& place = program.slots[at(slot)];
        state_.launch_bound[at(program.lanes[at(place.lane)].rank)] = state_.now;
        out.push_back(kUnposted);
        out.push_back(state_.launch_time(place) - state_.now);
      } else {
        out.push_back(kUnposted);
        out.push_back(kUnposted - state_.waits[at(slot)]);
      }
    }
    if (phase == Phase::kWaiting) continue;
    out.push_back(shown - state_.run.start[at(id)]);
    if (phase != Phase::kFlowing) continue;
    const Flowing& flow = state_.flowing[at(state_.live[at(id)].flow)];
    out.push_back(std::bit_cast<std::int64_t>(flow.remaining));
    out.push_back(std::bit_cast<std::int64_t>(flow.rate));
    out.push_back(state_.now - flow.since);
    out.push_back(flow.end - state_.now);
  }
}

bool Fold::launches_keep_pace(const Watch& watch, const Past& past, std::int32_t cycle) const {
  const Picoseconds cost = state_.program.launch_cost;
  if (cost == 0) return true;
  for (std::size_t rank = 0; rank < watch.launches.size(); ++rank) {
    if (watch.launches[rank] == kUneven) return false;
    const Picoseconds launching = cycle * watch.launches[rank] * cost;
    const Picoseconds period = state_.now - past.time;
    const bool bound = state_.launch_bound[rank] >= past.time;
    if (bound ? launching != period : launching > period) return false;
  }
  return true;
}

/// Whether what ranks ahead have already done of this copy and later ones came one period after the same a cycle before: they may
/// have come to their pace only within the period.
bool Fold::leaders_repeat(const Section& section, std::int32_t copy, std::int32_t cycle, Picoseconds period) const {
  const Program& program = state_.program;
  const auto repeats = [&](const std::vector<Picoseconds>& times, std::size_t index, std::size_t one_cycle_before) {
    return times[index] == kNotYet || times[index] == times[one_cycle_before] + period;
  };
  for (ActivityId id = id_in(section, copy, 0); id < id_in(section, section.copies, 0); ++id) {
    const std::size_t before = at(id - cycle * section.stride);
    if (!repeats(state_.run.start, at(id), before) || !repeats(state_.run.end, at(id), before)) return false;
    const SlotId slot = program.activities[at(id)].first_slot, slot_before = program.activities[before].first_slot;
    for (std::uint16_t i = 0; i < program.activities[at(id)].slots; ++i) {
      if (!repeats(state_.run.posted, at(slot + i), at(slot_before + i))) return false;
    }
  }
  return true;
}

/// The times of activities of copies before `copy` that have not ended: one period after those of the copy before them. False
/// where there is no copy before them.
bool Fold::foretell(const Watch& watch, std::int32_t copy, std::int32_t cycle, Picoseconds period, Picoseconds skipped_time) {
  const Program& program = state_.program;
  const Section& section = program.sections[watch.section];
  std::map<std::pair<std::vector<Picoseconds>*, std::size_t>, Picoseconds> told;
  const auto tell = [&](std::vector<Picoseconds>& times, std::size_t index, std::size_t one_cycle_before) {
    Picoseconds time = times[index];
    if (time == kNotYet) {
      const auto found = told.find({&times, one_cycle_before});
      const Picoseconds before = found != told.end() ? found->second : times[one_cycle_before];
      if (before == kNotYet) return false;
      time = before + period;
    }
    told[{&times, index}] = time;
    late_.push_back({&times, index, time, skipped_time, watch.section});
    return true;
  };
  for (ActivityId id = section.first; id < id_in(section, copy, 0); ++id) {
    if (state_.live[at(id)].phase == Phase::kDone) continue;
    const ActivityId before = id - cycle * section.stride;
    if (before < section.first) return false;
    const Activity& activity = program.activities[at(id)];
    bool known = tell(state_.run.start, at(id), at(before)) && tell(state_.run.end, at(id), at(before));
    for (std::uint16_t i = 0; i < activity.slots && known; ++i) {
      known = tell(state_.run.posted, at(activity.first_slot + i), at(program.activities[at(before)].first_slot + i));
    }
    if (!known) return false;
  }
  return true;
}

void Fold::jump(Watch& watch, const Past& past, std::int32_t copy) {
  const Program& program = state_.program;
  const Section& section = program.sections[watch.section];
  const std::int32_t cycle = copy - past.copy;
  const Picoseconds period = state_.now - past.time;
  const std::int32_t skipped = section.stands_for - section.copies;
  const std::int32_t periods = skipped / cycle;
  if (static_cast<double>(periods) * static_cast<double>(period) + static_cast<double>(state_.shift) > kLongestRun) return;
  const Picoseconds skipped_time = periods * period;
  const std::size_t late_before = late_.size();
  if (!leaders_repeat(section, copy, cycle, period) || !foretell(watch, copy, cycle, period, skipped_time)) {
    late_.resize(late_before);
    return;
  }
  // What has a time already and goes on, or belongs to this copy and later ones, moves with the clock.
  const auto move = [&](Picoseconds& time) {
    if (time != kNotYet) time += skipped_time;
  };
  const auto move_activity = [&](ActivityId id) {
    const Activity& activity = program.activities[at(id)];
    move(state_.run.start[at(id)]);
    move(state_.run.end[at(id)]);
    for (SlotId slot = activity.first_slot; slot < activity.first_slot + activity.slots; ++slot)
      move(state_.run.posted[at(slot)]);
  };
  const ActivityId from = id_in(section, copy, 0);
  const ActivityId end = id_in(section, section.copies, 0);
  for (ActivityId id = from; id < end; ++id) move_activity(id);
  for (const ActivityId id : state_.touched) {
    if (id < from || id >= end) move_activity(id);
  }
  const std::vector<Picoseconds> busy = busy_now();
  for (std::size_t r = 0; r < busy.size(); ++r) {
    state_.share.add_busy(static_cast<ResourceId>(r), periods * (busy[r] - past.busy[r]));
  }
  if (program.launch_cost > 0) {
    LaunchShift later{section.first, {}};
    for (const std::int64_t launches : watch.launches) later.per_rank.push_back(skipped * launches * program.launch_cost);
    state_.launch_shifts.push_back(std::move(later));
  }
  state_.shift += skipped_time;
  state_.run.jumps.push_back({static_cast<std::int32_t>(watch.section), copy - 1, skipped, period, cycle});
  watch.jumped = true;
}

void Fold::at_markers() {
  std::sort(state_.started_markers.begin(), state_.started_markers.end());
  for (const ActivityId id : state_.started_markers) {
    for (Watch& watch : watches_) {
      const Section& section = state_.program.sections[watch.section];
      if (watch.jumped || id < section.first || id >= id_in(section, section.copies, 0)) continue;
      const std::int32_t copy = (id - section.first) / section.stride;
      snapshot(section, copy, watch.current);
      const std::int32_t longest = std::min(section.longest_cycle, copy);
      for (std::int32_t cycle = 1; cycle <= longest && !watch.jumped; ++cycle) {
        const Past& past = watch.past[at((copy - cycle) % section.longest_cycle)];
        if (past.copy != copy - cycle || past.time == state_.now || (section.stands_for - section.copies) % cycle != 0) continue;
        if (past.state == watch.current && launches_keep_pace(watch, past, cycle)) jump(watch, past, copy);
      }
      if (watch.jumped) continue;
      Past& past = watch.past[at(copy % section.longest_cycle)];
      past.copy = copy;
      past.time = state_.now;
      past.busy = busy_now();
      std::swap(past.state, watch.current);
    }
  }
  state_.started_markers.clear();
}

Problems Fold::finish() {
  std::vector<bool> failed(state_.program.sections.size(), false);
  for (const Watch& watch : watches_) failed[watch.section] = !watch.jumped;
  for (const Late& late : late_) {
    Picoseconds& time = (*late.times)[late.index];
    if (time != late.time + late.shift) failed[late.section] = true;
    time = late.time;
  }
  Problems problems;
  for (std::size_t i = 0; i < failed.size(); ++i) {
    if (failed[i]) problems.push_back(without_period(state_.program, state_.program.sections[i]));
  }
  return problems;
}

}  // namespace cpfit::engine
