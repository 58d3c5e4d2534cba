#include "sim/timeline/critical_path.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

namespace cpfit::timeline {

namespace {

Instance ending_last(const History& history) {
  const std::vector<Picoseconds>& ends = history.run().end;
  const auto last = std::max_element(ends.begin(), ends.end());  // the first of equals
  return history.held(static_cast<ActivityId>(last - ends.begin()));
}

std::vector<CriticalSum> sums_by_tag(const History& history, const std::vector<CriticalLink>& links) {
  std::vector<CriticalSum> sums(history.program().tags.size());
  for (std::size_t tag = 0; tag < sums.size(); ++tag) sums[tag].tag = static_cast<engine::TagId>(tag);
  for (const CriticalLink& link : links) {
    CriticalSum& sum = sums[history.activity(link.instance).tag];
    ++sum.links;
    sum.time += link.end - link.start;
    sum.stretch += link.stretch;
  }
  std::erase_if(sums, [](const CriticalSum& sum) { return sum.links == 0; });
  std::sort(sums.begin(), sums.end(),
            [](const CriticalSum& a, const CriticalSum& b) { return a.time != b.time ? a.time > b.time : a.tag < b.tag; });
  return sums;
}

}  // namespace

std::string_view name_of(StartReason reason) {
  switch (reason) {
    case StartReason::kBegin:
      return "begin";
    case StartReason::kLane:
      return "lane";
    case StartReason::kWait:
      return "wait";
    case StartReason::kLaunch:
      break;
  }
  return "launch";
}

CriticalPath critical_path(const History& history) {
  CriticalPath path;
  if (history.program().activities.empty()) return path;
  Instance here = ending_last(history);
  SlotId next = kNone;  // slot of the link after this one that waited for it
  for (;;) {
    const SlotId slot = history.last_posted(here, kNone);
    CriticalLink link;
    link.instance = here;
    link.start = history.start(here);
    link.end = history.end(here);
    link.stretch = std::max<Picoseconds>(0, link.end - link.start - history.undisturbed(here));
    link.rank = history.rank_of(slot);
    if (next != kNone) {
      const SlotId there = history.last_posted(here, history.rank_of(next));
      link.late_peer = there != kNone && history.posted(here, there) < link.start;
    }
    const Cause cause = history.cause(here, slot);
    const bool has_cause = cause.before.activity != kNone && cause.end == link.start;
    if (has_cause) {
      link.reason = cause.on_lane ? StartReason::kLane : StartReason::kWait;
    } else if (link.start > 0) {
      link.reason = StartReason::kLaunch;
    }
    path.links.push_back(link);
    if (!has_cause) {
      path.launch = link.start;
      break;
    }
    here = cause.before;
    next = slot;
  }
  std::reverse(path.links.begin(), path.links.end());
  path.sums = sums_by_tag(history, path.links);
  return path;
}

std::string describe(const History& history, const CriticalLink& link) {
  const engine::Activity& a = history.activity(link.instance);
  std::string text = fmt::format("{} (rank {}", history.tag(link.instance).name, link.rank);
  if (const std::int32_t layer = history.layer(link.instance); layer >= 0) text += fmt::format(", layer {}", layer);
  if (a.micro_batch >= 0) text += fmt::format(", micro-batch {}", a.micro_batch);
  text += fmt::format("): {} ps", link.end - link.start);
  if (link.stretch > 0) text += fmt::format(", {} of them stretch", link.stretch);
  text += fmt::format("; {}{}", link.late_peer ? "late peer, " : "", name_of(link.reason));
  return text;
}

}  // namespace cpfit::timeline
