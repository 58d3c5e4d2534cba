#include "tests/sim/engine_workload.h"

#include <algorithm>
#include <random>

#include "sim/engine/program_builder.h"

namespace cpfit::engine {

namespace {

constexpr double kHostLink = 0.0125;  // bytes per picosecond: 12.5 GB/s, a 100 Gb/s port

/// Links up 0..hosts, down hosts..2 hosts.
Workload on_hosts(std::int32_t hosts, double bytes) {
  Workload workload;
  workload.hosts = hosts;
  workload.bytes = bytes;
  workload.bandwidth.assign(static_cast<std::size_t>(2 * hosts), kHostLink);
  for (std::int32_t from = 0; from < hosts; ++from) {
    for (std::int32_t to = 0; to < hosts; ++to) workload.routes.push_back({from, hosts + to});
  }
  return workload;
}

}  // namespace

std::int64_t Workload::messages() const {
  std::size_t count = 0;
  for (const auto* streams : {&ring, &spread}) {
    for (const auto& stream : *streams) count += stream.size();
  }
  return static_cast<std::int64_t>(count);
}

Workload jittered_ring(std::int32_t hosts, std::int32_t steps, double bytes) {
  Workload workload = on_hosts(hosts, bytes);
  std::mt19937_64 random(1);
  for (std::int32_t host = 0; host < hosts; ++host) {
    std::vector<Exchange>& stream = workload.ring.emplace_back();
    for (std::int32_t step = 0; step < steps; ++step) {
      const Picoseconds compute = 50'000'000 + static_cast<Picoseconds>(random() % 100'000'000);  // 50 to 150 microseconds
      stream.push_back({compute, (host + 1) % hosts, (host + hosts - 1) % hosts});
    }
  }
  return workload;
}

Workload oversubscribed(std::int32_t hosts, std::int32_t steps, double bytes) {
  constexpr std::int32_t kLeaf = 8;
  Workload workload = on_hosts(hosts, bytes);
  const std::int32_t leaves = hosts / kLeaf;
  for (std::int32_t i = 0; i < 2 * leaves; ++i) workload.bandwidth.push_back(kHostLink * kLeaf / 4);
  for (std::int32_t from = 0; from < hosts; ++from) {
    for (std::int32_t to = 0; to < hosts; ++to) {
      if (from / kLeaf == to / kLeaf) continue;
      workload.routes[static_cast<std::size_t>(from * hosts + to)] = {from, 2 * hosts + from / kLeaf,
                                                                      2 * hosts + leaves + to / kLeaf, hosts + to};
    }
  }
  std::mt19937_64 random(2);
  const Picoseconds alone = static_cast<Picoseconds>(bytes / kHostLink);
  for (std::int32_t host = 0; host < hosts; ++host) {
    std::vector<Exchange>& ring = workload.ring.emplace_back();
    const std::int32_t leaf = host / kLeaf * kLeaf;
    for (std::int32_t step = 0; step < steps; ++step) {
      ring.push_back({static_cast<Picoseconds>(random() % static_cast<std::uint64_t>(alone)), leaf + (host + 1 - leaf) % kLeaf,
                      leaf + (host - leaf + kLeaf - 1) % kLeaf});
    }
    std::vector<Exchange>& spread = workload.spread.emplace_back();
    for (std::int32_t k = 1; k < hosts; ++k) {
      spread.push_back({static_cast<Picoseconds>(random() % static_cast<std::uint64_t>(alone / 16)), (host + k) % hosts,
                        (host + hosts - k) % hosts});
    }
  }
  return workload;
}

WorkloadProgram to_program(const Workload& workload) {
  WorkloadProgram made;
  ProgramBuilder builder;
  std::vector<PatternId> pattern;
  for (std::size_t link = 0; link < workload.bandwidth.size(); ++link) {
    (void)builder.resource({workload.bandwidth[link], static_cast<std::int32_t>(link), kNone});
  }
  for (const std::vector<std::int32_t>& route : workload.routes) {
    std::vector<Use> uses;
    for (const std::int32_t link : route) uses.push_back({link, 1.0});
    pattern.push_back(builder.pattern(uses));
  }
  const auto add = [&](const std::vector<std::vector<Exchange>>& streams, LaneKind work, LaneKind send, LaneKind receive) {
    if (streams.empty()) return;
    const std::size_t first = made.messages.size();
    made.messages.resize(first + streams.size());
    for (std::size_t e = 0; e < streams[0].size(); ++e) {
      for (std::int32_t host = 0; host < workload.hosts; ++host) {
        const Exchange& exchange = streams[static_cast<std::size_t>(host)][e];
        const LaneId lane = builder.lane(host, work);
        const ActivityId compute = builder.add({.amount = static_cast<double>(exchange.compute)}, {lane});
        if (e == 0) continue;
        const auto& [sent, received] = made.messages[first + static_cast<std::size_t>(host)][e - 1];
        builder.wait(compute, sent);
        builder.wait(compute, received);
      }
      for (std::int32_t host = 0; host < workload.hosts; ++host) {
        const std::int32_t to = streams[static_cast<std::size_t>(host)][e].to;
        const auto& route = workload.route(host, to);
        double cap = workload.bandwidth[static_cast<std::size_t>(route[0])];
        for (const std::int32_t link : route) cap = std::min(cap, workload.bandwidth[static_cast<std::size_t>(link)]);
        const LaneId from_lane = builder.lane(host, send), to_lane = builder.lane(to, receive);
        const ActivityId message = builder.add(
            {.amount = workload.bytes, .cap = cap, .pattern = pattern[static_cast<std::size_t>(host * workload.hosts + to)]},
            {from_lane, to_lane});
        builder.wait(message, from_lane, builder.last_on(builder.lane(host, work)));
        builder.wait(message, to_lane, builder.last_on(builder.lane(to, work)));
        made.messages[first + static_cast<std::size_t>(host)].resize(e + 1);
        made.messages[first + static_cast<std::size_t>(to)].resize(e + 1);
        made.messages[first + static_cast<std::size_t>(host)][e].first = message;
        made.messages[first + static_cast<std::size_t>(to)][e].second = message;
      }
    }
  };
  add(workload.ring, LaneKind::kCompute, LaneKind::kCpSend, LaneKind::kCpReceive);
  add(workload.spread, LaneKind::kComputeSide, LaneKind::kPpSend, LaneKind::kPpReceive);
  made.program = builder.take();
  return made;
}

std::vector<std::vector<double>> completions(const WorkloadProgram& workload, const Run& run) {
  std::vector<std::vector<double>> all;
  for (const auto& stream : workload.messages) {
    std::vector<double>& times = all.emplace_back();
    for (const auto& [sent, received] : stream) {
      const Picoseconds end = std::max(run.end[static_cast<std::size_t>(sent)], run.end[static_cast<std::size_t>(received)]);
      times.push_back(to_seconds(end).value());
    }
  }
  return all;
}

}  // namespace cpfit::engine
