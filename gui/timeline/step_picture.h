// What the step timeline draws, as one immutable value: the lanes with their running sums and marks, which rank of the cluster
// each simulated rank is and whom it stands for, and which ranks do the same. Built once per simulation, away from the window's
// thread; everything in this folder reads it.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "gui/study/simulator.h"
#include "model/record/lane.h"

namespace cpfit::gui {

/// A bit set per span.
enum SpanMark : std::uint8_t {
  kNoMark = 0,
  kRecomputed = 1,  // a kernel of backward that repeats forward
  kCritical = 2,    // on the chain that makes the step as long as it is
};

/// One rank that the lanes show.
struct PictureRank {
  std::int64_t rank = 0;  // of the cluster
  std::int32_t node = 0, stage = 0;
  std::int32_t ring = 0;                 // ranks of one ring have the same number, by first rank
  std::int32_t ring_place = 0;           // 0 .. ring size - 1
  std::int32_t alike = 0;                // ranks whose lanes are equal but for the peers have the same number, the first's index
  std::int64_t exposed = 0;              // picoseconds of exposed communication on its lanes
  std::string title;                     // where it is no rank of the simulation: "recorded GPU 0"
  std::string note;                      // "ProfilerStep#551 of rank0.json.gz"
  std::vector<std::int64_t> stands_for;  // ranks of the cluster, ascending, `rank` among them
  std::vector<std::int32_t> lanes;  // into Timeline::lanes, in drawing order: compute, ring, TP, PP, DP, others; none is empty
};

struct StepPicture {
  Timeline timeline;
  std::vector<LaneSums> sums;                     // (lanes)
  std::vector<std::vector<std::uint8_t>> marks;   // (lanes)(spans), empty for a lane without marks
  std::vector<std::vector<double>> bytes_before;  // (lanes)(spans + 1), empty for a lane without bytes
  std::vector<PictureRank> ranks;
  std::int32_t last_rank = 0;                // index of the rank that ends last
  std::vector<std::int32_t> ring_steps;      // (names) steps of a numbered name ("attention 3": 8), 0 where it has no number
  std::shared_ptr<const StepTimeline> step;  // the simulation behind it; none for stored lanes
  std::vector<std::string> notes;            // sentences: which ranks stand for which

  [[nodiscard]] const SpanLane& lane(std::int32_t index) const { return timeline.lanes[static_cast<std::size_t>(index)]; }
  [[nodiscard]] bool marked(std::int32_t lane, std::size_t span, SpanMark mark) const {
    const std::vector<std::uint8_t>& own = marks[static_cast<std::size_t>(lane)];
    return span < own.size() && (own[span] & mark) != 0;
  }
  /// Rank of the cluster that a rank of the timeline is; the index itself beyond the list, -1 for -1.
  [[nodiscard]] std::int64_t cluster_rank(std::int32_t index) const;
  [[nodiscard]] std::size_t spans() const;
};

/// A simulated step; exposed tails, recomputed kernels and the critical path are marked. `gpus_per_node` places ranks on nodes.
[[nodiscard]] std::shared_ptr<const StepPicture> picture_of(std::shared_ptr<const StepTimeline> step, std::int32_t gpus_per_node);

/// Lanes as a store or an importer has them, their exposed tails already marked. Ranks beyond `places` are placed by index.
[[nodiscard]] std::shared_ptr<const StepPicture> picture_of(Timeline timeline, const std::vector<timeline::RankPlace>& places);

/// What a lane is for, in drawing order.
enum class LaneFamily : std::uint8_t { kCompute, kRing, kTp, kPp, kDp, kOther };
[[nodiscard]] LaneFamily family_of(const SpanLane& lane);
/// "compute", "ring send", "TP": the lane's name for people.
[[nodiscard]] std::string lane_title(const SpanLane& lane);

/// The number behind a name's last blank ("attention 3": 3), -1 where there is none.
[[nodiscard]] std::int32_t number_of(std::string_view name);

}  // namespace cpfit::gui
