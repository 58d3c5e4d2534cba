// Wrong input of each kind: the message says what, where and how to repair; the exit code tells input (2) from the world (1).
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "tests/cli/child.h"

namespace cpfit::cli_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

/// Exit code 2, nothing on standard output, and a message with all of `parts`, in the form "cpfit...: what" and a repair below.
void refuses(const Words& words, const std::vector<std::string>& parts) {
  SCOPED_TRACE(testing::PrintToString(words));
  const Said said = cpfit(words);
  EXPECT_EQ(said.exit_code, 2) << "signal " << said.signal << ": " << said.err;
  EXPECT_EQ(said.out, "");
  EXPECT_TRUE(said.err.starts_with("cpfit")) << said.err;
  EXPECT_THAT(said.err, HasSubstr("\n       ")) << "a repair";
  for (const std::string& part : parts) EXPECT_THAT(said.err, HasSubstr(part));
}

/// The head of a program: NULs, control characters, bytes that are no UTF-8.
std::string binary_junk() {
  std::string junk =
      "\x7f"
      "ELF";
  for (int i = 0; i < 4096; ++i) junk += static_cast<char>(i * 37);
  return junk;
}

TEST(Usage, TellsTheCommandAndWhatWasMeant) {
  refuses({}, {"a command is missing", "plan", "validate"});
  refuses({"plann", "x.toml"}, {"'plann'", "did you mean 'plan'?"});
  refuses({"runs", "shwo"}, {"cpfit runs", "did you mean 'show'?"});
  refuses({"presets"}, {"models", "gpus"});
  refuses({"plan"}, {"cpfit plan", "scenario is required", "cpfit plan --help"});
  refuses({"plan", example("llama3-8b-128k-1node"), "--jsn"}, {"--jsn", "did you mean '--json'?"});
  refuses({"plan", example("llama3-8b-128k-1node"), "--top", "0"}, {"--top", "1 to 1000"});
  refuses({"plan", example("llama3-8b-128k-1node"), "--db", ""}, {"--db", "empty"});
  refuses({"runs", "show", "abc"}, {"run", "abc"});
}

TEST(ScenarioTrouble, NamesLineColumnAndRepair) {
  const Folder folder;
  const auto with = [&](const std::string& what, const std::string& instead) {
    std::string text = small_scenario();
    const std::size_t at = text.find(what);
    EXPECT_NE(at, std::string::npos);
    return folder.file("s.toml", text.replace(at, what.size(), instead));
  };
  refuses({"plan", folder.file("m.toml", "name = \"t\"\nmodel = {preset = \n")}, {"m.toml:2:19"});
  refuses({"plan", with("sequence_length", "sequnce_length")},
          {"s.toml:5:", "sequnce_length", "did you mean 'sequence_length'?"});
  refuses({"plan", with("[training]", "[trainig]")}, {"trainig", "did you mean 'training'?"});
  refuses({"plan", with("\"128k\"", "\"128kb\"")}, {"s.toml:5:", "128kb", "128k"});
  refuses({"plan", with("\"128k\"", "1000000000000000000")}, {"s.toml:5:", "1000000000000000000"});
  refuses({"plan", with("\"128k\"", "9223372036854775808")}, {"s.toml:5:", "9223372036854775808"});
  refuses({"plan", with("\"128k\"", "-5")}, {"s.toml:5:", "-5"});
  refuses({"plan", with("\"llama3-8b\"", "\"llama3-8b\", layers = 1000000000")}, {"s.toml:2:", "1000000000", "16777216"});
  refuses({"plan", with("nodes = 1", "nodes = 1000000000")}, {"s.toml:3:", "1000000000"});
  refuses({"plan", with("nodes = 1", "nodes = 1, gpu_memory = \"80\"")}, {"s.toml:3:", "80 GiB"});
  refuses({"plan", with("llama3-8b", "llama3-8bb")}, {"llama3-8bb", "did you mean \"Llama-3-8B\"?"});
  refuses({"plan", with("dgx-h100", "dgx-h10")}, {"dgx-h10", "did you mean 'dgx-h100'?"});
  refuses({"plan", with("global_batch = 8", "global_batch = 8\nframework = \"megatron\"")}, {"megatron-core"});
  refuses({"plan", folder / "missing.toml"}, {"missing.toml", "cannot be opened"});
  refuses({"plan", folder / "."}, {"folder"});
  refuses({"plan", folder.file("junk.toml", binary_junk())}, {"docs/scenario.md"});
}

TEST(ModelTrouble, OfAConfigIsNamed) {
  const Folder folder;
  const auto scenario = [&](const std::string& config) {
    std::string text = small_scenario();
    const std::string what = "preset = \"llama3-8b\"";
    return folder.file("s.toml", text.replace(text.find(what), what.size(), "config = \"" + config + "\""));
  };
  const std::string fixtures = std::string(CPFIT_SOURCE_DIR) + "/tests/fixtures/config_json/";
  refuses({"plan", scenario(fixtures + "missing_fields.json")}, {"num_hidden_layers", "missing"});
  refuses({"plan", scenario(fixtures + "moe_mixtral.json")}, {"mixture-of-experts"});
  refuses({"plan", scenario(fixtures + "malformed.json")}, {"not valid JSON"});
  refuses({"plan", scenario(folder.file("junk.json", binary_junk()))}, {"not valid JSON"});
  refuses({"plan", scenario(folder / "none.json")}, {"cannot be opened", "No such file"});
  refuses({"plan", scenario(folder.file("deep.json", std::string(200'000, '[')))}, {"not valid JSON"});
}

TEST(DegreesTrouble, AreAResultNotAMistake) {
  const Folder folder;
  for (const char* search : {"[search]\ncp = [3]\n", "[search]\ncp = 4096\n", "[search]\ntp = 7\n"}) {
    SCOPED_TRACE(search);
    const Said said = cpfit({"plan", folder.file("s.toml", small_scenario(search))});
    EXPECT_EQ(said.exit_code, 3) << said.err;
    EXPECT_THAT(said.out, HasSubstr("No set of degrees that [search] and [recipe] allow"));
    EXPECT_THAT(said.out, Not(HasSubstr("()"))) << "no sentence with a hole in it";
  }
}

TEST(RecipeTrouble, NamesTheKeyAndWhatItMayBe) {
  const std::string scenario = example("llama3-8b-128k-1node");
  const auto simulate = [&](const std::string& recipe, const std::vector<std::string>& parts) {
    std::vector<std::string> all = parts;
    all.emplace_back("--recipe");
    refuses({"simulate", scenario, "--recipe", recipe}, all);
  };
  simulate("tp=2,dp=2", {"dp must be 4"});
  // Where it is not named dp takes what the other degrees leave of 8 GPUs.
  for (const auto& [written, meant] :
       {std::pair{"", "tp=1,cp=1,pp=1,dp=8"}, {"tp=2", "tp=2,cp=1,pp=1,dp=4"}, {"tp=2,cp=4", "tp=2,cp=4,pp=1,dp=1"}})
    EXPECT_TRUE(cpfit({"simulate", scenario, "--recipe", written}).out.starts_with(meant)) << written;
  simulate("cp=3", {"is not 8 GPUs"});
  simulate("state_shards=x", {"'x'", "or all"});
  simulate("tp", {"KEY=VALUE"});
  simulate("tp=x", {"'x'", "whole number"});
  simulate("tp=0", {"below 1"});
  simulate("tp=99999999999999999999", {"larger than"});
  simulate("tpp=2", {"did you mean 'tp'?"});
  simulate("tp=2,tp=4", {"twice"});
  simulate("tp=2,cp=4,cp_comm=ring", {"ring", "p2p"});
  simulate("tp=3,cp=4", {"heads", "not 8 GPUs"});
  simulate("cp=8,stage_layout=explicit=1/2", {"stage_layout"});
  simulate("cp=8,framework=nix", {"nix"});
  simulate("tp=65536,cp=65536,pp=65536,dp=65536", {"16777216"});
  refuses({"simulate", scenario, "--recipe", "cp=8", "--ledger", "--stage", "5"}, {"--stage", "stage 5", "0 to 0"});
  refuses({"simulate", scenario, "--recipe", "cp=8", "--ledger", "--stage", "-1"}, {"--stage"});
}

TEST(TimelineTrouble, NamesTheOptionAndItsRepair) {
  const Folder folder;
  const std::string scenario = example("llama3-8b-128k-2nodes");
  const auto simulate = [&](const Words& more, const std::vector<std::string>& parts) {
    Words words{"simulate", scenario, "--recipe", "tp=1,cp=16,pp=1,dp=1", "--fidelity", "timeline"};
    words.insert(words.end(), more.begin(), more.end());
    refuses(words, parts);
  };
  for (const Words& more : std::vector<Words>{{"--trace", folder / "t.json"},
                                              {"--spans", folder / "s.csv"},
                                              {"--every-rank"},
                                              {"--slow-rank", "0=2"},
                                              {"--link", "n0.nic0 -> leaf0=0"},
                                              {"--second-job", "n0.gpu0 -> n1.gpu0=5 GB/s"}}) {
    Words words{"simulate", scenario, "--recipe", "tp=1,cp=16,pp=1,dp=1"};
    words.insert(words.end(), more.begin(), more.end());
    refuses(words, {more.front(), "--fidelity timeline"});
    EXPECT_FALSE(std::filesystem::exists(folder / "t.json"));
  }
  simulate({"--slow-rank", "16=2"}, {"--slow-rank", "no rank 16", "0 to 15"});
  simulate({"--slow-rank", "x=2"}, {"--slow-rank", "RANK=FACTOR"});
  simulate({"--slow-rank", "1=0"}, {"--slow-rank", "above 0"});
  simulate({"--link", "n0.nic0"}, {"--link", "FROM -> TO=FACTOR"});
  simulate({"--link", "n0.nicc0 -> leaf0=0.5"}, {"--link", "'n0.nicc0'", "did you mean 'n0.nic0'?"});
  simulate({"--link", "n0.gpu0 -> n1.gpu0=0.5"}, {"--link", "no link", "n0.gpu0 is linked to"});
  simulate({"--second-job", "n0.gpu0 -> n1.gpu0=5"}, {"--second-job", "GB/s"});
  simulate({"--second-job", "n0.gpu0 -> n1.gpu0=5000 GB/s"}, {"--second-job", "leaves nothing"});
  simulate({"--trace", ""}, {"--trace", "empty"});
  refuses({"simulate", scenario, "--recipe", "cp=16", "--fidelity", "clock"}, {"--fidelity", "timeline"});
}

/// A path that cannot be what was meant: bad input, in one sentence with the repair behind the reason, and nothing written.
void misplaced(const Words& words, const std::vector<std::string>& parts) {
  SCOPED_TRACE(testing::PrintToString(words));
  const Said said = cpfit(words);
  EXPECT_EQ(said.exit_code, 2) << "signal " << said.signal << ": " << said.err;
  EXPECT_EQ(said.out, "");
  EXPECT_TRUE(said.err.starts_with("cpfit: ")) << said.err;
  for (const std::string& part : parts) EXPECT_THAT(said.err, HasSubstr(part));
}

TEST(TimelineTrouble, AFileWithoutAFolderIsAMistakeOfInput) {
  const Folder folder;
  for (const char* option : {"--trace", "--spans"}) {
    for (const auto& [path, reason] :
         {std::pair(folder / "none/t.json", "none' does not exist"), std::pair(folder / ".", "folder")}) {
      misplaced({"simulate", example("llama3-8b-128k-1node"), "--recipe", "tp=1,cp=8,pp=1,dp=1,recompute=full", "--fidelity",
                 "timeline", option, path},
                {path + " cannot be written", reason});
    }
  }
}

TEST(CurveTrouble, NamesTheRange) {
  const std::string scenario = example("llama3-8b-128k-1node");
  for (const char* lengths :
       {"", "garbage", "4k..", "1M..4k", "0..4k", "4k..1Q", "4k,,8k", "-4k..8k", "9223372036854775807", "0"}) {
    refuses({"curve", scenario, "--seq", lengths}, {"--seq"});
  }
  refuses({"curve", scenario, "--cp", "0"}, {"--cp"});
  refuses({"curve", scenario, "--recipe", "framework=nix"}, {"--recipe", "nix"});
  const Said nothing = cpfit({"curve", scenario, "--recipe", "tp=3,cp=1", "--seq", "4k"});
  EXPECT_EQ(nothing.exit_code, 3) << "no point is legal";
  EXPECT_THAT(nothing.out, HasSubstr("heads"));
}

TEST(TopologyTrouble, IsNamed) {
  const Folder folder;
  refuses({"topology", "show", "dgx-h10"}, {"dgx-h10"});
  refuses({"topology", "show", folder / "none.json"}, {"none.json"});
  refuses({"topology", "show", folder / "."}, {"folder"});
  refuses({"topology", "check", folder.file("m.json", "{\"schema\": \"cpfit-topology/1\",")}, {"m.json:1:", "JSON"});
  refuses({"topology", "show", "dgx-h100", "--nodes", "1000000"}, {"16384"});
  refuses({"topology", "show", "dgx-h100", "--cp", "100"}, {"--cp", "100 GPUs"});
}

TEST(EndlessFiles, AreRefused) {
  if (!std::filesystem::exists("/dev/zero")) GTEST_SKIP() << "there is no /dev/zero";
  const Folder folder;
  const std::string scenario = folder.file("s.toml", small_scenario());
  std::string named = small_scenario();
  const std::string what = "preset = \"llama3-8b\"";
  const std::string config = folder.file("c.toml", named.replace(named.find(what), what.size(), "config = \"/dev/zero\""));
  for (const Words& words : std::vector<Words>{{"plan", "/dev/zero"},
                                               {"topology", "show", "/dev/zero"},
                                               {"launch", "--format", "torchtitan", "--read", "/dev/zero"},
                                               {"ask", "documents", scenario, "--lengths", "/dev/zero"}})
    refuses(words, {"/dev/zero", "more than"});
  refuses({"plan", config}, {"c.toml:2:", "more than 16 MiB"});
}

TEST(NestedFiles, AreRefused) {
  const Folder folder;
  const std::string deep = std::string(200'000, '[') + std::string(200'000, ']');
  refuses({"topology", "show",
           folder.file("t.json", R"({"schema":"cpfit-topology/1","base":"dgx-h100","set":{"nic_rate":)" + deep + "}}")},
          {"t.json", "nested"});
  refuses(
      {"launch", "--format", "deepspeed", "--gpus", "8", "--read", folder.file("d.json", R"({"train_batch_size":)" + deep + "}")},
      {"d.json", "JSON"});
  refuses({"calibrate", "import", folder.file("m.json", R"({"format":"cpfit-measurement","format_version":)" + deep + "}")},
          {"m.json"});
  refuses({"runs", "import", "--db", folder / "a.sqlite", folder.file("b.json", R"({"cpfit_bundle":)" + deep + "}")}, {"b.json"});
}

TEST(ValidateTrouble, IsNamed) {
  const Folder folder;
  refuses({"validate", folder.file("u.csv", "a,b,c\n1,2,3\n")}, {"u.csv:1", "columns"});
  refuses({"validate", folder.file("e.csv", "")}, {"empty"});
  refuses({"validate", folder.file("q.csv", "a,\"b\n1,2\n")}, {"q.csv:1", "never closed"});
  refuses({"validate", folder.file("h.csv", std::string("gpu,model\n") + std::string(20'000'000, 'x') + ",y\n")}, {"h.csv:1"});
  refuses({"validate", folder / "none.csv"}, {"none.csv"});
  refuses({"validate", folder / "."}, {"folder"});
  refuses({"validate", folder.file("junk.csv", binary_junk())}, {"cpfit:"});
}

/// Exit code 1 and a sentence with the reason and a repair.
void fails(const Said& said, const std::vector<std::string>& parts) {
  EXPECT_EQ(said.exit_code, 1) << "signal " << said.signal << ": " << said.err;
  EXPECT_TRUE(said.err.starts_with("cpfit: ")) << said.err;
  for (const std::string& part : parts) EXPECT_THAT(said.err, HasSubstr(part));
}

TEST(DatabaseTrouble, LeavesForeignFilesAlone) {
  const Folder folder;
  const std::string scenario = folder.file("s.toml", small_scenario());
  const std::string picture = folder.file("a.png", std::string("\x89PNG\r\n\x1a\n") + std::string(5000, 'x'));
  const std::string before = read_file(picture);
  // A path that is no database of cpfit is bad input, as one that is no scenario is; only what the world refuses ends with 1.
  misplaced({"plan", scenario, "--db", picture}, {"a.png", "not a SQLite database", "--db"});
  misplaced({"runs", "list", "--db", picture}, {"a.png"});
  EXPECT_EQ(read_file(picture), before);
  misplaced({"runs", "list", "--db", folder / "none.sqlite"}, {"no such file"});
  misplaced({"runs", "list", "--db", folder.file("empty.sqlite", "")}, {"it is empty"});
  misplaced({"plan", scenario, "--db", folder / "."}, {"folder"});
  misplaced({"plan", scenario, "--db", folder / "none/a.sqlite"}, {"does not exist", "mkdir -p"});
}

TEST(DatabaseTrouble, OfADamagedFileIsNamed) {
  const Folder folder;
  const std::string scenario = folder.file("s.toml", small_scenario()), database = folder / "a.sqlite";
  ASSERT_EQ(cpfit({"plan", scenario, "--no-crossover", "--db", database}).exit_code, 0);
  std::filesystem::resize_file(database, 20'000);
  fails(cpfit({"runs", "list", "--db", database}), {"damaged", "recover"});
  fails(cpfit({"plan", scenario, "--db", database}), {"damaged"});
}

TEST(DatabaseTrouble, OfAReadOnlyFolderIsNamed) {
  if (geteuid() == 0) GTEST_SKIP() << "root may write everywhere";
  const Folder folder;
  const std::string scenario = folder.file("s.toml", small_scenario());
  ASSERT_EQ(mkdir((folder / "locked").c_str(), 0500), 0);
  fails(cpfit({"plan", scenario, "--db", folder / "locked/a.sqlite"}), {"locked"});
}

TEST(OutputTrouble, ExitsWithOneAndNamesWhatIsStored) {
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP() << "there is no /dev/full";
  const Folder folder;
  const std::string scenario = folder.file("s.toml", small_scenario()), database = folder / "a.sqlite";
  for (const Words& words : std::vector<Words>{{"--help"},
                                               {"presets", "models"},
                                               {"presets", "rates"},
                                               {"plan", scenario, "--no-crossover"},
                                               {"plan", scenario, "--no-crossover", "--json"},
                                               {"simulate", scenario, "--recipe", "cp=8"},
                                               {"topology", "show", "dgx-h100"}}) {
    SCOPED_TRACE(testing::PrintToString(words));
    fails(cpfit(words, "/dev/full"), {"standard output could not be written", "No space left"});
  }
  fails(cpfit({"plan", scenario, "--no-crossover", "--db", database}, "/dev/full"),
        {"standard output could not be written", "cpfit runs show 1 --db " + database});
  EXPECT_EQ(cpfit({"runs", "show", "1", "--db", database}).exit_code, 0);
}

}  // namespace
}  // namespace cpfit::cli_test
