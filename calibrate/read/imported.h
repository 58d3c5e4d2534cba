// Any file that says something about a machine's speed, recognised by its content, as one list of typed measurements with what
// was left out and why. What measurements become is decided by calibrate/fit.
//   cpfit-bench measurement (JSON) · nccl-tests output (text) · nvbandwidth (JSON) · FlashAttention benchmark output (text)
//   nvidia-smi (plain table, -q, --query-gpu CSV) · kernel and collective tables (CSV): cudnn-frontend SDPA and norms,
//   FlashAttention figures, aiconfigurator, SimuMax, GEMM rates, NCCL bus rates
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "calibrate/read/kernel_table.h"
#include "model/record/measurement.h"

namespace cpfit {

/// Host time per kernel launch.
struct LaunchMeasurement {
  bool graph = false;
  Seconds time;
};

/// What kernels and messages cost each other: times of the same work beside the other over times alone.
struct OverlapMeasurement {
  std::string link;
  double compute_slowdown = 1, message_slowdown = 1;
  Seconds compute_alone, message_alone;
};

struct ImportedFile {
  std::string path, sha256;
  std::string format;  // "nccl-tests all_reduce", "nvidia-smi -q"
  KernelTable table;   // rows and what was left out
  std::vector<LaunchMeasurement> launches;
  std::vector<OverlapMeasurement> overlaps;
  MeasuredMachine machine;                     // as far as the file tells
  std::vector<std::string> remarks;            // what to beware of: "GPU 3 was throttled: SW Power Cap"
  std::optional<MeasurementFile> measurement;  // a file of cpfit-bench, whole
  [[nodiscard]] std::int64_t points() const {
    return static_cast<std::int64_t>(table.rows.size() + launches.size() + overlaps.size());
  }
};

struct ImportHints {
  std::string gpu;  // preset, for files that do not name the GPU; empty: such a file is a problem
  double network_rate =
      0;  // bytes/s of one node's NICs together, for collectives between nodes; 0: these are left out by the fit
};

/// Problems: unreadable, a folder, unknown content ("import.unknown" lists what is accepted), or what the format's reader says.
[[nodiscard]] Outcome<ImportedFile> import_file(const std::string& path, const ImportHints& options = {});
/// The same of a text already read; `path` names it in problems and results.
[[nodiscard]] Outcome<ImportedFile> import_text(const std::string& text, const std::string& path,
                                                const ImportHints& options = {});

/// The formats above with what tells each, for messages and the manual: one a line.
[[nodiscard]] std::vector<std::string> accepted_formats();

/// The device that a measurement file speaks of: the GPU's preset name, its printed name where no preset knows it, or "host " and
/// the processor's name for the host backend.
[[nodiscard]] std::string measured_device(const MeasurementFile& file);

// One reader per format, of the whole text. Rows carry line numbers of the file where it has lines.
[[nodiscard]] bool looks_like_nccl_tests(std::string_view text);
[[nodiscard]] Outcome<ImportedFile> read_nccl_tests(std::string_view text, const std::string& path, const ImportHints& options);
[[nodiscard]] bool looks_like_nvbandwidth(std::string_view text);
[[nodiscard]] Outcome<ImportedFile> read_nvbandwidth(const std::string& text, const std::string& path,
                                                     const ImportHints& options);
[[nodiscard]] bool looks_like_flash_output(std::string_view text);
[[nodiscard]] Outcome<ImportedFile> read_flash_output(std::string_view text, const std::string& path, const ImportHints& options);
[[nodiscard]] bool looks_like_nvidia_smi(std::string_view text);
[[nodiscard]] Outcome<ImportedFile> read_nvidia_smi(std::string_view text, const std::string& path);
/// Points of cpfit-bench as measurements.
[[nodiscard]] ImportedFile read_measured_points(MeasurementFile file, const std::string& path);

}  // namespace cpfit
