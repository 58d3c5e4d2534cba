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
  bool serving = false;  // an inference operator: rotary and cache write are in the time
};

struct StreamMeasurement {
  std::string kernels;  // "cudnn_norm", "torch_compile_norm", "pytorch_norm"
  AttentionPass pass = AttentionPass::kForward;
  Bytes traffic;         // read and written
  std::int64_t row = 0;  // elements per normalised row
  std::int64_t rows = 0;
  bool layer_norm = false;  // mean and bias too, not the square alone
};

struct CollectiveMeasurement {
  CollectiveKind kind = CollectiveKind::kAllReduce;
  std::int64_t ranks = 0, nodes = 1;
  Bytes bytes;             // of the buffer, as nccl-tests counts it
  std::string software;    // "2.27.3"
  std::string link{};      // rate link name, "pcie5", "shared memory"; empty: the GPU's scale-up link, or NICs between nodes
  bool strided = false;    // members apart in rank order
  bool both_ways = true;   // kSendRecv: each rank sends and receives at the same time, as in a ring
  bool int8_sums = false;  // sums of 8-bit integers, which the switch of NVLink 4 and later does not add
  double node_share = 1;   // of a node's ranks that one group has: its share of the node's NICs, all groups at once

  [[nodiscard]] CollectiveForm form() const {
    return strided ? CollectiveForm::kStrided : int8_sums ? CollectiveForm::kInt8Sums : CollectiveForm::kUsual;
  }
};

struct KernelMeasurement {
  std::int64_t line = 0;  // header = 1
  std::string gpu;        // preset name, "H100-SXM5-80GB"
  std::variant<GemmMeasurement, AttentionMeasurement, StreamMeasurement, CollectiveMeasurement> what;
  Seconds time;
  double spread = 0;  // relative, one standard deviation of repeated measurements; 0: the source does not tell
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
  bool continuous = false;  // a hundred calls of each kernel one after another: the GPU is at its power limit from the first
  bool own_run = false;     // one run of one machine, imported by the person who has it: all its collectives count
  double network_rate = 0;  // bytes/s of one node's NICs together, where that person says so
};

/// Reads any of the kernel tables: the columns tell which it is. Problems: unknown columns, malformed CSV.
[[nodiscard]] Outcome<KernelTable> read_kernel_table(const std::string& path);
[[nodiscard]] Outcome<KernelTable> read_kernel_table(const CsvTable& csv);

/// Preset name of a GPU as tools print it ("NVIDIA H100 80GB HBM3", "b200_sxm"); empty when unknown.
[[nodiscard]] std::string gpu_preset_of(std::string_view printed);

}  // namespace cpfit
