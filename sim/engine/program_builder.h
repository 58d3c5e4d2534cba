// Writes a Program: lanes first, then activities in the order of their lanes. Aborts on our own mistakes (unknown ids).
#pragma once

#include <array>
#include <initializer_list>
#include <map>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "sim/engine/program.h"

namespace cpfit::engine {

/// What an activity is beyond its place: see Activity.
struct Spec {
  TagId tag = 0;
  Picoseconds fixed = 0;
  double amount = 0;
  double cap = 1.0;
  PatternId pattern = kNone;
  std::int32_t layer = -1;
  std::int32_t micro_batch = -1;
  std::int32_t chunk = 0;
};

class ProgramBuilder {
 public:
  LaneId lane(std::int32_t rank, LaneKind kind);                           // the rank's lane of that kind, made on first use
  [[nodiscard]] LaneId find_lane(std::int32_t rank, LaneKind kind) const;  // kNone when never made
  ResourceId resource(const Resource& resource);
  PatternId pattern(std::vector<Use> uses);  // equal patterns share an id; empty: kNone
  TagId tag(const Tag& tag);                 // equal tags share an id
  [[nodiscard]] const Tag& tag_of(TagId id) const { return program_.tags[id]; }
  HoldId hold(const Hold& hold);  // equal holds share an id

  /// Adds an activity at the end of each lane. `hold` applies to every slot (holds differ by rank: use the overload).
  ActivityId add(const Spec& spec, std::initializer_list<LaneId> lanes);
  ActivityId add(const Spec& spec, std::span<const LaneId> lanes, std::span<const HoldId> holds = {});

  /// The slot of `activity` on `lane` waits until `before` has ended. kNone for `before` is ignored.
  void wait(ActivityId activity, LaneId lane, ActivityId before);
  /// Every slot of `activity` waits for `before`.
  void wait(ActivityId activity, ActivityId before);
  /// The slot waits for the next launch of its rank's host thread; launches are numbered in the order of these calls. `kernels`
  /// are launched one after the other, the slot waits for the first.
  void launch(ActivityId activity, LaneId lane, std::int32_t kernels = 1);

  /// The hosts of all ranks of `activity` wait for its end: what they launch from here on is launched from then on.
  void host_reads(ActivityId activity);

  /// The place that writing has reached.
  struct Mark {
    ActivityId activity = 0;
    SlotId slot = 0;
    std::size_t wait = 0;
    std::vector<std::int32_t> launched;  // (ranks)
  };
  [[nodiscard]] Mark mark() const;
  /// What was written since `second` is what was written from `first` to `second`, one block later: the same activities on the
  /// same lanes, waiting for the same ones a block further on, or for the same ones before all that. Layer numbers may go on.
  [[nodiscard]] bool repeats(const Mark& first, const Mark& second) const;
  /// Writes the block since then `times` times more, as whoever wrote it would go on. It must repeat what was written before it.
  void repeat(const Mark& block, std::int32_t times);

  [[nodiscard]] ActivityId last_on(LaneId lane) const;  // kNone for an empty lane
  [[nodiscard]] ActivityId next_id() const { return static_cast<ActivityId>(program_.activities.size()); }
  void section(const Section& section);
  void launch_cost(Picoseconds cost) { program_.launch_cost = cost; }

  /// Room for about so many activities: large programs grow without being copied. Room that is not used costs no memory.
  void expect(std::int64_t activities);

  /// The finished program; the builder is empty afterwards.
  [[nodiscard]] Program take();

 private:
  [[nodiscard]] SlotId slot_of(ActivityId activity, LaneId lane) const;
  Program program_;
  std::vector<std::array<LaneId, kLaneKinds>> lane_of_;  // (ranks), kNone where never made
  std::map<std::vector<std::tuple<ResourceId, double, double>>, PatternId> pattern_of_;
  std::map<std::tuple<std::string, Work, TrafficAxis, StepPass>, TagId> tag_of_;
  std::map<std::pair<ResourceId, double>, HoldId> hold_of_;
  std::vector<SlotId> last_slot_;                     // (lanes)
  std::vector<std::pair<ActivityId, SlotId>> waits_;  // before, slot
  std::vector<std::int32_t> launched_;                // (ranks)
};

}  // namespace cpfit::engine
