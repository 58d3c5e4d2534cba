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

/// What the host of each rank reads, in its order: (activity, rank), ascending.
std::vector<std::vector<ActivityId>> reads_by_rank(const History& history) {
  const engine::Program& program = history.program();
  std::vector<std::vector<ActivityId>> reads;
  for (std::size_t id = 0; id < program.activities.size(); ++id) {
    const engine::Activity& a = program.activities[id];
    if (a.host_reads == 0) continue;
    for (SlotId slot = a.first_slot; slot < a.first_slot + a.slots; ++slot) {
      const auto rank = static_cast<std::size_t>(history.rank_of(slot));
      if (reads.size() <= rank) reads.resize(rank + 1);
      reads[rank].push_back(static_cast<ActivityId>(id));
    }
  }
  return reads;
}

/// What the host of `rank` read last before it launched `activity`; kNone: nothing since the step began.
ActivityId read_before(const std::vector<std::vector<ActivityId>>& reads, std::int32_t rank, ActivityId activity) {
  if (static_cast<std::size_t>(rank) >= reads.size()) return engine::kNone;
  const std::vector<ActivityId>& of_rank = reads[static_cast<std::size_t>(rank)];
  const auto behind = std::lower_bound(of_rank.begin(), of_rank.end(), activity);
  return behind == of_rank.begin() ? engine::kNone : *std::prev(behind);
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
  const std::vector<std::vector<ActivityId>> reads = reads_by_rank(history);
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
    Instance before = has_cause ? cause.before : Instance{};
    if (!has_cause) {
      const ActivityId read = read_before(reads, link.rank, here.activity);
      if (read != engine::kNone && history.end(history.held(read)) <= link.start) before = history.held(read);
      link.launch = link.start - (before.activity == kNone ? 0 : history.end(before));
      path.launch += link.launch;
    }
    path.links.push_back(link);
    if (before.activity == kNone) break;
    here = before;
    next = has_cause ? slot : kNone;
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
