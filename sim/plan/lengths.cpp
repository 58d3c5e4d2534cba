#include "sim/plan/lengths.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "model/cluster/cluster_part.h"
#include "model/quantity/counted.h"
#include "model/quantity/text.h"
#include "sim/plan/verdict.h"

namespace cpfit {

Training with_sequence(const Training& training, std::int64_t tokens) {
  Training changed = training;
  changed.sequence = Tokens(tokens);
  const double per_step = static_cast<double>(training.global_batch) * static_cast<double>(training.sequence.count());
  const double wanted = std::max(1.0, per_step / static_cast<double>(tokens));
  // Scale the batch by powers of two only: whatever dp divided the original batch keeps dividing while it can.
  const double octaves = std::floor(std::log2(wanted / static_cast<double>(training.global_batch)) + 1e-9);
  const double scaled = static_cast<double>(training.global_batch) * std::exp2(octaves);
  changed.global_batch = std::max<std::int64_t>(1, static_cast<std::int64_t>(scaled));
  if (training.mask.kind == MaskKind::kDocuments) {
    // A longer pack holds more documents of the same lengths.
    const double ratio = static_cast<double>(tokens) / static_cast<double>(training.sequence.count());
    for (DocumentClass& documents : changed.mask.documents) documents.count *= ratio;
  }
  return changed;
}

std::vector<std::int64_t> length_ladder(std::int64_t shortest, std::int64_t longest, std::int64_t multiple, int per_octave) {
  std::vector<std::int64_t> ladder;
  for (std::int64_t octave = shortest; octave <= longest; octave *= 2) {
    for (int step = 0; step < per_octave; ++step) {
      const std::int64_t length = (octave + octave * step / per_octave) / multiple * multiple;
      if (length >= shortest && length <= longest && (ladder.empty() || length > ladder.back())) ladder.push_back(length);
    }
  }
  return ladder;
}

Crossover find_crossover(Workbench& bench, const Candidate& ship, std::int64_t shortest, std::int64_t longest) {
  const Scenario& scenario = bench.scenario();
  Axes axes = resolve_axes(scenario, bench.rules());
  axes.recompute = {ship.recipe.recompute};
  axes.state_sharding = {ship.recipe.state_sharding};
  axes.state_shards = {ship.recipe.state_shards};
  axes.micro_batch = {ship.recipe.micro_batch};
  axes.cp_comm = {ship.recipe.cp > 1 ? ship.recipe.cp_comm : axes.cp_comm.front()};
  axes.vpp = {1};
  std::int32_t largest_cp = 1;
  for (const std::int32_t cp : axes.cp) largest_cp = std::max(largest_cp, std::min(cp, 64));
  std::erase_if(axes.cp, [&](std::int32_t cp) { return cp > largest_cp; });

  Crossover crossover;
  if (axes.cp.empty() || axes.cp.front() != 1) return crossover;  // the scenario leaves no CP=1 recipe to compare with
  bool compared = false;
  crossover.held_constant = fmt::format(
      "{}, about {} tokens per step, recompute={}, micro_batch={}, state_sharding={}{}, precision={}; tp, pp, dp and cp "
      "searched",
      counted(scenario.cluster.gpus(), "GPU"),
      print_tokens(Tokens(scenario.training.global_batch * scenario.training.sequence.count())),
      name_of(ship.recipe.recompute.kind), ship.recipe.micro_batch, name_of(ship.recipe.state_sharding),
      ship.recipe.state_shards > 0 ? fmt::format(", state_shards={}", ship.recipe.state_shards) : std::string(),
      name_of(ship.recipe.precision));
  const std::int64_t multiple = std::int64_t{2} * largest_cp * std::max<std::int64_t>(1, scenario.cluster.scale_up_domain);
  for (const std::int64_t length : length_ladder(shortest, longest, multiple, 4)) {
    const Training training = with_sequence(scenario.training, length);
    const SearchResult found = search(bench, training, axes, {});
    double fastest_without = 0.0, fastest_with = 0.0;
    bool legal_without = false;
    for (const Candidate& candidate : found.candidates) {
      legal_without = legal_without || candidate.recipe.cp == 1;
      if (candidate.verdict.fit != Fit::kFits) continue;
      double& fastest = candidate.recipe.cp == 1 ? fastest_without : fastest_with;
      fastest = std::max(fastest, candidate.tokens_per_second_per_gpu);
    }
    if (!legal_without) continue;  // nothing to compare with at this length
    compared = true;
    if (crossover.needed_at_tokens == 0 && fastest_without == 0.0 && fastest_with > 0.0) crossover.needed_at_tokens = length;
    if (crossover.faster_at_tokens == 0 && fastest_with > fastest_without) crossover.faster_at_tokens = length;
    if (crossover.needed_at_tokens > 0 && crossover.faster_at_tokens > 0) break;
  }
  return compared ? crossover : Crossover{};
}

std::vector<SweepPointOrReason> controlled_sweep(const Scenario& scenario, const RateSet& rates, const Recipe& base,
                                                 const std::vector<std::int32_t>& cps,
                                                 const std::vector<std::int64_t>& sequences) {
  std::vector<SweepPointOrReason> points;
  for (const std::int32_t cp : cps) {
    Recipe recipe = base;
    recipe.cp = cp;
    if (recipe.cp_comm == CpComm::kA2a) recipe.a2a_degree = cp;
    if (recipe.cp_comm == CpComm::kA2aP2p && (cp % recipe.a2a_degree != 0 || cp <= recipe.a2a_degree))
      recipe.cp_comm = CpComm::kP2p;
    if (recipe.cp_comm == CpComm::kP2p || cp == 1) recipe.a2a_degree = recipe.cp_comm == CpComm::kA2a ? cp : 1;
    const std::int64_t gpus = recipe.world();
    Scenario grown = scenario;
    std::string reason;
    if (gpus != scenario.cluster.gpus()) {
      // Below one node the recipe leaves GPUs of its node idle; above, whole nodes of the same kind are added.
      const std::int64_t per_node = scenario.cluster.gpus_per_node;
      if (gpus % per_node == 0) {
        Outcome<Cluster> cluster = with_nodes(scenario.cluster, gpus / per_node);
        if (cluster.ok())
          grown.cluster = std::move(cluster).value();
        else
          reason = cluster.problems().front().message;
      } else if (gpus < per_node) {
        grown.cluster = part_of_node(scenario.cluster, static_cast<std::int32_t>(gpus));
      } else {
        reason = fmt::format("{} GPUs do not fill whole nodes of {}", gpus, per_node);
      }
    }
    std::optional<Workbench> bench;
    if (reason.empty()) {
      Outcome<Workbench> built = Workbench::build(grown, rates);
      if (built.ok())
        bench.emplace(std::move(built).value());
      else
        reason = built.problems().front().message;
    }
    for (const std::int64_t sequence : sequences) {
      SweepPointOrReason point;
      point.cp = cp;
      point.sequence = sequence;
      point.gpus = gpus;
      point.reason = reason;
      if (bench) {
        const Training training = with_sequence(scenario.training, sequence);
        Outcome<Candidate> candidate = bench->evaluate(training, recipe);
        if (candidate.ok())
          point.candidate = std::move(candidate).value();
        else
          point.reason = candidate.problems().front().message;
      }
      points.push_back(std::move(point));
    }
  }
  return points;
}

}  // namespace cpfit
