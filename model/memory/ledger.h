// The memory ledger: every tensor that lives on a rank of a pipeline stage, with its bytes, its formula and its source; the
// forward and backward peaks with the moment they occur; the verdict. One implementation of every formula: the same walk
// over the tensors either sums by component (the screen; no allocation) or lists them (reports, the desktop program).
// Symbols: cp_model.md section 0; policies: model/framework/rule_set.h.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "model/cluster/gpu.h"
#include "model/framework/rule_set.h"
#include "model/quantity/units.h"
#include "model/recipe/recipe.h"
#include "model/recipe/stage_layout.h"
#include "model/recipe/training.h"
#include "model/transformer/architecture.h"
#include "model/transformer/parameters.h"

namespace cpfit {

enum class Component : std::uint8_t {
  kWeights,
  kGradients,
  kOptimizer,      // resident, by shard group
  kActivations,    // saved for backward, in-flight micro-batches included
  kRecompute,      // the live unit during recompute
  kCpBuffers,      // ring slots, partial outputs, gathered K/V, a2a copies
  kLoss,           // logits and the loss's temporaries
  kTransient,      // backward temporaries, scratch gradients, FSDP unsharded units, param gather
  kPipeline,       // p2p buffers
  kWorkspace,      // GEMM and attention kernels
  kReservedExtra,  // reserved - allocated
  kCommunicators,
  kContext  // outside the caching allocator
};
inline constexpr int kComponentCount = 13;
[[nodiscard]] std::string_view name_of(Component component);

enum class Phase : std::uint8_t { kForward, kLoss, kBackward, kOptimizer };
[[nodiscard]] std::string_view name_of(Phase phase);
enum class Fit : std::uint8_t { kFits, kAtRisk, kOom };
[[nodiscard]] std::string_view name_of(Fit fit);

/// The moments of a step at which a rank can hold most, in the order in which a micro-batch passes them.
enum class Moment : std::uint8_t {
  kBetweenSteps,       // what is resident
  kAttentionForward,   // end of attention's forward in the last in-flight layer: ring slots and partial outputs are alive
  kForwardEnd,         // stage output computed
  kLoss,               // logits and the loss's copies (last stage)
  kHeadBackward,       // the head's weight and input gradients (last stage)
  kMlpBackward,        // first backward: MLP of the last layer
  kAttentionBackward,  // first backward: attention of the last layer
  kOptimizerStep
};
inline constexpr int kMomentCount = 8;
[[nodiscard]] std::string_view name_of(Moment moment);
[[nodiscard]] Phase phase_of(Moment moment);

struct MemoryCase {
  const Architecture& model;
  const Training& training;
  const Recipe& recipe;
  const RuleSet& rules;
  const Gpu& gpu;
  const ResolvedLayout& layout;
};

/// Bytes of one stage, on its worst CP rank. Peaks are allocated bytes; reserved adds the allocator's slack;
/// device = reserved + communicators + context, which is what must stay below the capacity.
struct StageMemory {
  std::int32_t stage = 0;
  std::int32_t cp_rank = 0;       // the rank that peaks (TE ring: cp-1)
  Phase phase = Phase::kForward;  // where the peak occurs
  Moment moment = Moment::kBetweenSteps;
  Moment forward_moment = Moment::kForwardEnd;    // of forward_peak
  Moment backward_moment = Moment::kMlpBackward;  // of backward_peak
  Bytes resident;                                 // between steps
  Bytes forward_peak;                             // forward alone; the loss is a phase of its own
  Bytes backward_peak;
  Bytes peak;                                     // max over phases, allocated
  Bytes reserved;                                 // caching allocator
  Bytes device;                                   // reserved + communicators + context
  std::array<Bytes, kComponentCount> components;  // at the peak; they sum to device
  friend bool operator==(const StageMemory&, const StageMemory&) = default;
};

/// The worst stage of a recipe. Does not allocate; this is what the screen calls.
[[nodiscard]] StageMemory worst_stage_memory(const MemoryCase& at);
/// One stage.
[[nodiscard]] StageMemory stage_memory(const MemoryCase& at, std::int32_t stage);

/// One line of the ledger.
struct LedgerEntry {
  Component component;
  std::string_view tensor;   // "attention.output", "mlp.gate_up", ...
  std::string_view formula;  // "2*b*s/cp*a*d/tp per layer"
  std::string_view source;
  Bytes bytes;  // all copies alive at the peak of this stage
  friend bool operator==(const LedgerEntry&, const LedgerEntry&) = default;
};
struct StageLedger {
  StageMemory summary;
  std::vector<LedgerEntry> entries;                                 // sums to summary.device
  std::shared_ptr<const std::vector<std::string>> texts = nullptr;  // owns what the views show when a store read it back
};
[[nodiscard]] StageLedger stage_ledger(const MemoryCase& at, std::int32_t stage);

/// Bytes allocated at one moment of a step, by component (communicators, context and allocator slack are 0).
[[nodiscard]] std::array<Bytes, kComponentCount> allocated_at(const MemoryCase& at, std::int32_t stage, Moment moment);

/// Verdict from the point estimate and its upper bound: fits when upper + margin <= capacity, oom when point > capacity. The
/// upper bound adds kLedgerUncertainty of allocated bytes or, where more, `reserved_spread` (of the rule set) of reserved ones.
struct MemoryVerdict {
  Fit fit = Fit::kOom;
  Bytes capacity;  // what a process can use of the device
  Bytes upper;     // upper bound of `device`
  Bytes margin;    // capacity - upper, negative when it does not fit
  friend bool operator==(const MemoryVerdict&, const MemoryVerdict&) = default;
};
inline constexpr double kLedgerUncertainty = 0.04;  // relative, of allocated bytes; from the residuals of the validation rows
[[nodiscard]] MemoryVerdict judge(const StageMemory& memory, const Gpu& gpu, double margin_share, double reserved_spread = 0.0);

}  // namespace cpfit
