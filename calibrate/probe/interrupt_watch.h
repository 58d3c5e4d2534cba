// SIGINT, SIGTERM and SIGHUP while a measurement runs: only noted, so that the measurement ends between two samples and keeps
// what it has. A second one, two seconds later or more, ends the process at once; earlier it counts as the same.
#pragma once

namespace cpfit::probe {

/// One per process, while it lives.
class InterruptWatch {
 public:
  InterruptWatch();
  InterruptWatch(const InterruptWatch&) = delete;
  InterruptWatch& operator=(const InterruptWatch&) = delete;
  ~InterruptWatch();

  [[nodiscard]] bool interrupted() const;
};

}  // namespace cpfit::probe
