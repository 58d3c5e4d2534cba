// What the engine runs: activities on lanes, with the resources they draw on. A program is data; schedules write it
// (program_builder.h), the engine reads it, the timeline names its results.
//
//   lane      a stream in order: compute, a communicator's stream, a copy engine, the host's launch thread. One activity at a
//   time. activity  a kernel (one lane), a message (the lanes of both ends), a collective (the lanes of all members). slot an
//   activity's place on one lane. It is *posted* when the lane's previous activity has ended, everything it waits
//             for has ended, and the host has launched it. From then on it may hold resources (a communication kernel keeps its
//             SMs while it waits for its peer). The activity *starts* when all its slots are posted (rendezvous) and ends on all
//             its lanes at once.
//   resource  what running activities share max-min fairly: a directed link, the SMs of a GPU, its memory bandwidth.
//
// An activity first spends `fixed` (start-up latency; shares nothing), then `amount` flows at a rate of at most `cap`, drawing
// weight * rate on each resource of its pattern. Kernels: amount = picoseconds of work at full speed, cap = 1, so an undisturbed
// kernel takes exactly its time. Transfers: amount in bytes, cap in bytes per picosecond (what the channel attains alone).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/engine/clock.h"

namespace cpfit::engine {

using LaneId = std::int32_t;
using ActivityId = std::int32_t;
using SlotId = std::int32_t;
using ResourceId = std::int32_t;
using PatternId = std::int32_t;
using HoldId = std::int32_t;
using TagId = std::uint16_t;

enum class LaneKind : std::uint8_t {
  kCompute,      // current stream
  kComputeSide,  // TransformerEngine's second attention stream
  kCpSend,
  kCpReceive,
  kCpSecond,  // a second CP communicator's stream (between windows), and CP collectives
  kCpSecondReceive,
  kCpThird,  // dKV
  kCpThirdReceive,
  kTp,
  kDpReduce,
  kDpReplica,  // a stream of its own for the all-reduce over replicas of sharded states
  kDpGather,
  kPpSend,
  kPpReceive,
  kPpBackSend,
  kPpBackReceive,
  kOther
};
inline constexpr std::size_t kLaneKinds = static_cast<std::size_t>(LaneKind::kOther) + 1;

enum class Work : std::uint8_t {
  kAttention,
  kMerge,
  kGemm,
  kElementwise,
  kEmbedding,
  kHead,
  kOptimizer,
  kMessage,
  kCollective,
  kOther
};
enum class TrafficAxis : std::uint8_t { kNone, kCp, kTp, kPp, kDp, kForeign /* another job */ };
// After the enum with the same word, which g++ would otherwise call shadowed.
inline constexpr std::int32_t kNone = -1;  // no id
enum class StepPass : std::uint8_t { kForward, kBackward, kUpdate };

/// What a kind of activity is, for people and for sums. Few per program; activities refer to one.
struct Tag {
  std::string name;  // "attention 3", "send kv 2"
  Work work = Work::kOther;
  TrafficAxis axis = TrafficAxis::kNone;  // communication only
  StepPass pass = StepPass::kForward;
};

struct Lane {
  std::int32_t rank = 0;  // index into the ranks that the program simulates
  LaneKind kind = LaneKind::kCompute;
};

struct Resource {
  double capacity = 0;        // in the unit of the rates that draw on it; bytes per picosecond for links, 1 for a GPU's SMs
  std::int32_t link = kNone;  // index into Topology::links() for a link
  std::int32_t rank = kNone;  // for a GPU's own resource
};

/// A draw on one resource per unit of rate. `surplus`: what passes it beside, per unit of amount, without a claim on its capacity
/// (a collective that was measured faster than the link's messages). Counts in Run::drawn alone.
struct Use {
  ResourceId resource = kNone;
  double weight = 1.0;
  double surplus = 0.0;
};

/// Part of a resource taken from others while a slot is posted and its activity has not ended.
struct Hold {
  ResourceId resource = kNone;
  double amount = 0;
};

struct Activity {
  Picoseconds fixed = 0;
  double amount = 0;
  double cap = 1.0;
  PatternId pattern = kNone;  // kNone: draws on nothing, runs at cap
  SlotId first_slot = 0;
  std::uint16_t slots = 1;
  TagId tag = 0;
  std::int16_t layer = -1;        // of the model, -1 where none
  std::int16_t micro_batch = -1;  // -1 where none
  std::int16_t chunk = 0;         // virtual stage on the rank
  std::int16_t host_reads = 0;    // 1: the hosts of its ranks wait for its end before they launch on
};

struct Slot {
  ActivityId activity = 0;
  LaneId lane = 0;
  SlotId next = kNone;      // on the same lane
  std::int32_t waits = 0;   // ends it waits for: explicit ones, and its predecessor on the lane if there is one
  HoldId hold = -1;         // into Program::holds
  std::int32_t launch = 0;  // place in its rank's launch order, counted from the host's last read; 0: no host launches it
};

/// A block of activities that is repeated: copies of `stride` activities each, first at `first`. Copy c is the activities
/// [first + c*stride, first + (c+1)*stride), identical but for their ids and layer. The program holds `copies` of them and
/// stands for `stands_for` (>= copies). When the engine finds the same state at the beginning of two successive copies, it
/// jumps over the difference: exact, because a state determines its future. `marker` (relative to the block) is the activity
/// whose start is the beginning of a copy.
struct Section {
  ActivityId first = 0;
  std::int32_t stride = 0;
  std::int32_t copies = 1;
  std::int32_t stands_for = 1;
  std::int32_t marker = 0;
  /// How many copies a period may have at most. Above 1 (offsets between ranks can go round a ring for ever) only where the
  /// reader of the jumps looks at Jump::cycle; `stands_for - copies` must be a multiple of the cycle that is found, or there is
  /// no jump.
  std::int32_t longest_cycle = 1;
};

struct Program {
  std::vector<Lane> lanes;
  std::vector<Tag> tags;
  std::vector<Resource> resources;
  std::vector<Use> uses;                     // all patterns one after the other
  std::vector<std::uint32_t> pattern_begin;  // (patterns + 1) into uses
  std::vector<Hold> holds;
  std::vector<Activity> activities;
  std::vector<Slot> slots;
  std::vector<SlotId> released;              // slots that wait for an activity, all activities one after the other
  std::vector<std::uint32_t> release_begin;  // (activities + 1) into released
  std::vector<SlotId> first_of_lane;         // (lanes), kNone for an empty lane
  std::vector<Section> sections;             // disjoint, ascending
  /// Host launch thread: launch n (1-based, per rank) is done at n * launch_cost after the end of what the host read last
  /// (Activity::host_reads; the beginning where it read nothing). What is launched behind a read must wait for it. 0: launches
  /// cost nothing.
  Picoseconds launch_cost = 0;
};

}  // namespace cpfit::engine
