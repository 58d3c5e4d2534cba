// What main of every test program does: runs the tests, and looks for leaks while no thread is on its way out. The leak check
// at the end of a process may meet a worker half gone (Qt's pools do not join theirs), read memory that is no more, and fail
// tests that had passed.
#pragma once

#include <gmock/gmock.h>
#include <tbb/global_control.h>

#include <chrono>
#include <filesystem>
#include <iterator>
#include <new>
#include <thread>
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/lsan_interface.h>
#endif

namespace cpfit::testing_main {

inline std::ptrdiff_t threads_alive() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/task"), std::filesystem::directory_iterator());
}

/// Until none has gone for a while.
inline void wait_for_leaving_threads() {
  constexpr int kCalmRounds = 10;
  std::ptrdiff_t before = threads_alive();
  for (int calm = 0; calm < kCalmRounds && before > 1; ++calm) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    const std::ptrdiff_t now = threads_alive();
    if (now != before) calm = 0;
    before = now;
  }
}

inline int run_all_tests() {
  tbb::task_scheduler_handle workers{tbb::attach{}};
  const int result = RUN_ALL_TESTS();
  tbb::finalize(workers, std::nothrow);
#ifdef __SANITIZE_ADDRESS__
  wait_for_leaving_threads();
  __lsan_do_leak_check();  // ends the process when there are any; there is no second check at its end
#endif
  return result;
}

}  // namespace cpfit::testing_main
