#include "sim/schedule/step_network.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "model/rates/group_rate.h"
#include "sim/screen/layer_cost.h"

namespace cpfit::schedule {

namespace {

using engine::kPicosecondsPerSecond;

double per_picosecond(BytesPerSecond rate) { return rate.value() / kPicosecondsPerSecond; }

/// Transfers below this size take a collective's fixed time: its first piece is flat there.
constexpr Bytes kTiny = Bytes(256.0);

/// Links so fast that what passes them is felt by the memory behind them.
bool loads_memory(LinkClass link) { return link == LinkClass::kNvlink || link == LinkClass::kXgmi; }

/// Attainable memory bandwidth: what a kernel's time grows by with its traffic. Bytes per picosecond.
double memory_rate(const GpuRates& rates) {
  const Bytes small(1e10), large(2e10);  // far beyond what a launch hides
  return per_picosecond((large - small) / (memory_time(rates, large, 1).time - memory_time(rates, small, 1).time));
}

/// Largest data-parallel replicas whose flows are counted one by one on shared links.
constexpr std::int32_t kCountedReplicas = 64;

}  // namespace

StepNetwork::StepNetwork(const ScreenContext& context, const Recipe& recipe, const SimulatedRanks& ranks,
                         engine::ProgramBuilder& program)
    : context_(context), recipe_(recipe), ranks_(ranks), program_(program) {
  messages_.resize(static_cast<std::size_t>(ranks.count()));
  const double rate = memory_rate(context.rates);
  for (std::int32_t rank = 0; rank < ranks.count(); ++rank) {
    engine::Resource sm;
    sm.capacity = 1.0;
    sm.rank = rank;
    sm_.push_back(program.resource(sm));
    holds_.emplace_back().fill(kUnknownHold);
    kernel_.push_back(program.pattern({{sm_.back(), 1.0}}));
    engine::Resource memory;
    memory.capacity = rate;
    memory.rank = rank;
    memory_.push_back(program.resource(memory));
    memory_kernel_.push_back(program.pattern({{sm_.back(), 1.0}, {memory_.back(), rate}}));
  }
}

double StepNetwork::attainable(const Link& link) const {
  // Inside a host bridge and between sockets nothing was fitted: the raw capacity stands.
  if (link.link_class == LinkClass::kLocal || link.link_class == LinkClass::kSocket) return per_picosecond(link.capacity);
  return per_picosecond(attained_by_messages(context_.rates, link.link_class, link.capacity));
}

engine::ResourceId StepNetwork::resource_of(std::int32_t link) {
  const auto [found, fresh] = resource_.try_emplace(link, engine::kNone);
  if (fresh) {
    engine::Resource resource;
    resource.capacity = attainable(context_.cluster.topology->links()[static_cast<std::size_t>(link)]);
    resource.link = link;
    found->second = program_.resource(resource);
  }
  return found->second;
}

std::size_t StepNetwork::find_ways(std::int64_t from, std::int64_t to, bool pair) {
  if (pair) {
    context_.cluster.topology->pair_routes_into(from, to, route_, way_ends_);
    return std::max<std::size_t>(1, way_ends_.size());
  }
  context_.cluster.topology->route_into(from, to, route_);
  way_ends_.assign(1, route_.size());
  return 1;
}

void StepNetwork::add_route(std::int64_t from, std::int64_t to, double weight, Weights& weights, bool pair) {
  const double part = weight / static_cast<double>(find_ways(from, to, pair));
  for (const std::int32_t link : route_) weights[link] += part;
}

void StepNetwork::add_images(std::int64_t from, std::int64_t to, double weight, Weights& weights, bool pair) {
  const Coordinate a = coordinate_of(recipe_, from), b = coordinate_of(recipe_, to);
  const std::int32_t lanes = ranks_.tp() == recipe_.tp ? 1 : recipe_.tp;
  const std::int32_t replicas = ranks_.dp() == recipe_.dp ? 1 : std::min(recipe_.dp, kCountedReplicas);
  for (std::int32_t d = 0; d < replicas; ++d) {
    for (std::int32_t t = 0; t < lanes; ++t) {
      if (d == 0 && t == 0) continue;
      Coordinate from_image = a, to_image = b;
      from_image.tp = to_image.tp = a.tp + t;
      from_image.dp = (a.dp + d) % recipe_.dp;
      to_image.dp = (b.dp + d) % recipe_.dp;
      const double part = weight / static_cast<double>(find_ways(rank_of(recipe_, from_image), rank_of(recipe_, to_image), pair));
      for (const std::int32_t link : route_) {
        const auto shared = weights.find(link);
        if (shared != weights.end()) shared->second += part;
      }
    }
  }
}

engine::PatternId StepNetwork::pattern_of(const Weights& weights, double cap, std::vector<engine::Use> memory) {
  std::vector<engine::Use> uses = std::move(memory);
  for (const auto& [link, weight] : weights) {
    // Alone a collective attains what was measured, whatever the links' shares for messages are.
    const Link& of = context_.cluster.topology->links()[static_cast<std::size_t>(link)];
    const double claimed = cap > 0.0 ? std::min(weight, attainable(of) / cap) : weight;
    uses.push_back({resource_of(link), claimed, weight - claimed});
  }
  return program_.pattern(std::move(uses));
}

Transfer StepNetwork::message(std::int32_t from, std::int32_t to, Bytes bytes, std::int32_t messages, bool pair) {
  if (bytes.value() <= 0.0) return {};
  std::vector<KnownMessage>& known = messages_[static_cast<std::size_t>(from)];
  for (const KnownMessage& message : known) {
    if (message.to == to && message.bytes == bytes.value() && message.messages == messages && message.pair == pair)
      return message.transfer;
  }
  known.push_back({to, messages, bytes.value(), pair, new_message(from, to, bytes, messages, pair)});
  return known.back().transfer;
}

Transfer StepNetwork::new_message(std::int32_t from, std::int32_t to, Bytes bytes, std::int32_t messages, bool pair) {
  Transfer transfer;
  const std::int64_t a = ranks_.global(from), b = ranks_.global(to);
  const Topology& topology = *context_.cluster.topology;
  Weights weights;
  add_route(a, b, 1.0, weights, pair);
  const auto ways = static_cast<std::int32_t>(way_ends_.size());
  // What the route gives alone: the slowest of its links in raw capacity, the latency of one way, as the screen's hop.
  BytesPerSecond slowest(std::numeric_limits<double>::infinity());
  std::int32_t nic_ports = 1;
  Seconds latency;
  for (std::size_t i = 0; !way_ends_.empty() && i < way_ends_.front(); ++i)
    latency += topology.links()[static_cast<std::size_t>(route_[i])].latency;
  for (const auto& [index, weight] : weights) {
    const Link& link = topology.links()[static_cast<std::size_t>(index)];
    if (link.link_class == LinkClass::kNic) nic_ports = link.lanes * ways;
    if (link.capacity / weight < slowest) {
      slowest = link.capacity / weight;
      transfer.slowest = link.link_class;
    }
  }
  const auto time = [&](Bytes size) {
    return message_time(context_.rates, transfer.slowest, slowest, latency, size, nic_ports).time;
  };
  const Seconds fixed = time(Bytes()) * messages;
  const Seconds flowing = time(bytes / messages) * messages - fixed;
  transfer.fixed = engine::to_picoseconds(fixed);
  transfer.amount = bytes.value();
  transfer.cap = per_picosecond(bytes / flowing);
  add_images(a, b, 1.0, weights, pair);
  std::vector<engine::Use> memory;
  if (loads_memory(transfer.slowest)) {
    memory = {{memory_[static_cast<std::size_t>(from)], 1.0}, {memory_[static_cast<std::size_t>(to)], 1.0}};
  }
  transfer.pattern = pattern_of(weights, 0.0, std::move(memory));
  return transfer;
}

Transfer StepNetwork::collective(CollectiveKind kind, GroupShape shape, std::span<const std::int32_t> members, Bytes bytes,
                                 std::int64_t ranks) {
  if (shape.size <= 1 || bytes.value() <= 0.0) return {};
  if (ranks == 0) ranks = shape.size;
  // Layers and micro-batches repeat the same collectives; routing the flows of all images is what costs.
  const auto [found, fresh] = collectives_.try_emplace({kind, shape, members.front(), members.size(), bytes.value(), ranks});
  if (fresh) found->second = new_collective(kind, shape, members, bytes, ranks);
  return found->second;
}

Transfer StepNetwork::new_collective(CollectiveKind kind, GroupShape shape, std::span<const std::int32_t> members, Bytes bytes,
                                     std::int64_t ranks) {
  Transfer transfer;
  const GroupNetwork& group = context_.network.at(shape);
  const bool exchange = kind == CollectiveKind::kAllToAll;
  const BytesPerSecond rate = bus_rate(context_.rates, group, kind);
  const auto time = [&](Bytes size) {
    return collective_time(context_.rates, kind, group.collective_link, rate, group.ring.latency, ranks, size,
                           form_of_stride(shape.stride))
        .time;
  };
  const Seconds whole = time(bytes);
  const Seconds fixed = min(whole, time(min(bytes, kTiny)));
  const double size = static_cast<double>(shape.size);
  const double wire = bytes.value() * static_cast<double>(ranks - 1) / static_cast<double>(ranks) *
                      (kind == CollectiveKind::kAllReduce ? 2.0 : 1.0);
  transfer.slowest = group.collective_link;
  transfer.fixed = engine::to_picoseconds(fixed);
  if (whole > fixed) {
    transfer.amount = wire;
    transfer.cap = per_picosecond(Bytes(wire) / (whole - fixed));
  }
  // Every member's share of the ring: to its neighbour inside the scale-up domain with all the bytes, to its counterpart in the
  // next domain with one part in k (k members per domain share the crossing). An exchange crosses with what is remote.
  const std::int64_t domain = std::max(context_.cluster.scale_up_domain, context_.cluster.gpus_per_node);
  const std::int64_t block = shape.stride * shape.size;
  const double k = group.members_per_domain;
  const double gain = crosses_two_domains(group, kind) ? two_domain_gain(size) : 1.0;
  const double crossing = exchange ? (size - k) / (size - 1.0) : 1.0 / (k * gain);
  Weights weights;
  std::vector<std::tuple<std::int64_t, std::int64_t, double>> flows;
  for (const std::int32_t member : members) {
    const std::int64_t rank = ranks_.global(member);
    const std::int64_t first = rank / block * block + rank % shape.stride;
    const std::int64_t position = (rank - first) / shape.stride;
    const auto member_at = [&](std::int64_t place) { return first + (place % shape.size) * shape.stride; };
    if (group.members_per_domain > 1) {
      std::int64_t next = member_at(position + 1);
      if (next / domain != rank / domain) {  // back to the first member of this domain
        next = rank;
        while (next - shape.stride >= first && (next - shape.stride) / domain == rank / domain) next -= shape.stride;
      }
      if (next != rank) flows.emplace_back(rank, next, 1.0);
    }
    if (group.domains > 1) flows.emplace_back(rank, member_at(position + group.members_per_domain), crossing);
  }
  for (const auto& [from, to, weight] : flows) add_route(from, to, weight, weights);
  for (const auto& [from, to, weight] : flows) add_images(from, to, weight, weights);
  std::vector<engine::Use> memory;
  if (loads_memory(transfer.slowest) && shape != group_shapes(recipe_).tp) {
    const double adds = kind == CollectiveKind::kReduceScatter ? 1.0 : kind == CollectiveKind::kAllReduce ? 0.5 : 0.0;
    for (const std::int32_t member : members) memory.push_back({memory_[static_cast<std::size_t>(member)], 2.0 + adds});
  }
  transfer.pattern = transfer.amount > 0 ? pattern_of(weights, transfer.cap, std::move(memory)) : engine::kNone;
  return transfer;
}

engine::HoldId StepNetwork::hold(std::int32_t rank, const Transfer& transfer) {
  const std::size_t index = static_cast<std::size_t>(transfer.slowest) + (transfer.has_own_channels ? kLinkClasses : 0);
  engine::HoldId& hold = holds_[static_cast<std::size_t>(rank)][index];
  if (hold == kUnknownHold) {
    const double slowdown = transfer.has_own_channels ? message_overlap_slowdown(context_.rates, transfer.slowest)
                                                      : overlap_slowdown(context_.rates, transfer.slowest);
    hold = slowdown <= 1.0 ? -1 : program_.hold({sm_[static_cast<std::size_t>(rank)], 1.0 - 1.0 / slowdown});
  }
  return hold;
}

}  // namespace cpfit::schedule
