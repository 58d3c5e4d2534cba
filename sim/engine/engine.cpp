#include "sim/engine/engine.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "model/quantity/index.h"
#include "sim/engine/fold.h"
#include "sim/engine/state.h"
#include "sim/engine/trouble.h"

namespace cpfit::engine {

namespace {

// Beyond this the clock could overflow: 2^61 ps, 26 days.
constexpr Picoseconds kLongest = Picoseconds{1} << 61;

/// amount / rate, rounded upward.
Picoseconds time_of(double amount, double rate) {
  const double exact = amount / rate;
  if (!(exact < static_cast<double>(kLongest))) return kLongest;
  const Picoseconds below = static_cast<Picoseconds>(exact);
  return below + (static_cast<double>(below) < exact ? 1 : 0);
}

std::uint64_t key_of(ActivityId activity) { return static_cast<std::uint64_t>(static_cast<std::uint32_t>(activity)) << 32U; }
std::uint64_t key_of(ActivityId activity, SlotId slot) { return key_of(activity) | (static_cast<std::uint32_t>(slot) + 1U); }

/// Moves a State from its beginning to its end. Everything that happens at an event is inline in instants(): a call saves and
/// restores more than most of them do. `kFolding`: whether a section is to be folded, which few programs have.
template <bool kFolding>
class Engine {
 public:
  explicit Engine(State& state)
      : s_(state),
        program_(state.program),
        activities_(program_.activities.data()),
        slots_(program_.slots.data()),
        waits_(state.waits.data()),
        live_(state.live.data()),
        start_(state.run.start.data()),
        end_(state.run.end.data()),
        posted_(state.run.posted.data()),
        released_(program_.released.data()),
        release_begin_(program_.release_begin.data()),
        large_(program_.slots.size() > kLarge) {}

  void begin() {
    for (const SlotId slot : program_.first_of_lane) {
      if (slot != kNone && waits_[at(slot)] == 0) ready(slot);
    }
    for (const ActivityId activity : s_.without_lane) start(activity);
    settle();
  }

  /// All events of up to `most` instants, and the rates that follow from them; ends where a section may be folded. False when the
  /// clock has come to its end or there is no event any more.
  [[gnu::flatten]] bool instants(std::uint32_t most) {
    for (; most > 0; --most) {
      if (s_.queue.empty()) return false;
      s_.now = s_.queue.next_time();
      shown_ = s_.now + s_.shift;
      do {
        const Event event = s_.queue.pop();
        if (large_) fetch_next();
        handle(event);
      } while (s_.queue.next_time() == s_.now);
      settle();
      if (shown_ >= kLongest) return false;
      if constexpr (kFolding) {
        if (!s_.started_markers.empty()) return true;
      }
    }
    return true;
  }

 private:
  void handle(const Event& event) {
    const ActivityId activity = static_cast<ActivityId>(event.key >> 32U);
    const std::uint32_t slot = static_cast<std::uint32_t>(event.key);
    if (slot != 0) {
      wait_for_launch(static_cast<SlotId>(slot - 1));
      post(static_cast<SlotId>(slot - 1), slots_[slot - 1]);
      return;
    }
    const Live live = live_[at(activity)];
    switch (live.phase) {
      case Phase::kFixed:
        begin_flow(activity, activities_[at(activity)]);
        return;
      case Phase::kFlowing: {
        Flowing& flow = s_.flowing[at(live.flow)];
        if (event.time != flow.queued) return;  // an earlier event has taken its place
        if (event.time != flow.end) {           // it was slowed since
          flow.queued = flow.end;
          s_.queue.push({flow.end, event.key});
          return;
        }
        s_.share.remove(live.flow, s_.now);
        break;
      }
      case Phase::kAlone:
        break;
      case Phase::kWaiting:
      case Phase::kDone:
        return;
    }
    finish(activity);
  }

  /// Asks memory for what the next events will want: their activities while they are among the next four of the queue, the slots
  /// when they are the first.
  void fetch_next() const {
    const std::size_t queued = std::min<std::size_t>(s_.queue.size(), 4);
    if (queued == 0) return;
    const ActivityId next = static_cast<ActivityId>(s_.queue.peek(0).key >> 32U);
    const SlotId slot = activities_[at(next)].first_slot;
    __builtin_prefetch(&slots_[at(slot)]);
    const std::uint32_t released = program_.release_begin[at(next)];
    if (released < program_.released.size()) __builtin_prefetch(&program_.released[released]);
    for (std::size_t i = 0; i < queued; ++i) {
      const std::size_t activity = at(s_.queue.peek(i).key >> 32U);
      __builtin_prefetch(&activities_[activity]);
      __builtin_prefetch(&program_.release_begin[activity]);
      __builtin_prefetch(&live_[activity]);
      __builtin_prefetch(&end_[activity], 1);
    }
  }

  void wait_for_launch(SlotId slot) {
    if constexpr (kFolding) s_.launch_bound[at(program_.lanes[at(slots_[at(slot)].lane)].rank)] = s_.now;
  }

  void release(SlotId slot) {
    if constexpr (kFolding) s_.touch(slots_[at(slot)].activity);
    if (--waits_[at(slot)] != 0) return;
    free_slots_[free_++] = slot;
    if (free_ == kFreeSlots) ready_all();
  }

  [[gnu::noinline]] void ready_all() {
    for (std::size_t i = 0; i < free_; ++i) ready(free_slots_[i]);
    free_ = 0;
  }

  void ready(SlotId id) {
    const Slot& slot = slots_[at(id)];
    if constexpr (kFolding) s_.touch(slot.activity);
    if (slot.launch > 0 && program_.launch_cost > 0) {
      const Picoseconds launched = s_.launch_time(slot);
      if (launched > s_.now) {
        wait_for_launch(id);
        s_.queue.push({launched, key_of(slot.activity, id)});
        return;
      }
    }
    post(id, slot);
  }

  void post(SlotId id, const Slot& slot) {
    posted_[at(id)] = shown_;
    if (slot.hold >= 0) {
      const Hold& hold = program_.holds[at(slot.hold)];
      s_.share.take(hold.resource, hold.amount);
    }
    if (--live_[at(slot.activity)].unposted == 0) start(slot.activity);
  }

  void start(ActivityId id) {
    const Activity& activity = activities_[at(id)];
    start_[at(id)] = shown_;
    if constexpr (kFolding) {
      s_.touch(id);
      if (live_[at(id)].marker != 0) s_.started_markers.push_back(id);
    }
    const bool flows = activity.amount > 0.0;
    if (flows && activity.pattern != kNone && s_.share.draws(activity.pattern)) {
      if (activity.fixed == 0) {
        begin_flow(id, activity);
      } else {
        live_[at(id)].phase = Phase::kFixed;
        s_.queue.push({s_.now + activity.fixed, key_of(id)});
      }
      return;
    }
    live_[at(id)].phase = Phase::kAlone;
    s_.queue.push({s_.now + activity.fixed + (flows ? time_of(activity.amount, activity.cap) : 0), key_of(id)});
  }

  void begin_flow(ActivityId id, const Activity& activity) {
    const FlowId flow = s_.share.add(activity.pattern, activity.cap, s_.now);
    if (at(flow) >= s_.flowing.size()) s_.flowing.resize(at(flow) + 1);
    live_[at(id)].flow = flow;
    live_[at(id)].phase = Phase::kFlowing;
    if (s_.share.rate(flow) == 0.0) {  // to be solved for
      s_.flowing[at(flow)] = {activity.amount, activity.cap, s_.now, kNever, kNever, id};
      s_.begun.push_back(flow);
      return;
    }
    const Picoseconds end = s_.now + time_of(activity.amount, activity.cap);
    s_.flowing[at(flow)] = {activity.amount, activity.cap, s_.now, end, end, id};
    s_.queue.push({end, key_of(id)});
  }

  void finish(ActivityId id) {
    const Activity& activity = activities_[at(id)];
    end_[at(id)] = shown_;
    s_.run.makespan = shown_;
    live_[at(id)].phase = Phase::kDone;
    ++s_.ended;
    if constexpr (kFolding) s_.forget(id);
    if (activity.host_reads != 0) read_by_hosts(activity);
    const Slot* const last = slots_ + activity.first_slot + activity.slots;
    for (const Slot* slot = slots_ + activity.first_slot; slot != last; ++slot) {
      if (slot->hold >= 0) {
        const Hold& hold = program_.holds[at(slot->hold)];
        s_.share.give_back(hold.resource, hold.amount);
      }
      if (slot->next != kNone) release(slot->next);
    }
    const SlotId* const end = released_ + release_begin_[at(id) + 1];
    for (const SlotId* slot = released_ + release_begin_[at(id)]; slot != end; ++slot) release(*slot);
    for (std::size_t i = 0; i < free_; ++i) ready(free_slots_[i]);
    free_ = 0;
  }

  /// Behind a read launches are counted anew, and what jumps skipped before lies behind the host.
  [[gnu::noinline]] void read_by_hosts(const Activity& activity) {
    for (SlotId slot = activity.first_slot; slot < activity.first_slot + activity.slots; ++slot) {
      const std::size_t rank = at(program_.lanes[at(slots_[at(slot)].lane)].rank);
      if (s_.read.size() <= rank) s_.read.resize(rank + 1, 0);
      s_.read[rank] = shown_;
      for (LaunchShift& later : s_.launch_shifts) later.per_rank[rank] = 0;
    }
  }

  /// Rates for the flows of this instant; ends for those that have another rate than before.
  void settle() {
    for (const FlowId id : s_.share.settle()) {
      Flowing& flow = s_.flowing[at(id)];
      const double rate = s_.share.rate(id);
      if (flow.queued != kNever) {
        const double moved = flow.rate * static_cast<double>(s_.now - flow.since);
        flow.remaining = std::max(0.0, flow.remaining - moved);
        flow.since = s_.now;
        flow.rate = rate;
        flow.end = s_.now + time_of(flow.remaining, rate);
        if (flow.end < flow.queued) {
          flow.queued = flow.end;
          s_.queue.push({flow.end, key_of(flow.activity)});
        }
      } else {
        flow.rate = rate;  // began now: below
      }
    }
    for (const FlowId id : s_.begun) {
      Flowing& flow = s_.flowing[at(id)];
      flow.end = s_.now + time_of(flow.remaining, flow.rate);
      flow.queued = flow.end;
      s_.queue.push({flow.end, key_of(flow.activity)});
    }
    s_.begun.clear();
  }

  static constexpr std::size_t kLarge = 65536;  // slots: beyond, activities wait for memory
  State& s_;
  const Program& program_;
  const Activity* const activities_;
  const Slot* const slots_;
  std::int32_t* const waits_;
  Live* const live_;
  Picoseconds* const start_;
  Picoseconds* const end_;
  Picoseconds* const posted_;
  const SlotId* const released_;
  const std::uint32_t* const release_begin_;
  const bool large_;
  Picoseconds shown_ = 0;  // now, as times in the Run
  // Slots that the end of an activity left nothing to wait for: one place in the code readies them all.
  static constexpr std::size_t kFreeSlots = 32;
  std::array<SlotId, kFreeSlots> free_slots_;
  std::size_t free_ = 0;
};

/// To the end of the program, or to where it was stopped; the problem then.
template <bool kFolding>
Problems move_on(State& state, Fold& fold, const std::atomic<bool>* stop) {
  const Program& program = state.program;
  Engine<kFolding> engine(state);
  engine.begin();
  constexpr std::uint32_t kLook = 4096;  // instants: a millisecond or so
  do {
    if constexpr (kFolding) {
      if (!state.started_markers.empty()) fold.at_markers();
    }
    if (stop != nullptr && stop->load(std::memory_order_relaxed)) {
      return {Problem{"engine.stopped", "", "the simulation was stopped", "simulate it again"}};
    }
  } while (engine.instants(kLook));
  if (state.now + state.shift >= kLongest) return {too_long(program, state.run.start, state.run.end)};
  return {};
}

/// What each resource has passed: amounts are added in 2^-20ths, exactly, so that folded and unfolded programs agree to the bit.
std::vector<double> drawn_in_all(const State& state) {
  const Program& program = state.program;
  const std::size_t patterns = program.pattern_begin.empty() ? 0 : program.pattern_begin.size() - 1;
  __extension__ typedef __int128 Exact;
  std::vector<Exact> moved(patterns, 0);
  const auto add = [&](const Activity& activity, std::int64_t times) {
    if (!(activity.amount > 0.0) || activity.pattern == kNone) return;
    const double parts = activity.amount * 1048576.0;   // exact, by a power of two
    constexpr double kOneWord = 4611686018427387904.0;  // 2^62: below, a conversion is one instruction
    moved[at(activity.pattern)] +=
        parts < kOneWord ? Exact{static_cast<std::int64_t>(parts)} * times : static_cast<Exact>(parts) * times;
  };
  for (const Activity& activity : program.activities) add(activity, 1);
  for (const Jump& jump : state.run.jumps) {
    const Section& section = program.sections[at(jump.section)];
    for (std::int32_t i = 0; i < section.stride; ++i) add(program.activities[at(section.first + i)], jump.skipped);
  }
  std::vector<double> drawn(program.resources.size(), 0.0);
  for (std::size_t p = 0; p < patterns; ++p) {
    const double amount = std::ldexp(static_cast<double>(moved[p]), -20);
    for (std::uint32_t u = program.pattern_begin[p]; u < program.pattern_begin[p + 1]; ++u) {
      drawn[at(program.uses[u].resource)] += (program.uses[u].weight + program.uses[u].surplus) * amount;
    }
  }
  return drawn;
}

}  // namespace

State::State(const Program& p) : program(p), share(p.resources, p.uses, p.pattern_begin) {
  run.start.assign(p.activities.size(), kNotYet);
  run.end.assign(p.activities.size(), kNotYet);
  run.posted.assign(p.slots.size(), kNotYet);
  waits.resize(p.slots.size());
  for (std::size_t s = 0; s < p.slots.size(); ++s) waits[s] = p.slots[s].waits;
  live.resize(p.activities.size());
  for (std::size_t a = 0; a < live.size(); ++a) {
    live[a].unposted = p.activities[a].slots;
    if (p.activities[a].slots == 0) without_lane.push_back(static_cast<ActivityId>(a));
  }
}

Picoseconds State::launch_time(const Slot& slot) const {
  if (slot.launch == 0) return 0;
  const std::size_t rank = at(program.lanes[at(slot.lane)].rank);
  Picoseconds launched = slot.launch * program.launch_cost - shift;
  if (rank < read.size()) launched += read[rank];
  for (const LaunchShift& later : launch_shifts) {
    if (slot.activity >= later.first) launched += later.per_rank[rank];
  }
  return launched;
}

Outcome<Run> run(const Program& program, const std::atomic<bool>* stop) {
  Problems dead = without_rate(program);
  if (!dead.empty()) return dead;
  State state(program);
  Fold fold(state);
  Problems cut_short = state.folding ? move_on<true>(state, fold, stop) : move_on<false>(state, fold, stop);
  if (!cut_short.empty()) return cut_short;
  if (state.ended != static_cast<std::int64_t>(program.activities.size())) {
    std::vector<std::uint8_t> done(program.activities.size());
    for (std::size_t a = 0; a < done.size(); ++a) done[a] = state.live[a].phase == Phase::kDone ? 1 : 0;
    return waits_in_cycle(program, done);
  }
  Problems unfolded = fold.finish();
  if (!unfolded.empty()) return unfolded;
  state.run.events = static_cast<std::int64_t>(program.slots.size() + 2 * program.activities.size());
  state.run.drawn = drawn_in_all(state);
  for (std::size_t r = 0; r < program.resources.size(); ++r) {
    state.run.busy.push_back(state.share.busy(static_cast<ResourceId>(r), state.now));
  }
  return std::move(state.run);
}

}  // namespace cpfit::engine
