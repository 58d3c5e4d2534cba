// NCCL's and RCCL's topology XML (src/graph/xml.cc): system > cpu > pci (nested) > gpu, nic > net. Files of cloud providers hold
// only pci elements; NCCL adds GPUs, NVLinks and nets on the machine, so PCI classes tell devices there.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "model/cluster/import/formats.h"
#include "model/cluster/import/identity.h"
#include "model/cluster/import/pci_tree.h"
#include "model/cluster/import/scan.h"
#include "model/cluster/import/xml.h"

namespace cpfit {
namespace {

constexpr double kFastestNet = 1.6e6;  // Mb/s; a larger number is a driver's mistake (Slingshot says 200000000)

class NcclReader {
 public:
  explicit NcclReader(const std::string& where) : where_(where) {}

  Outcome<ImportedTopology> read(const pugi::xml_node& system) {
    std::set<std::string> hosts;
    for (const pugi::xml_node& cpu : system.children("cpu")) {
      if (const std::string hash = text_of(cpu, "host_hash"); !hash.empty() && hosts.insert(hash).second && hosts.size() > 1) {
        return scan::problem("several_hosts", where_, 0, "the file describes CPUs of several hosts (host_hash differs)",
                             "dump the topology of one host, or cut the others out");
      }
      const std::int32_t index = tree_.cpus++;
      if (!tree_.socket)
        tree_.socket =
            socket_rate(text_of(cpu, "arch"), text_of(cpu, "vendor"), whole_of(cpu, "familyid"), whole_of(cpu, "modelid"));
      walk(cpu, -1, index);
    }
    if (Problems found = check(); !found.empty()) return found;
    resolve_links();
    ImportedTopology imported;
    imported.format = TopologyFormat::kNcclTopology;
    imported.where = where_;
    ImportedHost host = host_of(tree_, notes_);
    for (const std::string& device : pci_ids_) identify_by_pci(host, device);
    identify_by_architecture(host, sm_, gcn_, lanes_);
    host.scale_up_known = gpu_elements_;
    if (!gpu_elements_)
      notes_.push_back("the file has no gpu elements: NCCL adds NVLinks on the machine, they are taken from the GPU preset");
    if (odd_speeds_ > 0)
      notes_.push_back(fmt::format("{} nets give a speed that no NIC has: the preset's is taken", odd_speeds_));
    imported.summary = fmt::format("one host with {} GPUs, {} NICs and {} NUMA nodes", gpus_, nics_, tree_.cpus);
    imported.notes = std::move(notes_);
    imported.holds = std::move(host);
    return imported;
  }

 private:
  Problems check() const {
    if (tree_.nodes.size() > kMostDevices * 8) {
      return {scan::problem("too_large", where_, 0, fmt::format("{} PCI devices in one host", tree_.nodes.size()))};
    }
    if (gpus_ + nics_ > static_cast<std::int32_t>(kMostDevices)) {
      return {scan::problem("too_large", where_, 0, fmt::format("{} GPUs and NICs in one host", gpus_ + nics_),
                            fmt::format("a host with up to {} devices can be read", kMostDevices))};
    }
    if (gpus_ > 0) return {};
    if (unclassed_ > 0) {
      return {scan::problem(
          "no_class", where_, 0,
          fmt::format("{} PCI devices are listed by bus id only: which are GPUs is known on the machine alone", unclassed_),
          "run a job there with NCCL_TOPO_DUMP_FILE=FILE and import that file")};
    }
    return {scan::problem("no_gpu", where_, 0, "the file holds no GPU", "dump the topology on a host with GPUs")};
  }

  std::int32_t add(PciNode node) {
    tree_.nodes.push_back(std::move(node));
    return static_cast<std::int32_t>(tree_.nodes.size()) - 1;
  }

  void walk(const pugi::xml_node& parent, std::int32_t above, std::int32_t cpu) {
    for (const pugi::xml_node& child : parent.children()) {
      if (tree_.nodes.size() > kMostDevices * 8) return;
      const std::string_view name = child.name();
      if (name == "pci") {
        walk(child, add_pci(child, above, cpu), cpu);
      } else if (name == "nic") {
        add_nets(child, above, cpu);
      } else if (name == "gpu" && above >= 0) {
        add_gpu(child, above, cpu);
      } else if (name == "pcilink" && above >= 0) {
        pci_links_.emplace_back(above, scan::lower(text_of(child, "target")));
      }
    }
  }

  std::int32_t add_pci(const pugi::xml_node& pci, std::int32_t above, std::int32_t cpu) {
    PciNode node;
    node.parent = above;
    node.cpu = cpu;
    node.bus_id = node.label = scan::lower(text_of(pci, "busid"));
    const std::string speed = text_of(pci, "link_speed");
    const std::vector<std::string_view> words = scan::words(speed);
    if (words.size() >= 2 && words[1] == "GT/s")
      node.up = pcie_rate(scan::number(words[0]).value_or(0), whole_of(pci, "link_width"));
    const std::int64_t pci_class = hex_of(pci, "class");
    if (pci_class < 0) ++unclassed_;
    const std::int64_t base = pci_class >> 16, kind = pci_class >> 8;
    // An accelerator of class 0x12 or a display of 0x03; AMD's display parts in servers say 0x0380.
    if (base == 0x03 || base == 0x12 || pci.child("gpu")) {
      node.kind = PciNode::Kind::kGpu;
      ++gpus_;
      const std::string vendor = text_of(pci, "vendor"), device = text_of(pci, "device");
      if (vendor.size() > 2 && device.size() > 2) pci_ids_.insert(scan::lower(vendor.substr(2) + ":" + device.substr(2)));
    } else if (base == 0x02 || pci.child("nic")) {
      node.kind = PciNode::Kind::kNic;
      ++nics_;
    } else if (kind == 0x0680) {
      switches_.insert(node.bus_id);
    }
    const std::int32_t index = add(std::move(node));
    by_bus_[tree_.nodes[static_cast<std::size_t>(index)].bus_id] = index;
    return index;
  }

  void add_gpu(const pugi::xml_node& gpu, std::int32_t node, std::int32_t cpu) {
    gpu_elements_ = true;
    tree_.nodes[static_cast<std::size_t>(node)].number = whole_of(gpu, "dev");
    sm_ = static_cast<std::int32_t>(std::clamp<std::int64_t>(whole_of(gpu, "sm"), 0, 1'000'000));
    gcn_ = text_of(gpu, "gcn");
    std::int32_t lanes = 0;
    for (const pugi::xml_node& link : gpu.children()) {
      const std::string_view name = link.name();
      if (name == "nvlink" || name == "xgmi") {
        ScaleUpEnd end;
        end.gpu = node;
        end.xgmi = name == "xgmi";
        end.lanes = static_cast<std::int32_t>(std::clamp<std::int64_t>(whole_of(link, "count"), 1, 1024));
        lanes += end.lanes;
        pending_.push_back({end, scan::lower(text_of(link, "target")), hex_of(link, "tclass")});
      } else if (name == "c2c") {
        const double rate = std::max(scan::number(text_of(link, "bw")).value_or(0), 0.0) *
                            static_cast<double>(std::clamp<std::int64_t>(whole_of(link, "count"), 1, 1024)) / 1000;
        ScaleUpEnd end;
        end.gpu = node;
        end.to = ScaleUpEnd::To::kCpu;
        end.other = cpu;
        if (rate > 0 && rate < 1e6) end.rate = gb_per_s(rate);
        tree_.scale_up.push_back(end);
      }
    }
    lanes_ = std::max(lanes_, lanes);
  }

  /// Ports of one NIC are one device with the sum of their speeds.
  void add_nets(const pugi::xml_node& nic, std::int32_t above, std::int32_t cpu) {
    std::int32_t index = above;
    if (above < 0 || tree_.nodes[static_cast<std::size_t>(above)].kind != PciNode::Kind::kNic) {
      PciNode node;  // a virtual NIC without a PCI device of its own
      node.kind = PciNode::Kind::kNic;
      node.parent = above;
      node.cpu = cpu;
      index = add(std::move(node));
      ++nics_;
    }
    PciNode& node = tree_.nodes[static_cast<std::size_t>(index)];
    std::int32_t ports = 0;
    double speed = 0;
    bool odd = false;
    for (const pugi::xml_node& net : nic.children("net")) {
      if (ports++ == 0) {
        node.label = text_of(net, "name");
        node.number = whole_of(net, "dev");
      }
      double megabits = static_cast<double>(whole_of(net, "speed"));
      if (megabits <= 0) megabits = 10000;  // as NCCL takes it
      odd = odd || megabits > kFastestNet;
      speed += megabits;
    }
    if (ports == 0) return;
    node.ports = ports;
    if (odd) {
      ++odd_speeds_;
    } else {
      node.port_rate = BytesPerSecond(speed * 1e6 / 8);
    }
  }

  void resolve_links() {
    std::size_t lost = 0;
    for (Pending& pending : pending_) {
      ScaleUpEnd& end = pending.end;
      const auto found = by_bus_.find(pending.target);
      const bool to_gpu =
          found != by_bus_.end() && tree_.nodes[static_cast<std::size_t>(found->second)].kind == PciNode::Kind::kGpu;
      const std::int64_t kind = pending.target_class >> 8;
      if (to_gpu) {
        end.other = found->second;
      } else if (pending.target_class == 0x068001) {
        end.to = ScaleUpEnd::To::kCpu;
        end.other = tree_.nodes[static_cast<std::size_t>(end.gpu)].cpu;
      } else if (kind == 0x0680 || switches_.contains(pending.target) || pending.target.starts_with("fffffff")) {
        end.to = ScaleUpEnd::To::kSwitch;
        end.switch_name = pending.target;
      } else {
        ++lost;
        continue;
      }
      tree_.scale_up.push_back(end);
    }
    for (const auto& [node, target] : pci_links_) {
      const auto found = by_bus_.find(target);
      if (found != by_bus_.end() && found->second != node && node < found->second)
        tree_.bridged.emplace_back(node, found->second);
    }
    if (lost > 0)
      notes_.push_back(fmt::format("{} NVLinks or xGMI links lead to devices that the file does not list: left out", lost));
  }

  struct Pending {
    ScaleUpEnd end;
    std::string target;
    std::int64_t target_class = -1;
  };

  const std::string& where_;
  PciTree tree_;
  std::vector<std::string> notes_;
  std::map<std::string, std::int32_t> by_bus_;
  std::set<std::string> switches_, pci_ids_;
  std::vector<std::pair<std::int32_t, std::string>> pci_links_;
  std::vector<Pending> pending_;
  bool gpu_elements_ = false;
  std::int32_t gpus_ = 0, nics_ = 0, unclassed_ = 0, sm_ = 0, lanes_ = 0, odd_speeds_ = 0;
  std::string gcn_;
};

}  // namespace

Outcome<ImportedTopology> import_nccl_topology(std::string_view text, const std::string& where) {
  pugi::xml_document document;
  if (Problems problems = parse_xml(document, text, where); !problems.empty()) return problems;
  const pugi::xml_node system = document.child("system");
  if (!system) return scan::problem("xml", where, 0, "there is no <system> element");
  return NcclReader(where).read(system);
}

}  // namespace cpfit
