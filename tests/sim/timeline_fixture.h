// Little programs and their runs, worked out without the engine: every activity takes the time it is told to, or the one it takes
// undisturbed; it starts when all its slots are posted. Ids ascend in time order of dependence, so one pass suffices.
#pragma once

#include <algorithm>
#include <map>
#include <string>

#include "sim/engine/engine.h"
#include "sim/engine/program_builder.h"
#include "sim/timeline/history.h"

namespace cpfit::timeline {

using engine::LaneKind;
using engine::TrafficAxis;
using engine::Work;

inline engine::Run by_hand(const engine::Program& program, const std::map<engine::ActivityId, Picoseconds>& takes = {}) {
  engine::Run run;
  const std::size_t count = program.activities.size();
  run.start.assign(count, 0);
  run.end.assign(count, 0);
  run.posted.assign(program.slots.size(), 0);
  run.drawn.assign(program.resources.size(), 0.0);
  run.busy.assign(program.resources.size(), 0);
  for (std::size_t a = 0; a < count; ++a) {
    const engine::Activity& activity = program.activities[a];
    for (engine::SlotId s = activity.first_slot; s < activity.first_slot + activity.slots; ++s) {
      const std::size_t slot = static_cast<std::size_t>(s);
      run.posted[slot] = std::max(run.posted[slot], program.slots[slot].launch * program.launch_cost);
      run.start[a] = std::max(run.start[a], run.posted[slot]);
    }
    const auto told = takes.find(static_cast<engine::ActivityId>(a));
    const Picoseconds alone = activity.fixed + static_cast<Picoseconds>(std::ceil(activity.amount / activity.cap));
    run.end[a] = run.start[a] + (told == takes.end() ? alone : told->second);
    run.makespan = std::max(run.makespan, run.end[a]);
    const auto release = [&](engine::SlotId s) {
      Picoseconds& posted = run.posted[static_cast<std::size_t>(s)];
      posted = std::max(posted, run.end[a]);
    };
    for (std::uint32_t r = program.release_begin[a]; r < program.release_begin[a + 1]; ++r) release(program.released[r]);
    for (engine::SlotId s = activity.first_slot; s < activity.first_slot + activity.slots; ++s) {
      const engine::SlotId next = program.slots[static_cast<std::size_t>(s)].next;
      if (next != engine::kNone) release(next);
    }
  }
  return run;
}

/// Writes programs in few words. Times in picoseconds; a transfer moves one byte per picosecond.
struct Script {
  engine::ProgramBuilder builder;
  engine::ActivityId kernel(std::int32_t rank, Picoseconds time, Work work = Work::kGemm, LaneKind lane = LaneKind::kCompute,
                            std::int32_t layer = -1) {
    engine::Spec spec;
    spec.tag = builder.tag({"kernel", work, TrafficAxis::kNone, engine::StepPass::kForward});
    spec.fixed = time;
    spec.layer = layer;
    return builder.add(spec, {builder.lane(rank, lane)});
  }
  engine::ActivityId message(std::int32_t from, LaneKind out, std::int32_t to, LaneKind in, double bytes, TrafficAxis axis,
                             std::int32_t layer = -1, engine::PatternId pattern = kNone) {
    engine::Spec spec;
    spec.tag = builder.tag({"message", Work::kMessage, axis, engine::StepPass::kForward});
    spec.amount = bytes;
    spec.layer = layer;
    spec.pattern = pattern;
    return builder.add(spec, {builder.lane(from, out), builder.lane(to, in)});
  }
  engine::ActivityId ring(std::int32_t from, std::int32_t to, double bytes, std::int32_t layer = -1) {
    return message(from, LaneKind::kCpSend, to, LaneKind::kCpReceive, bytes, TrafficAxis::kCp, layer);
  }
};

}  // namespace cpfit::timeline
