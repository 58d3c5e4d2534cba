// A program as a child: its lines, its end, and that nothing of it stays behind.
#include "cli/child_process.h"

#include <gmock/gmock.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "cli/mpi_launch.h"
#include "model/quantity/problem.h"

namespace cpfit::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

struct ShellOutcome {
  ChildResult result;
  std::vector<std::string> lines;
};

ShellOutcome shell(const std::string& script, std::chrono::milliseconds timeout = std::chrono::seconds(60)) {
  ShellOutcome outcome;
  const ChildCommand command{{"sh", "-c", script}, {{"CPFIT_GREETING", "hello there"}}, timeout};
  outcome.result = run_child(command, [&](std::string_view line) { outcome.lines.emplace_back(line); });
  return outcome;
}

/// Does a process of this id run? One that was ended and not yet collected by its new parent does not.
bool runs(const std::string& id) { return shell("grep -q '^State:.[^Z]' /proc/" + id + "/status").result.exit_code == 0; }

TEST(ChildProcess, GivesLinesErrorsAndExitCode) {
  const ShellOutcome outcome = shell("echo one; echo; printf 'no end'; echo trouble >&2; exit 3");
  EXPECT_THAT(outcome.lines, ElementsAre("one", "", "no end"));
  EXPECT_EQ(outcome.result.errors, "trouble\n");
  EXPECT_EQ(outcome.result.exit_code, 3);
  EXPECT_FALSE(outcome.result.ok());
  EXPECT_EQ(outcome_text({{"sh"}, {}, {}}, outcome.result), "'sh' ended with exit code 3: trouble");
}

TEST(ChildProcess, GetsItsEnvironmentAndMuchOutputThrough) {
  EXPECT_THAT(shell("echo $CPFIT_GREETING").lines, ElementsAre("hello there"));
  EXPECT_EQ(shell("seq 1 50000; seq 1 50000 >&2").lines.size(), 50'000U);  // more than both pipes hold
}

TEST(ChildProcess, OnlyTheEndOfMuchTroubleIsKept) {
  const ShellOutcome outcome = shell("seq 1 50000 >&2");
  EXPECT_EQ(outcome.result.errors.size(), 16U * 1024);
  EXPECT_TRUE(outcome.result.errors.ends_with("50000\n"));
}

TEST(ChildProcess, OneThatCannotBeStartedThrows) {
  EXPECT_THROW((void)run_child({{"/no/such/program"}, {}, std::chrono::seconds(1)}, [](std::string_view) {}), Error);
}

TEST(ChildProcess, ItsGroupEndsWhenTimeIsUp) {
  const ShellOutcome outcome = shell("sleep 1000 & echo $!; sleep 1000", std::chrono::milliseconds(300));
  EXPECT_TRUE(outcome.result.timed_out);
  ASSERT_EQ(outcome.lines.size(), 1U);
  EXPECT_FALSE(runs(outcome.lines[0]));
  EXPECT_THAT(outcome_text({{"sh"}, {}, std::chrono::milliseconds(300)}, outcome.result), HasSubstr("within 0.3 s"));
}

TEST(ChildProcess, OneThatWillNotEndIsEnded) {
  const ShellOutcome outcome = shell("trap '' TERM; while :; do sleep 0.1; done", std::chrono::milliseconds(200));
  EXPECT_TRUE(outcome.result.timed_out);
  EXPECT_EQ(outcome.result.signal, SIGKILL);
}

TEST(ChildProcess, WhatItLeavesBehindIsEnded) {
  const ShellOutcome outcome = shell("sleep 1000 & echo $!");  // the sleeper holds our pipe open
  EXPECT_TRUE(outcome.result.ok());
  ASSERT_EQ(outcome.lines.size(), 1U);
  EXPECT_FALSE(runs(outcome.lines[0]));
}

TEST(ChildProcess, ItEndsWhenALineIsRefused) {
  std::string sleeper;
  const ChildCommand command{{"sh", "-c", "echo $$; sleep 1000"}, {}, std::chrono::seconds(60)};
  EXPECT_THROW((void)run_child(command,
                               [&](std::string_view line) {
                                 sleeper = line;
                                 throw Error("refused");
                               }),
               Error);
  EXPECT_FALSE(runs(sleeper));
}

TEST(ChildProcess, CtrlCEndsTheChildFirstAndIsThenOursAgain) {
  static volatile sig_atomic_t caught = 0;
  struct sigaction action{};
  action.sa_handler = [](int) { caught = 1; };
  struct sigaction before{};
  sigaction(SIGINT, &action, &before);
  std::string sleeper;
  const ChildCommand command{{"sh", "-c", "echo $$; sleep 1000"}, {}, std::chrono::seconds(60)};
  // A thread that blocks nothing, as a BLAS has them: the system may give the signal to it.
  std::atomic<bool> over = false;
  std::thread other([&] {
    while (!over) ::usleep(1000);
  });
  const ChildResult result = run_child(command, [&](std::string_view line) {
    sleeper = line;
    ::kill(::getpid(), SIGINT);
  });
  over = true;
  other.join();
  sigaction(SIGINT, &before, nullptr);
  EXPECT_EQ(caught, 1);
  EXPECT_FALSE(result.timed_out);
  EXPECT_FALSE(runs(sleeper));
}

TEST(MpiLaunch, SaysHowRanksStart) {
  const ChildCommand command = mpi_command(4, "/bin/cpfit-bench", {"--probe", "verify-case"});
  EXPECT_THAT(command.words, ElementsAre("mpirun", "-n", "4", "--oversubscribe", "/bin/cpfit-bench", "--probe", "verify-case"));
  const bool told =
      std::ranges::any_of(command.environment, [](const auto& pair) { return pair.first == "OMPI_ALLOW_RUN_AS_ROOT"; });
  EXPECT_EQ(told, ::geteuid() == 0);
}

}  // namespace
}  // namespace cpfit::cli
