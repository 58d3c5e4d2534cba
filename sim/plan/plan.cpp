#include "sim/plan/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <numeric>
#include <set>

#include "model/quantity/counted.h"
#include "model/quantity/text.h"
#include "sim/plan/explain.h"
#include "sim/plan/lengths.h"
#include "sim/plan/link_loads.h"
#include "sim/plan/sources.h"
#include "sim/plan/verdict.h"

namespace cpfit {

namespace {

constexpr std::size_t kLinksKept = 24;             // busiest links kept per shown recipe
constexpr std::int64_t kShortestCrossover = 4096;  // tokens; the ladder runs to twice the scenario's length or 1M, the longer
constexpr std::int64_t kLongestCrossover = 1 << 20;

std::string degrees(const Recipe& recipe) {
  std::string text = fmt::format("cp={} x tp={} x pp={} x dp={}", recipe.cp, recipe.tp, recipe.pp, recipe.dp);
  if (recipe.cp > 1) text += fmt::format(" ({})", name_of(recipe.cp_comm));
  return text;
}

/// Ledger and link loads of a recipe that is shown in full.
void keep_evidence(Workbench& bench, const Candidate& candidate, PlanResult& result) {
  const Outcome<ResolvedLayout> layout = resolve_layout(bench.scenario().model, candidate.recipe);
  if (!layout.ok()) return;
  const std::string text = to_text(candidate.recipe);
  const ScreenContext context = bench.context(bench.scenario().training);
  const MemoryCase at{context.model, context.training, candidate.recipe, context.rules, context.cluster.gpu, *layout};
  result.ledgers.emplace_back(text, stage_ledger(at, candidate.memory.stage));
  result.links.emplace_back(text, link_loads(context, candidate.recipe, kLinksKept));
}

std::string control_sentence(const PlanResult& result) {
  if (!result.has_control) return "No CP=1 recipe is legal here, so there is no control.";
  const Candidate& control = result.control;
  if (result.ships && control.recipe == result.ship.recipe) return "It is the control itself: context parallelism is not needed.";
  if (control.verdict.fit != Fit::kFits) {
    return fmt::format("Without context parallelism the best recipe at the same recompute and precision ({}) needs {} of {}: {}.",
                       degrees(control.recipe), print_bytes(control.memory.device), print_bytes(control.verdict.capacity),
                       control.verdict.fit == Fit::kOom ? "out of memory" : "at risk");
  }
  if (!result.ships)
    return fmt::format("Without context parallelism {} is nearest: {}.", degrees(control.recipe),
                       control.reasons.empty() ? "it fits" : control.reasons.front());
  const double gain = control.time.step() / result.ship.time.step() - 1.0;
  return fmt::format("Without context parallelism {} fits as well; its step is {} {}.", degrees(control.recipe),
                     print_share(std::abs(gain)), gain >= 0 ? "longer" : "shorter");
}

/// What the rules that refused most recipes ask for.
std::string refusals(const PlanStats& stats) {
  constexpr std::size_t kNamed = 3;
  auto counted = stats.rejected_by_rule;
  std::stable_sort(counted.begin(), counted.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  std::string text;
  for (std::size_t i = 0; i < std::min(kNamed, counted.size()); ++i) {
    for (const LegalityRule& rule : legality_rules()) {
      if (rule.id == counted[i].first)
        text +=
            fmt::format("{}{} of them break {} ({}): {}", i == 0 ? "" : "; ", counted[i].second, rule.id, rule.what, rule.why);
    }
  }
  return text + ".";
}

std::string answer(const PlanResult& result, const Scenario& scenario) {
  const std::string question = fmt::format("{} at {} tokens on {}", scenario.model.name, print_tokens(scenario.training.sequence),
                                           counted(scenario.cluster.gpus(), "GPU"));
  if (result.stats.evaluated == 0) {
    return fmt::format("{}: no recipe of the search space is legal ({} considered). {}", question, result.stats.considered,
                       refusals(result.stats));
  }
  if (!result.ships) {
    return fmt::format("{}: no legal recipe fits with margin, hides its ring and meets the throughput ({} screened). {}",
                       question, counted(result.stats.evaluated, "recipe"), control_sentence(result));
  }
  const Candidate& ship = result.ship;
  const double exposed = exposed_cp_share(ship);
  const std::string exposure = ship.recipe.cp == 1 ? ""
                               : exposed < 0.001
                                   ? ", and exposes less than 0.1 % of the step to CP traffic"
                                   : fmt::format(", and exposes {:.1f} % of the step to CP traffic", exposed * 100.0);
  return fmt::format(
      "{}: ship {}, recompute {}, micro-batch {}. It needs {} of {} on its worst stage ({} in {}), takes {} per step, {:.0f} "
      "tokens/s per GPU{}. {}",
      question, degrees(ship.recipe), to_text(ship.recipe.recompute), ship.recipe.micro_batch, print_bytes(ship.memory.device),
      print_bytes(ship.verdict.capacity), fmt::format("stage {}", ship.memory.stage), name_of(ship.memory.phase),
      print_time(ship.time.step()), ship.tokens_per_second_per_gpu, exposure, control_sentence(result));
}

/// The recipe nearest to feasible when none ships: hides nothing but fits, else the one that misses least memory.
std::optional<std::size_t> nearest_miss(const std::vector<Candidate>& candidates, const Requirements& requirements) {
  std::optional<std::size_t> nearest;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    if (!nearest || ranks_before(candidates[i], candidates[*nearest], requirements)) nearest = i;
  }
  return nearest;
}

void sweep_around(const Scenario& scenario, const RateSet& rates, const Recipe& base, PlanResult& result) {
  std::vector<std::int32_t> cps;
  for (std::int32_t cp = 1; cp <= std::max(16, base.cp * 4) && cp <= 1024; cp *= 2) cps.push_back(cp);
  for (SweepPointOrReason& point : controlled_sweep(scenario, rates, base, cps, {scenario.training.sequence.count()})) {
    if (!point.candidate) continue;
    result.sweep.push_back({*point.candidate, point.gpus});
  }
}

/// The control where the search was not asked for CP=1: a comparison needs it all the same.
std::optional<Candidate> control_outside(Workbench& bench, const Training& training, Axes axes, const Recompute& policy,
                                         const SearchControls& controls) {
  if (std::find(axes.cp.begin(), axes.cp.end(), 1) != axes.cp.end()) return std::nullopt;
  axes.cp = {1};
  axes.recompute = {policy};
  SearchControls quiet;  // whoever watches the search asked for what it searches
  quiet.stop = controls.stop;
  const SearchResult found = search(bench, training, axes, quiet);
  const Scenario& scenario = bench.scenario();
  const std::optional<std::size_t> best =
      choose_control(found.candidates, scenario.requirements, policy, scenario.base.precision);
  return best ? std::optional(found.candidates[*best]) : std::nullopt;
}

}  // namespace

Outcome<PlanResult> plan(const Scenario& scenario, const RateSet& rates, const PlanOptions& options) {
  Outcome<Workbench> built = Workbench::build(scenario, rates);
  if (!built) return built.problems();
  Workbench bench = std::move(built).value();
  const Requirements& requirements = scenario.requirements;
  const Training& training = scenario.training;

  PlanResult result;
  result.provenance.scenario_name = scenario.name;
  result.provenance.scenario_path = scenario.path;
  result.provenance.scenario_text = scenario.text;
  result.provenance.rule_set = bench.rules().name + " (" + bench.rules().version + ")";
  result.provenance.rates_version = rates.version();

  const Axes axes = resolve_axes(scenario, bench.rules());
  SearchResult found = search(bench, training, axes, options.controls);
  result.stats = found.stats;
  std::vector<Candidate>& candidates = found.candidates;

  const std::optional<std::size_t> ship = choose_ship(candidates, requirements);
  const std::optional<std::size_t> miss = ship ? ship : nearest_miss(candidates, requirements);
  const Recompute policy = miss ? candidates[*miss].recipe.recompute : scenario.base.recompute;
  const std::optional<std::size_t> control = choose_control(candidates, requirements, policy, scenario.base.precision);
  std::optional<Candidate> control_candidate = control ? std::optional(candidates[*control])
                                               : miss  ? control_outside(bench, training, axes, policy, options.controls)
                                                       : std::nullopt;
  if (control_candidate) {
    result.has_control = true;
    result.control = *control_candidate;
    annotate(bench, training, std::nullopt, result.control);
    result.control.status = CandidateStatus::kControl;
  }
  if (ship) {
    result.ships = true;
    result.ship = candidates[*ship];
    annotate(bench, training, control_candidate, result.ship);
    result.ship.status = CandidateStatus::kShip;
    for (std::string& remark : remarks_on(bench.context(training), result.ship.recipe))
      result.ship.reasons.push_back(std::move(remark));
    result.levers = ship_levers(bench, training, result.ship);
    result.neighbours = explain_neighbours(bench, training, candidates, result.ship);
    for (Neighbour& neighbour : result.neighbours) {
      neighbour.candidate.status = CandidateStatus::kReject;
      if (!neighbour.rule.starts_with("legality")) annotate(bench, training, control_candidate, neighbour.candidate);
    }
  } else if (miss) {
    result.levers = rank_levers(bench, training, candidates[*miss]);
  }

  // The ranking keeps one recipe per set of degrees: near-copies would crowd out the alternatives a reader wants to see.
  std::vector<std::size_t> order(candidates.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return ranks_before(candidates[a], candidates[b], requirements); });
  std::set<std::tuple<std::int32_t, std::int32_t, std::int32_t, std::int32_t>> seen;
  for (const std::size_t i : order) {
    if (result.candidates.size() >= options.top) break;
    const Recipe& recipe = candidates[i].recipe;
    if (!seen.insert({recipe.tp, recipe.cp, recipe.pp, recipe.dp}).second) continue;
    Candidate candidate = candidates[i];
    annotate(bench, training, control_candidate, candidate);
    candidate.status = ship && i == *ship                                    ? CandidateStatus::kShip
                       : control && i == *control                            ? CandidateStatus::kControl
                       : judge_candidate(candidate, requirements).feasible() ? CandidateStatus::kOk
                                                                             : CandidateStatus::kReject;
    result.candidates.push_back(std::move(candidate));
  }
  for (const std::size_t i : pareto_front(candidates)) {
    result.front.push_back(candidates[i]);
    annotate(bench, training, control_candidate, result.front.back());
  }

  if (result.ships) keep_evidence(bench, result.ship, result);
  if (result.has_control && !(result.ships && result.control.recipe == result.ship.recipe))
    keep_evidence(bench, result.control, result);
  for (const Neighbour& neighbour : result.neighbours) {
    if (!neighbour.rule.starts_with("legality")) keep_evidence(bench, neighbour.candidate, result);
  }
  // Whoever stopped the search wants what it found, not what more could be said of it.
  const bool stopped = options.controls.stop != nullptr && options.controls.stop->load();
  if (miss && !stopped) {
    const Candidate& around = candidates[*miss];
    sweep_around(scenario, rates, around.recipe, result);
    if (options.crossover) {
      const std::int64_t longest = std::max(kLongestCrossover, 2 * training.sequence.count());
      result.crossover = find_crossover(bench, around, kShortestCrossover, longest);
    }
  }
  result.answer = answer(result, scenario);
  if (options.timeline && !stopped) {
    const auto begin = std::chrono::steady_clock::now();
    confirm(bench, training, options.confirm, result);
    result.stats.timeline_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  }
  return result;
}

}  // namespace cpfit
