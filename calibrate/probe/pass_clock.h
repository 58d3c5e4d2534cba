// When things happen in one pass of a rank: on the host read from a clock, on a GPU from events on the operators' stream. Marks
// are taken while the pass runs and read when it is over.
#pragma once

#include <chrono>
#include <cstddef>
#include <vector>

namespace cpfit::probe {

class PassClock {
 public:
  PassClock() = default;
  PassClock(const PassClock&) = delete;
  PassClock& operator=(const PassClock&) = delete;
  virtual ~PassClock() = default;

  /// Time 0 is now; nothing may be running. Forgets all marks.
  virtual void restart() = 0;
  /// The moment when the operators called so far have taken effect. Returns its place in seconds().
  virtual std::size_t mark() = 0;
  /// Now, as the host sees it.
  [[nodiscard]] virtual double now() const = 0;
  /// All marks; waits for them.
  [[nodiscard]] virtual std::vector<double> seconds() = 0;
  /// Does a transport's wait() return only when the batch has ended? Else it delays the operators called after it.
  [[nodiscard]] virtual bool host_waits() const = 0;
};

class HostPassClock final : public PassClock {
 public:
  void restart() override {
    marks_.clear();
    begin_ = Clock::now();
  }
  std::size_t mark() override {
    marks_.push_back(now());
    return marks_.size() - 1;
  }
  [[nodiscard]] double now() const override { return std::chrono::duration<double>(Clock::now() - begin_).count(); }
  [[nodiscard]] std::vector<double> seconds() override { return marks_; }
  [[nodiscard]] bool host_waits() const override { return true; }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point begin_ = Clock::now();
  std::vector<double> marks_;
};

}  // namespace cpfit::probe
