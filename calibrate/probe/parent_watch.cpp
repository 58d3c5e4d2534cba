#include "calibrate/probe/parent_watch.h"

#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <mutex>

namespace cpfit::probe {

std::jthread end_with_parent() {
  return std::jthread([parent = ::getppid()](const std::stop_token& stop) {
    std::mutex mutex;
    std::condition_variable_any tick;
    std::unique_lock lock(mutex);
    while (!tick.wait_for(lock, stop, std::chrono::milliseconds(500), [&] { return stop.stop_requested(); })) {
      if (::getppid() == parent) continue;
      std::fputs("cpfit-bench: whoever started this rank is gone\n", stderr);
      std::_Exit(1);
    }
  });
}

}  // namespace cpfit::probe
