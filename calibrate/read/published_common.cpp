// Training tables of no family that has an adapter: the common columns alone, read as a person would who knows the software, the
// GPU and the model by the names that are printed. What has to be supposed is said in the row's conditions.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <regex>
#include <string>

#include "calibrate/read/published_adapters.h"

namespace cpfit::published {

namespace {

/// Software by a word of its name, first match wins: the rule set that stands for it, and how it counts FLOPs (published/README's
/// table of definitions; where none is known, all keys are counted, as 6 N + 12 L h s does).
struct Software {
  std::string_view word, rules;
  FlopsConvention flops;
};

constexpr FlopsConvention kAllKeys{AttentionCount::kFull, true, false};
constexpr FlopsConvention kHalfTheKeys{AttentionCount::kCausalHalf, true, false};
constexpr FlopsConvention kAllKeysAgain{AttentionCount::kFull, true, true};

constexpr std::array kSoftware = {
    Software{"megatron-bridge", "megatron-bridge", kHalfTheKeys},
    Software{"automodel", "torchtitan", kHalfTheKeys},  // PyTorch's FSDP2
    Software{"nemo 25", "megatron-bridge", kHalfTheKeys},
    Software{"nemo", "nemo-24", kAllKeys},
    Software{"meta internal", "llama3-meta", kHalfTheKeys},  // Llama 3's own
    Software{"torchtitan", "torchtitan", kAllKeys},
    Software{"fsdp2", "torchtitan", kAllKeys},
    Software{"alst", "deepspeed-ulysses", kAllKeysAgain},  // Megatron's formula with the repeated forward
    Software{"arctic", "deepspeed-ulysses", kAllKeysAgain},
    Software{"ulysses", "deepspeed-ulysses", kAllKeys},
    Software{"megatron-deepspeed", "megatron-2024", kAllKeys},
    Software{"deepspeed", "deepspeed-ulysses", kAllKeys},
    Software{"internevo", "internevo", kAllKeysAgain},
    Software{"loongtrain", "internevo", kAllKeysAgain},
    Software{"burst", "burstengine", kAllKeys},
    Software{"distflash", "distflashattn", kAllKeys},
    Software{"lightseq", "distflashattn", kAllKeys},
    Software{"ring-flash", "ring-flash-attention", kAllKeys},
    Software{"ring flash", "ring-flash-attention", kAllKeys},
    Software{"easycontext", "ring-flash-attention", kAllKeys},
    Software{"yunchang", "usp-2404", kHalfTheKeys},
    Software{"long-context-attention", "usp-2404", kHalfTheKeys},
    Software{"usp", "usp-2404", kHalfTheKeys},
    Software{"nanotron", "nanotron", kAllKeys},
    Software{"maxtext", "maxtext", kAllKeys},
    Software{"jax", "maxtext", kAllKeys},
    Software{"kwai", "megatron-kwai", kHalfTheKeys},
    Software{"megatron", "megatron-2024", kAllKeys},
    Software{"megascale", "megatron-2024", kAllKeys},
    Software{"fsdp", "pytorch-fsdp", kAllKeys},  // FSDP1 by any launcher
    Software{"foundry", "llm-foundry", kAllKeys},
    Software{"composer", "llm-foundry", kAllKeys},
    Software{"litgpt", "pytorch-fsdp", kAllKeys},
    Software{"lightning", "pytorch-fsdp", kAllKeys},
    Software{"accelerate", "pytorch-fsdp", kAllKeys},
    Software{"hugging", "pytorch-fsdp", kAllKeys},
    Software{"pytorch", "pytorch-fsdp", kAllKeys},
};

/// The software a row names; without one its kind of sharding tells PyTorch's FSDP from Megatron.
Software software_of(const Row& row) {
  for (const Software& known : kSoftware) {
    if (row.says("framework", known.word)) return known;
  }
  for (const std::string_view word : {"fsdp", "hsdp", "full_shard"}) {
    if (row.says("sharding", word) || row.says("source", word)) return {word, "pytorch-fsdp", kAllKeys};
  }
  if (row.says("sharding", "zero-3") || row.says("sharding", "zero3")) return {"", "deepspeed-ulysses", kAllKeys};
  return {"", "megatron-2024", kAllKeys};
}

/// Counts multiplied; a product that no job has refuses the row and gives 0.
std::int64_t product(Draft& draft, std::initializer_list<std::int64_t> counts) {
  constexpr double kMost = 1e12;
  double all = 1;
  for (const std::int64_t count : counts) all *= static_cast<double>(count);
  if (all >= 0 && all <= kMost) return static_cast<std::int64_t>(all);
  draft.refuse("its counts multiply to more than any job has");
  return 0;
}

template <typename T>
bool offers(const std::vector<T>& values, T value) {
  return std::find(values.begin(), values.end(), value) != values.end();
}

std::optional<StateSharding> sharding_of(const Row& row) {
  const auto says = [&](std::string_view word) { return row.says("sharding", word); };
  if (row.text("sharding") == "FSDP=0") return std::nullopt;
  if (says("not resharded")) return StateSharding::kZero2;
  if (says("zero-3") || says("zero3") || says("zero 3") || says("full_shard") || says("fsdp") || says("hsdp"))
    return StateSharding::kZero3;
  if (says("zero-2") || says("zero2") || says("zero 2") || says("shard_grad_op")) return StateSharding::kZero2;
  if (says("zero-1") || says("zero1") || says("zero 1") || says("distributed optimizer")) return StateSharding::kZero1;
  if (says("ddp") || says("none") || says("zero-0")) return StateSharding::kNone;
  return std::nullopt;
}

std::optional<CpComm> exchange_of(const Row& row) {
  const auto says = [&](std::string_view word) { return row.says("cp_method", word); };
  const bool heads = says("ulysses") || says("a2a") || says("all-to-all") || says("all_to_all") || says("alltoall");
  const bool ring = says("ring") || says("p2p") || says("zigzag") || says("striped");
  if (says("double")) return CpComm::kDoubleRing;
  if ((heads && ring) || says("usp") || says("hybrid") || says("2d")) return CpComm::kA2aP2p;
  if (heads) return CpComm::kA2a;
  if (says("gather")) return CpComm::kAllGather;
  if (ring || says("megatron")) return CpComm::kP2p;
  return std::nullopt;
}

/// A rule set whose software exchanges keys and values this way, for tables that name a method their software is not known for.
std::string_view rules_with(CpComm exchange, StateSharding sharding) {
  switch (exchange) {
    case CpComm::kA2a:
      return "deepspeed-ulysses";
    case CpComm::kDoubleRing:
      return "ring-flash-attention";
    case CpComm::kAllGather:
      return sharding == StateSharding::kZero3 ? "maxtext" : "megatron-core";
    case CpComm::kP2p:
      return sharding == StateSharding::kZero3 ? "torchtitan" : "megatron-core";
    case CpComm::kA2aP2p:
      break;
  }
  return sharding == StateSharding::kZero3 ? "internevo" : "megatron-core";
}

/// The exchange, the shards and, where the software named does not know them, the rule set that does.
void set_context_parallelism(const Row& row, Reading& reading, Draft& draft) {
  Recipe& recipe = draft.recipe();
  const auto ulysses = row.integer("ulysses"), ring = row.integer("ring");
  if (ulysses && ring)
    recipe.cp = static_cast<std::int32_t>(std::min<std::int64_t>(kMaxDegree, product(draft, {*ulysses, *ring})));
  if (recipe.cp <= 1) {
    recipe.cp = 1;
    return;
  }
  std::optional<CpComm> exchange = exchange_of(row);
  if (ulysses && ring) exchange = *ring <= 1 ? CpComm::kA2a : *ulysses <= 1 ? CpComm::kP2p : CpComm::kA2aP2p;
  const auto known = reading.rules(recipe.framework);
  if (exchange && !offers(known->cp_comms, *exchange)) {
    recipe.framework = rules_with(*exchange, recipe.state_sharding);
    draft.run.conditions.push_back(
        fmt::format("such an exchange is not known of this software: planned as {}", recipe.framework));
  }
  const auto rules = reading.rules(recipe.framework);
  recipe.cp_comm = exchange.value_or(rules->cp_comms.front());
  if (recipe.cp_comm == CpComm::kA2a) recipe.a2a_degree = recipe.cp;
  if (recipe.cp_comm == CpComm::kDoubleRing) {
    recipe.window = std::min<std::int32_t>(recipe.cp, draft.run.scenario.cluster.gpus_per_node);
    if (recipe.window == recipe.cp) recipe.cp_comm = CpComm::kP2p, recipe.window = 1;
  }
  if (recipe.cp_comm == CpComm::kA2aP2p) {
    if (!ulysses) draft.not_said("a2a_degree");
    recipe.a2a_degree = static_cast<std::int32_t>(std::clamp<std::int64_t>(ulysses.value_or(1), 1, kMaxDegree));
  }
  if (row.says("cp_method", "striped")) recipe.shard_layout = ShardLayout::kStriped;
  if (!rules->shard_layouts.empty() && !offers(rules->shard_layouts, recipe.shard_layout))
    recipe.shard_layout = rules->shard_layouts.front();
}

/// "1/3", "1/2": the share of the layers that are repeated.
std::optional<double> fraction_in(std::string_view text) {
  const auto slash = text.find('/');
  if (slash == std::string_view::npos || slash == 0 || slash + 1 >= text.size()) return std::nullopt;
  const int over = text[slash - 1] - '0', under = text[slash + 1] - '0';
  if (over < 1 || over > 9 || under < over || under > 9) return std::nullopt;
  return static_cast<double>(over) / under;
}

void set_recompute(const Row& row, bool by_layers, Draft& draft) {
  const auto text = row.text("recompute");
  if (text.empty()) return;  // not said: searched
  std::optional<Recompute> recompute = recompute_of(text);
  const auto share = fraction_in(text);
  if (share || (by_layers && contains_word(text, "selective"))) {  // FSDP's wrapper repeats every n-th layer, no operators
    const auto layers = static_cast<std::int32_t>(std::lround(static_cast<double>(draft.model().layers) * share.value_or(0.5)));
    recompute = Recompute{RecomputeKind::kBlock, layers};
    if (!share) draft.run.conditions.push_back("selective by layers: every second one is supposed");
  }
  for (const std::string_view word : {"yes", "true", "on", "checkpoint", "remat"}) {
    if (!recompute && contains_word(text, word)) recompute = Recompute{RecomputeKind::kFull, 0};
  }
  for (const std::string_view word : {"false", "off"}) {
    if (contains_word(text, word) && !contains_word(text, "offload")) recompute = Recompute{};
  }
  if (contains_word(text, "offload"))
    draft.run.conditions.push_back("checkpoints in host memory: their copies are supposed to be hidden");
  if (!recompute) return;
  draft.recipe().recompute = *recompute;
  std::erase(draft.run.unknown, "recompute");
}

/// Sequences per step: printed, or what the printed parts multiply to; else half a million tokens are supposed.
void set_batch(const Row& row, Draft& draft) {
  Training& training = draft.training();
  Recipe& recipe = draft.recipe();
  const std::int64_t group = product(draft, {recipe.tp, recipe.cp, recipe.pp});
  const std::int64_t dp = std::max<std::int64_t>(1, recipe.dp > 0 ? recipe.dp : group > 0 ? draft.run.gpus / group : 1);
  const std::int64_t sequence = training.sequence.count();
  if (training.global_batch > 0 || sequence <= 0) return;
  if (const auto per_rank = row.integer("batch_per_dp")) {
    training.global_batch = product(draft, {dp, *per_rank});
  } else if (const auto tokens = row.integer("tokens_per_step")) {
    training.global_batch = *tokens / sequence;
  } else if (!row.blank("micro_batch")) {
    training.global_batch = product(draft, {dp, recipe.micro_batch, row.integer("grad_accum").value_or(1)});
    if (row.blank("grad_accum")) draft.run.conditions.push_back("one micro-batch per step: no accumulation is printed");
  } else {
    constexpr std::int64_t kTokens = 1 << 19, kFilled = 4;  // micro-batches per stage that keep a pipeline's bubble small
    const std::int64_t one_each = product(draft, {sequence, dp}), filled = recipe.pp > 1 ? kFilled * recipe.pp : 1;
    training.global_batch = product(draft, {dp, std::max(filled, kTokens / std::max<std::int64_t>(1, one_each))});
    draft.run.conditions.push_back(
        "the batch is not printed: half a million tokens a step, or four micro-batches a stage, are supposed");
  }
}

/// The place: the GPU as its column prints it, with the memory of its own column where a GPU is sold with two.
std::string place_of(const Row& row) {
  if (row.says("gpu", "A100") && row.text("gpu_mem_gb").starts_with("40") && !row.says("gpu", "PCIe"))
    return "a100-40gb-8x200g-roce";
  if (row.says("gpu", "H100") && row.says("gpu", "HBM2e")) return "torchtitan-h100";
  if (row.says("gpu", "A3 Mega")) return "gcp-a3-mega";
  if (row.says("gpu", "A3 Ultra")) return "gcp-a3-ultra";
  return {};
}

/// What one node carries into the fabric, as the interconnect column prints it: "8 x 400 Gb/s", "1.6 Tb/s RDMA per node", "400
/// Gb/s RoCE per GPU". Clauses about NVLink alone say nothing of it.
std::optional<BytesPerSecond> node_rate_of(std::string_view text, std::int32_t gpus_per_node) {
  static const std::regex kRate(R"((?:(\d{1,4})\s*x\s*)?(\d{1,6}(?:\.\d{1,6})?)\s*-?(gb|tb)(?:it)?(?:/s|ps)?\b)",
                                std::regex::icase);
  std::size_t begin = 0;
  while (begin < text.size()) {
    const std::size_t end = std::min(text.size(), text.find_first_of(";,", begin));
    const std::string clause(text.substr(begin, end - begin));
    begin = end + 1;
    const bool inside = contains_word(clause, "nvlink") || contains_word(clause, "pcie");
    const bool outside = contains_word(clause, "infiniband") || contains_word(clause, "rdma") || contains_word(clause, "roce") ||
                         contains_word(clause, "efa") || contains_word(clause, "ethernet") || contains_word(clause, "nic");
    constexpr std::size_t kLongest = 200;  // of a clause that is a rate; the expression's matcher recurses
    if (clause.size() > kLongest) continue;
    std::smatch found;
    if ((inside && !outside) || !std::regex_search(clause, found, kRate)) continue;
    if (const std::string unit = found[3]; unit[1] == 'B') continue;  // GB/s are of links inside the node
    const double each = std::stod(found[2]) * (contains_word(found[3].str(), "t") ? 1e12 : 1e9) / 8;
    const double count = found[1].matched ? std::stod(found[1]) : contains_word(clause, "per gpu") ? gpus_per_node : 1.0;
    return BytesPerSecond(each * count);
  }
  return std::nullopt;
}

/// The fabric that the row prints instead of the one its GPU is usually sold with.
void set_fabric(const Row& row, Reading& reading, Draft& draft) {
  Cluster& cluster = draft.run.scenario.cluster;
  const auto rate = node_rate_of(row.text("interconnect"), cluster.gpus_per_node);
  if (!rate || draft.refused || cluster.nodes <= 1) return;
  if (auto printed = reading.cluster(cluster.name, draft.run.gpus, *rate)) {
    cluster = std::move(*printed);
    draft.run.conditions.push_back(
        fmt::format("{:.4g} Gb/s from each node into the fabric, as printed", rate->value() * 8 / 1e9));
  }
}

/// The attention kernel that a row names beside its software; nothing: the software's own.
std::optional<std::pair<AttentionBackend, std::string_view>> attention_of(const Row& row) {
  const auto says = [&](std::string_view word) { return row.says("framework", word) || row.says("variant", word); };
  if (says("without flash") || says("no flash"))
    return std::pair(AttentionBackend::kUnfused, "scores in memory, no fused kernel");
  const bool later = says("flashattention-2") || says("flashattention-3") || says("fa2") || says("fa3") || says("flash-attn 2");
  if (says("flashattention") && !later) return std::pair(AttentionBackend::kTriton, "FlashAttention of the first generation");
  if (says("flashattention-2") || says("fa2")) return std::pair(AttentionBackend::kFlash2, "FlashAttention-2");
  if (says("flashattention-3") || says("fa3")) return std::pair(AttentionBackend::kFlash3, "FlashAttention-3");
  return std::nullopt;
}

/// What the row says of its software beside the name: the attention kernel, whether a compiler fused its operators, or both.
void set_rules(const Row& row, Reading& reading, Draft& draft) {
  const auto kernel = attention_of(row);
  const bool compiled = row.says("framework", "compile") || row.says("variant", "compile") || row.says("notes", "compile");
  if (!kernel && !compiled) return;
  if (kernel) draft.run.conditions.push_back(fmt::format("attention: {}", kernel->second));
  if (compiled) draft.run.conditions.push_back("torch.compile fuses element-wise operators");
  const std::string key = fmt::format("{}{}", kernel ? kernel->second : "", compiled ? ", compiled" : "");
  draft.run.rules = reading.rules(draft.recipe().framework, key, [&](RuleSet& set) {
    if (kernel) set.attention_backend = set.attention_backend_ampere = set.attention_backend_blackwell = kernel->first;
    if (compiled) set.fused_elementwise = true;
  });
}

void set_rates(const Row& row, const FlopsConvention& convention, Draft& draft) {
  measure_throughput(draft, row, convention);
  const auto has = [&](Metric metric) {
    return std::any_of(draft.run.measured.begin(), draft.run.measured.end(),
                       [&](const auto& one) { return one.first == metric; });
  };
  const double gpus = static_cast<double>(draft.run.gpus), sequence = static_cast<double>(draft.training().sequence.count());
  if (has(Metric::kTokensPerSecondPerGpu) || gpus <= 0) return;
  if (const auto total = row.figure("total_tokens_per_s"))
    draft.measure(Metric::kTokensPerSecondPerGpu, *total / gpus);
  else if (const auto samples = row.figure("samples_per_s"))
    draft.measure(Metric::kTokensPerSecondPerGpu, *samples * sequence / gpus);
}

}  // namespace

void read_common_training(const Row& row, Reading& reading) {
  const Software software = software_of(row);
  Draft draft = draft_of(row, reading, std::string(software.rules), place_of(row));
  Recipe& recipe = draft.recipe();
  if (software.word.empty())
    draft.run.conditions.push_back(fmt::format("the software is not known: planned as {}", software.rules));
  if (draft.model().layers == 0) {
    if (auto model = model_of_columns(row)) draft.model() = std::move(*model);
  }
  if (row.says("framework", "LoRA") || row.says("task", "lora")) draft.refuse("LoRA: frozen weights are not modelled");

  set_fabric(row, reading, draft);
  const auto rules = reading.rules(recipe.framework);
  const auto sharding = sharding_of(row);
  recipe.state_sharding = sharding.value_or(rules->state_shardings.back());
  if (!offers(rules->state_shardings, recipe.state_sharding)) {
    recipe.framework = recipe.state_sharding == StateSharding::kZero3 && recipe.tp == 1 ? "pytorch-fsdp" : "deepspeed-ulysses";
    if (!offers(reading.rules(recipe.framework)->state_shardings, recipe.state_sharding)) recipe.framework = "deepspeed-ulysses";
    draft.run.conditions.push_back(fmt::format("such a sharding is not known of this software: planned as {}", recipe.framework));
  }
  if (row.says("sharding", "hsdp") || row.says("sharding", "hybrid"))
    draft.run.conditions.push_back("hybrid sharding: shards over all data ranks are supposed");
  set_context_parallelism(row, reading, draft);

  // A degree that a software without that axis leaves blank is 1; so is each where dp x cp are all the GPUs.
  const bool flat = recipe.state_sharding == StateSharding::kZero3 || row.says("sharding", "zero") || row.says("sharding", "ddp");
  const std::int64_t dp = row.integer("dp").value_or(0);
  if (flat || (dp > 0 && dp * recipe.cp == draft.run.gpus)) {
    std::erase(draft.run.unknown, "tp");
    std::erase(draft.run.unknown, "pp");
  }
  if (software.rules == "nemo-24") nemo_defaults(draft);
  if (software.rules == "megatron-bridge") bridge_defaults(draft);
  if (software.rules == "nemo-24") std::erase(draft.run.unknown, "recompute");  // none in the recipes behind their tables
  if (recipe.pp > 1 && !row.blank("vpp") && recipe.state_sharding != StateSharding::kZero3) megatron_layout(draft);
  if (draft.model().position == PositionKind::kLearned)
    draft.model().max_positions = std::max<std::int64_t>(draft.model().max_positions, draft.training().sequence.count());
  const bool by_layers =
      recipe.framework == "llm-foundry" || recipe.framework == "pytorch-fsdp" || recipe.framework == "torchtitan";
  set_recompute(row, by_layers, draft);
  set_batch(row, draft);
  set_rules(row, reading, draft);
  set_rates(row, software.flops, draft);
  draft.run.group = std::string(row.text("framework"));
  file(std::move(draft), row, reading);
}

}  // namespace cpfit::published
