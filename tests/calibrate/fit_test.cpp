// The fit finds what it was given back, keeps shapes apart, and meets the shipped coefficients again.
#include "calibrate/fit/fit_rates.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <stdexcept>

#include "calibrate/fit/fit_imported.h"
#include "calibrate/fit/hold_out.h"
#include "calibrate/fit/robust.h"
#include "calibrate/fit/write_rates.h"
#include "model/presets/embedded.h"
#include "model/rates/gpu_rates.h"
#include "tests/calibrate/scatter.h"
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
  for (int i = 0; i < 120; ++i) {
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
  EXPECT_EQ(quality.rows, 240);
  EXPECT_GT(quality.held_out, 40);  // three tenths of 120 shapes, by a hash
  EXPECT_LT(quality.held_out, 110);
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

// Three protocols, each first on as few channels as the bytes fill (time stays), then on all of them (time grows): six pieces.
TEST(CollectiveFit, FindsThreeProtocolsWithTheirChannels) {
  const auto truth = [](double bytes) {
    if (bytes <= 8 << 10) return 8e-6;                   // LL, channels filling
    if (bytes <= 64 << 10) return 7e-6 + bytes / 10e9;   // LL, all channels
    if (bytes <= 512 << 10) return 15e-6;                // LL128, channels filling
    if (bytes <= 4 << 20) return 10e-6 + bytes / 120e9;  // LL128, all channels
    if (bytes <= 16 << 20) return 52e-6;                 // Simple, channels filling
    return 12e-6 + bytes / 360e9;                        // Simple, all channels: 0.8 of 450 GB/s
  };
  Scatter scatter(0.01);
  std::vector<CollectivePoint> points;
  for (double bytes = 1 << 10; bytes <= 1 << 30; bytes *= 2) {
    for (int repeat = 0; repeat < 6; ++repeat) points.push_back({bytes, truth(bytes) * scatter(), 450e9});
  }
  const CollectiveCurve curve = fit_collective(points, CollectiveKind::kSendRecv, 2);
  ASSERT_EQ(curve.piece_count, 6);
  // Six repeats of 1 % on two or more sizes: the mean of a piece is known to better than 1 %.
  EXPECT_NEAR(curve.pieces[5].bus_share, 0.8, 0.01);
  EXPECT_NEAR(curve.pieces[3].bus_share, 120.0 / 450.0, 0.01);
  for (const auto& [piece, seconds] : {std::pair(0, 8e-6), std::pair(2, 15e-6), std::pair(4, 52e-6)}) {
    const CollectivePiece& flat = curve.pieces[static_cast<std::size_t>(piece)];
    EXPECT_NEAR(flat.alpha + flat.from / (flat.bus_share * 450e9), seconds, 0.02 * seconds) << piece;
  }
  for (double bytes = 1 << 10; bytes <= 1 << 30; bytes *= 2)
    EXPECT_NEAR(collective_seconds(curve, CollectiveKind::kSendRecv, 450e9, bytes) / truth(bytes), 1, 0.02) << bytes;
}

TEST(CollectiveFit, ScatterAloneMakesNoPieces) {
  Scatter scatter(0.02);
  std::vector<CollectivePoint> points;
  for (double bytes = 1 << 10; bytes <= 1 << 30; bytes *= 2)
    points.push_back({bytes, (10e-6 + bytes / 300e9) * scatter(), 450e9});
  const CollectiveCurve curve = fit_collective(points, CollectiveKind::kSendRecv, 2);
  EXPECT_EQ(curve.piece_count, 1);
  EXPECT_NEAR(curve.pieces[0].alpha, 10e-6, 0.2e-6);
  EXPECT_NEAR(curve.pieces[0].bus_share, 300.0 / 450.0, 0.01);
}

/// A table of collectives as a published one, or as one's own run.
KernelTable collectives(const std::string& source, bool own_run) {
  KernelTable table;
  table.source = source;
  table.own_run = own_run;
  return table;
}
void add_sizes(KernelTable& table, CollectiveMeasurement what, double alpha, double rate, int repeats = 1) {
  for (double bytes = 1 << 12; bytes <= 1 << 28; bytes *= 4) {
    what.bytes = Bytes(bytes);
    const double wire = bytes * bus_factor(what.kind, static_cast<double>(what.ranks));
    for (int i = 0; i < repeats; ++i) table.rows.push_back({0, "H100-SXM5-80GB", what, Seconds(alpha + wire / rate)});
  }
}
const CollectiveCurve& curve_of(const FitReport& report, CollectiveKind kind, CollectiveForm form) {
  for (const CollectiveRow& row : report.tables.collective) {
    if (row.kind == kind && row.form == form) return row.curve;
  }
  throw std::runtime_error("no such curve");
}

TEST(CollectiveGroups, VersionsOfTheLibraryAreNeverMixed) {
  KernelTable table = collectives("aiconfigurator", false);
  add_sizes(table, {CollectiveKind::kAllGather, 8, 1, Bytes(), "2.23"}, 40e-6, 200e9);
  add_sizes(table, {CollectiveKind::kAllGather, 8, 1, Bytes(), "2.29"}, 20e-6, 360e9, 2);
  const FitReport report = fit_rates({table}, gpu_presets());
  const CollectiveCurve& curve = curve_of(report, CollectiveKind::kAllGather, CollectiveForm::kUsual);
  EXPECT_EQ(curve.quality.rows, 18);  // nine sizes, twice: the version with most of them
  EXPECT_NEAR(collective_seconds(curve, CollectiveKind::kAllGather, 450e9, 1 << 20), 20e-6 + (1 << 20) * 0.875 / 360e9, 1e-7);
  EXPECT_THAT(report.left_out, testing::Contains(testing::HasSubstr("NCCL 2.23: 9 points")));
}

TEST(CollectiveGroups, SumsOfWholeNumbersHaveACurveOfTheirOwnWhereTheSwitchAdds) {
  KernelTable table = collectives("aiconfigurator", false);
  CollectiveMeasurement sum{CollectiveKind::kAllReduce, 8, 1, Bytes(), "2.29"};
  add_sizes(table, sum, 20e-6, 400e9);
  sum.int8_sums = true;
  add_sizes(table, sum, 20e-6, 300e9);
  const FitReport report = fit_rates({table}, gpu_presets());
  constexpr double kBytes = 1 << 28, kWire = kBytes * 1.75;
  EXPECT_NEAR(collective_seconds(curve_of(report, CollectiveKind::kAllReduce, CollectiveForm::kUsual), CollectiveKind::kAllReduce,
                                 450e9, kBytes),
              20e-6 + kWire / 400e9, 1e-6);
  EXPECT_NEAR(collective_seconds(curve_of(report, CollectiveKind::kAllReduce, CollectiveForm::kInt8Sums),
                                 CollectiveKind::kAllReduce, 450e9, kBytes),
              20e-6 + kWire / 300e9, 1e-6);
}

// Groups with members apart: on a link whose strided groups get half of it, as two sockets do.
TEST(CollectiveGroups, StridedOnesAreFittedAndAskedFor) {
  KernelTable table = collectives("own run", true);
  CollectiveMeasurement what{CollectiveKind::kAllGather, 4, 1, Bytes(), "2.29"};
  add_sizes(table, what, 20e-6, 360e9);
  what.ranks = 8;
  add_sizes(table, what, 30e-6, 360e9);
  what.ranks = 4;
  what.strided = true;
  add_sizes(table, what, 25e-6, 180e9);
  const FitReport report = fit_rates({table}, gpu_presets());
  ASSERT_EQ(report.tables.collective.size(), 3u);
  // In the record, and back.
  const RateTables read = parse_rate_tables(rates_toml(report.tables, "")).value();
  RateTables all = parse_rate_tables(embedded_file("presets/rates.toml")).value();
  std::erase_if(all.collective, [](const CollectiveRow& row) { return row.link == "nvlink4"; });
  all.collective.insert(all.collective.end(), read.collective.begin(), read.collective.end());
  const RateSet rates = RateSet::from_tables(all).value();
  const auto seconds = [&](std::int64_t ranks, std::int64_t stride) {
    return collective_time(rates.of(find_gpu("H100-SXM5-80GB").value()), CollectiveKind::kAllGather, LinkClass::kNvlink,
                           gb_per_s(450), Seconds(0), ranks, Bytes(64e6), form_of_stride(stride))
        .time.value();
  };
  EXPECT_NEAR(seconds(4, 1), 20e-6 + 64e6 * 0.75 / 360e9, 1e-6);
  EXPECT_NEAR(seconds(4, 2), 25e-6 + 64e6 * 0.75 / 180e9, 1e-6);
  EXPECT_EQ(seconds(8, 2), seconds(8, 1));  // eight were not measured apart
}

TEST(CollectiveGroups, AHostsStridedGroupsAreFittedToo) {
  MeasurementFile file;
  file.backend = "host";
  file.ranks = 4;
  file.ranks_per_host = 4;
  file.machine.cpu = "T";
  file.machine.link = "shared memory";
  for (const char* stride : {"consecutive", "strided"}) {
    for (std::int64_t bytes = 1 << 12; bytes <= 1 << 24; bytes *= 4) {
      MeasuredPoint point{"collective", {}, MeasuredOutcome::kMeasured, "", 0, {}, {}};
      point.axes = {
          {"kind", std::string("all_gather")}, {"bytes", bytes}, {"ranks", std::int64_t{2}}, {"stride", std::string(stride)}};
      const double rate = std::string(stride) == "strided" ? 4e9 : 8e9;
      const double seconds = 5e-6 + static_cast<double>(bytes) / 2 / rate;
      point.results.push_back({"seconds", seconds, seconds, seconds, 0, 10, 0});
      file.points.push_back(point);
    }
  }
  const ImportedFit fit = fit_imported({read_measured_points(file, "t.json")}, gpu_presets());
  std::map<CollectiveForm, double> seconds;
  for (const CollectiveRow& row : fit.tables.collective)
    seconds[row.form] = collective_seconds(row.curve, row.kind, row.raw, 1 << 22);
  ASSERT_EQ(seconds.size(), 2u);
  EXPECT_NEAR(seconds[CollectiveForm::kUsual], 5e-6 + (1 << 21) / 8e9, 3e-6);
  EXPECT_NEAR(seconds[CollectiveForm::kStrided], 5e-6 + (1 << 21) / 4e9, 6e-6);
}

TEST(HoldOut, RepeatsTellTheNoise) {
  std::vector<std::string> shapes;
  std::vector<double> seconds;
  for (const char* shape : {"a", "b", "c"}) {
    for (const double value : {10.0, 11.0, 13.0}) {
      shapes.emplace_back(shape);
      seconds.push_back(value);
    }
  }
  const std::vector<double> untold(seconds.size(), 0.0);
  EXPECT_NEAR(noise_of(untold, shapes, seconds), 1 - std::sqrt(110.0) / 13.0, 1e-12);
  EXPECT_EQ(noise_of(std::vector<double>(seconds.size(), 0.04), shapes, seconds), 0.04);  // the source tells
  EXPECT_EQ(noise_of({0, 0, 0}, {"a", "a", "b"}, {1, 2, 3}), 0);                          // two of a kind tell nothing
}

// Of 21 sizes measured ten times each every size is predicted by a fit that has not seen it.
TEST(HoldOut, RepeatsDoNotMakeManyShapes) {
  std::vector<std::string> shapes;
  for (int i = 0; i < 210; ++i) shapes.push_back(std::to_string(i % 21));
  FitQuality quality;
  score_by_hold_out(
      shapes,
      [&](const std::vector<std::size_t>&, const std::vector<std::size_t>& predicted) {
        return std::vector<double>(predicted.size(), 0.0);
      },
      quality);
  EXPECT_EQ(quality.held_out, 210);
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
      if (known.link != row.link || known.kind != row.kind || known.form != row.form || known.curve.ranks != row.curve.ranks)
        continue;
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
