#include "calibrate/probe/interrupt_watch.h"

#include <signal.h>
#include <time.h>
#include <unistd.h>

namespace cpfit::probe {

namespace {

constexpr int kSignals[] = {SIGINT, SIGTERM, SIGHUP};

// What a signal's handler may touch can only be of the process. (A thread that waits for blocked signals would not hear those
// that the threads of a BLAS, which exist before main, let through.)
volatile sig_atomic_t signals_seen = 0;
volatile time_t first_second = 0;

// One Ctrl-C arrives more than once: from the terminal, and again from a launcher that passes it on. Who means it waits a moment.
constexpr time_t kRepeatsSeconds = 2;

void note(int) {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);  // async-signal-safe by POSIX
  if (signals_seen == 0) {
    first_second = now.tv_sec;
    signals_seen = 1;
  } else if (now.tv_sec - first_second >= kRepeatsSeconds) {
    _exit(1);
  }
}

}  // namespace

InterruptWatch::InterruptWatch() {
  signals_seen = 0;
  struct sigaction action{};
  action.sa_handler = note;
  action.sa_flags = SA_RESTART;
  for (const int one : kSignals) sigaction(one, &action, nullptr);
}

InterruptWatch::~InterruptWatch() {
  // An interrupted measurement has said so and ends by its own exit code; a late repeat shall not change that.
  for (const int one : kSignals) signal(one, signals_seen != 0 ? SIG_IGN : SIG_DFL);
}

bool InterruptWatch::interrupted() const { return signals_seen != 0; }

}  // namespace cpfit::probe
