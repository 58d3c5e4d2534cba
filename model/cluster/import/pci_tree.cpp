#include "model/cluster/import/pci_tree.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "model/cluster/import/scan.h"
#include "model/quantity/index.h"

namespace cpfit {
namespace {

class HostOfTree {
 public:
  HostOfTree(const PciTree& tree, std::vector<std::string>& notes) : tree_(tree), notes_(notes) {}

  ImportedHost build() {
    keep_useful();
    add_devices();
    add_cables();
    add_scale_up();
    return std::move(host_);
  }

 private:
  using Kind = PciNode::Kind;
  static bool is_end(const PciNode& node) { return node.kind == Kind::kGpu || node.kind == Kind::kNic; }

  /// Parents come before their children in `nodes`.
  void keep_useful() {
    std::vector<std::int32_t> ends(tree_.nodes.size()), useful(tree_.nodes.size());
    for (std::size_t n = tree_.nodes.size(); n-- > 0;) {
      ends[n] += is_end(tree_.nodes[n]) ? 1 : 0;
      if (ends[n] == 0 || tree_.nodes[n].parent < 0) continue;
      ends[at(tree_.nodes[n].parent)] += ends[n];
      ++useful[at(tree_.nodes[n].parent)];
    }
    std::set<std::int32_t> bridged;
    for (const auto& [a, b] : tree_.bridged) bridged.insert({a, b});
    kept_.resize(tree_.nodes.size());
    for (std::size_t n = 0; n < tree_.nodes.size(); ++n)
      kept_[n] = is_end(tree_.nodes[n]) || useful[n] > 1 || (ends[n] > 0 && bridged.contains(static_cast<std::int32_t>(n)));
  }

  std::int32_t add(ImportedDevice device) {
    host_.devices.push_back(std::move(device));
    return static_cast<std::int32_t>(host_.devices.size()) - 1;
  }

  void add_devices() {
    device_.assign(tree_.nodes.size(), -1);
    for (const Kind kind : {Kind::kGpu, Kind::kNic}) {
      std::vector<std::size_t> order;
      bool numbered = true;
      for (std::size_t n = 0; n < tree_.nodes.size(); ++n) {
        if (tree_.nodes[n].kind != kind) continue;
        order.push_back(n);
        numbered = numbered && tree_.nodes[n].number >= 0;
      }
      std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
        const PciNode &left = tree_.nodes[a], &right = tree_.nodes[b];
        return numbered ? left.number < right.number : bus_order(left.bus_id) < bus_order(right.bus_id);
      });
      for (const std::size_t n : order) {
        const PciNode& node = tree_.nodes[n];
        device_[n] = add({kind == Kind::kGpu ? VertexKind::kGpu : VertexKind::kNic, node.label, node.port_rate, node.ports});
      }
    }
    for (std::size_t n = 0; n < tree_.nodes.size(); ++n) {
      const PciNode& node = tree_.nodes[n];
      if (kept_[n] && device_[n] < 0)
        device_[n] =
            add({VertexKind::kPcieSwitch, node.kind == Kind::kHostBridge ? "host bridge" : node.bus_id, std::nullopt, 1});
    }
  }

  std::int32_t cpu_device(std::int32_t cpu) {
    const auto [where, fresh] = cpus_.try_emplace(cpu, -1);
    if (fresh) where->second = add({VertexKind::kCpu, fmt::format("cpu {}", cpu), std::nullopt, 1});
    return where->second;
  }

  void add_cables() {
    for (std::size_t n = 0; n < tree_.nodes.size(); ++n) {
      if (!kept_[n]) continue;
      std::optional<BytesPerSecond> rate = tree_.nodes[n].up;
      std::int32_t parent = tree_.nodes[n].parent;
      for (; parent >= 0 && !kept_[at(parent)]; parent = tree_.nodes[at(parent)].parent) {
        const std::optional<BytesPerSecond>& up = tree_.nodes[at(parent)].up;
        if (up) rate = rate ? min(*rate, *up) : *up;
      }
      const bool local = tree_.nodes[n].kind == Kind::kHostBridge;
      const std::int32_t above = parent >= 0 ? device_[at(parent)] : cpu_device(tree_.nodes[n].cpu);
      host_.cables.push_back({device_[n], above, local ? LinkClass::kLocal : LinkClass::kPcie, local ? std::nullopt : rate, 1});
    }
    for (const auto& [a, b] : tree_.bridged) {
      if (device_[at(a)] >= 0 && device_[at(b)] >= 0)
        host_.cables.push_back({device_[at(a)], device_[at(b)], LinkClass::kPcie, std::nullopt, 1});
    }
    for (auto a = cpus_.begin(); a != cpus_.end(); ++a) {
      for (auto b = std::next(a); b != cpus_.end(); ++b)
        host_.cables.push_back({a->second, b->second, LinkClass::kSocket, tree_.socket, 1});
    }
  }

  void add_scale_up() {
    struct Side {
      std::int32_t lanes = 0;
      std::optional<BytesPerSecond> rate;
    };
    const auto sum = [](Side& side, const ScaleUpEnd& end) {
      side.lanes += end.lanes;
      if (end.rate) side.rate = side.rate ? *side.rate + *end.rate : *end.rate;
    };
    std::map<std::pair<std::int32_t, std::int32_t>, Side> direct;  // as the first GPU says it
    std::map<std::string, std::map<std::int32_t, Side>> switches;
    std::size_t to_itself = 0;
    bool xgmi = false;
    for (const ScaleUpEnd& end : tree_.scale_up) {
      const std::int32_t gpu = device_[at(end.gpu)];
      xgmi = xgmi || end.xgmi;
      if (end.to == ScaleUpEnd::To::kSwitch) {
        sum(switches[end.switch_name][gpu], end);
      } else if (end.to == ScaleUpEnd::To::kCpu) {
        host_.cables.push_back({gpu, cpu_device(end.other), LinkClass::kLocal, end.rate, end.lanes});
      } else if (end.gpu == end.other) {
        ++to_itself;
      } else {
        sum(direct[{gpu, device_[at(end.other)]}], end);
      }
    }
    if (to_itself > 0) {
      notes_.push_back(fmt::format(
          "{} GPUs name themselves as the far end of their NVLinks: these links join nothing and are left out", to_itself));
    }
    const LinkClass link_class = xgmi ? LinkClass::kXgmi : LinkClass::kNvlink;
    for (const auto& [ends, side] : direct) {
      const auto back = direct.find({ends.second, ends.first});
      if (back != direct.end() && ends.first > ends.second) continue;  // the other end has told it
      host_.cables.push_back({ends.first, ends.second, link_class, side.rate, side.lanes});
    }
    // Chips that join the same GPUs are one plane: a route takes one way.
    std::map<std::set<std::int32_t>, std::map<std::int32_t, Side>> planes;
    for (const auto& [name, gpus] : switches) {
      std::set<std::int32_t> joined;
      for (const auto& [gpu, side] : gpus) joined.insert(gpu);
      std::map<std::int32_t, Side>& plane = planes[joined];
      for (const auto& [gpu, side] : gpus) {
        plane[gpu].lanes += side.lanes;
        if (side.rate) plane[gpu].rate = plane[gpu].rate ? *plane[gpu].rate + *side.rate : *side.rate;
      }
    }
    for (const auto& [joined, plane] : planes) {
      const std::int32_t nvswitch = add({VertexKind::kNvSwitch, "", std::nullopt, 1});
      for (const auto& [gpu, side] : plane) host_.cables.push_back({gpu, nvswitch, link_class, side.rate, side.lanes});
    }
    if (planes.size() > 1) {
      notes_.push_back(
          fmt::format("the file shows {} groups of NVSwitches and no cable between them: GPUs of different groups reach "
                      "each other over PCIe here",
                      planes.size()));
    }
  }

  const PciTree& tree_;
  std::vector<std::string>& notes_;
  std::vector<bool> kept_;
  std::vector<std::int32_t> device_;
  std::map<std::int32_t, std::int32_t> cpus_;
  ImportedHost host_;
};

}  // namespace

std::uint64_t bus_order(const std::string& bus_id) {
  std::uint64_t order = 0;
  std::string_view left = bus_id;
  for (const int bits : {32, 8, 8, 8}) {
    const std::size_t end = left.find_first_of(":.");
    const std::optional<std::int64_t> part = scan::whole(left.substr(0, end), 16);
    if (!part || *part >= (std::int64_t{1} << bits)) return ~std::uint64_t{0};
    order = (order << bits) | static_cast<std::uint64_t>(*part);
    left = end == std::string_view::npos ? std::string_view{} : left.substr(end + 1);
  }
  return order;
}

std::optional<BytesPerSecond> pcie_rate(double gigatransfers, std::int64_t width) {
  constexpr std::pair<double, double> kSixteenLanes[] = {{2.5, 4}, {5, 8}, {8, 15.75}, {16, 31}, {32, 63}, {64, 121}};
  if (width < 1 || width > 16) return std::nullopt;
  for (const auto& [speed, rate] : kSixteenLanes) {
    if (speed == gigatransfers) return gb_per_s(rate * static_cast<double>(width) / 16);
  }
  return std::nullopt;
}

std::optional<BytesPerSecond> socket_rate(const std::string& arch, const std::string& vendor, std::int64_t family,
                                          std::int64_t model) {
  if (vendor == "AuthenticAMD") return gb_per_s(16);
  if (arch == "ppc64") return gb_per_s(32);
  if (arch == "arm64") return gb_per_s(6);
  if (vendor != "GenuineIntel" || family != 6) return std::nullopt;
  return gb_per_s(model >= 0xCF ? 40 : model >= 0x8F ? 22 : model >= 0x55 ? 10 : 6);
}

ImportedHost host_of(const PciTree& tree, std::vector<std::string>& notes) { return HostOfTree(tree, notes).build(); }

}  // namespace cpfit
