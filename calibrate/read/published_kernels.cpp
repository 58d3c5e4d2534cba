#include "calibrate/read/published_kernels.h"

#include <fmt/format.h>

#include <map>
#include <set>

#include "model/rates/rate_tables.h"

namespace cpfit::published {

namespace {

/// Where a collective ran: the fabric that the row names, else the one its GPU is usually sold with.
std::string collective_cluster(const std::string& gpu, const CollectiveMeasurement& what) {
  const bool elastic = contains_word(what.software, "EFA");
  if (gpu == "H100-SXM5-80GB" && elastic) return "aws-p5";
  if (gpu == "H100-SXM5-80GB" && contains_word(what.software, "HF")) return "hf-h100";
  if (gpu == "H100-SXM5-80GB" && (contains_word(what.software, "RoCE") || contains_word(what.software, "OCI"))) return "oci-h100";
  if (gpu == "A100-SXM4-80GB" && elastic) return "aws-p4de";
  if (gpu == "B200-SXM" && elastic) return "aws-p6-b200";
  return cluster_preset_of(gpu);
}

class Filer {
 public:
  Filer(Reading& reading, const KernelTable& table, const KernelMeasurement& row) : reading_(reading), gpu_(row.gpu) {
    kernel_.line = row.line;
    kernel_.seconds = row.time.value();
    kernel_.warm = table.continuous ? 1 : 0;
  }

  void operator()(const GemmMeasurement& what) {
    kernel_.kind = KernelKind::kGemm;
    kernel_.gemms = {what.shape};
    kernel_.math = what.math;
    kernel_.label = fmt::format("{} gemm {}x{}x{}", gpu_, what.shape.m, what.shape.n, what.shape.k);
    finish(cluster_preset_of(gpu_), 1, gpu_);
  }
  void operator()(const AttentionMeasurement& what) {
    kernel_.kind = KernelKind::kAttention;
    kernel_.attention = what.shape;
    kernel_.library = what.library;
    kernel_.forward = what.pass != MeasuredPass::kBackward;
    kernel_.backward = what.pass != MeasuredPass::kForward;
    kernel_.label = fmt::format("{} attention q={} kv={} b={} h={}/{} d={} {}{}", gpu_, what.shape.q_len, what.shape.kv_len,
                                what.shape.batch, what.shape.heads, what.shape.kv_heads, what.shape.head_dim,
                                kernel_.forward ? "fwd" : "", kernel_.backward ? "bwd" : "");
    finish(cluster_preset_of(gpu_), 1, gpu_);
  }
  void operator()(const StreamMeasurement& what) {
    kernel_.kind = KernelKind::kMemoryBound;
    kernel_.forward = what.pass == AttentionPass::kForward;
    kernel_.backward = !kernel_.forward;
    (kernel_.forward ? kernel_.forward_traffic : kernel_.backward_traffic) = what.traffic;
    if (const auto kernels = norm_named(what.kernels)) {
      kernel_.norm = NormShape{*kernels, what.pass, what.traffic, what.row, what.rows, what.layer_norm};
    }
    kernel_.label = fmt::format("{} {} {}", gpu_, what.kernels, kernel_.forward ? "fwd" : "bwd");
    finish(cluster_preset_of(gpu_), 1, fmt::format("{} {}", gpu_, what.kernels));
  }
  void operator()(const CollectiveMeasurement& what) {
    kernel_.kind = KernelKind::kCollective;
    kernel_.collective = what.kind;
    kernel_.members = {1, what.ranks};
    kernel_.bytes = what.bytes;
    kernel_.form = what.form();
    kernel_.label = fmt::format("{} {} ranks on {} nodes, {:.0f} bytes", gpu_, what.ranks, what.nodes, what.bytes.value());
    finish(collective_cluster(gpu_, what), what.ranks, fmt::format("{} {} nodes", gpu_, what.nodes));
  }

 private:
  void finish(const std::string& preset, std::int64_t gpus, std::string group) {
    kernel_.group = std::move(group);
    if (auto cluster = reading_.cluster(preset, gpus)) {
      kernel_.cluster = std::move(*cluster);
      reading_.add(std::move(kernel_));
    } else {
      reading_.skip(kernel_.line, fmt::format("no cluster preset for {} of {}", gpus, gpu_));
    }
  }

  Reading& reading_;
  const std::string& gpu_;
  MeasuredKernel kernel_;
};

}  // namespace

void add_kernels(const KernelTable& table, Reading& reading) {
  std::set<std::int64_t> used;
  for (const KernelMeasurement& row : table.rows) {
    used.insert(row.line);
    std::visit(Filer(reading, table, row), row.what);
  }
  for (const UnusedRow& row : table.unused) {
    if (used.insert(row.line).second) reading.skip(row.line, row.reason);
  }
}

}  // namespace cpfit::published
