// The negative controls: every fault that somebody has really made is planted and must be caught. A fault counts as caught when
// the case it was planted in fails and the same case without it passes. Beside it stand the losses of the two-layer block, true
// and faulty: a loss that looks alike while a seam is wrong is what these faults have in common.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "kernels/verify/block_run.h"
#include "kernels/verify/suite_run.h"

namespace cpfit::kernels {

struct ControlReport {
  Fault fault = Fault::kNone;
  Case planted_in;
  bool caught = false;
  std::string place;    // tensor or parameter where it shows most
  double error = 0;     // there, normwise
  double limit = 0;     // what would have passed
  std::string trouble;  // what else gave it away, or why it does not count as caught
  BlockReport block;    // the fault in the block
  /// The faulty loss is within a hundredth of the true one, and some gradient is off by more than its tolerance.
  [[nodiscard]] bool loss_looks_alike() const;
};

/// All of planted_faults(), in order, over `threads` threads.
[[nodiscard]] std::vector<ControlReport> run_controls(TruthShelf& shelf, int threads);

}  // namespace cpfit::kernels
