// cpfit-bench as a program: alone and under mpirun, interrupted, with a rank killed, with files that it must not touch.
#include <gmock/gmock.h>
#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "cli/child_process.h"
#include "cli/mpi_launch.h"
#include "model/record/measurement.h"

namespace cpfit::cli {
namespace {

using testing::HasSubstr;

std::string text_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return std::move(text).str();
}

/// Processes whose command line names `word`; with `variable`, whose environment has it too.
std::vector<pid_t> processes_with(const std::string& word, const std::string& variable = "") {
  std::vector<pid_t> found;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    const std::string words = text_of(entry.path() / "cmdline");
    if (words.find("cpfit-bench") == std::string::npos || words.find(word) == std::string::npos) continue;
    if (words.starts_with("mpirun")) continue;
    if (text_of(entry.path() / "environ").find(variable) == std::string::npos) continue;
    found.push_back(std::stoi(name));
  }
  return found;
}

bool soon_gone(const std::string& word) {
  for (int tenths = 0; tenths < 100; ++tenths) {
    if (processes_with(word).empty()) return true;
    ::usleep(100'000);
  }
  return false;
}

class ProbeBenchTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::path(testing::TempDir()) / ("probe-bench." + std::to_string(::getpid()));
    std::filesystem::create_directories(folder_);
    out_ = folder_ / "m.json";
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  [[nodiscard]] ChildCommand alone(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), CPFIT_BENCH);
    return {arguments, {}, std::chrono::seconds(60)};
  }
  [[nodiscard]] MeasurementFile file() const {
    const auto read = read_measurement(out_);
    EXPECT_TRUE(read.ok()) << to_text(read.problems().front());
    return read.ok() ? *read : MeasurementFile{};
  }
  static void ignore(std::string_view) {}

  std::filesystem::path folder_;
  std::string out_;
};

TEST_F(ProbeBenchTest, SmokeAloneWritesAFileAndTellsHowFarItIs) {
  std::vector<nlohmann::json> lines;
  const ChildResult result =
      run_child(alone({"--smoke", "--out", out_}), [&](std::string_view line) { lines.push_back(nlohmann::json::parse(line)); });
  ASSERT_TRUE(result.ok()) << result.errors;
  for (const char* key : {"probe", "done", "total", "seconds_left", "outcome"}) EXPECT_TRUE(lines.front().contains(key)) << key;
  EXPECT_EQ(lines.back().at("outcome"), "done");
  EXPECT_EQ(lines.back().at("done"), lines.back().at("total"));
  EXPECT_EQ(static_cast<std::int64_t>(file().points.size()), lines.back().at("total"));
}

TEST_F(ProbeBenchTest, AnInterruptKeepsWhatWasMeasuredAndARerunGoesOn) {
  // Eighteen seconds of a budget keep points short; it is interrupted when two are done.
  const ChildCommand command = alone({"--probe", "memory", "--out", out_, "--budget", "0.3"});
  // Twice at once, as when a launcher passes on what the terminal sent to all.
  bool sent = false;
  const ChildResult result = run_child(command, [&](std::string_view line) {
    if (sent || nlohmann::json::parse(line).at("done") < 2) return;
    sent = true;
    for (int time = 0; time < 2; ++time)
      for (const pid_t process : processes_with(out_)) ::kill(process, SIGINT);
  });
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.errors, HasSubstr("run again with the same --out to go on"));
  const MeasurementFile first = file();
  ASSERT_GE(first.points.size(), 2U);
  std::vector<nlohmann::json> lines;
  const ChildResult rerun = run_child(alone({"--probe", "memory", "--out", out_, "--budget", "0.000001"}),
                                      [&](std::string_view line) { lines.push_back(nlohmann::json::parse(line)); });
  ASSERT_TRUE(rerun.ok()) << rerun.errors;
  EXPECT_THAT(rerun.errors, HasSubstr("there already"));
  EXPECT_EQ(lines.front().at("done"), static_cast<std::int64_t>(first.points.size()));
  EXPECT_EQ(file().points, first.points);
}

TEST_F(ProbeBenchTest, SaysWhatIsWrongBeforeMeasuring) {
  const auto errors = [&](const std::vector<std::string>& words, int code) {
    const ChildResult result = run_child(alone(words), ignore);
    EXPECT_EQ(result.exit_code, code) << result.errors;
    return result.errors;
  };
  EXPECT_THAT(errors({"--smoke", "--out", "/no/such/folder/m.json"}, 2), HasSubstr("/no/such/folder/m.json"));
  EXPECT_THAT(errors({"--smoke", "--out", "/proc/m.json"}, 2), HasSubstr("/proc/m.json"));
  EXPECT_THAT(errors({"--probe", "gem"}, 2), HasSubstr("there is no probe 'gem'"));
  EXPECT_THAT(errors({"--budget", "-1"}, 2), HasSubstr("--budget"));
  EXPECT_THAT(errors({"--probe", "gemm", "--probe", "verify-case"}, 2), HasSubstr("asked for alone"));
  std::ofstream(out_) << R"({"format":"cpfit-measurement","format_version":7})";
  EXPECT_THAT(errors({"--smoke", "--out", out_}, 2), HasSubstr("format_version 7"));
  std::ofstream(out_) << R"({"someone": "else's"})";
  EXPECT_THAT(errors({"--smoke", "--out", out_}, 2), HasSubstr("nothing was changed"));
  EXPECT_EQ(text_of(out_), R"({"someone": "else's"})");
}

TEST_F(ProbeBenchTest, AGpuThatIsNotThereIsWaived) {
  const ChildResult result = run_child(alone({"--backend", "loopback", "--smoke"}), ignore);
  if (result.ok()) GTEST_SKIP() << "there is a GPU here";
  EXPECT_EQ(result.exit_code, 4);
  EXPECT_THAT(result.errors, HasSubstr("waived: "));
}

TEST_F(ProbeBenchTest, RanksOfAnotherLauncherAreTold) {
  // As a launcher that this MPI does not know leaves it: one of two, and MPI sees one.
  ChildCommand command = alone({"--smoke", "--out", out_});
  command.environment = {{"PMI_SIZE", "2"}, {"OMPI_ALLOW_RUN_AS_ROOT", "1"}, {"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"}};
  const ChildResult result = run_child(command, ignore);
  EXPECT_NE(result.exit_code, 0);
  EXPECT_THAT(result.errors, testing::AnyOf(HasSubstr("launcher is of another MPI"), HasSubstr("built without MPI")));
  EXPECT_FALSE(std::filesystem::exists(out_));
}

class ProbeRanksTest : public ProbeBenchTest {
 protected:
  void SetUp() override {
    ProbeBenchTest::SetUp();
    if (find_mpirun().empty() || !CPFIT_HAS_MPI) GTEST_SKIP() << "there is no mpirun, or no MPI was built in";
  }
};

TEST_F(ProbeRanksTest, TwoRanksMeasureWithTheirRing) {
  const ChildCommand command = mpi_command(2, CPFIT_BENCH, {"--smoke", "--out", out_});
  const ChildResult result = run_child(command, ignore);
  ASSERT_TRUE(result.ok()) << mpi_outcome_text(command, result);
  const MeasurementFile measured = file();
  EXPECT_EQ(measured.ranks, 2);
  EXPECT_FALSE(measured.machine.mpi.empty());
  for (const MeasuredPoint& point : measured.points) {
    EXPECT_NE(point.outcome, MeasuredOutcome::kFailed) << point.probe << " " << point.reason;
    if (point.probe == "ring_step") {
      EXPECT_FALSE(point.windows.empty());
    }
  }
}

TEST_F(ProbeRanksTest, AKilledRankLeavesWhatWasMeasuredAndNobodyBehind) {
  const ChildCommand command =
      mpi_command(2, CPFIT_BENCH, {"--probe", "memory", "--out", out_, "--timeout", "20", "--budget", "0.3"});
  const ChildResult result = run_child(command, [&](std::string_view line) {
    if (nlohmann::json::parse(line).at("done") < 2) return;
    for (const pid_t process : processes_with(out_, "OMPI_COMM_WORLD_RANK=1")) ::kill(process, SIGKILL);
  });
  EXPECT_FALSE(result.ok());
  EXPECT_FALSE(result.timed_out);
  EXPECT_GE(file().points.size(), 2U);
  EXPECT_TRUE(soon_gone(out_));
}

TEST_F(ProbeRanksTest, AnInterruptedJobEndsInOrder) {
  const ChildCommand command = mpi_command(2, CPFIT_BENCH, {"--probe", "memory", "--out", out_, "--budget", "0.3"});
  const ChildResult result = run_child(command, [&](std::string_view line) {
    if (nlohmann::json::parse(line).at("done") < 2) return;
    for (const pid_t process : processes_with(out_, "OMPI_COMM_WORLD_RANK=1")) ::kill(process, SIGTERM);
  });
  EXPECT_FALSE(result.ok());
  EXPECT_FALSE(result.timed_out);
  EXPECT_THAT(result.errors, HasSubstr("interrupted: "));
  EXPECT_GE(file().points.size(), 2U);
  EXPECT_TRUE(soon_gone(out_));
}

}  // namespace
}  // namespace cpfit::cli
