#include <algorithm>
#include <cmath>

#include "calibrate/fit/fit_rates.h"
#include "calibrate/fit/hold_out.h"
#include "calibrate/fit/robust.h"

namespace cpfit {

namespace {

enum Parameter : std::size_t {
  kLaunch,
  kShare,
  kHalf,
  kRounding,
  kDiagonal,
  kShare64,
  kShare192,
  kShare256,
  kLoss,
  kSustained,
  kPreparation,
  kDeterministic,
  kCausal,
  kPerPass
};

// Starts and priors. The priors matter only where a table says nothing about a parameter (one head dimension, two lengths):
// set-up of about one and a half 128-wide tiles, the diagonal tile's masked half, backward at 0.82 of forward's share.
// A large table overrules them: a prior weighs as much as a handful of rows.
std::vector<FitParameter> parameters_for(bool forward, bool backward, bool serving, bool both_masks) {
  const auto pass = [&](bool present, bool is_forward) {
    std::vector<FitParameter> p = {
        {"launch_us", 8, 0, 60, 12},
        {is_forward ? "peak_share" : "share_of_forward", is_forward ? 0.6 : 0.82, 0.05, 1.3, is_forward ? 0.3 : 0.1},
        {"half_pairs", 200, 0, 2000, 400},
        {"wave_rounding", 0.4, 0, 1, 0.6},
        {"diagonal_pairs", 60, 0, 500, 120},
        {"share_64", 0.8, 0.3, 1.2, 0.3},
        {"share_192", 0.95, 0.3, 1.6, 0.3},
        {"share_256", 0.95, 0.3, 1.6, 0.3},
        {"sustained_loss", 0.1, 0, 0.6, 0.2},
        {"sustained_ms", 5, 0.05, 40, 10},
        {"preparation_passes", 0, 0, 0, 0},
        {"deterministic_share", 0.9, 0.4, 1.1, 0.2},
        {"causal_share", 1, 0.3, 1.1, 0.15},
    };
    if (!both_masks) p[kCausal].low = p[kCausal].high = 1;
    if (is_forward && serving) p[kPreparation] = {"preparation_passes", 2, 0, 10, 0};
    if (is_forward) p[kDeterministic].high = p[kDeterministic].low = p[kDeterministic].start;
    if (!present) {
      for (FitParameter& parameter : p) parameter.low = parameter.high = parameter.start;
    }
    return p;
  };
  std::vector<FitParameter> all = pass(forward, true);
  const std::vector<FitParameter> second = pass(backward, false);
  all.insert(all.end(), second.begin(), second.end());
  return all;
}

AttentionCurve curve_of(const std::vector<double>& p, AttentionPass pass) {
  const bool forward = pass == AttentionPass::kForward;
  const auto at = [&](Parameter parameter) {
    return p[forward ? static_cast<std::size_t>(parameter) : parameter + static_cast<std::size_t>(kPerPass)];
  };
  AttentionCurve curve;
  curve.launch = at(kLaunch) * 1e-6;
  curve.peak_share = forward ? at(kShare) : at(kShare) * p[kShare];
  curve.half = at(kHalf);
  curve.wave_rounding = at(kRounding);
  curve.diagonal = at(kDiagonal);
  curve.share_64 = at(kShare64);
  curve.share_192 = at(kShare192);
  curve.share_256 = at(kShare256);
  curve.sustained_loss = at(kLoss);
  curve.sustained = at(kSustained) * 1e-3;
  curve.preparation = at(kPreparation);
  curve.causal_share = at(kCausal);
  curve.deterministic_share = at(kDeterministic);
  return curve;
}

std::string shape_text(const AttentionMeasurement& a) {
  const AttentionShape& s = a.shape;
  return std::to_string(s.batch) + "," + std::to_string(s.q_len) + "," + std::to_string(s.heads) + "," +
         std::to_string(s.kv_heads) + "," + std::to_string(s.head_dim) +
         (s.kv_len == s.q_len ? "" : "x" + std::to_string(s.kv_len)) + "," + (s.causal ? "causal" : "dense");
}

void set_ranges(AttentionCurve& curve, const std::vector<const KernelMeasurement*>& rows, const std::vector<std::size_t>& used) {
  const auto range_of = [&](auto value) {
    FittedRange range{1e18, 0};
    for (const std::size_t row : used) {
      const double v = static_cast<double>(value(std::get<AttentionMeasurement>(rows[row]->what).shape));
      range.low = std::min(range.low, v);
      range.high = std::max(range.high, v);
    }
    return range;
  };
  curve.q_len = range_of([](const AttentionShape& s) { return s.q_len; });
  curve.kv_len = range_of([](const AttentionShape& s) { return s.kv_len; });
  curve.heads = range_of([](const AttentionShape& s) { return s.batch * s.heads; });
}

}  // namespace

AttentionFit fit_attention(const std::vector<const KernelMeasurement*>& rows, const DevicePeaks& device, MathKind math) {
  const double peak = device.math[static_cast<std::size_t>(math)];
  std::vector<std::string> shapes;
  std::vector<std::size_t> forward_rows, backward_rows;
  bool serving = false, causal = false, dense = false;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const AttentionMeasurement& a = std::get<AttentionMeasurement>(rows[i]->what);
    shapes.push_back(shape_text(a));
    if (a.pass != MeasuredPass::kBackward) forward_rows.push_back(i);
    if (a.pass != MeasuredPass::kForward) backward_rows.push_back(i);
    (a.shape.causal ? causal : dense) = true;
    serving = serving || a.serving || a.library == AttentionLibrary::kTrtllm;
  }
  const LogError error = [&](const std::vector<double>& p, std::size_t row) {
    const AttentionMeasurement& a = std::get<AttentionMeasurement>(rows[row]->what);
    double seconds = 0;
    if (a.pass != MeasuredPass::kBackward) {
      seconds += attention_seconds(curve_of(p, AttentionPass::kForward), device, peak, a.shape, AttentionPass::kForward);
    }
    if (a.pass != MeasuredPass::kForward) {
      seconds += attention_seconds(curve_of(p, AttentionPass::kBackward), device, peak, a.shape, AttentionPass::kBackward);
    }
    return std::log(seconds / rows[row]->time.value());
  };
  // Where no forward was measured the backward's share is relative to the forward's start value: only the product counts.
  const std::vector<FitParameter> parameters =
      parameters_for(!forward_rows.empty(), !backward_rows.empty(), serving, causal && dense);
  const std::vector<double> scales = scales_of(rows);
  const auto fit = [&](const std::vector<std::size_t>& fitted) {
    return fit_robustly(parameters, fitted, error, scales).parameters;
  };

  AttentionFit result;
  const std::vector<double> p = fit(all_rows(rows.size()));
  result.forward = curve_of(p, AttentionPass::kForward);
  result.backward = curve_of(p, AttentionPass::kBackward);
  const auto score = [&](const std::vector<std::size_t>& used, AttentionCurve& curve) {
    if (used.empty()) return;
    FitQuality quality;
    score_by_hold_out(
        shapes,
        [&](const std::vector<std::size_t>& fitted, const std::vector<std::size_t>& predicted) {
          const std::vector<double> held = fit(fitted);
          std::vector<double> errors;
          for (const std::size_t row : predicted) {
            if (std::find(used.begin(), used.end(), row) != used.end()) errors.push_back(error(held, row));
          }
          return errors;
        },
        quality);
    quality.rows = static_cast<std::int64_t>(used.size());
    std::vector<const KernelMeasurement*> own;
    std::vector<std::string> kernels;  // shapes, and what else makes two measurements those of one kernel
    for (const std::size_t row : used) {
      const AttentionMeasurement& a = std::get<AttentionMeasurement>(rows[row]->what);
      own.push_back(rows[row]);
      kernels.push_back(shapes[row] + "," + std::to_string(a.shape.head_dim_v) + "," + std::to_string(a.shape.pairs) + "," +
                        std::to_string(static_cast<int>(a.pass)) + (a.shape.deterministic ? ",deterministic" : ""));
    }
    quality.noise = noise_of(own, kernels);
    curve.quality = quality;
    set_ranges(curve, rows, used);
  };
  score(forward_rows, result.forward);
  score(backward_rows, result.backward);
  return result;
}

}  // namespace cpfit
