// A scenario built in code for the tests of the simulator: small, known, on a preset cluster.
#pragma once

#include <gtest/gtest.h>

#include "model/recipe/scenario.h"

namespace cpfit::test {

/// Llama 3 8B on DGX H100 nodes.
inline Scenario llama_on_dgx(std::int64_t nodes, std::int64_t sequence, std::int64_t global_batch,
                             const std::string& extra = {}) {
  const std::string text =
      "name = \"test\"\nmodel = \"llama3-8b\"\n[cluster]\npreset = \"dgx-h100\"\nnodes = " + std::to_string(nodes) +
      "\n[training]\nsequence_length = " + std::to_string(sequence) + "\nglobal_batch = " + std::to_string(global_batch) + "\n" +
      extra;
  Outcome<Scenario> scenario = read_scenario(text, "test.toml");
  for (const Problem& problem : scenario.problems()) ADD_FAILURE() << to_text(problem);
  return std::move(scenario).value();
}

}  // namespace cpfit::test
