#include "sim/ask/why_not.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "model/quantity/counted.h"
#include "model/quantity/percent.h"
#include "model/quantity/text.h"
#include "sim/ask/fit_space.h"
#include "sim/plan/search.h"

namespace cpfit::ask {

namespace {

std::optional<Candidate> nearest(const std::vector<Candidate>& candidates, const Requirements& requirements) {
  std::optional<Candidate> best;
  for (const Candidate& candidate : candidates) {
    if (!best || ranks_before(candidate, *best, requirements)) best = candidate;
  }
  return best;
}

/// Feasible, else fitting, else the least memory: the most a degree can do.
std::optional<Candidate> best_of(const std::vector<Candidate>& candidates, const Requirements& requirements) {
  std::optional<Candidate> best;
  const auto better = [&](const Candidate& a, const Candidate& b) {
    const bool fa = a.verdict.fit == Fit::kFits, fb = b.verdict.fit == Fit::kFits;
    if (fa != fb) return fa;
    if (!fa && a.memory.device != b.memory.device) return a.memory.device < b.memory.device;
    return ranks_before(a, b, requirements);
  };
  for (const Candidate& candidate : candidates) {
    if (!best || better(candidate, *best)) best = candidate;
  }
  return best;
}

std::vector<TimePart> parts_of(const TimeBreakdown& asked, const TimeBreakdown& best) {
  std::vector<TimePart> parts = {{"compute", asked.compute, best.compute},
                                 {"exposed cp", asked.exposed_cp, best.exposed_cp},
                                 {"exposed tp", asked.exposed_tp, best.exposed_tp},
                                 {"exposed pp", asked.exposed_pp, best.exposed_pp},
                                 {"exposed dp", asked.exposed_dp, best.exposed_dp},
                                 {"bubble", asked.bubble, best.bubble},
                                 {"launch", asked.launch, best.launch},
                                 {"optimizer", asked.optimizer, best.optimizer},
                                 {"other", asked.other, best.other}};
  const auto difference = [](const TimePart& part) { return std::abs(part.asked.value() - part.best.value()); };
  std::stable_sort(parts.begin(), parts.end(),
                   [&](const TimePart& a, const TimePart& b) { return difference(a) > difference(b); });
  return parts;
}

/// The component of the peak that is largest among those that grow with what a rank holds of the sequence.
std::string filled_by(const Candidate& candidate) {
  std::vector<std::pair<double, Component>> parts;
  for (int i = 0; i < kComponentCount; ++i) {
    parts.emplace_back(candidate.memory.components[static_cast<std::size_t>(i)].value(), static_cast<Component>(i));
  }
  std::stable_sort(parts.begin(), parts.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  return fmt::format("largest parts: {} {}, {} {}, {} {}", name_of(parts[0].second), print_bytes(Bytes(parts[0].first)),
                     name_of(parts[1].second), print_bytes(Bytes(parts[1].first)), name_of(parts[2].second),
                     print_bytes(Bytes(parts[2].first)));
}

std::string hop_sentence(const Candidate& candidate) {
  const CpExposure& cp = candidate.cp;
  return fmt::format(
      "one hop of the ring takes {} forward and {} backward{}; the smallest forward step that should hide one computes {}",
      print_time(cp.forward_message), print_time(cp.backward_message), cp.crosses_node ? ", across nodes" : "",
      print_time(cp.forward_step_compute));
}

/// What every recompute policy of this degree comes to, where none fits.
void add_policies(const std::vector<Candidate>& candidates, std::vector<std::string>& more) {
  std::map<Recompute, const Candidate*> least;
  for (const Candidate& candidate : candidates) {
    const Candidate*& entry = least[candidate.recipe.recompute];
    if (entry == nullptr || candidate.memory.device < entry->memory.device) entry = &candidate;
  }
  for (const auto& [policy, candidate] : least) {
    more.push_back(fmt::format("recompute={}: the least is {} of {} (tp={} pp={} dp={})", to_text(policy),
                               print_bytes(candidate->memory.device), print_bytes(candidate->verdict.capacity),
                               candidate->recipe.tp, candidate->recipe.pp, candidate->recipe.dp));
  }
}

/// The shipped recipe with that degree, or the first set of degrees that divides.
Recipe closest_recipe(const Scenario& scenario, const std::optional<Candidate>& best, std::int32_t cp) {
  const Recipe base = best ? best->recipe : scenario.base;
  const std::int64_t gpus = scenario.cluster.gpus();
  if (const std::optional<Recipe> same = with_cp(base, cp, gpus)) return *same;
  Recipe plain = base;
  plain.tp = plain.pp = plain.vpp = 1;
  plain.stage_layout = {};
  plain.schedule = Schedule::kOneFOneB;
  if (const std::optional<Recipe> divided = with_cp(plain, cp, gpus)) return *divided;
  plain.cp = cp;
  plain.dp = 1;
  return plain;
}

}  // namespace

std::string_view name_of(WhyNotRule rule) {
  constexpr std::string_view kNames[] = {"ships",  "illegal",           "memory", "exposed_cp", "throughput",
                                         "slower", "larger_than_needed"};
  return kNames[static_cast<std::size_t>(rule)];
}

WhyNot why_not(Workbench& bench, std::int32_t cp) {
  const Scenario& scenario = bench.scenario();
  const Requirements& requirements = scenario.requirements;
  Axes axes = resolve_axes(scenario, bench.rules());
  const SearchResult all = search(bench, scenario.training, axes, {});
  WhyNot answer;
  answer.cp = cp;
  if (const std::optional<std::size_t> ship = choose_ship(all.candidates, requirements)) {
    answer.best = all.candidates[*ship];
    answer.ships = true;
  } else {
    answer.best = nearest(all.candidates, requirements);
  }
  axes.cp = {cp};
  const SearchResult of_degree = search(bench, scenario.training, axes, {});
  answer.asked = best_of(of_degree.candidates, requirements);
  if (!answer.asked) {
    answer.rule = WhyNotRule::kIllegal;
    const Recipe recipe = closest_recipe(scenario, answer.best, cp);
    answer.violations = explain_violations(bench.legality(scenario.training, recipe));
    answer.sentence =
        fmt::format("cp={} has no legal recipe in this search space ({} considered)", cp, of_degree.stats.considered);
    for (const auto& [rule, count] : of_degree.stats.rejected_by_rule)
      answer.more.push_back(fmt::format("{} {} rule {}", counted(count, "recipe"), count == 1 ? "breaks" : "break", rule));
    return answer;
  }
  const Candidate& asked = *answer.asked;
  if (answer.best) answer.parts = parts_of(asked.time, answer.best->time);
  const Verdict verdict = judge_candidate(asked, requirements);
  if (verdict.rule == "memory") {
    answer.rule = WhyNotRule::kMemory;
    answer.sentence = fmt::format("{}, {} of {} needed; {}", verdict.sentence, print_bytes(asked.memory.device),
                                  print_bytes(asked.verdict.capacity), filled_by(asked));
    add_policies(of_degree.candidates, answer.more);
    if (const double share = exposed_cp_share(asked); share > requirements.exposed_budget_share) {
      answer.more.push_back(fmt::format("it would expose {} of the step to CP traffic too", print_share(share)));
    }
  } else if (!verdict.feasible()) {
    answer.rule = verdict.rule == "exposed_cp" ? WhyNotRule::kExposed : WhyNotRule::kThroughput;
    answer.sentence = verdict.sentence;
    answer.more.push_back(hop_sentence(asked));
  } else if (answer.ships && answer.best->recipe.cp == cp) {
    answer.rule = WhyNotRule::kItShips;
    answer.sentence = fmt::format("cp={} is what ships", cp);
  } else if (!answer.ships || answer.best->time.step() < asked.time.step()) {
    answer.rule = WhyNotRule::kSlower;
    const double slower = answer.best ? asked.time.step() / answer.best->time.step() - 1.0 : 0.0;
    answer.sentence = fmt::format("cp={} fits and hides its traffic, but its step is {} longer", cp, print_share(slower));
    if (!answer.parts.empty()) {
      const TimePart& part = answer.parts.front();
      answer.more.push_back(
          fmt::format("most of it is {}: {} against {}", part.name, print_time(part.asked), print_time(part.best)));
    }
  } else {
    answer.rule = WhyNotRule::kLargerThanNeeded;
    answer.sentence =
        fmt::format("cp={} fits, hides its traffic and is {} faster: within the tolerance of {}, and cp={} is enough", cp,
                    print_share(1.0 - asked.time.step() / answer.best->time.step()),
                    given_share_text(requirements.throughput_tolerance_share), answer.best->recipe.cp);
  }
  return answer;
}

}  // namespace cpfit::ask
