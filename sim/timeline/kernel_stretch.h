// Who made a kernel slower. Internal to exposure.
#pragma once

#include <vector>

#include "sim/timeline/history.h"

namespace cpfit::timeline {

/// A kernel on a compute lane, or a communication on any lane of the same rank.
struct RankSpan {
  Instance instance;
  SlotId slot = kNone;
  Picoseconds posted = 0, start = 0, end = 0;
};

/// A part of a kernel's stretch, and the communication that took it.
struct StretchPart {
  Instance taker;
  Picoseconds time = 0;
};

/// One rank's communication, lane by lane, for look-up by time.
class Takers {
 public:
  explicit Takers(const History& history) : history_(&history) {}
  void add_lane(std::vector<RankSpan> in_order) { lanes_.push_back({std::move(in_order), 0}); }

  /// The stretch of `kernel` (running longer than undisturbed), split over those that took from it, in order of their posting.
  /// A moment's share is what was then held or drawn of the resources that the kernel draws on, as a part of their capacity; it
  /// goes to the first posted. `others` are kernels of the rank that overlap this one: moments with two kernels go to nobody.
  /// Valid until the next call. Quick where kernels are asked for in order of time.
  [[nodiscard]] const std::vector<StretchPart>& split(const RankSpan& kernel, const std::vector<RankSpan>& others);

 private:
  struct Take {
    std::size_t taker = 0;  // index of the communication concerned
    Picoseconds from = 0, to = 0;
    double share = 0;
  };
  struct Lane {
    std::vector<RankSpan> spans;
    std::size_t first = 0;  // that had not ended when the kernel of the last call began
  };
  void takes_of(const RankSpan& transfer, const RankSpan& kernel, std::size_t taker);
  void find_takers(const RankSpan& kernel);
  const History* history_;
  std::vector<Lane> lanes_;
  // Of the call at hand; kept, because most kernels of a ring ask.
  std::vector<const RankSpan*> takers_;
  std::vector<Take> takes_;
  std::vector<Picoseconds> bounds_, longest_;
  std::vector<double> weight_;
  std::vector<StretchPart> parts_;
};

}  // namespace cpfit::timeline
