// Parameter counts against published totals, FLOPs against published conventions.
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "model/transformer/flops.h"
#include "model/transformer/parameters.h"
#include "model/transformer/presets.h"

namespace cpfit {
namespace {

Architecture preset(const std::string& name) {
  const auto found = find_model(name);
  EXPECT_TRUE(found.ok()) << name;
  return found ? *found : Architecture{};
}

TEST(Presets, EveryCountIsThePublishedTotal) {
  int exact = 0, rounded = 0;
  for (const ModelPreset& model : model_preset_rows()) {
    ASSERT_GT(model.published_parameters, 0) << model.architecture.name;
    const std::int64_t counted = count_parameters(model.architecture).total() + model.published_other_parameters;
    if (model.published_unit == 1) {
      EXPECT_EQ(counted, model.published_parameters) << model.architecture.name;
      ++exact;
    } else {
      EXPECT_LE(std::abs(counted - model.published_parameters) * 2, model.published_unit) << model.architecture.name;
      ++rounded;
    }
    EXPECT_FALSE(model.architecture.source.empty());
  }
  EXPECT_GE(exact, 40);
  EXPECT_GE(rounded, 13);
}

TEST(Presets, GoldenTotalsDoNotComeFromTheFileThatIsTested) {
  const std::map<std::string, std::int64_t> golden = {
      {"Llama-2-7B", 6'738'415'616},     {"Llama-2-13B", 13'015'864'320}, {"Llama-2-70B", 68'976'648'192},
      {"Llama-3-8B", 8'030'261'248},     {"Llama-3-70B", 70'553'706'496}, {"Llama-3.1-8B", 8'030'261'248},
      {"Llama-3.1-70B", 70'553'706'496}, {"Llama-3.2-1B", 1'235'814'400}, {"Llama-3.2-3B", 3'212'749'824},
      {"Mistral-7B", 7'241'732'096},     {"Qwen2.5-0.5B", 494'032'768},   {"Qwen2.5-1.5B", 1'543'714'304},
      {"Qwen2.5-3B", 3'085'938'688},     {"Qwen2.5-7B", 7'615'616'512},   {"Qwen2.5-14B", 14'770'033'664},
      {"Qwen2.5-32B", 32'763'876'352},   {"Qwen2.5-72B", 72'706'203'648}, {"Qwen3-0.6B", 596'049'920},
      {"Qwen3-1.7B", 1'720'574'976},     {"Qwen3-4B", 4'022'468'096},     {"Qwen3-8B", 8'190'735'360},
      {"Qwen3-14B", 14'768'307'200},     {"Qwen3-32B", 32'762'123'264},   {"Gemma-2B", 2'506'172'416},
      {"Gemma-7B", 8'537'680'896},       {"Gemma-2-2B", 2'614'341'888},   {"Gemma-2-9B", 9'241'705'984},
      {"Gemma-2-27B", 27'227'128'320},   {"Gemma-3-1B", 999'885'952},     {"Llama-3.1-405B", 405'853'388'800},
  };
  for (const auto& [name, total] : golden) EXPECT_EQ(count_parameters(preset(name)).total(), total) << name;
}

TEST(Presets, VisionTowerOfGemma3IsDerived) {
  // SigLIP so400m: 27 layers of width 1152, MLP 4304, biases and LayerNorms; 896 / 14 squared = 4096 positions; 3 x 14 x 14
  // patches.
  const std::int64_t width = 1152, mlp = 4304;
  const std::int64_t layer = 4 * (width * width + width) + 2 * width * mlp + mlp + width + 2 * 2 * width;
  const std::int64_t tower = 27 * layer + 2 * width + 3 * 14 * 14 * width + width + 4096 * width;
  EXPECT_EQ(tower, 416'866'032);
  for (const ModelPreset& model : model_preset_rows()) {
    if (model.published_other_parameters == 0) continue;
    // Projector: width x H, and the RMSNorm of the tower's output.
    EXPECT_EQ(model.published_other_parameters, tower + width * model.architecture.hidden + width) << model.architecture.name;
  }
}

TEST(Parameters, BlocksOfOneLayerByHand) {
  // Qwen2.5-7B: H 3584, 28 heads and 4 KV heads of 128, F 18944.
  const ParameterCount count = count_parameters(preset("qwen2.5-7b"));
  EXPECT_EQ(count.layer.qkv, 3584 * (28 + 2 * 4) * 128);
  EXPECT_EQ(count.layer.qkv_bias, (28 + 2 * 4) * 128);
  EXPECT_EQ(count.layer.attention_output, 28 * 128 * 3584);
  EXPECT_EQ(count.layer.mlp_in, 2 * 3584 * 18944);
  EXPECT_EQ(count.layer.mlp_out, 3584 * 18944);
  EXPECT_EQ(count.layer.replicated(), 2 * 3584);
  EXPECT_EQ(count.head, 152064 * 3584);
  // GPT: LayerNorms of 2H, biases H on both outputs, tied.
  const ParameterCount gpt = count_parameters(preset("gpt3"));
  EXPECT_EQ(gpt.layer.total(), std::int64_t{12} * 12288 * 12288 + 13 * 12288);  // the 12 h^2 + 13 h of Narayanan 2021
  EXPECT_EQ(gpt.layer.replicated(), 2 * 2 * 12288 + 2 * 12288);
  EXPECT_EQ(gpt.positions, 2048 * 12288);
  EXPECT_EQ(gpt.head, 0);
}

TEST(Parameters, VocabularyPadding) {
  EXPECT_EQ(padded_vocab(50257, 128, 1), 50304);
  EXPECT_EQ(padded_vocab(50257, 128, 2), 50432);
  EXPECT_EQ(padded_vocab(128256, 128, 4), 128512);  // 251 * 512
  EXPECT_EQ(padded_vocab(128256, 128, 2), 128256);  // 501 * 256
  EXPECT_EQ(padded_vocab(50257, 1, 1), 50257);
}

TEST(Parameters, MegatronGoldenTinyModel) {
  // Megatron-LM functional test: L12 H512 a8 F2048, biases, LayerNorm, 1024 positions, tied, vocabulary 50304 (tp 1):
  // 64,109,568 parameters; tp 2 with vocabulary 50432: 32,368,640 on each rank.
  Architecture model = preset("gpt2");
  model.layers = 12;
  model.hidden = 512;
  model.ffn_hidden = 2048;
  model.heads = model.kv_heads = 8;
  model.head_dim = 64;
  model.vocab = 50304;
  const ParameterCount one = count_parameters(model);
  EXPECT_EQ(one.total(), 64'109'568);
  model.vocab = 50432;
  const ParameterCount two = count_parameters(model);
  EXPECT_EQ(12 * (two.layer.sharded() / 2 + two.layer.replicated()) + two.embedding / 2 + two.positions + two.final_norm,
            32'368'640);
}

TEST(Flops, MegatronBridgeCausalHalf) {
  // Per token, forward: layers 2 H (2a + 2g) d + 6 H F + 4 a d s/2, head 2 H V; training three times that.
  const auto bridge = [](double L, double H, double F, double a, double g, double d, double V, double s) {
    return 3 * (L * (2 * H * (2 * a + 2 * g) * d + 6 * H * F + 2 * a * d * s) + 2 * H * V);
  };
  const FlopsConvention half;
  const double b405 = training_flops_per_token(preset("llama3.1-405b"), Tokens(8192), half).value();
  EXPECT_DOUBLE_EQ(b405, bridge(126, 16384, 53248, 128, 8, 128, 128256, 8192));
  EXPECT_NEAR(b405, 2.52396e12, 0.00001e12);
  const double b70 = training_flops_per_token(preset("llama3-70b"), Tokens(8192), half).value();
  EXPECT_DOUBLE_EQ(b70, bridge(80, 8192, 28672, 64, 8, 128, 128256, 8192));
  EXPECT_NEAR(b70, 4.4922e11, 0.0001e11);
  // 8B: 744 TFLOP/s at 14451 tokens/s are printed: 51.48 GFLOP per token, within the rounding of 744 (0.07 %).
  EXPECT_NEAR(training_flops_per_token(preset("llama3-8b"), Tokens(8192), half).value(), 744e12 / 14451, 0.5e12 / 14451);
}

TEST(Flops, NemoAndMegatronFull) {
  const FlopsConvention full{AttentionCount::kFull, true, false};
  // Llama 2 7B, 4096 tokens: 768 TFLOP/s at 16671 tokens/s; 32 (8 H^2 + 6 H F + 4 H s) 3 + 6 H V.
  const double h = 4096, expected = 96 * (8 * h * h + 6 * h * 11008 + 4 * h * 4096) + 6 * h * 32000;
  const double counted = training_flops_per_token(preset("llama2-7b"), Tokens(4096), full).value();
  EXPECT_DOUBLE_EQ(counted, expected);
  EXPECT_NEAR(counted, 768e12 / 16671, 0.5e12 / 16671);
  // One million tokens: 536 TFLOP/s at 318 tokens/s, both rounded to three digits.
  EXPECT_NEAR(training_flops_per_token(preset("llama2-7b"), Tokens(1048576), full).value() / (536e12 / 318), 1.0, 0.003);
  // Megatron-LM before 2025-03: 800 / 13812, 8B at 8192 tokens.
  EXPECT_NEAR(training_flops_per_token(preset("llama3-8b"), Tokens(8192), full).value(), 800e12 / 13812, 0.5e12 / 13812);
}

TEST(Flops, NarayananCountsRecompute) {
  // 96 B s l h^2 (1 + s/6h + V/16lh) per step, so 96 l h^2 (...) per token.
  const FlopsConvention hfu{AttentionCount::kFull, true, true};
  const double l = 80, h = 12288, s = 2048, v = 51200;
  EXPECT_NEAR(training_flops_per_token(preset("megatron-145.6b"), Tokens(2048), hfu).value() /
                  (96 * l * h * h * (1 + s / (6 * h) + v / (16 * l * h))),
              1.0, 1e-12);
  // Korthikanti: 72 l h^2 (1 + s/6h + v/12hl) without recompute.
  const FlopsConvention mfu{AttentionCount::kFull, true, false};
  const double l22 = 48, h22 = 6144;
  EXPECT_NEAR(training_flops_per_token(preset("megatron-22b"), Tokens(2048), mfu).value() /
                  (72 * l22 * h22 * h22 * (1 + s / (6 * h22) + v / (12 * h22 * l22))),
              1.0, 1e-12);
}

TEST(Flops, WindowsShortenTheContext) {
  // Gemma 2 2B: 26 layers, every second one global. Below the window nothing changes.
  const Architecture model = preset("gemma-2-2b");
  EXPECT_EQ(model.windowed_layers(), 13);
  EXPECT_EQ(mean_context(model, Tokens(4096), AttentionCount::kCausalHalf), 2048.0);
  // s 32768, W 4096: sum over queries of min(q, W) is W s - W (W - 1) / 2.
  const double w = 4096, s = 32768;
  EXPECT_DOUBLE_EQ(mean_context(model, Tokens(32768), AttentionCount::kCausalHalf),
                   0.5 * (w - w * (w - 1) / (2 * s)) + 0.5 * s / 2);
  EXPECT_EQ(mean_context(model, Tokens(32768), AttentionCount::kFull), 32768.0);
  EXPECT_EQ(preset("gemma-3-1b").windowed_layers(), 22);  // 26 layers, every sixth global: 4
  EXPECT_EQ(preset("mistral-7b-v0.1").windowed_layers(), 32);
  EXPECT_EQ(preset("mistral-7b").windowed_layers(), 0);
}

TEST(Presets, NamesAreFoundAsPeopleWriteThem) {
  EXPECT_EQ(preset("llama3-8b").name, "Llama-3-8B");
  EXPECT_EQ(preset("meta-llama/Meta-Llama-3-8B-Instruct").name, "Llama-3-8B");
  EXPECT_EQ(preset("llama3.1_405b").name, "Llama-3.1-405B");
  EXPECT_EQ(preset("Qwen/Qwen2.5-7B-Instruct").name, "Qwen2.5-7B");
  EXPECT_EQ(preset("google/gemma-3-4b-it").name, "Gemma-3-4B");
  EXPECT_EQ(preset("gemma2-2b").name, "Gemma-2-2B");
  EXPECT_EQ(preset("gemma-2b").name, "Gemma-2B");
  EXPECT_EQ(preset("GPT3_175B").name, "GPT-3-175B");
  EXPECT_EQ(preset("megatron-1t").name, "Megatron-1008B");
  EXPECT_EQ(preset("mistralai/Mistral-7B-Instruct-v0.3").name, "Mistral-7B-v0.3");
}

TEST(Presets, NoTwoNamesAreTheSame) {
  std::set<std::string> seen;
  for (const ModelPreset& model : model_preset_rows()) {
    EXPECT_TRUE(seen.insert(normal_model_name(model.architecture.name)).second) << model.architecture.name;
    for (const std::string& alias : model.aliases) EXPECT_TRUE(seen.insert(normal_model_name(alias)).second) << alias;
  }
}

TEST(Presets, AnUnknownNameSuggestsTheNearest) {
  const auto found = find_model("lama-3.1-8b");
  ASSERT_FALSE(found.ok());
  EXPECT_EQ(found.problems()[0].code, "model.unknown");
  EXPECT_NE(found.problems()[0].repair.find("Llama-3.1-8B"), std::string::npos) << found.problems()[0].repair;
  EXPECT_FALSE(find_model("").ok());
  EXPECT_FALSE(find_model("-").ok());
}

TEST(Presets, ArchitecturesComeInTheOrderOfTheRows) {
  const auto rows = model_preset_rows();
  const auto models = model_presets();
  ASSERT_EQ(models.size(), rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) EXPECT_EQ(models[i], rows[i].architecture);
}

TEST(Presets, AModelWithTwoKvHeadsExists) { EXPECT_EQ(preset("qwen2.5-3b").kv_heads, 2); }

TEST(Presets, ABadRowIsAProblemWithItsPlace) {
  const auto unknown = parse_model_presets("[[model]]\nname = \"x\"\nsource = \"y\"\nlayer = 3\n");
  ASSERT_FALSE(unknown.ok());
  EXPECT_EQ(unknown.problems()[0].where, "models.toml:4");
  EXPECT_FALSE(parse_model_presets("[[model]\n").ok());
  EXPECT_FALSE(parse_model_presets("").ok());
}

}  // namespace
}  // namespace cpfit
