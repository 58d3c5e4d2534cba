// Bundles as they travel: exported, verified elsewhere, refused when anything of them was changed.
#include <gmock/gmock.h>

#include <filesystem>
#include <functional>
#include <set>

#include "model/quantity/hash.h"
#include "tests/cli/child.h"

namespace cpfit::cli_test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::HasSubstr;

/// A search of a few dozen recipes.
std::string narrow_scenario(const std::string& more = "") {
  return small_scenario("[search]\ntp = [2, 4]\ncp = [1, 2, 4]\npp = [1]\nmicro_batch = [1]\nrecompute = [\"full\"]\n" + more);
}

Words plan_words(const std::string& scenario, const std::string& database) {
  return {"plan", scenario, "--db", database, "--no-timeline", "--no-crossover", "--no-candidates"};
}

json parts_of(const std::string& file) { return json::parse(read_file(file))["parts"]; }

std::string named(const json& pairs, const std::string& name) {
  for (const json& pair : pairs) {
    if (pair[0] == name) return pair[1];
  }
  return "(none)";
}

/// The same file with `change` made to it, hashed as an export hashes: the lie of somebody who knows how.
std::string forged(const std::string& text, const std::function<void(json&)>& change) {
  // The order of keys does not matter to a reader.
  json file = json::parse(text);
  change(file["parts"]);
  file.erase("sha256");
  std::string body = file.dump();
  body = "{\"sha256\": \"" + std::string(64, '0') + "\"," + body.substr(1);
  const std::string hash = sha256_hex(body);
  return body.replace(body.find(std::string(64, '0')), 64, hash);
}

TEST(Bundle, OfEveryKindOfScenarioComesBackBitForBit) {
  for (const char* name : {"llama3-8b-128k-2nodes", "llama3-8b-64k-documents", "gemma3-12b-128k-window"}) {
    SCOPED_TRACE(name);
    const Folder here, there;
    const std::string database = here / "a.db", file = here / "b.json";
    ASSERT_EQ(cpfit(plan_words(example(name), database)).exit_code, 0);
    const json exported = cpfit_json({"runs", "export", "1", "--db", database, "--out", file});
    const json imported = cpfit_json({"runs", "import", file, "--db", there / "c.db"});
    EXPECT_EQ(imported["bundle"], exported["bundle"]);
    EXPECT_EQ(imported["equal_bit_for_bit"], true);
    EXPECT_EQ(imported["same_tool"], true);
    EXPECT_EQ(imported["stored"], true);
    EXPECT_EQ(imported["cases"], imported["known_cases"]);

    const json shown = cpfit_json({"runs", "show", "1", "--db", database});
    const json& ship = shown["verdict"]["ship"];
    const json parts = parts_of(file);
    EXPECT_EQ(parts["predicted"]["recipe"], ship["recipe"]);
    EXPECT_EQ(parts["predicted"]["figures"]["step_seconds"], ship["step_seconds"]);
    EXPECT_EQ(parts["predicted"]["figures"]["step_low_seconds"], ship["step_seconds_low"]);
    EXPECT_EQ(parts["predicted"]["figures"]["time.exposed_cp_seconds"], ship["time"]["exposed"]["cp"]);
    EXPECT_NEAR(parts["predicted"]["figures"]["memory.components.activations_bytes"].get<double>(),
                ship["memory"]["components"]["activations"].get<double>(), 20);
    ASSERT_EQ(parts["links"].size(), ship["links"].size());
    EXPECT_EQ(parts["links"][0]["busy_seconds"], ship["links"][0]["busy_seconds"]);

    // Every rank once, every coordinate once, tp fastest (the order of all these scenarios), eight GPUs a node.
    const json& degrees = ship["degrees"];
    const std::int64_t tp = degrees["tp"], cp = degrees["cp"], dp = degrees["dp"], pp = degrees["pp"];
    ASSERT_EQ(parts["mesh"]["ranks"].size(), static_cast<std::size_t>(tp * cp * dp * pp));
    for (std::int64_t rank = 0; rank < tp * cp * dp * pp; ++rank) {
      const json right = {rank, rank % tp, rank / tp % cp, rank / (tp * cp) % dp, rank / (tp * cp * dp), rank / 8, rank % 8};
      EXPECT_EQ(parts["mesh"]["ranks"][static_cast<std::size_t>(rank)], right);
    }
    for (const json& input : parts["inputs_sha256"])
      EXPECT_EQ(shown["provenance"]["input_sha256"][input[0].get<std::string>()], input[1]);
  }
}

TEST(Bundle, IsTheSameFileForTheSameRunAndIsStoredOnce) {
  const Folder folder;
  const std::string scenario = folder.file("s.toml", narrow_scenario()), database = folder / "a.db";
  ASSERT_EQ(cpfit(plan_words(scenario, database)).exit_code, 0);
  ASSERT_EQ(cpfit(plan_words(scenario, database)).exit_code, 0);
  for (const char* run : {"1", "2"})
    ASSERT_EQ(cpfit({"runs", "export", run, "--db", database, "--out", folder / run}).exit_code, 0);
  EXPECT_EQ(read_file(folder / "1"), read_file(folder / "2")) << "it holds no clock and no number of the run";
  const json first = cpfit_json({"runs", "import", folder / "1", "--db", folder / "c.db"});
  const json second = cpfit_json({"runs", "import", folder / "2", "--db", folder / "c.db"});
  EXPECT_EQ(first["stored"], true);
  EXPECT_EQ(second["stored"], false);
  const json listed = cpfit_json({"runs", "list", "--db", folder / "c.db"});
  ASSERT_EQ(listed["bundles"].size(), 1u);
  EXPECT_EQ(listed["bundles"][0]["bundle"], first["bundle"]);
  EXPECT_EQ(listed["bundles"][0]["scenario"], "small");
  const std::string reference = "bundle:" + first["bundle"].get<std::string>().substr(0, 6);
  ASSERT_EQ(cpfit({"runs", "export", reference, "--db", folder / "c.db", "--out", folder / "3"}).exit_code, 0);
  EXPECT_EQ(read_file(folder / "3"), read_file(folder / "1")) << "out again as it came in";
}

TEST(Bundle, PublishesTheControlsOfItsRun) {
  const Folder folder;
  const std::string database = folder / "a.db", file = folder / "b.json";
  ASSERT_EQ(cpfit(plan_words(example("llama3-8b-128k-2nodes"), database)).exit_code, 0);
  ASSERT_EQ(cpfit({"runs", "export", "1", "--db", database, "--out", file}).exit_code, 0);
  const json shown = cpfit_json({"runs", "show", "1", "--db", database});
  const json parts = parts_of(file);
  ASSERT_EQ(parts["controls"].size(), 2u) << parts["missing_controls"];
  const json &dead = parts["controls"][0], &slow = parts["controls"][1], &ship = parts["predicted"];
  EXPECT_EQ(dead["role"], "out_of_memory");
  EXPECT_EQ(dead["recipe"], shown["verdict"]["control"]["recipe"]) << "without CP this scenario does not fit";
  EXPECT_EQ(dead["fits"], "oom");
  EXPECT_GT(dead["figures"]["memory.device_bytes"], dead["figures"]["memory.capacity_bytes"]);
  EXPECT_EQ(slow["role"], "slow");
  EXPECT_LT(slow["figures"]["tokens_per_second_per_gpu"], ship["figures"]["tokens_per_second_per_gpu"]);
  const auto value = [](const json& one, const std::string& key) {
    const std::string recipe = "," + one["recipe"].get<std::string>() + ",";
    const std::size_t at = recipe.find("," + key + "=") + key.size() + 2;
    return recipe.substr(at, recipe.find(',', at) - at);
  };
  // On one node CP = 1 fits too: what dies there is the same recipe with fewer ranks, at the same recompute and precision.
  ASSERT_EQ(cpfit(plan_words(example("llama3-8b-128k-1node"), database)).exit_code, 0);
  ASSERT_EQ(cpfit({"runs", "export", "2", "--db", database, "--out", file}).exit_code, 0);
  const json one_node = parts_of(file);
  for (const json& control : one_node["controls"]) {
    for (const char* key : {"recompute", "precision"})
      EXPECT_EQ(value(control, key), value(one_node["predicted"], key)) << control;
    if (control["role"] != "out_of_memory") continue;
    for (const char* key : {"tp", "pp"}) EXPECT_EQ(value(control, key), value(one_node["predicted"], key)) << control;
  }
  // And the best recipe without CP is not kept quiet.
  const json& without = one_node["controls"][0];
  EXPECT_EQ(without["role"], "without_cp");
  EXPECT_EQ(without["recipe"], cpfit_json({"runs", "show", "2", "--db", database})["verdict"]["control"]["recipe"]);
  EXPECT_THAT(without["sentence"].get<std::string>(), HasSubstr("fits as well"));
  // A shorter sequence fits without CP: then it is said that there is no such control.
  std::string shorter = narrow_scenario();
  shorter.replace(shorter.find("128k"), 4, "16k");
  const std::string scenario = folder.file("s.toml", shorter);
  ASSERT_EQ(cpfit(plan_words(scenario, database)).exit_code, 0);
  ASSERT_EQ(cpfit({"runs", "export", "3", "--db", database, "--out", file}).exit_code, 0);
  EXPECT_NE(named(parts_of(file)["missing_controls"], "out_of_memory"), "(none)");
}

/// 70B at 132k on four nodes: the best recipe without CP (pp 4) lacks only a part of its margin. That one is the control, not the
/// first CP=1 recipe that is far from fitting.
TEST(Bundle, TheControlIsTheBestRecipeWithoutCp) {
  const Folder folder;
  const std::string database = folder / "a.db", file = folder / "b.json";
  const std::string scenario = folder.file("s.toml", R"(name = "four nodes"
model = "llama3.1-70b"
[cluster]
preset = "dgx-h100"
nodes = 4
[training]
sequence_length = "132k"
global_batch = 16
[search]
tp = [8]
cp = [1, 2]
pp = [2, 4]
vpp = [1, 10]
recompute = ["full"]
)");
  ASSERT_EQ(cpfit(plan_words(scenario, database)).exit_code, 0);
  const json best = cpfit_json({"runs", "show", "1", "--db", database})["verdict"]["control"];
  ASSERT_EQ(best["memory"]["fits"], "at_risk") << best["memory"];
  const Said said = cpfit({"runs", "export", "1", "--db", database, "--out", file});
  ASSERT_EQ(said.exit_code, 0) << said.err;
  const json control = parts_of(file)["controls"][0];
  EXPECT_EQ(control["role"], "no_margin");
  EXPECT_EQ(control["recipe"], best["recipe"]);
  // Short of its margin by what the upper bound takes of the 5 % that must stay free.
  const double capacity = control["figures"]["memory.capacity_bytes"], free = control["figures"]["memory.margin_bytes"];
  char missing[32];
  std::snprintf(missing, sizeof missing, "%.1f MiB", (0.05 * capacity - free) / 1048576);
  EXPECT_THAT(control["sentence"].get<std::string>(), HasSubstr("short of its margin by " + std::string(missing)));
  EXPECT_THAT(said.out, HasSubstr("control (too small): cp=1 tp=8 pp=4 dp=1"));
  EXPECT_EQ(cpfit_json({"runs", "import", file, "--db", folder / "c.db"})["equal_bit_for_bit"], true);
}

TEST(Bundle, CarriesTheFilesOfItsScenarioToAnotherPlace) {
  const Folder here, there;
  (void)here.file("config.json",
                  R"({"model_type": "llama", "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 8,
    "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 128256, "max_position_embeddings": 131072})");
  (void)here.file("t.json", R"({"schema": "cpfit-topology/1", "base": "dgx-h100", "set": {"nic_rate": "200 Gb/s"}})");
  std::string text = narrow_scenario();
  text.replace(text.find("model = {preset = \"llama3-8b\"}"), 30, "model = {config = \"config.json\"}");
  text.replace(text.find("preset = \"dgx-h100\""), 19, "topology = \"t.json\"");
  const std::string scenario = here.file("s.toml", text), database = here / "a.db", file = there / "b.json";
  ASSERT_EQ(cpfit(plan_words(scenario, database)).exit_code, 0);
  // The run keeps its inputs: what becomes of the files does not matter to it.
  const std::string config = read_file(here / "config.json");
  (void)here.file("config.json", "{}");
  ASSERT_EQ(cpfit({"runs", "export", "1", "--db", database, "--out", file}).exit_code, 0);
  for (const char* name : {"config.json", "t.json", "s.toml", "a.db"}) fs::remove(here / name);
  const json imported = cpfit_json({"runs", "import", file, "--db", there / "c.db"});
  EXPECT_EQ(imported["equal_bit_for_bit"], true);
  const json parts = parts_of(file);
  ASSERT_EQ(parts["files"].size(), 2u);
  EXPECT_EQ(parts["files"][0]["sha256"], sha256_hex(config));
  EXPECT_EQ(named(parts["model"], "layers"), "8");
}

TEST(Bundle, WithAChangedByteIsRefusedAndNothingIsStored) {
  const Folder folder;
  const std::string scenario = folder.file("s.toml", narrow_scenario()), database = folder / "a.db", file = folder / "b.json";
  ASSERT_EQ(cpfit(plan_words(scenario, database)).exit_code, 0);
  ASSERT_EQ(cpfit({"runs", "export", "1", "--db", database, "--out", file}).exit_code, 0);
  const std::string text = read_file(file);
  // Bytes one by one: tests/model/bundle_test.cpp. Here what a person sees.
  for (std::size_t i = 1; i <= 4; ++i) {
    std::string changed = text;
    char& byte = changed[text.size() * i / 5];
    byte = byte == 'x' ? 'y' : 'x';
    const Said said = cpfit({"runs", "import", folder.file("changed.json", changed), "--db", folder / "c.db"});
    EXPECT_EQ(said.exit_code, 2);
    EXPECT_THAT(said.err, HasSubstr("its bytes were changed since it was exported"));
    EXPECT_THAT(said.err, HasSubstr("export it again: cpfit runs export"));
  }
  for (const std::string& hostile :
       {std::string(), text.substr(0, text.size() / 2), std::string("{\"sha256\": 1}"), std::string(1000, '[')}) {
    const Said said = cpfit({"runs", "import", folder.file("hostile.json", hostile), "--db", folder / "c.db"});
    EXPECT_EQ(said.exit_code, 2) << hostile.substr(0, 40);
  }
  EXPECT_EQ(cpfit({"runs", "import", folder / "nowhere.json", "--db", folder / "c.db"}).exit_code, 2);
  EXPECT_FALSE(fs::exists(folder / "c.db")) << "nothing was stored";
}

TEST(Bundle, ThatLiesWithARightHashIsFoundOut) {
  const Folder folder;
  const std::string scenario = folder.file("s.toml", narrow_scenario()), database = folder / "a.db", file = folder / "b.json";
  ASSERT_EQ(cpfit(plan_words(scenario, database)).exit_code, 0);
  ASSERT_EQ(cpfit({"runs", "export", "1", "--db", database, "--recipe", "cp=2,tp=4,dp=1", "--out", file}).exit_code, 0);
  const std::string text = read_file(file);
  EXPECT_EQ(cpfit({"runs", "import", folder.file("same.json", forged(text, [](json&) {})), "--db", folder / "d.db"}).exit_code, 0)
      << "forging itself changes nothing";
  const auto refused = [&](const std::function<void(json&)>& change, const std::string& says) {
    const Said said = cpfit({"runs", "import", folder.file("lie.json", forged(text, change)), "--db", folder / "c.db"});
    EXPECT_EQ(said.exit_code, 2) << says;
    EXPECT_THAT(said.err, HasSubstr(says));
  };
  refused([](json& parts) { parts["predicted"]["figures"]["step_seconds"] = 1.0; }, "step is 1 s in it, this cpfit");
  refused([](json& parts) { parts["predicted"]["fits"] = "oom"; }, "'oom' where this cpfit says 'fits'");
  refused([](json& parts) { parts["links"][0]["bytes"] = 1.0; }, "its links is not what");
  refused([](json& parts) { std::swap(parts["mesh"]["ranks"][0], parts["mesh"]["ranks"][5]); }, "rank 5 stands at tp 1 cp 1");
  refused([](json& parts) { parts["mesh"]["ranks"].erase(7); }, "it places 7 ranks, its recipe has 8");
  refused([](json& parts) { parts["topology"][0] = "another"; }, "its topology is not what");
  refused([](json& parts) { parts["equivalence"]["cases"][0]["seed"] = 2; }, "is not the one it names");
  refused([](json& parts) { parts["equivalence"]["method"] = "te_p2p_wide"; }, "what must be proved");
  refused([](json& parts) { parts["scenario"]["lines"].push_back("# more"); }, "its scenario is not the one that the run");
  refused([](json& parts) { parts["calibration"]["lines"][0] = "# else"; }, "its rates are not those that its id names");
  refused([](json& parts) { parts["predicted"]["recipe"] = "tp=3,cp=1,pp=1,dp=1"; }, "tp * cp * pp * dp");
  refused([](json& parts) { parts["predicted"]["recipe"] = "tp=1048576,cp=1048576,pp=1048576,dp=1048576"; }, "more than");
  if (!json::parse(text)["parts"]["controls"].empty())
    refused([](json& parts) { parts["controls"][0]["gpus"] = 17; }, "names 17 GPUs, its recipe has ");
  EXPECT_FALSE(fs::exists(folder / "c.db")) << "nothing was stored";
}

TEST(Bundle, OfAnotherVersionSaysWhatChangedAndByHowMuch) {
  const Folder folder;
  const std::string scenario = folder.file("s.toml", narrow_scenario()), database = folder / "a.db", file = folder / "b.json";
  ASSERT_EQ(cpfit(plan_words(scenario, database)).exit_code, 0);
  ASSERT_EQ(cpfit({"runs", "export", "1", "--db", database, "--out", file}).exit_code, 0);
  const double step = parts_of(file)["predicted"]["figures"]["step_seconds"];
  const std::string older = forged(read_file(file), [&](json& parts) {
    for (json& input : parts["inputs_sha256"]) {
      if (input[0] == "presets/gpus.toml") input[1] = sha256_hex("other GPUs");
    }
    parts["predicted"]["figures"]["step_seconds"] = step / 1.25;
  });
  const json imported = cpfit_json({"runs", "import", folder.file("older.json", older), "--db", folder / "c.db"});
  EXPECT_EQ(imported["same_tool"], false);
  EXPECT_EQ(imported["equal_bit_for_bit"], false);
  ASSERT_EQ(imported["changed"].size(), 1u);
  EXPECT_THAT(imported["changed"][0].get<std::string>(),
              HasSubstr("presets/gpus.toml: " + sha256_hex("other GPUs").substr(0, 12)));
  ASSERT_EQ(imported["moved"].size(), 1u);
  ASSERT_EQ(imported["moved"][0]["figures"].size(), 1u);
  EXPECT_EQ(imported["moved"][0]["figures"][0]["figure"], "step_seconds");
  EXPECT_NEAR(imported["moved"][0]["figures"][0]["relative"].get<double>(), 0.25, 1e-12);
  EXPECT_EQ(imported["stored"], true);
}

TEST(Bundle, CarriesTheProofWithSeedsAndFixtures) {
  const Folder folder;
  const std::string scenario = folder.file("s.toml", narrow_scenario()), database = folder / "a.db", file = folder / "b.json";
  ASSERT_EQ(cpfit(plan_words(scenario, database)).exit_code, 0);
  const Words exporting = {"runs", "export", "1", "--db", database, "--recipe", "cp=2,tp=4,dp=1", "--out", file};
  ASSERT_EQ(cpfit(exporting).exit_code, 0);
  json equivalence = parts_of(file)["equivalence"];
  EXPECT_THAT(equivalence["sentence"].get<std::string>(), HasSubstr("unproven"));
  ASSERT_FALSE(equivalence["cases"].empty());
  EXPECT_EQ(equivalence["cases"][0]["run"], false);
  EXPECT_EQ(named(parts_of(file)["software"], "verified implementation"), "unknown");

  const json verified =
      cpfit_json({"verify", "--method", "te_p2p", "--mask", "causal", "--cp", "2", "--dtype", "bf16", "--db", database});
  ASSERT_EQ(cpfit(exporting).exit_code, 0);
  equivalence = parts_of(file)["equivalence"];
  EXPECT_EQ(equivalence["proofs"][0]["fixture_sha256"], verified["fixture_hash"]);
  std::set<double> errors;  // of dq, by case: each one of the verification's
  for (const json& one : verified["cases"]) errors.insert(one["errors"]["dq"].get<double>());
  ASSERT_FALSE(equivalence["cases"].empty());
  for (const json& one : equivalence["cases"]) {
    EXPECT_EQ(one["run"], true);
    EXPECT_EQ(one["passed"], true);
    EXPECT_GT(one["seed"], 0);
    EXPECT_TRUE(errors.contains(one["normwise_errors"]["dq"].get<double>())) << one;
  }
  const json imported = cpfit_json({"runs", "import", file, "--db", folder / "c.db"});
  EXPECT_EQ(imported["known_cases"], equivalence["cases"].size());
}

TEST(Bundle, IsNotMadeOfWhatThisCpfitCannotSpeakFor) {
  const Folder folder;
  const std::string scenario = folder.file("s.toml", narrow_scenario()), database = folder / "a.db", file = folder / "b.json";
  ASSERT_EQ(cpfit(plan_words(scenario, database)).exit_code, 0);
  const auto refused = [&](Words words, int exit_code, const std::string& says) {
    const Said said = cpfit(words);
    EXPECT_EQ(said.exit_code, exit_code) << says;
    EXPECT_THAT(said.err, HasSubstr(says));
  };
  refused({"runs", "export", "9", "--db", database, "--out", file}, 2, "no run 9");
  refused({"runs", "export", "1", "--db", database, "--out", file, "--recipe", "tp=3"}, 2, "tp * cp * pp * dp");
  refused({"runs", "export", "1", "--db", database, "--out", folder / "no/such/place"}, 2, "no/such/place");
  const std::string tight = folder.file("t.toml", narrow_scenario("[requirements]\nmin_tokens_per_second_per_gpu = 1e6\n"));
  ASSERT_EQ(cpfit(plan_words(tight, database)).exit_code, 3);
  refused({"runs", "export", "2", "--db", database, "--out", file}, 3, "this run ships no recipe");
  EXPECT_FALSE(fs::exists(file));
  EXPECT_EQ(cpfit({"runs", "export", "2", "--db", database, "--out", file, "--recipe", "tp=4,cp=2,pp=1,dp=1"}).exit_code, 0);
  EXPECT_EQ(parts_of(file)["predicted"]["role"], "chosen");
}

}  // namespace
}  // namespace cpfit::cli_test
