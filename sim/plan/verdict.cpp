#include "sim/plan/verdict.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "model/quantity/percent.h"
#include "model/quantity/text.h"

namespace cpfit {

namespace {

/// Strict total order for ties: by the recipe itself, so that a run is a function of its inputs.
bool earlier(const Candidate& a, const Candidate& b) { return a.recipe < b.recipe; }

bool same_policy(const Candidate& candidate, const Recompute& recompute, Precision precision) {
  return candidate.recipe.recompute == recompute && candidate.recipe.precision == precision;
}

/// How good a candidate is inside one CP degree: feasible and fast first, then fitting, then small.
bool better(const Candidate& a, const Candidate& b, const Requirements& requirements) {
  const bool fa = judge_candidate(a, requirements).feasible(), fb = judge_candidate(b, requirements).feasible();
  if (fa != fb) return fa;
  const bool ma = a.verdict.fit == Fit::kFits, mb = b.verdict.fit == Fit::kFits;
  if (ma != mb) return ma;
  if (ma) {
    if (a.time.step() != b.time.step()) return a.time.step() < b.time.step();
  } else if (a.memory.device != b.memory.device) {
    return a.memory.device < b.memory.device;
  }
  return earlier(a, b);
}

template <class Accept>
std::optional<std::size_t> best_where(const std::vector<Candidate>& candidates, const Requirements& requirements, Accept accept) {
  std::optional<std::size_t> best;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    if (!accept(candidates[i])) continue;
    if (!best || better(candidates[i], candidates[*best], requirements)) best = i;
  }
  return best;
}

std::string name_cp(const Candidate& candidate) { return fmt::format("cp={}", candidate.recipe.cp); }

}  // namespace

double exposed_cp_share(const Candidate& candidate) {
  const double step = candidate.time.step().value();
  return step > 0.0 ? candidate.time.exposed_cp.value() / step : 0.0;
}

Verdict judge_candidate(const Candidate& candidate, const Requirements& requirements) {
  Verdict verdict;
  if (candidate.verdict.fit != Fit::kFits) {
    verdict.rule = "memory";
    verdict.unit = "bytes";
    verdict.amount =
        -candidate.verdict.margin.value() +
        requirements.memory_margin_share * candidate.verdict.capacity.value();  // missing, the required margin included
    const char* how = candidate.verdict.fit == Fit::kOom ? "misses by" : "is at risk, short of its margin by";
    verdict.sentence = fmt::format("{} {} {} on stage {} in {}", name_cp(candidate), how, print_bytes(Bytes(verdict.amount)),
                                   candidate.memory.stage, name_of(candidate.memory.phase));
    return verdict;
  }
  const double exposed = exposed_cp_share(candidate);
  if (exposed > requirements.exposed_budget_share) {
    verdict.rule = "exposed_cp";
    verdict.unit = "share";
    verdict.amount = exposed;
    verdict.sentence =
        fmt::format("{} exposes CP communication for {} of the step{}, budget {}", name_cp(candidate), print_share(exposed),
                    candidate.cp.crosses_node ? " across nodes" : "", given_share_text(requirements.exposed_budget_share));
    return verdict;
  }
  if (candidate.tokens_per_second_per_gpu < requirements.min_tokens_per_second_per_gpu) {
    verdict.rule = "throughput";
    verdict.unit = "tokens_per_second_per_gpu";
    verdict.amount = requirements.min_tokens_per_second_per_gpu - candidate.tokens_per_second_per_gpu;
    verdict.sentence = fmt::format("{} reaches {:.0f} tokens/s per GPU of the {:.0f} required", name_cp(candidate),
                                   candidate.tokens_per_second_per_gpu, requirements.min_tokens_per_second_per_gpu);
  }
  return verdict;
}

bool ranks_before(const Candidate& a, const Candidate& b, const Requirements& requirements) { return better(a, b, requirements); }

std::optional<std::size_t> choose_ship(const std::vector<Candidate>& candidates, const Requirements& requirements) {
  double fastest = 0.0;
  for (const Candidate& candidate : candidates) {
    if (judge_candidate(candidate, requirements).feasible()) fastest = std::max(fastest, candidate.tokens_per_second_per_gpu);
  }
  if (fastest <= 0.0) return std::nullopt;
  const double pace = fastest * (1.0 - requirements.throughput_tolerance_share);
  std::optional<std::size_t> ship;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    const Candidate& candidate = candidates[i];
    if (candidate.tokens_per_second_per_gpu < pace || !judge_candidate(candidate, requirements).feasible()) continue;
    if (!ship || candidate.recipe.cp < candidates[*ship].recipe.cp ||
        (candidate.recipe.cp == candidates[*ship].recipe.cp && better(candidate, candidates[*ship], requirements))) {
      ship = i;
    }
  }
  return ship;
}

std::optional<std::size_t> choose_control(const std::vector<Candidate>& candidates, const Requirements& requirements,
                                          const Recompute& recompute, Precision precision) {
  return best_of_cp(candidates, requirements, 1, recompute, precision);
}

std::optional<std::size_t> best_of_cp(const std::vector<Candidate>& candidates, const Requirements& requirements, std::int32_t cp,
                                      const Recompute& recompute, Precision precision) {
  return best_where(candidates, requirements, [&](const Candidate& candidate) {
    return candidate.recipe.cp == cp && same_policy(candidate, recompute, precision);
  });
}

std::vector<std::size_t> pareto_front(const std::vector<Candidate>& candidates) {
  std::vector<std::size_t> order(candidates.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    const Candidate &x = candidates[a], &y = candidates[b];
    if (x.time.step() != y.time.step()) return x.time.step() < y.time.step();
    if (x.memory.device != y.memory.device) return x.memory.device < y.memory.device;
    return earlier(x, y);
  });
  std::vector<std::size_t> front;
  for (const std::size_t i : order) {
    if (front.empty() || candidates[i].memory.device < candidates[front.back()].memory.device) front.push_back(i);
  }
  return front;
}

}  // namespace cpfit
