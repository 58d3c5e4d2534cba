// The fit finds what it was given back, keeps shapes apart, and meets the shipped coefficients again.
#include "calibrate/fit/fit_rates.h"

#include <gmock/gmock.h>

#include <cmath>

#include "calibrate/fit/hold_out.h"
#include "calibrate/fit/robust.h"
#include "calibrate/fit/write_rates.h"
#include "model/presets/embedded.h"
#include "tests/shared_folder.h"

namespace cpfit {
namespace {

DevicePeaks device() {
  DevicePeaks peaks;
  peaks.math = {989e12, 1979e12, 1979e12, 1979e12, 0};
  return peaks;
}

std::vector<const KernelMeasurement*> pointers(const std::vector<KernelMeasurement>& rows) {
  std::vector<const KernelMeasurement*> result;
  for (const KernelMeasurement& row : rows) result.push_back(&row);
  return result;
}

TEST(RobustFit, IgnoresAnOutlierAndKeepsBounds) {
  // y = 2 exp(x), one point ten times too high.
  const std::vector<double> x{0, 1, 2, 3, 4, 5};
  const LogError error = [&](const std::vector<double>& p, std::size_t row) {
    return std::log(p[0]) + p[1] * x[row] - (std::log(2.0) + x[row] + (row == 3 ? std::log(10.0) : 0.0));
  };
  const FitResult fit = fit_robustly({{"scale", 1, 0.1, 100, 0}, {"slope", 0.5, 0, 3, 0}}, all_rows(x.size()), error);
  EXPECT_NEAR(fit.parameters[0], 2.0, 0.05);
  EXPECT_NEAR(fit.parameters[1], 1.0, 0.02);
  const FitResult bounded = fit_robustly({{"scale", 1, 0.1, 1.5, 0}, {"slope", 1, 1, 1, 0}}, all_rows(x.size()), error);
  EXPECT_LE(bounded.parameters[0], 1.5);
  EXPECT_EQ(bounded.parameters[1], 1.0);  // held
}

TEST(HoldOut, RepeatsOfAShapeStayTogether) {
  std::vector<std::string> shapes;
  for (int i = 0; i < 60; ++i) {
    shapes.push_back("shape " + std::to_string(i));
    shapes.push_back("shape " + std::to_string(i));
  }
  FitQuality quality;
  score_by_hold_out(
      shapes,
      [&](const std::vector<std::size_t>& fitted, const std::vector<std::size_t>& predicted) {
        for (const std::size_t row : predicted) {
          for (const std::size_t other : fitted) EXPECT_NE(shapes[row], shapes[other]);
        }
        return std::vector<double>(predicted.size(), std::log(1.1));
      },
      quality);
  EXPECT_EQ(quality.rows, 120);
  EXPECT_GT(quality.held_out, 15);
  EXPECT_LT(quality.held_out, 60);
  EXPECT_NEAR(quality.median_error, 0.1, 1e-9);
}

TEST(GemmFit, FindsTheCurveItWasGiven) {
  GemmCurve truth;
  truth.launch = 4e-6;
  truth.peak_share = 0.8;
  truth.k_half = 200;
  truth.wave_rounding = 0.5;
  truth.small_tile_share = 0.9;
  truth.sustained_loss = 0.1;
  truth.sustained = 1e-3;
  std::vector<KernelMeasurement> rows;
  for (const std::int64_t m : {1024, 2048, 4096, 8192, 16384}) {
    for (const std::int64_t n : {1024, 1536, 3072, 4096, 7168, 12288}) {
      for (const std::int64_t k : {1024, 4096, 16384}) {
        const GemmShape shape{m, n, k};
        rows.push_back(
            {0, "x", GemmMeasurement{shape, MathKind::kBf16}, Seconds(gemm_seconds(truth, device(), 989e12, 2, shape))});
      }
    }
  }
  const GemmCurve found = fit_gemm(pointers(rows), device(), MathKind::kBf16);
  EXPECT_LT(found.quality.median_error, 0.01);
  EXPECT_NEAR(found.launch, truth.launch, 1e-6);
  EXPECT_NEAR(found.wave_rounding, truth.wave_rounding, 0.1);
  EXPECT_EQ(found.k.high, 16384);
}

TEST(CollectiveFit, FindsTheProtocolSwitch) {
  std::vector<CollectivePoint> points;
  for (double bytes = 1024; bytes <= 1 << 28; bytes *= 2) {
    const double seconds = bytes <= 1 << 18 ? 10e-6 + bytes / 40e9 : 25e-6 + bytes / 300e9;
    points.push_back({bytes, seconds, 450e9});
  }
  const CollectiveCurve curve = fit_collective(points, CollectiveKind::kSendRecv, 2);
  const CollectivePiece& last = curve.pieces[static_cast<std::size_t>(curve.piece_count - 1)];
  EXPECT_NEAR(last.bus_share, 300.0 / 450.0, 0.01);
  EXPECT_NEAR(last.alpha, 25e-6, 1e-6);
  EXPECT_NEAR(curve.pieces[0].alpha, 10e-6, 1e-6);
  const CollectiveCurve capped = fit_collective(points, CollectiveKind::kSendRecv, 2, 0.5);
  for (std::int32_t i = 0; i < capped.piece_count; ++i)
    EXPECT_LE(capped.pieces[static_cast<std::size_t>(i)].bus_share, 0.5 + 1e-9);
}

TEST(RatesFile, IsWrittenAndReadAlike) {
  const Outcome<RateTables> shipped = parse_rate_tables(embedded_file("presets/rates.toml"));
  ASSERT_TRUE(shipped.ok());
  RateTables fitted = *shipped;
  const std::string documented(embedded_file("presets/rates_documented.toml"));
  const auto is_fitted = [](const auto& row) { return row.curve.quality.rows == 0; };  // documented rows come from their own file
  std::erase_if(fitted.gemm, is_fitted);
  std::erase_if(fitted.attention, is_fitted);
  fitted.link.clear();
  fitted.launch.clear();
  fitted.overlap.clear();
  EXPECT_EQ(rates_toml(fitted, documented), embedded_file("presets/rates.toml"));
}

/// The groups of three GPUs, whole: their curves do not depend on the other rows.
std::vector<KernelTable> hopper_and_ampere(std::vector<KernelTable> tables) {
  for (KernelTable& table : tables) {
    std::erase_if(table.rows, [](const KernelMeasurement& row) {
      if (row.gpu != "A100-SXM4-80GB" && row.gpu != "H100-SXM5-80GB" && row.gpu != "H200-SXM-141GB") return true;
      const auto* attention =
          std::get_if<AttentionMeasurement>(&row.what);  // the largest tables take longest: one GPU of them will do
      return row.gpu != "A100-SXM4-80GB" && (std::holds_alternative<GemmMeasurement>(row.what) ||
                                             (attention != nullptr && attention->library == AttentionLibrary::kTrtllm));
    });
  }
  return tables;
}

TEST(RatesFile, ComesOutOfThePublishedTablesAgain) {
  CPFIT_REQUIRE_SHARED("published/aiconfigurator_gemm_bf16.csv");
  const std::vector<Gpu> gpus = gpu_presets();
  const FitReport again = fit_rates(hopper_and_ampere(read_fitted_tables(test::shared_path("published"))), gpus);
  const RateTables shipped = parse_rate_tables(embedded_file("presets/rates.toml")).value();
  constexpr double kTolerance = 0.02;
  std::size_t compared = 0;
  for (const GemmRow& row : again.tables.gemm) {
    for (const GemmRow& known : shipped.gemm) {
      if (known.gpu != row.gpu || known.math != row.math || known.curve.quality.rows == 0) continue;
      for (const GemmShape& shape : {GemmShape{4096, 4096, 4096}, GemmShape{8192, 1024, 16384}, GemmShape{1024, 8192, 2048}}) {
        const DevicePeaks peaks = peaks_of(find_gpu(row.gpu).value());
        const double peak = peaks.math[static_cast<std::size_t>(row.math)];
        EXPECT_NEAR(gemm_seconds(row.curve, peaks, peak, 2, shape) / gemm_seconds(known.curve, peaks, peak, 2, shape), 1,
                    kTolerance)
            << row.gpu;
        ++compared;
      }
      EXPECT_NEAR(row.curve.quality.median_error, known.curve.quality.median_error, 0.003);
    }
  }
  for (const AttentionRow& row : again.tables.attention) {
    for (const AttentionRow& known : shipped.attention) {
      if (known.gpu != row.gpu || known.math != row.math || known.library != row.library || known.pass != row.pass) continue;
      if (known.curve.quality.rows == 0) continue;
      AttentionShape shape;
      shape.q_len = shape.kv_len = 8192;
      shape.pairs = 8192.0 * 4096.0;
      shape.heads = shape.kv_heads = 32;
      shape.batch = 2;
      const DevicePeaks peaks = peaks_of(find_gpu(row.gpu).value());
      const double peak = peaks.math[static_cast<std::size_t>(row.math)];
      EXPECT_NEAR(attention_seconds(row.curve, peaks, peak, shape, row.pass) /
                      attention_seconds(known.curve, peaks, peak, shape, row.pass),
                  1, kTolerance)
          << row.gpu << " " << name_of(row.library) << " " << name_of(row.pass);
      ++compared;
    }
  }
  for (const CollectiveRow& row : again.tables.collective) {
    if (row.link == "nvlink5" || row.link == "nic") continue;  // other GPUs' rows belong to them
    for (const CollectiveRow& known : shipped.collective) {
      if (known.link != row.link || known.kind != row.kind || known.curve.ranks != row.curve.ranks) continue;
      EXPECT_NEAR(collective_seconds(row.curve, row.kind, 450e9, 64e6) / collective_seconds(known.curve, row.kind, 450e9, 64e6),
                  1, kTolerance);
      ++compared;
    }
  }
  EXPECT_GT(compared, 30u);
}

TEST(RatesFile, PredictsTheTablesItWasFittedOn) {
  CPFIT_REQUIRE_SHARED("published/aiconfigurator_gemm_bf16.csv");
  const RateSet rates = RateSet::defaults();
  const std::vector<Gpu> gpus = gpu_presets();
  for (const KernelTable& table : read_fitted_tables(test::shared_path("published"))) {
    std::vector<double> errors;
    for (const KernelMeasurement& row : table.rows) {
      if (const auto predicted = predict_kernel(rates, gpus, row)) errors.push_back(std::log(predicted->time / row.time));
    }
    const double median = error_quantile(errors, 0.5), p90 = error_quantile(errors, 0.9);
    RecordProperty(table.path, std::to_string(median));
    std::printf("%-48s rows %5zu  median %4.1f %%  p90 %4.1f %%\n", table.source.c_str(), errors.size(), 100 * median, 100 * p90);
    const bool other_conditions =
        table.source.find("SimuMax") != std::string::npos || table.source.find("bus rates") != std::string::npos;
    EXPECT_LT(median, other_conditions ? 0.4 : 0.06) << table.source;
  }
}

}  // namespace
}  // namespace cpfit
