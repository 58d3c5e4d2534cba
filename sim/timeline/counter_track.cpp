#include "sim/timeline/counter_track.h"

#include <algorithm>
#include <map>
#include <utility>

namespace cpfit::timeline {

namespace {

constexpr double kBytesPerPicosecondToGb = 1e3;  // 1 byte/ps = 10^12 bytes/s = 1000 GB/s

struct RateChange {
  Picoseconds time = 0;
  double rate = 0;
};

/// Running sums; when nothing flows the value is exactly 0, whatever the rounding of the sums.
std::vector<CounterPoint> summed(std::vector<RateChange> changes) {
  std::stable_sort(changes.begin(), changes.end(), [](const RateChange& a, const RateChange& b) { return a.time < b.time; });
  std::vector<CounterPoint> points;
  double rate = 0;
  std::int64_t flowing = 0;
  for (std::size_t i = 0; i < changes.size(); ++i) {
    rate += changes[i].rate;
    flowing += changes[i].rate > 0 ? 1 : -1;
    if (flowing == 0) rate = 0;
    if (i + 1 < changes.size() && changes[i + 1].time == changes[i].time) continue;
    points.push_back({changes[i].time, rate * kBytesPerPicosecondToGb});
  }
  return points;
}

}  // namespace

std::vector<CounterTrack> link_rates(const History& history, const std::vector<std::string>& names) {
  const engine::Program& program = history.program();
  std::map<std::int32_t, std::vector<RateChange>> changes;
  for (std::size_t id = 0; id < program.activities.size(); ++id) {
    const engine::Activity& a = program.activities[id];
    if (a.pattern == kNone) continue;
    const std::size_t pattern = static_cast<std::size_t>(a.pattern);
    for (std::uint32_t u = program.pattern_begin[pattern]; u < program.pattern_begin[pattern + 1]; ++u) {
      const engine::Use& use = program.uses[u];
      const std::int32_t link = program.resources[static_cast<std::size_t>(use.resource)].link;
      if (link == kNone) continue;
      history.visit_activity(static_cast<ActivityId>(id), [&](const Instance& i) {
        const Picoseconds from = history.start(i) + a.fixed;
        const Picoseconds to = history.end(i);
        if (from >= to || a.amount <= 0) return;
        const double rate = a.amount * (use.weight + use.surplus) / static_cast<double>(to - from);
        changes[link].push_back({from, rate});
        changes[link].push_back({to, -rate});
      });
    }
  }
  std::vector<CounterTrack> tracks;
  for (auto& [link, own] : changes) {
    if (own.empty()) continue;
    const std::size_t index = static_cast<std::size_t>(link);
    CounterTrack track;
    track.name = index < names.size() ? names[index] : "link " + std::to_string(link);
    track.unit = "GB/s";
    track.points = summed(std::move(own));
    tracks.push_back(std::move(track));
  }
  return tracks;
}

std::vector<CounterTrack> memory_counters(const std::vector<MemoryTrack>& tracks) {
  std::vector<CounterTrack> counters;
  for (const MemoryTrack& track : tracks) {
    CounterTrack counter;
    counter.rank = track.rank;
    counter.name = "memory";
    counter.unit = "bytes";
    for (const MemoryPoint& point : track.points) {
      if (point.highest > point.bytes) counter.points.push_back({point.time, static_cast<double>(point.highest)});
      counter.points.push_back({point.time, static_cast<double>(point.bytes)});
    }
    counters.push_back(std::move(counter));
  }
  return counters;
}

}  // namespace cpfit::timeline
