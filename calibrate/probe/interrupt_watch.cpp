#include "calibrate/probe/interrupt_watch.h"

#include <signal.h>

#include <cstdio>
#include <cstdlib>

namespace cpfit::probe {

namespace {

sigset_t watched() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int one : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&signals, one);
  return signals;
}

}  // namespace

InterruptWatch::InterruptWatch() {
  const sigset_t signals = watched();
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  thread_ = std::jthread([this, signals](const std::stop_token& stop) {
    const timespec tick{0, 100'000'000};
    while (!stop.stop_requested()) {
      if (sigtimedwait(&signals, nullptr, &tick) < 0) continue;
      if (interrupted_.exchange(true)) {
        std::fputs("cpfit-bench: interrupted twice: ended at once\n", stderr);
        std::_Exit(1);
      }
    }
  });
}

}  // namespace cpfit::probe
