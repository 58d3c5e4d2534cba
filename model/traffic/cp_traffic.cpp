#include "model/traffic/cp_traffic.h"

#include <algorithm>

namespace cpfit {

namespace {

/// Heads of K and V that a rank holds: at least one, replicated when tp exceeds the KV heads.
double local_kv_heads(const Architecture& model, const Recipe& recipe) {
  return std::max(1.0, static_cast<double>(model.kv_heads) / recipe.tp);
}

double share_that_leaves(std::int32_t ranks) { return static_cast<double>(ranks - 1) / ranks; }

/// Balanced pairs (LightSeq async_communication.py): every step a rank sends its K and V on, or its queries to a helper; helpers
/// return the output one step later. Backward: a helper gets Q, O, dO and LSE and returns dQ, the others return dK and dV, those
/// of the last step with nothing to hide behind.
void add_pairs(CpTraffic& traffic, const CpTensors& t, const RuleSet& rules) {
  const std::int32_t steps = traffic.ring / 2;
  const Bytes dkv = rules.dkv_wire == DkvWire::kFp32 ? t.kv4 : t.kv;
  CpPhaseTraffic& f = traffic.forward;
  f.ring_hops = steps;
  f.first_message = t.kv;
  f.middle_message = f.last_message = t.kv + t.q + t.lse;
  f.sent += t.kv * steps + (t.q + t.lse) * std::max(0, steps - 2);
  CpPhaseTraffic& b = traffic.backward;
  b.ring_hops = steps;
  b.first_message = std::max(t.kv, t.q * 3.0 + t.lse);
  b.middle_message = b.last_message = b.first_message + dkv;
  b.homecoming = dkv;
  b.sent += b.first_message * steps + dkv * steps;
}

/// Ring of `ring` ranks that moves KV forward and KV + dKV backward; tensors are those of one rank of that ring.
void add_ring(CpTraffic& traffic, const CpTensors& t, const RuleSet& rules) {
  const std::int32_t r = traffic.ring;
  if (r <= 1) return;
  const std::int32_t messages = rules.kv_in_one_message ? 1 : 2;
  if (rules.kv_exchange == KvExchange::kAllGatherOnce) {
    // PyTorch "ring": K and V gathered at once in both passes; dKV returns by r fp32 permutes.
    traffic.forward.gather = t.kv * r;
    traffic.forward.sent += t.kv * (r - 1);
    traffic.backward.gather = t.kv * r;
    traffic.backward.ring_hops = r - 1;
    traffic.backward.first_message = traffic.backward.middle_message = traffic.backward.last_message = t.kv4;
    traffic.backward.homecoming = t.kv4;
    traffic.backward.sent += t.kv * (r - 1) + t.kv4 * r;
    return;
  }
  CpPhaseTraffic& f = traffic.forward;
  f.ring_hops = r - 1;
  f.messages_per_hop = messages;
  f.first_message = f.middle_message = f.last_message = t.kv;
  f.sent += t.kv * (r - 1);

  CpPhaseTraffic& b = traffic.backward;
  b.messages_per_hop = messages;
  if (rules.dkv_homecoming_hop) {
    const RingBackward travels = ring_backward_tensors(t, rules);
    b.ring_hops = r - 1;
    b.first_message = b.middle_message = b.last_message = travels.inputs + travels.gradients;
    b.homecoming = travels.gradients;
    b.sent += travels.inputs * (r - 1) + travels.gradients * r;
  } else {
    // TransformerEngine: KV first, then KV and dKV in one message, last dKV alone beside the diagonal block.
    const Bytes dkv = rules.dkv_wire == DkvWire::kFp32 ? t.kv4 : t.kv;
    b.ring_hops = r;
    b.first_message = t.kv;
    b.middle_message = t.kv + dkv;
    b.last_message = dkv;
    b.sent += t.kv + (t.kv + dkv) * std::max(0, r - 2) + dkv;
  }
}

/// Head exchange over `u` ranks: q, k, v in and out back, both passes; in backward out once more where it was saved on the far
/// side alone. Bytes are per-rank inputs before (u-1)/u of them leave.
void add_exchange(CpTraffic& traffic, const CpTensors& t, std::int32_t u, double kv_repeat, const RuleSet& rules) {
  if (u <= 1) return;
  for (CpPhaseTraffic* phase : {&traffic.forward, &traffic.backward}) {
    phase->exchanges = 4;
    phase->exchange = t.q * 2.0 + t.kv * kv_repeat;
    if (phase == &traffic.backward && !rules.a2a_keeps_both_outputs) {
      ++phase->exchanges;
      phase->exchange += t.q;
    }
    phase->sent += phase->exchange * share_that_leaves(u);
  }
}

}  // namespace

bool runs_in_pairs(const Training& training, const Recipe& recipe, const RuleSet& rules) {
  return rules.kv_exchange == KvExchange::kBalancedPairs && recipe.cp_comm == CpComm::kP2p && recipe.cp > 1 &&
         recipe.shard_layout == ShardLayout::kContiguous && training.mask.kind == MaskKind::kCausal;
}

std::int32_t attention_steps_count(const Training& training, const Recipe& recipe, const RuleSet& rules) {
  if (recipe.cp_comm == CpComm::kAllGather) return 1;
  return runs_in_pairs(training, recipe, rules) ? recipe.cp / 2 + 1 : recipe.cp / a2a_ranks(recipe);
}

RingBackward ring_backward_tensors(const CpTensors& tensors, const RuleSet& rules) {
  if (rules.backward_rotates_queries) return {tensors.q * 2.0 + tensors.lse * 2.0, tensors.q};
  return {tensors.kv, rules.dkv_wire == DkvWire::kFp32 ? tensors.kv4 : tensors.kv};
}

CpTensors cp_tensors(const Architecture& model, const Training& training, const Recipe& recipe, const RuleSet& rules) {
  const double tokens = static_cast<double>(recipe.micro_batch) * static_cast<double>(training.sequence.count()) / recipe.cp;
  const double q_heads = static_cast<double>(model.heads) / recipe.tp;
  const double d = static_cast<double>(model.head_dim);
  CpTensors t;
  t.q = Bytes(tokens * q_heads * d * 2.0);
  const double kv_heads = rules.kv_heads_repeated_in_ring ? q_heads : local_kv_heads(model, recipe);
  t.kv = Bytes(2.0 * tokens * kv_heads * d * 2.0);
  t.kv4 = t.kv * 2.0;
  t.lse = Bytes(4.0 * tokens * q_heads);
  return t;
}

CpTraffic cp_traffic(const Architecture& model, const Training& training, const Recipe& recipe, const RuleSet& rules) {
  CpTraffic traffic;
  if (recipe.cp <= 1) return traffic;
  const CpTensors t = cp_tensors(model, training, recipe, rules);
  // With fewer KV heads than a2a ranks the K and V heads are repeated before the exchange, so that every rank gets one.
  const auto kv_repeat = [&](std::int32_t u) { return std::max(1.0, u / local_kv_heads(model, recipe)); };
  switch (recipe.cp_comm) {
    case CpComm::kP2p:
      traffic.ring = recipe.cp;
      if (runs_in_pairs(training, recipe, rules)) {
        add_pairs(traffic, t, rules);
      } else {
        add_ring(traffic, t, rules);
      }
      break;
    case CpComm::kA2a:
      traffic.inner = recipe.cp;
      add_exchange(traffic, t, recipe.cp, kv_repeat(recipe.cp), rules);
      break;
    case CpComm::kA2aP2p:
      traffic.inner = recipe.a2a_degree;
      traffic.ring = recipe.cp / recipe.a2a_degree;
      // After the exchange a rank holds u times the tokens and 1/u of the heads: Q and KV shards keep their size (A.1 checks).
      add_ring(traffic, t, rules);
      add_exchange(traffic, t, recipe.a2a_degree, kv_repeat(recipe.a2a_degree), rules);
      break;
    case CpComm::kAllGather:
      traffic.inner = recipe.cp;
      traffic.forward.gather = t.kv * recipe.cp;
      traffic.forward.sent = t.kv * (recipe.cp - 1);
      traffic.backward.gather = t.kv * recipe.cp;
      traffic.backward.scatter = t.kv * recipe.cp;
      traffic.backward.sent = t.kv * (2.0 * (recipe.cp - 1));
      break;
    case CpComm::kDoubleRing: {
      // W windows of w ranks: (w-1) inner hops in each window, W-1 outer hops. dKV: fp32 in the first window, nominal dtype
      // after the cast at each window edge; one dKV hop more than KV hops (it must come home).
      const std::int32_t w = recipe.window;
      const std::int32_t windows = recipe.cp / w;
      traffic.inner = w;
      traffic.ring = windows;
      CpPhaseTraffic& f = traffic.forward;
      f.messages_per_hop = rules.kv_in_one_message ? 1 : 2;
      f.inner_hops = w - 1;
      f.inner_message = t.kv;
      f.ring_hops = windows - 1;
      f.first_message = f.middle_message = f.last_message = t.kv;
      f.sent = t.kv * (static_cast<double>(windows) * (w - 1) + (windows - 1));
      CpPhaseTraffic& b = traffic.backward;
      b = f;
      // Inner hops carry KV and dKV: fp32 in the first of the W windows, the nominal dtype in the others (mean size here).
      const Bytes mean_dkv = (t.kv4 + t.kv * static_cast<double>(windows - 1)) / static_cast<double>(windows);
      b.inner_message = t.kv + mean_dkv;
      b.first_message = b.middle_message = b.last_message = t.kv + t.kv;
      b.homecoming = windows > 1 ? t.kv : t.kv4;
      b.sent = f.sent + t.kv4 * static_cast<double>(w) + t.kv * (static_cast<double>(windows - 1) * w);
      if (rules.backward_rotates_queries) {
        const RingBackward travels = ring_backward_tensors(t, rules);
        b.inner_message = b.first_message = b.middle_message = b.last_message = travels.inputs + travels.gradients;
        b.homecoming = travels.gradients;
        b.sent = travels.inputs * (f.sent / t.kv) + travels.gradients * static_cast<double>(recipe.cp);
      }
      break;
    }
  }
  return traffic;
}

}  // namespace cpfit
