// What a real training job did, as its own logs, profiler traces and memory snapshots tell it (calibrate/read), beside what was
// predicted for it (sim/evaluate). Kept by db, shown by cli. Rows of published tables are MeasuredRun (validation.h).
//
// When a measurement is an outlier: it lies outside the prediction's 90 % interval by more than half of the interval's width on
// that side, in the logarithm: |ln(measured/predicted)| > 1.5 |ln(end/predicted)|. Of right predictions with normal errors 1.4 %
// are called so. Exposed communication, which may be predicted as nothing, is compared by differences, and must also be off by
// 1 % of the predicted step.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace cpfit {

/// What is compared. The unit is the name's: seconds and bytes, tokens/s, TFLOP/s; MFU is a share.
enum class RunFigure : std::uint8_t {
  kStepSeconds,
  kTokensPerSecondPerGpu,
  kTflopsPerGpu,
  kMfu,
  kResidentBytes,   // allocated between steps
  kPeakBytes,       // most that was allocated
  kReservedBytes,   // most that the allocator held
  kExposedSeconds,  // communication beside which nothing computes, per step: all of it, then by axis
  kExposedCpSeconds,
  kExposedTpSeconds,
  kExposedPpSeconds,  // waiting for another stage included: its kernels run while it waits
  kExposedDpSeconds
};
inline constexpr int kRunFigureCount = 12;
[[nodiscard]] std::string_view name_of(RunFigure figure);  // "step_seconds", "peak_bytes", "exposed_cp_seconds", ...

enum class Standing : std::uint8_t {
  kNotPredicted,  // no prediction to compare with; `note` says why
  kInside,        // the median lies within the prediction's 90 % interval
  kOutside,
  kOutlier  // the rule at the top
};
inline constexpr int kStandingCount = 4;
[[nodiscard]] std::string_view name_of(Standing standing);  // "not predicted", "inside", "outside", "outlier"

/// A quantity over the samples that were kept.
struct MeasuredFigure {
  RunFigure figure = RunFigure::kStepSeconds;
  std::int32_t stage = -1;  // pipeline stage that memory belongs to; -1: not known, taken as the worst
  std::int64_t rank = -1;   // global rank it was measured on; -1: not said, or of the whole job
  double median = 0;
  double low = 0, high = 0;  // 95 % interval of the median, by order statistics; of fewer than 6 samples their range
  std::int64_t samples = 0;
  std::int64_t left_out = 0;  // warm-up, outliers, skipped updates
  std::string basis;          // what it was read from, and how it is counted where that is not plain
  friend bool operator==(const MeasuredFigure&, const MeasuredFigure&) = default;
};

struct ComparedFigure {
  MeasuredFigure measured;
  double predicted = 0, low = 0, high = 0;  // 90 % interval; all 0 when not predicted
  Standing standing = Standing::kNotPredicted;
  std::string note;
  friend bool operator==(const ComparedFigure&, const ComparedFigure&) = default;
};

struct RunSource {
  std::string path;
  std::string format;  // "Megatron-LM log", "Kineto trace", "memory snapshot (pickle)"
  friend bool operator==(const RunSource&, const RunSource&) = default;
};

/// A logged step that no figure rests on.
struct LeftOutStep {
  std::int64_t iteration = 0;
  std::int64_t line = 0;
  double seconds = 0;  // 0: not logged
  std::string reason;  // "warm-up", "3.4 times the median", "its update was skipped", "global batch 256"
  friend bool operator==(const LeftOutStep&, const LeftOutStep&) = default;
};

/// One job as it was taken in: everything read from its files that belongs together.
struct MeasuredJob {
  std::vector<RunSource> sources;
  std::string framework;      // "Megatron-LM", "torchtitan", ...; empty without a log
  std::string scenario_name;  // empty: nothing to compare with
  std::string recipe;         // to_complete_text
  std::int64_t run = 0;       // stored run whose prediction it was; 0: none
  std::string tool_version, rates_version;
  std::int64_t gpus = 0, sequence_tokens = 0, global_batch = 0;  // 0: not known
  std::int64_t logged_steps = 0, skipped_updates = 0, nan_steps = 0, attempts = 0;
  std::vector<ComparedFigure> figures;
  std::vector<LeftOutStep> left_out;
  std::vector<std::string> remarks;
  friend bool operator==(const MeasuredJob&, const MeasuredJob&) = default;
};

/// Where a measurement lies. `by_difference` and `step` (seconds): the rule for exposed communication.
[[nodiscard]] Standing standing_of(double measured, double predicted, double low, double high, bool by_difference = false,
                                   double step = 0);

inline constexpr double kOutlierReach = 1.5;
inline constexpr double kExposedFloor = 0.01;  // share of the step

}  // namespace cpfit
