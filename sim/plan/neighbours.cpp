#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "model/quantity/text.h"
#include "model/recipe/data_ranks.h"
#include "sim/plan/explain.h"

namespace cpfit {

namespace {

/// The degrees of a recipe and every other key in which it differs from the ship: "cp=2 tp=4 pp=1 dp=2 vpp=8".
std::string name_beside(const Recipe& recipe, const Recipe& ship) {
  std::string text = fmt::format("cp={} tp={} pp={} dp={}", recipe.cp, recipe.tp, recipe.pp, recipe.dp);
  const std::string complete = to_complete_text(recipe) + ",";  // "key=value," for every key
  for (const std::string& key : differences(ship, recipe)) {
    const bool named = key == "cp" || key == "tp" || key == "pp" || key == "dp";
    const std::size_t at = named ? std::string::npos : ("," + complete).find("," + key + "=");
    if (at != std::string::npos) text += " " + complete.substr(at, complete.find(',', at) - at);
  }
  return text;
}

/// Why `other` was not taken although it may be feasible.
Neighbour compare(const Candidate& other, const Candidate& ship, const Requirements& requirements) {
  Neighbour neighbour;
  neighbour.candidate = other;
  const Verdict verdict = judge_candidate(other, requirements);
  if (!verdict.feasible()) {
    neighbour.rule = verdict.rule;
    neighbour.amount = verdict.amount;
    neighbour.unit = verdict.unit;
    neighbour.sentence = verdict.sentence + fmt::format(" ({})", name_beside(other.recipe, ship.recipe));
    return neighbour;
  }
  const double slower = other.time.step() / ship.time.step() - 1.0;
  neighbour.amount = slower;
  neighbour.unit = "share";
  if (slower > 0.0) {
    neighbour.rule = "slower";
    neighbour.sentence = fmt::format("{} fits and hides its traffic, but its step is {} longer",
                                     name_beside(other.recipe, ship.recipe), print_share(slower));
  } else {
    neighbour.rule = "larger_cp";
    neighbour.sentence = fmt::format("{} fits and hides its traffic and is {} faster: within the tolerance, and cp={} is enough",
                                     name_beside(other.recipe, ship.recipe), print_share(-slower), ship.recipe.cp);
  }
  return neighbour;
}

/// One step along an axis with the others kept and dp making up the world; empty when the degrees do not divide.
std::vector<Recipe> axis_steps(const Recipe& ship) {
  std::vector<Recipe> steps;
  const auto with = [&](std::int32_t tp, std::int32_t cp, std::int32_t pp) {
    const std::int64_t used = std::int64_t{tp} * cp * pp;
    if (tp < 1 || cp < 1 || pp < 1 || used < 1 || ship.world() % used != 0) return;
    Recipe recipe = ship;
    recipe.tp = tp;
    recipe.cp = cp;
    recipe.pp = pp;
    recipe.dp = static_cast<std::int32_t>(ship.world() / used);
    settle_state_shards(recipe);
    if (cp != ship.cp) {
      if (recipe.cp_comm == CpComm::kA2a) recipe.a2a_degree = cp;
      if (cp == 1) recipe.a2a_degree = recipe.window = 1;
    }
    if (pp == 1) {
      recipe.vpp = 1;
      recipe.stage_layout = StageLayout{};
      recipe.schedule = Schedule::kOneFOneB;
    }
    steps.push_back(recipe);
  };
  if (ship.cp % 2 == 0) with(ship.tp, ship.cp / 2, ship.pp);
  with(ship.tp, ship.cp * 2, ship.pp);
  if (ship.tp % 2 == 0) with(ship.tp / 2, ship.cp, ship.pp);
  with(ship.tp * 2, ship.cp, ship.pp);
  if (ship.pp % 2 == 0) with(ship.tp, ship.cp, ship.pp / 2);
  with(ship.tp, ship.cp, ship.pp * 2);
  return steps;
}

/// The best candidate of every other recompute policy: its own comparison, never a gain of CP.
void add_policies(const std::vector<Candidate>& candidates, const Candidate& ship, const Requirements& requirements,
                  std::vector<Neighbour>& neighbours) {
  std::map<Recompute, std::size_t> best;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    const Recipe& recipe = candidates[i].recipe;
    if (recipe.recompute == ship.recipe.recompute) continue;
    const auto [found, fresh] = best.try_emplace(recipe.recompute, i);
    if (!fresh && ranks_before(candidates[i], candidates[found->second], requirements)) found->second = i;
  }
  for (const auto& [recompute, index] : best) {
    Neighbour neighbour = compare(candidates[index], ship, requirements);
    const bool feasible = judge_candidate(candidates[index], requirements).feasible();
    neighbour.sentence =
        feasible ? fmt::format("recompute={}: {}", to_text(recompute), neighbour.sentence)
                 : fmt::format("recompute={}: nothing is feasible; nearest, {}", to_text(recompute), neighbour.sentence);
    neighbours.push_back(neighbour);
  }
}

}  // namespace

std::vector<Neighbour> explain_neighbours(Workbench& bench, const Training& training, const std::vector<Candidate>& candidates,
                                          const Candidate& ship) {
  const Requirements& requirements = bench.scenario().requirements;
  std::vector<Neighbour> neighbours;
  std::set<Recipe> seen{ship.recipe};
  std::set<std::int32_t> cps;
  for (const Candidate& candidate : candidates) cps.insert(candidate.recipe.cp);
  for (const std::int32_t cp : cps) {
    if (cp == ship.recipe.cp) continue;
    const auto best = best_of_cp(candidates, requirements, cp, ship.recipe.recompute, ship.recipe.precision);
    if (!best || !seen.insert(candidates[*best].recipe).second) continue;
    neighbours.push_back(compare(candidates[*best], ship, requirements));
  }
  add_policies(candidates, ship, requirements, neighbours);
  for (const Neighbour& neighbour : neighbours) seen.insert(neighbour.candidate.recipe);
  for (const Recipe& recipe : axis_steps(ship.recipe)) {
    if (!seen.insert(recipe).second) continue;
    const Outcome<Candidate> candidate = bench.evaluate(training, recipe);
    if (candidate.ok()) {
      neighbours.push_back(compare(*candidate, ship, requirements));
      continue;
    }
    const Problem& first = candidate.problems().front();
    Neighbour neighbour;
    neighbour.candidate.recipe = recipe;
    neighbour.rule = first.code;
    neighbour.unit = "";
    neighbour.sentence = fmt::format("{} is not legal: {}", name_beside(recipe, ship.recipe), first.message);
    neighbours.push_back(neighbour);
  }
  // What two recipes have in common is said once: without saved scores selective recompute needs what none needs.
  std::set<std::string> said;
  std::erase_if(neighbours, [&](const Neighbour& neighbour) { return !said.insert(neighbour.sentence).second; });
  return neighbours;
}

}  // namespace cpfit
