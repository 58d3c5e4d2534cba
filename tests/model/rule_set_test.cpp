// Rule sets: the embedded file is whole, every policy has a source, mistakes are answered with a repair.
#include "model/framework/rule_set.h"

#include <gmock/gmock.h>

#include <set>

namespace cpfit {
namespace {

using testing::HasSubstr;

TEST(RuleSets, PresetsCarrySources) {
  std::set<std::string> names;
  for (const RuleSet& rules : framework_presets()) {
    EXPECT_TRUE(names.insert(rules.name).second) << rules.name;
    EXPECT_FALSE(rules.version.empty()) << rules.name;
    EXPECT_FALSE(rules.source.empty()) << rules.name;
    EXPECT_FALSE(rules.policy_sources.empty()) << rules.name;
    std::set<std::string> policies;
    for (const PolicySource& policy : rules.policy_sources) {
      EXPECT_FALSE(policy.source.empty()) << rules.name << "." << policy.policy;
      EXPECT_TRUE(policies.insert(policy.policy).second) << rules.name << "." << policy.policy;
    }
    EXPECT_LE(rules.loss_saved_bytes_per_logit, rules.loss_bytes_per_logit) << rules.name;
    EXPECT_GE(rules.reserved_over_allocated, 1.0) << rules.name;
    EXPECT_FALSE(rules.cp_comms.empty()) << rules.name;
  }
  for (const char* name :
       {"megatron-core", "megatron-2024", "megatron-2022", "megatron-2021", "nemo-24", "megatron-bridge", "torchtitan-2412",
        "torchtitan", "nanotron", "megatron-kwai", "usp-2404", "llama3-meta", "deepspeed-ulysses", "ring-flash-attention"}) {
    EXPECT_TRUE(names.contains(name)) << name;
  }
}

TEST(RuleSets, BaseIsTakenOverAndOverridden) {
  const Outcome<std::vector<RuleSet>> sets = read_frameworks(R"(
[[framework]]
name = "a"
version = "1"
dkv_wire = ["fp32", "read"]
loss_bytes_per_logit = [8, "read"]
cp_comms = [["a2a", "a2a+p2p"], "read"]
[[framework]]
name = "b"
base = "a"
loss_bytes_per_logit = [4.0, "measured"]
)");
  ASSERT_TRUE(sets.ok());
  const RuleSet& b = sets.value()[1];
  EXPECT_EQ(b.version, "1");
  EXPECT_EQ(b.dkv_wire, DkvWire::kFp32);
  EXPECT_EQ(b.loss_bytes_per_logit, 4.0);
  EXPECT_EQ(b.cp_comms, (std::vector<CpComm>{CpComm::kA2a, CpComm::kA2aP2p}));
  ASSERT_EQ(b.policy_sources.size(), 3U);
  EXPECT_EQ(b.policy_sources[0].source, "measured");
}

TEST(RuleSets, MistakesNameTheKeyAndTheRepair) {
  const auto first = [](const char* body) {
    const Outcome<std::vector<RuleSet>> sets = read_frameworks(std::string("[[framework]]\nname = \"x\"\n") + body);
    return sets.ok() ? std::string("no problem") : to_text(sets.problems().front());
  };
  EXPECT_THAT(first("los_bytes_per_logit = [6.0, \"s\"]"), HasSubstr("loss_bytes_per_logit"));
  EXPECT_THAT(first("loss_bytes_per_logit = 6.0"), HasSubstr("no source"));
  EXPECT_THAT(first("loss_bytes_per_logit = [\"six\", \"s\"]"), HasSubstr("wrong type"));
  EXPECT_THAT(first("dkv_wire = [\"fp64\", \"s\"]"), HasSubstr("known words"));
  EXPECT_THAT(first("base = \"nobody\""), HasSubstr("nobody"));
  EXPECT_THAT(first("loss_bytes_per_logit = ["), HasSubstr("line"));
}

TEST(RuleSets, UnknownNameGetsASuggestion) {
  const Outcome<RuleSet> rules = find_framework("megatron-cor");
  ASSERT_FALSE(rules.ok());
  EXPECT_THAT(to_text(rules.problems().front()), HasSubstr("megatron-core"));
}

TEST(RuleSets, BackendByGeneration) {
  const Outcome<RuleSet> rules = find_framework("megatron-core");
  ASSERT_TRUE(rules.ok());
  EXPECT_EQ(attention_backend_on(*rules, "ampere", 128), AttentionBackend::kFlash2);
  EXPECT_EQ(attention_backend_on(*rules, "ada", 128), AttentionBackend::kFlash2);
  EXPECT_EQ(attention_backend_on(*rules, "hopper", 128), AttentionBackend::kCudnn);
}

TEST(RuleSets, ScoresAreFormedPlainlyWhereNoFusedKernelTrains) {
  const Outcome<RuleSet> rules = find_framework("megatron-core");
  ASSERT_TRUE(rules.ok());
  EXPECT_EQ(attention_backend_on(*rules, "volta", 128), AttentionBackend::kUnfused);
  EXPECT_EQ(attention_backend_on(*rules, "hopper", 256), AttentionBackend::kCudnn);
  EXPECT_EQ(attention_backend_on(*rules, "hopper", 264), AttentionBackend::kUnfused);
  EXPECT_EQ(attention_backend_on(*rules, "ampere", 100), AttentionBackend::kUnfused);
}

}  // namespace
}  // namespace cpfit
