// From the codes of a matrix to a tree of switches and sockets. PIX, PXB, PHB and NODE are read as "in the same set", sets of one
// code lie inside sets of the next: PIX sets are switches, several of them in a PXB set hang under one more switch, several PXB
// sets in a PHB set under a host bridge, several PHB sets in a NODE set under one CPU; the rest is SYS. GPUs joined by NVLink
// hide their PCIe way: their NUMA node decides, as far as the written codes allow.
#include <fmt/format.h>

#include <map>
#include <numeric>
#include <set>

#include "model/cluster/import/scan.h"
#include "model/cluster/import/smi_matrix.h"

namespace cpfit {
namespace {

enum Level : std::size_t { kPix, kPxb, kPhb, kNode, kLevels };

/// The level at which two devices first share a set; kLevels for SYS; nothing where the PCIe way is not written.
std::optional<std::size_t> level_of(const std::string& code) {
  if (code == "PIX") return kPix;
  if (code == "PXB") return kPxb;
  if (code == "PHB") return kPhb;
  if (code == "NODE") return kNode;
  if (code == "SYS") return kLevels;
  return std::nullopt;
}

class Sets {
 public:
  explicit Sets(std::size_t count) : parent_(count) { std::iota(parent_.begin(), parent_.end(), std::size_t{0}); }
  std::size_t of(std::size_t i) {
    while (parent_[i] != i) i = parent_[i] = parent_[parent_[i]];
    return i;
  }
  void join(std::size_t a, std::size_t b) { parent_[std::max(of(a), of(b))] = std::min(of(a), of(b)); }

 private:
  std::vector<std::size_t> parent_;
};

/// Members of each set, in order of the first member.
std::vector<std::vector<std::size_t>> grouped(Sets& sets, const std::vector<std::size_t>& members) {
  std::map<std::size_t, std::vector<std::size_t>> by_root;
  for (const std::size_t member : members) by_root[sets.of(member)].push_back(member);
  std::vector<std::vector<std::size_t>> out;
  for (auto& [root, group] : by_root) out.push_back(std::move(group));
  return out;
}

class TreeOfMatrix {
 public:
  TreeOfMatrix(const SmiMatrix& matrix, std::vector<std::string>& notes)
      : matrix_(matrix), notes_(notes), sets_(kLevels, Sets(matrix.names.size())) {}

  ImportedHost build() {
    make_sets();
    place_hidden();
    report_impossible();
    add_devices();
    std::vector<std::size_t> all(matrix_.names.size());
    std::iota(all.begin(), all.end(), std::size_t{0});
    std::vector<std::int32_t> cpus;
    for (const auto& group : grouped(sets_[kNode], all)) cpus.push_back(add_socket(group));
    for (std::size_t a = 0; a < cpus.size(); ++a) {
      for (std::size_t b = a + 1; b < cpus.size(); ++b) cable(cpus[a], cpus[b], LinkClass::kSocket);
    }
    return std::move(host_);
  }

 private:
  bool is_gpu(std::size_t i) const { return matrix_.names[i].starts_with("GPU"); }

  void make_sets() {
    for (std::size_t i = 0; i < matrix_.names.size(); ++i) {
      for (std::size_t j = i + 1; j < matrix_.names.size(); ++j) {
        const std::optional<std::size_t> level = level_of(matrix_.codes[i][j]);
        for (std::size_t at = level.value_or(kLevels); at < kLevels; ++at) sets_[at].join(i, j);
      }
    }
  }

  bool written_apart(std::size_t a, std::size_t b) {
    const std::size_t n = matrix_.names.size();
    for (std::size_t i = 0; i < n; ++i) {
      if (sets_[kNode].of(i) != a) continue;
      for (std::size_t j = 0; j < n; ++j) {
        if (sets_[kNode].of(j) == b && level_of(matrix_.codes[i][j]) == kLevels) return true;
      }
    }
    return false;
  }

  /// GPUs whose PCIe way is hidden share a CPU when they have one affinity and no code says otherwise.
  void place_hidden() {
    std::set<std::pair<std::size_t, std::size_t>> apart;
    for (std::size_t i = 0; i < matrix_.names.size(); ++i) {
      for (std::size_t j = i + 1; j < matrix_.names.size() && is_gpu(i); ++j) {
        if (!is_gpu(j) || level_of(matrix_.codes[i][j]) || matrix_.affinity[i] != matrix_.affinity[j]) continue;
        const std::size_t a = sets_[kNode].of(i), b = sets_[kNode].of(j);
        if (a == b || apart.contains({a, b})) continue;
        if (written_apart(a, b)) {
          apart.insert({a, b});
        } else {
          sets_[kNode].join(a, b);
        }
      }
    }
  }

  void report_impossible() {
    std::size_t count = 0;
    std::string first;
    for (std::size_t i = 0; i < matrix_.names.size(); ++i) {
      for (std::size_t j = i + 1; j < matrix_.names.size(); ++j) {
        const std::optional<std::size_t> level = level_of(matrix_.codes[i][j]);
        if (!level) continue;
        std::size_t drawn = kPix;
        while (drawn < kLevels && sets_[drawn].of(i) != sets_[drawn].of(j)) ++drawn;
        if (drawn == *level) continue;
        if (count++ == 0) {
          first =
              fmt::format("{} and {} say {}", scan::shown(matrix_.names[i]), scan::shown(matrix_.names[j]), matrix_.codes[i][j]);
        }
      }
    }
    if (count > 0)
      notes_.push_back(fmt::format("{} codes fit no tree of switches and are drawn nearer than written, first {}", count, first));
  }

  std::int32_t add(VertexKind kind, std::string label = "") {
    host_.devices.push_back({kind, std::move(label), std::nullopt, 1});
    return static_cast<std::int32_t>(host_.devices.size()) - 1;
  }

  void cable(std::int32_t a, std::int32_t b, LinkClass link_class) {
    host_.cables.push_back({a, b, link_class, std::nullopt, 1});
  }

  void add_devices() {
    device_.resize(matrix_.names.size());
    for (const bool gpus : {true, false}) {
      for (std::size_t i = 0; i < matrix_.names.size(); ++i) {
        if (is_gpu(i) == gpus) device_[i] = add(gpus ? VertexKind::kGpu : VertexKind::kNic, matrix_.labels[i]);
      }
    }
    for (std::size_t i = 0; i < matrix_.names.size(); ++i) {
      for (std::size_t j = i + 1; j < matrix_.names.size(); ++j) {
        const std::string& code = matrix_.codes[i][j];
        if (!code.starts_with("NV")) continue;
        const auto lanes = static_cast<std::int32_t>(scan::whole(std::string_view(code).substr(2)).value_or(1));
        if (lanes > 0) host_.bonded.push_back({device_[i], device_[j], lanes});
      }
    }
  }

  std::int32_t add_socket(const std::vector<std::size_t>& members) {
    const std::int32_t cpu = add(VertexKind::kCpu);
    for (const auto& bridge : grouped(sets_[kPhb], members)) {
      const auto complexes = grouped(sets_[kPxb], bridge);
      std::int32_t root = cpu;
      if (complexes.size() > 1) {
        root = add(VertexKind::kPcieSwitch, "host bridge");
        cable(root, cpu, LinkClass::kLocal);
      }
      for (const auto& complex : complexes) add_complex(complex, root);
    }
    return cpu;
  }

  void add_complex(const std::vector<std::size_t>& members, std::int32_t root) {
    const auto switches = grouped(sets_[kPix], members);
    if (switches.size() > 1) {
      const std::int32_t top = add(VertexKind::kPcieSwitch);
      cable(top, root, LinkClass::kPcie);
      root = top;
    }
    for (const auto& group : switches) {
      std::int32_t parent = root;
      if (group.size() > 1 || switches.size() > 1) {
        parent = add(VertexKind::kPcieSwitch);
        cable(parent, root, LinkClass::kPcie);
      }
      for (const std::size_t member : group) cable(device_[member], parent, LinkClass::kPcie);
    }
  }

  const SmiMatrix& matrix_;
  std::vector<std::string>& notes_;
  std::vector<Sets> sets_;
  std::vector<std::int32_t> device_;
  ImportedHost host_;
};

}  // namespace

ImportedHost host_of(const SmiMatrix& matrix, std::vector<std::string>& notes) { return TreeOfMatrix(matrix, notes).build(); }

}  // namespace cpfit
