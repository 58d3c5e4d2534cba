// A program started as a child: its lines come in as they are printed, its trouble is kept, and whatever happens (time is up, a
// line is refused, the person presses Ctrl-C) it and all of its process group are gone when the call returns.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cpfit::cli {

struct ChildCommand {
  std::vector<std::string> words;                                // the program, sought in PATH, and its arguments
  std::vector<std::pair<std::string, std::string>> environment;  // beside our own
  std::chrono::milliseconds timeout{600'000};                    // of the whole run
};

struct ChildResult {
  int exit_code = -1;      // -1: a signal ended it
  int signal = 0;          // the signal, 0: none
  bool timed_out = false;  // it was ended because its time was up
  std::string errors;      // the end of its standard error, at most 16 KiB

  [[nodiscard]] bool ok() const { return exit_code == 0 && !timed_out; }
};

/// Runs the command to its end. `on_line`: each line of its standard output, without the line's end. Throws Error when the
/// program cannot be started, and whatever `on_line` throws. SIGINT, SIGTERM and SIGHUP sent to us meanwhile end the child first
/// and are then ours again.
[[nodiscard]] ChildResult run_child(const ChildCommand& command, const std::function<void(std::string_view line)>& on_line);

/// In words, for a person: "ended with exit code 3", "was ended by signal 9 (Killed)", "did not finish within 5 s"; followed by
/// the first line of its trouble that says something.
[[nodiscard]] std::string outcome_text(const ChildCommand& command, const ChildResult& result);

}  // namespace cpfit::cli
