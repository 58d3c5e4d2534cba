// Streaming kernels: start-up and a share of the memory's rate, each GPU its own. Kernels that reduce rows (norms) have terms of
// the row besides. Those belong to the kernel, not to the GPU: what a row costs one multiprocessor, from which length it is read
// twice, what a layer norm's mean and bias cost; all GPUs that ran it are fitted together, with few rows each. A term has to earn
// its figures by the Bayesian information criterion of the fitted rows, so that points kept out never choose it.
#include <algorithm>
#include <array>
#include <cmath>

#include "calibrate/fit/fit_rates.h"
#include "calibrate/fit/hold_out.h"
#include "calibrate/fit/robust.h"

namespace cpfit {

namespace {

using Parameters = std::vector<double>;

// Of all GPUs; then launch and share of each.
enum Shared : std::size_t { kRowCost, kStatistics, kReread, kKeptRow, kSharedCount };
enum class Term : std::uint8_t { kRow, kLayerNorm, kReread };
constexpr std::array kTerms{Term::kRow, Term::kLayerNorm, Term::kReread};

/// Rows that Inductor reduces in one piece, held in registers, are at most this long (its threshold for inner reductions); longer
/// ones are read in a loop. Other libraries' kernels have a block per row throughout.
double looped_from(const std::string& kernels) { return kernels == "torch_compile_norm" ? 1024 : 0; }

/// cuDNN's norms hold a row in registers from the reduction to the result: nothing is read a second time.
bool reads_once(const std::string& kernels) { return kernels == "cudnn_norm"; }

const StreamMeasurement& stream_of(const MemorySample& sample) { return std::get<StreamMeasurement>(sample.row->what); }

class Fit {
 public:
  explicit Fit(const std::vector<MemorySample>& samples) : samples_(samples) {
    for (const MemorySample& sample : samples) {
      gpus_.push_back(sample.row->gpu);
      rows_known_ = rows_known_ || stream_of(sample).rows > 0;
      layer_norms_ = layer_norms_ || stream_of(sample).layer_norm;
      reads_once_ = reads_once(stream_of(sample).kernels);
      kernels_ = rows_known_ && stream_of(sample).pass == AttentionPass::kBackward ? 2 : 1;
      scales_.push_back(row_scale(sample.row->spread));
    }
    std::sort(gpus_.begin(), gpus_.end());
    gpus_.erase(std::unique(gpus_.begin(), gpus_.end()), gpus_.end());
  }

  [[nodiscard]] const std::vector<std::string>& gpus() const { return gpus_; }

  [[nodiscard]] MemoryCurve curve_of(const Parameters& p, const MemorySample& sample) const {
    const StreamMeasurement& stream = stream_of(sample);
    const std::size_t own = kSharedCount + 2 * index_of(sample.row->gpu);
    MemoryCurve curve;
    curve.launch = p[own] * 1e-6;
    curve.hbm_share = p[own + 1];
    if (stream.rows <= 0) return curve;
    // Nanoseconds of one multiprocessor a row, as the elements that all of them stream in that time.
    const double bytes = stream.traffic.value() / static_cast<double>(stream.rows * stream.row);  // of one element
    const double elements = 1e-9 * curve.hbm_share * sample.hbm / (bytes * sample.sm_count);
    curve.row_half = p[kRowCost] * elements;
    curve.statistics = p[kStatistics] * elements;
    curve.looped_from = looped_from(stream.kernels);
    curve.reread = p[kReread];
    curve.kept_row = p[kReread] > 0 ? p[kKeptRow] * 1024 : 0;
    return curve;
  }

  [[nodiscard]] double error(const Parameters& p, std::size_t index) const {
    const MemorySample& sample = samples_[index];
    const StreamMeasurement& stream = stream_of(sample);
    const double seconds = memory_seconds(curve_of(p, sample), sample.hbm, stream.traffic.value(), 1,
                                          static_cast<double>(stream.row), stream.layer_norm);
    return std::log(seconds / sample.row->time.value());
  }

  /// The terms that the rows in `fitted` ask for, and their figures.
  [[nodiscard]] Parameters fit(const std::vector<std::size_t>& fitted) const {
    const LogError log_error = [&](const Parameters& p, std::size_t row) { return error(p, row); };
    const double price = std::log(static_cast<double>(fitted.size()));
    Parameters best;
    double best_cost = 0;
    for (unsigned chosen = 0; chosen < 1U << kTerms.size(); ++chosen) {
      if (!possible(chosen)) continue;
      const FitResult result = fit_robustly(parameters(chosen), fitted, log_error, scales_);
      const double cost = 2 * result.cost + price * figures(chosen);
      if (!best.empty() && cost >= best_cost) continue;
      best = result.parameters;
      best_cost = cost;
    }
    return best;
  }

 private:
  [[nodiscard]] std::size_t index_of(const std::string& gpu) const {
    return static_cast<std::size_t>(std::lower_bound(gpus_.begin(), gpus_.end(), gpu) - gpus_.begin());
  }
  [[nodiscard]] static bool has(unsigned chosen, Term term) { return (chosen >> static_cast<unsigned>(term) & 1U) != 0; }
  [[nodiscard]] bool possible(unsigned chosen) const {
    return (rows_known_ || chosen == 0) && (layer_norms_ || !has(chosen, Term::kLayerNorm)) &&
           (!reads_once_ || !has(chosen, Term::kReread));
  }
  [[nodiscard]] static double figures(unsigned chosen) {
    return (has(chosen, Term::kRow) ? 1 : 0) + (has(chosen, Term::kLayerNorm) ? 1 : 0) + (has(chosen, Term::kReread) ? 2 : 0);
  }

  /// Starts and priors; terms that are not chosen are held at nothing.
  [[nodiscard]] std::vector<FitParameter> parameters(unsigned chosen) const {
    std::vector<FitParameter> all(kSharedCount);
    all[kRowCost] = {"row_ns", 5, 0, 4000, 0};
    all[kStatistics] = {"statistics_ns", 300, 0, 8000, 2000};
    all[kReread] = {"reread", 0.3, 0, 3, 0.5};
    all[kKeptRow] = {"kept_row_ki", 4, 1, 16, 3};
    const auto hold = [&](Shared index, double value) { all[index] = {all[index].name, value, value, value, 0}; };
    if (!has(chosen, Term::kRow)) hold(kRowCost, 0);
    if (!has(chosen, Term::kLayerNorm)) hold(kStatistics, 0);
    if (!has(chosen, Term::kReread)) {
      hold(kReread, 0);
      hold(kKeptRow, 0);
    }
    for (const std::string& gpu : gpus_) {
      all.push_back({gpu + " launch_us", 3.0 * kernels_, 0.3, 40.0, 5.0});
      all.push_back({gpu + " hbm_share", 0.7, 0.05, 1.2, 0.3});
    }
    return all;
  }

  const std::vector<MemorySample>& samples_;
  std::vector<std::string> gpus_;
  std::vector<double> scales_;
  bool rows_known_ = false, layer_norms_ = false, reads_once_ = false;
  int kernels_ = 1;  // launched: a norm's backward pass sums the gradients of its weights in a second one
};

}  // namespace

std::map<std::string, MemoryCurve> fit_memory(const std::vector<MemorySample>& samples) {
  const Fit fit(samples);
  std::vector<std::string> shapes;
  for (const MemorySample& sample : samples) {
    const StreamMeasurement& stream = stream_of(sample);
    shapes.push_back(std::to_string(stream.traffic.value()) + "," + std::to_string(stream.row));
  }
  const Parameters whole = fit.fit(all_rows(samples.size()));
  std::map<std::string, std::vector<double>> held_out;
  FitQuality ignored;
  score_by_hold_out(
      shapes,
      [&](const std::vector<std::size_t>& fitted, const std::vector<std::size_t>& predicted) {
        const Parameters p = fit.fit(fitted);
        std::vector<double> errors;
        for (const std::size_t row : predicted) {
          errors.push_back(fit.error(p, row));
          held_out[samples[row].row->gpu].push_back(errors.back());
        }
        return errors;
      },
      ignored);
  std::map<std::string, MemoryCurve> curves;
  for (const std::string& gpu : fit.gpus()) {
    std::vector<const KernelMeasurement*> own;
    FittedRange traffic{1e18, 0};
    const MemorySample* one = nullptr;
    for (const MemorySample& sample : samples) {
      if (sample.row->gpu != gpu) continue;
      one = &sample;
      own.push_back(sample.row);
      traffic.low = std::min(traffic.low, stream_of(sample).traffic.value());
      traffic.high = std::max(traffic.high, stream_of(sample).traffic.value());
    }
    MemoryCurve curve = fit.curve_of(whole, *one);
    curve.traffic = traffic;
    curve.quality.rows = static_cast<std::int64_t>(own.size());
    curve.quality.held_out = static_cast<std::int64_t>(held_out[gpu].size());
    curve.quality.median_error = error_quantile(held_out[gpu], 0.5);
    curve.quality.p90_error = error_quantile(held_out[gpu], 0.9);
    curve.quality.noise = noise_of(own);
    curves.emplace(gpu, curve);
  }
  return curves;
}

}  // namespace cpfit
