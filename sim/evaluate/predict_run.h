// One measured training run as the screen predicts it. Private to sim/evaluate.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <variant>

#include "model/cluster/group_network.h"
#include "model/record/candidate.h"
#include "model/record/validation.h"

namespace cpfit {

/// A quantity with its 90 % interval, in the unit of its metric.
struct Predicted {
  double value = 0, low = 0, high = 0;
};

/// What a run is predicted to do. `memory` belongs to the stage that the source logs.
struct RunPrediction {
  Candidate candidate;
  StageMemory memory;
  Predicted step_seconds;  // with the run's documented stall and layer floor
  std::string searched;    // fields that the source does not say, comma separated
};

/// Why a run cannot be predicted.
struct Unpredictable {
  std::string reason;
};

/// Networks and rates that many rows share. Not thread safe.
class Predictor {
 public:
  explicit Predictor(const RateSet& rates) : rates_(&rates) {}
  [[nodiscard]] const RateSet& rates() const { return *rates_; }
  /// The network of a cluster with the group shapes of a recipe prepared.
  [[nodiscard]] NetworkView& network(const Cluster& cluster);
  [[nodiscard]] std::shared_ptr<const RuleSet> rules(const std::string& framework);

 private:
  const RateSet* rates_;
  std::map<std::pair<const Topology*, std::int64_t>, NetworkView> networks_;
  std::map<std::string, std::shared_ptr<const RuleSet>> rules_;
};

/// Fields in `run.unknown` are chosen as their authors would have: among the legal values, the fastest recipe that the ledger
/// does not call out of memory; if all are, the one that needs least memory. Ties go to the earlier in a fixed order.
[[nodiscard]] std::variant<RunPrediction, Unpredictable> predict(const MeasuredRun& run, Predictor& predictor);

/// The prediction of one metric. FLOP/s and MFU under the run's own convention and denominator.
[[nodiscard]] Predicted predicted_metric(const MeasuredRun& run, const RunPrediction& prediction, Metric metric);

/// Model FLOP/s per GPU (causal half, nothing recomputed) that a measured time or rate figure means; 0 for memory figures.
[[nodiscard]] double implied_flops_per_second(const MeasuredRun& run, Metric metric, double measured);

}  // namespace cpfit
