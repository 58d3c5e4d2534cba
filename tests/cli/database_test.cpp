// Runs in a database as a person meets them: killed and continued, two at once, shown again.
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/wait.h>

#include <chrono>
#include <thread>

#include "tests/cli/child.h"

namespace cpfit::cli_test {
namespace {

using nlohmann::json;
using testing::HasSubstr;

TEST(StoredRun, ShowsTheVerdictAgain) {
  const Folder folder;
  const std::string scenario = folder.file("s.toml", small_scenario()), database = folder / "a.sqlite";
  const Said planned = cpfit({"plan", scenario, "--db", database});
  ASSERT_EQ(planned.exit_code, 0) << planned.err;
  EXPECT_THAT(planned.out, HasSubstr("Stored as run 1 in " + database));
  const Said shown = cpfit({"runs", "show", "1", "--db", database});
  ASSERT_EQ(shown.exit_code, 0) << shown.err;
  // From the verdict to the counts of the search, word by word.
  const std::size_t begin = planned.out.find("\nVerdict\n"), end = planned.out.find(" recipes considered");
  ASSERT_NE(begin, std::string::npos);
  ASSERT_NE(end, std::string::npos);
  EXPECT_THAT(shown.out, HasSubstr(planned.out.substr(begin, end - begin)));

  const json plan = cpfit_json({"plan", scenario, "--db", database});
  const json again = cpfit_json({"runs", "show", "2", "--db", database});
  EXPECT_EQ(plan["run"], 2);
  EXPECT_EQ(again["run"], 2);
  for (const char* key : {"neighbours", "levers", "crossover", "ledgers", "controlled_sweep", "provenance", "stats"})
    EXPECT_EQ(plan[key], again[key]) << key;
  EXPECT_EQ(plan["verdict"]["answer"], again["verdict"]["answer"]);
  for (const char* key : {"recipe", "time", "links", "reasons"})
    EXPECT_EQ(plan["verdict"]["ship"][key], again["verdict"]["ship"][key]) << key;
}

TEST(StoredRun, UnknownOneIsAMistakeOfInput) {
  const Folder folder;
  const std::string scenario = folder.file("s.toml", small_scenario()), database = folder / "a.sqlite";
  ASSERT_EQ(cpfit({"plan", scenario, "--no-crossover", "--no-candidates", "--db", database}).exit_code, 0);
  const Said shown = cpfit({"runs", "show", "99", "--db", database});
  EXPECT_EQ(shown.exit_code, 2);
  EXPECT_THAT(shown.err, HasSubstr("no run 99"));
  EXPECT_THAT(shown.err, HasSubstr("cpfit runs list --db " + database));
}

TEST(StoredTimeline, IsListedBesideTheRuns) {
  const Folder folder;
  const std::string scenario = folder.file("s.toml", small_scenario()), database = folder / "a.sqlite";
  const json simulated = cpfit_json(
      {"simulate", scenario, "--recipe", "tp=2,cp=2,pp=1,dp=2,recompute=full", "--fidelity", "timeline", "--db", database});
  EXPECT_EQ(simulated["timeline"]["stored"], 1);
  const json listed = cpfit_json({"runs", "list", "--db", database});
  ASSERT_EQ(listed["timelines"].size(), 1u);
  EXPECT_EQ(listed["timelines"][0]["path"], scenario);
  EXPECT_NEAR(listed["timelines"][0]["step_seconds"].get<double>(), simulated["step_seconds"].get<double>(), 1e-9);
  EXPECT_GT(listed["timelines"][0]["spans"], 100);
}

/// A search of tens of thousands of recipes: several batches are stored before it ends.
std::string wide_scenario() {
  return R"(name = "wide"
model = {preset = "llama3-70b"}
cluster = {preset = "dgx-h100", nodes = 64}
[training]
sequence_length = "128k"
global_batch = 512
)";
}

TEST(StoredRun, ThatWasKilledIsContinued) {
  const Folder folder;
  const std::string scenario = folder.file("s.toml", wide_scenario()), database = folder / "a.sqlite";
  const std::string out = folder / "out", err = folder / "err";
  const pid_t child = start({"plan", scenario, "--db", database}, out, err);
  ASSERT_GT(child, 0);
  std::int64_t stored = 0;
  bool ended = false;
  while (stored == 0 && !ended) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    ended = waitpid(child, nullptr, WNOHANG) == child;
    const Said listed = cpfit({"runs", "list", "--db", database, "--json"});
    const json runs = json::parse(listed.out, nullptr, false);  // none yet while the file is being made
    if (runs.is_object() && !runs["runs"].empty()) stored = runs["runs"][0]["candidates"];
  }
  ASSERT_FALSE(ended) << "the search ended before it could be killed: make the scenario wider";
  ASSERT_EQ(kill(child, SIGKILL), 0);
  EXPECT_EQ(wait_for(child, out, err).signal, SIGKILL);

  const json listed = cpfit_json({"runs", "list", "--db", database});
  ASSERT_EQ(listed["runs"].size(), 1u);
  EXPECT_EQ(listed["runs"][0]["status"], "interrupted");
  EXPECT_GE(listed["runs"][0]["candidates"].get<std::int64_t>(), stored) << "what was stored stays";
  const Said shown = cpfit({"runs", "show", "1", "--db", database});
  EXPECT_EQ(shown.exit_code, 0);
  EXPECT_THAT(shown.out, HasSubstr("interrupted"));
  EXPECT_THAT(shown.out, HasSubstr("Continue it: cpfit plan " + scenario + " --db " + database));

  const Said resumed = cpfit({"plan", scenario, "--no-crossover", "--db", database, "--json"});
  ASSERT_EQ(resumed.exit_code, 0) << resumed.err;
  EXPECT_THAT(resumed.err, HasSubstr("continuing interrupted run 1"));
  const json plan = json::parse(resumed.out);
  EXPECT_EQ(plan["run"], 1);
  const json after = cpfit_json({"runs", "list", "--db", database});
  ASSERT_EQ(after["runs"].size(), 1u);
  EXPECT_EQ(after["runs"][0]["status"], "done");
  EXPECT_EQ(after["runs"][0]["candidates"], plan["stats"]["evaluated"]) << "each recipe once";
}

TEST(StoredRun, TwoPlansWriteOneFileAtOnce) {
  const Folder folder;
  const std::string scenario = folder.file("s.toml", small_scenario()), database = folder / "a.sqlite";
  const Words words{"plan", scenario, "--db", database};
  const pid_t first = start(words, folder / "out1", folder / "err1"), second = start(words, folder / "out2", folder / "err2");
  const Said one = wait_for(first, folder / "out1", folder / "err1"), two = wait_for(second, folder / "out2", folder / "err2");
  EXPECT_EQ(one.exit_code, 0) << one.err;
  EXPECT_EQ(two.exit_code, 0) << two.err;
  const json listed = cpfit_json({"runs", "list", "--db", database});
  ASSERT_EQ(listed["runs"].size(), 2u);
  for (const json& run : listed["runs"]) {
    EXPECT_EQ(run["status"], "done");
    EXPECT_EQ(run["ship"], listed["runs"][0]["ship"]);
    EXPECT_EQ(run["candidates"], listed["runs"][0]["candidates"]);
  }
}

}  // namespace
}  // namespace cpfit::cli_test
