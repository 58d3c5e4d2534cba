#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "model/quantity/text.h"
#include "sim/plan/explain.h"

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
  };
  for (const RecomputeKind kind : {RecomputeKind::kSelective, RecomputeKind::kFull}) {
    add(fmt::format("recompute={}", name_of(kind)), [&](Recipe& r) { r.recompute = {kind, 0}; });
  }
  add("micro_batch=1", [](Recipe& r) { r.micro_batch = 1; });
  for (const StateSharding sharding : {StateSharding::kZero1, StateSharding::kZero2, StateSharding::kZero3}) {
    add(fmt::format("state_sharding={}", name_of(sharding)), [&](Recipe& r) { r.state_sharding = sharding; });
  }
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

std::string signed_bytes(Bytes bytes) {
  return fmt::format("{}{}", bytes.value() < 0 ? "-" : "+", print_bytes(Bytes(std::abs(bytes.value()))));
}

}  // namespace

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
    lever.gains += judge_candidate(*tried, requirements).feasible() ? ", and the recipe becomes feasible" : "";
    lever.costs =
        fmt::format("step {}{}, memory {}", slower >= 0 ? "+" : "-", print_share(std::abs(slower)), signed_bytes(-1.0 * freed));
    levers.push_back(lever);
  }
  std::stable_sort(levers.begin(), levers.end(), [](const Lever& a, const Lever& b) { return a.gain > b.gain; });
  return levers;
}

}  // namespace cpfit
