#include "sim/schedule/attention_schedule.h"

#include <algorithm>
#include <numeric>
#include <string>

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

  [[nodiscard]] std::size_t size() const { return ranks.size(); }
  [[nodiscard]] std::size_t steps() const { return (backward ? times[0].backward : times[0].forward).size(); }
  [[nodiscard]] Picoseconds kernel(std::size_t position, std::size_t step) const {
    return (backward ? times[position].backward : times[position].forward)[step];
  }
  [[nodiscard]] Picoseconds merge(std::size_t position, std::size_t step) const {
    return (backward ? times[position].backward_merge : times[position].forward_merge)[step];
  }
  [[nodiscard]] std::size_t next(std::size_t position, std::size_t by = 1) const { return (position + by) % size(); }
  [[nodiscard]] std::size_t previous(std::size_t position) const { return (position + size() - 1) % size(); }
};

AttentionSchedule::AttentionSchedule(const ScreenContext& context, const Recipe& recipe, const OperatorTimes& times,
                                     Writer& writer)
    : context_(context),
      recipe_(recipe),
      times_(times),
      writer_(writer),
      traffic_(cp_traffic(context.model, context.training, recipe, context.rules)),
      tensors_(cp_tensors(context.model, context.training, recipe)) {}

const std::vector<RingRankTimes>& AttentionSchedule::times_of(bool windowed) const {
  return windowed ? times_.windowed_ring : times_.full_ring;
}

TagId AttentionSchedule::step_tag(const char* name, std::size_t step, Work work, const Place& at, TrafficAxis axis) {
  return writer_.tag(std::string(name) + " " + std::to_string(step), work, at, axis);
}

ActivityId AttentionSchedule::attention(const Ring& ring, std::size_t position, std::size_t step, LaneKind lane,
                                        const Place& at) {
  const std::int32_t first = ring.backward ? LaunchCounts::kAttentionBack : LaunchCounts::kAttention;
  const std::int32_t further = ring.backward ? LaunchCounts::kRingStepBack : 1;
  return writer_.kernel(ring.ranks[position], lane, step_tag("attention", step, Work::kAttention, at),
                        ring.kernel(position, step), step == 0 ? first : further, at);
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

void AttentionSchedule::forward(const std::vector<std::int32_t>& ranks, const Place& at, bool windowed) {
  exchange(ranks, traffic_.forward, 3, "exchange q k v", at);
  // After a head exchange over u neighbours the ring joins every u-th rank.
  const auto u = static_cast<std::size_t>(a2a_ranks(recipe_));
  for (std::size_t lane = 0; lane < u; ++lane) {
    Ring ring{{}, times_of(windowed), false};
    for (std::size_t i = lane; i < ranks.size(); i += u) ring.ranks.push_back(ranks[i]);
    ring_forward(ring, at);
  }
  exchange(ranks, traffic_.forward, 1, "exchange out", at);
}

void AttentionSchedule::backward(const std::vector<std::int32_t>& ranks, const Place& at, bool windowed) {
  exchange(ranks, traffic_.backward, 1, "exchange dout", at);
  const auto u = static_cast<std::size_t>(a2a_ranks(recipe_));
  for (std::size_t lane = 0; lane < u; ++lane) {
    Ring ring{{}, times_of(windowed), true};
    for (std::size_t i = lane; i < ranks.size(); i += u) ring.ranks.push_back(ranks[i]);
    ring_backward(ring, at);
  }
  exchange(ranks, traffic_.backward, 3, "exchange dq dk dv", at);
}

void AttentionSchedule::ring_forward(const Ring& ring, const Place& at) {
  const RuleSet& rules = context_.rules;
  if (recipe_.cp_comm == CpComm::kDoubleRing) {
    double_ring(ring, at, traffic_.forward);
  } else if (traffic_.forward.gather.value() > 0.0 && rules.kv_exchange != KvExchange::kAllGatherOnce) {
    const Transfer gather = writer_.network().collective(CollectiveKind::kAllGather, group_shapes(recipe_).cp_inner, ring.ranks,
                                                         traffic_.forward.gather);
    writer_.waited_collective(ring.ranks, LaneKind::kCpSecond, writer_.tag("gather k v", Work::kCollective, at, TrafficAxis::kCp),
                              gather, at);
    for (std::size_t p = 0; p < ring.size(); ++p) attention(ring, p, 0, LaneKind::kCompute, at);
  } else if (ring.size() == 1 || traffic_.ring == 1) {
    for (std::size_t p = 0; p < ring.size(); ++p) attention(ring, p, 0, LaneKind::kCompute, at);
  } else if (rules.ring_buffers == RingBuffers::kAllSteps && rules.kv_exchange == KvExchange::kRing) {
    prefetching_forward(ring, at);
  } else {
    two_slot_forward(ring, at);
  }
}

void AttentionSchedule::ring_backward(const Ring& ring, const Place& at) {
  const RuleSet& rules = context_.rules;
  const CpPhaseTraffic& phase = traffic_.backward;
  if (recipe_.cp_comm == CpComm::kDoubleRing) {
    double_ring(ring, at, phase);
  } else if (phase.gather.value() > 0.0 && rules.kv_exchange != KvExchange::kAllGatherOnce) {
    const GroupShape shape = group_shapes(recipe_).cp_inner;
    const Transfer gather = writer_.network().collective(CollectiveKind::kAllGather, shape, ring.ranks, phase.gather);
    const Transfer scatter = writer_.network().collective(CollectiveKind::kReduceScatter, shape, ring.ranks, phase.scatter);
    writer_.waited_collective(ring.ranks, LaneKind::kCpSecond, writer_.tag("gather k v", Work::kCollective, at, TrafficAxis::kCp),
                              gather, at);
    for (std::size_t p = 0; p < ring.size(); ++p) attention(ring, p, 0, LaneKind::kCompute, at);
    writer_.waited_collective(ring.ranks, LaneKind::kCpSecond,
                              writer_.tag("scatter dk dv", Work::kCollective, at, TrafficAxis::kCp), scatter, at);
  } else if (ring.size() == 1 || traffic_.ring == 1) {
    for (std::size_t p = 0; p < ring.size(); ++p) attention(ring, p, 0, LaneKind::kCompute, at);
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
      const TagId tag = step_tag("send kv", step, Work::kMessage, at, TrafficAxis::kCp);
      for (std::size_t p = 0; p < r; ++p) {
        const std::size_t q = ring.next(p);
        const std::int32_t from = ring.ranks[p], to = ring.ranks[q];
        const Transfer transfer = writer_.network().message(from, to, phase.first_message, phase.messages_per_hop);
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

void AttentionSchedule::two_slot_forward(const Ring& ring, const Place& at) {
  const CpPhaseTraffic& phase = traffic_.forward;
  engine::ProgramBuilder& program = writer_.program();
  const std::size_t r = ring.size();
  const bool gathered = phase.gather.value() > 0.0;
  ActivityId gather = kNone;
  if (gathered) {
    const Transfer transfer =
        writer_.network().collective(CollectiveKind::kAllGather, group_shapes(recipe_).cp_ring, ring.ranks, phase.gather);
    gather = writer_.collective(ring.ranks, LaneKind::kCpSend, writer_.tag("gather k v", Work::kCollective, at, TrafficAxis::kCp),
                                transfer, at);
  }
  std::vector<ActivityId> sent(r, kNone), arrived(r, kNone);
  for (std::size_t step = 0; step < r; ++step) {
    const bool sends = !gathered && step + 1 < r;
    if (sends) {
      const TagId tag = step_tag("send kv", step, Work::kMessage, at, TrafficAxis::kCp);
      for (std::size_t p = 0; p < r; ++p) {
        const std::int32_t from = ring.ranks[p], to = ring.ranks[ring.next(p)];
        const Transfer transfer = writer_.network().message(from, to, phase.first_message, phase.messages_per_hop);
        sent[p] = writer_.message(from, to, LaneKind::kCpSend, LaneKind::kCpReceive, tag, transfer, at);
        const engine::LaneId send = writer_.lane(from, LaneKind::kCpSend), receive = writer_.lane(to, LaneKind::kCpReceive);
        program.wait(sent[p], send, writer_.last(from));
        program.wait(sent[p], send, arrived[p]);
        program.wait(sent[p], receive, writer_.last(to));
        program.wait(sent[p], receive, arrived[ring.next(p)]);
      }
    }
    for (std::size_t p = 0; p < r; ++p) {
      if (ring.kernel(p, step) > 0) {
        attention(ring, p, step, LaneKind::kCompute, at);
        merge(ring, p, ring.merge(p, step), at);
      }
      if (gathered && step == 0) writer_.gate(ring.ranks[p], gather);
    }
    if (sends) {
      for (std::size_t p = 0; p < r; ++p) {
        const std::size_t q = ring.next(p);
        arrived[q] = sent[p];
        writer_.gate(ring.ranks[q], sent[p]);
        writer_.gate(ring.ranks[p], sent[p]);  // both requests are waited for
      }
    }
  }
}

void AttentionSchedule::waiting_backward(const Ring& ring, const Place& at) {
  const CpPhaseTraffic& phase = traffic_.backward;
  engine::ProgramBuilder& program = writer_.program();
  const std::size_t r = ring.size();
  const bool reversed = context_.rules.reverse_ring_in_backward;
  std::vector<ActivityId> sent(r, kNone);
  for (std::size_t step = 0; step < r; ++step) {
    const bool last = step + 1 == r;
    const Bytes bytes = step == 0 ? phase.first_message : last ? phase.last_message : phase.middle_message;
    const TagId tag = step_tag(step == 0 ? "send kv"
                               : last    ? "send dkv"
                                         : "send kv dkv",
                               step, Work::kMessage, at, TrafficAxis::kCp);
    for (std::size_t p = 0; p < r; ++p) {
      const std::int32_t from = ring.ranks[p], to = ring.ranks[reversed ? ring.previous(p) : ring.next(p)];
      const Transfer transfer = writer_.network().message(from, to, bytes, phase.messages_per_hop);
      sent[p] = writer_.message(from, to, LaneKind::kCpSend, LaneKind::kCpReceive, tag, transfer, at);
      program.wait(sent[p], writer_.lane(from, LaneKind::kCpSend), writer_.last(from));
      program.wait(sent[p], writer_.lane(to, LaneKind::kCpReceive), writer_.last(to));
    }
    for (std::size_t p = 0; p < r; ++p) {
      if (ring.kernel(p, step) > 0) attention(ring, p, step, LaneKind::kCompute, at);
    }
    for (std::size_t p = 0; p < r; ++p) {
      const std::size_t q = reversed ? ring.previous(p) : ring.next(p);
      writer_.gate(ring.ranks[p], sent[p]);
      writer_.gate(ring.ranks[q], sent[p]);
    }
    for (std::size_t p = 0; p < r; ++p) merge(ring, p, ring.merge(p, step), at);
  }
}

void AttentionSchedule::homecoming_backward(const Ring& ring, const Place& at) {
  const CpPhaseTraffic& phase = traffic_.backward;
  engine::ProgramBuilder& program = writer_.program();
  const std::size_t r = ring.size();
  const bool reversed = context_.rules.reverse_ring_in_backward;
  const bool gathered = phase.gather.value() > 0.0;
  const Bytes dkv = phase.homecoming;
  const LaneKind dkv_send = context_.rules.shared_dkv_communicator ? LaneKind::kCpSend : LaneKind::kCpSecond;
  const LaneKind dkv_receive = context_.rules.shared_dkv_communicator ? LaneKind::kCpReceive : LaneKind::kCpSecondReceive;
  ActivityId gather = kNone;
  if (gathered) {
    const Transfer transfer =
        writer_.network().collective(CollectiveKind::kAllGather, group_shapes(recipe_).cp_ring, ring.ranks, phase.gather);
    gather = writer_.collective(ring.ranks, LaneKind::kCpSend, writer_.tag("gather k v", Work::kCollective, at, TrafficAxis::kCp),
                                transfer, at);
  }
  std::vector<ActivityId> kv(r, kNone), kv_arrived(r, kNone), home(r, kNone), home_arrived(r, kNone);
  const auto target = [&](std::size_t p) { return reversed ? ring.previous(p) : ring.next(p); };
  const auto post = [&](std::size_t p, LaneKind send, LaneKind receive, TagId tag, Bytes bytes, ActivityId needed) {
    const std::int32_t from = ring.ranks[p], to = ring.ranks[target(p)];
    const Transfer transfer = writer_.network().message(from, to, bytes, phase.messages_per_hop);
    const ActivityId sent = writer_.message(from, to, send, receive, tag, transfer, at);
    program.wait(sent, writer_.lane(from, send), writer_.last(from));
    program.wait(sent, writer_.lane(from, send), needed);
    program.wait(sent, writer_.lane(to, receive), writer_.last(to));
    return sent;
  };
  for (std::size_t step = 0; step < r; ++step) {
    const bool sends = !gathered && step + 1 < r;
    if (sends) {
      const TagId tag = step_tag("send kv", step, Work::kMessage, at, TrafficAxis::kCp);
      for (std::size_t p = 0; p < r; ++p)
        kv[p] = post(p, LaneKind::kCpSend, LaneKind::kCpReceive, tag, tensors_.kv, kv_arrived[p]);
    }
    for (std::size_t p = 0; p < r; ++p) {
      if (ring.kernel(p, step) > 0) attention(ring, p, step, LaneKind::kCompute, at);
      if (gathered && step == 0) writer_.gate(ring.ranks[p], gather);
      writer_.gate(ring.ranks[p], home_arrived[p]);  // the partial dKV that this step's own is added to
      merge(ring, p, ring.merge(p, step), at);
    }
    const TagId tag = step_tag("send dkv", step, Work::kMessage, at, TrafficAxis::kCp);
    for (std::size_t p = 0; p < r; ++p) home[p] = post(p, dkv_send, dkv_receive, tag, dkv, kNone);
    for (std::size_t p = 0; p < r; ++p) home_arrived[target(p)] = home[p];
    if (sends) {
      for (std::size_t p = 0; p < r; ++p) {
        kv_arrived[target(p)] = kv[p];
        writer_.gate(ring.ranks[target(p)], kv[p]);
      }
    }
  }
  for (std::size_t p = 0; p < r; ++p) writer_.gate(ring.ranks[p], home_arrived[p]);
}

void AttentionSchedule::double_ring(const Ring& ring, const Place& at, const CpPhaseTraffic& phase) {
  engine::ProgramBuilder& program = writer_.program();
  const std::size_t r = ring.size();
  const auto w = static_cast<std::size_t>(traffic_.inner);
  const std::size_t windows = r / w;
  std::vector<ActivityId> inner(r, kNone), inner_arrived(r, kNone), outer(r, kNone), outer_arrived(r, kNone);
  const auto post = [&](std::size_t p, std::size_t q, LaneKind send, LaneKind receive, TagId tag, Bytes bytes, ActivityId here,
                        ActivityId there) {
    const std::int32_t from = ring.ranks[p], to = ring.ranks[q];
    const Transfer transfer = writer_.network().message(from, to, bytes, phase.messages_per_hop);
    const ActivityId sent = writer_.message(from, to, send, receive, tag, transfer, at);
    program.wait(sent, writer_.lane(from, send), writer_.last(from));
    program.wait(sent, writer_.lane(from, send), here);
    program.wait(sent, writer_.lane(to, receive), writer_.last(to));
    program.wait(sent, writer_.lane(to, receive), there);
    return sent;
  };
  const auto in_window = [w](std::size_t p) { return p / w * w + (p % w + 1) % w; };
  for (std::size_t step = 0; step < r; ++step) {
    const std::size_t window = step / w, inside = step % w;
    if (inside == 0 && window + 1 < windows) {
      // The next window's KV has this whole window to arrive.
      const TagId tag = step_tag("send kv outer", window, Work::kMessage, at, TrafficAxis::kCp);
      for (std::size_t p = 0; p < r; ++p) {
        outer[p] = post(p, ring.next(p, w), LaneKind::kCpSecond, LaneKind::kCpSecondReceive, tag, phase.first_message,
                        outer_arrived[p], outer_arrived[ring.next(p, w)]);
      }
    }
    const bool sends = inside + 1 < w;
    if (sends) {
      const TagId tag = step_tag("send kv inner", step, Work::kMessage, at, TrafficAxis::kCp);
      for (std::size_t p = 0; p < r; ++p) {
        const std::size_t q = in_window(p);
        inner[p] =
            post(p, q, LaneKind::kCpSend, LaneKind::kCpReceive, tag, phase.inner_message, inner_arrived[p], inner_arrived[q]);
      }
    }
    for (std::size_t p = 0; p < r; ++p) {
      if (ring.kernel(p, step) > 0) {
        attention(ring, p, step, LaneKind::kCompute, at);
        merge(ring, p, ring.merge(p, step), at);
      }
    }
    if (sends) {
      for (std::size_t p = 0; p < r; ++p) {
        inner_arrived[in_window(p)] = inner[p];
        writer_.gate(ring.ranks[in_window(p)], inner[p]);
        writer_.gate(ring.ranks[p], inner[p]);
      }
    } else if (window + 1 < windows) {
      for (std::size_t p = 0; p < r; ++p) {
        const std::size_t q = ring.next(p, w);
        outer_arrived[q] = outer[p];
        inner_arrived[q] = outer[p];
        writer_.gate(ring.ranks[q], outer[p]);
      }
    }
  }
  if (phase.homecoming.value() > 0.0) {
    const TagId tag = writer_.tag("send dkv home", Work::kMessage, at, TrafficAxis::kCp);
    const bool far = windows > 1;
    for (std::size_t p = 0; p < r; ++p) {
      const std::size_t q = far ? ring.next(p, w) : in_window(p);
      const ActivityId home = post(p, q, far ? LaneKind::kCpSecond : LaneKind::kCpSend,
                                   far ? LaneKind::kCpSecondReceive : LaneKind::kCpReceive, tag, phase.homecoming, kNone, kNone);
      writer_.gate(ring.ranks[q], home);
    }
  }
}

}  // namespace cpfit::schedule
