// What the closed form says of a design: memory of every stage, time, verdict, or the rules it breaks. Pure but for a cache of
// prepared networks; one per thread.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gui/study/design.h"
#include "gui/study/simulator.h"
#include "model/rates/rate_set.h"
#include "model/record/candidate.h"

namespace cpfit::gui {

struct Estimate {
  Design design;
  Problems problems;  // why there is no candidate
  std::optional<Candidate> candidate;
  std::vector<StageMemory> stages;                           // (pp)
  std::vector<MemoryVerdict> verdicts;                       // (pp)
  std::vector<std::pair<std::string, std::string>> sources;  // "gemm" -> "fitted": what the times rest on
  std::string not_of_cp;  // the sentence of a fit that recompute, micro-batch … won against the control; empty: none
  [[nodiscard]] bool legal() const { return candidate.has_value(); }
};

/// One value along a parameter: what the closed form says of the design with it.
struct Variation {
  std::string value;
  bool current = false;
  bool legal = false;
  std::string rule;  // the first broken rule as a sentence; empty when legal
  Fit fit = Fit::kOom;
  Seconds step;
  Bytes device;
};

class Estimator {
 public:
  /// `rates` must outlive the estimator.
  explicit Estimator(std::shared_ptr<const RateSet> rates) : rates_(std::move(rates)) {}
  void set_rates(std::shared_ptr<const RateSet> rates) {
    bench_.reset();
    built_for_.reset();
    rates_ = std::move(rates);
  }

  /// `control`: the best CP = 1 recipe of the same question, null: unknown or not comparable.
  [[nodiscard]] Estimate estimate(const Design& design, const std::optional<Candidate>& control);
  /// Candidate alone, for sweeps. Problems: the broken rules.
  [[nodiscard]] Outcome<Candidate> evaluate(const Design& design);
  [[nodiscard]] std::vector<Variation> vary(const Design& design, std::string_view key, std::string_view derived);
  /// Tensors of one stage of a legal design.
  [[nodiscard]] StageLedger ledger(const Design& design, std::int32_t stage);
  /// Bytes by component at a moment; zero where the design is not legal.
  [[nodiscard]] std::array<Bytes, kComponentCount> allocated(const Design& design, std::int32_t stage, Moment moment);
  /// The prepared study of a design's cluster and model. Problems: unknown framework.
  [[nodiscard]] Outcome<Workbench*> bench(const Design& design);

 private:
  std::shared_ptr<const RateSet> rates_;
  std::shared_ptr<const Scenario> built_for_;
  std::optional<Workbench> bench_;
};

/// The legal values on both sides of the current one, nearest first, at most two.
[[nodiscard]] std::vector<std::string> nearest_legal(const std::vector<Variation>& variations);

/// The parameter a legality problem is about, so that a click leads to its row: by the rule's id; empty when none.
[[nodiscard]] std::string parameter_of(const Problem& problem);

}  // namespace cpfit::gui
