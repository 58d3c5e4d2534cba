// Streaming kernels: start-up and a share of the memory's rate. Kernels that reduce rows (norms) have a multiprocessor's work on
// rows besides, and in a backward pass a second kernel down the rows. All that belongs to the kernel, not to the GPU: all GPUs
// that ran it are fitted together, with few rows each, and a GPU's share of its memory's rate leaves the common one by a few per
// cent. Terms that not every kernel has must earn their figures by the Bayesian information criterion of the fitted rows, so that
// points kept out never choose them.
#include <algorithm>
#include <array>
#include <cmath>

#include "calibrate/fit/fit_rates.h"
#include "calibrate/fit/hold_out.h"
#include "calibrate/fit/robust.h"

namespace cpfit {

namespace {

using Parameters = std::vector<double>;

// Of all GPUs; then each one's deviation from the common share.
enum Shared : std::size_t {
  kLaunch,
  kShare,
  kRowTime,
  kElementTime,
  kStatistics,
  kReread,
  kKeptRow,
  kRounding,
  kColumnStart,
  kColumnRow,
  kSharedCount
};
enum class Term : std::uint8_t { kLayerNorm, kReread, kWaves, kColumns };
constexpr std::array kTerms{Term::kLayerNorm, Term::kReread, Term::kWaves, Term::kColumns};

/// Standard deviation, in logarithms, of the shares of their memory's rate that one kernel reaches on different GPUs.
constexpr double kShareSpread = 0.05;

/// What is known of a library's norm kernels from their sources.
struct NormKernel {
  double looped_from = 0, tile = 0, resident = 0;
  bool reads_once = false;     // a row stays in registers from the reduction to the result
  bool sums_partials = false;  // the second backward kernel sums what each block left, not all rows again
};
NormKernel kernel_of(const std::string& kernels) {
  // Inductor reduces rows up to 1,024 in one piece, held in registers; longer ones in a loop over tiles of 2,048.
  if (kernels == "torch_compile_norm") return {1024, 2048, 0, true, true};
  if (kernels == "pytorch_norm") return {0, 0, 16, false, false};  // eager: a block of 128 threads a row, 2,048 threads at a time
  if (kernels == "cudnn_norm") return {0, 0, 0, true, true};
  return {};
}

const StreamMeasurement& stream_of(const MemorySample& sample) { return std::get<StreamMeasurement>(sample.row->what); }

class Fit {
 public:
  explicit Fit(const std::vector<MemorySample>& samples) : samples_(samples) {
    for (const MemorySample& sample : samples) {
      const StreamMeasurement& stream = stream_of(sample);
      gpus_.push_back(sample.row->gpu);
      norm_ = norm_ || stream.rows > 0;
      layer_norms_ = layer_norms_ || stream.layer_norm;
      kernel_ = kernel_of(stream.kernels);
      backward_ = stream.pass == AttentionPass::kBackward;
      scales_.push_back(row_scale(sample.row->spread));
    }
    std::sort(gpus_.begin(), gpus_.end());
    gpus_.erase(std::unique(gpus_.begin(), gpus_.end()), gpus_.end());
  }

  [[nodiscard]] const std::vector<std::string>& gpus() const { return gpus_; }

  [[nodiscard]] MemoryCurve curve_of(const Parameters& p, const std::string& gpu) const {
    MemoryCurve curve;
    curve.launch = p[kLaunch] * 1e-6;
    curve.hbm_share = p[kShare] * std::exp(p[kSharedCount + index_of(gpu)]);
    if (!norm_) return curve;
    curve.row_time = p[kRowTime] * 1e-9;
    curve.element_time = p[kElementTime] * 1e-12;
    curve.statistics = p[kStatistics] * 1e-9;
    curve.tile = kernel_.tile;
    curve.looped_from = kernel_.looped_from;
    curve.resident = kernel_.resident;
    curve.wave_rounding = p[kRounding];
    curve.reread = p[kReread];
    curve.kept_row = p[kReread] > 0 ? p[kKeptRow] * 1024 : 0;
    curve.column_start = p[kColumnStart] * 1e-6;
    curve.column_row = p[kColumnRow] * 1e-9;
    return curve;
  }

  [[nodiscard]] double error(const Parameters& p, std::size_t index) const {
    const MemorySample& sample = samples_[index];
    const StreamMeasurement& stream = stream_of(sample);
    DevicePeaks device;
    device.hbm = sample.hbm;
    device.sm_count = sample.sm_count;
    const NormRows rows{static_cast<double>(stream.row), static_cast<double>(stream.rows), stream.layer_norm};
    return std::log(norm_seconds(curve_of(p, sample.row->gpu), device, stream.traffic.value(), rows) / sample.row->time.value());
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
    return (norm_ || chosen == 0) && (layer_norms_ || !has(chosen, Term::kLayerNorm)) &&
           (!kernel_.reads_once || !has(chosen, Term::kReread)) && (kernel_.resident > 0 || !has(chosen, Term::kWaves)) &&
           (backward_ || !has(chosen, Term::kColumns));
  }
  [[nodiscard]] static double figures(unsigned chosen) {
    double count = 0;
    for (const Term term : kTerms) count += !has(chosen, term) ? 0 : term == Term::kReread ? 2 : 1;
    return count;
  }

  /// Starts and priors; terms that are not chosen are held at nothing.
  [[nodiscard]] std::vector<FitParameter> parameters(unsigned chosen) const {
    std::vector<FitParameter> all(kSharedCount);
    all[kLaunch] = {"launch_us", norm_ && backward_ ? 6.0 : 3.0, 0.3, 40.0, norm_ && backward_ ? 10.0 : 5.0};
    all[kShare] = {"hbm_share", 0.8, 0.05, 1.2, 0.3};
    all[kRowTime] = {"row_ns", 50, 0, 4000, 0};
    all[kElementTime] = {"element_ps", 30, 0, 1000, 0};
    all[kStatistics] = {"statistics_ns", 300, 0, 8000, 2000};
    all[kReread] = {"reread", 0.3, 0, 3, 0.5};
    all[kKeptRow] = {"kept_row_ki", 4, 1, 16, 3};
    all[kRounding] = {"wave_rounding", 0.5, 0, 1, 0};
    all[kColumnStart] = {"column_us", 1, 0, 50, 0};
    all[kColumnRow] = {"column_row_ns", 1, 0, 50, 0};
    const auto hold = [&](Shared index) { all[index] = {all[index].name, 0, 0, 0, 0}; };
    if (!norm_) {
      hold(kRowTime);
      hold(kElementTime);
    }
    if (!has(chosen, Term::kLayerNorm)) hold(kStatistics);
    if (!has(chosen, Term::kReread)) {
      hold(kReread);
      hold(kKeptRow);
    }
    if (!has(chosen, Term::kWaves)) hold(kRounding);
    if (!has(chosen, Term::kColumns) || !kernel_.sums_partials) hold(kColumnStart);
    if (!has(chosen, Term::kColumns) || kernel_.sums_partials) hold(kColumnRow);
    for (const std::string& gpu : gpus_) {
      // Alone, a GPU has no common share to leave.
      all.push_back(gpus_.size() > 1 ? FitParameter{gpu, 0, -0.5, 0.5, kShareSpread} : FitParameter{gpu, 0, 0, 0, 0});
    }
    return all;
  }

  const std::vector<MemorySample>& samples_;
  std::vector<std::string> gpus_;
  std::vector<double> scales_;
  NormKernel kernel_;
  bool norm_ = false, layer_norms_ = false, backward_ = false;
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
    std::vector<std::string> own_shapes;
    for (std::size_t row = 0; row < samples.size(); ++row) {
      const MemorySample& sample = samples[row];
      if (sample.row->gpu != gpu) continue;
      own.push_back(sample.row);
      own_shapes.push_back(shapes[row]);
      traffic.low = std::min(traffic.low, stream_of(sample).traffic.value());
      traffic.high = std::max(traffic.high, stream_of(sample).traffic.value());
    }
    MemoryCurve curve = fit.curve_of(whole, gpu);
    curve.traffic = traffic;
    curve.quality.rows = static_cast<std::int64_t>(own.size());
    curve.quality.held_out = static_cast<std::int64_t>(held_out[gpu].size());
    curve.quality.median_error = error_quantile(held_out[gpu], 0.5);
    curve.quality.p90_error = error_quantile(held_out[gpu], 0.9);
    curve.quality.noise = noise_of(own, own_shapes);
    curves.emplace(gpu, curve);
  }
  return curves;
}

}  // namespace cpfit
