// cpfit calibrate as scripts and people meet it: files recognised, a calibration fitted, stored, shown, used and refused.
#include <gmock/gmock.h>

#include <fstream>

#include "tests/cli/child.h"

namespace cpfit::cli_test {
namespace {

using nlohmann::json;
using testing::Contains;
using testing::HasSubstr;

/// Four H100 in one node: all-gather at 10 us and 300 GB/s of bus, nine sizes.
std::string nccl_output(const std::string& gpu = "NVIDIA H100 80GB HBM3") {
  std::string text = "# Collective test starting: all_gather_perf\n# nThread 1 nGpus 1 minBytes 8 maxBytes 8 step: 2(factor)\n";
  text += "# Using devices\n";
  for (int rank = 0; rank < 4; ++rank)
    text += "#  Rank  " + std::to_string(rank) + " Group  0 Pid  1 on node device  " + std::to_string(rank) + " [0000:06:00] " +
            gpu + "\n";
  text += "node:1:1 [0] NCCL INFO NCCL version 2.28.9+cuda13.0\n";
  text += "#       size         count      type   redop    root     time   algbw   busbw #wrong\n";
  for (long bytes = 65536; bytes <= 65536L << 12; bytes *= 2) {
    const double us = 10 + static_cast<double>(bytes) * 0.75 / 300e9 * 1e6;
    text += "  " + std::to_string(bytes) + "  1  float  none  -1  " + std::to_string(us) + "  1.0  0.75  0\n";
  }
  return text;
}

std::string h100_scenario(const std::string& more = "") {
  return "model = \"llama3-8b\"\ncluster = {preset = \"dgx-h100\", nodes = 1}\n" + more +
         "\n[training]\nsequence_length = \"32k\"\nglobal_batch = 8\n[search]\ntp = [2, 4]\ncp = [2]\npp = [1]\n";
}

TEST(Calibrate, ImportSaysWhatItRecognisedAndWhatItLeftOut) {
  const Folder folder;
  const std::string run = folder.file("run.txt", nccl_output() + "  0  0  float  none  -1  8.0  0  0  0\n");
  const Said said = cpfit({"calibrate", "import", run});
  ASSERT_EQ(said.exit_code, 0) << said.err;
  for (const char* part : {"nccl-tests all_gather: 13 points (13 collectives)", "NCCL 2.28.9", "left out: 1 x size 0"})
    EXPECT_THAT(said.out, HasSubstr(part));
  const json object = cpfit_json({"calibrate", "import", run});
  EXPECT_EQ(object["files"][0]["points"], 13);
  EXPECT_EQ(object["files"][0]["by_kind"]["collective"], 13);
  EXPECT_EQ(object["files"][0]["left_out"][0]["count"], 1);

  const Said unknown = cpfit({"calibrate", "import", folder.file("x", "hello\n")});
  EXPECT_EQ(unknown.exit_code, 2);
  EXPECT_THAT(unknown.err, HasSubstr("accepted: cpfit-bench measurement"));
}

TEST(Calibrate, FitStoreShowAndUse) {
  const Folder folder;
  const std::string run = folder.file("run.txt", nccl_output()), database = folder / "cal.db", file = folder / "cal.toml";
  const json fitted = cpfit_json({"calibrate", "fit", run, "--db", database, "--name", "node", "--out", file});
  EXPECT_EQ(fitted["name"], "node");
  ASSERT_EQ(fitted["surfaces"].size(), 1u);
  EXPECT_EQ(fitted["surfaces"][0]["device"], "nvlink4");
  EXPECT_EQ(fitted["surfaces"][0]["surface"], "all_gather on 4");
  EXPECT_LT(fitted["surfaces"][0]["median_error"].get<double>(), 0.01);
  EXPECT_EQ(fitted["sources"][0]["points"], 13);
  EXPECT_FALSE(fitted["not_covered"].empty());
  const std::string id = fitted["id"];

  const json list = cpfit_json({"calibrate", "show", "--db", database});
  ASSERT_EQ(list["calibrations"].size(), 2u);
  EXPECT_EQ(list["calibrations"][0]["id"], id);
  EXPECT_EQ(list["calibrations"][1]["name"], "defaults");
  EXPECT_EQ(cpfit_json({"calibrate", "show", "node", "--db", database})["id"], id);
  EXPECT_EQ(cpfit_json({"calibrate", "show", file})["id"], id);
  EXPECT_EQ(cpfit_json({"calibrate", "show", database + ":" + id.substr(0, 8)})["id"], id);
  EXPECT_THAT(cpfit({"calibrate", "show", file}).out, HasSubstr("all_gather on 4"));

  const std::string scenario = folder.file("s.toml", h100_scenario("software = {nccl = \"2.30.1\"}"));
  const Words simulate = {"simulate", scenario, "--recipe", "tp=4,cp=2,pp=1,dp=1"};
  Words calibrated = simulate;
  calibrated.insert(calibrated.end(), {"--calibration", file});
  const json with = cpfit_json(calibrated), without = cpfit_json(simulate);
  EXPECT_TRUE(without["calibration"].is_null());
  EXPECT_EQ(with["calibration"]["id"], id);
  EXPECT_THAT(with["calibration"]["used"].get<std::vector<std::string>>(), Contains("all_gather on 4 over nvlink4"));
  EXPECT_THAT(with["calibration"]["warnings"].get<std::vector<std::string>>(), Contains(HasSubstr("stale: nccl: 2.28.9")));
  EXPECT_NE(with["step_seconds"], without["step_seconds"]);  // tp = 4 gathers over NVLink
  EXPECT_EQ(with["sources"]["tp_links"], "fitted");

  Words plan = {"plan", scenario, "--calibration", "node", "--db", database, "--no-timeline", "--no-crossover"};
  const Said planned = cpfit(plan);
  EXPECT_THAT(planned.out, HasSubstr("Rates: calibration 'node'"));
  EXPECT_THAT(planned.err, HasSubstr("stale: nccl"));
}

TEST(Calibrate, ACalibrationOfAnotherGpuIsRefusedNotUsedSilently) {
  const Folder folder;
  const std::string file = folder / "cal.toml";
  (void)cpfit_json({"calibrate", "fit", folder.file("run.txt", nccl_output("NVIDIA B200")), "--out", file});
  const std::string scenario = folder.file("s.toml", h100_scenario());
  const Said said = cpfit({"simulate", scenario, "--recipe", "tp=4,cp=2,pp=1,dp=1", "--calibration", file});
  EXPECT_EQ(said.exit_code, 2);
  EXPECT_THAT(said.err, HasSubstr("nothing of it speaks of H100-SXM5-80GB"));
  for (const char* which : {"nowhere", "/nowhere.db:x"}) {
    EXPECT_EQ(cpfit({"simulate", scenario, "--recipe", "tp=4,cp=2,pp=1,dp=1", "--calibration", which}).exit_code, 2) << which;
  }
  EXPECT_EQ(cpfit_json(
                {"simulate", scenario, "--recipe", "tp=4,cp=2,pp=1,dp=1", "--calibration", "defaults"})["calibration"]["assumed"],
            true);
}

TEST(Calibrate, TooFewPointsAreNotFitted) {
  const Folder folder;
  std::string text = nccl_output();
  text.resize(text.find("  262144  "));  // two sizes
  const Said said = cpfit({"calibrate", "fit", folder.file("run.txt", text)});
  EXPECT_EQ(said.exit_code, 2);
  EXPECT_THAT(said.err, HasSubstr("2 sizes"));
}

TEST(Calibrate, SuggestListsProbesWithMinutes) {
  const Folder folder;
  const json said = cpfit_json({"calibrate", "suggest", folder.file("s.toml", h100_scenario()), "--top", "2"});
  ASSERT_FALSE(said["suggestions"].empty());
  EXPECT_EQ(said["shortlist"].size(), 2u);
  double before = 1e9;
  for (const json& one : said["suggestions"]) {
    EXPECT_THAT(one["command"].get<std::string>(),
                HasSubstr("cpfit-bench --backend cuda --probe " + one["probe"].get<std::string>()));
    EXPECT_GT(one["minutes"], 0);
    EXPECT_LT(one["step_interval_then"], one["step_interval_now"]);
    const double gain = one["step_interval_now"].get<double>() - one["step_interval_then"].get<double>();
    EXPECT_LE(gain, before);  // most first
    before = gain;
  }
}

/// Runs end to end where MPI is; its table is whole and finite. Nothing is said of how good it is.
TEST(Calibrate, TheClosedLoopRunsEndToEnd) {
  const Folder folder;
  const std::string database = folder / "loop.db";
  const Said said =
      cpfit({"calibrate", "loop", "--smoke", "--link", "shared memory", "--link", "tcp", "--db", database, "--json"});
  if (said.exit_code == 4) GTEST_SKIP() << said.err;
  ASSERT_EQ(said.exit_code, 0) << said.err;
  const json object = json::parse(said.out);
  ASSERT_FALSE(object["rows"].empty());
  for (const json& row : object["rows"]) {
    for (const char* key : {"measured_seconds", "predicted_seconds", "low_seconds", "high_seconds"}) {
      ASSERT_TRUE(row[key].is_number()) << row;  // infinity and NaN print as null
      EXPECT_GT(row[key].get<double>(), 0) << row;
    }
    for (const char* key : {"error", "exposed_error_of_step", "noise", "measured_exposed_seconds", "predicted_exposed_seconds"})
      EXPECT_TRUE(row[key].is_number()) << key << row;
  }
  for (const json& group : object["summary"]) EXPECT_TRUE(group["median_abs_error"].is_number()) << group;
  EXPECT_EQ(cpfit_json({"calibrate", "show", "--db", database})["calibrations"].size(), 2u);
}

}  // namespace
}  // namespace cpfit::cli_test
