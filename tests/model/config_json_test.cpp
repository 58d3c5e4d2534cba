// config.json files of every family cpfit knows, written by us in the shape of the published ones, and what is wrong with others.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "model/transformer/config_json.h"
#include "model/transformer/parameters.h"
#include "model/transformer/presets.h"

namespace cpfit {
namespace {

const std::string kFixtures = std::string(CPFIT_SOURCE_DIR) + "/tests/fixtures/config_json/";

Outcome<Architecture> load(const std::string& name) { return load_config_json(kFixtures + name + ".json"); }

Architecture loaded(const std::string& name) {
  auto outcome = load(name);
  for (const Problem& problem : outcome.problems()) ADD_FAILURE() << to_text(problem);
  return outcome ? *outcome : Architecture{};
}

/// The one problem of a text that must be refused.
Problem only_problem(const std::string& text) {
  const auto outcome = read_config_json(text, "config.json");
  if (outcome.ok() || outcome.problems().size() != 1) {
    ADD_FAILURE() << "expected one problem, got " << outcome.problems().size() << " for " << text;
    for (const Problem& problem : outcome.problems()) ADD_FAILURE() << to_text(problem);
    return {};
  }
  return outcome.problems()[0];
}

/// A llama config with one value replaced by the JSON text `value`.
std::string llama_with(const std::string& key, const std::string& value) {
  std::string text = "{\"model_type\": \"llama\"";
  const char* fields[][2] = {{"hidden_size", "4096"},       {"intermediate_size", "14336"}, {"num_hidden_layers", "32"},
                             {"num_attention_heads", "32"}, {"num_key_value_heads", "8"},   {"vocab_size", "128256"}};
  bool replaced = false;
  for (const auto& field : fields) {
    replaced = replaced || key == field[0];
    text += std::string(", \"") + field[0] + "\": " + (key == field[0] ? value : field[1]);
  }
  if (!replaced) text += ", \"" + key + "\": " + value;
  return text + "}";
}

TEST(ConfigJson, FamiliesGiveTheArchitectureOfThePreset) {
  const std::pair<const char*, const char*> cases[] = {
      {"llama_8b", "llama-3.1-8b"},
      {"llama_defaults", "llama-2-7b"},
      {"mistral_nemo", "mistral-nemo-12b"},
      {"mistral_windowed", "mistral-7b-v0.1"},
      {"qwen2_7b", "qwen2.5-7b"},
      {"qwen3_4b", "qwen3-4b"},
      {"gemma_7b", "gemma-7b"},
      {"gemma2_9b", "gemma-2-9b"},
      {"gemma3_4b", "gemma-3-4b"},
      {"gemma3_1b_layer_types", "gemma-3-1b"},
      {"gpt_neox_20b", "gpt-neox-20b"},
      {"starcoder2_3b", "starcoder2-3b"},
      {"olmo2_7b", "olmo-2-7b"},
      {"chatglm3_6b", "chatglm3-6b"},
  };
  for (const auto& [file, name] : cases) {
    Architecture read = loaded(file);
    const Architecture preset = *find_model(name);
    read.name = preset.name;
    read.source = preset.source;
    EXPECT_EQ(read, preset) << file;
    EXPECT_EQ(count_parameters(read).total(), count_parameters(preset).total()) << file;
  }
}

TEST(ConfigJson, FamiliesWithoutAPresetOfTheirOwn) {
  // InternLM2 7B: 32 (4096 (32 + 16) 128 + 4096^2 + 3 4096 14336 + 2 4096) + 2 92544 4096 + 4096.
  EXPECT_EQ(count_parameters(loaded("internlm2_7b")).total(), 7'737'708'544);
  // Granite 3.0 8B: 40 (4096 (32 + 16) 128 + 4096^2 + 3 4096 12800 + 2 4096) + 49155 4096 + 4096.
  EXPECT_EQ(count_parameters(loaded("granite_8b")).total(), 8'170'848'256);
  EXPECT_EQ(count_parameters(loaded("phi3_mini")).total(), 3'821'079'552);
  const Architecture gpt2 = loaded("gpt2");
  EXPECT_EQ(count_parameters(gpt2).total(), 124'439'808);
  EXPECT_EQ(gpt2.ffn_hidden, 4 * 768);  // n_inner null
  EXPECT_EQ(gpt2.hidden_dropout, 0.1);
  const Architecture nemotron = loaded("nemotron");
  EXPECT_EQ(nemotron.activation, Activation::kSquaredRelu);
  EXPECT_EQ(nemotron.norm, Norm::kLayer);
  EXPECT_FALSE(nemotron.tied_embeddings);
}

TEST(ConfigJson, EveryKnownTypeHasAFixture) {
  std::string all;  // a family without one would be a claim without evidence
  for (const auto& entry : std::filesystem::directory_iterator(kFixtures)) {
    std::ifstream file(entry.path());
    all.append(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  for (const std::string& type : known_model_types()) {
    if (type == "olmo3") continue;  // differs from olmo2 only by its windows, tested below
    EXPECT_NE(all.find("\"model_type\": \"" + type + "\""), std::string::npos) << type;
  }
}

TEST(ConfigJson, Windows) {
  EXPECT_EQ(loaded("phi3_mini").sliding_window, 262144);
  const std::string qwen = R"({"model_type":"qwen2","hidden_size":1024,"intermediate_size":4096,"num_hidden_layers":8,
      "num_attention_heads":8,"num_key_value_heads":2,"vocab_size":1000,"sliding_window":512,"use_sliding_window":)";
  EXPECT_EQ(read_config_json(qwen + "false}", "c")->sliding_window, 0);
  EXPECT_EQ(read_config_json(qwen + "true,\"max_window_layers\":0}", "c")->sliding_window, 512);
  EXPECT_EQ(read_config_json(qwen + "true,\"max_window_layers\":8}", "c")->sliding_window, 0);
  EXPECT_EQ(only_problem(qwen + "true,\"max_window_layers\":4}").code, "config.window");
  const std::string olmo3 = R"({"model_type":"olmo3","hidden_size":1024,"intermediate_size":4096,"num_hidden_layers":8,
      "num_attention_heads":8,"vocab_size":1000)";
  EXPECT_EQ(read_config_json(olmo3 + "}", "c")->window_period, 4);
  EXPECT_EQ(read_config_json(olmo3 + "}", "c")->windowed_layers(), 6);
  const std::string half = R"(,"layer_types":["sliding_attention","full_attention","sliding_attention","full_attention",
      "sliding_attention","full_attention","sliding_attention","full_attention"]})";
  EXPECT_EQ(read_config_json(olmo3 + half, "c")->window_period, 2);
  EXPECT_EQ(only_problem(olmo3 + ",\"layer_types\":[\"full_attention\"]}").code, "config.layer_types");
  const std::string odd = R"(,"layer_types":["full_attention","sliding_attention","sliding_attention","sliding_attention",
      "sliding_attention","full_attention","sliding_attention","full_attention"]})";
  EXPECT_EQ(only_problem(olmo3 + odd).code, "config.layer_types");
}

TEST(ConfigJson, MixtureOfExpertsIsRefusedInOneSentence) {
  for (const char* name : {"moe_mixtral", "moe_routed"}) {
    const auto outcome = load(name);
    ASSERT_FALSE(outcome.ok());
    ASSERT_EQ(outcome.problems().size(), 1U);
    EXPECT_EQ(outcome.problems()[0].code, "config.refused");
    EXPECT_NE(outcome.problems()[0].message.find("mixture-of-experts"), std::string::npos);
    EXPECT_FALSE(outcome.problems()[0].repair.empty());
  }
  EXPECT_NE(only_problem(llama_with("num_experts", "64")).message.find("num_experts is 64"), std::string::npos);
  EXPECT_TRUE(read_config_json(llama_with("num_local_experts", "1"), "c").ok());  // one expert is dense
  EXPECT_TRUE(read_config_json(llama_with("num_experts", "null"), "c").ok());
  EXPECT_EQ(only_problem(llama_with("kv_lora_rank", "512")).code, "config.refused");
  EXPECT_NE(only_problem("{\"model_type\": \"mamba2\"}").message.find("state-space"), std::string::npos);
}

TEST(ConfigJson, MissingFieldsAreAllNamed) {
  const auto outcome = load("missing_fields");
  ASSERT_FALSE(outcome.ok());
  std::string all;
  for (const Problem& problem : outcome.problems()) {
    EXPECT_EQ(problem.code, "config.missing");
    EXPECT_FALSE(problem.repair.empty());
    all += problem.where + "\n";
  }
  for (const char* key : {"num_hidden_layers", "intermediate_size", "vocab_size"}) {
    EXPECT_NE(all.find(std::string("#/") + key), std::string::npos) << all;
  }
  EXPECT_EQ(outcome.problems().size(), 3U);
  EXPECT_EQ(only_problem("{}").code, "config.missing");
  EXPECT_NE(only_problem("{\"hidden_size\": 1}").message.find("model_type"), std::string::npos);
}

TEST(ConfigJson, MalformedTextHasItsPosition) {
  const auto outcome = load("malformed");
  ASSERT_FALSE(outcome.ok());
  EXPECT_EQ(outcome.problems()[0].code, "config.syntax");
  EXPECT_TRUE(outcome.problems()[0].where.ends_with("malformed.json:3:23")) << outcome.problems()[0].where;  // the second comma
  EXPECT_EQ(only_problem("").code, "config.syntax");
  EXPECT_EQ(only_problem("{\"a\": 1e999}").code, "config.syntax");
  EXPECT_EQ(only_problem("{\"a\": \"\xff\"}").code, "config.syntax");
  EXPECT_EQ(only_problem("[1, 2]").code, "config.not_object");
  EXPECT_EQ(only_problem("null").code, "config.not_object");
  EXPECT_EQ(only_problem(std::string(100000, '[')).code, "config.syntax");
}

TEST(ConfigJson, AbsurdValuesAreRejected) {
  EXPECT_EQ(only_problem(llama_with("hidden_size", "-4096")).code, "config.range");
  EXPECT_EQ(only_problem(llama_with("hidden_size", "0")).code, "config.range");
  EXPECT_EQ(only_problem(llama_with("hidden_size", "1e30")).code, "config.type");
  EXPECT_EQ(only_problem(llama_with("hidden_size", "4096.5")).code, "config.type");
  EXPECT_EQ(only_problem(llama_with("hidden_size", "\"4096\"")).code, "config.type");
  EXPECT_EQ(only_problem(llama_with("hidden_size", "18446744073709551615")).code, "config.range");
  EXPECT_EQ(only_problem(llama_with("vocab_size", "99999999999")).code, "model.out_of_range");
  EXPECT_EQ(only_problem(llama_with("num_key_value_heads", "5")).code, "model.kv_heads");
  EXPECT_EQ(only_problem(llama_with("num_attention_heads", "24")).code, "config.head_dim");  // 4096 / 24
  EXPECT_EQ(only_problem(llama_with("tie_word_embeddings", "1")).code, "config.type");
  EXPECT_EQ(only_problem(llama_with("attention_dropout", "1.5")).code, "config.type");
  EXPECT_EQ(only_problem(llama_with("hidden_act", "\"tanh\"")).code, "config.activation");
  EXPECT_EQ(only_problem(llama_with("hidden_act", "7")).code, "config.type");
  EXPECT_EQ(only_problem("{\"model_type\": 7}").code, "config.type");
}

TEST(ConfigJson, UnknownFamiliesAreRefusedNotGuessed) {
  const Problem problem = only_problem("{\"model_type\": \"lama\"}");
  EXPECT_EQ(problem.code, "config.model_type");
  EXPECT_NE(problem.repair.find("\"llama\""), std::string::npos) << problem.repair;
}

TEST(ConfigJson, BiasesFollowTheirKeys) {
  const Architecture biased = *read_config_json(llama_with("attention_bias", "true"), "c");
  EXPECT_TRUE(biased.qkv_bias && biased.attention_output_bias && !biased.mlp_bias);
  const Architecture qwen2 = loaded("qwen2_7b");
  EXPECT_TRUE(qwen2.qkv_bias && !qwen2.attention_output_bias);
  const Architecture star = loaded("starcoder2_3b");
  EXPECT_TRUE(star.qkv_bias && star.attention_output_bias && star.mlp_bias && star.tied_embeddings);
}

TEST(ConfigJson, AnUnreadableFileIsAProblem) {
  EXPECT_EQ(load("no_such_file").problems()[0].code, "config.unreadable");
  EXPECT_EQ(load_config_json(kFixtures).problems()[0].code, "config.unreadable");
}

}  // namespace
}  // namespace cpfit
