// hwloc XML (lstopo --whole-io --of xml), versions 1 to 3: nested objects; PCI devices with their link speed; NVLink bandwidths
// as a matrix of distances between OS devices, PCI devices and packages.
#include <fmt/format.h>

#include <algorithm>

#include "model/cluster/import/formats.h"
#include "model/cluster/import/identity.h"
#include "model/cluster/import/pci_tree.h"
#include "model/cluster/import/scan.h"
#include "model/cluster/import/xml.h"

namespace cpfit {
namespace {

constexpr double kOnDiagonal = 1e6;  // MB/s: hwloc's mark for "itself"

class HwlocReader {
 public:
  explicit HwlocReader(const std::string& where) : where_(where) {}

  Outcome<ImportedTopology> read(const pugi::xml_node& topology) {
    for (const pugi::xml_node& machine : topology.children("object")) walk(machine, -1, -1, false);
    if (Problems found = check(); !found.empty()) return found;
    drop_plain_ethernet();
    for (const pugi::xml_node& child : topology.children()) read_distances(child);
    ImportedTopology imported;
    imported.format = TopologyFormat::kHwloc;
    imported.where = where_;
    ImportedHost host = host_of(tree_, notes_);
    for (const std::string& product : products_) identify_by_name(host, product);
    for (const std::string& device : pci_ids_) identify_by_pci(host, device);
    const auto nics = std::count_if(host.devices.begin(), host.devices.end(),
                                    [](const ImportedDevice& device) { return device.kind == VertexKind::kNic; });
    imported.summary = fmt::format("one host with {} GPUs, {} NICs and {} NUMA nodes", gpus_, nics, tree_.cpus);
    if (gpus_ > 1 && tree_.scale_up.empty()) {
      host.scale_up_known = false;
      notes_.push_back(
          "the file holds no NVLinkBandwidth distances: NVLinks, where the GPU has some, are taken from the GPU preset");
    }
    imported.notes = std::move(notes_);
    imported.holds = std::move(host);
    return imported;
  }

 private:
  Problems check() const {
    if (tree_.nodes.size() > kMostDevices * 8)
      return {scan::problem("too_large", where_, 0, fmt::format("more than {} PCI devices in one host", kMostDevices * 8))};
    if (pci_seen_ == 0) {
      return {scan::problem("no_pci", where_, 0, "the file lists no PCI devices: GPUs and NICs are not in it",
                            "save it with `lstopo --whole-io --of xml FILE`, with hwloc's PCI support built in")};
    }
    if (gpus_ == 0) return {scan::problem("no_gpu", where_, 0, "the file lists no GPU", "save it on a host with GPUs")};
    return {};
  }

  void walk(const pugi::xml_node& object, std::int32_t above, std::int32_t cpu, bool below_bridge) {
    if (tree_.nodes.size() > kMostDevices * 8) return;
    const std::string type = text_of(object, "type");
    if (type == "Package" || type == "Socket" || type == "NUMANode" || (type == "Group" && has_memory(object))) {
      // A package with one NUMA node is one place; with several, each group of them is.
      if (type != "NUMANode" || object.child("object")) cpu = tree_.cpus++;
    }
    if (type == "Package") packages_[whole_of(object, "gp_index")] = cpu;
    if (!tree_.socket && (type == "Package" || type == "Socket")) {
      tree_.socket = socket_rate("", info_of(object, "CPUVendor"), scan::whole(info_of(object, "CPUFamilyNumber")).value_or(-1),
                                 scan::whole(info_of(object, "CPUModelNumber")).value_or(-1));
    }
    if (type == "Bridge" || type == "PCIDev") {
      if (cpu < 0) cpu = tree_.cpus++;
      above =
          add(object, type == "Bridge" && !below_bridge && text_of(object, "bridge_type").starts_with("0-"), type, above, cpu);
      below_bridge = true;
    } else if (type == "OSDev" && above >= 0) {
      add_os_device(object, above);
    }
    for (const pugi::xml_node& child : object.children("object")) walk(child, above, cpu, below_bridge);
  }

  static bool has_memory(const pugi::xml_node& object) {
    for (const pugi::xml_node& child : object.children("object")) {
      if (text_of(child, "type") == "NUMANode") return true;
    }
    return false;
  }

  static std::string info_of(const pugi::xml_node& object, std::string_view name) {
    for (const pugi::xml_node& info : object.children("info")) {
      if (info.attribute("name").value() == name) return info.attribute("value").value();
    }
    return "";
  }

  std::int32_t add(const pugi::xml_node& object, bool host_bridge, const std::string& type, std::int32_t above,
                   std::int32_t cpu) {
    PciNode node;
    node.parent = above;
    node.cpu = cpu;
    node.kind = host_bridge ? PciNode::Kind::kHostBridge : PciNode::Kind::kBridge;
    node.bus_id = node.label = scan::lower(text_of(object, "pci_busid"));
    const double speed = scan::number(text_of(object, "pci_link_speed")).value_or(0);  // GB/s, one direction
    if (speed > 0 && speed < 1e4) node.up = gb_per_s(speed);
    if (type == "PCIDev") {
      ++pci_seen_;
      // "0302 [10de:1db8] [10de:131d] a1 00"
      const std::string id = text_of(object, "pci_type");
      const std::int64_t pci_class = scan::whole(std::string_view(id).substr(0, 4), 16).value_or(-1);
      const std::string device = id.size() > 15 && id[5] == '[' ? id.substr(6, 9) : "";
      const bool nvidia = device.starts_with("10de");
      const bool nvswitch = text_of(object, "subtype") == "NVSwitch" || (pci_class == 0x0680 && nvidia);
      // 3D controllers and accelerators; a VGA adapter counts only when it is NVIDIA's (the others are the board's console).
      if (!nvswitch &&
          (pci_class == 0x0302 || pci_class == 0x0380 || pci_class >> 8 == 0x12 || (pci_class == 0x0300 && nvidia))) {
        node.kind = PciNode::Kind::kGpu;
        ++gpus_;
        if (!device.empty() && pci_ids_.size() < kMostDevices) pci_ids_.push_back(scan::lower(device));
      } else if (pci_class >> 8 == 0x02 || pci_class == 0x0c06) {
        node.kind = PciNode::Kind::kNic;
      }
    }
    tree_.nodes.push_back(std::move(node));
    const auto index = static_cast<std::int32_t>(tree_.nodes.size()) - 1;
    objects_["PCIDev:" + text_of(object, "gp_index")] = index;
    return index;
  }

  void add_os_device(const pugi::xml_node& object, std::int32_t pci) {
    objects_["OSDev:" + text_of(object, "gp_index")] = pci;
    const std::string name = text_of(object, "name");
    PciNode& node = tree_.nodes[static_cast<std::size_t>(pci)];
    const std::string product = info_of(object, "GPUModel");
    if (!product.empty() && products_.size() < kMostDevices) products_.push_back(product);
    if (node.kind != PciNode::Kind::kNic) return;
    // OpenFabrics: 3 in hwloc 1 and 2, bit 32 in hwloc 3. A verbs device gives the name.
    const std::int64_t os_type = whole_of(object, "osdev_type");
    if (os_type == 3 || (os_type >= 32 && (os_type & 32) != 0)) {
      fabric_nics_.push_back(pci);
      node.label = name;
    } else if (node.label == node.bus_id) {
      node.label = name;
    }
  }

  /// Where some NICs speak verbs, the others carry no GPU traffic.
  void drop_plain_ethernet() {
    if (fabric_nics_.empty()) return;
    std::size_t dropped = 0;
    for (std::size_t n = 0; n < tree_.nodes.size(); ++n) {
      if (tree_.nodes[n].kind != PciNode::Kind::kNic ||
          std::find(fabric_nics_.begin(), fabric_nics_.end(), static_cast<std::int32_t>(n)) != fabric_nics_.end()) {
        continue;
      }
      tree_.nodes[n].kind = PciNode::Kind::kBridge;  // has no children: falls out of the tree
      ++dropped;
    }
    if (dropped > 0) notes_.push_back(fmt::format("{} network devices without verbs (plain Ethernet) are left out", dropped));
  }

  void read_distances(const pugi::xml_node& distances) {
    const std::string_view tag = distances.name(), name = distances.attribute("name").value();
    const bool xgmi = name == "XGMIBandwidth";
    if ((tag != "distances2hetero" && tag != "distances2") || (name != "NVLinkBandwidth" && !xgmi)) return;
    const std::string type = text_of(distances, "type");
    std::vector<std::string> ids;
    std::vector<double> values;
    for (const pugi::xml_node& part : distances.children()) {
      for (const std::string_view word : scan::words(part.text().get())) {
        if (std::string_view(part.name()) == "indexes") {
          ids.push_back(word.find(':') == std::string_view::npos ? type + ":" + std::string(word) : std::string(word));
        } else if (std::string_view(part.name()) == "u64values") {
          values.push_back(scan::number(word).value_or(0));
        }
      }
    }
    if (ids.empty() || ids.size() > kMostDevices || values.size() != ids.size() * ids.size()) {
      notes_.push_back(
          fmt::format("the {} matrix has {} names and {} values: left out", scan::shown(name), ids.size(), values.size()));
      return;
    }
    for (std::size_t i = 0; i < ids.size(); ++i) {
      const auto gpu = objects_.find(ids[i]);
      if (gpu == objects_.end() || tree_.nodes[static_cast<std::size_t>(gpu->second)].kind != PciNode::Kind::kGpu) continue;
      for (std::size_t j = 0; j < ids.size(); ++j) {
        const double megabytes = values[i * ids.size() + j];
        if (i == j || megabytes <= 0 || megabytes >= kOnDiagonal) continue;
        ScaleUpEnd end;
        end.gpu = gpu->second;
        end.xgmi = xgmi;
        end.lanes = 0;
        end.rate = BytesPerSecond(megabytes * 1e6);
        if (!find_end(ids[j], end)) continue;
        tree_.scale_up.push_back(std::move(end));
      }
    }
  }

  bool find_end(const std::string& id, ScaleUpEnd& end) const {
    if (id.starts_with("Package:")) {
      const auto package = packages_.find(scan::whole(std::string_view(id).substr(8)).value_or(-2));
      if (package == packages_.end()) return false;
      end.to = ScaleUpEnd::To::kCpu;
      end.other = package->second;
      return true;
    }
    const auto found = objects_.find(id);
    if (found == objects_.end()) return false;
    if (tree_.nodes[static_cast<std::size_t>(found->second)].kind == PciNode::Kind::kGpu) {
      end.other = found->second;
    } else {
      end.to = ScaleUpEnd::To::kSwitch;
      end.switch_name = id;
    }
    return true;
  }

  const std::string& where_;
  PciTree tree_;
  std::vector<std::string> notes_, products_, pci_ids_;
  std::map<std::string, std::int32_t> objects_;
  std::map<std::int64_t, std::int32_t> packages_;
  std::vector<std::int32_t> fabric_nics_;
  std::int32_t gpus_ = 0, pci_seen_ = 0;
};

}  // namespace

Outcome<ImportedTopology> import_hwloc(std::string_view text, const std::string& where) {
  pugi::xml_document document;
  if (Problems problems = parse_xml(document, text, where); !problems.empty()) return problems;
  const pugi::xml_node topology = document.child("topology");
  if (!topology) return scan::problem("xml", where, 0, "there is no <topology> element");
  return HwlocReader(where).read(topology);
}

}  // namespace cpfit
