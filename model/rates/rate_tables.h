// rates.toml as values: every fitted curve and every documented figure with its key. `parse_rate_tables` reads it, the
// writer in calibrate/fit prints it; the two are inverse to each other. RateSet builds its look-up from these tables.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/quantity/problem.h"
#include "model/rates/curves.h"

namespace cpfit {

/// The device a fit was made on: its shares are of these peaks, so they are kept beside them.
struct FittedDevice {
  std::string gpu;            // preset name, "H100-SXM5-80GB"
  std::string generation;     // "hopper"
  std::string scale_up_link;  // "nvlink4"
  DevicePeaks peaks;
};

struct GemmRow {
  std::string gpu;
  MathKind math = MathKind::kBf16;
  GemmCurve curve;
};

struct AttentionRow {
  std::string gpu;
  AttentionLibrary library = AttentionLibrary::kCudnn;
  MathKind math = MathKind::kBf16;
  AttentionPass pass = AttentionPass::kForward;
  AttentionCurve curve;
};

struct MemoryRow {
  std::string gpu;
  std::string kernels;  // "cudnn_norm", "torch_compile_norm", "pytorch_norm"
  AttentionPass pass = AttentionPass::kForward;
  MemoryCurve curve;
};

struct CollectiveRow {
  std::string link;  // link name: "nvlink4", "nic"
  CollectiveKind kind = CollectiveKind::kAllReduce;
  CollectiveCurve curve;
  double raw = 0;  // bytes/s that the shares refer to, where no data sheet gives the link's rate (a calibrated host); else 0
  CollectiveForm form = CollectiveForm::kUsual;
};

struct LinkRow {
  std::string link;  // "nvlink4", "pcie5", "infiniband", ...
  LinkCurve curve;
};

/// A kernel inside training against the same kernel alone: the share of its sustained loss that it pays from its first moment,
/// and factors >= 1 on time. Empty keys match everything; the row with most matching keys wins.
struct TrainingRow {
  std::string generation;
  std::optional<MathKind> math;
  std::optional<AttentionLibrary> library;
  double gemm_factor = 1, attention_factor = 1;
  double gemm_warm = 0, attention_warm = 0;
  FitQuality quality;
};

struct LaunchRow {
  std::string generation;               // "" for all
  double eager = 6e-6, graph = 1.5e-6;  // s of host time per kernel
  FitQuality quality;
};

struct OverlapRow {
  std::string link;        // "nvlink", "nic", "pcie"
  std::string generation;  // "" for all
  double slowdown = 1;     // of kernels while a message passes
  FitQuality quality;
  double message_slowdown = 1;  // of a message while kernels run
  /// NCCL's channels to one peer by links that lead there; 0: kernels beside a message are as slow as beside a collective.
  double peer_channels_per_link = 0;
};

struct RateTables {
  std::string version;
  std::vector<FittedDevice> devices;
  std::vector<GemmRow> gemm;
  std::vector<AttentionRow> attention;
  std::vector<MemoryRow> memory;
  std::vector<CollectiveRow> collective;
  std::vector<LinkRow> link;
  std::vector<TrainingRow> training;
  std::vector<LaunchRow> launch;
  std::vector<OverlapRow> overlap;
};

[[nodiscard]] Outcome<RateTables> parse_rate_tables(std::string_view toml_text);

// Names used in rates.toml; the parsers return nothing for an unknown name.
[[nodiscard]] std::string_view name_of(MathKind math);
[[nodiscard]] std::string_view name_of(AttentionPass pass);
[[nodiscard]] std::string_view name_of(AttentionLibrary library);
[[nodiscard]] std::string_view name_of(CollectiveKind kind);
[[nodiscard]] std::string_view name_of(CollectiveForm form);
[[nodiscard]] std::string_view name_of(NormKernels kernels);
[[nodiscard]] std::string_view name_of(Evidence evidence);
[[nodiscard]] std::optional<MathKind> math_named(std::string_view name);
[[nodiscard]] std::optional<AttentionPass> pass_named(std::string_view name);
[[nodiscard]] std::optional<AttentionLibrary> library_named(std::string_view name);
[[nodiscard]] std::optional<CollectiveKind> collective_named(std::string_view name);
[[nodiscard]] std::optional<NormKernels> norm_named(std::string_view name);
[[nodiscard]] std::optional<CollectiveForm> form_named(std::string_view name);
[[nodiscard]] std::optional<Evidence> evidence_named(std::string_view name);

}  // namespace cpfit
