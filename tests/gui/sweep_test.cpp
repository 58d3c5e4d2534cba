// Sweeps: the axes and the scenario they make by tables, counting against the search itself, databases that refuse, and the
// dialog by keyboard and mouse.
#include <SQLiteCpp/SQLiteCpp.h>
#include <gmock/gmock.h>

#include <QCheckBox>
#include <QLabel>
#include <QLineEdit>
#include <QPushButton>
#include <QTemporaryDir>
#include <QTest>
#include <QToolButton>

#include "db/query/runs.h"
#include "db/store/bundle_store.h"
#include "db/store/run_recorder.h"
#include "example_study.h"
#include "gui/look/figures.h"
#include "gui/results/filter_bar.h"
#include "gui/results/results_view.h"
#include "gui/results/sweep_dialog.h"
#include "gui/study/recipe_values.h"

namespace cpfit::gui {
namespace {

using testing::ElementsAre;

const SweepAxis& axis(const std::vector<SweepAxis>& axes, const std::string& key) {
  return *std::ranges::find(axes, key, &SweepAxis::key);
}
SweepAxis& axis(std::vector<SweepAxis>& axes, const std::string& key) { return *std::ranges::find(axes, key, &SweepAxis::key); }

TEST(SweepAxes, AreThoseOfTheScenario) {
  const Design design = example_design();
  const std::vector<SweepAxis> axes = sweep_axes(*design.scenario);
  EXPECT_THAT(axis(axes, "tp").chosen, ElementsAre("1", "2", "4", "8"));
  EXPECT_THAT(axis(axes, "cp").offered, ElementsAre("1", "2", "4", "8"));
  EXPECT_TRUE(axis(axes, "cp").chosen.empty()) << "auto";
  EXPECT_THAT(axis(axes, "recompute").offered, ElementsAre("none", "selective", "mlp", "full"));
  EXPECT_THAT(axis(axes, "recompute").chosen, ElementsAre("none", "full"));
  EXPECT_THAT(axis(axes, "vpp").offered, ElementsAre("1", "2", "4", "8")) << "divisors of 32 layers";
  const Outcome<std::shared_ptr<const Scenario>> same = sweep_scenario(design, axes);
  ASSERT_TRUE(same.ok());
  EXPECT_EQ((*same)->text, design.scenario->text) << "an interrupted run of the file is found again by its text";
}

TEST(SweepAxes, AreChosenInTheirOrderAndReadBack) {
  const Design design = example_design();
  std::vector<SweepAxis> axes = sweep_axes(*design.scenario);
  toggle_value(axis(axes, "cp"), "8");
  toggle_value(axis(axes, "cp"), "2");
  toggle_value(axis(axes, "cp"), "3");  // not offered
  EXPECT_THAT(axis(axes, "cp").chosen, ElementsAre("2", "8"));
  toggle_value(axis(axes, "tp"), "8");
  axis(axes, "recompute").chosen.clear();
  const Outcome<std::shared_ptr<const Scenario>> changed = sweep_scenario(design, axes);
  ASSERT_TRUE(changed.ok());
  EXPECT_THAT((*changed)->search.cp, ElementsAre(2, 8));
  EXPECT_THAT((*changed)->search.tp, ElementsAre(1, 2, 4));
  EXPECT_TRUE((*changed)->search.recompute.empty());
  EXPECT_EQ(sweep_axes(**changed), axes);
  Design longer = design;
  auto scenario = std::make_shared<Scenario>(*design.scenario);
  scenario->training.sequence = Tokens(32768);
  longer.scenario = scenario;
  EXPECT_EQ((*sweep_scenario(longer, axes))->training.sequence, Tokens(32768)) << "edits of the question go with it";
}

TEST(SweepAxes, AreCountedAsTheSearchCounts) {
  const Design design = example_design();
  const auto rates = example_rates();
  std::atomic<bool> stop{false};
  const Outcome<SweepCount> count = count_recipes(*design.scenario, *rates, stop);
  PlanOptions options;
  options.crossover = options.timeline = false;
  const PlanStats stats = plan(*design.scenario, *rates, options)->stats;
  EXPECT_EQ(count->considered, stats.considered);
  EXPECT_EQ(count->legal, stats.legal);
  stop = true;
  EXPECT_FALSE(count_recipes(*design.scenario, *rates, stop)->whole);
}

SweepRequest request_for(const QString& database) {
  SweepRequest request;
  request.scenario = example_design().scenario;
  request.rates = example_rates();
  request.tool_version = "test";
  request.database = database;
  request.store.patience = std::chrono::milliseconds(50);
  request.closer = false;
  return request;
}

TEST(SweepRuns, ThatWereInterruptedGoOnAndStoreNothingTwice) {
  QTemporaryDir folder;
  const SweepRequest request = request_for(folder.filePath("runs.sqlite"));
  EXPECT_FALSE(resumable_run(request).run) << "there is no file yet";
  std::atomic<bool> stop{false};
  SweepProgress whole, again;
  const SweepResult all = run_sweep(request_for({}), whole, stop);
  RunId interrupted{};
  {
    RunRecorder recorder(to_std(request.database), provenance_of(*request.scenario, *request.rates, "test", nullptr));
    recorder.receive({all.answer->evaluated.begin(), all.answer->evaluated.begin() + 7});
    recorder.interrupt();
    interrupted = recorder.run();
  }
  EXPECT_EQ(resumable_run(request).run, interrupted);
  EXPECT_EQ(resumable_run(request).recipes, 7u);
  SweepRequest other = request;
  other.tool_version = "another";
  EXPECT_FALSE(resumable_run(other).run) << "computed by another version: not the same run";
  const SweepResult second = run_sweep(request, again, stop);
  EXPECT_FALSE(second.stopped);
  EXPECT_EQ(second.run, interrupted);
  EXPECT_EQ(second.continued, 7u);
  EXPECT_FALSE(resumable_run(request).run) << "it is complete";
  const Store store = open_store(to_std(request.database), {.access = StoreAccess::kRead});
  EXPECT_EQ(candidates_of(store, interrupted).size(), all.answer->evaluated.size());
  EXPECT_EQ(load_run(store, interrupted)->ship.recipe, all.answer->plan.ship.recipe);
  // The texts behind its hashes are there: `cpfit runs requalify` can say what changed in them.
  const PlanResult stored = load_run(store, interrupted).value();
  for (const auto& [name, sha256] : stored.provenance.input_hashes) {
    if (name.starts_with("presets/")) {
      EXPECT_TRUE(find_input(store, sha256)) << name;
    }
  }
  // One that is told to stop at once stores what it has, which is nothing, and can go on.
  stop = true;
  SweepProgress none;
  const SweepResult stopped = run_sweep(request, none, stop);
  EXPECT_TRUE(stopped.stopped);
  EXPECT_TRUE(stopped.not_stored.isEmpty());
  EXPECT_EQ(resumable_run(request).run, stopped.run);
}

TEST(SweepRuns, KeepTheirRecipesWhereTheDatabaseRefuses) {
  QTemporaryDir folder;
  const auto rows_of = [](const SweepRequest& request, QString& trouble) {
    SweepProgress progress;
    std::atomic<bool> stop{false};
    const SweepResult result = run_sweep(request, progress, stop);
    trouble = result.not_stored;
    return result.answer->evaluated.size();
  };
  QString trouble;
  const std::size_t all = rows_of(request_for({}), trouble);
  EXPECT_GT(all, 10u);
  EXPECT_TRUE(trouble.isEmpty());

  // Somebody else writes.
  const SweepRequest locked = request_for(folder.filePath("locked.sqlite"));
  {
    const Store made = open_store(to_std(locked.database));
  }
  SQLite::Database other(to_std(locked.database), SQLite::OPEN_READWRITE);
  other.exec("BEGIN IMMEDIATE");
  EXPECT_EQ(rows_of(locked, trouble), all);
  EXPECT_TRUE(trouble.contains("locked")) << trouble.toStdString();
  other.exec("ROLLBACK");

  // No room for the recipes: the schema alone has some twenty pages.
  SweepRequest full = request_for(folder.filePath("full.sqlite"));
  {
    const Store made = open_store(to_std(full.database));
  }
  full.store.max_pages = QFileInfo(full.database).size() / kStorePageBytes + 2;
  EXPECT_EQ(rows_of(full, trouble), all);
  EXPECT_TRUE(trouble.contains("full")) << trouble.toStdString();
  EXPECT_EQ(list_runs(open_store(to_std(full.database), {.access = StoreAccess::kRead})).size(), 1u) << "it opens as before";

  for (const QString& path : {folder.path(), folder.filePath("no/such/folder.sqlite"), QStringLiteral("/proc/version")}) {
    EXPECT_EQ(rows_of(request_for(path), trouble), all) << path.toStdString();
    EXPECT_FALSE(trouble.isEmpty()) << path.toStdString();
  }
  EXPECT_FALSE(resumable_run(request_for(QStringLiteral("/proc/version"))).trouble.isEmpty());
}

class SweepDialogs : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(document.open_text(example_toml("64k"), "test.toml").empty());
    view.resize(1100, 700);
    view.show();
    ASSERT_TRUE(QTest::qWaitFor([&] { return !live.is_busy(); }, 60'000));
    dialog = view.open_sweep();
    ASSERT_NE(dialog, nullptr);
    counted();
    dialog->closer()->setChecked(false);
  }
  void counted() {
    ASSERT_TRUE(QTest::qWaitFor([&] { return dialog->is_estimated(); }, 20'000));
  }
  void ended() {
    ASSERT_TRUE(QTest::qWaitFor([&] { return !view.sweep().is_running() && !live.is_busy(); }, 60'000));
  }
  StudyDocument document;
  Jobs jobs;
  Selection selection;
  LiveEstimate live{document, jobs, example_rates()};
  OpenedDatabase database{jobs};
  ResultsView view{document, live, jobs, database, selection};
  SweepDialog* dialog = nullptr;
};

TEST_F(SweepDialogs, ASearchIsChosenEstimatedStartedAndStored) {
  QTemporaryDir folder;
  const QString all = dialog->estimate()->text();
  EXPECT_TRUE(all.contains(QString::number(live.search()->plan.stats.legal))) << all.toStdString();
  QTest::mouseClick(dialog->value_button("cp", "4"), Qt::LeftButton);
  EXPECT_FALSE(dialog->is_estimated()) << "the estimate is of other axes";
  QToolButton* full = dialog->value_button("recompute", "none");
  full->setFocus();
  QTest::keyClick(full, Qt::Key_Space);  // left out: full alone
  counted();
  EXPECT_NE(dialog->estimate()->text(), all);
  EXPECT_FALSE(dialog->value_button("cp", "")->isChecked());
  const QString path = folder.filePath("runs.sqlite");
  dialog->database_field()->setFocus();
  QTest::keyClicks(dialog->database_field(), path);
  counted();
  QTest::keyClick(dialog, Qt::Key_Return);
  EXPECT_TRUE(view.sweep().is_running());
  EXPECT_FALSE(dialog->start_button()->isEnabled());
  ended();
  EXPECT_FALSE(view.sweep().went_wrong()) << view.sweep().sentence().toStdString();
  ASSERT_FALSE(view.book().is_empty());
  EXPECT_TRUE(view.book().places()[view.book().place()].sweep) << "the rows are looked at";
  for (const Candidate& candidate : view.book().set()->candidates) {
    EXPECT_EQ(candidate.recipe.cp, 4);
    EXPECT_EQ(to_text(candidate.recipe.recompute), "full");
  }
  ASSERT_TRUE(QTest::qWaitFor([&] { return database.content() != nullptr; }, 20'000));
  ASSERT_EQ(database.content()->runs.size(), 1u);
  EXPECT_EQ(database.content()->runs[0].status, RunStatus::kDone);
  EXPECT_EQ(database.content()->runs[0].stored_candidates, static_cast<std::int64_t>(view.book().set()->size()));
  EXPECT_TRUE(view.book().set()->command.startsWith("cpfit runs show 1 --db")) << view.book().set()->command.toStdString();
}

TEST_F(SweepDialogs, WhatIsLockedIsNotVaried) {
  const std::string tp = recipe_value(document.design().recipe, "tp");
  document.set_locked("tp", true);
  counted();
  EXPECT_TRUE(dialog->value_button("tp", tp)->isChecked());
  EXPECT_FALSE(dialog->value_button("tp", tp)->isEnabled());
  EXPECT_FALSE(dialog->value_button("tp", "")->isChecked());
  EXPECT_TRUE(dialog->value_button("cp", "4")->isEnabled());
  QTest::mouseClick(dialog->start_button(), Qt::LeftButton);
  ended();
  ASSERT_FALSE(view.book().is_empty());
  for (const Candidate& candidate : view.book().set()->candidates) EXPECT_EQ(recipe_value(candidate.recipe, "tp"), tp);
  document.set_locked("tp", false);
  EXPECT_TRUE(dialog->value_button("tp", "2")->isChecked()) << "what was chosen before: tp 1, 2, 4, 8";
  EXPECT_TRUE(dialog->value_button("tp", "2")->isEnabled());
}

TEST_F(SweepDialogs, StopKeepsWhatIsThereAndTheDialogCanBeClosed) {
  QTest::mouseClick(dialog->start_button(), Qt::LeftButton);
  ASSERT_TRUE(dialog->stop_button()->isEnabled());
  QTest::mouseClick(dialog->stop_button(), Qt::LeftButton);
  EXPECT_TRUE(view.sweep().is_running()) << "it brings in what it has";
  QTest::keyClick(dialog, Qt::Key_Escape);
  EXPECT_FALSE(dialog->isVisible());
  ended();
  const auto row = std::ranges::find(jobs.rows(), QStringLiteral("recipes"), &JobRow::channel);
  ASSERT_NE(row, jobs.rows().end());
  EXPECT_EQ(row->state, JobState::kStopped);
  ASSERT_NE(view.sweep().found(), nullptr);
  EXPECT_LE(view.sweep().found()->evaluated.size(), live.search()->evaluated.size());
  EXPECT_TRUE(view.sweep().sentence().contains(QString::number(view.sweep().found()->evaluated.size())));
}

TEST_F(SweepDialogs, WhatCannotBeSearchedIsASentence) {
  // Eight chunks a stage need a pipeline: with PP 1 alone nothing is legal.
  QTest::mouseClick(dialog->value_button("pp", "1"), Qt::LeftButton);
  QTest::mouseClick(dialog->value_button("vpp", "8"), Qt::LeftButton);
  counted();
  EXPECT_TRUE(dialog->estimate()->text().contains("none of these is legal")) << dialog->estimate()->text().toStdString();
  EXPECT_FALSE(dialog->start_button()->isEnabled());
  document.close();
  EXPECT_FALSE(dialog->isVisible());
  EXPECT_EQ(view.open_sweep(), nullptr);
}

}  // namespace
}  // namespace cpfit::gui
