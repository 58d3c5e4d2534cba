#include "calibrate/read/memory_snapshot.h"

#include <fmt/format.h>
#include <rapidjson/error/en.h>
#include <rapidjson/istreamwrapper.h>
#include <rapidjson/reader.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <map>
#include <unordered_map>
#include <unordered_set>

#include "calibrate/read/pickle.h"

namespace cpfit {

namespace {

constexpr std::int64_t kRound = 512;                         // CUDACachingAllocator's kMinBlockSize
constexpr std::int64_t kMostBytes = std::int64_t{1} << 42U;  // no device holds 4 TiB: what claims more is no size
constexpr std::int64_t kMostTotal = std::int64_t{1} << 61U;  // sums of a hostile file stop here
constexpr std::int64_t kMostDevices = 1024;

/// Fills a tree from JSON's tokens.
class TreeHandler : public rapidjson::BaseReaderHandler<rapidjson::UTF8<>, TreeHandler> {
 public:
  explicit TreeHandler(ValueTree& tree) : tree_(tree) {}
  bool Null() { return take(tree_.none()); }
  bool Bool(bool value) { return take(tree_.boolean(value)); }
  bool Int(int value) { return take(tree_.integer(value)); }
  bool Uint(unsigned value) { return take(tree_.integer(value)); }
  bool Int64(std::int64_t value) { return take(tree_.integer(value)); }
  bool Uint64(std::uint64_t value) {
    return take(value > INT64_MAX ? tree_.real(static_cast<double>(value)) : tree_.integer(static_cast<std::int64_t>(value)));
  }
  bool Double(double value) { return take(tree_.real(value)); }
  bool String(const char* text, rapidjson::SizeType size, bool) { return take(tree_.text({text, size})); }
  bool Key(const char* text, rapidjson::SizeType size, bool) { return take(tree_.text({text, size})); }
  bool StartObject() { return open(NodeKind::kDictionary); }
  bool EndObject(rapidjson::SizeType) { return close(); }
  bool StartArray() { return open(NodeKind::kList); }
  bool EndArray(rapidjson::SizeType) { return close(); }
  [[nodiscard]] NodeId root() const { return root_; }
  [[nodiscard]] bool too_deep() const { return open_.size() > kDeepest; }

 private:
  static constexpr std::size_t kDeepest = 64;
  bool take(NodeId node) {
    if (!open_.empty()) tree_.append(open_.back(), node);
    return !tree_.full();
  }
  bool open(NodeKind kind) {
    const NodeId node = tree_.container(kind);
    if (open_.empty()) {
      root_ = node;
    } else {
      tree_.append(open_.back(), node);
    }
    open_.push_back(node);
    return !tree_.full() && !too_deep();
  }
  bool close() {
    open_.pop_back();
    return true;
  }
  ValueTree& tree_;
  std::vector<NodeId> open_;
  NodeId root_ = 0;
};

Outcome<PickledData> read_json_tree(std::istream& stream, const std::string& where, const TreeLimits& limits) {
  PickledData data{ValueTree(limits), 0};
  TreeHandler handler(data.tree);
  rapidjson::IStreamWrapper in(stream);
  rapidjson::Reader reader;
  const rapidjson::ParseResult parsed =
      reader.Parse < rapidjson::kParseIterativeFlag | rapidjson::kParseNanAndInfFlag > (in, handler);
  if (!parsed) {
    const bool limit = data.tree.full() || handler.too_deep();
    return Problem{"snapshot.json", fmt::format("{}: byte {}", where, parsed.Offset()),
                   limit ? std::string("holds or nests more than is read in one piece")
                         : fmt::format("is no JSON here: {}", rapidjson::GetParseError_En(parsed.Code())),
                   limit ? "record fewer events: _record_memory_history(max_entries=100000)" : "write the snapshot again"};
  }
  data.root = handler.root();
  return data;
}

std::int64_t rounded(std::int64_t bytes) { return (bytes + kRound - 1) / kRound * kRound; }

std::int64_t plus(std::int64_t a, std::int64_t b) { return std::min(kMostTotal, a + b); }  // both at most kMostTotal
std::int64_t minus(std::int64_t a, std::int64_t b) { return std::max<std::int64_t>(0, a - b); }

/// A size that a device can have; anything else counts as nothing.
std::int64_t size_at(const ValueTree& tree, NodeId node, std::string_view key) {
  const std::int64_t bytes = tree.integer_at(node, key).value_or(0);
  return bytes > 0 && bytes <= kMostBytes ? bytes : 0;
}

/// "function, file:line" of the innermost frame that is no part of PyTorch itself.
std::string frame_of(const ValueTree& tree, NodeId holder) {
  const std::optional<NodeId> frames = tree.find(holder, "frames");
  if (!frames || tree.children(*frames).empty()) return "no frames recorded";
  const auto printed = [&](NodeId frame) {
    std::string_view file = tree.text_at(frame, "filename");
    for (std::size_t slashes = 0, i = file.size(); i > 0; --i) {  // the last two folders are enough
      if (file[i - 1] == '/' && ++slashes == 3) {
        file.remove_prefix(i);
        break;
      }
    }
    return fmt::format("{}, {}:{}", tree.text_at(frame, "name").substr(0, 80), file.substr(0, 120),
                       tree.integer_at(frame, "line").value_or(0));
  };
  for (const NodeId frame : tree.children(*frames)) {
    const std::string_view file = tree.text_at(frame, "filename");
    const bool of_torch = file.find("/torch/") != std::string_view::npos || file.ends_with(".cpp") || file.starts_with("??") ||
                          file.find("/c10/") != std::string_view::npos || file.ends_with(".cu") || file.empty();
    if (!of_torch) return printed(frame);
  }
  return printed(tree.children(*frames).front());
}

struct Block {
  std::int64_t bytes = 0;
  NodeId holder = 0;  // has the frames
  bool recorded = true;
};

enum class Change : std::uint8_t { kNone, kAlloc, kFree, kReserve, kRelease, kOutOfMemory };

Change change_of(std::string_view action) {
  if (action == "alloc") return Change::kAlloc;
  if (action == "free_requested" || action == "free") return Change::kFree;
  if (action == "segment_alloc" || action == "segment_map") return Change::kReserve;
  if (action == "segment_free" || action == "segment_unmap") return Change::kRelease;
  return action == "oom" ? Change::kOutOfMemory : Change::kNone;
}

using Blocks = std::unordered_map<std::int64_t, Block>;

/// One device: its blocks at the end, and its events.
class Replay {
 public:
  Replay(const ValueTree& tree, DeviceSnapshot& device) : tree_(tree), device_(device) {}

  void hold(std::int64_t address, Block block) { held_[address] = block; }

  void run(const std::vector<NodeId>& events) {
    find_beginning(events);
    device_.peak_allocated = std::max(device_.allocated, total_);
    device_.peak_reserved = std::max(device_.reserved, reserved_);
    std::size_t peak_at = 0;  // events before it have happened
    for (std::size_t i = 0; i < events.size(); ++i) {
      apply(events[i]);
      if (total_ > device_.peak_allocated) {
        device_.peak_allocated = total_;
        peak_at = i + 1;
      }
      device_.peak_reserved = std::max(device_.peak_reserved, reserved_);
    }
    // At the peak once more. Where nothing recorded is higher than the end, the end is the peak.
    if (peak_at == 0 && device_.allocated >= beginning_total_) return list(held_);
    live_ = beginning_;
    total_ = beginning_total_;
    for (std::size_t i = 0; i < peak_at; ++i) apply(events[i]);
    list(live_);
  }

 private:
  /// What was alive before the first event.
  void find_beginning(const std::vector<NodeId>& events) {
    std::unordered_set<std::int64_t> touched;
    std::int64_t taken = 0, given_back = 0;
    for (const NodeId event : events) {
      const Change change = change_of(tree_.text_at(event, "action"));
      const std::int64_t size = size_at(tree_, event, "size");
      if (change == Change::kReserve) taken = plus(taken, size);
      if (change == Change::kRelease) given_back = plus(given_back, size);
      if (change == Change::kOutOfMemory) ++device_.out_of_memory;
      if (change != Change::kAlloc && change != Change::kFree) continue;
      const std::optional<std::int64_t> address = tree_.integer_at(event, "addr");
      if (!address || !touched.insert(*address).second) continue;
      if (change == Change::kFree) beginning_[*address] = {rounded(size), event, false};
    }
    for (const auto& [address, block] : held_) {
      if (!touched.contains(address)) beginning_[address] = {block.bytes, block.holder, false};
    }
    for (const auto& [address, block] : beginning_) beginning_total_ = plus(beginning_total_, block.bytes);
    live_ = beginning_;
    total_ = beginning_total_;
    reserved_ = minus(plus(device_.reserved, given_back), taken);
  }

  void apply(NodeId event) {
    const Change change = change_of(tree_.text_at(event, "action"));
    const std::int64_t size = size_at(tree_, event, "size");
    if (change == Change::kReserve) reserved_ = plus(reserved_, size);
    if (change == Change::kRelease) reserved_ = minus(reserved_, size);
    if (change != Change::kAlloc && change != Change::kFree) return;
    const std::optional<std::int64_t> address = tree_.integer_at(event, "addr");
    if (!address) return;
    const auto found = live_.find(*address);
    if (found != live_.end()) {
      total_ = minus(total_, found->second.bytes);
      live_.erase(found);
    }
    if (change != Change::kAlloc) return;
    live_.emplace(*address, Block{rounded(size), event, true});
    total_ = plus(total_, rounded(size));
  }

  void list(const Blocks& blocks) {
    std::map<std::string, HeldMemory> by_frame;
    std::unordered_map<NodeId, std::string> known;  // frames are shared by many blocks
    for (const auto& [address, block] : blocks) {
      const std::optional<NodeId> frames = tree_.find(block.holder, "frames");
      std::string frame;
      if (!block.recorded && (!frames || tree_.children(*frames).empty())) {
        frame = "before the recording began";
      } else if (frames) {
        const auto [at, is_new] = known.try_emplace(*frames);
        if (is_new) at->second = frame_of(tree_, block.holder);
        frame = at->second;
      } else {
        frame = "no frames recorded";
      }
      HeldMemory& held = by_frame[frame];
      held.frame = frame;
      held.bytes = plus(held.bytes, block.bytes);
      ++held.blocks;
    }
    for (auto& [frame, held] : by_frame) device_.at_peak.push_back(std::move(held));
    std::stable_sort(device_.at_peak.begin(), device_.at_peak.end(),
                     [](const HeldMemory& a, const HeldMemory& b) { return a.bytes > b.bytes; });
    if (device_.at_peak.size() > kHeldLines) device_.at_peak.resize(kHeldLines);
  }

  const ValueTree& tree_;
  DeviceSnapshot& device_;
  Blocks held_, beginning_, live_;
  std::int64_t total_ = 0, beginning_total_ = 0, reserved_ = 0;
};

/// Segments with their blocks: what is there at the end. An older snapshot is the list of segments alone.
void read_segments(const ValueTree& tree, const std::vector<NodeId>& segments, std::map<std::int64_t, DeviceSnapshot>& devices,
                   std::map<std::int64_t, std::vector<std::pair<std::int64_t, Block>>>& blocks) {
  for (const NodeId segment : segments) {
    const std::int64_t index = tree.integer_at(segment, "device").value_or(0);
    if (index < 0 || index >= kMostDevices) continue;
    DeviceSnapshot& device = devices[index];
    device.reserved = plus(device.reserved, size_at(tree, segment, "total_size"));
    std::int64_t address = tree.integer_at(segment, "address").value_or(0);
    const std::optional<NodeId> list = tree.find(segment, "blocks");
    if (!list) {
      device.allocated = plus(device.allocated, size_at(tree, segment, "allocated_size"));
      continue;
    }
    for (const NodeId block : tree.children(*list)) {
      const std::int64_t size = size_at(tree, block, "size");
      address = tree.integer_at(block, "address").value_or(address);
      if (tree.text_at(block, "state") == "active_allocated") {
        device.allocated = plus(device.allocated, size);
        blocks[index].push_back({address, {size, block, true}});
      }
      if (address > INT64_MAX - size) break;
      address += size;
    }
  }
}

Outcome<MemorySnapshot> snapshot_of(const PickledData& data, const std::string& path, std::string format) {
  const ValueTree& tree = data.tree;
  MemorySnapshot snapshot{path, std::move(format), {}, {}};
  std::map<std::int64_t, DeviceSnapshot> devices;
  std::map<std::int64_t, std::vector<std::pair<std::int64_t, Block>>> blocks;
  std::map<std::int64_t, std::vector<NodeId>> events;
  const bool list = tree.kind(data.root) == NodeKind::kList;
  const std::optional<NodeId> segments = list ? data.root : tree.find(data.root, "segments");
  const std::optional<NodeId> traces = tree.find(data.root, "device_traces");
  if (segments) read_segments(tree, tree.children(*segments), devices, blocks);
  if (traces) {
    const std::vector<NodeId>& by_device = tree.children(*traces);
    for (std::size_t i = 0; i < by_device.size() && i < static_cast<std::size_t>(kMostDevices); ++i) {
      if (const std::vector<NodeId>& of_device = tree.children(by_device[i]); !of_device.empty())
        events[static_cast<std::int64_t>(i)] = of_device;
    }
  }
  for (auto& [index, of_device] : events) devices[index].events = static_cast<std::int64_t>(of_device.size());
  bool any_events = false;
  for (auto& [index, device] : devices) {
    if (device.reserved == 0 && device.events == 0) continue;
    device.device = index;
    Replay replay(tree, device);
    for (const auto& [address, block] : blocks[index]) replay.hold(address, block);
    replay.run(events[index]);
    any_events = any_events || device.events > 0;
    snapshot.devices.push_back(std::move(device));
  }
  if (snapshot.devices.empty()) {
    return Problem{"snapshot.content", path, "holds no memory of a GPU: neither segments nor events",
                   "call torch.cuda.memory._record_memory_history() before the steps, and _dump_snapshot after them"};
  }
  if (!any_events) {
    snapshot.remarks.push_back({"snapshot.no_events", path,
                                "no events were recorded: only what was held at the end is known, no peak",
                                "call torch.cuda.memory._record_memory_history() before the steps"});
  }
  return snapshot;
}

}  // namespace

Outcome<MemorySnapshot> read_memory_snapshot(const std::string& path, const TreeLimits& limits) {
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  const int first = file.peek();
  if (!file.is_open() || first == std::ifstream::traits_type::eof()) {
    return Problem{"snapshot.unreadable", path,
                   file.is_open() ? std::string("is empty or no file") : fmt::format("cannot be read: {}", std::strerror(errno)),
                   "name a file of torch.cuda.memory._dump_snapshot"};
  }
  const bool json = first == '{' || first == '[' || first == ' ' || first == '\n';
  Outcome<PickledData> data = json ? read_json_tree(file, path, limits) : read_pickle(file, path, limits);
  if (!data.ok()) return data.problems();
  return snapshot_of(*data, path, json ? "memory snapshot (JSON)" : "memory snapshot (pickle)");
}

}  // namespace cpfit
