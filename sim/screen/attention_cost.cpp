#include "sim/screen/attention_cost.h"

#include <algorithm>
#include <numeric>

#include "model/rates/group_rate.h"
#include "sim/screen/ring_time.h"

namespace cpfit::operators {

namespace {

double sum_of(const std::vector<double>& times) { return std::accumulate(times.begin(), times.end(), 0.0); }

}  // namespace

double StepTimes::forward_total() const { return sum_of(forward) + sum_of(forward_merge); }
double StepTimes::backward_total() const { return sum_of(backward) + sum_of(backward_merge); }

namespace {

/// Link figures of the two groups a strategy may use.
struct Networks {
  const GroupNetwork* ring;
  const GroupNetwork* inner;
  const HopNetwork* hop;  // of the ring
};

double hop_seconds(const ScreenContext& context, const HopNetwork& hop, Bytes bytes, int messages) {
  if (bytes.value() <= 0.0) return 0.0;
  const Rated each = message_time(context.rates, hop, bytes / messages);
  return each.time.value() * messages;
}

double collective_seconds(const ScreenContext& context, const GroupNetwork& group, CollectiveKind kind, std::int32_t ranks,
                          Bytes bytes) {
  if (bytes.value() <= 0.0 || ranks <= 1) return 0.0;
  const BytesPerSecond rate = bus_rate(context.rates, group, kind);
  const CollectiveForm form = form_of_stride(group.shape.stride);
  return collective_time(context.rates, kind, group.collective_link, rate, group.ring.latency, ranks, bytes, form).time.value();
}

/// All head exchanges of one phase; nothing hides them but the reordering copies.
double exchange_seconds(const ScreenContext& context, const GroupNetwork& inner, const CpPhaseTraffic& phase,
                        std::int32_t ranks) {
  if (phase.exchanges == 0) return 0.0;
  const Bytes each = phase.exchange / phase.exchanges;
  return collective_seconds(context, inner, CollectiveKind::kAllToAll, ranks, each) * phase.exchanges;
}

/// Time the phase's steps take with their ring. `hop` is the time of a message of the given bytes.
struct RingResult {
  double total = 0;     // steps with their messages
  double messages = 0;  // sum of message times, hidden or not
};

/// Steps of codes that merge inside the step, before they wait for the next message.
std::vector<double> with_merges(const std::vector<double>& steps, const std::vector<double>& merges) {
  std::vector<double> c = steps;
  for (std::size_t i = 0; i < c.size(); ++i) c[i] += merges[i];
  return c;
}

/// Balanced pairs: every step fetches for the next one, and from the third on results go home beside it. All ranks fetch from as
/// far away at once, so a member that leaves its domain has its share of the NICs.
RingResult paired(const ScreenContext& context, const CpPhaseTraffic& phase, const Networks& net, const std::vector<double>& c) {
  HopNetwork hop = *net.hop;
  if (net.ring->domains > 1) hop.rate = std::min(hop.rate, net.ring->collective_rate / net.ring->members_per_domain);
  RingResult result;
  for (std::size_t i = 0; i + 1 < c.size(); ++i) {
    const double message = hop_seconds(context, hop, i < 2 ? phase.first_message : phase.middle_message, 1);
    result.total += std::max(c[i], message);
    result.messages += message;
  }
  const double home = hop_seconds(context, hop, phase.homecoming, 1);
  result.total += c.back() + home;
  result.messages += home;
  return result;
}

RingResult ring_forward(const ScreenContext& context, const CpTraffic& traffic, const Networks& net, const StepTimes& steps) {
  const std::vector<double> c = with_merges(steps.forward, steps.forward_merge);
  const CpPhaseTraffic& phase = traffic.forward;
  RingResult result;
  if (phase.gather.value() > 0.0) {
    const bool behind_first = context.rules.kv_exchange == KvExchange::kAllGatherOnce && traffic.ring > 1;
    const GroupNetwork& group = behind_first ? *net.ring : *net.inner;
    const std::int32_t ranks = behind_first ? traffic.ring : traffic.inner;
    const double gather = collective_seconds(context, group, CollectiveKind::kAllGather, ranks, phase.gather);
    result.messages = gather;
    const double sum = std::accumulate(c.begin(), c.end(), 0.0);
    const bool hidden = behind_first && !exchanges_wait_at_once(context.rules);
    result.total = hidden ? gather_behind_first_step(c, gather).value() : sum + gather;
    return result;
  }
  if (phase.ring_hops == 0) {
    result.total = std::accumulate(c.begin(), c.end(), 0.0);
    return result;
  }
  const double m = hop_seconds(context, *net.hop, phase.first_message, phase.messages_per_hop);
  result.messages = m * phase.ring_hops;
  // TransformerEngine corrects the outputs in a loop of its own after the last step (cp_model.md A.2).
  result.total = context.rules.ring_buffers == RingBuffers::kAllSteps
                     ? ring_prefetching(steps.forward, m).value() + sum_of(steps.forward_merge)
                     : ring_two_slots(c, m).value();
  return result;
}

RingResult ring_backward(const ScreenContext& context, const CpTraffic& traffic, const Networks& net, const StepTimes& times) {
  const CpPhaseTraffic& phase = traffic.backward;
  const bool at_once = exchanges_wait_at_once(context.rules);
  RingResult result;
  double extra = 0.0;
  std::vector<double> steps = with_merges(times.backward, times.backward_merge);
  if (phase.gather.value() > 0.0) {
    const bool behind_first = context.rules.kv_exchange == KvExchange::kAllGatherOnce && traffic.ring > 1;
    const GroupNetwork& group = behind_first ? *net.ring : *net.inner;
    const std::int32_t ranks = behind_first ? traffic.ring : traffic.inner;
    const double gather = collective_seconds(context, group, CollectiveKind::kAllGather, ranks, phase.gather);
    const double scatter = collective_seconds(context, group, CollectiveKind::kReduceScatter, ranks, phase.scatter);
    result.messages = gather + scatter;
    if (behind_first && !at_once && !steps.empty()) {
      steps[0] = std::max(steps[0], gather);
    } else {
      extra += gather;
    }
    extra += scatter;
  }
  if (phase.ring_hops > 0) {
    const auto hop = [&](Bytes bytes) { return hop_seconds(context, *net.hop, bytes, phase.messages_per_hop); };
    const double first = hop(phase.first_message), middle = hop(phase.middle_message), last = hop(phase.last_message);
    if (phase.homecoming.value() > 0.0) {
      const double home = hop(phase.homecoming);
      result.messages += middle * phase.ring_hops + home;
      result.total = (at_once ? sum_of(steps) + middle * phase.ring_hops : ring_two_slots(steps, middle).value()) + home;
    } else {
      result.messages += first + middle * std::max(0, phase.ring_hops - 2) + last;
      // The partial dKV is added after its message has come: nothing hides behind that.
      result.total = ring_waiting_backward(times.backward, first, middle, last).value() + sum_of(times.backward_merge);
    }
  } else {
    result.total = std::accumulate(steps.begin(), steps.end(), 0.0);
  }
  result.total += extra;
  return result;
}

/// Double ring: inside a window the inner ring with two slots; the next window's K and V travel meanwhile.
RingResult double_ring(const ScreenContext& context, const CpTraffic& traffic, const CpPhaseTraffic& phase, const Networks& net,
                       const std::vector<double>& steps, const std::vector<double>& merges) {
  const std::vector<double> c = with_merges(steps, merges);
  RingResult result;
  const std::size_t w = static_cast<std::size_t>(traffic.inner);
  const double inner = hop_seconds(context, net.inner->ring, phase.inner_message, phase.messages_per_hop);
  const double outer = traffic.ring > 1 ? hop_seconds(context, *net.hop, phase.first_message, phase.messages_per_hop) : 0.0;
  for (std::size_t begin = 0; begin < c.size(); begin += w) {
    const std::size_t count = std::min(w, c.size() - begin);
    const double window = ring_two_slots(std::span(c).subspan(begin, count), inner).value();
    const bool last = begin + w >= c.size();
    result.total += last ? window : std::max(window, outer);
    result.messages += inner * static_cast<double>(count - 1) + (last ? 0.0 : outer);
  }
  if (phase.homecoming.value() > 0.0) {
    const double home = hop_seconds(context, traffic.ring > 1 ? *net.hop : net.inner->ring, phase.homecoming, 1);
    result.total += home;
    result.messages += home;
  }
  return result;
}

/// Relative standard deviation of what the phase's communication exposes: that of its hops, or of its head exchanges.
double exposed_sigma(const ScreenContext& context, const CpTraffic& traffic, const Networks& net) {
  if (traffic.ring > 1) {
    const HopNetwork& hop = *net.hop;
    const Bytes bytes = std::max(traffic.forward.first_message, traffic.backward.middle_message);
    return message_time(context.rates, hop, bytes).relative_sigma;
  }
  const GroupNetwork& group = *net.inner;
  const CollectiveKind kind = traffic.forward.gather.value() > 0 ? CollectiveKind::kAllGather : CollectiveKind::kAllToAll;
  const Bytes bytes = std::max(traffic.forward.gather, traffic.forward.exchange);
  return collective_time(context.rates, kind, group.collective_link, group.collective_rate, group.ring.latency, traffic.inner,
                         bytes, form_of_stride(group.shape.stride))
      .relative_sigma;
}

void add_phase(const RingResult& ring, double kernels, double exchange, double variance, double slowdown, double link_sigma,
               Cost& cost, Seconds& exposed) {
  // Kernels run slower while messages pass beside them: the slowdown is time that communication costs, so it counts as exposed.
  const double waiting = std::max(0.0, ring.total - kernels);
  const double hidden = std::min(kernels, std::max(0.0, ring.messages - waiting));
  const double slowed = hidden * (slowdown - 1.0);
  cost.compute += Seconds(kernels);
  cost.cp += Seconds(waiting + slowed + exchange);
  const double link_error = link_sigma * (waiting + exchange);
  cost.variance += variance + link_error * link_error;
  exposed += Seconds(waiting + slowed + exchange);
}

}  // namespace

void add_attention(const ScreenContext& context, const Recipe& recipe, const StepTimes& steps, Cost& forward, Cost& backward,
                   CpExposure& exposure) {
  if (recipe.cp == 1) {
    forward.compute += Seconds(steps.forward_total());
    forward.variance += steps.forward_variance;
    backward.compute += Seconds(steps.backward_total());
    backward.variance += steps.backward_variance;
    return;
  }
  const CpTraffic traffic = cp_traffic(context.model, context.training, recipe, context.rules);
  const GroupShapes shapes = group_shapes(recipe);
  const GroupNetwork& ring = context.network.at(shapes.cp_ring);
  const Networks net{&ring, &context.network.at(shapes.cp_inner),
                     context.rules.ring_pair_communicators ? &ring.pair_ring : &ring.ring};
  const bool double_ringed = recipe.cp_comm == CpComm::kDoubleRing;
  const bool in_pairs = runs_in_pairs(context.training, recipe, context.rules);
  const RingResult f = double_ringed ? double_ring(context, traffic, traffic.forward, net, steps.forward, steps.forward_merge)
                       : in_pairs    ? paired(context, traffic.forward, net, with_merges(steps.forward, steps.forward_merge))
                                     : ring_forward(context, traffic, net, steps);
  const RingResult b = double_ringed ? double_ring(context, traffic, traffic.backward, net, steps.backward, steps.backward_merge)
                       : in_pairs    ? paired(context, traffic.backward, net, with_merges(steps.backward, steps.backward_merge))
                                     : ring_backward(context, traffic, net, steps);
  const LinkClass link = traffic.ring > 1 ? net.hop->slowest : net.inner->collective_link;
  const double link_sigma = exposed_sigma(context, traffic, net);
  const auto slowdown = [&](const CpPhaseTraffic& phase) {
    const bool messages = traffic.ring > 1 && phase.gather.value() <= 0.0 && ring_has_own_channels(context, recipe);
    return messages ? message_overlap_slowdown(context.rates, link) : overlap_slowdown(context.rates, link);
  };
  add_phase(f, steps.forward_total(), exchange_seconds(context, *net.inner, traffic.forward, traffic.inner),
            steps.forward_variance, slowdown(traffic.forward), link_sigma, forward, exposure.forward_exposed);
  add_phase(b, steps.backward_total(), exchange_seconds(context, *net.inner, traffic.backward, traffic.inner),
            steps.backward_variance, slowdown(traffic.backward), link_sigma, backward, exposure.backward_exposed);

  exposure.bytes_sent_per_layer = traffic.forward.sent + traffic.backward.sent;
  exposure.crosses_node = (traffic.ring > 1 && net.ring->domains > 1) || (traffic.inner > 1 && net.inner->domains > 1);
  if (traffic.ring > 1) {
    exposure.forward_message =
        Seconds(hop_seconds(context, *net.hop, traffic.forward.first_message, traffic.forward.messages_per_hop));
    exposure.backward_message =
        Seconds(hop_seconds(context, *net.hop, traffic.backward.middle_message, traffic.backward.messages_per_hop));
    exposure.forward_step_compute = Seconds(*std::min_element(steps.forward.begin(), steps.forward.end()));
  }
}

}  // namespace cpfit::operators
