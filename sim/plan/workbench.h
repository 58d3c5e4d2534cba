// Everything a study keeps fixed while it evaluates recipes: rule set, rates, network. Built once per scenario; training may
// vary (the sequence-length curve), the cluster may not.
#pragma once

#include <map>
#include <optional>
#include <tuple>
#include <vector>

#include "model/recipe/legality.h"
#include "model/recipe/scenario.h"
#include "sim/screen/layer_cost.h"

namespace cpfit {

/// Resolved stage layouts by (pp, vpp, layout), so that a search resolves each once.
class LayoutCache {
 public:
  explicit LayoutCache(const Architecture& model) : model_(&model) {}
  /// nullptr when the layout does not resolve. Not thread safe: fill it before a parallel search with `prepare`.
  const ResolvedLayout* prepare(const Recipe& recipe);
  [[nodiscard]] const ResolvedLayout* find(const Recipe& recipe) const;

 private:
  using Key = std::tuple<std::int32_t, std::int32_t, StageLayout>;
  const Architecture* model_;
  std::map<Key, std::optional<ResolvedLayout>> known_;
};

class Workbench {
 public:
  /// Both must outlive the workbench, which refers to them. Problems: unknown rule set.
  [[nodiscard]] static Outcome<Workbench> build(const Scenario& scenario, const RateSet& rates);
  static Outcome<Workbench> build(const Scenario& scenario, RateSet&& rates) = delete;  // it would be gone at once

  [[nodiscard]] const Scenario& scenario() const { return *scenario_; }
  [[nodiscard]] const RuleSet& rules() const { return *rules_; }
  [[nodiscard]] NetworkView& network() { return *network_; }
  [[nodiscard]] ScreenContext context(const Training& training) const;
  [[nodiscard]] LegalityCase legality(const Training& training, const Recipe& recipe) const;

  /// Evaluates one recipe on the spot: network shapes are prepared, the layout resolved. Problems: every violated rule.
  [[nodiscard]] Outcome<Candidate> evaluate(const Training& training, const Recipe& recipe);

  /// The same study on another cluster of the same GPUs, or with another scenario altogether; rates and rule set stay.
  [[nodiscard]] Workbench with(const Scenario& scenario) const;

  /// Prepares the network for a recipe's groups.
  void prepare(const Recipe& recipe);

 private:
  Workbench(const Scenario& scenario, RuleSet rules, const GpuRates& rates);
  std::shared_ptr<const Scenario> scenario_;
  std::shared_ptr<const RuleSet> rules_;
  const GpuRates* rates_;
  std::shared_ptr<NetworkView> network_;
};

}  // namespace cpfit
