#include <algorithm>

#include "calibrate/fit/fit_collectives.h"
#include "model/rates/rate_tables.h"

namespace cpfit {

namespace {

Rated sum(const Rated& a, const Rated& b) {
  const double whole = (a.time + b.time).value();
  const double sigma = whole > 0 ? (a.relative_sigma * a.time.value() + b.relative_sigma * b.time.value()) / whole : 0;
  return {a.time + b.time, static_cast<float>(sigma), a.in_range && b.in_range, std::max(a.evidence, b.evidence)};
}

struct Predict {
  const GpuRates& rates;
  const Gpu& gpu;

  std::optional<Rated> operator()(const GemmMeasurement& gemm) const { return gemm_time(rates, gemm.shape, gemm.math); }
  std::optional<Rated> operator()(const AttentionMeasurement& a) const {
    if (a.pass == MeasuredPass::kForward) return attention_time(rates, a.shape, AttentionPass::kForward, a.library);
    const Rated backward = attention_time(rates, a.shape, AttentionPass::kBackward, a.library);
    if (a.pass == MeasuredPass::kBackward) return backward;
    return sum(attention_time(rates, a.shape, AttentionPass::kForward, a.library), backward);
  }
  std::optional<Rated> operator()(const StreamMeasurement& stream) const {
    const auto kernels = norm_named(stream.kernels);
    if (!kernels) return std::nullopt;  // no surface of their own
    return norm_time(rates, {*kernels, stream.pass, stream.traffic, stream.row, stream.rows, stream.layer_norm});
  }
  std::optional<Rated> operator()(const CollectiveMeasurement& c) const {
    if (c.nodes > 1 || gpu.scale_up.value() <= 0)
      return std::nullopt;  // the fabric is not in the row: the caller's topology knows it
    return collective_time(rates, c.kind, LinkClass::kNvlink, BytesPerSecond(lone_group_rate(gpu, c.ranks)), Seconds(0), c.ranks,
                           c.bytes, c.form());
  }
};

}  // namespace

std::optional<Rated> predict_kernel(const RateSet& rates, std::span<const Gpu> gpus, const KernelMeasurement& measured) {
  const auto gpu = std::find_if(gpus.begin(), gpus.end(), [&](const Gpu& candidate) { return candidate.name == measured.gpu; });
  if (gpu == gpus.end()) return std::nullopt;
  return std::visit(Predict{rates.of(*gpu), *gpu}, measured.what);
}

}  // namespace cpfit
