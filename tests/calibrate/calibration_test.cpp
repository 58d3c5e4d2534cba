// A fit of a synthetic machine finds what it was made of; the record keeps it; a calibration over the defaults speaks of its own
// device alone.
#include "model/record/calibration.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <cmath>

#include <filesystem>
#include <fstream>

#include "calibrate/fit/fit_imported.h"
#include "calibrate/fit/refit.h"
#include "model/cluster/gpu.h"
#include "model/presets/embedded.h"
#include "model/rates/gpu_rates.h"
#include "model/rates/overlay.h"

namespace cpfit {
namespace {

using testing::Contains;
using testing::HasSubstr;

MeasuredAxis axis(const char* name, std::int64_t value) { return {name, AxisValue(value)}; }
MeasuredAxis axis(const char* name, const char* value) { return {name, AxisValue(std::string(value))}; }

MeasuredResult seconds(double value, const char* name = "seconds") {
  return {name, value, 0.99 * value, 1.01 * value, 0.01 * value, 20, 0};
}

MeasuredPoint point(const char* probe, std::vector<MeasuredAxis> axes, double value) {
  return {probe, std::move(axes), MeasuredOutcome::kMeasured, "", 1, {seconds(value)}, {}};
}

/// A processor of 40 GFLOP/s and 8 GB/s; attention takes 5 us and its FLOPs at 80 % (forward) or 60 % (backward) of that;
/// messages 2 us and their bytes at 4 GB/s.
constexpr double kPeak = 40e9, kMemory = 8e9, kLink = 4e9;

double attention_truth(std::int64_t q, std::int64_t kv, std::int64_t heads, std::int64_t d, bool causal, bool backward) {
  const double pairs = causal ? 0.5 * static_cast<double>(q * (q + 1)) : static_cast<double>(q * kv);
  const double flops = (backward ? 10.0 : 4.0) * pairs * static_cast<double>(heads * d);
  return 5e-6 + flops / (kPeak * (backward ? 0.6 : 0.8));
}

MeasurementFile synthetic() {
  MeasurementFile file;
  file.backend = "host";
  file.ranks = file.ranks_per_host = 2;
  file.machine.cpu = "Model T";
  file.machine.mpi = "Open MPI v4.1.4";
  file.machine.link = "shared memory";
  for (const std::int64_t q : {64, 128, 256, 512, 1024}) {
    for (const std::int64_t heads : {2, 8}) {
      for (const bool backward : {false, true}) {
        const auto add = [&](std::int64_t kv, bool causal) {
          file.points.push_back(point(
              "attention",
              {axis("q", q), axis("kv", kv), axis("heads", heads), axis("kv_heads", heads / 2),
               axis("head_dim", std::int64_t{64}), axis("head_dim_v", std::int64_t{64}), axis("mask", causal ? "causal" : "full"),
               axis("pass", backward ? "backward" : "forward"), axis("dtype", "fp32"), axis("kernel", "blas")},
              attention_truth(q, kv, heads, 64, causal, backward)));
        };
        add(q, true);
        add(q, false);
        add(2 * q, false);
      }
    }
  }
  for (std::int64_t bytes = 4096; bytes <= 16 << 20; bytes *= 2) {
    file.points.push_back(
        point("memory", {axis("operation", "copy"), axis("bytes", bytes)}, 1e-6 + 2 * static_cast<double>(bytes) / kMemory));
    file.points.push_back(
        point("p2p", {axis("bytes", bytes), axis("pair", "0-1"), axis("direction", "both"), axis("link", "shared memory")},
              2e-6 + static_cast<double>(bytes) / kLink));
  }
  // While the message passes, both run at half of their speed: a kernel of 3 ms beside a message of 1 ms loses 1 ms.
  MeasuredPoint overlap{"overlap", {axis("bytes", std::int64_t{4'000'000})}, MeasuredOutcome::kMeasured, "", 1, {}, {}};
  overlap.results = {seconds(3e-3, "compute_alone_seconds"), seconds(4e-3, "compute_beside_seconds"),
                     seconds(1e-3, "message_alone_seconds"), seconds(2e-3, "message_beside_seconds")};
  file.points.push_back(overlap);
  file.points.push_back(point(
      "gemm", {axis("m", std::int64_t{64}), axis("n", std::int64_t{64}), axis("k", std::int64_t{64}), axis("dtype", "fp32")},
      1e-4));
  return file;
}

ImportedFit fit_of(const MeasurementFile& file) { return fit_imported({read_measured_points(file, "t.json")}, gpu_presets()); }

// Attention alone, as a measurement holds it that was interrupted early: there is no memory bandwidth to be a share of.
TEST(FitImported, SaysWhatACutMeasurementLacks) {
  MeasurementFile file = synthetic();
  std::erase_if(file.points, [](const MeasuredPoint& one) { return one.probe != "attention"; });
  ASSERT_GT(file.points.size(), 20u);
  const ImportedFit fit = fit_of(file);
  EXPECT_TRUE(fit.tables.attention.empty());
  ASSERT_FALSE(fit.left_out.empty());
  EXPECT_NE(fit.left_out.front().find("memory bandwidth was not measured"), std::string::npos) << fit.left_out.front();
}

TEST(FitImported, FindsAProcessorItWasMadeOf) {
  const ImportedFit fit = fit_of(synthetic());
  ASSERT_EQ(fit.tables.devices.size(), 1u);
  const FittedDevice& device = fit.tables.devices[0];
  EXPECT_EQ(device.gpu, "host Model T");
  EXPECT_EQ(device.generation, "host");
  const double peak = device.peaks.math[static_cast<std::size_t>(MathKind::kFp32)];
  EXPECT_LT(peak, 0.8 * kPeak);  // the best rate measured: the launch keeps it below 80 % of the machine's
  EXPECT_GT(peak, 0.75 * kPeak);
  ASSERT_EQ(fit.tables.attention.size(), 2u);
  for (const AttentionRow& row : fit.tables.attention) {
    EXPECT_EQ(row.library, AttentionLibrary::kOwn);
    EXPECT_EQ(row.math, MathKind::kFp32);
    EXPECT_LT(row.curve.quality.median_error, 0.03) << name_of(row.pass);
    EXPECT_NEAR(row.curve.quality.noise, 0.01 / 1.96, 1e-9);
    AttentionShape shape;  // between the measured lengths, a rectangle of another ratio
    shape.q_len = 384;
    shape.kv_len = 640;
    shape.pairs = 384.0 * 640;
    shape.causal = false;
    shape.heads = shape.kv_heads = 4;
    shape.head_dim = 64;
    shape.math = MathKind::kFp32;
    const bool backward = row.pass == AttentionPass::kBackward;
    EXPECT_NEAR(
        attention_seconds(row.curve, device.peaks, peak, shape, row.pass) / attention_truth(384, 640, 4, 64, false, backward), 1,
        0.04);
  }
  ASSERT_EQ(fit.tables.collective.size(), 1u);
  const CollectiveRow& messages = fit.tables.collective[0];
  EXPECT_EQ(messages.link, "shared memory");
  EXPECT_NEAR(collective_seconds(messages.curve, CollectiveKind::kSendRecv, messages.raw, 3e6), 2e-6 + 3e6 / kLink,
              0.02 * 3e6 / kLink);
  ASSERT_EQ(fit.tables.overlap.size(), 1u);
  // Together 2 ms (the message's time beside), of which 1 ms was lost: s = 2 / (2 - 1); the message took twice its time.
  EXPECT_NEAR(fit.tables.overlap[0].slowdown, 2, 1e-9);
  EXPECT_NEAR(fit.tables.overlap[0].message_slowdown, 2, 1e-9);
}

TEST(FitImported, SaysWhatHasTooFewPointsAndWhatIsNotCovered) {
  const ImportedFit fit = fit_of(synthetic());
  EXPECT_THAT(fit.left_out, Contains(HasSubstr("gemm host Model T fp32: 1 rows")));
  std::vector<std::string> gaps;
  for (const CalibrationGap& gap : fit.gaps) gaps.push_back(gap.surface + ": " + gap.reason);
  EXPECT_THAT(gaps, Contains(HasSubstr("attention head dimensions: 64 only")));
  EXPECT_THAT(gaps, Contains(HasSubstr("all_gather: no point")));
  EXPECT_THAT(gaps, Contains(HasSubstr("kernel launch: no point")));
}

TEST(FitImported, AnOutlierDoesNotBendTheCurve) {
  MeasurementFile file = synthetic();
  for (MeasuredPoint& one : file.points) {
    if (one.probe == "p2p" && *one.integer("bytes") == 65536) {
      one.results[0].median *= 5;
      one.results[0].high = 9 * one.results[0].median;  // and it says so
    }
  }
  const CollectiveRow row = fit_of(file).tables.collective.at(0);
  EXPECT_NEAR(collective_seconds(row.curve, CollectiveKind::kSendRecv, row.raw, 65536) / (2e-6 + 65536 / kLink), 1, 0.1);
}

TEST(FitImported, NvbandwidthGivesAShareOfPcie) {
  // H200: PCIe 5 of 63 GB/s by its preset; 55.4 measured.
  const std::string text = R"json({"nvbandwidth": {"version": "v0.8", "GPU Device list": ["0: NVIDIA H200 (0)"], "testcases": [
      {"name": "host_to_device_memcpy_ce", "status": "Passed", "bandwidth_matrix": [["55.4"]]}]}})json";
  const ImportedFit fit = fit_imported({import_text(text, "n.json").value()}, gpu_presets());
  ASSERT_EQ(fit.tables.link.size(), 1u);
  EXPECT_EQ(fit.tables.link[0].link, "pcie5");
  EXPECT_NEAR(fit.tables.link[0].curve.share, 55.4e9 / find_gpu("H200-SXM-141GB")->pcie.value(), 1e-6);
}

Calibration calibration() {
  const MeasurementFile file = synthetic();
  const ImportedFile imported = read_measured_points(file, "t.json");
  Calibration made = calibration_of(fit_imported({imported}, gpu_presets()), {imported}, "mine", "0.1", 1'700'000'000);
  return made;
}

TEST(CalibrationRecord, IsWrittenAndReadAlike) {
  const Calibration made = calibration();
  EXPECT_EQ(made.id.size(), 64u);
  EXPECT_THAT(made.groups, Contains("2 ranks on 1 node over shared memory"));
  const Outcome<Calibration> read = parse_calibration(calibration_toml(made), "file.toml");
  ASSERT_TRUE(read.ok()) << to_text(read.problems()[0]);
  EXPECT_EQ(*read, made);
}

TEST(CalibrationRecord, ItsIdIsItsContentNotItsNameOrTime) {
  Calibration one = calibration();
  Calibration other = one;
  other.name = "yours";
  other.created_unix_seconds = 5;
  EXPECT_EQ(calibration_id(other), one.id);
  other.machine.driver = "550";
  EXPECT_NE(calibration_id(other), one.id);
}

TEST(CalibrationRecord, AMissingEndOfLineIsNoOtherContent) {
  const Calibration read = parse_calibration("version = \"a\"", "rates.toml").value();
  EXPECT_EQ(parse_calibration(calibration_toml(read), "rates.toml")->id, read.id);
}

TEST(CalibrationRecord, NewerBrokenAndForeignFilesAreNamed) {
  std::string text = calibration_toml(calibration());
  text.replace(text.find("format_version = 1"), 18, "format_version = 9");
  EXPECT_EQ(parse_calibration(text, "f").problems().at(0).code, "calibration.newer");
  EXPECT_EQ(parse_calibration("version = ", "f").problems().at(0).code, "calibration.syntax");
  EXPECT_FALSE(parse_calibration("a = 1\n", "f").ok());
  const Outcome<Calibration> plain = parse_calibration(std::string(embedded_file("presets/rates.toml")), "x/rates.toml");
  ASSERT_TRUE(plain.ok());
  EXPECT_EQ(plain->name, "rates.toml");
}

TEST(CalibrationRecord, RowsOfItsSectionDoNotStandAmongTheRates) {
  // Written again they would be there twice.
  const Calibration made = parse_calibration("version = \"a\"\n", "rates.toml").value();
  const std::string text = calibration_toml(made);
  ASSERT_TRUE(parse_calibration(text, "f").ok());
  const Outcome<Calibration> mixed = parse_calibration("[[calibration.source]]\npath = \"a\"\n" + text, "f");
  ASSERT_FALSE(mixed.ok());
  EXPECT_EQ(mixed.problems().front().code, "calibration.content");
}

TEST(CalibrationRecord, TheDefaultsAreOneMarkedAssumed) {
  const Calibration defaults = default_calibration();
  EXPECT_TRUE(defaults.assumed);
  EXPECT_TRUE(tables_of(defaults).ok());
}

TEST(CalibrationRecord, SoftwareDiffersOnlyWhereBothSay) {
  MeasuredMachine then, now;
  then.driver = "550.54";
  then.nccl = "2.26.5";
  now.driver = "570.10";
  now.cudnn = "9.19";
  EXPECT_THAT(software_differences(then, now), testing::ElementsAre("driver: 550.54 when it was measured, 570.10 here"));
}

/// A file of the synthetic machine in which the messages of 64 and 256 KiB took eight times as long, and its calibration.
struct Spoiled {
  std::filesystem::path path = std::filesystem::temp_directory_path() / ("cpfit_refit_" + std::to_string(getpid()) + ".json");
  Calibration before;
  std::vector<ExcludedPoint> slow;
  Spoiled() {
    MeasurementFile file = synthetic();
    std::int64_t ordinal = 0;
    for (MeasuredPoint& one : file.points) {
      ++ordinal;
      const auto bytes = one.integer("bytes");
      if (one.probe != "p2p" || (bytes != 65536 && bytes != 262144)) continue;
      one.results[0] = seconds(8 * one.results[0].median);
      slow.push_back({"", ordinal, "send_recv of " + std::to_string(*bytes) + " bytes on 2 ranks over shared memory",
                      "the machine was not quiet"});
    }
    write_measurement(file, path.string());
    const ImportedFile imported = import_file(path.string()).value();
    for (ExcludedPoint& one : slow) one.source = imported.sha256;
    before = calibration_of(fit_imported({imported}, gpu_presets()), {imported}, "mine", "0.1", 1'700'000'000);
  }
  ~Spoiled() { std::filesystem::remove(path); }
};

TEST(Refit, WithoutTwoSlowMessagesIsTheMachineAndSaysWhatItLeftOut) {
  const Spoiled spoiled;
  const Outcome<Refit> made = refit_without(spoiled.before, spoiled.slow, "0.2", 1'800'000'000);
  ASSERT_TRUE(made.ok()) << to_text(made.problems()[0]);
  const Calibration& after = made->calibration;
  const RateTables old_tables = tables_of(spoiled.before).value(), tables = tables_of(after).value();
  const CollectiveRow &was = old_tables.collective.at(0), &is = tables.collective.at(0);
  // 4 KiB to 16 MiB by twos are 13 sizes, less two.
  EXPECT_EQ(was.curve.quality.rows, 13);
  EXPECT_EQ(is.curve.quality.rows, 11);
  // Of 13 errors the 90 % quantile lies between the second and the third largest: one of the two that are off by 7/8.
  EXPECT_GT(was.curve.quality.p90_error, 0.3);
  EXPECT_LT(is.curve.quality.p90_error, 0.05);
  for (const double bytes : {65536.0, 262144.0}) {
    EXPECT_NEAR(collective_seconds(is.curve, CollectiveKind::kSendRecv, is.raw, bytes) / (2e-6 + bytes / kLink), 1, 0.05);
  }
  EXPECT_EQ(tables.attention.size(), old_tables.attention.size());
  // A version of its own, of the same name, that names both with why.
  EXPECT_EQ(after.name, spoiled.before.name);
  EXPECT_NE(after.id, spoiled.before.id);
  EXPECT_EQ(after.excluded, spoiled.slow);
  EXPECT_EQ(after.sources[0].points, spoiled.before.sources[0].points - 2);
  EXPECT_EQ(after.sources[0].left_out, spoiled.before.sources[0].left_out + 2);
  const Outcome<Calibration> read = parse_calibration(calibration_toml(after), "x.toml");
  ASSERT_TRUE(read.ok()) << to_text(read.problems()[0]);
  EXPECT_EQ(*read, after);
  // Nothing left out: the fit of before, figure for figure.
  const Calibration same = refit_without(after, {}, "0.1", 1)->calibration;
  EXPECT_EQ(same.id, spoiled.before.id);
}

TEST(Refit, RefusesPointsThatAreNotThereAndFilesThatChanged) {
  const Spoiled spoiled;
  const auto code = [&](std::vector<ExcludedPoint> excluded) {
    const Outcome<Refit> made = refit_without(spoiled.before, excluded, "0.2", 1);
    return made.ok() ? std::string("fitted") : made.problems()[0].code;
  };
  std::vector<ExcludedPoint> wrong = {spoiled.slow[0]};
  wrong[0].line += 1;
  EXPECT_EQ(code(wrong), "exclude.unknown");
  EXPECT_EQ(code({spoiled.slow[0], spoiled.slow[0]}), "exclude.unknown");  // the second time it is gone
  wrong = {spoiled.slow[0]};
  wrong[0].reason = " ";
  EXPECT_EQ(code(wrong), "exclude.reason");
  std::ofstream(spoiled.path, std::ios::app) << "\n";
  EXPECT_EQ(code({spoiled.slow[0]}), "refit.source");
}

TEST(Overlay, TakesOwnRowsAndLeavesOthersAlone) {
  const RateTables base = parse_rate_tables(embedded_file("presets/rates.toml")).value();
  RateTables measured;
  measured.version = "mine";
  GemmRow row{"H100-SXM5-80GB", MathKind::kBf16, {}};
  row.curve.peak_share = 0.5;
  measured.gemm = {row};
  EXPECT_TRUE(empty(rows_for(measured, find_gpu("A100-SXM4-80GB").value())));  // another GPU: nothing is left
  const Gpu h100 = find_gpu("H100-SXM5-80GB").value();
  const RateTables over = overlaid(base, rows_for(measured, h100));
  EXPECT_EQ(over.gemm.size(), base.gemm.size());  // one row replaced
  EXPECT_EQ(assemble_gpu_rates(over, h100).gemm[0].curve.peak_share, 0.5);
  EXPECT_NE(assemble_gpu_rates(base, h100).gemm[0].curve.peak_share, 0.5);
  EXPECT_EQ(over.version, "mine over " + base.version);
}

TEST(Overlay, AProcessorNeverStandsInForAGpu) {
  RateTables base = parse_rate_tables(embedded_file("presets/rates.toml")).value();
  const RateTables over = overlaid(base, fit_of(synthetic()).tables);
  for (const Gpu& gpu : gpu_presets()) {
    const GpuRates rates = assemble_gpu_rates(over, gpu), before = assemble_gpu_rates(base, gpu);
    for (std::size_t i = 0; i < rates.attention.size(); ++i) {
      if (i / kPasses % kLibraries == static_cast<std::size_t>(AttentionLibrary::kOwn)) continue;
      EXPECT_EQ(rates.attention[i].curve.peak_share, before.attention[i].curve.peak_share) << gpu.name;
    }
    EXPECT_EQ(rates.memory.curve.hbm_share, before.memory.curve.hbm_share) << gpu.name;
  }
}

}  // namespace
}  // namespace cpfit
