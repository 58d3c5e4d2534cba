// Bytes and messages of context parallelism in one attention layer, per rank, one micro-batch: the master table of
// cp_model.md A.1. Symbols: Q = b*s/cp*h_q*d*e, KV = 2*b*s/cp*h_kv*d*e (heads on this tp rank), KV4 the same in fp32.
#pragma once

#include <cstdint>

#include "model/framework/rule_set.h"
#include "model/quantity/units.h"
#include "model/recipe/recipe.h"
#include "model/recipe/training.h"
#include "model/transformer/architecture.h"

namespace cpfit {

/// Sizes of the tensors that travel, per rank.
struct CpTensors {
  Bytes q;    // one query shard; O, dO, dQ are as large
  Bytes kv;   // one K+V shard in the nominal dtype
  Bytes kv4;  // the same shard in fp32
  Bytes lse;  // log-sum-exp, fp32: 4*b*h_q*s/cp
};
[[nodiscard]] CpTensors cp_tensors(const Architecture& model, const Training& training, const Recipe& recipe,
                                   const RuleSet& rules);

/// What a homecoming ring (RuleSet::dkv_homecoming_hop) passes on in every backward step.
struct RingBackward {
  Bytes inputs;     // K and V; BurstAttention: Q, dO, LSE and delta
  Bytes gradients;  // dK and dV; BurstAttention: dQ
};
[[nodiscard]] RingBackward ring_backward_tensors(const CpTensors& tensors, const RuleSet& rules);

/// One phase (forward or backward) of one layer. A strategy uses some of the parts: a ring, an inner ring, a gather, head
/// exchanges.
struct CpPhaseTraffic {
  std::int32_t ring_hops = 0;  // messages of the (outer) ring, r-1 or r of them
  Bytes first_message;         // TE backward: KV, then 2*KV, last KV; in pairs: without results on their way home; else all equal
  Bytes middle_message;
  Bytes last_message;
  Bytes homecoming;                   // fp32-dKV codes: one more hop with nothing to hide behind
  std::int32_t messages_per_hop = 1;  // 2 when K and V travel apart
  std::int32_t inner_hops = 0;        // double ring: hops inside one window, per window
  Bytes inner_message;
  Bytes gather;                // full gathered K/V buffer of an all-gather (0: none)
  Bytes scatter;               // full dK/dV buffer of a reduce-scatter (0: none)
  Bytes exchange;              // per-rank input bytes of the all-to-alls over the a2a group together
  std::int32_t exchanges = 0;  // how many all-to-alls
  Bytes sent;                  // all bytes this rank sends in the phase
};

struct CpTraffic {
  std::int32_t ring = 1;   // ranks of the (outer) ring: cp, r = cp/u, or W
  std::int32_t inner = 1;  // ranks of the inner group: a2a degree u or window w
  CpPhaseTraffic forward;
  CpPhaseTraffic backward;
};

/// Whether p2p runs in balanced pairs (KvExchange::kBalancedPairs): only causal masks of one document leave ranks idle.
[[nodiscard]] bool runs_in_pairs(const Training& training, const Recipe& recipe, const RuleSet& rules);
/// Steps of one rank of the (outer) ring: its ranks, or cp/2 + 1 in pairs; 1 where K and V are gathered first.
[[nodiscard]] std::int32_t attention_steps_count(const Training& training, const Recipe& recipe, const RuleSet& rules);

/// Traffic of the recipe's CP strategy under the rule set. cp = 1: all zero.
[[nodiscard]] CpTraffic cp_traffic(const Architecture& model, const Training& training, const Recipe& recipe,
                                   const RuleSet& rules);

}  // namespace cpfit
