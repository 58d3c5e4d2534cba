// cpfit-bench under mpirun: what its ranks leave is what ranks as threads compute, bit for bit; what is wrong with a job is said;
// ranks end with their launcher.
#include <gmock/gmock.h>
#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "cli/child_process.h"
#include "cli/mpi_launch.h"
#include "kernels/verify/rank_run.h"
#include "kernels/verify/suite_run.h"

namespace cpfit::cli {
namespace {

using kernels::AttentionTensors;
using kernels::Case;
using testing::HasSubstr;

Case case_of(const std::string& method, kernels::Number number, std::int32_t cp) {
  Case one;
  one.name = method;
  one.method = method;
  one.number = number;
  one.cp = cp;
  one.heads = {8, 4, 16, 8, 0.25};
  one.query_tokens = one.key_tokens = 16 * cp;
  return one;
}

Case packed_case(const std::string& method, std::int32_t cp) {
  Case one = case_of(method, kernels::Number::kFp32, cp);
  one.mask = attention::MaskShape::kDocuments;
  one.per_document = true;
  one.documents = {{1, 2 * cp}, {4 * cp - 1, 4 * cp}, {0, 0}};
  one.query_tokens = one.key_tokens = 6 * cp;
  return one;
}

class BenchTest : public testing::Test {
 protected:
  void SetUp() override {
    if (find_mpirun().empty()) GTEST_SKIP() << "there is no mpirun in PATH (openmpi-bin)";
    folder_ = std::filesystem::temp_directory_path() / ("cpfit-bench-test-" + std::to_string(::getpid()));
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  [[nodiscard]] std::string job_of(const std::vector<Case>& cases) const {
    const std::string path = folder_ / "job";
    std::ofstream file(path);
    for (const Case& one : cases) file << kernels::case_json(one) << '\n';
    return path;
  }
  [[nodiscard]] std::string results() const { return folder_ / "results"; }
  [[nodiscard]] ChildCommand bench(std::int32_t ranks, const std::string& job) const {
    return mpi_command(ranks, CPFIT_BENCH, {"--probe", "verify-case", "--job", job, "--results", results()});
  }

  std::filesystem::path folder_;
};

TEST_F(BenchTest, RanksAsProcessesComputeWhatRanksAsThreadsCompute) {
  const std::vector<Case> cases = {case_of("te_p2p", kernels::Number::kBf16, 4), case_of("fp32_ring", kernels::Number::kFp64, 4),
                                   case_of("double_ring", kernels::Number::kBf16, 4), packed_case("a2a_p2p", 4),
                                   packed_case("all_gather", 4)};
  std::vector<nlohmann::json> lines;
  const ChildResult result =
      run_child(bench(4, job_of(cases)), [&](std::string_view line) { lines.push_back(nlohmann::json::parse(line)); });
  ASSERT_TRUE(result.ok()) << result.errors;
  EXPECT_EQ(lines.front().at("total"), 5);
  EXPECT_EQ(lines.back().at("probe"), "verify-case");
  EXPECT_EQ(lines.back().at("done"), 5);
  EXPECT_EQ(lines.back().at("outcome"), "done");
  for (std::size_t i = 0; i < cases.size(); ++i) {
    std::vector<AttentionTensors> ranks;
    for (std::int32_t rank = 0; rank < 4; ++rank) {
      ranks.push_back(kernels::read_rank(results(), static_cast<std::int64_t>(i), rank));
    }
    const AttentionTensors processes = kernels::unshard(cases[i], ranks);
    const AttentionTensors threads = kernels::run_in_process(cases[i]);
    EXPECT_EQ(processes.out, threads.out) << cases[i].name;
    EXPECT_EQ(processes.lse, threads.lse) << cases[i].name;
    EXPECT_EQ(processes.dq, threads.dq) << cases[i].name;
    EXPECT_EQ(processes.dk, threads.dk) << cases[i].name;
    EXPECT_EQ(processes.dv, threads.dv) << cases[i].name;
  }
}

TEST_F(BenchTest, OneRankNeedsNoLauncher) {
  const ChildCommand command{{CPFIT_BENCH, "--probe", "verify-case", "--job",
                              job_of({case_of("te_p2p", kernels::Number::kFp32, 1)}), "--results", results()},
                             {},
                             std::chrono::seconds(60)};
  const ChildResult result = run_child(command, [](std::string_view) {});
  EXPECT_TRUE(result.ok()) << result.errors;
  EXPECT_FALSE(kernels::read_rank(results(), 0, 0).out.empty());
}

TEST_F(BenchTest, SaysWhatIsWrongWithAJob) {
  std::string last;
  const auto keep = [&](std::string_view line) { last = line; };
  const ChildCommand wrong_ranks = bench(2, job_of({case_of("te_p2p", kernels::Number::kFp32, 4)}));
  const ChildResult result = run_child(wrong_ranks, keep);
  EXPECT_FALSE(result.ok());
  EXPECT_THAT(mpi_outcome_text(wrong_ranks, result), HasSubstr("'te_p2p' needs 4 ranks, there are 2"));
  EXPECT_EQ(nlohmann::json::parse(last).at("outcome"), "failed");

  const auto alone = [&](const std::vector<std::string>& words) {
    std::vector<std::string> all = {CPFIT_BENCH};
    all.insert(all.end(), words.begin(), words.end());
    return run_child({all, {}, std::chrono::seconds(60)}, keep);
  };
  const ChildResult missing = alone({"--probe", "verify-case", "--job", "/no/such/job", "--results", results()});
  EXPECT_EQ(missing.exit_code, 1);
  EXPECT_THAT(missing.errors, HasSubstr("'/no/such/job' cannot be read"));
  const ChildResult unknown = alone({"--probe", "verify-cases"});
  EXPECT_EQ(unknown.exit_code, 2);
  EXPECT_THAT(unknown.errors, HasSubstr("verify-case"));
  EXPECT_EQ(alone({"--probe", "verify-case"}).exit_code, 2);
  const ChildResult backend = alone({"--probe", "verify-case", "--backend", "abacus", "--job", "x", "--results", "y"});
  EXPECT_EQ(backend.exit_code, 2);
  EXPECT_THAT(backend.errors, HasSubstr("no backend 'abacus'"));
}

TEST_F(BenchTest, RanksEndWhenTheirLauncherIsKilled) {
  // So many cases that the job would run for minutes; mpirun, in a group that nobody will end, is killed when the first are done.
  std::vector<Case> cases(3000, case_of("te_p2p", kernels::Number::kFp64, 2));
  for (Case& one : cases) one.query_tokens = one.key_tokens = 512;
  const std::string job = job_of(cases);
  ChildCommand command{{"sh", "-c", "setsid \"$@\" & echo $!; wait", "sh"}, {}, std::chrono::seconds(60)};
  const ChildCommand ranks = bench(2, job);
  command.words.insert(command.words.end(), ranks.words.begin(), ranks.words.end());
  command.environment = ranks.environment;
  pid_t launcher = 0;
  const ChildResult result = run_child(command, [&](std::string_view line) {
    if (launcher == 0) {
      launcher = std::stoi(std::string(line));
    } else {
      ::kill(launcher, SIGKILL);
    }
  });
  EXPECT_FALSE(result.timed_out);
  // Nobody was told to end them: they must see for themselves, within a second or so.
  const auto rank_runs = [&] {
    for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
      std::ifstream file(entry.path() / "cmdline", std::ios::binary);
      const std::string words{std::istreambuf_iterator<char>(file), {}};
      if (words.find(job) != std::string::npos) return true;
    }
    return false;
  };
  for (int tenths = 0; tenths < 100 && rank_runs(); ++tenths) ::usleep(100'000);
  EXPECT_FALSE(rank_runs());
}

}  // namespace
}  // namespace cpfit::cli
