// Which rates a step's uncertainty comes from. Each surface that a recipe's step rests on is made slower by a little, one after
// the other: the step's answer times the surface's own uncertainty is its share of the step's. What to measure first follows from
// it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/plan/workbench.h"

namespace cpfit {

/// A kind of rate as a probe of cpfit-bench measures it.
enum class ProbeKind : std::uint8_t { kAttention, kGemm, kMemory, kLaunch, kMessages, kCollectives, kOverlap };
[[nodiscard]] std::string_view name_of(ProbeKind probe);  // as cpfit-bench's --probe: "attention", "gemm", ...

struct UncertainSurface {
  std::string surface;  // "gemm bf16", "attention cudnn bf16 backward", "messages over NVLink"
  ProbeKind probe = ProbeKind::kGemm;
  double sigma = 0;        // relative, of the surface at the shapes used; outside its range the wider one
  double sensitivity = 0;  // relative change of the step per relative change of the surface's time
  double variance = 0;     // (sigma * sensitivity)^2: what it adds to the step's relative variance
  Evidence evidence = Evidence::kAssumed;
  std::vector<std::string> outside;  // shapes used that lie outside the measured range
};

struct StepUncertainty {
  double composition = 0;                  // relative standard deviation of putting the parts together; no probe makes it smaller
  std::vector<UncertainSurface> surfaces;  // largest variance first; those that the step does not feel are left away
  [[nodiscard]] double sigma() const;      // of the step, all of it
  /// The step's sigma were this surface as well known as `measured_sigma`.
  [[nodiscard]] double sigma_with(const UncertainSurface& surface, double measured_sigma) const;
};

/// Of one legal recipe. Problems as Workbench::evaluate.
[[nodiscard]] Outcome<StepUncertainty> step_uncertainty(Workbench& bench, const Recipe& recipe);

}  // namespace cpfit
