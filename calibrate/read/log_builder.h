// Gathers what the readers of single lines find. Private to calibrate/read.
#pragma once

#include <array>
#include <cmath>
#include <map>
#include <string_view>

#include "calibrate/read/job_log.h"
#include "calibrate/read/log_lines.h"

namespace cpfit::joblog {

/// Where a step comes from: of several kinds in one log the first that occurs here counts.
enum class StepKind : std::uint8_t { kIteration, kNanotron, kTitan, kDeepspeed };
inline constexpr std::size_t kStepKinds = 4;
inline constexpr std::size_t kMostSteps = std::size_t{1} << 22U;  // of one log: 600 MB of memory
inline constexpr std::size_t kMostRanks = std::size_t{1} << 17U;

/// A number as logs print it at the beginning of `text` (leading blanks allowed, thousands separated by commas); none when
/// there is no finite one.
[[nodiscard]] std::optional<double> number_at(std::string_view text);
/// What follows `key`, blanks removed; empty when the key is not there.
[[nodiscard]] std::string_view after(std::string_view line, std::string_view key);
[[nodiscard]] inline std::optional<double> number_after(std::string_view line, std::string_view key) {
  const std::string_view rest = after(line, key);
  return rest.empty() ? std::nullopt : number_at(rest);
}
/// The same, for what must be above 0 and below `most`; 0 otherwise.
[[nodiscard]] double positive_after(std::string_view line, std::string_view key, double most = 1e15);
[[nodiscard]] std::optional<std::int64_t> count_after(std::string_view line, std::string_view key);

class Builder {
 public:
  void step(StepKind kind, std::int64_t rank, const JobStep& step);
  void memory(std::int64_t rank, const JobMemory& memory);
  /// The job printed its start.
  void begins() { ++starts_; }
  void seen(JobFramework framework) { seen_[static_cast<std::size_t>(framework)] = true; }
  JobFacts facts;
  std::int64_t unreadable = 0;  // lines of a known format without a usable figure
  double bridge_tflops = 0;     // of the "Step Time" line before an iteration line without throughput
  bool in_arguments = false;

  /// Whether anything was found.
  [[nodiscard]] bool any() const;
  void finish(JobLog& log);

 private:
  struct RankState {
    std::int64_t last = 0, stride = 0, starts = 0;
    std::size_t attempt = 0;
    bool began = false;
  };
  struct Track {
    std::vector<JobAttempt> attempts;
    std::map<std::int64_t, RankState> ranks;
  };
  static void merge(JobAttempt& attempt, const JobStep& step);
  std::array<Track, kStepKinds> tracks_;
  std::array<bool, 5> seen_{};
  std::map<std::int64_t, JobMemory> memory_;
  std::int64_t starts_ = 0;
  std::size_t steps_ = 0;
  bool full_ = false;
};

// One reader per format: whether the line is one of its own.
[[nodiscard]] bool take_megatron(const LogLine& line, Builder& into);
[[nodiscard]] bool take_torchtitan(const LogLine& line, Builder& into);
[[nodiscard]] bool take_deepspeed(const LogLine& line, Builder& into);
[[nodiscard]] bool take_nanotron(const LogLine& line, Builder& into);

}  // namespace cpfit::joblog
