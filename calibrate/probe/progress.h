// Progress as lines of JSON on standard output, for whoever started us: {"probe":…,"done":…,"total":…,"seconds_left":…,
// "outcome":…}; outcome is running, done or failed; seconds_left is null until something is known; a line that failed has a
// "reason". Only rank 0 prints.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace cpfit::probe {

class ProgressLines {
 public:
  explicit ProgressLines(bool speaks) : speaks_(speaks) {}

  /// A probe is looked at; nothing is printed.
  void enter(const std::string& probe);
  /// How much it will do.
  void begin(std::int64_t total);
  /// One more is done; prints at most ten lines a second, the last always.
  void step();
  void fail(const std::string& reason);
  /// A line with figures of one's own; one that is neither the first nor the last of its probe waits for its tenth of a second.
  void report(const std::string& probe, std::int64_t done, std::int64_t total, double seconds_left, const std::string& outcome,
              const std::string& reason);

 private:
  void print(const std::string& outcome, const std::string& reason);

  using Clock = std::chrono::steady_clock;
  bool speaks_;
  std::string probe_;
  std::int64_t done_ = 0;
  std::int64_t total_ = 0;
  Clock::time_point begin_;
  Clock::time_point printed_;
};

/// The line itself. `seconds_left` below 0: unknown.
[[nodiscard]] std::string progress_line(const std::string& probe, std::int64_t done, std::int64_t total, double seconds_left,
                                        const std::string& outcome, const std::string& reason);

}  // namespace cpfit::probe
