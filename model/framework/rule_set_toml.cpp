// Reads rule sets from TOML. Every policy is [value, "source"], so that a report can say where a rule comes from.
#include <toml++/toml.h>
#include <algorithm>
#include <optional>
#include <span>
#include <utility>
#include <variant>

#include "model/framework/rule_set.h"

namespace cpfit {
namespace {

template <class E>
struct Word {
  std::string_view text;
  E value;
};

constexpr Word<AttentionBackend> kBackends[] = {{"cudnn", AttentionBackend::kCudnn},
                                                {"flash2", AttentionBackend::kFlash2},
                                                {"flash3", AttentionBackend::kFlash3},
                                                {"unfused", AttentionBackend::kUnfused},
                                                {"triton", AttentionBackend::kTriton}};
constexpr Word<TpOverlap> kTpOverlaps[] = {
    {"none", TpOverlap::kNone}, {"user_buffers", TpOverlap::kUserBuffers}, {"own_shard", TpOverlap::kOwnShard}};
constexpr Word<DkvWire> kWires[] = {{"nominal", DkvWire::kNominal}, {"fp32", DkvWire::kFp32}};
constexpr Word<RingBuffers> kBuffers[] = {{"all_steps", RingBuffers::kAllSteps}, {"two_slots", RingBuffers::kTwoSlots}};
constexpr Word<KvExchange> kExchanges[] = {
    {"ring", KvExchange::kRing}, {"all_gather_once", KvExchange::kAllGatherOnce}, {"balanced_pairs", KvExchange::kBalancedPairs}};
constexpr Word<SelectiveRecompute> kSelective[] = {{"core_attention", SelectiveRecompute::kCoreAttention},
                                                   {"norms_and_activation", SelectiveRecompute::kNormsAndActivation},
                                                   {"every_second_matmul", SelectiveRecompute::kEverySecondMatmul}};
constexpr Word<Axis> kAxes[] = {{"tp", Axis::kTp}, {"cp", Axis::kCp}, {"dp", Axis::kDp}, {"pp", Axis::kPp}};
constexpr Word<CpComm> kCpComms[] = {{"p2p", CpComm::kP2p},
                                     {"all_gather", CpComm::kAllGather},
                                     {"a2a", CpComm::kA2a},
                                     {"a2a+p2p", CpComm::kA2aP2p},
                                     {"double_ring", CpComm::kDoubleRing}};
constexpr Word<ShardLayout> kShards[] = {
    {"zigzag", ShardLayout::kZigzag}, {"contiguous", ShardLayout::kContiguous}, {"striped", ShardLayout::kStriped}};
constexpr Word<LayoutKind> kLayouts[] = {{"even", LayoutKind::kEven},
                                         {"embedding_and_loss_as_layers", LayoutKind::kEmbeddingAndLossAsLayers},
                                         {"first_last", LayoutKind::kFirstLast},
                                         {"explicit", LayoutKind::kExplicit},
                                         {"cost_balanced", LayoutKind::kCostBalanced}};
constexpr Word<StateSharding> kShardings[] = {{"none", StateSharding::kNone},
                                              {"zero1", StateSharding::kZero1},
                                              {"zero2", StateSharding::kZero2},
                                              {"zero3", StateSharding::kZero3}};

constexpr Word<Schedule> kSchedules[] = {{"1f1b", Schedule::kOneFOneB},
                                         {"interleaved", Schedule::kInterleaved},
                                         {"gpipe", Schedule::kGpipe},
                                         {"zb_h1", Schedule::kZeroBubble}};

template <class E>
std::span<const Word<E>> words();
template <>
std::span<const Word<AttentionBackend>> words() {
  return kBackends;
}
template <>
std::span<const Word<TpOverlap>> words() {
  return kTpOverlaps;
}
template <>
std::span<const Word<DkvWire>> words() {
  return kWires;
}
template <>
std::span<const Word<RingBuffers>> words() {
  return kBuffers;
}
template <>
std::span<const Word<KvExchange>> words() {
  return kExchanges;
}
template <>
std::span<const Word<SelectiveRecompute>> words() {
  return kSelective;
}
template <>
std::span<const Word<Axis>> words() {
  return kAxes;
}
template <>
std::span<const Word<CpComm>> words() {
  return kCpComms;
}
template <>
std::span<const Word<ShardLayout>> words() {
  return kShards;
}
template <>
std::span<const Word<LayoutKind>> words() {
  return kLayouts;
}
template <>
std::span<const Word<StateSharding>> words() {
  return kShardings;
}
template <>
std::span<const Word<Schedule>> words() {
  return kSchedules;
}

// read_value: false when the node does not hold a value of the field's type.
bool read_value(const toml::node& node, bool& out) {
  const std::optional<bool> value = node.value_exact<bool>();
  if (value) out = *value;
  return value.has_value();
}
bool read_value(const toml::node& node, double& out) {
  const std::optional<double> value = node.value<double>();
  if (value) out = *value;
  return value.has_value();
}
bool read_value(const toml::node& node, std::int32_t& out) {
  const std::optional<std::int32_t> value = node.value<std::int32_t>();
  if (value) out = *value;
  return value.has_value();
}
bool read_value(const toml::node& node, Bytes& out) {
  const std::optional<double> value = node.value<double>();
  if (value) out = Bytes(*value);
  return value.has_value();
}
template <class E>
  requires std::is_enum_v<E>
bool read_value(const toml::node& node, E& out) {
  const std::optional<std::string_view> text = node.value<std::string_view>();
  if (!text) return false;
  for (const Word<E>& word : words<E>()) {
    if (word.text == *text) {
      out = word.value;
      return true;
    }
  }
  return false;
}
template <class E>
bool read_value(const toml::node& node, std::vector<E>& out) {
  const toml::array* list = node.as_array();
  if (list == nullptr) return false;
  std::vector<E> values;
  for (const toml::node& element : *list) {
    E value{};
    if (!read_value(element, value)) return false;
    values.push_back(value);
  }
  out = std::move(values);
  return true;
}

using Member =
    std::variant<bool RuleSet::*, double RuleSet::*, std::int32_t RuleSet::*, Bytes RuleSet::*, AttentionBackend RuleSet::*,
                 TpOverlap RuleSet::*, DkvWire RuleSet::*, RingBuffers RuleSet::*, KvExchange RuleSet::*,
                 SelectiveRecompute RuleSet::*, std::vector<CpComm> RuleSet::*, std::vector<ShardLayout> RuleSet::*,
                 std::vector<LayoutKind> RuleSet::*, std::vector<StateSharding> RuleSet::*, std::vector<Schedule> RuleSet::*,
                 std::vector<Axis> RuleSet::*>;
struct Policy {
  std::string_view key;
  Member member;
};

// One line per policy; the key is the member's name.
#define CPFIT_POLICY(name) {#name, &RuleSet::name}
constexpr Policy kPolicies[] = {
    CPFIT_POLICY(ring_buffers),
    CPFIT_POLICY(dkv_wire),
    CPFIT_POLICY(dkv_homecoming_hop),
    CPFIT_POLICY(accumulate_fp32),
    CPFIT_POLICY(reverse_ring_in_backward),
    CPFIT_POLICY(two_compute_streams),
    CPFIT_POLICY(kv_exchange),
    CPFIT_POLICY(kv_in_one_message),
    CPFIT_POLICY(kv_heads_repeated_in_ring),
    CPFIT_POLICY(backward_rotates_queries),
    CPFIT_POLICY(ring_pair_communicators),
    CPFIT_POLICY(shared_dkv_communicator),
    CPFIT_POLICY(axes),
    CPFIT_POLICY(cp_comms),
    CPFIT_POLICY(shard_layouts),
    CPFIT_POLICY(cp_chunk_multiple),
    CPFIT_POLICY(sequence_multiple_has_tp),
    CPFIT_POLICY(norm_activation_bytes_per_hidden),
    CPFIT_POLICY(mlp_activation_bytes_per_ffn),
    CPFIT_POLICY(sequence_first_attention),
    CPFIT_POLICY(unfused_attention_buffer),
    CPFIT_POLICY(selective_recompute),
    CPFIT_POLICY(a2a_keeps_both_outputs),
    CPFIT_POLICY(recompute_mlp),
    CPFIT_POLICY(checkpoint_kept_attention),
    CPFIT_POLICY(fp8_saves_low_precision),
    CPFIT_POLICY(fp8_weight_cache),
    CPFIT_POLICY(loss_bytes_per_logit),
    CPFIT_POLICY(loss_saved_bytes_per_logit),
    CPFIT_POLICY(loss_backward_bytes_per_logit),
    CPFIT_POLICY(loss_traffic_bytes_per_logit),
    CPFIT_POLICY(accumulation_traffic_per_parameter),
    CPFIT_POLICY(zero3_copy_bytes),
    CPFIT_POLICY(zero3_waits),
    CPFIT_POLICY(shard_host_operations),
    CPFIT_POLICY(recompute_ends_early),
    CPFIT_POLICY(extra_gradient_bytes),
    CPFIT_POLICY(gathered_parameter_bytes),
    CPFIT_POLICY(fp16_keeps_master_gradients),
    CPFIT_POLICY(zero3_weight_bytes),
    CPFIT_POLICY(zero3_optimizer_bytes),
    CPFIT_POLICY(zero3_reduce_bytes),
    CPFIT_POLICY(zero3_unsharded_through_step),
    CPFIT_POLICY(optimizer_on_host),
    CPFIT_POLICY(grad_buffer_padding),
    CPFIT_POLICY(wgrad_scratch),
    CPFIT_POLICY(fsdp_per_layer),
    CPFIT_POLICY(dense_attention_mask),
    CPFIT_POLICY(resident_hidden_tensors),
    CPFIT_POLICY(resident_hidden_always_whole),
    CPFIT_POLICY(pipeline_hidden_tensors),
    CPFIT_POLICY(pipeline_outputs_deallocated),
    CPFIT_POLICY(te_workspace),
    CPFIT_POLICY(cublas_workspaces),
    CPFIT_POLICY(deterministic),
    CPFIT_POLICY(reserved_over_allocated),
    CPFIT_POLICY(reserved_over_allocated_tp),
    CPFIT_POLICY(reserved_spread),
    CPFIT_POLICY(tp_stream_bytes_per_hidden),
    CPFIT_POLICY(cuda_context_gib),
    CPFIT_POLICY(nccl_mib_per_communicator),
    CPFIT_POLICY(attention_backend),
    CPFIT_POLICY(attention_backend_ampere),
    CPFIT_POLICY(attention_backend_blackwell),
    CPFIT_POLICY(fused_elementwise),
    CPFIT_POLICY(fused_merges),
    CPFIT_POLICY(residual_traffic_factor),
    CPFIT_POLICY(rope_traffic_factor),
    CPFIT_POLICY(activation_traffic_factor),
    CPFIT_POLICY(dp_exposed_share),
    CPFIT_POLICY(grad_bucket),
    CPFIT_POLICY(grad_bucket_per_rank),
    CPFIT_POLICY(buckets_on_every_stage),
    CPFIT_POLICY(buckets_of_whole_tensors),
    CPFIT_POLICY(separate_projections),
    CPFIT_POLICY(tp_overlap),
    CPFIT_POLICY(tp_backward_async),
    CPFIT_POLICY(tp_regathers_inputs),
    CPFIT_POLICY(tp_copies_sequence),
    CPFIT_POLICY(pp_messages_split),
    CPFIT_POLICY(pp_exposed_share),
    CPFIT_POLICY(fp8_param_gather),
    CPFIT_POLICY(host_call_us),
    CPFIT_POLICY(host_reads_loss),
    CPFIT_POLICY(layout_kinds),
    CPFIT_POLICY(interleaving_needs_micro_batches_multiple_of_pp),
    CPFIT_POLICY(state_shardings),
    CPFIT_POLICY(partial_shardings),
    CPFIT_POLICY(shard_groups_hold_cp),
    CPFIT_POLICY(replica_reduce_stream),
    CPFIT_POLICY(schedules),
    CPFIT_POLICY(kv_heads_replicated_over_tp),
    CPFIT_POLICY(kv_heads_repeated_for_a2a),
    CPFIT_POLICY(gradient_sharding_with_pp),
    CPFIT_POLICY(micro_batches_short_of_pp),
};
#undef CPFIT_POLICY

Problem unknown_key(const std::string& where, const std::string& key) {
  std::vector<std::string> keys;
  for (const Policy& policy : kPolicies) keys.emplace_back(policy.key);
  const std::string near = nearest_name(key, keys);
  return {"framework.unknown_key", where, "there is no policy \"" + key + "\"",
          near.empty() ? "see model/framework/rule_set.h for the policies" : "did you mean \"" + near + "\"?"};
}

void read_policy(const std::string& where, const std::string& key, const toml::node& node, RuleSet& rules,
                 std::vector<PolicySource>& sources, Problems& problems) {
  const Policy* policy = std::find_if(std::begin(kPolicies), std::end(kPolicies), [&](const Policy& p) { return p.key == key; });
  if (policy == std::end(kPolicies)) {
    problems.push_back(unknown_key(where, key));
    return;
  }
  const toml::array* pair = node.as_array();
  const bool has_source = pair != nullptr && pair->size() == 2 && pair->get(1)->is_string();
  if (!has_source) {
    problems.push_back({"framework.no_source", where + "." + key, "the policy has no source", "write it as [value, \"source\"]"});
    return;
  }
  const bool read = std::visit([&](auto member) { return read_value(*pair->get(0), rules.*member); }, policy->member);
  if (!read) {
    problems.push_back({"framework.bad_value", where + "." + key, "the value has the wrong type or is not one of the known words",
                        "see model/framework/rule_set.h"});
    return;
  }
  sources.push_back({key, std::string(pair->get(1)->value_or(std::string_view{}))});
}

RuleSet read_one(const toml::table& table, const std::vector<RuleSet>& earlier, Problems& problems) {
  RuleSet rules;
  const std::string name = table["name"].value_or(std::string());
  const std::string where = name.empty() ? "framework" : name;
  if (name.empty()) problems.push_back({"framework.no_name", where, "a rule set has no name", "add name = \"...\""});
  if (const std::optional<std::string> base = table["base"].value<std::string>()) {
    const auto found = std::find_if(earlier.begin(), earlier.end(), [&](const RuleSet& r) { return r.name == *base; });
    if (found == earlier.end()) {
      problems.push_back({"framework.no_base", where, "its base \"" + *base + "\" is not defined above it", "move it up"});
    } else {
      rules = *found;
    }
  }
  rules.name = name;
  rules.version = table["version"].value_or(rules.version);
  rules.source = table["source"].value_or(rules.source);
  std::vector<PolicySource> own;
  for (const auto& [key, node] : table) {
    const std::string_view word = key.str();
    if (word == "name" || word == "base" || word == "version" || word == "source") continue;
    read_policy(where, std::string(word), node, rules, own, problems);
  }
  std::erase_if(rules.policy_sources, [&](const PolicySource& inherited) {
    return std::any_of(own.begin(), own.end(), [&](const PolicySource& p) { return p.policy == inherited.policy; });
  });
  rules.policy_sources.insert(rules.policy_sources.begin(), own.begin(), own.end());
  return rules;
}

}  // namespace

Outcome<std::vector<RuleSet>> read_frameworks(std::string_view text) {
  toml::table root;
  try {
    root = toml::parse(text);
  } catch (const toml::parse_error& error) {
    return Problem{"framework.syntax", "line " + std::to_string(error.source().begin.line), std::string(error.description()), ""};
  }
  Problems problems;
  std::vector<RuleSet> sets;
  if (const toml::array* list = root["framework"].as_array()) {
    for (const toml::node& node : *list) {
      if (const toml::table* table = node.as_table()) sets.push_back(read_one(*table, sets, problems));
    }
  }
  if (sets.empty()) problems.push_back({"framework.none", "", "no [[framework]] table", ""});
  if (!problems.empty()) return problems;
  return sets;
}

}  // namespace cpfit
