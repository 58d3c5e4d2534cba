// Everything that changes while a program runs. Private to the engine: engine.cpp moves it on, fold.cpp compares it with itself.
//
// The engine's own clock (`now`) never jumps: what a jump skips is in `shift`, added whenever a time is written to the Run. So
// the queue, the flows and their rates need no change when a section is folded.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/engine/engine.h"
#include "sim/engine/event_queue.h"
#include "sim/engine/fair_share.h"

namespace cpfit::engine {

enum class Phase : std::uint8_t {
  kWaiting,  // some slot is not posted
  kFixed,    // spends its fixed part, flows afterwards
  kFlowing,
  kAlone,  // draws on nothing: its end is known
  kDone
};

inline constexpr Picoseconds kNever = INT64_MAX;
inline constexpr Picoseconds kNotYet = -1;  // in Run's times

/// Where an activity is. Together in eight bytes: large programs wait for memory more than for anything else.
struct Live {
  FlowId flow = kNone;         // while flowing
  std::uint16_t unposted = 0;  // slots still to be posted
  Phase phase = Phase::kWaiting;
  std::uint8_t marker = 0;  // of a section that is to be folded
};

/// What is left of an activity that flows.
struct Flowing {
  double remaining = 0;         // amount at `since`
  double rate = 0;              // from then on
  Picoseconds since = 0;        // the last change of its rate
  Picoseconds end = kNever;     // at that rate
  Picoseconds queued = kNever;  // the event in the queue that counts; never later than `end`
  ActivityId activity = 0;
};

/// From where on launches come later than the program's numbers say: a jump skipped copies, and their launches with them.
struct LaunchShift {
  ActivityId first = 0;               // of the section: slots of earlier activities are not concerned
  std::vector<Picoseconds> per_rank;  // (ranks)
};

struct State {
  explicit State(const Program& program);

  const Program& program;
  Run run;
  FairShare share;
  EventQueue queue;
  Picoseconds now = 0;
  Picoseconds shift = 0;
  std::int64_t ended = 0;

  std::vector<std::int32_t> waits;       // (slots) ends still to come
  std::vector<Live> live;                // (activities)
  std::vector<Flowing> flowing;          // (flow ids)
  std::vector<ActivityId> without_lane;  // begin at once
  std::vector<FlowId> begun;             // flows that began at this instant
  std::vector<Picoseconds> read;  // (ranks) when the host has read its last result, as times in the Run; empty before the first

  // Only while a section is to be folded.
  bool folding = false;
  std::vector<ActivityId> touched;          // not ended, but no longer as at the beginning
  std::vector<std::int32_t> touched_place;  // (activities) in `touched`, kNone
  std::vector<ActivityId> started_markers;  // at this instant
  std::vector<Picoseconds> launch_bound;    // (ranks) when a slot last waited for nothing but its launch, kNotYet
  std::vector<LaunchShift> launch_shifts;   // one per jump

  void touch(ActivityId activity) {
    std::int32_t& place = touched_place[static_cast<std::size_t>(activity)];
    if (place != kNone) return;
    place = static_cast<std::int32_t>(touched.size());
    touched.push_back(activity);
  }
  void forget(ActivityId activity) {
    std::int32_t& place = touched_place[static_cast<std::size_t>(activity)];
    if (place == kNone) return;
    touched[static_cast<std::size_t>(place)] = touched.back();
    touched_place[static_cast<std::size_t>(touched.back())] = place;
    touched.pop_back();
    place = kNone;
  }

  /// When the host has launched the slot, on the engine's clock; 0 where no host launches it.
  [[nodiscard]] Picoseconds launch_time(const Slot& slot) const;
};

}  // namespace cpfit::engine
