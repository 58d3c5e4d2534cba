#include "model/transformer/config_families.h"

namespace cpfit::config {

namespace {

constexpr Flag kNever{"", false};
constexpr Flag kAlways{"", true};
constexpr Flag kAttentionBias{"attention_bias", false};
constexpr Flag kMlpBias{"mlp_bias", false};
constexpr Flag kUseBias{"use_bias", true};

constexpr Keys kGemmaKeys{.activation_first = "hidden_activation"};
constexpr Keys kGpt2Keys{.layers = "n_layer",
                         .hidden = "n_embd",
                         .ffn = "n_inner",
                         .heads = "n_head",
                         .kv_heads = "",
                         .head_dim = "",
                         .positions = "n_positions",
                         .activation = "activation_function",
                         .hidden_dropout = "resid_pdrop",
                         .attention_dropout = "attn_pdrop"};
constexpr Keys kNeoxKeys{.kv_heads = "", .head_dim = "", .hidden_dropout = "hidden_dropout"};
constexpr Keys kStarcoderKeys{.head_dim = "", .hidden_dropout = "residual_dropout"};
constexpr Keys kPhiKeys{.head_dim = "", .hidden_dropout = "resid_pdrop"};
constexpr Keys kInternKeys{.head_dim = ""};
constexpr Keys kChatglmKeys{.layers = "num_layers",
                            .ffn = "ffn_hidden_size",
                            .kv_heads = "multi_query_group_num",
                            .head_dim = "kv_channels",
                            .vocab = "padded_vocab_size",
                            .positions = "seq_length",
                            .activation = "",
                            .hidden_dropout = "hidden_dropout"};

// clang-format off
constexpr Family kFamilies[] = {
    {.model_type = "llama", .activation = "silu", .qkv_bias = kAttentionBias, .output_bias = kAttentionBias, .mlp_bias = kMlpBias},
    {.model_type = "mistral", .activation = "silu", .kv_heads = KvHeads::kRequired, .window = Window::kPlain,
     .window_default = 4096},
    {.model_type = "qwen2", .activation = "silu", .qkv_bias = kAlways, .output_bias = kNever, .kv_heads = KvHeads::kRequired,
     .window = Window::kSwitched, .window_default = 4096},
    {.model_type = "qwen3", .activation = "silu", .qkv_bias = kAttentionBias, .output_bias = kAttentionBias,
     .kv_heads = KvHeads::kRequired, .head_dim = 128, .qk_norm = true, .window = Window::kSwitched, .window_default = 4096},
    {.model_type = "gemma", .keys = kGemmaKeys, .activation = "gelu_pytorch_tanh", .tied = true, .qkv_bias = kAttentionBias,
     .output_bias = kAttentionBias, .kv_heads = KvHeads::kRequired, .head_dim = 256},
    {.model_type = "gemma2", .keys = kGemmaKeys, .activation = "gelu_pytorch_tanh", .tied = true, .qkv_bias = kAttentionBias,
     .output_bias = kAttentionBias, .kv_heads = KvHeads::kRequired, .head_dim = 256, .norms_per_layer = 4,
     .window = Window::kPatterned, .window_default = 4096, .period_default = 2},
    {.model_type = "gemma3_text", .keys = kGemmaKeys, .activation = "gelu_pytorch_tanh", .tied = true, .qkv_bias = kAttentionBias,
     .output_bias = kAttentionBias, .kv_heads = KvHeads::kRequired, .heads_default = 8, .kv_heads_default = 4,
     .vocab_default = 262208, .head_dim = 256, .qk_norm = true, .norms_per_layer = 4, .window = Window::kPatterned,
     .window_default = 4096, .period_default = 6},
    {.model_type = "gpt2", .keys = kGpt2Keys, .norm = Norm::kLayer, .gated = false, .activation = "gelu_new",
     .position = PositionKind::kLearned, .tied = true, .qkv_bias = kAlways, .output_bias = kAlways, .mlp_bias = kAlways,
     .kv_heads = KvHeads::kNone, .dropout_default = 0.1, .ffn_per_hidden = 4},
    {.model_type = "gpt_neox", .keys = kNeoxKeys, .norm = Norm::kLayer, .gated = false, .activation = "gelu",
     .qkv_bias = {"attention_bias", true}, .output_bias = {"attention_bias", true}, .mlp_bias = kAlways,
     .kv_heads = KvHeads::kNone},
    {.model_type = "phi3", .keys = kPhiKeys, .activation = "silu", .window = Window::kPlain},
    {.model_type = "starcoder2", .keys = kStarcoderKeys, .norm = Norm::kLayer, .gated = false, .activation = "gelu_pytorch_tanh",
     .tied = true, .qkv_bias = kUseBias, .output_bias = kUseBias, .mlp_bias = kUseBias, .kv_heads = KvHeads::kRequired,
     .window = Window::kPlain},
    {.model_type = "internlm2", .keys = kInternKeys, .activation = "silu", .qkv_bias = {"bias", true},
     .output_bias = {"bias", true}},
    {.model_type = "olmo2", .activation = "silu", .qkv_bias = kAttentionBias, .output_bias = kAttentionBias, .qk_norm = true,
     .qk_norm_all_heads = true},
    {.model_type = "olmo3", .activation = "silu", .qkv_bias = kAttentionBias, .output_bias = kAttentionBias, .qk_norm = true,
     .qk_norm_all_heads = true, .window = Window::kPatterned, .window_default = 4096, .period_default = 4},
    {.model_type = "granite", .activation = "silu", .qkv_bias = kAttentionBias, .output_bias = kAttentionBias,
     .mlp_bias = kMlpBias},
    {.model_type = "nemotron", .norm = Norm::kLayer, .gated = false, .activation = "relu2", .qkv_bias = kAttentionBias,
     .output_bias = kAttentionBias, .mlp_bias = kMlpBias},
    {.model_type = "chatglm", .keys = kChatglmKeys, .activation = "silu", .qkv_bias = {"add_qkv_bias", false},
     .output_bias = {"add_bias_linear", false}, .mlp_bias = {"add_bias_linear", false},
     .kv_heads_switch = "multi_query_attention"},
};

constexpr std::string_view kMoe = "a mixture-of-experts model";
constexpr std::string_view kStateSpace = "built on state-space or linear-attention layers";
constexpr std::string_view kNotDecoder = "not a decoder-only transformer";
constexpr std::string_view kLatent = "built on multi-head latent attention";

constexpr Refused kRefused[] = {
    {"mixtral", kMoe},      {"qwen2_moe", kMoe},         {"qwen3_moe", kMoe},         {"deepseek", kMoe},
    {"deepseek_v2", kMoe},  {"deepseek_v3", kMoe},       {"gpt_oss", kMoe},           {"olmoe", kMoe},
    {"phimoe", kMoe},       {"dbrx", kMoe},              {"grok-1", kMoe},            {"llama4", kMoe},
    {"llama4_text", kMoe},  {"granitemoe", kMoe},        {"glm4_moe", kMoe},          {"ernie4_5_moe", kMoe},
    {"minimax", kMoe},      {"kimi_k2", kMoe},           {"arctic", kMoe},            {"hunyuan_v1_moe", kMoe},
    {"jamba", kStateSpace}, {"mamba", kStateSpace},      {"mamba2", kStateSpace},     {"falcon_mamba", kStateSpace},
    {"rwkv", kStateSpace},  {"qwen3_next", kStateSpace}, {"bamba", kStateSpace},      {"recurrent_gemma", kStateSpace},
    {"zamba2", kStateSpace}, {"nemotron_h", kStateSpace}, {"minicpm3", kLatent},      {"bert", kNotDecoder},
    {"roberta", kNotDecoder}, {"t5", kNotDecoder},       {"bart", kNotDecoder},       {"whisper", kNotDecoder},
    {"vit", kNotDecoder},   {"clip", kNotDecoder},       {"modernbert", kNotDecoder}, {"deberta-v2", kNotDecoder},
};
// clang-format on

}  // namespace

std::span<const Family> families() { return kFamilies; }
std::span<const Refused> refused_types() { return kRefused; }

}  // namespace cpfit::config
