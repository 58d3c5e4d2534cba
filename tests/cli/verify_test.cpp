// cpfit verify as scripts and people meet it: keys of the JSON, exit codes, tensors out and back, and what a plan says of it.
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "tests/cli/child.h"

namespace cpfit::cli_test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::HasSubstr;

/// Few cases: one method, one mask, one degree, one number type.
Words small_verify(const std::string& method = "te_p2p") {
  return {"verify", "--method", method, "--mask", "window", "--cp", "2", "--dtype", "bf16"};
}

TEST(Verify, JsonHasTheKeysOfTheContract) {
  const json said = cpfit_json(small_verify());
  EXPECT_EQ(said["schema_version"], 1);
  EXPECT_EQ(said["passed"], true);
  EXPECT_EQ(said["fixture_hash"].get<std::string>().size(), 64u);
  ASSERT_FALSE(said["cases"].empty());
  for (const json& one : said["cases"]) {
    EXPECT_EQ(one["method"], "te_p2p");
    EXPECT_EQ(one["mask"], "window");
    EXPECT_EQ(one["cp"], 2);
    EXPECT_EQ(one["dtype"], "bf16");
    EXPECT_EQ(one["length"], 240);
    EXPECT_EQ(one["passed"], true);
    for (const char* tensor : {"out", "lse", "dq", "dk", "dv"}) {
      EXPECT_GT(one["errors"][tensor].get<double>(), 0.0) << "bf16 is never exact";
      EXPECT_LE(one["errors"][tensor], one["limits"][tensor]) << tensor;
      EXPECT_LE(one["errors_largest"][tensor], one["limits_largest"][tensor]) << tensor;
    }
  }
  EXPECT_EQ(said["controls"].size(), 11u);
  for (const json& control : said["controls"]) EXPECT_EQ(control["caught"], true) << control["name"];
  EXPECT_EQ(said["fixture_hash"], cpfit_json(small_verify("fp32_ring"))["fixture_hash"]) << "the same sequences";
}

TEST(Verify, TextIsATableOn100ColumnsAndEndsWithTheVerdict) {
  const Said said = cpfit(small_verify());
  ASSERT_EQ(said.exit_code, 0) << said.err;
  EXPECT_EQ(said.err, "");
  for (const char* part : {"Attention, forward and backward", "te_p2p", "Planted faults: each must be caught", "kv_of_step_zero",
                           "looks alike while a gradient is wrong", "all 11 planted faults caught"}) {
    EXPECT_THAT(said.out, HasSubstr(part));
  }
  std::istringstream lines(said.out);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 100u) << line;
}

TEST(Verify, WrongWordsAreAnsweredWithTheNearest) {
  const auto refused = [](const Words& words, const std::string& repair) {
    const Said said = cpfit(words);
    EXPECT_EQ(said.exit_code, 2) << said.out;
    EXPECT_THAT(said.err, HasSubstr(repair));
  };
  refused({"verify", "--method", "te_pp2p"}, "Did you mean 'te_p2p'?");
  refused({"verify", "--mask", "casual"}, "Did you mean 'causal'?");
  refused({"verify", "--dtype", "bf61"}, "Did you mean 'bf16'?");
  refused({"verify", "--suite", "fast"}, "quick");
  refused({"verify", "--sutie", "quick"}, "did you mean '--suite'?");
  refused({"verify", "emti", "x"}, "did you mean 'emit'?");
  refused({"verify", "--cp", "1"}, "cp");
  refused({"verify", "--method", "double_ring", "--cp", "5"}, "windows of 2");
}

TEST(Verify, GpusAreWaivedWithAReasonWhereThereAreNone) {
  const Said said = cpfit({"verify", "--backend", "cuda", "--method", "te_p2p", "--mask", "full", "--cp", "2"});
  if (said.exit_code == 0) GTEST_SKIP() << "this machine has a GPU and passed on it";
  EXPECT_EQ(said.exit_code, 4) << said.out << said.err;
  EXPECT_THAT(said.err, HasSubstr("cpfit: waived: "));
}

TEST(Verify, MpiProcessesAreJudgedAsThreadsAre) {
  Words words = small_verify();
  words.insert(words.end(), {"--backend", "mpi", "--json"});
  const Said said = cpfit(words);
  if (said.exit_code == 4) GTEST_SKIP() << said.err;
  ASSERT_EQ(said.exit_code, 0) << said.err;
  const json processes = json::parse(said.out);
  const json threads = cpfit_json(small_verify());
  EXPECT_EQ(processes["backend"], "mpi");
  ASSERT_EQ(processes["cases"].size(), threads["cases"].size());
  for (std::size_t i = 0; i < threads["cases"].size(); ++i)
    EXPECT_EQ(processes["cases"][i]["errors"], threads["cases"][i]["errors"]) << "bit for bit the same";
}

/// Hands back what is expected, case by case.
void hand_back(const std::string& folder) {
  for (const auto& entry : fs::directory_iterator(folder)) {
    const fs::path expected = entry.path() / "expected";
    if (!fs::is_directory(expected) || entry.path().filename() == "block") continue;
    fs::copy(expected, entry.path() / "got", fs::copy_options::recursive);
  }
}

TEST(VerifyTensors, GoOutAndComeBack) {
  const Folder folder;
  const std::string tensors = folder / "t", database = folder / "a.sqlite";
  const Said emitted = cpfit({"verify", "emit", tensors, "--length", "61", "--heads", "4", "--head-dim", "16"});
  ASSERT_EQ(emitted.exit_code, 0) << emitted.err;
  EXPECT_THAT(emitted.out, HasSubstr("README.txt"));
  EXPECT_EQ(cpfit({"verify", "emit", tensors}).exit_code, 2) << "it does not write over them unasked";

  const Said nothing = cpfit({"verify", "check", tensors});
  EXPECT_EQ(nothing.exit_code, 2);
  EXPECT_THAT(nothing.err, HasSubstr("nothing was dumped"));

  hand_back(tensors);
  const json checked = cpfit_json({"verify", "check", tensors, "--framework", "TransformerEngine", "--version", "2.8", "--method",
                                   "te_p2p", "--db", database});
  EXPECT_EQ(checked["passed"], true);
  EXPECT_EQ(checked["cases"].size(), 5u);
  EXPECT_EQ(checked["verification"], 1);
  EXPECT_EQ(checked["implementation"]["name"], "TransformerEngine");
  const json listed = cpfit_json({"runs", "list", "--db", database});
  ASSERT_EQ(listed["verifications"].size(), 1u);
  EXPECT_EQ(listed["verifications"][0]["implementation_version"], "2.8");

  const Said whose = cpfit({"verify", "check", tensors, "--db", database});
  EXPECT_EQ(whose.exit_code, 2);
  EXPECT_THAT(whose.err, HasSubstr("--framework NAME"));

  fs::copy_file(tensors + "/causal/expected/dk.npy", tensors + "/full/got/dk.npy", fs::copy_options::overwrite_existing);
  const Said failed = cpfit({"verify", "check", tensors, "--framework", "TransformerEngine", "--version", "2.8"});
  EXPECT_EQ(failed.exit_code, 1) << failed.err;
  EXPECT_THAT(failed.out, HasSubstr("full: failed"));
  EXPECT_THAT(failed.out, HasSubstr("causal: passed"));

  fs::remove(tensors + "/causal/got/dq.npy");
  const Said missing = cpfit({"verify", "check", tensors});
  EXPECT_EQ(missing.exit_code, 2);
  EXPECT_THAT(missing.err, HasSubstr("causal/got/dq.npy: this tensor is missing"));

  std::ofstream(tensors + "/causal/q.npy", std::ios::app) << "x";
  const Said changed = cpfit({"verify", "check", tensors});
  EXPECT_EQ(changed.exit_code, 2);
  EXPECT_THAT(changed.err, HasSubstr("causal/q.npy: the file was changed"));
}

json candidate_with_cp(const json& plan) {
  for (const json& candidate : plan["candidates"]) {
    if (candidate["degrees"]["cp"] > 1) return candidate;
  }
  return nullptr;
}

TEST(Gate, ARecipeIsUnprovenUntilItsStrategyAndMaskPassed) {
  const Folder folder;
  const std::string scenario = folder.file("s.toml", small_scenario()), database = folder / "a.sqlite";
  const Words plan = {"plan", scenario, "--db", database, "--no-crossover", "--no-timeline", "--no-candidates", "--top", "1000"};
  const json before = candidate_with_cp(cpfit_json(plan));
  ASSERT_FALSE(before.is_null()) << "the small scenario has recipes with cp > 1";
  EXPECT_EQ(before["proof"], "none");
  const std::string method = before["proof_of"]["method"];
  const std::string mask = before["proof_of"]["masks"][0];
  EXPECT_EQ(before["proof_of"]["by"].size(), 0u);

  // Another mask proves nothing for this one.
  const auto verify = [&](const std::string& which) {
    return cpfit_json({"verify", "--method", method, "--mask", which, "--cp", "2", "--dtype", "bf16", "--db", database});
  };
  (void)verify(mask == "window" ? "full" : "window");
  EXPECT_EQ(candidate_with_cp(cpfit_json(plan))["proof"], "none");
  (void)verify(mask);
  const json after = candidate_with_cp(cpfit_json(plan));
  EXPECT_THAT(after["proof"].get<std::string>(), testing::StartsWith("cpfit "));
  ASSERT_EQ(after["proof_of"]["by"].size(), 1u);
  EXPECT_EQ(after["proof_of"]["by"][0]["cp"], json::array({2}));
  EXPECT_EQ(after["proof_of"]["by"][0]["fixture_hash"].get<std::string>().size(), 64u);

  // A stored run says what is proved now.
  const json shown = cpfit_json({"runs", "show", "1", "--db", database});
  EXPECT_EQ(candidate_with_cp(shown)["proof"], after["proof"]);
  // Without a database nothing is known to be proved; cp = 1 cuts nothing.
  const json without = cpfit_json({"plan", scenario, "--no-crossover", "--no-timeline", "--top", "1000"});
  EXPECT_EQ(candidate_with_cp(without)["proof"], "none");
  for (const json& candidate : without["candidates"]) {
    if (candidate["degrees"]["cp"] == 1) {
      EXPECT_EQ(candidate["proof"], "not_needed");
    }
  }
}

TEST(Gate, TheTextNamesTheCommandThatProves) {
  const Folder folder;
  const std::string database = folder / "a.sqlite";
  const Said said =
      cpfit({"plan", example("llama3-8b-128k-2nodes"), "--no-crossover", "--no-timeline", "--no-candidates", "--db", database});
  ASSERT_EQ(said.exit_code, 0) << said.err;
  EXPECT_THAT(said.out, HasSubstr("attention: unproven - run `cpfit verify --method te_p2p --db"));
  std::string uncut = read_file(example("llama3-8b-64k-documents"));
  const std::string search = "[search]";
  const std::size_t at = uncut.find(search);
  ASSERT_NE(at, std::string::npos) << uncut;
  const std::string scenario = folder.file("uncut.toml", uncut.replace(at, search.size(), search + "\ncp = 1"));
  EXPECT_THAT(cpfit({"plan", scenario, "--no-crossover", "--no-timeline"}).out,
              HasSubstr("attention: not cut (cp = 1), nothing to prove"));
}

}  // namespace
}  // namespace cpfit::cli_test
