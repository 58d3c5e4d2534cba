#include "model/recipe/recipe_names.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdio>
#include <cstdlib>

namespace cpfit {

namespace {

constexpr NamedValue<CpComm> kCpComms[] = {{CpComm::kP2p, "p2p"},
                                           {CpComm::kAllGather, "all_gather"},
                                           {CpComm::kA2a, "a2a"},
                                           {CpComm::kA2aP2p, "a2a+p2p"},
                                           {CpComm::kDoubleRing, "double_ring"}};
constexpr NamedValue<ShardLayout> kShardLayouts[] = {
    {ShardLayout::kZigzag, "zigzag"}, {ShardLayout::kContiguous, "contiguous"}, {ShardLayout::kStriped, "striped"}};
constexpr NamedValue<RecomputeKind> kRecomputeKinds[] = {{RecomputeKind::kNone, "none"},
                                                         {RecomputeKind::kSelective, "selective"},
                                                         {RecomputeKind::kMlp, "mlp"},
                                                         {RecomputeKind::kFull, "full"},
                                                         {RecomputeKind::kBlock, "block"}};
constexpr NamedValue<StateSharding> kStateShardings[] = {{StateSharding::kNone, "none"},
                                                         {StateSharding::kZero1, "zero1"},
                                                         {StateSharding::kZero2, "zero2"},
                                                         {StateSharding::kZero3, "zero3"}};
constexpr NamedValue<Precision> kPrecisions[] = {{Precision::kBf16, "bf16"},
                                                 {Precision::kFp16, "fp16"},
                                                 {Precision::kFp8Delayed, "fp8_delayed"},
                                                 {Precision::kFp8Current, "fp8_current"},
                                                 {Precision::kFp8Block, "fp8_block"},
                                                 {Precision::kMxfp8, "mxfp8"},
                                                 {Precision::kNvfp4, "nvfp4"}};
constexpr NamedValue<Schedule> kSchedules[] = {{Schedule::kOneFOneB, "1f1b"},
                                               {Schedule::kInterleaved, "interleaved"},
                                               {Schedule::kGpipe, "gpipe"},
                                               {Schedule::kZeroBubble, "zb_h1"}};
constexpr NamedValue<LayoutKind> kLayoutKinds[] = {{LayoutKind::kEven, "even"},
                                                   {LayoutKind::kEmbeddingAndLossAsLayers, "embedding_loss"},
                                                   {LayoutKind::kFirstLast, "first_last"},
                                                   {LayoutKind::kExplicit, "explicit"},
                                                   {LayoutKind::kCostBalanced, "cost_balanced"}};
constexpr NamedValue<Axis> kAxes[] = {{Axis::kTp, "tp"}, {Axis::kCp, "cp"}, {Axis::kDp, "dp"}, {Axis::kPp, "pp"}};
constexpr NamedValue<MaskKind> kMaskKinds[] = {{MaskKind::kCausal, "causal"},
                                               {MaskKind::kFull, "full"},
                                               {MaskKind::kSlidingWindow, "sliding_window"},
                                               {MaskKind::kDocuments, "documents"}};
constexpr NamedValue<GradDtype> kGradDtypes[] = {{GradDtype::kFp32, "fp32"}, {GradDtype::kBf16, "bf16"}};
constexpr NamedValue<OptimizerKind> kOptimizers[] = {{OptimizerKind::kAdam, "adam"},
                                                     {OptimizerKind::kAdamPrecisionAware, "adam_precision_aware"},
                                                     {OptimizerKind::kSgdMomentum, "sgd_momentum"}};

template <class E>
std::string_view name_in_table(E value) {
  for (const NamedValue<E>& entry : named_values<E>()) {
    if (entry.value == value) return entry.name;
  }
  std::fprintf(stderr, "cpfit: internal error: an enumeration holds the value %d, which has no name\n", static_cast<int>(value));
  std::abort();
}

}  // namespace

// clang-format off
template <> std::span<const NamedValue<CpComm>> named_values() { return kCpComms; }
template <> std::span<const NamedValue<ShardLayout>> named_values() { return kShardLayouts; }
template <> std::span<const NamedValue<RecomputeKind>> named_values() { return kRecomputeKinds; }
template <> std::span<const NamedValue<StateSharding>> named_values() { return kStateShardings; }
template <> std::span<const NamedValue<Precision>> named_values() { return kPrecisions; }
template <> std::span<const NamedValue<Schedule>> named_values() { return kSchedules; }
template <> std::span<const NamedValue<LayoutKind>> named_values() { return kLayoutKinds; }
template <> std::span<const NamedValue<Axis>> named_values() { return kAxes; }
template <> std::span<const NamedValue<MaskKind>> named_values() { return kMaskKinds; }
template <> std::span<const NamedValue<GradDtype>> named_values() { return kGradDtypes; }
template <> std::span<const NamedValue<OptimizerKind>> named_values() { return kOptimizers; }
// clang-format on

std::string_view name_of(CpComm value) { return name_in_table(value); }
std::string_view name_of(ShardLayout value) { return name_in_table(value); }
std::string_view name_of(RecomputeKind value) { return name_in_table(value); }
std::string_view name_of(StateSharding value) { return name_in_table(value); }
std::string_view name_of(Precision value) { return name_in_table(value); }
std::string_view name_of(Schedule value) { return name_in_table(value); }
std::string_view name_of(Axis value) { return name_in_table(value); }
std::string_view name_of(LayoutKind value) { return name_in_table(value); }
std::string_view name_of(MaskKind value) { return name_in_table(value); }
std::string_view name_of(GradDtype value) { return name_in_table(value); }
std::string_view name_of(OptimizerKind value) { return name_in_table(value); }

Problem unknown_word(std::string_view code, std::string_view where, std::string_view word,
                     const std::vector<std::string>& known) {
  std::vector<std::string> meant;  // a family name ("fp8") means all its members, not the nearest spelling
  for (const std::string& name : known) {
    if (!word.empty() && name.starts_with(word)) meant.push_back(name);
  }
  if (meant.empty()) meant.push_back(nearest_name(std::string(word), known));
  return {std::string(code), std::string(where), fmt::format("'{}' is not one of {}", word, fmt::join(known, ", ")),
          meant.front().empty() ? fmt::format("write one of {}", fmt::join(known, ", "))
                                : fmt::format("did you mean '{}'?", fmt::join(meant, "' or '"))};
}

}  // namespace cpfit
