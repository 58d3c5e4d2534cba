#include "cli/mpi_launch.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string_view>

namespace cpfit::cli {

namespace {

namespace fs = std::filesystem;

bool is_program(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored) && ::access(path.c_str(), X_OK) == 0;
}

std::string find_in_path(const std::string& name) {
  const char* path = std::getenv("PATH");
  std::string_view rest = path == nullptr ? "" : path;
  while (!rest.empty()) {
    const std::size_t end = rest.find(':');
    const fs::path candidate = fs::path(rest.substr(0, end)) / name;
    if (is_program(candidate)) return candidate.string();
    rest = end == std::string_view::npos ? std::string_view() : rest.substr(end + 1);
  }
  return "";
}

/// What stands between `begin` and `end` (or the end of the line) where `begin` occurs first; empty: nowhere.
std::string between(std::string_view text, std::string_view begin, std::string_view end) {
  const std::size_t found = text.find(begin);
  if (found == std::string_view::npos) return "";
  const std::string_view rest = text.substr(found + begin.size());
  return std::string(rest.substr(0, std::min(rest.find(end), rest.find('\n'))));
}

}  // namespace

std::string mpi_outcome_text(const ChildCommand& command, const ChildResult& result) {
  const std::string_view errors = result.errors;
  // Ranks that stop because of another repeat what that one said (kernels/transport/mpi_transport.h).
  if (const std::string cause = between(errors, " stops: ", "\n"); !cause.empty()) return cause;
  if (const std::string said = between(errors, "cpfit-bench: ", "\n"); !said.empty()) return said;
  if (const std::string died = between(errors, "noticed that process ", "."); !died.empty()) return died;
  const std::string process = between(errors, "Process name: [[", "\n");  // job, group], rank]
  const std::string rank = between(process, "],", "]");
  const std::string code = between(errors, "Exit code:", "\n");
  if (!rank.empty() && !code.empty()) return "rank " + rank + " ended with exit code " + code.substr(code.find_first_not_of(' '));
  return outcome_text(command, result);
}

std::string find_mpirun() { return find_in_path("mpirun"); }

std::string find_companion(const std::string& name) {
  std::error_code ignored;
  const fs::path own = fs::read_symlink("/proc/self/exe", ignored).parent_path();
  if (!own.empty()) {
    // Installed side by side; in a build folder every program lies in the folder of its part.
    for (const fs::path& folder : {own, own / "../calibrate", own / "../../calibrate", own / "../../../calibrate"}) {
      if (is_program(folder / name)) return (folder / name).lexically_normal().string();
    }
  }
  return find_in_path(name);
}

ChildCommand mpi_command(std::int32_t ranks, const std::string& program, const std::vector<std::string>& arguments) {
  ChildCommand command;
  command.words = {"mpirun", "-n", std::to_string(ranks), "--oversubscribe", program};
  command.words.insert(command.words.end(), arguments.begin(), arguments.end());
  for (const char* variable : {"OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"}) {
    if (std::getenv(variable) == nullptr) command.environment.emplace_back(variable, "1");
  }
  if (::geteuid() == 0) {
    command.environment.emplace_back("OMPI_ALLOW_RUN_AS_ROOT", "1");
    command.environment.emplace_back("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
  }
  return command;
}

}  // namespace cpfit::cli
