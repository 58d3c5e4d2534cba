// Norms: what belongs to the kernel and what to the GPU comes back from scattered rows.
#include <gmock/gmock.h>

#include <map>
#include <string>
#include <vector>

#include "calibrate/fit/fit_rates.h"
#include "model/presets/embedded.h"
#include "model/rates/gpu_rates.h"
#include "tests/calibrate/scatter.h"

namespace cpfit {
namespace {

/// Shapes of norms as tables have them, on two GPUs with the same kernel: launch 2 us, 0.85 and 0.82 of their memories' rates.
struct NormDevice {
  const char* gpu;
  DevicePeaks peaks;
  double share;
};
std::vector<NormDevice> norm_devices() {
  std::vector<NormDevice> devices{{"A", {}, 0.85}, {"B", {}, 0.82}};
  devices[0].peaks.hbm = 4.8e12;
  devices[0].peaks.sm_count = 132;
  devices[1].peaks.hbm = 8e12;
  devices[1].peaks.sm_count = 148;
  return devices;
}
std::vector<KernelMeasurement> norms_of(const std::string& kernels, AttentionPass pass, MemoryCurve kernel) {
  Scatter scatter(0.01);
  std::vector<KernelMeasurement> rows;
  for (const NormDevice& device : norm_devices()) {
    kernel.launch = 2e-6;
    kernel.hbm_share = device.share;
    for (const auto& [count, row] : std::initializer_list<std::pair<std::int64_t, std::int64_t>>{{8192, 128},
                                                                                                 {131072, 128},
                                                                                                 {16384, 1024},
                                                                                                 {4096, 2048},
                                                                                                 {8192, 4096},
                                                                                                 {16384, 4096},
                                                                                                 {8192, 5120},
                                                                                                 {4096, 8192},
                                                                                                 {8192, 8192},
                                                                                                 {4096, 16384},
                                                                                                 {2048, 16384}}) {
      const double n = static_cast<double>(count), c = static_cast<double>(row);
      const Bytes traffic((pass == AttentionPass::kForward ? 4 : 6) * n * c);
      rows.push_back({0, device.gpu, StreamMeasurement{kernels, pass, traffic, row, count},
                      Seconds(norm_seconds(kernel, device.peaks, traffic.value(), {c, n}) * scatter())});
    }
  }
  return rows;
}
std::map<std::string, MemoryCurve> fit_norms(const std::vector<KernelMeasurement>& rows) {
  std::vector<MemorySample> samples;
  for (const KernelMeasurement& row : rows) {
    const NormDevice device = norm_devices()[row.gpu == "A" ? 0 : 1];
    samples.push_back({&row, device.peaks.hbm, device.peaks.sm_count});
  }
  return fit_memory(samples);
}

// A row takes 80 ns of a multiprocessor and 50 ps an element, in waves of 16; rows above 4,096 elements are read again by half.
TEST(MemoryFit, GpusShareWhatBelongsToTheKernel) {
  MemoryCurve kernel;
  kernel.row_time = 80e-9;
  kernel.element_time = 50e-12;
  kernel.resident = 16;
  kernel.wave_rounding = 1;
  for (const bool twice : {true, false}) {
    kernel.reread = twice ? 0.5 : 0;
    kernel.kept_row = twice ? 4096 : 0;
    const auto curves = fit_norms(norms_of("pytorch_norm", AttentionPass::kForward, kernel));
    ASSERT_EQ(curves.size(), 2u);
    for (const NormDevice& device : norm_devices()) {
      const MemoryCurve& curve = curves.at(device.gpu);
      // 1 % on eleven rows each: shares to 2 %, the start-up of 2 us to a quarter of a microsecond.
      EXPECT_NEAR(curve.hbm_share, device.share, 0.02 * device.share);
      EXPECT_NEAR(curve.launch, 2e-6, 0.25e-6);
      EXPECT_NEAR(curve.row_time, 80e-9, 8e-9);
      EXPECT_NEAR(curve.wave_rounding, 1, 0.3);
      if (twice) {
        EXPECT_NEAR(curve.reread, 0.5, 0.1);
        EXPECT_NEAR(curve.kept_row, 4096, 800);
      } else {
        EXPECT_EQ(curve.reread, 0);  // nothing asks for it
      }
      EXPECT_EQ(curve.column_row, 0);  // a forward pass has no such kernel
      EXPECT_EQ(curve.quality.rows, 11);
      EXPECT_EQ(curve.quality.held_out, 11);
      EXPECT_LT(curve.quality.median_error, 0.03);
    }
    EXPECT_EQ(curves.at("A").row_time, curves.at("B").row_time);
  }
}

// The gradient of the weights: eager PyTorch walks all rows again, 3 ns each, other libraries what their blocks left, 6 us in
// all.
TEST(MemoryFit, WavesOfColumnBlocksAreFound) {
  MemoryCurve kernel;
  kernel.element_time = 100e-12;
  kernel.column_row = 3e-9;
  for (const auto& [gpu, curve] : fit_norms(norms_of("pytorch_norm", AttentionPass::kBackward, kernel))) {
    EXPECT_NEAR(curve.column_row, 3e-9, 0.15e-9) << gpu;
    EXPECT_EQ(curve.column_start, 0) << gpu;
    EXPECT_LT(curve.quality.median_error, 0.03) << gpu;
  }
  kernel.column_row = 0;
  kernel.column_start = 6e-6;
  for (const auto& [gpu, curve] : fit_norms(norms_of("cudnn_norm", AttentionPass::kBackward, kernel))) {
    EXPECT_NEAR(curve.column_start, 6e-6, 0.6e-6) << gpu;
    EXPECT_EQ(curve.column_row, 0) << gpu;
    EXPECT_LT(curve.quality.median_error, 0.03) << gpu;
  }
}

// Norms as wide as models, seen as bytes alone, stand for what else streams: 2 us and 0.8 of the memory's rate. Narrow rows,
// which take three times as long, and layer norms are none of them.
TEST(MemoryFit, WideNormsTellOfStreams) {
  const Gpu gpu = find_gpu("H200-SXM-141GB").value();
  KernelTable table;
  table.source = "norms";
  const auto add = [&](std::int64_t count, std::int64_t row, double times, bool layer_norm) {
    const Bytes traffic(4.0 * static_cast<double>(count * row));
    table.rows.push_back({0, gpu.name, StreamMeasurement{"cudnn_norm", AttentionPass::kForward, traffic, row, count, layer_norm},
                          Seconds(times * (2e-6 + traffic.value() / (0.8 * gpu.hbm.value())))});
  };
  for (const std::int64_t row : {2048, 4096, 5120, 6144, 8192}) add(4096, row, 1, false);
  add(131072, 128, 3, false);
  add(8192, 128, 3, false);
  add(1024, 12288, 2, true);
  const FitReport report = fit_rates({table}, gpu_presets());
  const auto is_stream = [](const MemoryRow& row) { return row.kernels == "stream"; };
  const auto found = std::find_if(report.tables.memory.begin(), report.tables.memory.end(), is_stream);
  ASSERT_NE(found, report.tables.memory.end());
  EXPECT_EQ(found->curve.quality.rows, 5);
  EXPECT_NEAR(found->curve.hbm_share, 0.8, 0.004);
  EXPECT_NEAR(found->curve.launch, 2e-6, 0.1e-6);
  EXPECT_EQ(found->curve.row_time, 0);
  // It is what plans stream with; a record without it has the norm's.
  RateTables tables = parse_rate_tables(embedded_file("presets/rates.toml")).value();
  const auto share = [&] { return RateSet::from_tables(tables).value().of(gpu).memory.curve.hbm_share; };
  const auto shipped = std::find_if(tables.memory.begin(), tables.memory.end(),
                                    [&](const MemoryRow& row) { return is_stream(row) && row.gpu == gpu.name; });
  ASSERT_NE(shipped, tables.memory.end());
  EXPECT_EQ(share(), shipped->curve.hbm_share);
  std::erase_if(tables.memory, is_stream);
  const auto norm = std::find_if(tables.memory.begin(), tables.memory.end(), [&](const MemoryRow& row) {
    return row.kernels == "cudnn_norm" && row.gpu == gpu.name && row.pass == AttentionPass::kForward;
  });
  EXPECT_EQ(share(), norm->curve.hbm_share);
}

// 10, 11 and 13, each beside the median of the other two (of logarithms): 10 is 20 % off, 11 4 %, 13 19 %, three times each; the
// middle one of the nine is sqrt(10 x 11) / 13.

}  // namespace
}  // namespace cpfit
