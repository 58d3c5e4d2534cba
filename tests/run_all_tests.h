// What main of every test program does: runs the tests, and looks for leaks while no thread is on its way out. The leak check
// at the end of a process may meet a worker half gone (Qt's pools do not join theirs), read memory that is no more, and fail
// tests that had passed. What a program builds around its tests (a QApplication with its fonts) must be gone by then.
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

/// The tests' result; TBB's workers have ended.
inline int run_all_tests() {
  tbb::task_scheduler_handle workers{tbb::attach{}};
  const int result = RUN_ALL_TESTS();
  tbb::finalize(workers, std::nothrow);
  return result;
}

/// The last thing main does. Ends the process when there are leaks; there is no second check at its end.
inline void look_for_leaks() {
#ifdef __SANITIZE_ADDRESS__
  wait_for_leaving_threads();
  __lsan_do_leak_check();
#endif
}

}  // namespace cpfit::testing_main
