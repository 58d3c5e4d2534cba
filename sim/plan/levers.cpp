#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <limits>

#include "model/quantity/counted.h"
#include "model/quantity/text.h"
#include "model/recipe/data_ranks.h"
#include "sim/plan/explain.h"
#include "sim/plan/lengths.h"
#include "sim/plan/search.h"

namespace cpfit {

namespace {

/// One way to change a recipe; the name is what a person would write.
struct Change {
  std::string name;
  Recipe recipe;
};

std::vector<Change> changes_of(const Workbench& bench, const Recipe& base) {
  std::vector<Change> changes;
  const auto add = [&](std::string name, const std::function<void(Recipe&)>& edit) {
    Recipe recipe = base;
    edit(recipe);
    if (recipe != base) changes.push_back({std::move(name), recipe});
  };
  const auto refill = [&](Recipe& recipe) {
    const std::int64_t used = std::int64_t{recipe.tp} * recipe.cp * recipe.pp;
    if (base.world() % used == 0) recipe.dp = static_cast<std::int32_t>(base.world() / used);
    settle_state_shards(recipe);
  };
  for (const RecomputeKind kind : {RecomputeKind::kSelective, RecomputeKind::kMlp, RecomputeKind::kFull}) {
    add(fmt::format("recompute={}", name_of(kind)), [&](Recipe& r) { r.recompute = {kind, 0}; });
  }
  add("micro_batch=1", [](Recipe& r) { r.micro_batch = 1; });
  for (const StateSharding sharding : {StateSharding::kZero1, StateSharding::kZero2, StateSharding::kZero3}) {
    add(fmt::format("state_sharding={}", name_of(sharding)), [&](Recipe& r) { r.state_sharding = sharding; });
  }
  if (shard_replicas(base) > 1) add("state_shards=all", [](Recipe& r) { r.state_shards = 0; });
  add(fmt::format("tp={}", base.tp * 2), [&](Recipe& r) {
    r.tp *= 2;
    r.sequence_parallel = true;
    refill(r);
  });
  add(fmt::format("cp={}", base.cp * 2), [&](Recipe& r) {
    r.cp *= 2;
    if (r.cp_comm == CpComm::kA2a) r.a2a_degree = r.cp;
    refill(r);
  });
  add(fmt::format("pp={}", base.pp * 2), [&](Recipe& r) {
    r.pp *= 2;
    refill(r);
  });
  if (base.cp > 1) {
    add("cp_comm=a2a", [](Recipe& r) {
      r.cp_comm = CpComm::kA2a;
      r.a2a_degree = r.cp;
      r.window = 1;
    });
    add("cp_comm=p2p", [](Recipe& r) {
      r.cp_comm = CpComm::kP2p;
      r.a2a_degree = r.window = 1;
    });
    for (std::int32_t u = 2; u < base.cp; u *= 2) {
      if (base.cp % u != 0) continue;
      add(fmt::format("cp_comm=a2a+p2p, a2a_degree={}", u), [&](Recipe& r) {
        r.cp_comm = CpComm::kA2aP2p;
        r.a2a_degree = u;
        r.window = 1;
      });
      add(fmt::format("cp_comm=double_ring, window={}", u), [&](Recipe& r) {
        r.cp_comm = CpComm::kDoubleRing;
        r.window = u;
        r.a2a_degree = 1;
      });
    }
  }
  if (bench.scenario().cluster.gpu.fp8.value() > 0.0 && base.precision == Precision::kBf16) {
    add("precision=fp8_current", [](Recipe& r) { r.precision = Precision::kFp8Current; });
  }
  return changes;
}

std::string costs_of(double slower, Bytes freed) {
  std::string costs;
  if (slower > 0) costs = fmt::format("step +{}", print_share(slower));
  if (freed.value() < 0) costs += fmt::format("{}memory +{}", costs.empty() ? "" : ", ", print_bytes(-1.0 * freed));
  return costs.empty() ? "nothing" : costs;
}

/// Whether a lever needs other hardware or answers a shorter question: the last ones, however much they gain.
bool changes_the_question(const Lever& lever) {
  return lever.differs.size() == 1 && (lever.differs.front() == "cluster" || lever.differs.front() == "sequence_length");
}

/// The fastest feasible recipe of a scenario under one policy, if there is one.
std::optional<Candidate> fastest_feasible(Workbench& bench, const Training& training, const Recompute& recompute) {
  Axes axes = resolve_axes(bench.scenario(), bench.rules());
  axes.recompute = {recompute};
  const SearchResult found = search(bench, training, axes, {});
  const std::optional<std::size_t> ship = choose_ship(found.candidates, bench.scenario().requirements);
  if (!ship) return std::nullopt;
  return found.candidates[*ship];
}

constexpr int kNodeDoublings = 6;         // more hardware is tried up to 64 times the cluster
constexpr std::int64_t kShortest = 4096;  // a shorter sequence is tried down to this

/// Smaller numbers of nodes that divide by a higher power of two, down to half: degrees fill them in more ways (16 of 18 trays).
std::vector<std::int64_t> rounder_nodes(std::int64_t nodes) {
  std::vector<std::int64_t> rounder;
  for (std::int64_t block = 2; block <= nodes; block *= 2) {
    const std::int64_t count = nodes / block * block;
    if (count < nodes && (rounder.empty() || count < rounder.back())) rounder.push_back(count);
  }
  return rounder;
}

/// What no recipe on this cluster can do: more nodes, or fewer tokens per sequence. Smallest change that makes something
/// feasible.
void add_outer_levers(Workbench& bench, const Training& training, const Candidate& base, std::vector<Lever>& levers) {
  const Scenario& scenario = bench.scenario();
  if (const std::optional<Lever> idle = idle_nodes(bench, training, base.recipe.recompute, std::nullopt)) levers.push_back(*idle);
  Scenario grown = scenario;
  grown.search.dp.clear();
  for (int doubling = 1; doubling <= kNodeDoublings; ++doubling) {
    Outcome<Cluster> cluster = with_nodes(scenario.cluster, scenario.cluster.nodes << doubling);
    if (!cluster.ok()) break;  // drawn whole, or beyond what can be built
    grown.cluster = std::move(cluster).value();
    Workbench larger = bench.with(grown);
    const std::optional<Candidate> found = fastest_feasible(larger, training, base.recipe.recompute);
    if (!found) continue;
    Lever lever;
    lever.change = fmt::format("nodes={}", grown.cluster.nodes);
    lever.gains =
        fmt::format("{} GPUs make cp={} tp={} pp={} dp={} feasible at {} per step", grown.cluster.gpus(), found->recipe.cp,
                    found->recipe.tp, found->recipe.pp, found->recipe.dp, print_time(found->time.step()));
    lever.costs = fmt::format("{} times the GPUs", std::int64_t{1} << doubling);
    lever.gain = 1.0;
    lever.differs = {"cluster"};
    levers.push_back(lever);
    break;
  }
  for (std::int64_t tokens = training.sequence.count() / 2; tokens >= kShortest; tokens /= 2) {
    Workbench same = bench.with(scenario);
    const std::optional<Candidate> found = fastest_feasible(same, with_sequence(training, tokens), base.recipe.recompute);
    if (!found) continue;
    Lever lever;
    lever.change = fmt::format("sequence_length={}", print_tokens(Tokens(tokens)));
    lever.gains = fmt::format("cp={} tp={} pp={} dp={} becomes feasible on these GPUs", found->recipe.cp, found->recipe.tp,
                              found->recipe.pp, found->recipe.dp);
    lever.costs = fmt::format("{} of the target length",
                              print_share(static_cast<double>(tokens) / static_cast<double>(training.sequence.count())));
    lever.gain = 0.0;  // it does not answer the question, so it comes last
    lever.differs = {"sequence_length"};
    levers.push_back(lever);
    break;
  }
}

}  // namespace

std::optional<Lever> idle_nodes(Workbench& bench, const Training& training, const Recompute& recompute,
                                const std::optional<Seconds>& faster_than) {
  const Scenario& scenario = bench.scenario();
  Scenario smaller = scenario;
  smaller.search.dp.clear();
  std::optional<Lever> best;
  Seconds step = faster_than.value_or(Seconds(std::numeric_limits<double>::infinity()));
  for (const std::int64_t nodes : rounder_nodes(scenario.cluster.nodes)) {
    Outcome<Cluster> cluster = with_nodes(scenario.cluster, nodes);
    if (!cluster.ok()) break;  // drawn whole
    smaller.cluster = std::move(cluster).value();
    Workbench rounder = bench.with(smaller);
    const std::optional<Candidate> found = fastest_feasible(rounder, training, recompute);
    if (!found || found->time.step().value() >= step.value()) continue;
    step = found->time.step();
    const std::int64_t all = scenario.cluster.gpus(), used = smaller.cluster.gpus();
    Lever lever;
    lever.change = fmt::format("nodes={}", nodes);
    lever.gains = fmt::format("{} of the {} GPUs run cp={} tp={} pp={} dp={} at {} per step", used, all, found->recipe.cp,
                              found->recipe.tp, found->recipe.pp, found->recipe.dp, print_time(step));
    if (faster_than) lever.gains += fmt::format(", {} faster", print_share(1.0 - step / *faster_than));
    lever.costs = counted(all - used, "GPU") + " left idle";
    lever.gain = faster_than ? 1.0 - step / *faster_than : 1.0;
    lever.differs = {"cluster"};
    best = std::move(lever);
  }
  return best;
}

std::vector<Lever> rank_levers(Workbench& bench, const Training& training, const Candidate& base) {
  const Requirements& requirements = bench.scenario().requirements;
  const Verdict missing = judge_candidate(base, requirements);
  std::vector<Lever> levers;
  for (const Change& change : changes_of(bench, base.recipe)) {
    const Outcome<Candidate> tried = bench.evaluate(training, change.recipe);
    if (!tried.ok()) continue;
    const Bytes freed = base.memory.device - tried->memory.device;
    const Seconds exposed_less = base.time.exposed_cp - tried->time.exposed_cp;
    const double slower = tried->time.step() / base.time.step() - 1.0;
    Lever lever;
    lever.change = change.name;
    lever.differs = differences(base.recipe, change.recipe);
    if (missing.rule == "memory") {
      if (freed.value() <= 0.0) continue;
      lever.gain = freed.value() / std::max(1.0, missing.amount);
      lever.gains = fmt::format("frees {} on the worst stage", print_bytes(freed));
    } else {
      if (exposed_less.value() <= 0.0) continue;
      lever.gain = exposed_less / base.time.exposed_cp;
      lever.gains = fmt::format("exposes {} less CP communication per step", print_time(exposed_less));
    }
    if (slower < 0) lever.gains += fmt::format(", and the step is {} shorter", print_share(-slower));
    if (missing.rule != "memory" && freed.value() > 0.0) lever.gains += fmt::format(", and frees {}", print_bytes(freed));
    if (judge_candidate(*tried, requirements).feasible()) lever.gains += ", and the recipe becomes feasible";
    lever.costs = costs_of(slower, freed);
    levers.push_back(lever);
  }
  if (const std::optional<Lever> placed = placed_better(bench, training, base); placed && missing.rule != "memory")
    levers.push_back(*placed);
  add_outer_levers(bench, training, base, levers);
  std::stable_sort(levers.begin(), levers.end(), [](const Lever& a, const Lever& b) {
    const bool later_a = changes_the_question(a), later_b = changes_the_question(b);
    return later_a != later_b ? later_b : a.gain > b.gain;
  });
  return levers;
}

}  // namespace cpfit
