#include "calibrate/fit/fit_rates.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <map>
#include <tuple>

#include "calibrate/fit/fit_collectives.h"

namespace cpfit {

namespace {

using Rows = std::vector<const KernelMeasurement*>;

// Below these a group says too little for a curve of its own; another GPU's stands in.
constexpr std::size_t kFewestGemms = 8, kFewestAttentions = 4, kFewestStreams = 5;
// One's own run of a probe varies nothing but the size: start-up and rate need two.
constexpr std::size_t kFewestOwnStreams = 2;

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

/// SimuMax times attention operators with their host launch: four heads take as long as eight. Scored, not fitted.
bool is_isolated(const KernelTable& table) { return table.source.find("SimuMax") == std::string::npos; }

/// Sliding windows run mostly masked tiles; they would bend the curve of full attention.
bool is_windowed(const AttentionShape& shape) {
  return shape.causal && shape.pairs < 0.45 * static_cast<double>(shape.q_len) * static_cast<double>(shape.kv_len);
}

/// Why no curve can be fitted to products or attention of `gpu`, whose times are shares of its peaks: of a processor or an
/// unknown GPU they are the best rates measured, and a measurement that was cut short may hold none. Empty: it can.
std::string missing_peak(const Gpu& gpu, MathKind math) {
  const DevicePeaks peaks = peaks_of(gpu);
  if (!(peaks.hbm > 0)) return "its memory bandwidth was not measured (cpfit-bench --probe memory)";
  if (!(peaks.math[static_cast<std::size_t>(math)] > 0)) return "its rate of " + std::string(name_of(math)) + " is not known";
  return {};
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
    if (const std::string missing = missing_peak(*gpu, math); !missing.empty()) {
      report.left_out.push_back("gemm " + name + " " + std::string(name_of(math)) + ": " + missing);
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
    if (const std::string missing = missing_peak(*gpu, math); !missing.empty()) {
      report.left_out.push_back(label + ": " + missing);
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
