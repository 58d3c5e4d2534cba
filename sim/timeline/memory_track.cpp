#include "sim/timeline/memory_track.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <tuple>

#include "sim/timeline/memory_change.h"

namespace cpfit::timeline {

namespace {

using TensorKey = std::tuple<std::int32_t, std::int32_t, std::int32_t, std::int32_t>;
TensorKey key_of(const LiveTensor& tensor) { return {tensor.component, tensor.name, tensor.layer, tensor.micro_batch}; }

}  // namespace

MemoryChange change_of(const History& history, const MemoryEvent& event, const Instance& i) {
  MemoryChange change;
  const bool takes_time = history.end(i) > history.start(i);
  change.time = event.moment == Moment::kStart ? history.start(i) : history.end(i);
  change.phase = event.moment == Moment::kStart ? 1 : (takes_time ? 0 : 2);
  const Instance owner = event.owner == engine::kNone ? i : history.referred(i, event.owner);
  change.tensor = {event.component, event.name, history.layer(owner), history.activity(owner).micro_batch, event.bytes};
  return change;
}

std::vector<MemoryChange> memory_changes(const History& history, const MemoryProgram& memory, std::int32_t rank) {
  std::vector<MemoryChange> changes;
  for (const MemoryEvent& event : memory.events) {
    if (event.rank != rank) continue;
    history.visit_activity(event.activity, [&](const Instance& i) { changes.push_back(change_of(history, event, i)); });
  }
  std::stable_sort(changes.begin(), changes.end(), comes_before);
  return changes;
}

namespace {

/// The sums of all tensors after `count` changes, but for those that `resident` holds; those that are zero are left out.
std::vector<LiveTensor> alive_after(const MemoryProgram& memory, const std::vector<MemoryChange>& changes, std::size_t count) {
  std::map<TensorKey, LiveTensor> alive;
  for (std::size_t i = 0; i < count; ++i) {
    const LiveTensor& change = changes[i].tensor;
    if (change.name == memory.of_resident) continue;
    const auto [tensor, fresh] = alive.try_emplace(key_of(change), change);
    if (!fresh) tensor->second.bytes += change.bytes;
  }
  std::vector<LiveTensor> result;
  for (const auto& [key, tensor] : alive) {
    if (tensor.bytes != 0) result.push_back(tensor);
  }
  std::stable_sort(result.begin(), result.end(), [](const LiveTensor& a, const LiveTensor& b) { return a.bytes > b.bytes; });
  return result;
}

void check_frees(const MemoryProgram& memory, const std::vector<LiveTensor>& tensors, std::int32_t rank) {
  for (const LiveTensor& tensor : tensors) {
    if (tensor.bytes >= 0) continue;
    std::fprintf(stderr, "cpfit: internal error: memory of rank %d: tensor %s, layer %d, micro-batch %d: %lld bytes\n", rank,
                 memory.names[static_cast<std::size_t>(tensor.name)].c_str(), tensor.layer, tensor.micro_batch,
                 static_cast<long long>(tensor.bytes));
    std::abort();
  }
}

MemoryTrack track_of(const MemoryProgram& memory, const std::vector<MemoryChange>& changes, std::int32_t rank) {
  MemoryTrack track;
  track.rank = rank;
  track.resident = static_cast<std::size_t>(rank) < memory.resident.size() ? memory.resident[static_cast<std::size_t>(rank)] : 0;
  track.points.push_back({0, track.resident, track.resident});
  track.peak = track.resident;
  std::int64_t bytes = track.resident;
  std::size_t changes_at_peak = 0;
  for (std::size_t i = 0; i < changes.size(); ++i) {
    bytes += changes[i].tensor.bytes;
    if (i + 1 < changes.size() && counts_with(changes[i], changes[i + 1])) continue;
    if (changes[i].time > track.points.back().time) track.points.push_back({changes[i].time, bytes, bytes});
    track.points.back().bytes = bytes;
    track.points.back().highest = std::max(track.points.back().highest, bytes);
    if (bytes > track.peak) {
      track.peak = bytes;
      track.peak_time = changes[i].time;
      changes_at_peak = i + 1;
    }
  }
  track.alive_at_peak = alive_after(memory, changes, changes_at_peak);
  check_frees(memory, track.alive_at_peak, rank);
  check_frees(memory, alive_after(memory, changes, changes.size()), rank);
  track.components_at_peak.assign(memory.components.size(), 0);
  for (std::size_t i = 0; i < changes_at_peak; ++i)
    track.components_at_peak[static_cast<std::size_t>(changes[i].tensor.component)] += changes[i].tensor.bytes;
  return track;
}

}  // namespace

std::vector<MemoryTrack> memory_tracks(const History& history, const MemoryProgram& memory) {
  std::vector<std::vector<MemoryChange>> changes(static_cast<std::size_t>(history.ranks()));
  for (const MemoryEvent& event : memory.events) {
    history.visit_activity(event.activity, [&](const Instance& i) {
      changes[static_cast<std::size_t>(event.rank)].push_back(change_of(history, event, i));
    });
  }
  std::vector<MemoryTrack> tracks;
  for (std::int32_t rank = 0; rank < history.ranks(); ++rank) {
    std::vector<MemoryChange>& own = changes[static_cast<std::size_t>(rank)];
    std::stable_sort(own.begin(), own.end(), comes_before);
    tracks.push_back(track_of(memory, own, rank));
  }
  return tracks;
}

}  // namespace cpfit::timeline
