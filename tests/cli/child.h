// Runs the built cpfit as a child process, as a shell would, and keeps what it said.
#pragma once

#include <sys/types.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace cpfit::cli_test {

struct Said {
  int exit_code = -1;  // -1 when a signal ended it
  int signal = 0;
  std::string out, err;
};

using Words = std::vector<std::string>;

/// Starts `cpfit WORDS...` with standard output and error going to `out` and `err`; a hang ends by SIGALRM after a quarter of an
/// hour.
[[nodiscard]] pid_t start(const Words& words, const std::string& out, const std::string& err);
/// Waits for a started child.
[[nodiscard]] Said wait_for(pid_t child, const std::string& out, const std::string& err);
/// Both in one; standard output into `out` where it is named (a device), else kept.
[[nodiscard]] Said cpfit(const Words& words, const std::string& out = "");
/// The object that `cpfit WORDS... --json` prints; fails the test when it exits with another code.
[[nodiscard]] nlohmann::json cpfit_json(Words words, int exit_code = 0);

/// A new empty folder, removed with everything in it when the value dies.
class Folder {
 public:
  Folder();
  ~Folder();
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  [[nodiscard]] std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  /// Writes a file and returns its path.
  [[nodiscard]] std::string file(const std::string& name, const std::string& text) const;

 private:
  std::string path_;
};

[[nodiscard]] std::string read_file(const std::string& path);
[[nodiscard]] std::string example(const std::string& name);
/// The names of all examples, sorted; under a sanitizer without the largest clusters, whose searches take minutes there and run
/// the same code.
[[nodiscard]] std::vector<std::string> example_names();
/// A small complete scenario; `more` is appended, and may open tables.
[[nodiscard]] std::string small_scenario(const std::string& more = "");

}  // namespace cpfit::cli_test
