// What-if on the network: links that lost capacity or died, and other jobs that send beside ours. A disturbance changes the
// cluster's graph before anything is routed or priced; what it does to a step is then simulated like every other step.
//
//   link        the directed link FROM -> TO keeps `factor` of its capacity; with 0 it is gone and everything is routed anew. A
//               NIC that can no longer send or no longer receive is of no use: its GPUs take the next nearest one.
//   second job  a steady stream from one GPU or NIC to another, which takes its rate away from every link on its way.
#pragma once

#include <string>
#include <vector>

#include "model/cluster/cluster.h"
#include "model/quantity/problem.h"
#include "model/quantity/units.h"
#include "sim/schedule/step_schedule.h"

namespace cpfit {

struct LinkChange {
  std::string from, to;  // names of vertices: "n0.nic3", "leaf3"
  double factor = 1.0;   // >= 0
};

struct SecondJob {
  std::string from, to;  // names of GPUs or NICs
  BytesPerSecond rate;
};

struct Disturbance {
  std::vector<LinkChange> links;
  std::vector<SecondJob> jobs;
  [[nodiscard]] bool empty() const { return links.empty() && jobs.empty(); }
};

/// "FROM -> TO=FACTOR", FACTOR a number >= 0 or a share ("50 %"). Problems: "disturbance.syntax", "disturbance.factor".
[[nodiscard]] Outcome<LinkChange> parse_link_change(const std::string& text);
/// "FROM -> TO=25 GB/s". Problems: "disturbance.syntax", "quantity.*".
[[nodiscard]] Outcome<SecondJob> parse_second_job(const std::string& text);
/// "RANK=FACTOR", FACTOR > 0. Problems: "disturbance.syntax", "disturbance.factor".
[[nodiscard]] Outcome<schedule::SlowRank> parse_slow_rank(const std::string& text);

/// The cluster under the disturbance, its links changed first, the other jobs routed over what is left. Problems, each with what
/// was probably meant: "disturbance.vertex" (no such name), "disturbance.link" (no such link, or changed twice),
/// "disturbance.route" (the other job has no way), "disturbance.rate" (it takes all that a link has, or more).
[[nodiscard]] Outcome<Cluster> disturbed(const Cluster& cluster, const Disturbance& disturbance);

}  // namespace cpfit
