// Which measured collectives make one curve, and of what raw rate its shares are. Private to calibrate/fit.
#pragma once

#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include "calibrate/fit/fit_rates.h"

namespace cpfit {

[[nodiscard]] inline const Gpu* gpu_named(std::span<const Gpu> gpus, const std::string& name) {
  const auto found = std::find_if(gpus.begin(), gpus.end(), [&](const Gpu& gpu) { return gpu.name == name; });
  return found == gpus.end() ? nullptr : &*found;
}

/// Bytes/s that a collective over the first `ranks` GPUs of a host has, when no other runs: of a mesh what its rings move, else
/// the scale-up links.
[[nodiscard]] double lone_group_rate(const Gpu& gpu, std::int64_t ranks);

/// Fits every group of collectives into report.tables; what makes no curve goes to report.left_out.
void fit_collectives(const std::vector<KernelTable>& tables, std::span<const Gpu> gpus, FitReport& report);

}  // namespace cpfit
