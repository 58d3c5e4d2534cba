// Ranks as MPI processes: messages arrive, long ones in pieces; a rank that is slow, dies, is killed, throws, sends the wrong
// size or never comes ends the job in bounded time, with a clear message, and leaves no process behind.
#include <gmock/gmock.h>

#include <cctype>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "cli/child_process.h"
#include "cli/mpi_launch.h"

namespace cpfit::cli {
namespace {

using testing::AllOf;
using testing::HasSubstr;

struct JobOutcome {
  ChildResult result;
  std::vector<std::string> lines;
};

/// Processes of the test program that still run with this word among their arguments.
int processes_with(const std::string& word) {
  int found = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::string name = entry.path().filename();
    if (name.empty() || std::isdigit(static_cast<unsigned char>(name[0])) == 0) continue;
    std::ifstream file(entry.path() / "cmdline", std::ios::binary);
    const std::string words{std::istreambuf_iterator<char>(file), {}};
    if (words.find(word) != std::string::npos) ++found;
  }
  return found;
}

class MpiTransportTest : public testing::Test {
 protected:
  void SetUp() override {
    if (find_mpirun().empty()) GTEST_SKIP() << "there is no mpirun in PATH (openmpi-bin)";
  }

  JobOutcome run(const std::string& how, std::int32_t ranks, int timeout_ms,
                 std::chrono::milliseconds whole = std::chrono::seconds(60)) {
    const std::string mark = "mark-" + how + "-" + std::to_string(::testing::UnitTest::GetInstance()->random_seed()) + "-" +
                             std::to_string(reinterpret_cast<std::uintptr_t>(this));
    ChildCommand command = mpi_command(ranks, CPFIT_MPI_RANKS, {how, std::to_string(timeout_ms), mark});
    command.timeout = whole;
    JobOutcome outcome;
    outcome.result = run_child(command, [&](std::string_view line) { outcome.lines.emplace_back(line); });
    EXPECT_EQ(outcome.result.errors.find("Segmentation fault"), std::string::npos) << outcome.result.errors;
    EXPECT_EQ(processes_with(mark), 0) << "orphans of '" << how << "'";
    return outcome;
  }
};

TEST_F(MpiTransportTest, MessagesArriveInOrder) {
  const JobOutcome outcome = run("well", 3, 20'000);
  EXPECT_TRUE(outcome.result.ok()) << outcome.result.errors;
  EXPECT_THAT(outcome.lines, testing::UnorderedElementsAre("rank 0 is well", "rank 1 is well", "rank 2 is well"));
}

TEST_F(MpiTransportTest, LongMessagesGoInPieces) {  // 40,000 bytes in pieces of 777, the last of 373
  const JobOutcome outcome = run("in-pieces", 2, 20'000);
  EXPECT_TRUE(outcome.result.ok()) << outcome.result.errors;
}

TEST_F(MpiTransportTest, ASlowRankEndsInAnErrorOnEveryRank) {
  const JobOutcome outcome = run("slow", 3, 400);
  EXPECT_NE(outcome.result.exit_code, 0);
  EXPECT_FALSE(outcome.result.timed_out);
  EXPECT_THAT(outcome.result.errors, HasSubstr("waited 0.4 s for"));
  EXPECT_THAT(outcome.result.errors, HasSubstr("rank 1 stops:"));  // the slow one too, when it comes
}

TEST_F(MpiTransportTest, ARankThatDiesEndsTheJob) {
  const JobOutcome outcome = run("dies", 3, 2000);
  EXPECT_NE(outcome.result.exit_code, 0);
  EXPECT_FALSE(outcome.result.timed_out);
  EXPECT_EQ(mpi_outcome_text({}, outcome.result), "rank 1 ended with exit code 3");
}

TEST_F(MpiTransportTest, ARankThatIsKilledEndsTheJob) {
  const JobOutcome outcome = run("is-killed", 3, 2000);
  EXPECT_NE(outcome.result.exit_code, 0);
  EXPECT_FALSE(outcome.result.timed_out);
  EXPECT_THAT(mpi_outcome_text({}, outcome.result), AllOf(HasSubstr("rank 1 "), HasSubstr("signal 9 (Killed)")));
}

TEST_F(MpiTransportTest, ARankThatThrowsTellsTheOthers) {
  const JobOutcome outcome = run("throws", 3, 30'000);
  EXPECT_NE(outcome.result.exit_code, 0);
  EXPECT_FALSE(outcome.result.timed_out);
  EXPECT_EQ(mpi_outcome_text({}, outcome.result), "rank 1 failed: the disk is full");
  EXPECT_THAT(outcome.result.errors, AllOf(HasSubstr("rank 0 stops: rank 1 failed: the disk is full"),
                                           HasSubstr("rank 2 stops: rank 1 failed: the disk is full")));
}

TEST_F(MpiTransportTest, SizesMustAgree) {
  const JobOutcome more = run("sends-more", 2, 5000);
  EXPECT_NE(more.result.exit_code, 0);
  EXPECT_THAT(more.result.errors, HasSubstr("rank 0 expects 80 bytes from rank 1, which sends more"));
  const JobOutcome less = run("sends-less", 2, 5000);
  EXPECT_NE(less.result.exit_code, 0);
  EXPECT_THAT(less.result.errors, HasSubstr("rank 0 expects 160 bytes from rank 1, which sent 80"));
}

TEST_F(MpiTransportTest, ARankThatNeverComesIsEndedWithTheJob) {
  const JobOutcome outcome = run("computes-for-ever", 2, 300);
  EXPECT_NE(outcome.result.exit_code, 0);
  EXPECT_FALSE(outcome.result.timed_out) << "the ranks end the job themselves";
  EXPECT_THAT(outcome.result.errors, HasSubstr("rank 0 waited 0.3 s for"));
}

TEST_F(MpiTransportTest, TheStarterEndsAJobThatTakesTooLong) {
  const JobOutcome outcome = run("computes-for-ever", 2, 600'000, std::chrono::seconds(2));
  EXPECT_TRUE(outcome.result.timed_out);
}

}  // namespace
}  // namespace cpfit::cli
