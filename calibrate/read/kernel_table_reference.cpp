// Readers of extracts: the same measurements as the published tables, in other columns and units.
#include <charconv>
#include <cmath>

#include "calibrate/read/csv.h"
#include "calibrate/read/kernel_table_formats.h"
#include "model/rates/curves.h"

namespace cpfit::kernel_table {

std::string joined(std::initializer_list<std::string_view> parts) {
  std::string text;
  for (const auto part : parts) text += part;
  return text;
}

std::string unknown_gpu(std::string_view printed) { return joined({"no preset for GPU '", printed, "'"}); }

double causal_pairs(std::int64_t q, std::int64_t window) {
  const double s = static_cast<double>(q);
  if (window <= 0 || window >= q) return s * (s + 1) / 2;
  const double w = static_cast<double>(window);
  return w * (w + 1) / 2 + (s - w) * w;
}

AttentionShape square(std::int64_t batch, std::int64_t length, std::int64_t heads, std::int64_t kv_heads, std::int64_t d,
                      bool causal) {
  AttentionShape shape;
  shape.batch = batch;
  shape.q_len = shape.kv_len = length;
  shape.heads = heads;
  shape.kv_heads = kv_heads;
  shape.head_dim = d;
  shape.causal = causal;
  shape.pairs = causal ? causal_pairs(length, 0) : static_cast<double>(length) * static_cast<double>(length);
  return shape;
}

Seconds time_from_rate(const AttentionShape& shape, double pairs, MeasuredPass pass, double tflops) {
  const double d = static_cast<double>(shape.head_dim);
  const double v = shape.head_dim_v > 0 ? static_cast<double>(shape.head_dim_v) : d;
  const double forward = flops_per_pair(AttentionPass::kForward, d, v), backward = flops_per_pair(AttentionPass::kBackward, d, v);
  const double each = pass == MeasuredPass::kForward ? forward : pass == MeasuredPass::kBackward ? backward : forward + backward;
  return Seconds(each * pairs * static_cast<double>(shape.batch * shape.heads) / (tflops * 1e12));
}

std::optional<std::int64_t> field(std::string_view shape, const std::string& key) {
  for (std::size_t at = shape.find(key + "="); at != std::string::npos; at = shape.find(key + "=", at + 1)) {
    if (at > 0 && shape[at - 1] != ' ' && shape[at - 1] != ',' && shape[at - 1] != ';') continue;
    std::int64_t value = 0;
    const char* begin = shape.data() + at + key.size() + 1;
    if (std::from_chars(begin, shape.data() + shape.size(), value).ec == std::errc()) return value;
  }
  return std::nullopt;
}

std::optional<CollectiveKind> collective_printed(std::string_view name) {
  if (name == "all_gather") return CollectiveKind::kAllGather;
  if (name == "reduce_scatter") return CollectiveKind::kReduceScatter;
  if (name == "all_reduce") return CollectiveKind::kAllReduce;
  if (name == "alltoall" || name == "all_to_all") return CollectiveKind::kAllToAll;
  if (name == "sendrecv") return CollectiveKind::kSendRecv;
  return std::nullopt;
}

RowResult read_collective(const CsvRow& row, const CollectiveColumns& columns) {
  const auto kind = collective_printed(row.text(columns.kind));
  if (!kind) return joined({"collective ", row.text(columns.kind), " is not read"});
  const auto ranks = row.integer(columns.ranks);
  const auto bytes = row.number(columns.bytes), time = row.number(columns.time);
  if (!ranks || !bytes || !time || *time <= 0)
    return joined({columns.ranks, ", ", columns.bytes, " or ", columns.time, " is blank"});
  const std::string gpu = gpu_preset_of(row.text(columns.gpu));
  if (gpu.empty()) return unknown_gpu(row.text(columns.gpu));
  CollectiveMeasurement what{*kind, *ranks, 1, Bytes(*bytes), std::string(row.text("nccl_version"))};
  const bool sums = *kind == CollectiveKind::kAllReduce || *kind == CollectiveKind::kReduceScatter;
  what.int8_sums = sums && row.text("dtype") == "int8";
  return KernelMeasurement{row.line(), gpu, std::move(what), Seconds(*time * columns.time_unit)};
}

namespace {

RowResult read_gemm_sweep(const CsvRow& row) {
  const auto m = row.integer("m"), n = row.integer("n"), k = row.integer("k");
  const auto us = row.number("latency_us");
  if (!m || !n || !k || !us || *us <= 0) return "m, n, k or latency_us is blank or not a number";
  const std::string gpu = gpu_preset_of(row.text("gpu"));
  if (gpu.empty()) return unknown_gpu(row.text("gpu"));
  if (row.text("dtype") != "bf16") return joined({"dtype ", row.text("dtype"), " is not read"});
  return KernelMeasurement{row.line(), gpu, GemmMeasurement{{*m, *n, *k}, MathKind::kBf16}, microseconds(*us)};
}

/// One attention call of a serving framework: cache write and launch are in the time.
RowResult read_attention_sweep(const CsvRow& row) {
  const auto batch = row.integer("batch"), q = row.integer("q_len"), prefix = row.integer("prefix_len"),
             heads = row.integer("q_heads"), kv = row.integer("kv_heads"), d = row.integer("head_dim");
  const auto us = row.number("latency_us");
  if (!batch || !q || !prefix || !heads || !kv || !d || !us || *us <= 0) return "a size or latency_us is blank or not a number";
  if (*prefix != 0) return "a cached prefix: not a square";
  const std::string gpu = gpu_preset_of(row.text("gpu"));
  if (gpu.empty()) return unknown_gpu(row.text("gpu"));
  const std::string_view kernel = row.text("kernel");
  const AttentionLibrary library = kernel.ends_with("fa3")            ? AttentionLibrary::kFlash3
                                   : kernel.starts_with("vllm_flash") ? AttentionLibrary::kFlash2
                                                                      : AttentionLibrary::kTrtllm;
  return KernelMeasurement{row.line(), gpu,
                           AttentionMeasurement{square(*batch, *q, *heads, *kv, *d, row.text("mask") == "causal"), library,
                                                MeasuredPass::kForward, true},
                           microseconds(*us)};
}

RowResult read_cudnn_extract(const CsvRow& row) {
  const auto batch = row.integer("batch"), q = row.integer("q_len"), kv_len = row.integer("kv_len"),
             heads = row.integer("q_heads"), kv = row.integer("kv_heads"), d = row.integer("d_qk"), dv = row.integer("d_vo");
  const auto ms = row.number("time_ms");
  if (!batch || !q || !kv_len || !heads || !kv || !d || !dv || !ms || *ms <= 0)
    return "a size or time_ms is blank or not a number";
  const std::string gpu = gpu_preset_of(row.text("gpu"));
  if (gpu.empty()) return unknown_gpu(row.text("gpu"));
  const std::string_view mask = row.text("mask"), type = row.text("dtype");
  if (mask != "top_left" && mask != "no_mask") return joined({"mask ", mask, " is not read"});
  if (*q != *kv_len) return "unequal lengths are not read";
  AttentionShape shape = square(*batch, *q, *heads, *kv, *d, mask == "top_left");
  shape.head_dim_v = *dv;
  shape.math = type == "fp8" ? MathKind::kFp8Tensor : type == "mxfp8" ? MathKind::kMxfp8 : MathKind::kBf16;
  shape.deterministic = row.text("deterministic_bwd") == "True";
  if (const auto window = row.integer("window")) shape.pairs = causal_pairs(*q, *window);
  const MeasuredPass pass = row.text("pass") == "bwd" ? MeasuredPass::kBackward : MeasuredPass::kForward;
  return KernelMeasurement{row.line(), gpu, AttentionMeasurement{shape, AttentionLibrary::kCudnn, pass}, milliseconds(*ms)};
}

RowResult read_nccl_extract(const CsvRow& row) {
  return read_collective(row, {"op", "num_gpus", "bytes", "latency_us", "system", 1e-6});
}

/// Shares of peak per shape; the peaks are those that the tool divided by (bf16 dense).
RowResult read_simumax_extract(const CsvRow& row) {
  if (row.text("op") != "matmul") return joined({"op ", row.text("op"), ": times include the host's launch"});
  const auto share = row.number("fraction_of_peak");
  const std::string_view text = row.text("shape");
  const auto b = field(text, "b"), m = field(text, "m"), n = field(text, "n"), k = field(text, "k");
  if (!share || *share <= 0 || !m || !n || !k || b.value_or(1) != 1) return joined({"shape '", text, "' is not read"});
  const std::string_view system = row.text("system");
  const bool ampere = system.starts_with("a100");
  const std::string gpu = ampere ? "A100-PCIe-80GB" : gpu_preset_of(system);
  if (gpu.empty()) return unknown_gpu(system);
  const double peak = ampere ? 312e12 : 2250e12;
  const double flops = 2.0 * static_cast<double>(*m) * static_cast<double>(*n) * static_cast<double>(*k);
  return KernelMeasurement{row.line(), gpu, GemmMeasurement{{*m, *n, *k}, MathKind::kBf16}, Seconds(flops / (*share * peak))};
}

}  // namespace

const std::vector<Format>& reference_formats() {
  static const std::vector<Format> kFormats = {
      {"aiconfigurator GEMM sweep", {"gpu", "source", "m", "n", "k", "latency_us", "fraction_of_peak"}, {read_gemm_sweep}},
      {"aiconfigurator attention sweep", {"gpu", "kernel", "q_len", "prefix_len", "latency_us"}, {read_attention_sweep}},
      {"NVIDIA/cudnn-frontend SDPA extract", {"gpu", "cudnn_backend", "d_qk", "d_vo", "time_ms"}, {read_cudnn_extract}},
      {"aiconfigurator NCCL extract", {"system", "nccl_version", "op", "num_gpus", "latency_us"}, {read_nccl_extract}},
      {"SimuMax extract", {"system", "op", "shape", "fraction_of_peak"}, {read_simumax_extract}, true},
  };
  return kFormats;
}

}  // namespace cpfit::kernel_table
