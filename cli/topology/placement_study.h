// What topology show and place lay on a cluster: a recipe, and the model and sequence whose messages are priced.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "cli/json.h"
#include "model/cluster/cluster.h"
#include "model/rates/rate_set.h"
#include "sim/plan/placement_search.h"
#include "sim/plan/workbench.h"

namespace cpfit::cli {

struct PlacementOptions {
  std::string recipe;  // empty: tp and cp of the command, dp takes the rest
  std::string model = "llama3-8b";
  std::string sequence = "128k";
  std::int64_t global_batch = 0;  // sequences per optimizer step; 0: one micro-batch per dp rank and stage
};

/// --recipe, --model, --seq, --global-batch.
void add_placement_options(CLI::App& command, PlacementOptions& options);

class PlacementStudy {
 public:
  /// Problems: unreadable recipe, one that the framework forbids or the cluster cannot hold, unknown model, unreadable sequence.
  [[nodiscard]] static Outcome<PlacementStudy> build(const Cluster& cluster, const PlacementOptions& options);
  /// The groups of --tp and --cp alone, dp filling the cluster; no recipe is judged.
  [[nodiscard]] static Outcome<PlacementStudy> build(const Cluster& cluster, const PlacementOptions& options, std::int32_t tp,
                                                     std::int32_t cp);

  [[nodiscard]] const Recipe& recipe() const { return recipe_; }
  [[nodiscard]] const Cluster& cluster() const { return bench_->scenario().cluster; }
  [[nodiscard]] ScreenContext context() const { return bench_->context(bench_->scenario().training); }
  /// "llama3-8b at 128k tokens, 1 sequence per step".
  [[nodiscard]] std::string subject() const;
  /// Some groups have members without a route between them: no time can be told.
  [[nodiscard]] bool routed() const;

 private:
  PlacementStudy(Scenario scenario, const Recipe& recipe);
  std::shared_ptr<const RateSet> rates_;
  Recipe recipe_;
  std::optional<Workbench> bench_;
};

[[nodiscard]] Json placement_json(const Placement& placement);
[[nodiscard]] Json price_json(const PlacementPrice& price);

}  // namespace cpfit::cli
