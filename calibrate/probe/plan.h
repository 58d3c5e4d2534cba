// Which points a measurement has: pure, from what there is to measure on. Order of probes: kernels first, then messages, then
// both together, then the parts between them, and last the whole ring, which predictions are compared with (cp_model.md G.6).
// Inside a probe the order is shuffled by the seed, so that slow changes of a machine do not look like an effect of size.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/record/measurement.h"

namespace cpfit::probe {

struct PlanRequest {
  std::string backend = "host";                 // "host", "cuda", "loopback"
  std::vector<std::string> kernels = {"blas"};  // of attention
  std::vector<std::string> launch_modes = {"eager"};
  std::string dtype = "fp32";
  std::vector<std::string> host_of_rank = {""};  // one per rank: who sits where
  std::string link_inside = "shared memory";     // between ranks of one host
  std::string link_between = "network";          // between hosts
  bool smoke = false;
  std::uint64_t seed = 1;
  std::vector<std::string> probes;  // empty: all
};

/// Points without results; a probe that makes no sense here (messages of a single rank) has one point, skipped, with the reason.
[[nodiscard]] std::vector<MeasuredPoint> plan_points(const PlanRequest& request);

/// The same points with every probe spread evenly over the plan: for a run that may end before all are measured. Of equals the
/// probe that comes first stays first.
[[nodiscard]] std::vector<MeasuredPoint> interleaved(std::vector<MeasuredPoint> plan);

/// Every probe that measures, in the order of the plan, with a sentence.
struct ProbeName {
  std::string name;
  std::string summary;
};
[[nodiscard]] const std::vector<ProbeName>& measuring_probes();

/// Multiplications and additions of one attention call, for choosing sizes: 4 pairs d h forward, 2.5 times that backward.
[[nodiscard]] double attention_flops(const MeasuredPoint& point);

/// Groups of `ranks` of `size` that run a collective at the same time, without an overlap: neighbours, or `size / ranks` apart.
[[nodiscard]] std::vector<std::vector<std::int32_t>> groups_of(std::int32_t size, std::int32_t ranks, bool strided);

/// The partner of each rank for `rings` concurrent pairs: rank i < rings and rank i + size / 2; -1: takes no part.
[[nodiscard]] std::int32_t partner_of(std::int32_t rank, std::int32_t size, std::int32_t rings);

}  // namespace cpfit::probe
