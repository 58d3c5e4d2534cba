// A candidate: one recipe with everything cpfit says of it. Made by sim, stored by db, shown by cli and gui.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "model/memory/ledger.h"
#include "model/quantity/units.h"
#include "model/recipe/recipe.h"

namespace cpfit {

/// Where a step's time goes on the rank that ends last. Adds up exactly:
/// step = compute + exposed_cp + exposed_tp + exposed_pp + exposed_dp + bubble + launch + optimizer + other.
struct TimeBreakdown {
  Seconds compute;
  Seconds exposed_cp, exposed_tp, exposed_pp, exposed_dp;
  Seconds bubble;
  Seconds launch;  // host launch not hidden behind kernels
  Seconds optimizer;
  Seconds other;
  [[nodiscard]] Seconds step() const {
    return compute + exposed_cp + exposed_tp + exposed_pp + exposed_dp + bubble + launch + optimizer + other;
  }
  friend bool operator==(const TimeBreakdown&, const TimeBreakdown&) = default;
};

/// Ring of one layer, one micro-batch, worst rank.
struct CpExposure {
  Seconds forward_exposed, backward_exposed;
  Seconds forward_message, backward_message;  // one hop
  Seconds forward_step_compute;               // smallest step compute that hides a hop
  Bytes bytes_sent_per_layer;                 // forward + backward, one micro-batch, per rank
  bool crosses_node = false;
  friend bool operator==(const CpExposure&, const CpExposure&) = default;
};

enum class CandidateStatus : std::uint8_t { kOk, kShip, kControl, kReject };
[[nodiscard]] std::string_view name_of(CandidateStatus status);  // "ok", "ship", "control", "reject"

/// Ends every reason that says a fit was won by another choice than CP; a stored run is recognised by it too.
inline constexpr std::string_view kNotAGainOfCp = "not a gain of CP";

/// Compact: what the search keeps per evaluated recipe.
struct Candidate {
  Recipe recipe;
  StageMemory memory;  // worst stage
  MemoryVerdict verdict;
  TimeBreakdown time;
  Seconds step_low, step_high;  // 90 % interval
  double tokens_per_second_per_gpu = 0;
  double mfu = 0;  // causal half, head counted, no recompute
  double hfu = 0;  // recomputed forward counted
  CpExposure cp;
  float relative_sigma = 0;
  bool in_range = true;  // every surface inside its range of validity
  CandidateStatus status = CandidateStatus::kOk;
  std::vector<std::string> reasons;  // sentences
  std::vector<std::string> differs;  // fields in which it differs from the control
  friend bool operator==(const Candidate&, const Candidate&) = default;
};

}  // namespace cpfit
