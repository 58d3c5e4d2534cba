// cpfit ingest as a person calls it: logs held against the prediction, refused where they contradict it, stored and listed. Step
// times of the logs are made from what `cpfit simulate` predicts, so that where each must stand is known.
#include <gmock/gmock.h>

#include <fstream>
#include <set>
#include <string>

#include "tests/cli/child.h"
#include "tests/shared_folder.h"

namespace cpfit::cli_test {
namespace {

using testing::HasSubstr;

std::string fixture(const std::string& below) { return std::string(CPFIT_SOURCE_DIR) + "/tests/fixtures/" + below; }

/// What tests/fixtures/logs/megatron.log trained.
std::string jobs_scenario(const Folder& folder, const std::string& training = "sequence_length = 8192\nglobal_batch = 16\n") {
  return folder.file(
      "job.toml",
      "name = \"job\"\nmodel = {preset = \"llama3-8b\"}\ncluster = {preset = \"dgx-h100\", nodes = 1}\n[training]\n" + training);
}
constexpr const char* kRecipe = "tp=2,cp=2,pp=1,dp=2";

/// Fifteen steps of a time, after three that are slow.
std::string log_of(double seconds, const std::string& more = "") {
  std::string text;
  for (int i = 1; i <= 18; ++i) {
    const double ms = 1e3 * seconds * (i <= 3 ? 3.0 : 1 + 1e-4 * (i % 3));
    text += " iteration " + std::to_string(i) + "/ 100 | elapsed time per iteration (ms): " + std::to_string(ms) +
            " | global batch size: 16 | number of skipped iterations: 0 | number of nan iterations: 0 |\n";
  }
  return text + more;
}

const nlohmann::json& figure(const nlohmann::json& job, const std::string& name) {
  for (const nlohmann::json& row : job["figures"]) {
    if (row["figure"] == name) return row;
  }
  static const nlohmann::json kNone;
  ADD_FAILURE() << "no " << name << " in " << job["figures"];
  return kNone;
}

TEST(Ingest, TheRecipeOfTheLogIsPredictedAndCompared) {
  const Folder folder;
  const std::string scenario = jobs_scenario(folder);
  const nlohmann::json out = cpfit_json({"ingest", fixture("logs/megatron.log"), "--scenario", scenario});
  ASSERT_EQ(out["jobs"].size(), 1u);
  const nlohmann::json& job = out["jobs"][0];
  const nlohmann::json simulated = cpfit_json({"simulate", scenario, "--recipe", job["recipe"].get<std::string>()});
  EXPECT_EQ(job["recipe"], simulated["recipe"]);
  EXPECT_EQ(job["framework"], "Megatron-LM");
  EXPECT_EQ(job["attempts"], 2);
  const nlohmann::json& step = figure(job, "step_seconds");
  EXPECT_DOUBLE_EQ(step["measured"], 2.0);
  EXPECT_NEAR(step["predicted"].get<double>(), simulated["time"]["step_seconds"].get<double>(), 1e-12);
  EXPECT_NEAR(step["low"].get<double>(), simulated["step_seconds_low"].get<double>(), 1e-9);
  EXPECT_NEAR(figure(job, "peak_bytes")["predicted"].get<double>(), simulated["memory"]["peak_bytes"].get<double>(), 1.0);
  EXPECT_EQ(figure(job, "peak_bytes")["stage"], 0);
  // Its TFLOP/s were made with 51.48 GFLOP per token, which is Megatron's count since 2025: half the keys.
  EXPECT_THAT(figure(job, "tflops_per_gpu")["note"].get<std::string>(), HasSubstr("s/2 keys"));
  EXPECT_EQ(job["left_out"].size(), 3u);
  EXPECT_EQ(out["measurements"], nullptr);
}

TEST(Ingest, WhereAMeasurementStandsIsSaid) {
  const Folder folder;
  const std::string scenario = jobs_scenario(folder);
  const nlohmann::json simulated = cpfit_json({"simulate", scenario, "--recipe", kRecipe});
  const double predicted = simulated["time"]["step_seconds"], high = simulated["step_seconds_high"];
  const auto standing = [&](double seconds) {
    const std::string log = folder.file("job.log", log_of(seconds));
    const nlohmann::json out = cpfit_json({"ingest", log, "--scenario", scenario, "--recipe", kRecipe});
    return figure(out["jobs"][0], "step_seconds")["standing"].get<std::string>();
  };
  EXPECT_EQ(standing(predicted), "inside");
  EXPECT_EQ(standing(high * 1.05), "outside");
  EXPECT_EQ(standing(high * high / predicted), "outlier");  // twice as far as the interval reaches
}

TEST(Ingest, AContradictionIsRefusedWithTheKeys) {
  const Folder folder;
  const std::string log = fixture("logs/megatron.log");
  const auto refused = [&](const Words& more, const char* says) {
    Words words{"ingest", log};
    words.insert(words.end(), more.begin(), more.end());
    const Said said = cpfit(words);
    EXPECT_EQ(said.exit_code, 2) << said.out;
    EXPECT_THAT(said.err, HasSubstr(says));
  };
  const std::string scenario = jobs_scenario(folder);
  refused({"--scenario", scenario, "--recipe", "tp=2,cp=2,pp=1,dp=2,recompute=full"}, "recompute=none in the job, full given");
  refused({"--scenario", scenario, "--recipe", "tp=2,cp=2,pp=1,dp=1"}, "the job has 8 GPUs, the prediction 4");
  refused({"--scenario", jobs_scenario(folder, "sequence_length = 8192\nglobal_batch = 32\n")},
          "16 sequences per step, the prediction 32");
  refused({"--scenario", folder.file("none.toml", small_scenario())}, "tokens per sequence");
  refused({"--scenario", "/nowhere.toml"}, "/nowhere.toml");
  const std::string plain = folder.file("plain.log", log_of(2));
  EXPECT_THAT(cpfit({"ingest", plain, "--scenario", scenario}).err, HasSubstr("which recipe ran is not known"));
}

TEST(Ingest, JobsAreStoredBesideTheirRunAndListed) {
  const Folder folder;
  const std::string database = folder / "runs.sqlite";
  const std::string scenario = jobs_scenario(folder);
  const nlohmann::json plan = cpfit_json({"plan", scenario, "--no-crossover", "--no-timeline", "--db", database});
  const double step = plan["verdict"]["ship"]["step_seconds"];
  const std::string log = folder.file("job.log", log_of(step));
  const nlohmann::json out = cpfit_json({"ingest", log, "--run", "1", "--db", database});
  const nlohmann::json& job = out["jobs"][0];
  EXPECT_EQ(job["run"], 1);
  EXPECT_EQ(job["recipe"], plan["verdict"]["ship"]["recipe"]);
  EXPECT_EQ(figure(job, "step_seconds")["standing"], "inside");
  EXPECT_NEAR(figure(job, "step_seconds")["error"].get<double>(), -1e-4, 2e-4);
  EXPECT_EQ(job["stored"], 1);
  ASSERT_EQ(cpfit({"ingest", fixture("snapshots/protocol5.pickle"), "--db", database}).exit_code, 0);
  const nlohmann::json list = cpfit_json({"ingest", "--list", "--db", database});
  ASSERT_EQ(list["jobs"].size(), 2u);
  EXPECT_EQ(list["jobs"][1]["run"], 1);
  EXPECT_EQ(list["jobs"][1]["inside"], list["jobs"][1]["compared"]);
  EXPECT_EQ(list["jobs"][0]["compared"], 0);
  const nlohmann::json shown = cpfit_json({"ingest", "--show", "1", "--db", database});
  EXPECT_EQ(shown["jobs"][0], job);
  EXPECT_EQ(cpfit({"ingest", "--show", "9", "--db", database}).exit_code, 2);
  EXPECT_EQ(cpfit({"ingest", log, "--run", "7", "--db", database}).exit_code, 2);
}

TEST(Ingest, ASimulatedTraceIsWhatWasPredicted) {
  const Folder folder;
  const std::string scenario = jobs_scenario(folder);
  const char* recipe = "tp=1,cp=4,pp=2,dp=1,cp_comm=all_gather";
  ASSERT_EQ(
      cpfit({"simulate", scenario, "--recipe", recipe, "--fidelity", "timeline", "--trace", folder / "trace.json"}).exit_code, 0);
  const nlohmann::json out = cpfit_json({"ingest", folder / "trace.json", "--scenario", scenario, "--recipe", recipe});
  const nlohmann::json& job = out["jobs"][0];
  int equal = 0;
  for (const nlohmann::json& row : job["figures"]) {
    EXPECT_NE(row["predicted"], nullptr) << row;
    if (row["figure"] == "exposed_cp_seconds" && std::abs(row["measured"].get<double>() - row["predicted"].get<double>()) < 1e-9)
      ++equal;
  }
  EXPECT_EQ(equal, 8);  // each rank beside its own prediction
  std::set<std::int64_t> ranks;
  for (const nlohmann::json& row : job["figures"]) ranks.insert(row["rank"].get<std::int64_t>());
  EXPECT_EQ(ranks, (std::set<std::int64_t>{0, 1, 2, 3, 4, 5, 6, 7}));
  const Said said = cpfit({"ingest", folder / "trace.json"});
  EXPECT_THAT(said.out, testing::ContainsRegex("exposed_cp_seconds +rank 3 "));
  EXPECT_GT(figure(job, "exposed_cp_seconds")["measured"].get<double>(), 0);
}

TEST(Ingest, HostileFilesEndWithTwo) {
  const Folder folder;
  const auto refused = [&](const std::string& name, const std::string& text, const char* says) {
    const Said said = cpfit({"ingest", folder.file(name, text)});
    EXPECT_EQ(said.exit_code, 2) << name << said.out;
    EXPECT_EQ(said.signal, 0) << name;
    EXPECT_THAT(said.err, HasSubstr(says)) << name;
  };
  refused("code.pickle", "\x80\x04\x8c\x05posix\x8c\x06system\x93\x8c\x02id\x85R.", "would import posix.system");
  refused("cut.pickle", std::string("\x80\x04]\x94(", 5), "ends in the middle");
  refused("empty.log", "", "is empty");
  refused("zeros.log", std::string(5000, '\0'), "is no text");
  refused("deep.json", "{\"segments\": " + std::string(100000, '['), "nests more");
  refused("other.json", "{\"a\": 1}", "no trace");
  refused("table.csv", "a,b\n1,2\n", "table.csv");
  EXPECT_EQ(cpfit({"ingest"}).exit_code, 2);
  EXPECT_EQ(cpfit({"ingest", folder / "nothing.log"}).exit_code, 2);
  EXPECT_THAT(cpfit({"ingest", CPFIT_SOURCE_DIR}).err, HasSubstr("folder"));
  EXPECT_EQ(cpfit({"ingest", "--list"}).exit_code, 2);  // of which database
  const Said points = cpfit({"ingest", fixture("logs/megatron.log"), "--measurements", folder / "m.json"});
  EXPECT_EQ(points.exit_code, 2);
  EXPECT_THAT(points.err, HasSubstr("record_shapes"));
}

TEST(Ingest, PublishedTablesAreComparedRowByRow) {
  CPFIT_REQUIRE_SHARED("published/simumax_b200_measured.csv");
  const std::string table = test::shared_path("published/simumax_b200_measured.csv");
  const nlohmann::json out = cpfit_json({"ingest", table}), validated = cpfit_json({"validate", table});
  EXPECT_EQ(out["jobs"][0]["figures"].size(), validated["rows"].size());
  EXPECT_EQ(out["jobs"][0]["figures"][0]["predicted"], validated["rows"][0]["predicted"]);
}

}  // namespace
}  // namespace cpfit::cli_test
