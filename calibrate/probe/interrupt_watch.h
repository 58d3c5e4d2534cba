// SIGINT, SIGTERM and SIGHUP while a measurement runs: noticed on a thread of its own, so that the measurement ends between two
// samples and keeps what it has. A second one ends the process at once.
#pragma once

#include <atomic>
#include <thread>

namespace cpfit::probe {

class InterruptWatch {
 public:
  /// Before other threads are started: they inherit that these signals are not for them.
  InterruptWatch();
  InterruptWatch(const InterruptWatch&) = delete;
  InterruptWatch& operator=(const InterruptWatch&) = delete;

  [[nodiscard]] bool interrupted() const { return interrupted_.load(); }

 private:
  std::atomic<bool> interrupted_{false};
  std::jthread thread_;
};

}  // namespace cpfit::probe
