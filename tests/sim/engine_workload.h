// Workloads that cpfit's engine and SimGrid run alike: hosts whose streams, one exchange after the other, compute and then send
// to one peer and receive from another, over given routes of shared links without latency.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/engine/engine.h"

namespace cpfit::engine {

struct Exchange {
  Picoseconds compute = 0;  // before
  std::int32_t to = 0;
  std::int32_t from = 0;
};

struct Workload {
  std::int32_t hosts = 0;
  double bytes = 0;                                 // per message
  std::vector<double> bandwidth;                    // (links) bytes per picosecond
  std::vector<std::vector<std::int32_t>> routes;    // (hosts * hosts) links from one to the other
  std::vector<std::vector<Exchange>> ring, spread;  // (hosts) the exchanges of its streams, as many on every host; may be empty
  [[nodiscard]] const std::vector<std::int32_t>& route(std::int32_t from, std::int32_t to) const {
    return routes[static_cast<std::size_t>(from * hosts + to)];
  }
  [[nodiscard]] std::int64_t messages() const;
};

/// A ring of all hosts, `steps` messages each, computing for a jittered time between; one link up and one down per host.
[[nodiscard]] Workload jittered_ring(std::int32_t hosts, std::int32_t steps, double bytes);

/// Leaves of eight hosts under a spine that carries a quarter of what the hosts can send; in each leaf a ring of `steps`
/// messages, at the same time every host sends to every other one after the other.
[[nodiscard]] Workload oversubscribed(std::int32_t hosts, std::int32_t steps, double bytes);

/// The workload as a program, and which messages end each exchange.
struct WorkloadProgram {
  Program program;
  // (streams, exchanges): the host's own message and the one it receives. Streams: rings of all hosts, then spreads of all hosts.
  std::vector<std::vector<std::pair<ActivityId, ActivityId>>> messages;
};
[[nodiscard]] WorkloadProgram to_program(const Workload& workload);

/// (streams, exchanges) when each exchange was complete, in seconds.
[[nodiscard]] std::vector<std::vector<double>> completions(const WorkloadProgram& workload, const Run& run);

}  // namespace cpfit::engine
