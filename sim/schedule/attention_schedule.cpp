#include "sim/schedule/attention_schedule.h"

#include <algorithm>
#include <numeric>
#include <string>

#include "sim/screen/attention_cost.h"
#include "sim/screen/layer_cost.h"

namespace cpfit::schedule {

using engine::ActivityId;
using engine::kNone;
using engine::LaneKind;
using engine::Picoseconds;
using engine::StepPass;
using engine::TagId;
using engine::TrafficAxis;
using engine::Work;

/// One ring (or the whole group where there is none): its members in ring order and their kernels.
struct AttentionSchedule::Ring {
  std::vector<std::int32_t> ranks;  // (ring ranks)
  const std::vector<RingRankTimes>& times;
  bool backward = false;
  std::size_t window = 1;  // ranks of an inner ring; all of them where there is but one
  bool reversed = false;   // messages go to the previous rank

  [[nodiscard]] std::size_t size() const { return ranks.size(); }
  [[nodiscard]] std::size_t steps() const { return (backward ? times[0].backward : times[0].forward).size(); }
  [[nodiscard]] Picoseconds kernel(std::size_t position, std::size_t step) const {
    return (backward ? times[position].backward : times[position].forward)[step];
  }
  [[nodiscard]] Picoseconds merge(std::size_t position, std::size_t step) const {
    return (backward ? times[position].backward_merge : times[position].forward_merge)[step];
  }
  [[nodiscard]] std::size_t next(std::size_t position, std::size_t by = 1) const { return (position + by) % size(); }
  /// Where the (inner) ring's messages go.
  [[nodiscard]] std::size_t target(std::size_t position) const {
    return position / window * window + (position % window + (reversed ? window - 1 : 1)) % window;
  }
  [[nodiscard]] bool begins_window(std::size_t step) const { return step % window == 0; }
  [[nodiscard]] bool ends_window(std::size_t step) const { return step % window == window - 1; }
};

/// K and V between the steps of a ring with two slots, by position: messages posted, and those that brought what is here.
struct AttentionSchedule::KvOnTheWay {
  explicit KvOnTheWay(std::size_t size)
      : inner(size, kNone), inner_arrived(size, kNone), outer(size, kNone), outer_arrived(size, kNone) {}
  std::vector<ActivityId> inner, inner_arrived, outer, outer_arrived;
};

AttentionSchedule::AttentionSchedule(const ScreenContext& context, const Recipe& recipe, const OperatorTimes& times,
                                     Writer& writer)
    : context_(context),
      recipe_(recipe),
      times_(times),
      writer_(writer),
      traffic_(cp_traffic(context.model, context.training, recipe, context.rules)),
      tensors_(cp_tensors(context.model, context.training, recipe, context.rules)),
      travelling_(ring_backward_tensors(tensors_, context.rules)),
      in_pairs_(runs_in_pairs(context.training, recipe, context.rules)),
      own_channels_(operators::ring_has_own_channels(context, recipe)) {}

TagId AttentionSchedule::step_tag(Numbered what, std::size_t step, const Place& at) {
  static constexpr const char* kNames[] = {"attention ", "send kv ", "send kv outer ", "send kv dkv ", "send dkv "};
  std::vector<TagId>& known = tags_[static_cast<std::size_t>(what)][static_cast<std::size_t>(at.pass)];
  const bool kernel = what == Numbered::kAttention;
  while (known.size() <= step) {
    known.push_back(writer_.tag(kNames[static_cast<std::size_t>(what)] + std::to_string(known.size()),
                                kernel ? Work::kAttention : Work::kMessage, at, kernel ? TrafficAxis::kNone : TrafficAxis::kCp));
  }
  return known[step];
}

ActivityId AttentionSchedule::attention(const Ring& ring, std::size_t position, std::size_t step, LaneKind lane,
                                        const Place& at) {
  const std::int32_t first = ring.backward ? LaunchCounts::kAttentionBack : LaunchCounts::kAttention;
  const std::int32_t further = ring.backward ? LaunchCounts::kRingStepBack : LaunchCounts::kAttention;
  return writer_.kernel(ring.ranks[position], lane, step_tag(Numbered::kAttention, step, at), ring.kernel(position, step),
                        step == 0 ? first : further, at);
}

void AttentionSchedule::merge(const Ring& ring, std::size_t position, Picoseconds time, const Place& at) {
  if (time <= 0) return;
  writer_.kernel(ring.ranks[position], LaneKind::kCompute, writer_.tag("merge", Work::kMerge, at), time, 0, at);
}

void AttentionSchedule::exchange(const std::vector<std::int32_t>& ranks, const CpPhaseTraffic& phase, std::int32_t count,
                                 const char* what, const Place& at) {
  if (phase.exchanges == 0) return;
  const auto u = static_cast<std::size_t>(traffic_.inner);
  const GroupShape shape = group_shapes(recipe_).cp_inner;
  for (std::size_t first = 0; first < ranks.size(); first += u) {
    const std::span<const std::int32_t> block(&ranks[first], u);
    Transfer transfer = writer_.network().collective(CollectiveKind::kAllToAll, shape, block, phase.exchange / phase.exchanges);
    transfer.fixed *= count;
    transfer.amount *= count;
    writer_.waited_collective(block, LaneKind::kCpSecond, writer_.tag(what, Work::kCollective, at, TrafficAxis::kCp), transfer,
                              at);
  }
}

AttentionSchedule::Ring AttentionSchedule::ring_of(const std::vector<std::int32_t>& ranks, std::size_t first, bool windowed,
                                                   bool backward) const {
  // After a head exchange over u neighbours the ring joins every u-th rank.
  const auto u = static_cast<std::size_t>(a2a_ranks(recipe_));
  Ring ring{{}, windowed ? times_.windowed_ring : times_.full_ring, backward};
  for (std::size_t i = first; i < ranks.size(); i += u) ring.ranks.push_back(ranks[i]);
  ring.window = recipe_.cp_comm == CpComm::kDoubleRing ? static_cast<std::size_t>(traffic_.inner) : ring.ranks.size();
  ring.reversed = backward && context_.rules.reverse_ring_in_backward;
  return ring;
}

Transfer AttentionSchedule::ring_message(std::int32_t from, std::int32_t to, Bytes bytes, std::int32_t messages) {
  Transfer transfer = writer_.network().message(from, to, bytes, messages, context_.rules.ring_pair_communicators);
  transfer.has_own_channels = own_channels_;
  return transfer;
}

void AttentionSchedule::forward(const std::vector<std::int32_t>& ranks, const Place& at, bool windowed) {
  exchange(ranks, traffic_.forward, 3, "exchange q k v", at);
  for (std::size_t i = 0; i < static_cast<std::size_t>(a2a_ranks(recipe_)); ++i)
    ring_forward(ring_of(ranks, i, windowed, false), at);
  exchange(ranks, traffic_.forward, 1, "exchange out", at);
}

void AttentionSchedule::backward(const std::vector<std::int32_t>& ranks, const Place& at, bool windowed) {
  exchange(ranks, traffic_.backward, traffic_.backward.exchanges - 3, "exchange dout", at);  // and out, where it is sent again
  for (std::size_t i = 0; i < static_cast<std::size_t>(a2a_ranks(recipe_)); ++i)
    ring_backward(ring_of(ranks, i, windowed, true), at);
  exchange(ranks, traffic_.backward, 3, "exchange dq dk dv", at);
}

void AttentionSchedule::ring_forward(const Ring& ring, const Place& at) {
  const RuleSet& rules = context_.rules;
  if (traffic_.forward.gather.value() > 0.0 && rules.kv_exchange != KvExchange::kAllGatherOnce) {
    const Transfer gather = writer_.network().collective(CollectiveKind::kAllGather, group_shapes(recipe_).cp_inner, ring.ranks,
                                                         traffic_.forward.gather);
    writer_.waited_collective(ring.ranks, LaneKind::kCpSecond, writer_.tag("gather k v", Work::kCollective, at, TrafficAxis::kCp),
                              gather, at);
    for (std::size_t p = 0; p < ring.size(); ++p) attention(ring, p, 0, LaneKind::kCompute, at);
  } else if (ring.size() == 1) {
    attention(ring, 0, 0, LaneKind::kCompute, at);
  } else if (in_pairs_) {
    paired(ring, at);
  } else if (rules.ring_buffers == RingBuffers::kAllSteps && rules.kv_exchange == KvExchange::kRing &&
             ring.window == ring.size()) {
    prefetching_forward(ring, at);
  } else {
    two_slot_forward(ring, at);
  }
}

void AttentionSchedule::ring_backward(const Ring& ring, const Place& at) {
  const RuleSet& rules = context_.rules;
  const CpPhaseTraffic& phase = traffic_.backward;
  if (phase.gather.value() > 0.0 && rules.kv_exchange != KvExchange::kAllGatherOnce) {
    const GroupShape shape = group_shapes(recipe_).cp_inner;
    const Transfer gather = writer_.network().collective(CollectiveKind::kAllGather, shape, ring.ranks, phase.gather);
    const Transfer scatter = writer_.network().collective(CollectiveKind::kReduceScatter, shape, ring.ranks, phase.scatter);
    writer_.waited_collective(ring.ranks, LaneKind::kCpSecond, writer_.tag("gather k v", Work::kCollective, at, TrafficAxis::kCp),
                              gather, at);
    for (std::size_t p = 0; p < ring.size(); ++p) attention(ring, p, 0, LaneKind::kCompute, at);
    writer_.waited_collective(ring.ranks, LaneKind::kCpSecond,
                              writer_.tag("scatter dk dv", Work::kCollective, at, TrafficAxis::kCp), scatter, at);
  } else if (ring.size() == 1) {
    attention(ring, 0, 0, LaneKind::kCompute, at);
  } else if (in_pairs_) {
    paired(ring, at);
  } else if (phase.homecoming.value() > 0.0) {
    homecoming_backward(ring, at);
  } else {
    waiting_backward(ring, at);
  }
}

void AttentionSchedule::prefetching_forward(const Ring& ring, const Place& at) {
  const CpPhaseTraffic& phase = traffic_.forward;
  engine::ProgramBuilder& program = writer_.program();
  const std::size_t r = ring.size();
  const bool two_streams = context_.rules.two_compute_streams;
  std::vector<ActivityId> before(r), one_back(r, kNone), two_back(r, kNone), arrived(r, kNone);  // by position
  std::vector<ActivityId> sent(r, kNone);
  for (std::size_t p = 0; p < r; ++p) before[p] = writer_.last(ring.ranks[p]);
  for (std::size_t step = 0; step < r; ++step) {
    if (step + 1 < r) {
      const TagId tag = step_tag(Numbered::kSendKv, step, at);
      for (std::size_t p = 0; p < r; ++p) {
        const std::size_t q = ring.next(p);
        const std::int32_t from = ring.ranks[p], to = ring.ranks[q];
        const Transfer transfer = ring_message(from, to, phase.first_message, phase.messages_per_hop);
        sent[p] = writer_.message(from, to, LaneKind::kCpSend, LaneKind::kCpReceive, tag, transfer, at);
        // Stream order: both ends post from the stream of this step, behind the step before last.
        const auto post = [&](std::size_t end, LaneKind kind) {
          const engine::LaneId lane = writer_.lane(ring.ranks[end], kind);
          program.wait(sent[p], lane, two_back[end] == kNone ? before[end] : two_back[end]);
          program.wait(sent[p], lane, arrived[end]);
        };
        post(p, LaneKind::kCpSend);
        post(q, LaneKind::kCpReceive);
      }
    }
    for (std::size_t p = 0; p < r; ++p) {
      const LaneKind stream = two_streams && step % 2 == 1 ? LaneKind::kComputeSide : LaneKind::kCompute;
      two_back[p] = one_back[p];
      if (ring.kernel(p, step) > 0) {
        const ActivityId kernel = attention(ring, p, step, stream, at);
        const engine::LaneId lane = writer_.lane(ring.ranks[p], stream);
        program.wait(kernel, lane, arrived[p]);
        // Kernels enter the SMs in the order of their launches: the next one fills them when this one is through.
        program.wait(kernel, lane, one_back[p] == kNone ? before[p] : one_back[p]);
        one_back[p] = kernel;
      }
    }
    if (step + 1 < r) {
      for (std::size_t p = 0; p < r; ++p) arrived[ring.next(p)] = sent[p];
    }
  }
  for (std::size_t p = 0; p < r; ++p) {
    writer_.gate(ring.ranks[p], one_back[p]);  // the side stream joins
    writer_.gate(ring.ranks[p], arrived[p]);
    Picoseconds corrections = 0;
    for (std::size_t step = 0; step < r; ++step) corrections += ring.merge(p, step);
    merge(ring, p, corrections, at);
  }
}

ActivityId AttentionSchedule::posted_message(const Ring& ring, std::size_t from, std::size_t to, const Wire& wire,
                                             ActivityId here, ActivityId there, const Place& at) {
  const std::int32_t sender = ring.ranks[from], receiver = ring.ranks[to];
  const Transfer transfer = ring_message(sender, receiver, wire.bytes, wire.messages);
  const ActivityId sent = writer_.message(sender, receiver, wire.send, wire.receive, wire.tag, transfer, at);
  engine::ProgramBuilder& program = writer_.program();
  const engine::LaneId send = writer_.lane(sender, wire.send), receive = writer_.lane(receiver, wire.receive);
  program.wait(sent, send, writer_.last(sender));
  program.wait(sent, send, here);
  program.wait(sent, receive, writer_.last(receiver));
  program.wait(sent, receive, there);
  return sent;
}

/// PyTorch: all K and V gathered at once, behind the first step.
ActivityId AttentionSchedule::gather_once(const Ring& ring, Bytes bytes, const Place& at) {
  const Transfer transfer =
      writer_.network().collective(CollectiveKind::kAllGather, group_shapes(recipe_).cp_ring, ring.ranks, bytes);
  return writer_.collective(ring.ranks, LaneKind::kCpSend, writer_.tag("gather k v", Work::kCollective, at, TrafficAxis::kCp),
                            transfer, at);
}

/// Messages of one step of two slots: inside the window the KV of this step goes on; at a window's first step the KV that the
/// next window begins with leaves for it, and has the whole window to arrive.
void AttentionSchedule::send_kv(const Ring& ring, std::size_t step, Bytes inner, Bytes outer, KvOnTheWay& kv, const Place& at) {
  const int messages = traffic_.forward.messages_per_hop;
  if (ring.begins_window(step) && step + ring.window < ring.size()) {
    const Wire wire{LaneKind::kCpSecond, LaneKind::kCpSecondReceive, step_tag(Numbered::kSendKvOuter, step / ring.window, at),
                    outer, messages};
    for (std::size_t p = 0; p < ring.size(); ++p) {
      const std::size_t q = ring.next(p, ring.window);
      kv.outer[p] = posted_message(ring, p, q, wire, kv.outer_arrived[p], kv.outer_arrived[q], at);
    }
  }
  if (ring.ends_window(step)) return;
  const Wire wire{LaneKind::kCpSend, LaneKind::kCpReceive, step_tag(Numbered::kSendKv, step, at), inner, messages};
  for (std::size_t p = 0; p < ring.size(); ++p) {
    const std::size_t q = ring.target(p);
    kv.inner[p] = posted_message(ring, p, q, wire, kv.inner_arrived[p], kv.inner_arrived[q], at);
  }
}

/// The next step's kernels wait for the KV they work on, and their stream for both requests of the exchange.
void AttentionSchedule::wait_kv(const Ring& ring, std::size_t step, KvOnTheWay& kv) {
  const bool edge = ring.ends_window(step);
  if (edge && step + 1 == ring.size()) return;
  for (std::size_t p = 0; p < ring.size(); ++p) {
    const std::size_t q = edge ? ring.next(p, ring.window) : ring.target(p);
    const ActivityId sent = edge ? kv.outer[p] : kv.inner[p];
    if (edge) kv.outer_arrived[q] = sent;
    kv.inner_arrived[q] = sent;
    writer_.gate(ring.ranks[q], sent);
    if (!edge) writer_.gate(ring.ranks[p], sent);
  }
}

void AttentionSchedule::two_slot_forward(const Ring& ring, const Place& at) {
  const CpPhaseTraffic& phase = traffic_.forward;
  const bool gathered = phase.gather.value() > 0.0;
  const ActivityId gather = gathered ? gather_once(ring, phase.gather, at) : kNone;
  const bool at_once = operators::exchanges_wait_at_once(context_.rules);
  for (std::size_t p = 0; p < ring.size() && gathered && at_once; ++p) writer_.gate(ring.ranks[p], gather);
  KvOnTheWay kv(ring.size());
  for (std::size_t step = 0; step < ring.size(); ++step) {
    if (!gathered) send_kv(ring, step, tensors_.kv, tensors_.kv, kv, at);
    for (std::size_t p = 0; p < ring.size(); ++p) {
      if (ring.kernel(p, step) > 0) {
        attention(ring, p, step, LaneKind::kCompute, at);
        merge(ring, p, ring.merge(p, step), at);
      }
      if (gathered && step == 0) writer_.gate(ring.ranks[p], gather);
    }
    if (!gathered) wait_kv(ring, step, kv);
  }
}

void AttentionSchedule::waiting_backward(const Ring& ring, const Place& at) {
  const CpPhaseTraffic& phase = traffic_.backward;
  engine::ProgramBuilder& program = writer_.program();
  const std::size_t r = ring.size();
  std::vector<ActivityId> sent(r, kNone);
  for (std::size_t step = 0; step < r; ++step) {
    const bool last = step + 1 == r;
    const Bytes bytes = step == 0 ? phase.first_message : last ? phase.last_message : phase.middle_message;
    const TagId tag = step_tag(step == 0 ? Numbered::kSendKv : last ? Numbered::kSendDkv : Numbered::kSendKvDkv, step, at);
    for (std::size_t p = 0; p < r; ++p) {
      const std::int32_t from = ring.ranks[p], to = ring.ranks[ring.target(p)];
      const Transfer transfer = ring_message(from, to, bytes, phase.messages_per_hop);
      sent[p] = writer_.message(from, to, LaneKind::kCpSend, LaneKind::kCpReceive, tag, transfer, at);
      program.wait(sent[p], writer_.lane(from, LaneKind::kCpSend), writer_.last(from));
      program.wait(sent[p], writer_.lane(to, LaneKind::kCpReceive), writer_.last(to));
    }
    for (std::size_t p = 0; p < r; ++p) {
      if (ring.kernel(p, step) > 0) attention(ring, p, step, LaneKind::kCompute, at);
    }
    for (std::size_t p = 0; p < r; ++p) {
      writer_.gate(ring.ranks[p], sent[p]);
      writer_.gate(ring.ranks[ring.target(p)], sent[p]);
    }
    for (std::size_t p = 0; p < r; ++p) merge(ring, p, ring.merge(p, step), at);
  }
}

/// Balanced pairs: beside step t the K and V of step t + 1 come, or its queries at a helper, and the results of step t - 1 go
/// home; backward ends with those of the last step.
void AttentionSchedule::paired(const Ring& ring, const Place& at) {
  const std::size_t r = ring.size(), steps = ring.steps(), last = steps - 1;
  const Bytes outputs = tensors_.q + tensors_.lse;
  const Bytes queries = ring.backward ? tensors_.q * 3.0 + tensors_.lse : tensors_.q;
  const Bytes gradients = context_.rules.dkv_wire == DkvWire::kFp32 ? tensors_.kv4 : tensors_.kv;
  std::vector<std::pair<std::size_t, ActivityId>> posted;  // at both ends
  const auto post = [&](std::size_t from, std::size_t to, Bytes bytes, TagId tag) {
    const Wire wire{LaneKind::kCpSend, LaneKind::kCpReceive, tag, bytes, 1};
    const ActivityId sent = posted_message(ring, from, to, wire, kNone, kNone, at);
    posted.emplace_back(from, sent);
    posted.emplace_back(to, sent);
  };
  const auto send_results = [&](std::size_t step) {
    for (std::size_t p = 0; p < r; ++p) {
      const bool helped = p < step;
      if (ring.kernel(p, step) <= 0 || !(helped || ring.backward)) continue;
      const Bytes bytes = !ring.backward ? outputs : helped ? tensors_.q : gradients;
      post(p, (p + r - step) % r, bytes, step_tag(Numbered::kSendDkv, step, at));
    }
  };
  const auto arrive = [&] {
    for (const auto& [end, sent] : posted) writer_.gate(ring.ranks[end], sent);
    posted.clear();
  };
  for (std::size_t step = 0; step < steps; ++step) {
    if (step < last) {
      for (std::size_t p = 0; p < r; ++p) {
        const std::size_t to = (p + step + 1) % r;
        if (ring.kernel(to, step + 1) <= 0) continue;
        post(p, to, to < p ? queries : tensors_.kv, step_tag(Numbered::kSendKv, step, at));
      }
    }
    if (step > 1) send_results(step - 1);
    for (std::size_t p = 0; p < r; ++p) {
      if (ring.kernel(p, step) <= 0) continue;
      attention(ring, p, step, LaneKind::kCompute, at);
      merge(ring, p, ring.merge(p, step), at);
    }
    arrive();
  }
  if (!ring.backward) return;
  send_results(last);
  arrive();
}

void AttentionSchedule::homecoming_backward(const Ring& ring, const Place& at) {
  const CpPhaseTraffic& phase = traffic_.backward;
  const bool gathered = phase.gather.value() > 0.0;
  const bool shared = context_.rules.shared_dkv_communicator;
  const bool at_once = operators::exchanges_wait_at_once(context_.rules);
  const ActivityId gather = gathered ? gather_once(ring, phase.gather, at) : kNone;
  for (std::size_t p = 0; p < ring.size() && gathered && at_once; ++p) writer_.gate(ring.ranks[p], gather);
  KvOnTheWay kv(ring.size());
  std::vector<ActivityId> dkv(ring.size(), kNone), dkv_arrived(ring.size(), kNone);
  for (std::size_t step = 0; step < ring.size(); ++step) {
    if (!gathered) send_kv(ring, step, travelling_.inputs, travelling_.inputs, kv, at);
    for (std::size_t p = 0; p < ring.size(); ++p) {
      if (ring.kernel(p, step) > 0) attention(ring, p, step, LaneKind::kCompute, at);
      if (gathered && step == 0) writer_.gate(ring.ranks[p], gather);
      writer_.gate(ring.ranks[p], dkv_arrived[p]);  // the partial dKV that this step's own is added to
      merge(ring, p, ring.merge(p, step), at);
    }
    // In fp32 through the first window, cast to the nominal dtype at its edge (InternEvo); a plain ring is one window.
    const Wire wire{shared ? LaneKind::kCpSend : LaneKind::kCpThird, shared ? LaneKind::kCpReceive : LaneKind::kCpThirdReceive,
                    step_tag(Numbered::kSendDkv, step, at),
                    step < ring.window || context_.rules.backward_rotates_queries ? travelling_.gradients : tensors_.kv,
                    phase.messages_per_hop};
    const auto next_holder = [&](std::size_t p) {
      return ring.ends_window(step) && ring.window < ring.size() ? ring.next(ring.target(p), ring.window) : ring.target(p);
    };
    for (std::size_t p = 0; p < ring.size(); ++p) dkv[p] = posted_message(ring, p, next_holder(p), wire, kNone, kNone, at);
    for (std::size_t p = 0; p < ring.size(); ++p) {
      dkv_arrived[next_holder(p)] = dkv[p];
      if (!at_once) continue;
      writer_.gate(ring.ranks[p], dkv[p]);
      writer_.gate(ring.ranks[next_holder(p)], dkv[p]);
    }
    if (!gathered) wait_kv(ring, step, kv);
  }
  for (std::size_t p = 0; p < ring.size(); ++p) writer_.gate(ring.ranks[p], dkv_arrived[p]);
}

}  // namespace cpfit::schedule
