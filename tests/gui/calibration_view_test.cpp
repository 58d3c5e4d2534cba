// Calibration: curves agree with the rates that predictions use, points come back from unchanged files, validations are scored
// by hand, and the view by keyboard and mouse.
#include <gmock/gmock.h>
#include <qcustomplot.h>

#include <QAbstractItemModelTester>
#include <QComboBox>
#include <QFile>
#include <QLineEdit>
#include <QMenu>
#include <QPushButton>
#include <QTabWidget>
#include <QTableView>
#include <QTableWidget>
#include <QTemporaryDir>
#include <QTest>

#include "calibrate/fit/fit_imported.h"
#include "db/store/calibration_store.h"
#include "db/store/validation_store.h"
#include "example_study.h"
#include "gui/calibration/calibration_view.h"
#include "gui/calibration/refit_panel.h"
#include "gui/calibration/surface_curve.h"
#include "gui/calibration/surface_table.h"
#include "gui/study/live_estimate.h"
#include "model/cluster/gpu.h"

namespace cpfit::gui {
namespace {

using testing::ElementsAre;

TEST(SurfacePlaces, FollowTheOrderOfTheTables) {
  const auto known = known_calibration(default_calibration(), false);
  ASSERT_GT(known->surfaces.size(), 20u);
  EXPECT_TRUE(known->calibration.assumed);
  for (std::size_t i = 0; i < known->surfaces.size(); ++i) {
    const SurfacePlace place = surface_place(known->tables, i);
    const std::string& name = known->surfaces[i].name;
    switch (place.kind) {
      case SurfaceKind::kGemm:
        EXPECT_EQ(name.rfind("gemm", 0), 0u);
        EXPECT_EQ(known->surfaces[i].device, known->tables.gemm[place.row].gpu);
        break;
      case SurfaceKind::kAttention:
        EXPECT_EQ(name.rfind("attention", 0), 0u);
        break;
      case SurfaceKind::kCollective:
        EXPECT_EQ(known->surfaces[i].device, known->tables.collective[place.row].link);
        break;
      default:
        break;
    }
  }
}

TEST(RateCurves, EverySurfaceHasOneOrSaysWhyNot) {
  const auto known = known_calibration(default_calibration(), false);
  std::size_t drawn = 0;
  for (std::size_t i = 0; i < known->surfaces.size(); ++i) {
    const RateCurve curve = rate_curve(*known, i);
    EXPECT_NE(curve.x.empty(), curve.why_none.isEmpty()) << known->surfaces[i].device << " " << known->surfaces[i].name;
    EXPECT_EQ(curve.x.size(), curve.y.size());
    for (std::size_t k = 0; k < curve.y.size(); ++k) {
      EXPECT_GT(curve.y[k], 0.0);
      if (k > 0) {
        EXPECT_GT(curve.x[k], curve.x[k - 1]);
      }
    }
    drawn += curve.x.empty() ? 0 : 1;
  }
  EXPECT_GT(drawn, known->surfaces.size() / 2);
  EXPECT_FALSE(rate_curve(*known, known->surfaces.size()).why_none.isEmpty());
}

TEST(RateCurves, AreThoseThatPredictionsUse) {
  const auto known = known_calibration(default_calibration(), false);
  const RateSet rates = RateSet::defaults();
  for (std::size_t i = 0; i < known->tables.gemm.size(); ++i) {
    const GemmRow& row = known->tables.gemm[i];
    if (row.gpu != "H100-SXM5-80GB" || row.math != MathKind::kBf16) continue;
    const RateCurve curve = rate_curve(*known, i);
    ASSERT_FALSE(curve.x.empty());
    const double m = curve.x.back();
    // "n 4,096, k 4,096": read back what the curve holds.
    const QString held = QString(curve.held).remove(QLatin1Char(','));
    const auto n = held.section(' ', 1, 1).toLongLong(), k = held.section(' ', 3, 3).toLongLong();
    const Rated rated = gemm_time(rates.of(find_gpu(row.gpu).value()), {static_cast<std::int64_t>(m), n, k}, MathKind::kBf16);
    EXPECT_NEAR(curve.y.back(), 2.0 * m * static_cast<double>(n) * static_cast<double>(k) / 1e12 / rated.time.value(),
                1e-6 * curve.y.back());
  }
}

TEST(CalibrationTexts, AgeEvidenceAndLinks) {
  EXPECT_EQ(age_text(0, 1000), "–");
  EXPECT_EQ(age_text(1'000'000, 1'000'000 + 3600), "today");
  EXPECT_EQ(age_text(1'000'000, 1'000'000 + 86400), "1 day");
  EXPECT_EQ(age_text(1'000'000, 1'000'000 + 10 * 86400), "10 days");
  EXPECT_EQ(age_text(1'000'000, 1'000'000 + 90 * 86400), "3 months");
  EXPECT_EQ(evidence_text(Evidence::kAssumed), "○ assumed");
  EXPECT_DOUBLE_EQ(nominal_rate("nvlink4"), find_gpu("H100-SXM5-80GB")->scale_up.value());
  EXPECT_DOUBLE_EQ(nominal_rate("string and cans"), 0.0);
  EXPECT_DOUBLE_EQ(nominal_rate(""), 0.0);
}

StoredValidation validation(const char* path, std::vector<ValidationRow> rows) {
  StoredValidation stored;
  stored.result.path = path;
  stored.result.rows = std::move(rows);
  return stored;
}

TEST(Agreements, AreScoredByHandAndTheYoungestOfATableCounts) {
  // Off by +10 %, -20 %, 0 %: median of the sizes 10 %, worst 20 %, median of the signs 0; two of three inside their interval.
  const std::vector<StoredValidation> all = {
      validation("a/steps.csv", {{2, "x", Metric::kStepSeconds, 10, 11, 9, 12, 0.1, "g", ""},
                                 {3, "y", Metric::kStepSeconds, 10, 8, 7, 9, -0.2, "g", "vpp"},
                                 {4, "z", Metric::kMfu, 0.5, 0.5, 0.4, 0.6, 0, "g", ""},
                                 {5, "none", Metric::kStepSeconds, 0, 8, 7, 9, 0, "g", ""}}),
      validation("b/more.csv", {{2, "w", Metric::kStepSeconds, 5, 5, 4, 6, 0, "h", ""}}),
      validation("a/steps.csv", {{2, "older", Metric::kStepSeconds, 1, 2, 0, 3, 1.0, "g", ""}})};
  const std::vector<Agreement> found = agreements(all);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].metric, Metric::kStepSeconds);
  ASSERT_EQ(found[0].points.size(), 3u);
  EXPECT_NEAR(found[0].median_error, 0.1, 1e-12);
  EXPECT_NEAR(found[0].worst_error, 0.2, 1e-12);
  EXPECT_NEAR(found[0].bias, 0.0, 1e-12);
  EXPECT_NEAR(found[0].coverage, 2.0 / 3.0, 1e-12);
  EXPECT_TRUE(found[0].points[1].searched);
  EXPECT_EQ(found[0].points[0].file, "steps.csv");
  EXPECT_TRUE(agreements({}).empty());
}

TEST(SurfaceModel, ObeysTheRulesOfModelsAndFilters) {
  SurfaceTable table;
  const QAbstractItemModelTester tester(&table, QAbstractItemModelTester::FailureReportingMode::Fatal);
  const auto known = known_calibration(default_calibration(), false);
  table.show_surfaces(known, "");
  EXPECT_EQ(table.rowCount(), static_cast<int>(known->surfaces.size()));
  table.show_surfaces(known, "h100 ATTENTION");
  ASSERT_GT(table.rowCount(), 0);
  for (int row = 0; row < table.rowCount(); ++row) {
    EXPECT_TRUE(table.index(row, 0).data().toString().contains("H100"));
    EXPECT_TRUE(table.index(row, 1).data().toString().startsWith("attention"));
    EXPECT_EQ(table.row_of(table.surface_at(row)), row);
  }
  table.show_surfaces(nullptr, "");
  EXPECT_EQ(table.rowCount(), 0);
}

/// A host whose messages take 2 us and their bytes at 4 GB/s, spoiled sizes eight times that; its file.
MeasurementFile messages(const std::vector<std::int64_t>& spoiled) {
  MeasurementFile file;
  file.backend = "host";
  file.ranks = file.ranks_per_host = 2;
  file.machine.cpu = "Model T";
  file.machine.link = "shared memory";
  for (std::int64_t bytes = 4096; bytes <= 16 << 20; bytes *= 2) {
    const double slow = std::ranges::find(spoiled, bytes) == spoiled.end() ? 1.0 : 8.0;
    const double time = slow * (2e-6 + static_cast<double>(bytes) / 4e9);
    file.points.push_back({"p2p",
                           {{"bytes", AxisValue(bytes)},
                            {"pair", AxisValue(std::string("0-1"))},
                            {"direction", AxisValue(std::string("both"))},
                            {"link", AxisValue(std::string("shared memory"))}},
                           MeasuredOutcome::kMeasured,
                           "",
                           1,
                           {{"seconds", time, 0.99 * time, 1.01 * time, 0.01 * time, 20, 0}},
                           {}});
  }
  return file;
}

class Trust : public testing::Test {
 protected:
  void SetUp() override {
    view.resize(1000, 640);
    view.show();
  }
  void settle() {
    ASSERT_TRUE(QTest::qWaitFor(
        [&] { return std::ranges::none_of(jobs.rows(), [](const JobRow& row) { return row.state == JobState::kRunning; }); },
        60'000));
  }
  QString path(const char* name) const { return folder.filePath(name); }
  /// A database with one calibration of messages.json and one validation.
  void fill() {
    write_measurement(messages(spoiled), path("messages.json").toStdString());
    const Outcome<ImportedFile> imported = import_file(path("messages.json").toStdString());
    ASSERT_TRUE(imported.ok());
    const Calibration made =
        calibration_of(fit_imported({*imported}, gpu_presets()), {*imported}, "my host", "0.1", 1'700'000'000);
    Store store = open_store(path("trust.sqlite").toStdString());
    (void)save_calibration(store, made, surfaces_of(tables_of(made).value()));
    ValidationResult result;
    result.path = "steps.csv";
    result.rows = {{2, "x", Metric::kStepSeconds, 10, 11, 9, 12, 0.1, "g", ""},
                   {3, "y", Metric::kStepSeconds, 20, 19, 17, 22, -0.05, "g", ""}};
    (void)save_validation(store, result, "0.1", "r");
  }
  std::vector<std::int64_t> spoiled;
  QTemporaryDir folder;
  Jobs jobs;
  StudyDocument document;
  OpenedDatabase database{jobs};
  CalibrationView view{document, jobs, database};
};

TEST_F(Trust, TheDefaultsAreThereAndMarkedAssumed) {
  EXPECT_EQ(view.calibrations()->rowCount(), 1);
  EXPECT_TRUE(view.calibrations()->item(0, 0)->text().startsWith("○"));
  EXPECT_EQ(view.command(), "cpfit calibrate show defaults");
  EXPECT_TRUE(view.csv().startsWith("device,surface,evidence"));
  view.tabs()->setCurrentIndex(1);
  EXPECT_TRUE(view.summary().startsWith("No validation"));
  EXPECT_TRUE(view.csv().isEmpty());
}

TEST_F(Trust, AStudyPutsItsOwnGpuInFront) {
  ASSERT_TRUE(document.open_text(example_toml(), "test.toml").empty());
  EXPECT_TRUE(view.summary().startsWith("H100-SXM5-80GB, attention")) << view.summary().toStdString();
  view.surfaces()->setFocus();
  const QString before = view.summary();
  QTest::keyClick(view.surfaces(), Qt::Key_Down);
  EXPECT_NE(view.summary(), before);
  EXPECT_GE(view.curve_plot()->graphCount(), 3) << "band and curve";
  QTest::keyClicks(view.filter(), "nvlink4");
  EXPECT_TRUE(view.summary().startsWith("nvlink4")) << view.summary().toStdString();
}

TEST_F(Trust, PointsOfAnUnchangedFileComeBackWithResiduals) {
  fill();
  database.open(path("trust.sqlite"));
  settle();
  settle();
  ASSERT_EQ(view.calibrations()->rowCount(), 2);
  ASSERT_TRUE(view.shown());
  EXPECT_EQ(view.shown()->calibration.name, "my host");
  ASSERT_EQ(view.shown()->points.size(), 13u) << "4 KiB to 16 MiB by twos";
  for (const RatePoint& point : view.shown()->points) EXPECT_LT(std::abs(point.residual), 0.1);
  EXPECT_EQ(view.curve_plot()->axisRectCount(), 2) << "residuals beneath the curve";
  EXPECT_TRUE(view.command().contains("--db"));
}

// Groups of two with their members apart get half the rate: their points lie on their own curve, not at half of the usual one.
TEST_F(Trust, PointsOfStridedGroupsLieOnTheirOwnCurve) {
  MeasurementFile file = messages({});
  file.points.clear();
  file.ranks = file.ranks_per_host = 4;
  for (const char* stride : {"consecutive", "strided"}) {
    for (std::int64_t bytes = 4096; bytes <= 16 << 20; bytes *= 4) {
      const double rate = std::string(stride) == "strided" ? 2e9 : 4e9;
      const double time = 5e-6 + static_cast<double>(bytes) / 2 / rate;  // half of what is gathered crosses
      file.points.push_back({"collective",
                             {{"kind", AxisValue(std::string("all_gather"))},
                              {"bytes", AxisValue(bytes)},
                              {"ranks", AxisValue(std::int64_t{2})},
                              {"stride", AxisValue(std::string(stride))}},
                             MeasuredOutcome::kMeasured,
                             "",
                             1,
                             {{"seconds", time, time, time, 0.01 * time, 20, 0}},
                             {}});
    }
  }
  write_measurement(file, path("groups.json").toStdString());
  const Outcome<ImportedFile> imported = import_file(path("groups.json").toStdString());
  ASSERT_TRUE(imported.ok());
  const auto known =
      known_calibration(calibration_of(fit_imported({*imported}, gpu_presets()), {*imported}, "groups", "0.1", 1), true);
  std::map<CollectiveForm, int> points;
  for (const RatePoint& point : known->points) {
    const SurfacePlace place = surface_place(known->tables, point.surface);
    ASSERT_EQ(place.kind, SurfaceKind::kCollective);
    ++points[known->tables.collective.at(place.row).form];
    EXPECT_LT(std::abs(point.residual), 0.05) << point.point << ": on the other curve it would be off by 2";
  }
  EXPECT_EQ(points[CollectiveForm::kUsual], 7);
  EXPECT_EQ(points[CollectiveForm::kStrided], 7);
}

std::size_t point_of(const KnownCalibration& known, double bytes) {
  for (std::size_t i = 0; i < known.points.size(); ++i) {
    if (known.points[i].x == bytes) return i;
  }
  return known.points.size();
}

TEST_F(Trust, PointsAreLeftOutByKeyAndMenuAndFittedAgainBesideTheOldFit) {
  // Two sizes took eight times as long: of 13 hold-out errors those at 7/8 are the largest two.
  spoiled = {65536, 262144};
  fill();
  database.open(path("trust.sqlite"));
  settle();
  settle();
  ASSERT_EQ(view.shown()->points.size(), 13u);
  const KnownCalibration before = *view.shown();
  const std::size_t first = point_of(before, 65536), second = point_of(before, 262144);
  RefitPanel& panel = *view.refit();
  ASSERT_TRUE(panel.isVisible());
  EXPECT_FALSE(panel.fit_button()->isEnabled()) << "nothing changed yet";
  QCustomPlot* plot = view.curve_plot();
  plot->replot();
  // By mouse and key: a click chooses, X without a reason asks for one, Enter in its field leaves the point out.
  QTest::mouseClick(plot, Qt::LeftButton, Qt::NoModifier, view.curve()->place_of(first).toPoint());
  ASSERT_EQ(panel.chosen(), first);
  QTest::keyClick(plot, Qt::Key_X);
  EXPECT_TRUE(panel.planned().empty());
  EXPECT_TRUE(panel.reason()->hasFocus());
  QTest::keyClicks(panel.reason()->lineEdit(), "other work beside");
  QTest::keyClick(panel.reason()->lineEdit(), Qt::Key_Return);
  ASSERT_EQ(panel.planned().size(), 1u);
  EXPECT_EQ(panel.planned()[0].reason, "other work beside");
  EXPECT_TRUE(plot->hasFocus());
  // The next by arrows (128 KiB, 256 KiB) and from the point's menu.
  QTest::keyClick(plot, Qt::Key_Right);
  QTest::keyClick(plot, Qt::Key_Right);
  ASSERT_EQ(panel.chosen(), second);
  QAction* throttled = nullptr;
  const auto menu = panel.menu_of(second);
  for (QAction* action : menu->actions()) {
    if (action->text().contains("throttled")) throttled = action;
  }
  ASSERT_NE(throttled, nullptr);
  throttled->trigger();
  ASSERT_EQ(panel.planned().size(), 2u);
  EXPECT_EQ(panel.planned()[1].reason, "clocks were throttled");
  // X takes it back, and X again leaves it out for the reason that stands in the field.
  QTest::keyClick(plot, Qt::Key_X);
  EXPECT_EQ(panel.planned().size(), 1u);
  QTest::keyClick(plot, Qt::Key_X);
  ASSERT_EQ(panel.planned().size(), 2u);
  // Left out is hollow: a graph of its own, of two points without a brush.
  QCPGraph* hollow = nullptr;
  for (int i = 0; i < plot->graphCount(); ++i) {
    if (plot->graph(i)->name() == "left out of the fit" && plot->graph(i)->keyAxis() == plot->xAxis) hollow = plot->graph(i);
  }
  ASSERT_NE(hollow, nullptr);
  EXPECT_EQ(hollow->dataCount(), 2);
  EXPECT_EQ(hollow->scatterStyle().brush().style(), Qt::NoBrush);

  ASSERT_TRUE(panel.fit_button()->isEnabled());
  QTest::mouseClick(panel.fit_button(), Qt::LeftButton);
  settle();
  ASSERT_TRUE(panel.refit()) << panel.sentence().toStdString();
  EXPECT_EQ(view.shown()->calibration.id, before.calibration.id) << "the old fit stays until the new one is kept";
  EXPECT_TRUE(panel.sentence().contains("13 → 11 points")) << panel.sentence().toStdString();
  const auto changes = surface_changes(before.surfaces, panel.refit()->surfaces);
  ASSERT_EQ(changes.size(), 1u);
  EXPECT_GT(changes[0].before->p90_error, 0.3);
  EXPECT_LT(changes[0].after->p90_error, 0.05);
  bool beside = false;
  for (int i = 0; i < plot->graphCount(); ++i) beside = beside || plot->graph(i)->name() == "fitted again";
  EXPECT_TRUE(beside);

  QTest::mouseClick(panel.store_button(), Qt::LeftButton);
  settle();
  settle();
  settle();
  ASSERT_EQ(view.calibrations()->rowCount(), 3) << "defaults, the fit before and the new version";
  const std::vector<Calibration> stored =
      list_calibrations(open_store(path("trust.sqlite").toStdString(), {.access = StoreAccess::kRead}));
  ASSERT_EQ(stored.size(), 2u);
  EXPECT_EQ(stored[0].name, "my host");
  ASSERT_EQ(stored[0].excluded.size(), 2u);
  EXPECT_EQ(stored[0].excluded[0].reason, "other work beside");
  EXPECT_TRUE(stored[1].excluded.empty());
  // Looked at again, the version says what it left out, and draws it hollow.
  ASSERT_EQ(view.shown()->calibration.id, stored[0].id);
  EXPECT_TRUE(provenance_html(*view.shown()).contains("other work beside"));
  ASSERT_EQ(view.shown()->points.size(), 13u);
  EXPECT_EQ(std::ranges::count(view.shown()->points, true, &RatePoint::excluded), 2);
  EXPECT_FALSE(panel.fit_button()->isEnabled());
}

TEST(Exclusions, StepFromLeftToRightAndStopAtTheEnds) {
  EXPECT_EQ(stepped_point({}, std::nullopt, 1), std::nullopt);
  EXPECT_EQ(stepped_point({4, 2, 7}, std::nullopt, 1), 4u);
  EXPECT_EQ(stepped_point({4, 2, 7}, std::nullopt, -1), 7u);
  EXPECT_EQ(stepped_point({4, 2, 7}, 4u, 1), 2u);
  EXPECT_EQ(stepped_point({4, 2, 7}, 7u, 1), 7u);
  EXPECT_EQ(stepped_point({4, 2, 7}, 4u, -1), 4u);
}

TEST_F(Trust, AChangedFileGivesNoPointsAndIsSaid) {
  fill();
  QFile file(path("messages.json"));
  ASSERT_TRUE(file.open(QIODevice::Append));
  file.write("\n");
  file.close();
  const Store store = open_store(path("trust.sqlite").toStdString(), {.access = StoreAccess::kRead});
  const auto known = known_calibration(list_calibrations(store).front(), true);
  EXPECT_TRUE(known->points.empty());
  ASSERT_EQ(known->remarks.size(), 1);
  EXPECT_TRUE(known->remarks[0].contains("changed")) << known->remarks[0].toStdString();
  EXPECT_TRUE(provenance_html(*known).contains("messages.json"));
}

TEST_F(Trust, PredictedStandsAgainstMeasured) {
  fill();
  database.open(path("trust.sqlite"));
  settle();
  view.tabs()->setCurrentIndex(1);
  EXPECT_EQ(view.metrics()->count(), 1);
  // 10 % and 5 % off: the median of two is their mean.
  EXPECT_TRUE(view.summary().startsWith("2 rows: half are within 7.5 %")) << view.summary().toStdString();
  QCustomPlot* plot = view.agreement_plot();
  plot->replot();
  const QPointF at(plot->xAxis->coordToPixel(10.0), plot->yAxis->coordToPixel(11.0));
  ASSERT_NE(view.agreement_at(at), nullptr);
  EXPECT_EQ(view.agreement_at(at)->label, "x");
  EXPECT_EQ(view.agreement_at(at + QPointF(200, 200)), nullptr);
  EXPECT_EQ(view.csv().count('\n'), 3);
}

}  // namespace
}  // namespace cpfit::gui
