// Plans a scenario with cpfit's libraries and prints what ships: a recipe, its bytes, its seconds.
#include <cstdio>

#include "model/rates/rate_set.h"
#include "model/recipe/scenario.h"
#include "sim/plan/plan.h"

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const cpfit::Outcome<cpfit::Scenario> scenario = cpfit::load_scenario(argv[1]);
  if (!scenario.ok()) {
    for (const cpfit::Problem& problem : scenario.problems()) std::fprintf(stderr, "%s\n", cpfit::to_text(problem).c_str());
    return 2;
  }
  cpfit::PlanOptions options;
  options.crossover = false;
  options.timeline = false;
  const cpfit::RateSet rates = cpfit::RateSet::defaults();
  const cpfit::Outcome<cpfit::PlanResult> result = cpfit::plan(*scenario, rates, options);
  if (!result.ok() || !result->ships) return 3;
  std::printf("%s\n%.0f bytes\n%.6f seconds\n", cpfit::to_complete_text(result->ship.recipe).c_str(),
              result->ship.memory.device.value(), result->ship.time.step().value());
  return 0;
}
