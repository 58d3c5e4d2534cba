#include "calibrate/probe/interrupt_watch.h"

#include <signal.h>
#include <unistd.h>

namespace cpfit::probe {

namespace {

constexpr int kSignals[] = {SIGINT, SIGTERM, SIGHUP};

// What a signal's handler may touch can only be of the process. (A thread that waits for blocked signals would not hear those
// that the threads of a BLAS, which exist before main, let through.)
volatile sig_atomic_t signals_seen = 0;

void note(int) {
  if (signals_seen != 0) _exit(1);
  signals_seen = 1;
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
  for (const int one : kSignals) signal(one, SIG_DFL);
}

bool InterruptWatch::interrupted() const { return signals_seen != 0; }

}  // namespace cpfit::probe
