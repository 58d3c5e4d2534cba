// What cpfit-bench measured on a machine: one JSON object, written by the probes (calibrate/probe), read by the fits and kept by
// db. The only reading and writing of that format is here. A point is a probe at one place on its named axes with typed results;
// a point that could not be measured stays in the file with its reason.
//
// Probes, their axes and results (docs/measure.md says what each means):
//   attention  q kv heads kv_heads head_dim head_dim_v mask pass dtype kernel                        seconds
//   gemm       m n k dtype                                                                           seconds
//   memory     operation bytes                                                                       seconds
//   launch     mode                                                                                  seconds
//   p2p        bytes pair direction link                                                             seconds
//   collective kind bytes ranks stride                                                               seconds
//   overlap    q kv heads kv_heads head_dim mask dtype bytes          compute_alone_seconds compute_beside_seconds
//                                                                     message_alone_seconds message_beside_seconds sm_share
//   ring_step  method mask layout cp length heads kv_heads head_dim dtype pass     seconds exposed_seconds compute_seconds
//                                            peak_allocated_bytes peak_reserved_bytes buffer_bytes; windows
//   shared_nic rings bytes                                                                           seconds
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "model/quantity/problem.h"

namespace cpfit {

enum class MeasuredOutcome : std::uint8_t { kMeasured, kSkipped, kFailed };
[[nodiscard]] std::string_view name_of(MeasuredOutcome outcome);  // "measured", "skipped", "failed"

/// Clock of the processors that measured, over the whole run; absent where nothing tells it.
struct ClockRange {
  double min = 0, median = 0, max = 0;  // MHz
  friend bool operator==(const ClockRange&, const ClockRange&) = default;
};

/// What was measured on. Texts are as the system prints them; empty: not known, or there is none.
struct MeasuredMachine {
  std::vector<std::string> hosts;  // one per host, in the order of their first rank
  std::string cpu;
  std::int32_t cores = 0;         // of one host
  std::int64_t memory_bytes = 0;  // of one host
  std::string gpu;
  std::int32_t gpus_per_host = 0;
  std::int64_t gpu_memory_bytes = 0;
  std::string driver, cuda, nccl, cudnn, mpi, blas;  // versions
  std::optional<ClockRange> clocks_mhz;
  std::string throttled;  // why figures may be too slow: "clock at 61 % of its maximum"; empty: nothing seen
  std::optional<double> power_limit_watts;
  std::string link;  // of the slowest pair of ranks: "shared memory", "tcp tbf 10 Gbit/s", "nvlink"
  friend bool operator==(const MeasuredMachine&, const MeasuredMachine&) = default;
};

using AxisValue = std::variant<std::int64_t, std::string>;
struct MeasuredAxis {
  std::string name;
  AxisValue value;
  friend bool operator==(const MeasuredAxis&, const MeasuredAxis&) = default;
};

/// One quantity of a point over its samples. The name ends in its unit, or is a ratio ("slowdown", "sm_share").
struct MeasuredResult {
  std::string name;
  double median = 0;
  double low = 0, high = 0;   // 95 % interval of the median, by order statistics
  double spread = 0;          // 1.4826 * median absolute deviation
  std::int64_t samples = 0;   // kept
  std::int64_t outliers = 0;  // left out of the above
  friend bool operator==(const MeasuredResult&, const MeasuredResult&) = default;
};

/// What a rank did from when to when, in one repetition (the one whose time is the median); ring_step only.
struct MeasuredWindow {
  std::int32_t rank = 0;
  std::string lane;            // "compute", "send", "receive", "merge", "wait"
  std::int32_t ring_step = 0;  // from 0; a pass's own order
  double start_seconds = 0;    // since the ranks started together
  double end_seconds = 0;
  friend bool operator==(const MeasuredWindow&, const MeasuredWindow&) = default;
};

struct MeasuredPoint {
  std::string probe;
  std::vector<MeasuredAxis> axes;  // in the probe's order
  MeasuredOutcome outcome = MeasuredOutcome::kMeasured;
  std::string reason{};  // why skipped or failed; of a measured one: what to beware of ("did not settle within its budget")
  std::int64_t warm_ups = 0;
  std::vector<MeasuredResult> results{};
  std::vector<MeasuredWindow> windows{};

  /// nullptr when there is none of that name.
  [[nodiscard]] const MeasuredResult* result(std::string_view name) const;
  /// Of a whole-number axis; empty when absent or a text.
  [[nodiscard]] std::optional<std::int64_t> integer(std::string_view axis) const;
  /// Of a text axis; empty when absent or a number.
  [[nodiscard]] std::string text(std::string_view axis) const;
  friend bool operator==(const MeasuredPoint&, const MeasuredPoint&) = default;
};

struct MeasurementFile {
  std::string tool_version;
  std::string started_at;  // UTC, "2026-01-31T23:59:59Z"
  std::string backend;     // "host", "cuda", "loopback"
  std::int32_t ranks = 1;
  std::int32_t ranks_per_host = 1;
  std::uint64_t seed = 0;
  bool smoke = false;  // tiny sizes, few samples: of no use for a fit
  MeasuredMachine machine;
  std::vector<MeasuredPoint> points;
  friend bool operator==(const MeasurementFile&, const MeasurementFile&) = default;
};

inline constexpr int kMeasurementVersion = 1;

/// "q=128 kv=256 mask=full", for a person and as the identity of a point within its probe.
[[nodiscard]] std::string axes_text(const std::vector<MeasuredAxis>& axes);

/// One object, a line per point, a newline at the end. Figures must be finite.
[[nodiscard]] std::string measurement_json(const MeasurementFile& file);

/// `where` stands in the problems. Codes: measurement.not_json (also a file cut short), measurement.foreign, measurement.newer,
/// measurement.content (a key absent, of another type, or a figure out of range).
[[nodiscard]] Outcome<MeasurementFile> parse_measurement(const std::string& text, const std::string& where);
/// measurement.unreadable where the file cannot be read.
[[nodiscard]] Outcome<MeasurementFile> read_measurement(const std::filesystem::path& path);
/// The file appears whole: written beside, then renamed over. Throws Error with the path and the system's reason.
void write_measurement(const MeasurementFile& file, const std::filesystem::path& path);

}  // namespace cpfit
