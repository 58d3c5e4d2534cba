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
  void add_lane(std::vector<RankSpan> in_order) { lanes_.push_back(std::move(in_order)); }

  /// The stretch of `kernel` (running longer than undisturbed), split over those that took from it, in order of their posting.
  /// A moment's share is what was then held or drawn of the resources that the kernel draws on, as a part of their capacity; it
  /// goes to the first posted. `others` are kernels of the rank that overlap this one: moments with two kernels go to nobody.
  [[nodiscard]] std::vector<StretchPart> split(const RankSpan& kernel, const std::vector<RankSpan>& others) const;

 private:
  struct Take {
    std::size_t taker = 0;  // index of the communication concerned
    Picoseconds from = 0, to = 0;
    double share = 0;
  };
  void takes_of(const RankSpan& transfer, const RankSpan& kernel, std::size_t taker, std::vector<Take>& takes) const;
  const History* history_;
  std::vector<std::vector<RankSpan>> lanes_;
};

}  // namespace cpfit::timeline
