// Scenarios for the tests of the desktop program: short, and answered within milliseconds.
#pragma once

#include <memory>
#include <string>

#include "gui/study/design.h"
#include "model/rates/rate_set.h"

namespace cpfit::gui {

/// Llama 3 8B on one DGX H100: 8 GPUs.
inline std::string example_toml(const std::string& sequence = "128k") {
  return "# a comment\n"
         "name = \"test study\"\n"
         "model = \"llama3-8b\"\n\n"
         "[cluster]\npreset = \"dgx-h100\"\nnodes = 1\n\n"
         "[training]\nsequence_length = \"" +
         sequence +
         "\"   # tokens\nglobal_batch = 8\nprecision = \"bf16\"\nframework = \"megatron-core\"\n\n"
         "[search]\ntp = [1, 2, 4, 8]\ncp = \"auto\"\ncp_comm = [\"p2p\", \"all_gather\", \"a2a\"]\nrecompute = [\"none\", "
         "\"full\"]\n";
}

/// tp 2, cp 4, full recompute unless told otherwise.
inline Design example_design(const std::string& recipe = "tp=2,cp=4,pp=1,dp=1,recompute=full",
                             const std::string& sequence = "128k") {
  const Outcome<Scenario> scenario = read_scenario(example_toml(sequence), "test.toml");
  Design design;
  design.scenario = std::make_shared<const Scenario>(scenario.value());
  design.recipe = parse_recipe(recipe, scenario->base).value();
  return design;
}

inline std::shared_ptr<const RateSet> example_rates() { return std::make_shared<const RateSet>(RateSet::defaults()); }

}  // namespace cpfit::gui
