#include "calibrate/read/kernel_table.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "calibrate/read/csv.h"
#include "calibrate/read/kernel_table_formats.h"
#include "model/rates/curves.h"

namespace cpfit {

using namespace kernel_table;

namespace {

// --- one reader per published format ---

RowResult read_aiconfigurator_gemm(const CsvRow& row) {
  const auto m = row.integer("m"), n = row.integer("n"), k = row.integer("k");
  const auto ms = row.number("latency_ms");
  if (!m || !n || !k || !ms) return "m, n, k or latency_ms is blank or not a number";
  const std::string gpu = gpu_preset_of(row.text("gpu"));
  if (gpu.empty()) return unknown_gpu(row.text("gpu"));
  if (row.text("dtype") != "bfloat16") return joined({"dtype ", row.text("dtype"), " is not read"});
  return KernelMeasurement{row.line(), gpu, GemmMeasurement{{*m, *n, *k}, MathKind::kBf16}, milliseconds(*ms)};
}

RowResult read_aiconfigurator_attention(const CsvRow& row) {
  const auto batch = row.integer("batch"), length = row.integer("isl"), heads = row.integer("heads"),
             kv = row.integer("kv_heads"), d = row.integer("head_dim");
  const auto ms = row.number("latency_ms");
  if (!batch || !length || !heads || !kv || !d || !ms) return "a size or latency_ms is blank or not a number";
  const std::string gpu = gpu_preset_of(row.text("gpu"));
  if (gpu.empty()) return unknown_gpu(row.text("gpu"));
  return KernelMeasurement{
      row.line(), gpu,
      AttentionMeasurement{square(*batch, *length, *heads, *kv, *d, true), AttentionLibrary::kTrtllm, MeasuredPass::kForward},
      milliseconds(*ms)};
}

RowResult read_cudnn_sdpa(const CsvRow& row) {
  if (row.text("success") != "True") return "the source marks the run as failed";
  const auto batch = row.integer("batch_size"), q = row.integer("q_seqlen"), kv_len = row.integer("kv_seqlen"),
             heads = row.integer("num_q_heads"), kv = row.integer("num_kv_heads"), d = row.integer("head_dim_qk"),
             dv = row.integer("head_dim_vo");
  const auto ms = row.number("time_ms");
  if (!batch || !q || !kv_len || !heads || !kv || !d || !dv || !ms || *ms <= 0)
    return "a size or time_ms is blank or not a number";
  const std::string gpu = gpu_preset_of(row.text("gpu_name"));
  if (gpu.empty()) return unknown_gpu(row.text("gpu_name"));
  const std::string_view type = row.text("data_type");
  const std::string_view mask = row.text("attn_mask");
  if (mask != "top_left" && mask != "no_mask") return joined({"mask ", mask, " is not read"});
  if (*q != *kv_len) return "unequal lengths are not read";
  AttentionShape shape = square(*batch, *q, *heads, *kv, *d, mask == "top_left");
  shape.head_dim_v = *dv;
  shape.math = type == "fp8" ? MathKind::kFp8Tensor : type == "mxfp8" ? MathKind::kMxfp8 : MathKind::kBf16;
  shape.deterministic = row.text("deterministic_bwd") == "True";
  if (const auto window = row.integer("sliding_window_size")) shape.pairs = causal_pairs(*q, *window);
  const bool forward = row.text("pass_") == "fwd" || row.text("profile_pass") == "fwd";
  const MeasuredPass pass = forward ? MeasuredPass::kForward : MeasuredPass::kBackward;
  return KernelMeasurement{row.line(), gpu, AttentionMeasurement{shape, AttentionLibrary::kCudnn, pass}, milliseconds(*ms)};
}

RowResult read_flash_figures(const CsvRow& row) {
  const std::string_view kernel = row.text("kernel");
  AttentionLibrary library = AttentionLibrary::kCudnn;
  if (kernel == "FlashAttention-2")
    library = AttentionLibrary::kFlash2;
  else if (kernel == "FlashAttention-3")
    library = AttentionLibrary::kFlash3;
  else if (kernel != "cuDNN")
    return joined({"kernel ", kernel, " has no rate surface"});
  const auto batch = row.integer("batch"), length = row.integer("seq_len"), heads = row.integer("heads"),
             d = row.integer("head_dim");
  const auto tflops = row.number("tflops");
  if (!batch || !length || !heads || !d || !tflops) return "a size or tflops is blank";
  const std::string gpu = gpu_preset_of(row.text("gpu"));
  if (gpu.empty()) return unknown_gpu(row.text("gpu"));
  const AttentionShape shape = square(*batch, *length, *heads, *heads, *d, row.text("causal") == "yes");
  const std::string_view printed = row.text("pass_");
  const MeasuredPass pass = printed == "fwd"   ? MeasuredPass::kForward
                            : printed == "bwd" ? MeasuredPass::kBackward
                                               : MeasuredPass::kBoth;
  const double s = static_cast<double>(*length);
  // The figures count half of the square for causal masks.
  return KernelMeasurement{row.line(), gpu, AttentionMeasurement{shape, library, pass},
                           time_from_rate(shape, shape.causal ? s * s / 2 : s * s, pass, *tflops)};
}

RowResult read_cudnn_norms(const CsvRow& row, AttentionPass pass) {
  if (row.text("success") != "True") return "the source marks the run as failed";
  const auto n = row.number("N"), c = row.number("C");
  const auto rate = row.number(pass == AttentionPass::kForward ? "fwd_gbps" : "bwd_gbps");
  if (!n || !c || !rate || *rate <= 0) return "N, C or the rate is blank";
  const std::string gpu = gpu_preset_of(row.text("gpu_name"));
  if (gpu.empty()) return unknown_gpu(row.text("gpu_name"));
  // bf16: forward reads x and writes y; backward reads x and dy and writes dx. Times are printed to 1 us only, so take the rate.
  const Bytes traffic(*n * *c * (pass == AttentionPass::kForward ? 4.0 : 6.0));
  return KernelMeasurement{
      row.line(), gpu,
      StreamMeasurement{std::string(row.text("backend")) + "_norm", pass, traffic, static_cast<std::int64_t>(*c),
                        static_cast<std::int64_t>(*n), row.text("norm_type") == "layer_norm"},
      traffic / gb_per_s(*rate)};
}

RowResult read_gemm(const CsvRow& row) {
  const std::string_view op = row.text("op");
  if (op.starts_with("matmul, best")) return "best shape of a sweep: an upper bound, not a sample";
  if (op.starts_with("sum of") || op.find("sum of") != std::string::npos) return "a sum over several shapes";
  if (op != "Normal GEMMs for dense models") return joined({"'", op, "' is not a plain GEMM"});
  const auto m = row.integer("m"), n = row.integer("n"), k = row.integer("k");
  const auto tflops = row.number("tflops"), ms = row.number("time_ms");
  if (!m || !n || !k || (!tflops && !ms)) return "m, n, k or the time is blank";
  const std::string gpu = gpu_preset_of(row.text("gpu"));
  if (gpu.empty()) return unknown_gpu(row.text("gpu"));
  const MathKind math = row.text("dtype").starts_with("FP8") ? MathKind::kFp8Block : MathKind::kBf16;
  const double flops = 2.0 * static_cast<double>(*m) * static_cast<double>(*n) * static_cast<double>(*k);
  return KernelMeasurement{row.line(), gpu, GemmMeasurement{{*m, *n, *k}, math},
                           ms ? milliseconds(*ms) : Seconds(flops / (*tflops * 1e12))};
}

RowResult read_simumax(const CsvRow& row) {
  const std::string_view op = row.text("op");
  const std::string_view text = row.text("shape");
  const auto efficiency = row.number("efficiency"), peak = row.number("peak_tflops");
  const std::string gpu = gpu_preset_of(row.text("gpu"));
  if (gpu.empty()) return unknown_gpu(row.text("gpu"));
  if (!efficiency || !peak || *efficiency <= 0) return "efficiency or peak is blank";
  if (op == "matmul") {
    const auto b = field(text, "b"), m = field(text, "m"), n = field(text, "n"), k = field(text, "k");
    if (!m || !n || !k || b.value_or(1) != 1) return joined({"shape '", text, "' is not read"});
    const double flops = 2.0 * static_cast<double>(*m) * static_cast<double>(*n) * static_cast<double>(*k);
    return KernelMeasurement{row.line(), gpu, GemmMeasurement{{*m, *n, *k}, MathKind::kBf16},
                             Seconds(flops / (*efficiency * *peak * 1e12))};
  }
  if (op != "sdp_fwd" && op != "sdp_bwd") return std::string(op) + " has no rate surface";
  const auto batch = field(text, "batch"), length = field(text, "seq_len"), heads = field(text, "head_num"),
             kv = field(text, "kv_head_num"), d = field(text, "qk_head_dim"), dv = field(text, "v_head_dim");
  if (!batch || !length || !heads || !kv || !d || !dv) return joined({"shape '", text, "' is not read"});
  AttentionShape shape = square(*batch, *length, *heads, *kv, *d, true);
  shape.head_dim_v = *dv;
  const MeasuredPass pass = op == "sdp_fwd" ? MeasuredPass::kForward : MeasuredPass::kBackward;
  const AttentionLibrary library =
      gpu.starts_with("A100") ? AttentionLibrary::kFlash2 : AttentionLibrary::kCudnn;  // what TE picks there
  const double s = static_cast<double>(*length);
  return KernelMeasurement{row.line(), gpu, AttentionMeasurement{shape, library, pass},
                           time_from_rate(shape, s * s, pass, *efficiency * *peak)};
}

RowResult read_aiconfigurator_nccl(const CsvRow& row) {
  return read_collective(row, {"collective", "n_gpus", "size_bytes", "latency_ms", "gpu", 1e-3});
}

RowResult read_nccl_busbw(const CsvRow& row) {
  const auto kind = collective_printed(row.text("collective"));
  if (!kind) return joined({"collective ", row.text("collective"), " is not read"});
  const auto ranks = row.integer("n_gpus"), nodes = row.integer("nodes");
  const auto bytes = row.number("size_bytes"), us = row.number("time_us"), busbw = row.number("busbw_gbps");
  if (!ranks || !nodes || !bytes || *bytes <= 0 || (!us && !busbw)) return "ranks, nodes, size or time is blank";
  const std::string gpu = gpu_preset_of(row.text("gpu"));
  if (gpu.empty()) return unknown_gpu(row.text("gpu"));
  const double wire = *bytes * bus_factor(*kind, static_cast<double>(*ranks));
  if (!us && *busbw <= 0.05) return "busbw is printed to two digits only and too small for a time";
  const Seconds time = us ? microseconds(*us) : Bytes(wire) / gb_per_s(*busbw);
  const std::string software = std::string(row.text("source")) + " " + std::string(row.text("interconnect"));
  return KernelMeasurement{row.line(), gpu, CollectiveMeasurement{*kind, *ranks, *nodes, Bytes(*bytes), software}, time};
}

const std::vector<Format>& published_formats() {
  static const std::vector<Format> kFormats = {
      {"ai-dynamo/aiconfigurator 095f58a GEMM", {"system", "m", "n", "k", "latency_ms"}, {read_aiconfigurator_gemm}},
      {"ai-dynamo/aiconfigurator 095f58a context attention",
       {"system", "isl", "heads", "latency_ms"},
       {read_aiconfigurator_attention}},
      {"ai-dynamo/aiconfigurator 095f58a NCCL", {"system", "collective", "size_bytes", "latency_ms"}, {read_aiconfigurator_nccl}},
      {"NVIDIA/cudnn-frontend 3929da2 SDPA", {"q_seqlen", "kv_seqlen", "attn_mask"}, {read_cudnn_sdpa}},
      {"NVIDIA/cudnn-frontend 3929da2 norms",
       {"norm_type", "fwd_gbps", "bwd_gbps"},
       {[](const CsvRow& row) { return read_cudnn_norms(row, AttentionPass::kForward); },
        [](const CsvRow& row) { return read_cudnn_norms(row, AttentionPass::kBackward); }}},
      {"Dao-AILab/flash-attention 0251105 figures", {"kernel", "pass_", "head_dim", "tflops"}, {read_flash_figures}},
      {"published GEMM rates", {"op", "m", "n", "k", "tflops", "time_ms"}, {read_gemm}},
      {"MooreThreads/SimuMax 4dcaae5 operator efficiencies", {"op", "peak_tflops", "shape", "efficiency"}, {read_simumax}, true},
      {"published NCCL bus rates", {"collective", "nodes", "busbw_gbps"}, {read_nccl_busbw}},
  };
  return kFormats;
}

}  // namespace

Outcome<KernelTable> read_kernel_table(const std::string& path) {
  const Outcome<CsvTable> csv = CsvTable::load(path);
  if (!csv) return csv.problems();
  return read_kernel_table(*csv);
}

Outcome<KernelTable> read_kernel_table(const CsvTable& csv) {
  std::vector<Format> formats = published_formats();
  formats.insert(formats.end(), reference_formats().begin(), reference_formats().end());
  for (const Format& format : formats) {
    if (!std::all_of(format.columns.begin(), format.columns.end(), [&](const char* column) { return csv.has(column); })) continue;
    KernelTable table{csv.path(), format.source, {}, {}, format.continuous};
    for (std::size_t index = 0; index < csv.size(); ++index) {
      const CsvRow row = csv.row(index);
      for (const Reader reader : format.readers) {
        RowResult result = reader(row);
        if (auto* measured = std::get_if<KernelMeasurement>(&result)) {
          table.rows.push_back(std::move(*measured));
        } else {
          table.unused.push_back({row.line(), std::get<std::string>(result)});
        }
      }
    }
    return table;
  }
  return Problem{"kernel_table.columns", csv.path() + ":1", "the columns are not those of a known kernel table",
                 "known: aiconfigurator GEMM, attention and NCCL, cuDNN SDPA and norms, FlashAttention figures, GEMM rates, "
                 "SimuMax, NCCL bus rates"};
}

}  // namespace cpfit
