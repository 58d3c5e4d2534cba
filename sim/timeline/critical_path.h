// The chain of activities that makes the step as long as it is: each began the moment the one before it ended. Shortening
// anything else gains nothing.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/timeline/history.h"

namespace cpfit::timeline {

enum class StartReason : std::uint8_t {
  kBegin,   // nothing: the step began
  kLane,    // the lane's previous activity had to end
  kWait,    // an explicit wait
  kLaunch,  // the host thread, which had been launching since it last read a result, or since the step began
};
[[nodiscard]] std::string_view name_of(StartReason reason);  // "begin", "lane", "wait", "launch"

struct CriticalLink {
  Instance instance;
  Picoseconds start = 0, end = 0;
  Picoseconds stretch = 0;                   // how much longer than undisturbed
  std::int32_t rank = 0;                     // the one whose lane was ready last
  Picoseconds launch = 0;                    // between the link before it and this one: the host's time (kLaunch)
  bool late_peer = false;                    // the rank that the next link runs on was ready earlier: rendezvous
  StartReason reason = StartReason::kBegin;  // why that lane was not ready before
};

struct CriticalSum {
  engine::TagId tag = 0;
  std::int64_t links = 0;
  Picoseconds time = 0, stretch = 0;
};

struct CriticalPath {
  std::vector<CriticalLink> links;  // in order of time, without gaps but their `launch`; the last one ends with the step
  Picoseconds launch = 0;           // the host thread's part, all of it
  std::vector<CriticalSum> sums;    // by time, longest first, then by tag; with `launch` they add up to the step
};

/// From the activity that ends with the step (of several the lowest), back by what each waited for last (History::cause).
[[nodiscard]] CriticalPath critical_path(const History& history);

/// "attention 3 (rank 0, layer 2, micro-batch 1): 1200 ps, 30 of them stretch; late peer, wait".
[[nodiscard]] std::string describe(const History& history, const CriticalLink& link);

}  // namespace cpfit::timeline
