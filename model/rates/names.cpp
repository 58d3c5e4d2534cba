// Names of the enumerations as rates.toml spells them, one table each.
#include <array>
#include <utility>

#include "model/rates/rate_tables.h"

namespace cpfit {

namespace {

template <class Value, std::size_t N>
using Names = std::array<std::pair<Value, std::string_view>, N>;

constexpr Names<MathKind, 6> kMath{{{MathKind::kBf16, "bf16"},
                                    {MathKind::kFp8Tensor, "fp8_tensor"},
                                    {MathKind::kFp8Block, "fp8_block"},
                                    {MathKind::kMxfp8, "mxfp8"},
                                    {MathKind::kNvfp4, "nvfp4"},
                                    {MathKind::kFp32, "fp32"}}};
constexpr Names<AttentionPass, 2> kPass{{{AttentionPass::kForward, "forward"}, {AttentionPass::kBackward, "backward"}}};
constexpr Names<AttentionLibrary, 5> kLibrary{{{AttentionLibrary::kCudnn, "cudnn"},
                                               {AttentionLibrary::kFlash2, "flash2"},
                                               {AttentionLibrary::kFlash3, "flash3"},
                                               {AttentionLibrary::kTrtllm, "trtllm"},
                                               {AttentionLibrary::kOwn, "own"}}};
constexpr Names<CollectiveKind, 5> kCollective{{{CollectiveKind::kAllGather, "all_gather"},
                                                {CollectiveKind::kReduceScatter, "reduce_scatter"},
                                                {CollectiveKind::kAllReduce, "all_reduce"},
                                                {CollectiveKind::kAllToAll, "all_to_all"},
                                                {CollectiveKind::kSendRecv, "send_recv"}}};
constexpr Names<NormKernels, 3> kNorm{{{NormKernels::kCudnn, "cudnn_norm"},
                                       {NormKernels::kPytorch, "pytorch_norm"},
                                       {NormKernels::kCompiled, "torch_compile_norm"}}};
constexpr Names<CollectiveForm, 3> kForm{
    {{CollectiveForm::kUsual, "usual"}, {CollectiveForm::kStrided, "strided"}, {CollectiveForm::kInt8Sums, "int8_sums"}}};
constexpr Names<Evidence, 3> kEvidence{
    {{Evidence::kMeasured, "measured"}, {Evidence::kFitted, "fitted"}, {Evidence::kAssumed, "assumed"}}};

template <class Value, std::size_t N>
constexpr std::string_view name_in(const Names<Value, N>& names, Value value) {
  for (const auto& [candidate, name] : names) {
    if (candidate == value) return name;
  }
  return "?";
}

template <class Value, std::size_t N>
constexpr std::optional<Value> named_in(const Names<Value, N>& names, std::string_view name) {
  for (const auto& [value, candidate] : names) {
    if (candidate == name) return value;
  }
  return std::nullopt;
}

}  // namespace

std::string_view name_of(MathKind math) { return name_in(kMath, math); }
std::string_view name_of(AttentionPass pass) { return name_in(kPass, pass); }
std::string_view name_of(AttentionLibrary library) { return name_in(kLibrary, library); }
std::string_view name_of(CollectiveKind kind) { return name_in(kCollective, kind); }
std::string_view name_of(NormKernels kernels) { return name_in(kNorm, kernels); }
std::string_view name_of(CollectiveForm form) { return name_in(kForm, form); }
std::string_view name_of(Evidence evidence) { return name_in(kEvidence, evidence); }
std::optional<MathKind> math_named(std::string_view name) { return named_in(kMath, name); }
std::optional<AttentionPass> pass_named(std::string_view name) { return named_in(kPass, name); }
std::optional<AttentionLibrary> library_named(std::string_view name) { return named_in(kLibrary, name); }
std::optional<CollectiveKind> collective_named(std::string_view name) { return named_in(kCollective, name); }
std::optional<NormKernels> norm_named(std::string_view name) { return named_in(kNorm, name); }
std::optional<CollectiveForm> form_named(std::string_view name) { return named_in(kForm, name); }
std::optional<Evidence> evidence_named(std::string_view name) { return named_in(kEvidence, name); }

}  // namespace cpfit
