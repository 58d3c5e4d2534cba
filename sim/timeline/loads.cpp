#include "sim/timeline/loads.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

namespace cpfit::timeline {

namespace {

/// Length of the union of [start, end) intervals.
Picoseconds union_of(std::vector<std::pair<Picoseconds, Picoseconds>>& intervals) {
  std::sort(intervals.begin(), intervals.end());
  Picoseconds covered = 0;
  Picoseconds sum = 0;
  for (const auto& [start, end] : intervals) {
    sum += std::max<Picoseconds>(0, end - std::max(start, covered));
    covered = std::max(covered, end);
  }
  return sum;
}

}  // namespace

std::vector<EdgeLoad> edge_loads(const History& history) {
  struct Sum {
    EdgeLoad load;
    std::vector<std::pair<Picoseconds, Picoseconds>> intervals;
  };
  std::map<std::tuple<engine::TrafficAxis, std::int32_t, std::int32_t>, Sum> sums;
  const engine::Program& program = history.program();
  for (std::size_t id = 0; id < program.activities.size(); ++id) {
    const engine::Activity& a = program.activities[id];
    const engine::Tag& tag = program.tags[a.tag];
    if (tag.work != engine::Work::kMessage || a.slots != 2) continue;
    const std::int32_t from = history.rank_of(a.first_slot);
    const std::int32_t to = history.rank_of(a.first_slot + 1);
    Sum& sum = sums[{tag.axis, from, to}];
    sum.load.axis = tag.axis;
    sum.load.from = from;
    sum.load.to = to;
    history.visit_activity(static_cast<ActivityId>(id), [&](const Instance& i) {
      ++sum.load.messages;
      sum.load.bytes += a.amount;
      sum.intervals.emplace_back(history.start(i), history.end(i));
    });
  }
  std::vector<EdgeLoad> loads;
  for (auto& [key, sum] : sums) {
    sum.load.busy = union_of(sum.intervals);
    loads.push_back(sum.load);
  }
  return loads;
}

std::vector<LinkUse> link_uses(const History& history) {
  std::map<std::int32_t, LinkUse> uses;
  const std::vector<engine::Resource>& resources = history.program().resources;
  for (std::size_t r = 0; r < resources.size(); ++r) {
    if (resources[r].link == kNone || history.run().drawn[r] <= 0) continue;
    LinkUse& use = uses[resources[r].link];
    use.link = resources[r].link;
    use.bytes += history.run().drawn[r];
    use.busy = std::max(use.busy, history.run().busy[r]);
  }
  std::vector<LinkUse> result;
  for (const auto& [link, use] : uses) result.push_back(use);
  return result;
}

std::vector<LinkLoad> link_loads(const std::vector<LinkUse>& uses, const std::vector<std::pair<std::string, std::string>>& ends) {
  std::vector<LinkLoad> loads;
  for (const LinkUse& use : uses) {
    const auto& [from, to] = ends.at(static_cast<std::size_t>(use.link));
    loads.push_back({from, to, Bytes(use.bytes), engine::to_seconds(use.busy)});
  }
  return loads;
}

}  // namespace cpfit::timeline
