#include "cli/child_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <optional>

#include "model/quantity/problem.h"

extern char** environ;  // NOLINT: POSIX gives the environment this way

namespace cpfit::cli {

namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr auto kTick = 50ms;    // how often the child's state is looked at
constexpr auto kGrace = 3s;     // between asking a group to end and ending it: mpirun takes its ranks along
constexpr auto kCollect = 1s;   // for what was ended to be gone
constexpr auto kDrain = 200ms;  // for what the pipes still hold when the child is gone
constexpr std::size_t kErrorBytes = std::size_t{16} * 1024;

/// One end of a pipe that we read.
class ReadEnd {
 public:
  explicit ReadEnd(int descriptor) : descriptor_(descriptor) {}
  ReadEnd(const ReadEnd&) = delete;
  ReadEnd& operator=(const ReadEnd&) = delete;
  ~ReadEnd() { close(); }

  [[nodiscard]] int descriptor() const { return descriptor_; }
  [[nodiscard]] bool open() const { return descriptor_ >= 0; }
  void close() {
    if (descriptor_ >= 0) ::close(descriptor_);
    descriptor_ = -1;
  }
  /// What is there now; closes at the end of the stream.
  std::string read_available() {
    std::string text;
    std::array<char, 4096> buffer{};
    while (open()) {
      const ssize_t got = ::read(descriptor_, buffer.data(), buffer.size());
      if (got > 0) {
        text.append(buffer.data(), static_cast<std::size_t>(got));
      } else if (got < 0 && errno == EINTR) {
        continue;
      } else if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
        break;
      } else {
        close();
      }
    }
    return text;
  }

 private:
  int descriptor_;
};

struct Pipe {
  int read = -1;
  int write = -1;
};
Pipe make_pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) throw Error(fmt::format("a pipe cannot be made: {}", std::strerror(errno)));
  ::fcntl(ends[0], F_SETFL, O_NONBLOCK);
  return {ends[0], ends[1]};
}

/// What the handler below may touch can only be of the process.
volatile sig_atomic_t signal_arrived = 0;

/// Notes the signals by which a person ends us, until the child is dealt with; then they mean what they meant before. By a
/// handler and not by blocking them: a process has threads that were there before main (those of a BLAS), to which the system
/// may give what this one blocks.
class HeldSignals {
 public:
  HeldSignals() {
    signal_arrived = 0;
    struct sigaction note{};
    note.sa_handler = [](int signal) { signal_arrived = signal; };
    for (std::size_t i = 0; i < kHeld.size(); ++i) {
      sigaction(kHeld[i], nullptr, &before_[i]);
      if (!ignored(i)) sigaction(kHeld[i], &note, nullptr);
    }
  }
  HeldSignals(const HeldSignals&) = delete;
  HeldSignals& operator=(const HeldSignals&) = delete;
  ~HeldSignals() {
    for (std::size_t i = 0; i < kHeld.size(); ++i)
      if (!ignored(i)) sigaction(kHeld[i], &before_[i], nullptr);
    if (arrived()) ::raise(signal_arrived);
  }
  /// Has one arrived? It is raised again at the end.
  [[nodiscard]] bool arrived() const { return signal_arrived != 0; }

 private:
  static constexpr std::array<int, 3> kHeld = {SIGINT, SIGTERM, SIGHUP};
  /// As nohup has it.
  [[nodiscard]] bool ignored(std::size_t i) const { return before_[i].sa_handler == SIG_IGN; }
  std::array<struct sigaction, 3> before_{};
};

/// The child and its group, ended at the latest when this goes.
class ChildGroup {
 public:
  explicit ChildGroup(pid_t leader) : leader_(leader) {}
  ChildGroup(const ChildGroup&) = delete;
  ChildGroup& operator=(const ChildGroup&) = delete;
  ~ChildGroup() { end(); }

  /// Looks; does not wait.
  bool ended() {
    if (status_) return true;
    int status = 0;
    const pid_t found = ::waitpid(leader_, &status, WNOHANG);
    if (found == leader_) status_ = status;
    if (found < 0 && errno != EINTR) status_ = 0;
    return status_.has_value();
  }
  [[nodiscard]] int status() const { return status_.value_or(0); }

  /// Asks the group to end, waits the grace, ends what is left.
  void end() {
    if (gone_) return;
    gone_ = true;
    if (!ended()) {
      ::kill(-leader_, SIGTERM);
      for (const Clock::time_point until = Clock::now() + kGrace; !ended() && Clock::now() < until;) ::usleep(10'000);
    }
    ::kill(-leader_, SIGKILL);  // also what the leader left behind; nobody there is no error
    while (!ended()) ::usleep(10'000);
    // Those die a moment later; one that nobody collects stays in the group, dead.
    for (const Clock::time_point until = Clock::now() + kCollect; ::kill(-leader_, 0) == 0 && Clock::now() < until;)
      ::usleep(5'000);
  }

 private:
  pid_t leader_;
  bool gone_ = false;
  std::optional<int> status_;
};

std::vector<std::string> environment_of(const ChildCommand& command) {
  std::vector<std::string> all;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const bool replaced = std::ranges::any_of(command.environment, [&](const auto& pair) {
      return text.starts_with(pair.first) && text.substr(pair.first.size()).starts_with('=');
    });
    if (!replaced) all.emplace_back(text);
  }
  for (const auto& [name, value] : command.environment) all.push_back(name + "=" + value);
  return all;
}

std::vector<char*> pointers_to(std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  return pointers;
}

pid_t spawn(const ChildCommand& command, const Pipe& output, const Pipe& errors) {
  std::vector<std::string> words = command.words;
  std::vector<std::string> environment = environment_of(command);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&files, output.write, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&files, errors.write, STDERR_FILENO);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  posix_spawnattr_setpgroup(&attributes, 0);  // a group of its own
  pid_t child = 0;
  const int failure =
      posix_spawnp(&child, words[0].c_str(), &files, &attributes, pointers_to(words).data(), pointers_to(environment).data());
  posix_spawn_file_actions_destroy(&files);
  posix_spawnattr_destroy(&attributes);
  ::close(output.write);
  ::close(errors.write);
  if (failure != 0) {
    ::close(output.read);
    ::close(errors.read);
    throw Error(fmt::format("'{}' cannot be started: {}", command.words[0], std::strerror(failure)));
  }
  return child;
}

/// Hands over every whole line of `pending`; the rest too when nothing more will come.
void hand_over(std::string& pending, bool at_end, const std::function<void(std::string_view)>& on_line) {
  std::size_t begin = 0;
  for (std::size_t end = pending.find('\n'); end != std::string::npos; end = pending.find('\n', begin)) {
    on_line(std::string_view(pending).substr(begin, end - begin));
    begin = end + 1;
  }
  pending.erase(0, begin);
  if (at_end && !pending.empty()) {
    on_line(pending);
    pending.clear();
  }
}

void keep_end(std::string& errors, const std::string& more) {
  errors += more;
  if (errors.size() > kErrorBytes) errors.erase(0, errors.size() - kErrorBytes);
}

}  // namespace

ChildResult run_child(const ChildCommand& command, const std::function<void(std::string_view line)>& on_line) {
  if (command.words.empty()) throw Error("a child process without a program cannot be started");
  const HeldSignals signals;
  const Pipe output_pipe = make_pipe();
  const Pipe error_pipe = make_pipe();
  const pid_t leader = spawn(command, output_pipe, error_pipe);
  ReadEnd output(output_pipe.read);
  ReadEnd errors(error_pipe.read);
  ChildGroup child(leader);
  ChildResult result;
  std::string pending;
  const auto read_all = [&] {
    pending += output.read_available();
    keep_end(result.errors, errors.read_available());
    hand_over(pending, false, on_line);
  };
  const Clock::time_point deadline = Clock::now() + command.timeout;
  while (!child.ended()) {
    std::array<pollfd, 2> wanted = {pollfd{output.descriptor(), POLLIN, 0}, pollfd{errors.descriptor(), POLLIN, 0}};
    const bool any_open = output.open() || errors.open();  // poll passes over descriptors below 0
    ::poll(wanted.data(), wanted.size(), static_cast<int>(kTick.count()) / (any_open ? 1 : 5));
    read_all();
    if (signals.arrived()) break;
    if (Clock::now() >= deadline && !child.ended()) {
      result.timed_out = true;
      break;
    }
  }
  if (!child.ended()) child.end();
  // A grandchild may hold the pipes open for ever.
  for (const Clock::time_point until = Clock::now() + kDrain; output.open() && Clock::now() < until;) {
    read_all();
    if (output.open()) ::usleep(5'000);
  }
  read_all();
  hand_over(pending, true, on_line);
  child.end();
  const int status = child.status();
  if (WIFEXITED(status)) result.exit_code = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) result.signal = WTERMSIG(status);
  return result;
}

std::string outcome_text(const ChildCommand& command, const ChildResult& result) {
  std::string text;
  const std::string program = command.words.empty() ? "" : command.words[0];
  if (result.timed_out) {
    text = fmt::format("'{}' did not finish within {:.3g} s", program, std::chrono::duration<double>(command.timeout).count());
  } else if (result.signal != 0) {
    text = fmt::format("'{}' was ended by signal {} ({})", program, result.signal, ::strsignal(result.signal));
  } else {
    text = fmt::format("'{}' ended with exit code {}", program, result.exit_code);
  }
  // The first line that says something: launchers add rules and advice of their own after it.
  std::string_view errors = result.errors;
  while (!errors.empty()) {
    const std::size_t end = errors.find('\n');
    const std::string_view line = errors.substr(0, end);
    errors = end == std::string_view::npos ? std::string_view() : errors.substr(end + 1);
    const bool says_something = std::ranges::any_of(line, [](unsigned char c) { return std::isalpha(c) != 0; });
    if (says_something) return text + ": " + std::string(line);
  }
  return text;
}

}  // namespace cpfit::cli
