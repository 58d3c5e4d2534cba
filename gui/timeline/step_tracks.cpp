#include "gui/timeline/step_tracks.h"

#include <algorithm>
#include <map>

#include "gui/timeline/lane_raster.h"
#include "model/cluster/topology.h"

namespace cpfit::gui {

namespace {

std::vector<LinkTrack> link_tracks(const StepTimeline& step, const Topology& topology, std::size_t limit) {
  std::vector<std::string> names;
  std::map<std::string, std::size_t> index;
  for (const Link& link : topology.links()) {
    const auto name = [&](std::int32_t vertex) -> const std::string& {
      return topology.vertices()[static_cast<std::size_t>(vertex)].name;
    };
    index.emplace(name(link.from) + " -> " + name(link.to), names.size());
    names.push_back(name(link.from) + " -> " + name(link.to));
  }
  std::map<std::string, const LinkLoad*> loads;
  for (const LinkLoad& load : step.links) loads.emplace(load.from + " -> " + load.to, &load);
  std::vector<LinkTrack> tracks;
  for (timeline::CounterTrack& counter : timeline::link_rates(step.history(), names)) {
    const auto known = index.find(counter.name);
    if (known == index.end()) continue;
    LinkTrack track;
    track.name = std::move(counter.name);
    track.capacity = topology.links()[known->second].capacity;
    track.points = std::move(counter.points);
    if (const auto load = loads.find(track.name); load != loads.end()) {
      track.bytes = load->second->bytes.value();
      track.busy = load->second->busy;
    }
    tracks.push_back(std::move(track));
  }
  const auto share = [](const LinkTrack& t) { return t.bytes / t.capacity.value(); };
  std::stable_sort(tracks.begin(), tracks.end(), [&](const LinkTrack& a, const LinkTrack& b) { return share(a) > share(b); });
  if (tracks.size() > limit) tracks.resize(limit);
  return tracks;
}

}  // namespace

std::shared_ptr<const StepTracks> tracks_of(const Workbench& bench, const Training& training, const StepTimeline& step,
                                            const std::vector<std::int32_t>& ranks, std::size_t links) {
  auto tracks = std::make_shared<StepTracks>();
  for (const std::int32_t rank : ranks) {
    if (std::optional<MemoryStack> stack = memory_stack(bench, training, step, rank)) tracks->memory.push_back(std::move(*stack));
  }
  tracks->capacity = step.candidate.verdict.capacity;
  if (bench.scenario().cluster.topology) tracks->links = link_tracks(step, *bench.scenario().cluster.topology, links);
  return tracks;
}

std::size_t point_at(const MemoryStack& stack, std::int64_t time) {
  const auto after = std::upper_bound(stack.times.begin(), stack.times.end(), time);
  return after == stack.times.begin() ? 0 : static_cast<std::size_t>(after - stack.times.begin()) - 1;
}

std::vector<StackColumn> stack_columns(const MemoryStack& stack, TimeWindow window, std::size_t columns) {
  std::vector<StackColumn> result(columns);
  if (stack.times.empty()) return result;
  const std::vector<std::int64_t> bounds = column_bounds(window, columns);
  std::size_t next =
      static_cast<std::size_t>(std::lower_bound(stack.times.begin(), stack.times.end(), window.from) - stack.times.begin());
  std::size_t held = next > 0 ? next - 1 : 0;  // what came before and still holds
  for (std::size_t i = 0; i < columns; ++i) {
    StackColumn& column = result[i];
    bool any = false;
    const auto count = [&](std::size_t point) {
      const std::int64_t total = stack.totals[point];
      if (!any || total > column.highest) {
        column.highest = total;
        column.point = point;
      }
      column.lowest = any ? std::min(column.lowest, total) : total;
      any = true;
    };
    if (next >= stack.times.size() || stack.times[next] != bounds[i]) count(held);
    for (; next < stack.times.size() && stack.times[next] < bounds[i + 1]; ++next) count(held = next);
    if (!any) count(held);  // a column shorter than a picosecond
  }
  return result;
}

std::vector<RateColumn> rate_columns(const LinkTrack& track, TimeWindow window, std::size_t columns) {
  std::vector<RateColumn> result(columns);
  const std::vector<std::int64_t> bounds = column_bounds(window, columns);
  const auto first = std::partition_point(track.points.begin(), track.points.end(),
                                          [&](const timeline::CounterPoint& p) { return p.time <= window.from; });
  std::size_t next = static_cast<std::size_t>(first - track.points.begin());
  double value = next > 0 ? track.points[next - 1].value : 0;
  for (std::size_t i = 0; i < columns; ++i) {
    std::int64_t at = bounds[i];
    double area = 0;
    result[i].highest = value;
    while (next < track.points.size() && track.points[next].time < bounds[i + 1]) {
      area += value * static_cast<double>(track.points[next].time - at);
      at = track.points[next].time;
      value = track.points[next].value;
      result[i].highest = std::max(result[i].highest, value);
      ++next;
    }
    area += value * static_cast<double>(bounds[i + 1] - at);
    const double length = static_cast<double>(bounds[i + 1] - bounds[i]);
    result[i].mean = length > 0 ? area / length : value;
  }
  return result;
}

}  // namespace cpfit::gui
