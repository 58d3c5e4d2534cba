#include "model/memory/ledger.h"

#include <algorithm>

namespace cpfit {

std::string_view name_of(Component component) {
  constexpr std::string_view kNames[kComponentCount] = {
      "weights",   "gradients", "optimizer", "activations",    "recompute",     "cp_buffers", "loss",
      "transient", "pipeline",  "workspace", "reserved_extra", "communicators", "context"};
  return kNames[static_cast<std::size_t>(component)];
}

std::string_view name_of(Phase phase) {
  constexpr std::string_view kNames[] = {"forward", "loss", "backward", "optimizer"};
  return kNames[static_cast<std::size_t>(phase)];
}

std::string_view name_of(Fit fit) {
  constexpr std::string_view kNames[] = {"fits", "at_risk", "oom"};
  return kNames[static_cast<std::size_t>(fit)];
}

std::string_view name_of(Moment moment) {
  constexpr std::string_view kNames[kMomentCount] = {
      "between steps", "attention forward", "end of forward",     "loss",
      "head backward", "MLP backward",      "attention backward", "optimizer step"};
  return kNames[static_cast<std::size_t>(moment)];
}

Phase phase_of(Moment moment) {
  switch (moment) {
    case Moment::kAttentionForward:
    case Moment::kForwardEnd:
      return Phase::kForward;
    case Moment::kLoss:
      return Phase::kLoss;
    case Moment::kHeadBackward:
    case Moment::kMlpBackward:
    case Moment::kAttentionBackward:
      return Phase::kBackward;
    case Moment::kBetweenSteps:
    case Moment::kOptimizerStep:
      break;
  }
  return Phase::kOptimizer;
}

MemoryVerdict judge(const StageMemory& memory, const Gpu& gpu, double margin_share, double reserved_spread) {
  MemoryVerdict verdict;
  verdict.capacity = gpu.memory_usable;
  verdict.upper = memory.device + std::max(kLedgerUncertainty * memory.peak, reserved_spread * memory.reserved);
  verdict.margin = verdict.capacity - verdict.upper;
  if (memory.device > verdict.capacity) {
    verdict.fit = Fit::kOom;
  } else if (verdict.upper + margin_share * verdict.capacity <= verdict.capacity) {
    verdict.fit = Fit::kFits;
  } else {
    verdict.fit = Fit::kAtRisk;
  }
  return verdict;
}

}  // namespace cpfit
