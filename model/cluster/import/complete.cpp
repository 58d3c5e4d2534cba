// From what a file holds to a Cluster: rates, latencies and the fabric that it does not hold come from the GPU's data sheet and
// from the first cluster preset with that GPU (else of its generation). Every such value is named in the notes.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "model/cluster/cluster_spec.h"
#include "model/cluster/import/complete.h"
#include "model/cluster/import/identity.h"
#include "model/cluster/import/import.h"
#include "model/cluster/import/scan.h"
#include "model/quantity/index.h"
#include "model/quantity/text.h"

namespace cpfit {
namespace {

class HostCompletion {
 public:
  HostCompletion(const ImportedHost& host, const ImportDefaults& defaults, std::vector<std::string>& notes)
      : host_(host), gpu_(defaults.gpu), spec_(defaults.spec), nic_rate_(defaults.nic_rate), notes_(notes) {
    link_rate_ = gpu_.scale_up_links > 0 ? gpu_.scale_up / gpu_.scale_up_links : BytesPerSecond{};
    // A GPU on C2C has no PCIe of its own: its data sheet gives the rate of C2C.
    pcie_ = spec_.gpu_on_c2c ? spec_.pcie_rate : gpu_.pcie;
  }

  Outcome<NodeTemplate> build(const std::string& where) {
    add_vertices();
    if (gpus_.empty()) return scan::problem("no_gpu", where, 0, "the file holds no GPU");
    if (link_rate_ == BytesPerSecond{} &&
        (!host_.bonded.empty() ||
         std::any_of(host_.cables.begin(), host_.cables.end(), [](const auto& c) { return is_scale_up(c.link_class); }))) {
      return scan::problem("gpu", where, 0, fmt::format("the file shows NVLink or xGMI, and {} has none", gpu_.name),
                           "give another --gpu (`cpfit presets gpus` lists them)");
    }
    for (const ImportedCable& cable : host_.cables) add_cable(cable);
    rate_host_bridges();
    add_bonded();
    if (!host_.scale_up_known) add_preset_scale_up();
    tell();
    return std::move(out_);
  }

 private:
  void add_vertices() {
    std::map<VertexKind, std::int32_t> counted;
    for (const ImportedDevice& device : host_.devices) {
      static constexpr const char* kStems[] = {"gpu", "nvsw", "pcie", "cpu", "nic"};
      const std::int32_t index = counted[device.kind]++;
      const bool nic = device.kind == VertexKind::kNic;
      if (device.kind == VertexKind::kGpu) gpus_.push_back(static_cast<std::int32_t>(out_.vertices.size()));
      out_.vertices.push_back(
          {kStems[static_cast<std::size_t>(device.kind)] + std::to_string(index), device.kind, 0, index, nic ? index : -1});
      if (!nic) continue;
      if (device.port_rate && !nic_rate_) {
        out_.nic_ports.push_back({*device.port_rate, device.ports});
      } else {
        assumed_nics_ += nic_rate_ ? 0 : 1;
        out_.nic_ports.push_back({nic_rate_.value_or(spec_.nic_rate) * device.ports, device.ports});
      }
    }
  }

  VertexKind kind(std::int32_t device) const { return host_.devices[at(device)].kind; }
  bool is_gpu(std::int32_t device) const { return kind(device) == VertexKind::kGpu; }

  void add_cable(const ImportedCable& cable) {
    BytesPerSecond rate = cable.rate.value_or(BytesPerSecond{});
    std::int32_t lanes = std::max(cable.lanes, 1);
    LinkClass link_class = cable.link_class;
    Seconds latency = spec_.latency.pcie;
    const bool gpu = is_gpu(cable.a) || is_gpu(cable.b);
    const bool cpu = kind(cable.a) == VertexKind::kCpu || kind(cable.b) == VertexKind::kCpu;
    if (is_scale_up(link_class)) {
      const bool half = kind(cable.a) == VertexKind::kNvSwitch || kind(cable.b) == VertexKind::kNvSwitch;
      latency = (link_class == LinkClass::kXgmi ? spec_.latency.xgmi : spec_.latency.nvlink) / (half ? 2 : 1);
      if (cable.rate && cable.lanes == 0) lanes = lanes_of(rate);
      if (!cable.rate) rate = link_rate_ * lanes;
      scale_up_assumed_ = scale_up_assumed_ || !cable.rate;
    } else if (link_class == LinkClass::kSocket) {
      latency = spec_.latency.socket;
      if (!cable.rate) rate = spec_.cpu_rate;
      socket_assumed_ = socket_assumed_ || !cable.rate;
    } else if (link_class == LinkClass::kLocal && gpu && cpu) {  // NVLink or C2C to the CPU
      latency = spec_.latency.local;
      if (cable.rate && cable.lanes == 0) lanes = lanes_of(rate);
      if (!cable.rate) rate = cable.lanes > 1 ? link_rate_ * lanes : gpu_.pcie;
    } else if (link_class == LinkClass::kLocal) {
      latency = spec_.latency.local;  // host bridge: rated once its cables are known
    } else if (gpu && cpu && spec_.gpu_on_c2c && !cable.rate) {
      link_class = LinkClass::kLocal;
      latency = spec_.latency.local;
      rate = gpu_.pcie;
    } else {
      if (!cable.rate) rate = pcie_;
      pcie_assumed_ = pcie_assumed_ || !cable.rate;
      if (gpu && rate > gpu_.pcie) {
        constexpr double kRounding = 1.02;  // data sheets say 31 for 31.5
        capped_ += rate > gpu_.pcie * kRounding ? 1 : 0;
        rate = gpu_.pcie;
      } else if (gpu && cable.rate && rate < gpu_.pcie * 0.5) {
        ++slow_;
      }
    }
    join(out_.links, cable.a, cable.b, link_class, rate, latency, lanes);
  }

  std::int32_t lanes_of(BytesPerSecond rate) const {
    return link_rate_ > BytesPerSecond{} ? std::max(1, static_cast<std::int32_t>(std::lround(std::min(rate / link_rate_, 1e6))))
                                         : 1;
  }

  /// A host bridge carries what hangs below it: it is a place, not a cable.
  void rate_host_bridges() {
    std::map<std::int32_t, BytesPerSecond> below;
    for (const Link& link : out_.links) {
      if (link.link_class == LinkClass::kPcie) below[link.to] += link.capacity;
    }
    for (Link& link : out_.links) {
      if (link.link_class != LinkClass::kLocal || link.capacity > BytesPerSecond{}) continue;
      const bool up = kind(link.to) == VertexKind::kCpu;
      link.capacity = below[up ? link.from : link.to];
    }
  }

  /// NV# between pairs: direct while the pairs of a GPU need no more links than it has, else through NVSwitches.
  void add_bonded() {
    if (host_.bonded.empty()) return;
    std::map<std::int32_t, std::int32_t> sum;
    std::map<std::int32_t, std::set<std::int32_t>> peers;
    for (const BondedPair& pair : host_.bonded) {
      for (const std::int32_t end : {pair.a, pair.b}) {
        sum[end] += pair.lanes;
        peers[end].insert(end == pair.a ? pair.b : pair.a);
      }
    }
    std::set<std::int32_t> placed;
    std::size_t over = 0;
    for (const BondedPair& pair : host_.bonded) {
      const bool fits = sum[pair.a] <= gpu_.scale_up_links && sum[pair.b] <= gpu_.scale_up_links;
      std::set<std::int32_t> group = peers[pair.a];
      group.insert(pair.a);
      const bool whole = std::all_of(group.begin(), group.end(), [&](std::int32_t member) {
        std::set<std::int32_t> other = peers[member];
        other.insert(member);
        return other == group;
      });
      const bool even = std::all_of(host_.bonded.begin(), host_.bonded.end(), [&](const BondedPair& other) {
        return !group.contains(other.a) || other.lanes == pair.lanes;
      });
      if (fits || !whole || !even) {
        over += fits ? 0 : 1;
        join(out_.links, pair.a, pair.b, LinkClass::kNvlink, link_rate_ * pair.lanes, spec_.latency.nvlink, pair.lanes);
      } else if (!placed.contains(pair.a)) {
        add_plane(group, pair.lanes);
        placed.insert(group.begin(), group.end());
      }
    }
    scale_up_assumed_ = true;
    if (over > 0)
      notes_.push_back(fmt::format("{} NVLink pairs need more links than {} has and are no NVSwitch plane: drawn as written",
                                   over, gpu_.name));
  }

  void add_plane(const std::set<std::int32_t>& gpus, std::int32_t lanes) {
    if (spec_.domain_nodes > 1 && gpus.size() == gpus_.size()) {  // the plane lies outside the host
      out_.domain_nodes = spec_.domain_nodes;
      out_.domain_lanes = lanes;
      out_.domain_uplink = link_rate_ * lanes;
      out_.domain_latency = spec_.latency.nvlink / 2;
      notes_.push_back(fmt::format("NVLink leaves the host: {} hosts share one NVSwitch plane, as in the preset {} (assumed)",
                                   spec_.domain_nodes, spec_.name));
      return;
    }
    std::int32_t index = 0;
    for (const Vertex& vertex : out_.vertices) index += vertex.kind == VertexKind::kNvSwitch ? 1 : 0;
    const auto plane = static_cast<std::int32_t>(out_.vertices.size());
    out_.vertices.push_back({"nvsw" + std::to_string(index), VertexKind::kNvSwitch, 0, index, -1});
    for (const std::int32_t gpu : gpus)
      join(out_.links, gpu, plane, LinkClass::kNvlink, link_rate_ * lanes, spec_.latency.nvlink / 2, lanes);
  }

  /// Files of cloud images leave NVLink out.
  void add_preset_scale_up() {
    if (gpu_.scale_up_links == 0 || gpus_.size() < 2 || spec_.scale_up == ScaleUpKind::kNone) return;
    if (spec_.scale_up == ScaleUpKind::kSwitch) {
      add_plane({gpus_.begin(), gpus_.end()}, gpu_.scale_up_links);
    } else if (static_cast<std::size_t>(spec_.gpus) == gpus_.size()) {
      const ClusterSpec& spec = spec_;
      const NodeTemplate preset = node_template(spec, gpu_);
      for (const Link& link : preset.links) {
        if (is_scale_up(link.link_class)) out_.links.push_back(link);  // GPUs are vertices 0.. in both
      }
    } else {
      notes_.push_back(fmt::format("how the NVLinks join {} GPUs is not known: they are left out", gpus_.size()));
      return;
    }
    notes_.push_back(fmt::format("NVLink or xGMI between the GPUs is assumed as in the preset {}", spec_.name));
  }

  void tell() const {
    if (scale_up_assumed_) {
      notes_.push_back(fmt::format("NVLink and xGMI rates are assumed from the data sheet of {}: {} per link", gpu_.name,
                                   print_rate(link_rate_)));
    }
    if (pcie_assumed_)
      notes_.push_back(fmt::format("PCIe rates are assumed from the data sheet of {}: {}", gpu_.name, print_rate(pcie_)));
    if (socket_assumed_)
      notes_.push_back(
          fmt::format("the rate between CPUs is assumed as in the preset {}: {}", spec_.name, print_rate(spec_.cpu_rate)));
    if (assumed_nics_ > 0) {
      notes_.push_back(fmt::format("the rate of {} NICs is assumed as in the preset {}: {} per port (--nic-rate changes it)",
                                   assumed_nics_, spec_.name, print_rate(spec_.nic_rate)));
    }
    if (capped_ > 0)
      notes_.push_back(
          fmt::format("{} GPUs show a PCIe link faster than the data sheet's: {} is taken", capped_, print_rate(gpu_.pcie)));
    if (slow_ > 0) {
      notes_.push_back(fmt::format("{} GPUs show a PCIe link below half of {}: idle links train down; taken as read", slow_,
                                   print_rate(gpu_.pcie)));
    }
  }

  const ImportedHost& host_;
  const Gpu& gpu_;
  const ClusterSpec& spec_;
  std::optional<BytesPerSecond> nic_rate_;
  std::vector<std::string>& notes_;
  BytesPerSecond link_rate_, pcie_;
  NodeTemplate out_;
  std::vector<std::int32_t> gpus_;
  bool scale_up_assumed_ = false, pcie_assumed_ = false, socket_assumed_ = false;
  std::int32_t assumed_nics_ = 0, capped_ = 0, slow_ = 0;
};

/// Vertices of the tree below each switch that hangs on a CPU or host bridge: the place where ports may be bonded.
void bond_ports(NodeTemplate& host, std::vector<std::string>& notes) {
  const auto kind = [&](std::int32_t v) { return host.vertices[at(v)].kind; };
  std::vector<std::vector<std::int32_t>> next(host.vertices.size());
  for (const Link& link : host.links) {
    if (link.link_class == LinkClass::kPcie && kind(link.from) != VertexKind::kCpu && kind(link.to) != VertexKind::kCpu)
      next[at(link.from)].push_back(link.to);
  }
  std::vector<bool> seen(host.vertices.size());
  std::map<std::int32_t, std::int32_t> rail_of;  // NIC -> NIC it is bonded with
  std::int32_t bonded = 0, per_gpu = 0;
  for (std::size_t start = 0; start < host.vertices.size(); ++start) {
    if (seen[start] || host.vertices[start].kind != VertexKind::kPcieSwitch) continue;
    std::vector<std::int32_t> queue{static_cast<std::int32_t>(start)};
    seen[start] = true;
    std::int32_t gpus = 0, nics = 0;
    for (std::size_t head = 0; head < queue.size(); ++head) {
      gpus += kind(queue[head]) == VertexKind::kGpu ? 1 : 0;
      nics += kind(queue[head]) == VertexKind::kNic ? 1 : 0;
      for (const std::int32_t to : next[at(queue[head])]) {
        if (!seen[at(to)]) queue.push_back(to);
        seen[at(to)] = true;
      }
    }
    if (gpus == 0 || nics <= gpus || nics % gpus != 0) continue;
    const std::int32_t size = nics / gpus;
    for (const std::int32_t v : queue) {
      if (kind(v) != VertexKind::kPcieSwitch) continue;
      std::vector<std::int32_t> ports;
      for (const std::int32_t to : next[at(v)]) {
        if (kind(to) == VertexKind::kNic) ports.push_back(to);
      }
      std::sort(ports.begin(), ports.end());
      if (static_cast<std::int32_t>(ports.size()) % size != 0) continue;
      for (std::size_t i = 0; i < ports.size(); ++i) rail_of[ports[i]] = ports[i - i % at(size)];
      bonded += static_cast<std::int32_t>(ports.size());
      per_gpu = size;
    }
  }
  if (bonded == 0) return;
  for (const auto& [nic, first] : rail_of) host.vertices[at(nic)].rail = host.vertices[at(first)].rail;
  merge_parallel_devices(host.vertices, host.links, host.nic_ports);
  for (Vertex& vertex : host.vertices) {
    if (vertex.kind != VertexKind::kNic) continue;
    vertex.rail = vertex.index;
    vertex.name = "nic" + std::to_string(vertex.index);
  }
  notes.push_back(fmt::format("{} NIC ports are bonded, {} per GPU under its switch: a route takes one NIC", bonded, per_gpu));
}

std::int32_t domain_of(const Cluster& cluster) {
  std::int32_t domain = 0;
  while (domain < cluster.gpus() && cluster.topology->scale_up_component(domain) == cluster.topology->scale_up_component(0))
    ++domain;
  return domain;
}

}  // namespace

Outcome<ImportDefaults> import_defaults(const ImportedTopology& imported, const ImportOptions& options,
                                        std::vector<std::string>& notes) {
  const auto* host = std::get_if<ImportedHost>(&imported.holds);
  const std::string known = host != nullptr ? host->gpu : "";
  if (options.gpu.empty() && known.empty()) {
    return scan::problem("gpu", imported.where, 0,
                         host != nullptr && !host->gpu_reason.empty()
                             ? fmt::format("the file does not say which GPU it is ({})", host->gpu_reason)
                             : std::string("the file does not say which GPU it is"),
                         "give --gpu NAME (`cpfit presets gpus` lists them): rates come from its data sheet");
  }
  Outcome<Gpu> gpu = find_gpu(options.gpu.empty() ? known : options.gpu);
  if (!gpu) return gpu.problems();
  if (options.gpu.empty()) {
    notes.push_back(fmt::format("the GPU is taken as {} ({}){}", gpu->name, host->gpu_reason,
                                host->gpu_assumed ? ": assumed, --gpu changes it" : ""));
  }
  ImportDefaults defaults{*gpu, {}, std::nullopt};
  if (!options.nic_rate.empty()) {
    const Outcome<BytesPerSecond> rate = parse_rate(options.nic_rate);
    if (!rate) {
      Problems problems = rate.problems();
      for (Problem& problem : problems) problem.where = "--nic-rate";
      return problems;
    }
    if (!(rate->value() > 0))
      return Problem{"import.nic_rate", "--nic-rate", "a rate of zero carries nothing", "give one above zero"};
    defaults.nic_rate = *rate;
  }
  const std::vector<ClusterSpec> specs = cluster_specs();
  const ClusterSpec* best = nullptr;
  int best_score = -1;
  const std::vector<Gpu> gpus = gpu_presets();
  for (const ClusterSpec& spec : specs) {  // the same GPU, else its generation, else a box without NVLink; the first of equals
    const auto other = std::find_if(gpus.begin(), gpus.end(), [&](const Gpu& preset) { return preset.name == spec.gpu; });
    const bool alike = (spec.scale_up == ScaleUpKind::kNone) == (gpu->scale_up_links == 0);
    const int score = spec.gpu == gpu->name ? 3 : other != gpus.end() && other->generation == gpu->generation ? 2 : alike ? 1 : 0;
    if (score > best_score) {
      best = &spec;
      best_score = score;
    }
  }
  defaults.spec = *best;
  return defaults;
}

Outcome<ImportedCluster> complete_topology(const ImportedTopology& imported, const ImportOptions& options) {
  constexpr std::int64_t kMostGpus = 131072;
  if (std::holds_alternative<ImportedOrder>(imported.holds)) {
    return scan::problem("order_only", imported.where, 0,
                         fmt::format("the file holds {}: no cluster can be built from an order", imported.summary),
                         "import the topology of the same machine (NCCL_TOPO_DUMP_FILE, nvidia-smi topo -m)");
  }
  ImportedCluster out;
  out.notes = imported.notes;
  const Outcome<ImportDefaults> defaults = import_defaults(imported, options, out.notes);
  if (!defaults) return defaults.problems();
  Cluster& cluster = out.cluster;
  cluster.gpu = defaults->gpu;
  cluster.name = imported.where.substr(imported.where.find_last_of('/') + 1);
  if (const auto* fabric = std::get_if<ImportedFabric>(&imported.holds)) {
    Problems found = complete_fabric(*fabric, imported.where, *defaults, options.nodes, out);
    if (!found.empty()) return found;
  } else {
    const auto& host = std::get<ImportedHost>(imported.holds);
    Outcome<NodeTemplate> node = HostCompletion(host, *defaults, out.notes).build(imported.where);
    if (!node) return node.problems();
    if (options.bond_ports) bond_ports(node.value(), out.notes);
    const auto gpus = std::count_if(node->vertices.begin(), node->vertices.end(),
                                    [](const Vertex& vertex) { return vertex.kind == VertexKind::kGpu; });
    cluster.gpus_per_node = static_cast<std::int32_t>(gpus);
    cluster.nodes = std::max<std::int64_t>(options.nodes, 1);
    if (cluster.nodes > kMostGpus / gpus) {
      return scan::problem("nodes", imported.where, 0,
                           fmt::format("{} hosts of {} GPUs are more than {} GPUs", cluster.nodes, gpus, kMostGpus));
    }
    cluster.cpu_slowdown = defaults->spec.cpu_slowdown;
    cluster.topology = assemble(*node, defaults->spec.fabric, cluster.nodes);
    if (cluster.nodes > 1 && !node->nic_ports.empty()) {
      out.notes.push_back(
          fmt::format("{} such hosts are assumed, joined as in the preset {}", cluster.nodes, defaults->spec.name));
    }
  }
  cluster.scale_up_domain = domain_of(cluster);
  cluster.source = fmt::format("imported from {} ({}): {}", cluster.name, name_of(imported.format), imported.summary);
  for (const std::string& note : out.notes) cluster.source += "; " + note;
  return out;
}

}  // namespace cpfit
