// cpfit launch as a person calls it: written, read back, refused.
#include <gmock/gmock.h>

#include <algorithm>
#include <map>
#include <set>
#include <sstream>

#include "tests/cli/child.h"

namespace cpfit::cli_test {
namespace {

using testing::HasSubstr;

std::string eight_gpus(const Folder& folder) { return folder.file("s.toml", small_scenario()); }

TEST(Launch, WhatItPrintsIsReadBack) {
  const Folder folder;
  const std::string scenario = eight_gpus(folder);
  const Words words{"launch", scenario, "--recipe", "tp=1,cp=8,pp=1,dp=1,recompute=full", "--format", "megatron"};
  const Said said = cpfit(words);
  ASSERT_EQ(said.exit_code, 0) << said.err;
  EXPECT_EQ(said.err, "");
  // 8 processes of one node; recompute as the recipe says; the reasons below.
  for (const char* part : {"torchrun --nnodes 1 --nproc-per-node 8 pretrain_gpt.py", "--context-parallel-size 8",
                           "--recompute-granularity full", "\nWhy\n", "Names as in Megatron-LM"}) {
    EXPECT_THAT(said.out, HasSubstr(part));
  }
  const nlohmann::json launch = cpfit_json(words);
  EXPECT_TRUE(launch["unexpressed"].empty()) << launch["unexpressed"];
  for (const nlohmann::json& row : launch["arguments"]) EXPECT_NE(row["reason"], "") << row;
  const std::string script = folder.file("job.sh", launch["text"].get<std::string>());
  const nlohmann::json back = cpfit_json({"launch", scenario, "--read", script, "--format", "megatron"});
  EXPECT_EQ(back["recipe"], launch["recipe"]);
  EXPECT_EQ(back["gpus"], 8);
  EXPECT_EQ(back["sequence_tokens"], 131072);
}

TEST(Launch, WithoutARecipeWhatPlanShipsIsLaunched) {
  const Folder folder;
  const std::string scenario = eight_gpus(folder);
  const nlohmann::json plan = cpfit_json({"plan", scenario, "--no-crossover", "--no-timeline"});
  const Said said = cpfit({"launch", scenario, "--format", "megatron", "--json"});
  ASSERT_EQ(said.exit_code, 0) << said.err;
  EXPECT_THAT(cpfit({"launch", scenario, "--format", "megatron"}).out, HasSubstr("Recipe: what plan ships"));
  const nlohmann::json launch = nlohmann::json::parse(said.out);
  const nlohmann::json same =
      cpfit_json({"launch", scenario, "--recipe", plan["verdict"]["ship"]["recipe"].get<std::string>(), "--format", "megatron"});
  EXPECT_EQ(launch["recipe"], same["recipe"]);
  const nlohmann::json simulated = cpfit_json({"simulate", scenario});
  EXPECT_EQ(simulated["recipe"], plan["verdict"]["ship"]["recipe"]);
}

TEST(Launch, WhereNothingFitsNothingIsLaunched) {
  const Folder folder;
  const std::string scenario = folder.file("large.toml", R"(name = "too large"
model = {preset = "llama3.1-405b"}
cluster = {preset = "dgx-h100", nodes = 1}
[training]
sequence_length = "128k"
global_batch = 8
)");
  const Said said = cpfit({"launch", scenario, "--format", "megatron"});
  EXPECT_EQ(said.exit_code, 3);
  EXPECT_EQ(said.out, "");
  EXPECT_THAT(said.err, HasSubstr("no recipe fits"));
}

using Keys = std::map<std::string, std::string>;

Keys keys_of(const std::string& recipe) {
  Keys keys;
  std::istringstream stream(recipe);
  for (std::string part; std::getline(stream, part, ',');) keys[part.substr(0, part.find('='))] = part.substr(part.find('=') + 1);
  return keys;
}

std::string text_of(const Keys& keys) {
  std::string text;
  for (const auto& [key, value] : keys) text += (text.empty() ? "" : ",") + key + "=" + value;
  return text;
}

/// The shipped recipe as one of the framework that a format starts: what that framework always does, and nothing else changed.
Keys as_format(Keys keys, const std::string& format) {
  keys["rank_order"] = "tp-cp-dp-pp";
  if (keys["state_sharding"] == "zero2") keys["state_sharding"] = "zero1";
  if (format == "megatron") keys["framework"] = "megatron-core";
  if (format == "bridge") keys["framework"] = "megatron-bridge";
  if (format == "torchtitan") {
    keys["framework"] = "torchtitan";
    keys["state_sharding"] = "zero3";
    keys["cp_comm"] = "p2p";
    keys["a2a_degree"] = "1";
    if (keys["recompute"] == "mlp") keys["recompute"] = "full";  // it has every layer or its own selection
  }
  if (format == "deepspeed") {  // no tensor and no pipeline ranks: all of them cut the sequence
    const int cp = std::stoi(keys["tp"]) * std::stoi(keys["cp"]) * std::stoi(keys["pp"]);
    for (const char* one : {"tp", "pp", "vpp"}) keys[one] = "1";
    keys["schedule"] = "1f1b";
    keys["cp"] = keys["a2a_degree"] = std::to_string(cp);
    keys["cp_comm"] = cp == 1 ? "p2p" : "a2a";
    if (cp == 1) keys["a2a_degree"] = "1";
    keys["shard_layout"] = "contiguous";
    keys["stage_layout"] = "even";
    keys["recompute"] = "none";
    keys["framework"] = "deepspeed-ulysses";
  }
  return keys;
}

/// The recipe that ships for every example, in every format: what is written comes back key by key, what is not is refused.
TEST(Launch, EveryExampleComesBackFromEveryFormat) {
  const Folder folder;
  std::set<std::pair<std::string, std::string>> refused;
  for (const std::string& name : example_names()) {
    const nlohmann::json plan = cpfit_json({"plan", example(name), "--no-crossover", "--no-timeline"});
    const Keys shipped = keys_of(plan["candidates"].at(0)["recipe"].get<std::string>());
    for (const char* format : {"megatron", "bridge", "torchtitan", "deepspeed"}) {
      SCOPED_TRACE(std::string(name) + " as " + format);
      const std::string out = folder / "job";
      const Said said = cpfit(
          {"launch", example(name), "--recipe", text_of(as_format(shipped, format)), "--format", format, "--out", out, "--json"});
      if (said.exit_code != 0) {
        EXPECT_EQ(said.exit_code, 2);
        EXPECT_THAT(said.err, HasSubstr("--recipe"));
        refused.emplace(name, format);
        continue;
      }
      const nlohmann::json launch = nlohmann::json::parse(said.out);
      for (const nlohmann::json& row : launch["unexpressed"]) EXPECT_EQ(row["recipe_key"], "training");  // Bridge's gradients
      const nlohmann::json back = cpfit_json({"launch", example(name), "--read", out, "--format", format});
      EXPECT_EQ(back["recipe"], launch["recipe"]) << read_file(out);
    }
  }
  // Gemma's window needs another exchange than torchtitan has; Llama 2's FP8 and bf16 gradients neither of the two last can say;
  // 8 * 16 * 16 ranks of an all-to-all are more than 405B has heads.
  std::set<std::pair<std::string, std::string>> expected = {{"gemma3-12b-128k-window", "torchtitan"},
                                                            {"llama2-7b-256k", "torchtitan"},
                                                            {"llama2-7b-256k", "deepspeed"},
                                                            {"llama3.1-405b-128k", "deepspeed"}};
  const std::vector<std::string> names = example_names();
  std::erase_if(expected, [&](const auto& one) { return std::find(names.begin(), names.end(), one.first) == names.end(); });
  EXPECT_EQ(refused, expected);
}

TEST(Launch, AStoredRunIsLaunched) {
  const Folder folder;
  const std::string database = folder / "runs.sqlite";
  ASSERT_EQ(cpfit({"plan", eight_gpus(folder), "--no-crossover", "--db", database}).exit_code, 0);
  const std::string script = folder / "job.sh";
  const Said said = cpfit({"launch", "--run", "1", "--db", database, "--format", "megatron", "--out", script});
  EXPECT_EQ(said.exit_code, 0) << said.err;
  EXPECT_THAT(read_file(script), HasSubstr("torchrun --nnodes 1 --nproc-per-node 8"));
  EXPECT_THAT(read_file(script), HasSubstr("# --context-parallel-size "));
}

std::vector<std::string> note_codes(const nlohmann::json& reading) {
  std::vector<std::string> codes;
  for (const nlohmann::json& note : reading["notes"]) codes.push_back(note["code"]);
  return codes;
}

/// A job of 70B read with a scenario of 8B is said, as another batch is; so is the size that torchtitan names.
TEST(Launch, AnotherModelIsSaid) {
  const Folder folder;
  const std::string scenario = eight_gpus(folder), launcher = "export CUDA_DEVICE_MAX_CONNECTIONS=1\ntorchrun --nnodes 1 ";
  const std::string recipe =
      "--nproc-per-node 8 p.py --bf16 --context-parallel-size 8 --seq-length 131072 --global-batch-size 8 --vocab-size 128256 ";
  const std::string shape70 =
      "--num-layers 80 --hidden-size 8192 --ffn-hidden-size 28672 --num-attention-heads 64 --group-query-attention "
      "--num-query-groups 8\n";
  const std::string shape8 =
      "--num-layers 32 --hidden-size 4096 --ffn-hidden-size 14336 --num-attention-heads 32 --group-query-attention "
      "--num-query-groups 8\n";
  const std::string other = folder.file("70b.sh", launcher + recipe + shape70),
                    same = folder.file("8b.sh", launcher + recipe + shape8);
  const Said said = cpfit({"launch", scenario, "--read", other, "--format", "megatron"});
  EXPECT_EQ(said.exit_code, 0) << said.err;
  EXPECT_THAT(said.err, HasSubstr("layers 80 against 32, hidden 8192 against 4096, ffn_hidden 28672 against 14336, heads 64 "
                                  "against 32\n"));
  EXPECT_EQ(said.out.find("--num-layers"), std::string::npos) << "no longer among what says nothing: " << said.out;
  const nlohmann::json json = cpfit_json({"launch", scenario, "--read", other, "--format", "megatron"});
  EXPECT_THAT(note_codes(json), testing::ElementsAre("launch.other_model"));
  EXPECT_EQ(json["model"]["layers"], 80);
  EXPECT_THAT(note_codes(cpfit_json({"launch", scenario, "--read", same, "--format", "megatron"})), testing::IsEmpty());
  const std::string head =
      "[training]\nseq_len = 131072\nlocal_batch_size = 1\nglobal_batch_size = 8\n[parallelism]\n"
      "context_parallel_degree = 8\n[activation_checkpoint]\nmode = \"full\"\n[model]\nflavor = ";
  const auto titan = [&](const std::string& flavor) {
    return note_codes(cpfit_json(
        {"launch", scenario, "--read", folder.file("t.toml", head + flavor + "\n"), "--format", "torchtitan", "--gpus", "8"}));
  };
  EXPECT_THAT(titan("\"70B\""), testing::ElementsAre("launch.other_model"));
  EXPECT_THAT(titan("\"8B\""), testing::IsEmpty());
}

/// Two nodes with the GPUs in turns: written as a case on the node, read back without a word; another order is said.
TEST(Launch, TheOrderOfTheGpusTravels) {
  const Folder folder;
  const std::string head =
      "model = {preset = \"llama3-8b\"}\n[training]\nsequence_length = \"128k\"\nglobal_batch = 8\n"
      "[cluster]\npreset = \"dgx-h100\"\nnodes = 2\n";
  const std::string plain = folder.file("plain.toml", head);
  const std::string turned = folder.file("turned.toml", head + "device_order = [\"0,1,2,3,4,5,6,7\", \"7,6,5,4,3,2,1,0\"]\n");
  const std::string script = folder / "job.sh";
  const auto read = [&](const std::string& scenario) {
    return cpfit_json({"launch", scenario, "--read", script, "--format", "megatron"});
  };
  const std::string recipe = "tp=2,cp=8,pp=1,dp=1,recompute=full";
  ASSERT_EQ(cpfit({"launch", turned, "--recipe", recipe, "--format", "megatron", "--out", script}).exit_code, 0);
  EXPECT_THAT(read_file(script), HasSubstr("  1) export CUDA_VISIBLE_DEVICES=7,6,5,4,3,2,1,0 ;;\n"));
  EXPECT_THAT(note_codes(read(turned)), testing::IsEmpty());
  EXPECT_EQ(read(turned)["visible_devices"], nlohmann::json({"0,1,2,3,4,5,6,7", "7,6,5,4,3,2,1,0"}));
  EXPECT_THAT(note_codes(read(plain)), testing::ElementsAre("launch.other_devices"));  // node 1 is turned round
  const Said said = cpfit({"launch", plain, "--read", script, "--format", "megatron"});
  EXPECT_THAT(said.err, HasSubstr("on node 1 the job sets CUDA_VISIBLE_DEVICES=7,6,5,4,3,2,1,0"));
  ASSERT_EQ(cpfit({"launch", plain, "--recipe", recipe, "--format", "megatron", "--out", script}).exit_code, 0);
  EXPECT_THAT(note_codes(read(plain)), testing::IsEmpty());
  EXPECT_THAT(note_codes(read(turned)), testing::ElementsAre("launch.other_devices"));  // the variable is not set
}

/// Accumulated sequences of a file without its batch: 8 GPUs in 4 sequence ranks leave dp 2, and 1 x 8 x 2 sequences.
TEST(Launch, DeepspeedsBatchFollowsFromTheGpus) {
  const Folder folder;
  const std::string file = folder.file("ds.json", R"({"train_micro_batch_size_per_gpu": 1, "gradient_accumulation_steps": 8,
    "sequence_parallel_size": 4, "bf16": {"enabled": true}, "zero_optimization": {"stage": 3}})");
  const nlohmann::json told = cpfit_json({"launch", "--read", file, "--format", "deepspeed", "--gpus", "8"});
  EXPECT_EQ(told["global_batch"], 16);
  EXPECT_THAT(told["recipe"].get<std::string>(), HasSubstr("dp=2"));
  const nlohmann::json of_scenario = cpfit_json({"launch", eight_gpus(folder), "--read", file, "--format", "deepspeed"});
  EXPECT_EQ(of_scenario["gpus"], 8);
  EXPECT_THAT(note_codes(of_scenario), testing::ElementsAre("launch.other_batch"));  // the scenario's is 8
}

TEST(Launch, MistakesAreTwoWithTheRepair) {
  const Folder folder;
  const std::string scenario = eight_gpus(folder);
  const std::string wrong = folder.file("job.sh", "--bf16 --context-parallel-size 8 --cp-comm-type a2a+p2p\n");
  const Said silent = cpfit({"launch", "--read", wrong, "--format", "megatron", "--gpus", "8"});
  EXPECT_EQ(silent.exit_code, 2);
  EXPECT_THAT(silent.err, HasSubstr("add --hierarchical-context-parallel-sizes"));
  const std::string recipe = "tp=1,cp=8,pp=1,dp=1";
  const Said other = cpfit({"launch", scenario, "--recipe", recipe, "--format", "deepspeed"});  // planned as Megatron's
  EXPECT_EQ(other.exit_code, 2);
  EXPECT_THAT(other.err, HasSubstr("framework=deepspeed-ulysses"));
  EXPECT_EQ(cpfit({"launch", scenario, "--recipe", recipe, "--format", "megatrn"}).exit_code, 2);
  EXPECT_EQ(cpfit({"launch", scenario, "--recipe", "tp=1,cp=4,pp=1,dp=1", "--format", "megatron"}).exit_code, 2);  // 4 of 8
  EXPECT_EQ(cpfit({"launch", "--format", "megatron"}).exit_code, 2);
  EXPECT_EQ(cpfit({"launch", "--read", folder / "none.sh", "--format", "megatron"}).exit_code, 2);
  EXPECT_EQ(cpfit({"launch", scenario, "--recipe", recipe}).exit_code, 2);  // no --format
  // 16 processes are not this scenario's 8 GPUs.
  const std::string large =
      folder.file("large.sh", "torchrun --nnodes 2 --nproc-per-node 8 p.py --bf16 --context-parallel-size 8\n");
  EXPECT_EQ(cpfit({"launch", scenario, "--read", large, "--format", "megatron"}).exit_code, 2);
  EXPECT_EQ(cpfit({"launch", "--read", large, "--format", "megatron"}).exit_code, 0);
}

}  // namespace
}  // namespace cpfit::cli_test
