// A snapshot of PyTorch's CUDA allocator, reduced to what is compared with the ledger: what was allocated and reserved at its
// end, the peaks by replaying the recorded events, and what was alive at the peak. Reads what torch.cuda.memory._dump_snapshot
// writes (a pickle) and the same data as JSON. Keys and their meaning: torch/cuda/memory.py and
// torch/csrc/cuda/memory_snapshot.cpp of pytorch/pytorch (d0e3d96b).
//
// How the peak is replayed. "alloc" and "free_requested" are what memory_allocated counts (a tensor that waits for another
// stream, freed but not yet "free_completed", no longer counts); "segment_alloc", "segment_map" and their opposites what
// memory_reserved counts. Events hold the size that was asked for; the allocator rounds up to 512 bytes, and so does the replay.
// Large blocks may be given up to 1 MiB more, so that max_memory_allocated can be a little higher. What was alive before the
// first recorded event is known from two sides: blocks that the snapshot still holds and no event made, and those that an event
// freed without having made.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "calibrate/read/value_tree.h"
#include "model/quantity/problem.h"

namespace cpfit {

/// Memory that one line of a program held at the peak.
struct HeldMemory {
  std::string frame;  // "forward, model/attention.py:118"; "before the recording began"; "no frames recorded"
  std::int64_t bytes = 0;
  std::int64_t blocks = 0;
};

/// One GPU. Bytes.
struct DeviceSnapshot {
  std::int64_t device = 0;
  std::int64_t allocated = 0, reserved = 0;            // at the end
  std::int64_t peak_allocated = 0, peak_reserved = 0;  // over the recorded events; without events: at the end
  std::int64_t events = 0;
  std::int64_t out_of_memory = 0;   // times an allocation failed
  std::vector<HeldMemory> at_peak;  // largest first, at most kHeldLines
  friend bool operator==(const DeviceSnapshot&, const DeviceSnapshot&) = default;
};
inline constexpr std::size_t kHeldLines = 12;

struct MemorySnapshot {
  std::string path;
  std::string format;                   // "memory snapshot (pickle)", "memory snapshot (JSON)"
  std::vector<DeviceSnapshot> devices;  // those with memory or events
  Problems remarks;                     // what the figures do not cover
};

/// By its first bytes: a pickle of protocol 2 or later, or JSON. Problems: as read_pickle, "snapshot.unreadable",
/// "snapshot.json", "snapshot.content" (neither segments nor events).
[[nodiscard]] Outcome<MemorySnapshot> read_memory_snapshot(const std::string& path, const TreeLimits& limits = {});

inline bool operator==(const HeldMemory& a, const HeldMemory& b) {
  return a.frame == b.frame && a.bytes == b.bytes && a.blocks == b.blocks;
}

}  // namespace cpfit
