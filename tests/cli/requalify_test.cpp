// cpfit runs requalify and diff: every kind of change is named, and what it means for a stored recipe follows from evaluating it
// again.
#include <SQLiteCpp/SQLiteCpp.h>
#include <gmock/gmock.h>

#include "model/quantity/hash.h"
#include "tests/cli/child.h"

namespace cpfit::cli_test {
namespace {

using nlohmann::json;
using testing::HasSubstr;

std::string replaced(std::string text, const std::string& piece, const std::string& other) {
  const std::size_t at = text.find(piece);
  EXPECT_NE(at, std::string::npos) << piece;
  return at == std::string::npos ? text : text.replace(at, piece.size(), other);
}

std::string preset_text(const std::string& name) { return read_file(std::string(CPFIT_SOURCE_DIR) + "/model/presets/" + name); }

/// A scenario with both kinds of files, and one run of it that ships.
class Requalify : public testing::Test {
 protected:
  void SetUp() override {
    write("config.json", config_);
    write("t.json", R"({"schema": "cpfit-topology/1", "base": "dgx-h100", "set": {"nic_rate": "400 Gb/s"}})");
    write("s.toml", scenario_);
    plan();
  }
  void plan(const Words& more = {}) {
    Words words = {"plan", folder_ / "s.toml", "--db", database(), "--no-timeline", "--no-crossover", "--no-candidates"};
    words.insert(words.end(), more.begin(), more.end());
    ASSERT_EQ(cpfit(words).exit_code, 0);
  }
  void write(const std::string& name, const std::string& text) { (void)folder_.file(name, text); }
  [[nodiscard]] std::string database() const { return folder_ / "a.db"; }
  /// The only study that was asked about.
  [[nodiscard]] json requalified(int exit_code = 0, const std::string& which = "1") const {
    return cpfit_json({"runs", "requalify", which, "--db", database()}, exit_code)["studies"][0];
  }
  void sql(const std::string& statement) const { SQLite::Database(database(), SQLite::OPEN_READWRITE).exec(statement); }
  /// As if the run had been made by a cpfit whose preset file was `text`; `kept`: with that text beside it.
  void made_with(const std::string& file, const std::string& text, bool kept = true) const {
    SQLite::Database db(database(), SQLite::OPEN_READWRITE);
    SQLite::Statement input(db, "UPDATE run_input SET sha256 = ? WHERE name = ?");
    input.bind(1, sha256_hex(text));
    input.bind(2, "presets/" + file);
    ASSERT_EQ(input.exec(), 1);
    if (!kept) return;
    SQLite::Statement content(db, "INSERT INTO input_text (sha256, name, content) VALUES (?, ?, CAST(? AS BLOB))");
    content.bind(1, sha256_hex(text));
    content.bind(2, "presets/" + file);
    content.bind(3, text);
    content.exec();
  }
  /// What simulate says of the shipped recipe as things are now.
  [[nodiscard]] json now(int exit_code = 0) const {
    const json shown = cpfit_json({"runs", "show", "1", "--db", database()});
    return cpfit_json({"simulate", folder_ / "s.toml", "--recipe", shown["verdict"]["ship"]["recipe"]}, exit_code);
  }

  Folder folder_;
  std::string config_ = R"({"model_type": "llama", "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 16,
    "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 128256, "max_position_embeddings": 131072})";
  std::string scenario_ = R"(name = "small"
model = {config = "config.json"}
cluster = {topology = "t.json", nodes = 2}
[training]
sequence_length = "64k"
global_batch = 8
[search]
tp = [4]
cp = [1, 2, 4]
pp = [1]
micro_batch = [1]
recompute = ["none"]
[software]
driver = "550.54"
nccl = "2.28.9"
)";
};

const json* change_of(const json& study, const std::string& kind) {
  for (const json& change : study["changes"]) {
    if (change["kind"] == kind) return &change;
  }
  return nullptr;
}

json moved(const json& study, const std::string& role, const std::string& figure) {
  for (const json& rerun : study["rerun"]) {
    if (rerun["role"] != role) continue;
    for (const json& one : rerun["figures"]) {
      if (one["figure"] == figure) return one;
    }
  }
  return nullptr;
}

TEST_F(Requalify, NothingChangedIsCurrent) {
  const json study = requalified();
  EXPECT_EQ(study["standing"], "current");
  EXPECT_TRUE(study["changes"].empty());
  EXPECT_TRUE(study["rerun"].empty()) << "what is current is not evaluated again";
  write("s.toml", "# a comment\n" + scenario_);
  EXPECT_EQ(requalified()["standing"], "current") << "a comment changes no figure";
}

TEST_F(Requalify, AMaskAModelAndATopologyAreNamedAndEvaluatedAgain) {
  struct Change {
    std::string file, text, kind, path, then, now;
  };
  const Change changes[] = {
      {"s.toml", replaced(scenario_, "global_batch = 8\n", "global_batch = 8\nmask = \"full\"\n"), "mask", "training.mask", "",
       "'full'"},
      {"config.json", replaced(config_, "\"num_hidden_layers\": 16", "\"num_hidden_layers\": 12"), "model", "/num_hidden_layers",
       "16", "12"},
      {"t.json", R"({"schema": "cpfit-topology/1", "base": "dgx-h100", "set": {"nic_rate": "100 Gb/s"}})", "topology",
       "/set/nic_rate", "\"400 Gb/s\"", "\"100 Gb/s\""},
      {"s.toml", replaced(scenario_, "\"550.54\"", "\"570.10\""), "driver", "software.driver", "'550.54'", "'570.10'"},
      {"s.toml", replaced(scenario_, "\"2.28.9\"", "\"2.29.1\""), "kernel library", "software.nccl", "'2.28.9'", "'2.29.1'"},
      {"s.toml", replaced(scenario_, "global_batch = 8\n", "global_batch = 8\nframework = \"torchtitan\"\n"), "framework",
       "training.framework", "", "'torchtitan'"},
  };
  const double before = cpfit_json({"runs", "show", "1", "--db", database()})["verdict"]["ship"]["step_seconds"];
  for (const Change& change : changes) {
    SCOPED_TRACE(change.kind);
    const std::string kept = read_file(folder_ / change.file);
    write(change.file, change.text);
    const json study = requalified();
    EXPECT_EQ(study["standing"], "holds");
    ASSERT_EQ(study["changes"].size(), 1u) << study["changes"];
    const json* told = change_of(study, change.kind);
    ASSERT_NE(told, nullptr) << study["changes"];
    EXPECT_EQ((*told)["then"], sha256_hex(kept));
    EXPECT_EQ((*told)["now"], sha256_hex(change.text));
    ASSERT_EQ((*told)["values"].size(), 1u);
    EXPECT_EQ((*told)["values"][0]["path"], change.path);
    EXPECT_EQ((*told)["values"][0]["then"], change.then);
    EXPECT_EQ((*told)["values"][0]["now"], change.now);
    // By how much: as simulate says of the same recipe now.
    const double after = now()["step_seconds"];
    const json step = moved(study, "ship", "step_seconds");
    if (after == before) {
      EXPECT_TRUE(step.is_null()) << step;
    } else {
      EXPECT_EQ(step["before"], before);
      EXPECT_EQ(step["now"], after);
    }
    write(change.file, kept);
  }
}

TEST_F(Requalify, ARecipeThatNoLongerFitsOrIsNoLongerLegalEndsWithOne) {
  write("config.json", replaced(config_, "\"num_hidden_layers\": 16", "\"num_hidden_layers\": 80"));
  EXPECT_EQ(now(3)["memory"]["fits"], "oom");
  const json study = requalified(1);
  EXPECT_EQ(study["standing"], "broken");
  EXPECT_THAT(study["broken"][0].get<std::string>(), HasSubstr("its recipe no longer ships"));
  const Said said = cpfit({"runs", "requalify", "--db", database()});
  EXPECT_EQ(said.exit_code, 1);
  EXPECT_THAT(said.out, HasSubstr("model: " + (folder_ / "config.json")));
  EXPECT_THAT(said.out, testing::ContainsRegex("/num_hidden_layers[ \n]+16 -> 80"));
  write("config.json", config_);
  write("s.toml", replaced(scenario_, "nodes = 2", "nodes = 1"));
  EXPECT_THAT(requalified(1)["broken"][0].get<std::string>(), HasSubstr("no longer legal: tp * cp * pp * dp = GPUs"));
  write("s.toml", "model = 3\n");
  EXPECT_EQ(requalified(1)["standing"], "unknown");
}

TEST_F(Requalify, ItsOwnRulesAreComparedValueByValueAndOnlyWhatSpeaksOfTheRecipeCounts) {
  const std::string rules = preset_text("frameworks.toml");
  made_with("frameworks.toml", replaced(rules, "nccl_mib_per_communicator = [400.0", "nccl_mib_per_communicator = [300.0"));
  json study = requalified();
  EXPECT_EQ(study["standing"], "holds");
  const json* told = change_of(study, "framework");
  ASSERT_NE(told, nullptr);
  EXPECT_EQ((*told)["now"], sha256_hex(rules));
  ASSERT_EQ((*told)["values"].size(), 1u) << *told;
  EXPECT_EQ((*told)["values"][0]["path"], "framework[megatron-core].nccl_mib_per_communicator");
  EXPECT_THAT((*told)["values"][0]["then"].get<std::string>(), HasSubstr("300"));
  EXPECT_THAT((*told)["values"][0]["now"].get<std::string>(), HasSubstr("400"));

  // Another GPU's memory changes nothing here.
  made_with("frameworks.toml", rules, false);
  made_with("gpus.toml", replaced(preset_text("gpus.toml"), "memory = \"32 GiB\"", "memory = \"33 GiB\""));
  study = requalified();
  EXPECT_EQ(study["standing"], "current");
  EXPECT_EQ(study["changes"][0]["values_elsewhere"], 1);
  EXPECT_EQ(study["changes"][0]["matters"], false);

  // Of a run from before texts were kept only the hash is known: it counts.
  made_with("gpus.toml", "something that nobody kept", false);
  study = requalified();
  EXPECT_EQ(study["standing"], "holds");
  EXPECT_EQ(study["changes"][0]["values_known"], false);
  for (const json& rerun : study["rerun"]) EXPECT_TRUE(rerun["figures"].empty()) << "and it was the same all the while";
}

TEST_F(Requalify, AnotherCpfitSaysByHowMuchItsFiguresMoved) {
  const double step = cpfit_json({"runs", "show", "1", "--db", database()})["verdict"]["ship"]["step_seconds"];
  const double compute = cpfit_json({"runs", "show", "1", "--db", database()})["verdict"]["ship"]["time"]["compute"];
  sql("UPDATE run SET tool_version = '0.0.9'");
  sql("UPDATE candidate SET compute_seconds = compute_seconds / 2 WHERE origin = 'result' AND status = 'ship'");
  const json study = requalified();
  EXPECT_EQ(study["standing"], "holds");
  EXPECT_EQ(study["changes"][0]["kind"], "cpfit");
  EXPECT_EQ(study["changes"][0]["then"], "0.0.9");
  EXPECT_EQ(moved(study, "ship", "time.compute_seconds")["relative"], 1.0);
  EXPECT_NEAR(moved(study, "ship", "step_seconds")["relative"].get<double>(), compute / 2 / (step - compute / 2), 1e-9);
  EXPECT_TRUE(moved(study, "ship", "memory.device_bytes").is_null());
}

/// `ranks` H100 in one node: all-gather at 10 us and a bus rate in GB/s.
std::string nccl_output(int ranks, double bus) {
  std::string text = "# Collective test starting: all_gather_perf\n# nThread 1 nGpus 1 minBytes 8 maxBytes 8 step: 2(factor)\n";
  text += "# Using devices\n";
  for (int rank = 0; rank < ranks; ++rank)
    text += "#  Rank  " + std::to_string(rank) + " Group  0 Pid  1 on node device  " + std::to_string(rank) +
            " [0000:06:00] NVIDIA H100 80GB HBM3\n";
  text += "#       size         count      type   redop    root     time   algbw   busbw #wrong\n";
  for (long bytes = 65536; bytes <= 65536L << 12; bytes *= 2) {
    const double us = 10 + static_cast<double>(bytes) * (1.0 - 1.0 / ranks) / bus * 1e-3;
    text += "  " + std::to_string(bytes) + "  1  float  none  -1  " + std::to_string(us) + "  1.0  0.75  0\n";
  }
  return text;
}

TEST_F(Requalify, ACalibrationFittedAnewIsNamedAndTaken) {
  const auto fit = [&](const std::string& text) {
    return cpfit_json({"calibrate", "fit", folder_.file("run.txt", text), "--db", database(), "--name", "ours"})["id"]
        .get<std::string>();
  };
  const std::string first = fit(nccl_output(4, 300));
  plan({"--calibration", "ours"});
  EXPECT_EQ(requalified(0, "2")["standing"], "current");
  const std::string second = fit(nccl_output(4, 150));
  const json study = requalified(0, "2");
  EXPECT_EQ(study["standing"], "holds");
  const json* told = change_of(study, "calibration");
  ASSERT_NE(told, nullptr);
  EXPECT_EQ((*told)["then"], first);
  EXPECT_EQ((*told)["now"], second);
  EXPECT_GT(moved(study, "ship", "step_seconds")["relative"].get<double>(), 0.0) << "gathers over half the bus take longer";
  EXPECT_EQ(requalified(0, "1")["standing"], "current") << "the other run has no calibration";
}

TEST_F(Requalify, ACalibrationOfAnotherGroupShapeIsNeverUsedSilently) {
  const std::string file = folder_ / "cal.toml";
  (void)cpfit_json({"calibrate", "fit", folder_.file("run.txt", nccl_output(4, 300)), "--out", file, "--name", "four"});
  const auto simulated = [&](const std::string& recipe) {
    const Said said = cpfit({"simulate", folder_ / "s.toml", "--calibration", file, "--recipe", recipe});
    EXPECT_NE(said.exit_code, 2) << said.err;
    return said.err;
  };
  EXPECT_THAT(simulated("tp=4,cp=4,pp=1,dp=1"), testing::Not(HasSubstr("another group shape: tp")));
  EXPECT_THAT(simulated("tp=8,cp=2,pp=1,dp=1"),
              HasSubstr("another group shape: tp runs all_gather on 8 ranks over nvlink4, measured there on 4"));
  write("s.toml", replaced(scenario_, "tp = [4]", "tp = [8]"));
  // Whoever names a recipe says it: along the lengths, in an answer, in a report and on its page.
  const std::string tp = "another group shape: tp runs all_gather on 8 ranks";
  const auto told = [&](Words words) {
    words.insert(words.end(), {"--calibration", file, folder_ / "s.toml"});
    const Said said = cpfit(words);
    EXPECT_NE(said.exit_code, 2) << said.err;
    const std::size_t first = said.err.find(tp);
    EXPECT_NE(first, std::string::npos) << words[0] << ": " << said.err;
    EXPECT_EQ(said.err.find(tp, first + 1), std::string::npos) << words[0] << " says it twice";
    return said.out;
  };
  (void)told({"curve", "--recipe", "tp=8,cp=2,pp=1,dp=1", "--seq", "16k,32k", "--cp", "1,2"});
  const json longest = json::parse(told({"ask", "longest", "--recipe", "tp=8,cp=2,pp=1,dp=1", "--json"}));
  EXPECT_THAT(longest["calibration"]["warnings"].dump(), HasSubstr(tp));
  (void)told({"report", "--out", folder_ / "r.html"});
  EXPECT_THAT(read_file(folder_ / "r.html"), HasSubstr(tp));
  const Said planned = cpfit({"plan", folder_ / "s.toml", "--db", database(), "--calibration", file, "--no-timeline",
                              "--no-crossover", "--no-candidates"});
  EXPECT_THAT(planned.err, HasSubstr("another group shape: tp runs all_gather on 8 ranks"));
  const json study = requalified(0, "2");
  EXPECT_EQ(study["standing"], "current") << "the calibration of a file was kept beside the run";
  EXPECT_THAT(study["warnings"].dump(), HasSubstr("another group shape: tp"));
  // It travels with its rates, and is warned of where it arrives.
  ASSERT_EQ(cpfit({"runs", "export", "2", "--db", database(), "--out", folder_ / "b.json"}).exit_code, 0);
  const json imported = cpfit_json({"runs", "import", folder_ / "b.json", "--db", folder_ / "c.db"});
  EXPECT_EQ(imported["equal_bit_for_bit"], true);
  EXPECT_THAT(imported["notes"].dump(), HasSubstr("another group shape: tp"));
}

TEST_F(Requalify, BundlesAreJudgedByWhatTheyCarry) {
  const std::string file = folder_ / "b.json";
  ASSERT_EQ(cpfit({"runs", "export", "1", "--db", database(), "--out", file}).exit_code, 0);
  const std::string id = cpfit_json({"runs", "import", file, "--db", database()})["bundle"];
  write("config.json", "{}");  // of the run; the bundle has its own
  const json all = cpfit_json({"runs", "requalify", "--db", database()}, 1);
  ASSERT_EQ(all["studies"].size(), 2u);
  EXPECT_EQ(all["studies"][0]["standing"], "unknown");
  EXPECT_EQ(all["studies"][1]["standing"], "current");
  EXPECT_EQ(requalified(0, "bundle:" + id.substr(0, 8))["label"], "bundle " + id.substr(0, 12));
  for (const char* nothing : {"9", "bundle:ffff", "bundle:xyz", "run:", "verification:1"})
    EXPECT_EQ(cpfit({"runs", "requalify", nothing, "--db", database()}).exit_code, 2) << nothing;
}

TEST_F(Requalify, DiffComparesFiguresAtTheSameQuestionOnly) {
  const auto again = [&](const std::string& text) {
    write("s.toml", text);
    plan();
  };
  again(replaced(scenario_, "cp = [1, 2, 4]", "cp = [4]"));                                   // 2
  again(replaced(scenario_, "global_batch = 8", "global_batch = 16"));                        // 3
  again(replaced(scenario_, "recompute = [\"none\"]", "recompute = [\"full\"]"));             // 4
  again(replaced(scenario_, "nodes = 2", "nodes = 1"));                                       // 5
  again(replaced(scenario_, "model = {config = \"config.json\"}", "model = \"llama3-8b\""));  // 6
  const json same = cpfit_json({"runs", "diff", "1", "2", "--db", database()});
  EXPECT_EQ(same["comparable"], true);
  ASSERT_EQ(same["inputs"].size(), 1u);
  EXPECT_EQ(same["inputs"][0]["values"][0]["path"], "search.cp");
  const json a = cpfit_json({"runs", "show", "1", "--db", database()})["verdict"]["ship"];
  const json b = cpfit_json({"runs", "show", "2", "--db", database()})["verdict"]["ship"];
  ASSERT_NE(a["degrees"]["cp"], b["degrees"]["cp"]);
  EXPECT_EQ(same["recipe"][0]["key"], "cp");
  EXPECT_EQ(same["recipe"][0]["b"], "4");
  for (const json& change : same["results"][0]["figures"]) {
    if (change["figure"] != "step_seconds") continue;
    EXPECT_EQ(change["before"], a["step_seconds"]);
    EXPECT_EQ(change["now"], b["step_seconds"]);
    EXPECT_NEAR(change["relative"].get<double>(), b["step_seconds"].get<double>() / a["step_seconds"].get<double>() - 1, 1e-12);
  }
  // For people: units, and runs by their numbers.
  const std::string text = cpfit({"runs", "diff", "1", "2", "--db", database()}).out;
  for (const char* part : {"run 1  ", "run 2  ", " in run 1, ", " in run 2)", " GiB ", " s ", " % "})
    EXPECT_THAT(text, HasSubstr(part));
  EXPECT_THAT(text, testing::Not(testing::ContainsRegex("[0-9]e\\+[0-9]|_bytes|_seconds| then|then,")));
  EXPECT_TRUE(cpfit_json({"runs", "diff", "1", "1", "--db", database()})["results"][0]["figures"].empty());
  const auto refused = [&](const std::string& other, const std::string& says) {
    const json found = cpfit_json({"runs", "diff", "1", other, "--db", database()}, 2);
    EXPECT_EQ(found["comparable"], false);
    EXPECT_TRUE(found["results"].is_null()) << "no figure beside another question's";
    EXPECT_THAT(found["reasons"][0].get<std::string>(), HasSubstr(says));
    EXPECT_FALSE(found["inputs"].empty());
  };
  refused("3", "the effective token batch differs: 524288 against 1048576 tokens per step");
  refused("4", "recompute differs: none against full");
  refused("5", "the hardware differs: 16 H100-SXM5-80GB on 2 nodes");
  refused("6", "the model differs");
}

}  // namespace
}  // namespace cpfit::cli_test
