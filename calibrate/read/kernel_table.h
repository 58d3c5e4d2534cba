// Published kernel and collective timings as typed measurements: GEMM, attention, streaming kernels and collectives, one
// record per row with its GPU preset, time in seconds and line. Rows that cannot be used are kept with the reason.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "model/quantity/problem.h"
#include "model/quantity/units.h"
#include "model/rates/rate_set.h"

namespace cpfit {

class CsvTable;

struct GemmMeasurement {
  GemmShape shape;
  MathKind math = MathKind::kBf16;
};

enum class MeasuredPass : std::uint8_t { kForward, kBackward, kBoth };  // kBoth: forward and backward in one figure

struct AttentionMeasurement {
  AttentionShape shape;
  AttentionLibrary library = AttentionLibrary::kCudnn;
  MeasuredPass pass = MeasuredPass::kForward;
};

struct StreamMeasurement {
  std::string kernels;  // "cudnn_norm", "torch_compile_norm", "pytorch_norm"
  AttentionPass pass = AttentionPass::kForward;
  Bytes traffic;         // read and written
  std::int64_t row = 0;  // elements per normalised row
};

struct CollectiveMeasurement {
  CollectiveKind kind = CollectiveKind::kAllReduce;
  std::int64_t ranks = 0, nodes = 1;
  Bytes bytes;           // of the buffer, as nccl-tests counts it
  std::string software;  // "2.27.3"
};

struct KernelMeasurement {
  std::int64_t line = 0;  // header = 1
  std::string gpu;        // preset name, "H100-SXM5-80GB"
  std::variant<GemmMeasurement, AttentionMeasurement, StreamMeasurement, CollectiveMeasurement> what;
  Seconds time;
};

struct UnusedRow {
  std::int64_t line = 0;
  std::string reason;
};

struct KernelTable {
  std::string path;
  std::string source;  // "aiconfigurator 095f58a, TRT-LLM"
  std::vector<KernelMeasurement> rows;
  std::vector<UnusedRow> unused;
};

/// Reads any of the kernel tables: the columns tell which it is. Problems: unknown columns, malformed CSV.
[[nodiscard]] Outcome<KernelTable> read_kernel_table(const std::string& path);
[[nodiscard]] Outcome<KernelTable> read_kernel_table(const CsvTable& csv);

/// Preset name of a GPU as tools print it ("NVIDIA H100 80GB HBM3", "b200_sxm"); empty when unknown.
[[nodiscard]] std::string gpu_preset_of(std::string_view printed);

}  // namespace cpfit
