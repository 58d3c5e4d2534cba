#include "calibrate/fit/fit_rates.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <map>
#include <tuple>

namespace cpfit {

namespace {

using Rows = std::vector<const KernelMeasurement*>;

// Below these a group says too little for a curve of its own; another GPU's stands in.
constexpr std::size_t kFewestGemms = 8, kFewestAttentions = 4, kFewestStreams = 5, kFewestSizes = 6;
// One's own run of a probe varies nothing but the size: start-up and rate need two.
constexpr std::size_t kFewestOwnStreams = 2;

const Gpu* gpu_named(std::span<const Gpu> gpus, const std::string& name) {
  const auto found = std::find_if(gpus.begin(), gpus.end(), [&](const Gpu& gpu) { return gpu.name == name; });
  return found == gpus.end() ? nullptr : &*found;
}

/// Groups by key, and within a key keeps the table with most rows: sources are never mixed in one curve, their software and
/// clocks differ.
template <class Key>
class Groups {
 public:
  void add(const Key& key, const std::string& source, const KernelMeasurement& row) { rows_[key][source].push_back(&row); }
  template <class Use>
  void each(Use use) const {
    for (const auto& [key, sources] : rows_) {
      const auto most = std::max_element(sources.begin(), sources.end(),
                                         [](const auto& a, const auto& b) { return a.second.size() < b.second.size(); });
      use(key, most->first, most->second);
    }
  }

 private:
  std::map<Key, std::map<std::string, Rows>> rows_;
};

using GemmKey = std::tuple<std::string, MathKind>;
using AttentionKey = std::tuple<std::string, AttentionLibrary, MathKind>;
using MemoryKey = std::tuple<std::string, std::string, AttentionPass>;
using CollectiveKey = std::tuple<std::string, CollectiveKind, CollectiveForm, std::int64_t>;

/// Bus rate of a node's NICs where the published inter-node tables ran, bytes/s; 0 for clusters we cannot place. The Hugging
/// Face rows come from a shared cluster and spread by ten times: scored, not fitted.
double fabric_rate(const std::string& software) {
  if (software.find("EFA 3200") != std::string::npos || software.find("EFA v4") != std::string::npos) return 400e9;
  if (software.find("OCI BM.GPU.H100.8") != std::string::npos) return 400e9;
  return 0.0;
}

// Trees let two nodes exceed what a ring gets from the NICs (1.2 times measured). The same curve serves rings of one GPU per
// node, which cannot, so the surplus is not granted.
constexpr double kLargestFabricShare = 0.97;

/// SimuMax times attention operators with their host launch: four heads take as long as eight. Scored, not fitted.
bool is_isolated(const KernelTable& table) { return table.source.find("SimuMax") == std::string::npos; }

/// Sliding windows run mostly masked tiles; they would bend the curve of full attention.
bool is_windowed(const AttentionShape& shape) {
  return shape.causal && shape.pairs < 0.45 * static_cast<double>(shape.q_len) * static_cast<double>(shape.kv_len);
}

void fit_gemms(const std::vector<KernelTable>& tables, std::span<const Gpu> gpus, FitReport& report) {
  Groups<GemmKey> groups;
  for (const KernelTable& table : tables) {
    for (const KernelMeasurement& row : table.rows) {
      if (const auto* gemm = std::get_if<GemmMeasurement>(&row.what)) groups.add({row.gpu, gemm->math}, table.source, row);
    }
  }
  groups.each([&](const GemmKey& key, const std::string& source, const Rows& rows) {
    const auto& [name, math] = key;
    const Gpu* gpu = gpu_named(gpus, name);
    if (gpu == nullptr || rows.size() < kFewestGemms) {
      report.left_out.push_back("gemm " + name + " " + std::string(name_of(math)) + ": " + std::to_string(rows.size()) + " rows");
      return;
    }
    GemmRow row{name, math, fit_gemm(rows, peaks_of(*gpu), math)};
    row.curve.quality.source = source;
    report.tables.gemm.push_back(row);
  });
}

void fit_attentions(const std::vector<KernelTable>& tables, std::span<const Gpu> gpus, FitReport& report) {
  Groups<AttentionKey> groups;
  for (const KernelTable& table : tables) {
    for (const KernelMeasurement& row : table.rows) {
      const auto* a = std::get_if<AttentionMeasurement>(&row.what);
      if (a == nullptr || !is_isolated(table) || is_windowed(a->shape)) continue;
      groups.add({row.gpu, a->library, a->shape.math}, table.source, row);
    }
  }
  groups.each([&](const AttentionKey& key, const std::string& source, const Rows& rows) {
    const auto& [name, library, math] = key;
    const Gpu* gpu = gpu_named(gpus, name);
    const std::string label = "attention " + name + " " + std::string(name_of(library)) + " " + std::string(name_of(math));
    if (gpu == nullptr || rows.size() < kFewestAttentions) {
      report.left_out.push_back(label + ": " + std::to_string(rows.size()) + " rows");
      return;
    }
    AttentionFit fit = fit_attention(rows, peaks_of(*gpu), math);
    for (const AttentionPass pass : {AttentionPass::kForward, AttentionPass::kBackward}) {
      AttentionCurve& curve = pass == AttentionPass::kForward ? fit.forward : fit.backward;
      if (static_cast<std::size_t>(curve.quality.rows) < kFewestAttentions) {
        report.left_out.push_back(label + " " + std::string(name_of(pass)) + ": " + std::to_string(curve.quality.rows) + " rows");
        continue;
      }
      curve.quality.source = source;
      report.tables.attention.push_back({name, library, math, pass, curve});
    }
  });
}

/// What fused norms tell of a kernel that only streams: those whose rows are as long as a model is wide, seen as bytes alone.
/// That stands for what a training step streams beside its norms (activations, residuals, casts), of which no table is published.
bool tells_of_streams(const StreamMeasurement& stream) {
  constexpr std::int64_t kNarrowestModel = 1024;
  return stream.kernels == "cudnn_norm" && stream.pass == AttentionPass::kForward && stream.row >= kNarrowestModel &&
         !stream.layer_norm;
}

void fit_memories(const std::vector<KernelTable>& tables, std::span<const Gpu> gpus, FitReport& report) {
  Groups<MemoryKey> groups;
  std::deque<KernelMeasurement> streams;
  for (const KernelTable& table : tables) {
    for (const KernelMeasurement& row : table.rows) {
      const auto* stream = std::get_if<StreamMeasurement>(&row.what);
      if (stream == nullptr) continue;
      groups.add({row.gpu, stream->kernels, stream->pass}, table.source, row);
      if (!tells_of_streams(*stream)) continue;
      KernelMeasurement& plain = streams.emplace_back(row);
      plain.what = StreamMeasurement{"stream", stream->pass, stream->traffic, stream->row};  // no rows to reduce
      groups.add({row.gpu, "stream", stream->pass}, table.source, plain);
    }
  }
  const auto own = [&](const std::string& source) {
    return std::any_of(tables.begin(), tables.end(),
                       [&](const KernelTable& table) { return table.own_run && table.source == source; });
  };
  // GPUs whose rows come from one source share what belongs to the kernel.
  std::map<std::tuple<std::string, AttentionPass, std::string>, std::vector<MemorySample>> kernels_of;
  groups.each([&](const MemoryKey& key, const std::string& source, const Rows& rows) {
    const auto& [name, kernels, pass] = key;
    const Gpu* gpu = gpu_named(gpus, name);
    if (gpu == nullptr || rows.size() < (own(source) ? kFewestOwnStreams : kFewestStreams)) {
      report.left_out.push_back("memory " + name + " " + kernels + ": " + std::to_string(rows.size()) + " rows");
      return;
    }
    for (const KernelMeasurement* row : rows)
      kernels_of[{kernels, pass, source}].push_back({row, gpu->hbm.value(), static_cast<double>(gpu->sm_count)});
  });
  for (const auto& [key, samples] : kernels_of) {
    const auto& [kernels, pass, source] = key;
    for (auto& [name, curve] : fit_memory(samples)) {
      MemoryRow row{name, kernels, pass, curve};
      row.curve.quality.source = source;
      report.tables.memory.push_back(row);
    }
  }
  std::sort(report.tables.memory.begin(), report.tables.memory.end(), [](const MemoryRow& a, const MemoryRow& b) {
    return std::tie(a.gpu, a.kernels, a.pass) < std::tie(b.gpu, b.kernels, b.pass);
  });
}

/// Points of one curve by the version of the library that ran them: where NCCL changes protocol and algorithm moves from one
/// version to the next, so versions are never mixed in one curve.
using CollectiveGroups = std::map<CollectiveKey, std::map<std::string, std::vector<CollectivePoint>>>;

/// Does the switch of this link add (NVLink SHARP, from the third NVSwitch on)? It adds floating-point numbers only: sums of
/// 8-bit integers go another way, up to 1.3 times as long, and have a curve of their own.
bool sums_in_switch(const std::string& link) { return link == "nvlink4" || link == "nvlink5"; }

/// A collective of one person's own run: on the link that the tool names, else the scale-up link, or the NICs between nodes.
void add_own_run(const KernelTable& table, const KernelMeasurement& row, const CollectiveMeasurement& c, const Gpu& gpu,
                 CollectiveGroups& groups, std::map<std::string, std::string>& sources, FitReport& report) {
  std::string link = c.link;
  double raw = 0;
  if (gpu.generation == "host") {
    raw = gpu.scale_up.value();  // of each link the best rate measured: fit_imported sets it
  } else if (c.nodes > 1) {
    link = "nic";
    raw = table.network_rate * c.node_share;
  } else if (link.empty() || link == gpu.scale_up_link || link == "nvlink") {
    link = gpu.scale_up_link;
    raw = gpu.scale_up.value();
  }
  if (link.empty() || raw <= 0) {
    const std::string what =
        c.nodes > 1
            ? "collectives over " + std::to_string(c.nodes) + " nodes: the rate of a node's NICs is not known (--network-rate)"
            : "collectives over '" + (link.empty() ? "a GPU without scale-up link" : link) + "': no raw rate to fit shares of";
    if (std::find(report.left_out.begin(), report.left_out.end(), what) == report.left_out.end()) report.left_out.push_back(what);
    return;
  }
  groups[{link, c.kind, c.form(), c.ranks}][c.software].push_back({c.bytes.value(), row.time.value(), raw, row.spread});
  sources[link] = table.source;
}

void fit_collectives(const std::vector<KernelTable>& tables, std::span<const Gpu> gpus, FitReport& report) {
  // One curve per link class, not per GPU: H100 and H200 share NVLink 4 and measure alike.
  CollectiveGroups groups;
  std::map<std::string, std::string> sources;
  for (const KernelTable& table : tables) {
    const bool within_node = table.own_run || table.source.find("aiconfigurator") != std::string::npos;
    for (const KernelMeasurement& row : table.rows) {
      const auto* c = std::get_if<CollectiveMeasurement>(&row.what);
      const Gpu* gpu = gpu_named(gpus, row.gpu);
      if (c == nullptr || gpu == nullptr) continue;
      if (table.own_run) {
        add_own_run(table, row, *c, *gpu, groups, sources, report);
        continue;
      }
      if (within_node && c->nodes == 1 && gpu->scale_up.value() > 0) {
        const std::string& link = gpu->scale_up_link;
        const CollectiveForm form = c->int8_sums && sums_in_switch(link) ? CollectiveForm::kInt8Sums : CollectiveForm::kUsual;
        groups[{link, c->kind, form, c->ranks}][c->software].push_back(
            {c->bytes.value(), row.time.value(), gpu->scale_up.value()});
        // Between two GPUs an all-to-all is one message each way: the neighbour hop of a ring.
        if (c->kind == CollectiveKind::kAllToAll && c->ranks == 2) {
          groups[{link, CollectiveKind::kSendRecv, CollectiveForm::kUsual, 2}][c->software].push_back(
              {c->bytes.value() / 2, row.time.value(), gpu->scale_up.value()});
        }
        sources[gpu->scale_up_link] = table.source;
      } else if (!within_node && c->nodes > 1 && fabric_rate(c->software) > 0 && c->bytes.value() >= 1024) {
        // Of these sources `software` is the fabric: few points each, one curve of both, which agree within 4 % at equal sizes.
        groups[{"nic", c->kind, CollectiveForm::kUsual, c->ranks}][""].push_back(
            {c->bytes.value(), row.time.value(), fabric_rate(c->software)});
        sources["nic"] = table.source + ": AWS EFA, OCI RoCE, node NICs 400 GB/s";
      }
    }
  }
  for (const auto& [key, versions] : groups) {
    const auto& [link, kind, form, ranks] = key;
    const auto most = std::max_element(versions.begin(), versions.end(),
                                       [](const auto& a, const auto& b) { return a.second.size() < b.second.size(); });
    const std::vector<CollectivePoint>& points = most->second;
    const std::string label = "collective " + link + " " + std::string(name_of(kind)) + " " + std::to_string(ranks) + " ranks" +
                              (form == CollectiveForm::kUsual ? std::string() : ", " + std::string(name_of(form)));
    for (const auto& [version, others] : versions) {
      if (version != most->first)
        report.left_out.push_back(label + ", NCCL " + version + ": " + std::to_string(others.size()) +
                                  " points, beside the curve of NCCL " + most->first);
    }
    std::vector<double> sizes;
    for (const CollectivePoint& point : points) sizes.push_back(point.bytes);
    std::sort(sizes.begin(), sizes.end());
    sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
    if (sizes.size() < kFewestSizes) {
      report.left_out.push_back(label + ": " + std::to_string(sizes.size()) + " sizes");
      continue;
    }
    CollectiveRow row{
        link, kind,
        link == "nic" ? fit_collective(points, kind, ranks, kLargestFabricShare) : fit_collective(points, kind, ranks)};
    row.form = form;
    row.curve.quality.source = sources[link] + (most->first.empty() ? "" : ", NCCL " + most->first);
    report.tables.collective.push_back(row);
  }
}

}  // namespace

DevicePeaks peaks_of(const Gpu& gpu) {
  DevicePeaks peaks;
  peaks.sm_count = gpu.sm_count;
  peaks.hbm = gpu.hbm.value();
  peaks.math = {gpu.bf16.value() > 0 ? gpu.bf16.value() : gpu.fp16.value(),
                gpu.fp8.value(),
                gpu.fp8.value(),
                gpu.fp8.value(),
                gpu.fp4.value(),
                gpu.fp32.value()};
  return peaks;
}

std::vector<std::string> fitted_files() {
  return {"aiconfigurator_gemm_bf16.csv", "aiconfigurator_context_attention.csv", "cudnn_sdpa.csv",          "cudnn_norms.csv",
          "flash_attention_kernels.csv",  "simumax_kernel_efficiency.csv",        "aiconfigurator_nccl.csv", "nccl_busbw.csv"};
}

std::vector<KernelTable> read_fitted_tables(const std::string& folder) {
  std::vector<KernelTable> tables;
  for (const std::string& file : fitted_files()) {
    Outcome<KernelTable> table = read_kernel_table(folder + "/" + file);
    if (!table) throw Error(to_text(table.problems().front()));
    tables.push_back(std::move(table).value());
  }
  return tables;
}

FitReport fit_rates(const std::vector<KernelTable>& tables, std::span<const Gpu> gpus) {
  FitReport report;
  fit_gemms(tables, gpus, report);
  fit_attentions(tables, gpus, report);
  fit_memories(tables, gpus, report);
  fit_collectives(tables, gpus, report);
  const auto used = [&](const std::string& name) {
    const auto is = [&](const auto& row) { return row.gpu == name; };
    const RateTables& t = report.tables;
    return std::any_of(t.gemm.begin(), t.gemm.end(), is) || std::any_of(t.attention.begin(), t.attention.end(), is) ||
           std::any_of(t.memory.begin(), t.memory.end(), is);
  };
  for (const Gpu& gpu : gpus) {
    if (used(gpu.name)) report.tables.devices.push_back({gpu.name, gpu.generation, gpu.scale_up_link, peaks_of(gpu)});
  }
  return report;
}

}  // namespace cpfit
