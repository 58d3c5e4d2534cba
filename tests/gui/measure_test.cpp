// Measuring this machine: progress lines and command lines by tables, a child that behaves, fails, dies, hangs or is not there,
// the fit of what it measured, and rates taken for the study, by keyboard and mouse.
#include <gmock/gmock.h>

#include <QComboBox>
#include <QFile>
#include <QLabel>
#include <QLineEdit>
#include <QPushButton>
#include <QTabWidget>
#include <QTableWidget>
#include <QTemporaryDir>
#include <QTest>

#include "db/store/calibration_store.h"
#include "example_study.h"
#include "gui/calibration/calibration_view.h"
#include "gui/calibration/measure_panel.h"
#include "gui/look/figures.h"
#include "gui/study/live_estimate.h"
#include "model/record/measurement.h"

namespace cpfit::gui {
namespace {

TEST(BenchLines, AreReadAndEverythingElseIsLeft) {
  const auto line = parse_progress(R"({"probe":"gemm","done":3,"total":12,"seconds_left":4.5,"outcome":"running"})");
  ASSERT_TRUE(line);
  EXPECT_EQ(line->probe, "gemm");
  EXPECT_EQ(line->done, 3);
  EXPECT_EQ(line->total, 12);
  EXPECT_DOUBLE_EQ(line->seconds_left, 4.5);
  const auto failed =
      parse_progress(R"({"probe":"p2p","done":0,"total":0,"seconds_left":null,"outcome":"failed","reason":"no peer"})");
  ASSERT_TRUE(failed);
  EXPECT_LT(failed->seconds_left, 0.0);
  EXPECT_EQ(failed->reason, "no peer");
  for (const char* other : {"", "{", "[1]", "warming up", R"({"probe":3,"outcome":"done"})", R"({"probe":"gemm"})", "\xff\xfe"})
    EXPECT_FALSE(parse_progress(other)) << other;
}

TEST(BenchCommands, AreThoseAPersonWouldType) {
  BenchCommand command{"/opt/cpfit-bench", "host", 1, true, 10, "/tmp/my file.json"};
  EXPECT_EQ(line_of(command), "/opt/cpfit-bench --backend host --out '/tmp/my file.json' --smoke");
  command.smoke = false;
  command.ranks = 4;
  command.out = "a'b.json";
  EXPECT_EQ(line_of(command), "mpirun -n 4 --oversubscribe /opt/cpfit-bench --backend host --out 'a'\\''b.json' --budget 10");
}

/// Messages of 2 us and 300 GB/s over an H100's own link: a file that speaks of the examples' cluster.
MeasurementFile nvlink_messages() {
  MeasurementFile file;
  file.backend = "cuda";
  file.ranks = file.ranks_per_host = 2;
  file.machine.gpu = "NVIDIA H100 80GB HBM3";
  file.machine.link = "nvlink4";
  for (std::int64_t bytes = 4096; bytes <= 64 << 20; bytes *= 2) {
    const double time = 2e-6 + static_cast<double>(bytes) / 300e9;
    file.points.push_back({"p2p",
                           {{"bytes", AxisValue(bytes)},
                            {"pair", AxisValue(std::string("ring"))},
                            {"direction", AxisValue(std::string("both"))},
                            {"link", AxisValue(std::string("nvlink4"))}},
                           MeasuredOutcome::kMeasured,
                           "",
                           1,
                           {{"seconds", time, 0.99 * time, 1.01 * time, 0.01 * time, 20, 0}},
                           {}});
  }
  return file;
}

class Measuring : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(document.open_text(example_toml("16k"), "test.toml").empty());
    view.resize(1000, 640);
    view.show();
    view.tabs()->setCurrentWidget(&panel);
    write_measurement(nvlink_messages(), to_std(path("ready.json")));
    panel.amount()->setCurrentIndex(1);  // in full
    panel.out()->setText(path("out.json"));
  }
  QString path(const char* name) const { return folder.filePath(name); }
  /// A program that behaves as the shell lines say. $out is the file it is to write.
  QString program(const QByteArray& lines) {
    const QString script = path("bench.sh");
    QFile file(script);
    EXPECT_TRUE(file.open(QIODevice::WriteOnly));
    file.write("#!/bin/sh\nout=\"$4\"\nready=\"" + path("ready.json").toUtf8() + "\"\n" + lines + "\n");
    file.setPermissions(QFileDevice::ReadOwner | QFileDevice::WriteOwner | QFileDevice::ExeOwner);
    return script;
  }
  void begin(const QString& program) {
    panel.program()->setText(program);
    ASSERT_TRUE(panel.start_button()->isEnabled()) << panel.start_button()->toolTip().toStdString();
    QTest::mouseClick(panel.start_button(), Qt::LeftButton);
  }
  void ended() {
    ASSERT_TRUE(QTest::qWaitFor([&] { return !panel.run().is_running() && !jobs.is_running("fit") && !jobs.is_running("store"); },
                                20'000));
  }
  std::string said() const { return panel.sentence()->text().toStdString(); }
  QTemporaryDir folder;
  Jobs jobs;
  StudyDocument document;
  LiveEstimate live{document, jobs, example_rates()};
  OpenedDatabase database{jobs};
  CalibrationView view{document, jobs, database};
  MeasurePanel& panel{*view.measure()};
};

const QByteArray kLine = R"(echo '{"probe":"p2p","done":5,"total":15,"seconds_left":2.0,"outcome":"running"}')";

TEST_F(Measuring, WhatWasMeasuredIsFittedAndUsedForTheStudyInOneUndoStep) {
  begin(program(kLine + "\nsleep 0.2\ncp \"$ready\" \"$out\"\nexit 0"));
  ASSERT_TRUE(QTest::qWaitFor([&] { return panel.run().progress().has_value(); }, 10'000));
  EXPECT_NE(said().find("p2p: 5 of 15 points, about 2 s left"), std::string::npos) << said();
  EXPECT_FALSE(panel.start_button()->isEnabled());
  ended();
  EXPECT_FALSE(panel.run().went_wrong()) << said();
  EXPECT_EQ(view.tabs()->currentIndex(), 0) << "the curves are shown";
  ASSERT_EQ(view.calibrations()->rowCount(), 2);
  EXPECT_EQ(view.calibrations()->currentRow(), 1);
  EXPECT_TRUE(QFile::exists(path("out.json.toml"))) << "for command lines";
  ASSERT_TRUE(view.use_button()->isEnabled());
  const auto defaults = live.rates();
  QTest::keyClick(view.use_button(), Qt::Key_Space);
  ASSERT_NE(document.design().calibration, nullptr);
  EXPECT_NE(live.rates(), defaults);
  EXPECT_TRUE(view.calibrations()->item(1, 0)->font().bold());
  EXPECT_EQ(view.use_button()->text(), "Used for this study");
  EXPECT_TRUE(simulate_command("test.toml", document.design()).contains("--calibration \"" + path("out.json.toml") + "\""));
  EXPECT_TRUE(view.command().contains("out.json.toml"));
  document.undo().undo();
  EXPECT_EQ(document.design().calibration, nullptr);
  EXPECT_EQ(live.rates(), defaults);
  EXPECT_TRUE(view.calibrations()->item(0, 0)->font().bold());
}

TEST_F(Measuring, StopKeepsWhatIsThereAndFitsIt) {
  begin(program("trap 'cp \"$ready\" \"$out\"; exit 1' TERM\n" + kLine + "\nwhile :; do sleep 0.05; done"));
  ASSERT_TRUE(QTest::qWaitFor([&] { return panel.run().progress().has_value(); }, 10'000));
  panel.stop_button()->setFocus();
  QTest::keyClick(panel.stop_button(), Qt::Key_Space);
  ended();
  EXPECT_NE(said().find("Stopped."), std::string::npos) << said();
  EXPECT_NE(said().find("holds 15 points"), std::string::npos) << said();
  const auto row = std::ranges::find(jobs.rows(), QStringLiteral("measure"), &JobRow::channel);
  EXPECT_EQ(row->state, JobState::kStopped);
  EXPECT_EQ(view.calibrations()->rowCount(), 2);
}

TEST_F(Measuring, AChildThatDoesNotListenIsEnded) {
  panel.run().set_patience(50);
  begin(program("trap '' TERM\n" + kLine + "\nwhile :; do sleep 0.05; done"));
  ASSERT_TRUE(QTest::qWaitFor([&] { return panel.run().progress().has_value(); }, 10'000));
  view.tabs()->setCurrentWidget(&panel);
  jobs.stop_all();  // as the Jobs dock and Ctrl+. do
  ended();
  EXPECT_NE(said().find("Nothing was measured"), std::string::npos) << said();
}

TEST_F(Measuring, WhateverBecomesOfTheChildIsASentence) {
  struct Fate {
    QByteArray lines;
    const char* sentence;
  };
  for (
      const Fate& fate :
      {Fate{"kill -SEGV $$", "The measuring program died"}, Fate{"cp \"$ready\" \"$out\"; kill -KILL $$", "holds 15 points"},
       Fate{"echo 'cpfit-bench: waived: no GPU was found' >&2; exit 4", "cannot be measured here: no GPU was found."},
       Fate{"echo 'cpfit-bench: this file is of another measurement: backend' >&2; exit 2", "another measurement"},
       Fate{
           R"(echo '{"probe":"gemm","done":0,"total":1,"seconds_left":null,"outcome":"failed","reason":"results differ"}'; exit 1)",
           "results differ"},
       Fate{"exit 3", "exit code 3"}, Fate{"echo garbage; echo '{' ; exit 0", "0 points"}}) {
    QFile::remove(path("out.json"));
    begin(program(fate.lines));
    ended();
    view.tabs()->setCurrentWidget(&panel);
    EXPECT_NE(said().find(fate.sentence), std::string::npos) << fate.lines.toStdString() << "\n" << said();
    EXPECT_TRUE(panel.start_button()->isEnabled()) << "it can be tried again";
  }
  begin(path("no such program"));
  ended();
  EXPECT_NE(said().find("cannot be started"), std::string::npos) << said();
  panel.program()->clear();
  EXPECT_FALSE(panel.start_button()->isEnabled());
  EXPECT_FALSE(panel.start_button()->toolTip().isEmpty()) << "says what to build or choose";
  EXPECT_NE(said().find("build the target"), std::string::npos) << said();
}

TEST_F(Measuring, ATryIsNotFittedAndAnotherMachinesRatesAreRefused) {
  panel.amount()->setCurrentIndex(0);
  begin(program("cp \"$ready\" \"$out\"\nexit 0"));
  ended();
  EXPECT_NE(said().find("Everything runs: 15 points"), std::string::npos) << said();
  EXPECT_EQ(view.calibrations()->rowCount(), 1);
  MeasurementFile host = nvlink_messages();
  host.backend = "host";
  host.machine.gpu.clear();
  host.machine.cpu = "Model T";
  for (MeasuredPoint& point : host.points) point.axes[3].value = std::string("shared memory");
  host.machine.link = "shared memory";
  write_measurement(host, to_std(path("host.json")));
  QString refused;
  QObject::connect(&view, &CalibrationView::said, [&](const QString& sentence, bool trouble) {
    if (trouble) refused = sentence;
  });
  view.fit_file(path("host.json"));
  ended();
  ASSERT_EQ(view.calibrations()->rowCount(), 2);
  QTest::mouseClick(view.use_button(), Qt::LeftButton);
  EXPECT_TRUE(refused.contains("nothing of it speaks of H100")) << refused.toStdString();
  EXPECT_EQ(document.design().calibration, nullptr);
  view.fit_file(path("bench.sh"));
  ended();
  EXPECT_NE(said().find("Nothing could be fitted"), std::string::npos) << said();
}

TEST_F(Measuring, AnOpenDatabaseGetsTheCalibration) {
  {
    const Store made = open_store(to_std(path("my.sqlite")));
  }
  database.open(path("my.sqlite"));
  ASSERT_TRUE(QTest::qWaitFor([&] { return database.content() != nullptr; }, 20'000));
  view.fit_file(path("ready.json"));
  ASSERT_TRUE(QTest::qWaitFor([&] { return !database.content()->calibrations.empty(); }, 20'000));
  EXPECT_EQ(view.calibrations()->rowCount(), 2) << "the same content is one calibration";
  EXPECT_EQ(list_calibrations(open_store(to_std(path("my.sqlite")), {.access = StoreAccess::kRead})).size(), 1u);
}

TEST_F(Measuring, TheProgramOfThisBuildTriesThisProcessor) {
  const QString bench = find_companion("cpfit-bench");
  if (bench.isEmpty()) GTEST_SKIP() << "cpfit-bench was not built";
  panel.amount()->setCurrentIndex(0);
  begin(bench);
  ended();
  EXPECT_NE(said().find("Everything runs"), std::string::npos) << said();
  EXPECT_GT(panel.run().measured(), 5);
  ASSERT_TRUE(panel.run().progress());
  EXPECT_EQ(panel.run().progress()->done, panel.run().progress()->total);
}

}  // namespace
}  // namespace cpfit::gui
