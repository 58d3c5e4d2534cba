// The study: values along parameters, derived sizes, editing scenario text, undo, history, selection, jobs.
#include <gmock/gmock.h>

#include <QAbstractItemModelTester>
#include <QSignalSpy>
#include <QTemporaryDir>
#include <QTest>

#include "example_study.h"
#include "gui/study/estimate.h"
#include "gui/study/jobs.h"
#include "gui/study/live_estimate.h"
#include "gui/study/recipe_values.h"
#include "gui/study/scenario_text.h"
#include "gui/study/selection.h"
#include "gui/study/study_document.h"
#include "gui/study/view_history.h"

namespace cpfit::gui {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(RecipeValues, ADegreeMakesTheDerivedOneFollow) {
  // 8 GPUs: tp 2, cp 4 leave dp 1; tp 1 then leaves dp 2.
  const Design design = example_design();
  const Outcome<Design> wider = with_value(design, "tp", "1");
  ASSERT_TRUE(wider.ok());
  EXPECT_EQ(wider->recipe.dp, 2);
  EXPECT_EQ(with_value(design, "tp", "1", "cp")->recipe.cp, 8);
  // 3 does not divide 8: dp stays, and legality says so.
  EXPECT_EQ(with_value(design, "tp", "3")->recipe.dp, 1);
}

TEST(RecipeValues, UnreadableValuesAreProblemsThatNameTheRow) {
  const Design design = example_design();
  for (const auto& [key, value] :
       {std::pair("tp", "many"), std::pair("sequence_length", "1.1k"), std::pair("global_batch", "0"),
        std::pair("recompute", "sometimes"), std::pair("framework", "megatron-cor"), std::pair("model", "lama3-8b")}) {
    const Outcome<Design> changed = with_value(design, key, value);
    ASSERT_FALSE(changed.ok()) << key;
    EXPECT_FALSE(changed.problems().front().message.empty());
  }
}

TEST(RecipeValues, EveryParameterReadsBackWhatItShows) {
  const Design design = example_design("tp=2,cp=2,pp=2,dp=1,recompute=full");
  for (const Parameter& parameter : parameters()) {
    const std::string value = value_of(design, parameter.key);
    ASSERT_FALSE(value.empty()) << parameter.key;
    if (parameter.key == "cluster" || parameter.key == "model") continue;  // they rebuild the question; tested below
    const Outcome<Design> same = with_value(design, parameter.key, value);
    ASSERT_TRUE(same.ok()) << parameter.key << ": " << to_text(same.problems().front());
    EXPECT_EQ(same->recipe, design.recipe) << parameter.key;
  }
}

TEST(RecipeValues, ValuesAlongAParameterHoldTheCurrentOneAndAreFew) {
  const Design design = example_design();
  for (const Parameter& parameter : parameters()) {
    if (!parameter.strip) continue;
    const std::vector<std::string> values = values_along(design, parameter.key);
    EXPECT_THAT(values, testing::Contains(value_of(design, parameter.key))) << parameter.key;
    EXPECT_LE(values.size(), 20u) << parameter.key;
  }
  EXPECT_THAT(values_along(design, "cp"), ElementsAre("1", "2", "4", "8"));
}

TEST(RecipeValues, ModelAndClusterCanBeExchanged) {
  const Design design = *with_value(example_design(), "sequence_length", "64k");
  const Outcome<Design> other = with_value(design, "model", "llama3-70b");
  ASSERT_TRUE(other.ok()) << to_text(other.problems().front());
  EXPECT_EQ(other->scenario->model.layers, 80);
  EXPECT_EQ(other->training().sequence.count(), 65536);  // an earlier edit is kept
  const Outcome<Design> two = with_value(design, "nodes", "2");
  ASSERT_TRUE(two.ok());
  EXPECT_EQ(two->scenario->cluster.gpus(), 16);
  EXPECT_EQ(two->recipe.world(), 16);  // dp follows
}

/// However the file writes its cluster, edits of it are in the text that is saved.
TEST(RecipeValues, AClusterInOneLineIsEditedToo) {
  for (const char* cluster : {"cluster = \"dgx1-v100\"", "cluster = {preset = \"dgx1-v100\", nodes = 1}",
                              "cluster = {preset = \"dgx1-v100\", gpus = 8}"}) {
    SCOPED_TRACE(cluster);
    Design design = example_design();
    const std::string text = std::string("model = \"llama3-8b\"\n") + cluster +
                             "\n[training]\nsequence_length = \"16k\"\nglobal_batch = 8\nprecision = \"fp16\"\n";
    design.scenario = std::make_shared<const Scenario>(read_scenario(text, "s.toml").value());
    design.recipe = design.scenario->base;
    const Design two = with_value(design, "nodes", "2").value();
    EXPECT_EQ(read_scenario(scenario_text(two).value(), "s.toml").value().cluster.nodes, 2);
    // Every second host backwards; a ring of double links in each.
    const DeviceOrders orders{{0, 3, 2, 1, 5, 6, 7, 4}, {4, 7, 6, 5, 1, 2, 3, 0}};
    RankOrder order = two.recipe.rank_order;
    std::swap(order.axes[0], order.axes[1]);
    const Design placed = with_placement(two, order, orders).value();
    const Scenario saved = read_scenario(scenario_text(placed).value(), "s.toml").value();
    EXPECT_EQ(saved.cluster.device_orders, orders);
    EXPECT_EQ(saved.base.rank_order, order);
    EXPECT_EQ(saved.cluster.nodes, 2);
    EXPECT_TRUE(with_placement(placed, order, {}).value().scenario->cluster.device_orders.empty());
  }
}

TEST(RecipeValues, IdleChoicesSayWhy) {
  const Design design = example_design("tp=1,cp=1,pp=1,dp=8,recompute=full");
  EXPECT_FALSE(idle_reason(design, "cp_comm").empty());
  EXPECT_FALSE(idle_reason(design, "vpp").empty());
  EXPECT_TRUE(idle_reason(design, "cp").empty());
}

TEST(ScenarioText, AValueIsReplacedInItsSectionOnly) {
  const std::string text = "a = 1\n[x]\na = 2 # two\n[y]\na = 3\n";
  EXPECT_EQ(with_toml_value(text, "x", "a", "9"), "a = 1\n[x]\na = 9  # two\n[y]\na = 3\n");
  EXPECT_EQ(with_toml_value(text, "", "a", "9"), "a = 9\n[x]\na = 2 # two\n[y]\na = 3\n");
  EXPECT_EQ(with_toml_value(text, "x", "b", "7"), "a = 1\n[x]\na = 2 # two\nb = 7\n[y]\na = 3\n");
  EXPECT_EQ(with_toml_value(text, "z", "b", "7"), "a = 1\n[x]\na = 2 # two\n[y]\na = 3\n\n[z]\nb = 7\n");
  EXPECT_EQ(without_toml_key(text, "y", "a"), "a = 1\n[x]\na = 2 # two\n[y]\n");
  EXPECT_EQ(without_toml_section(text, "x"), "a = 1\n[y]\na = 3\n");
  // What stands in one line becomes a section.
  EXPECT_EQ(with_toml_value("x = {a = 1, b = [2, 3], c = \"4, {5}\"} # one\n[y]\na = 3\n", "x", "b", "7"),
            "[y]\na = 3\n\n[x]\na = 1\nb = 7\nc = \"4, {5}\"\n");
  EXPECT_EQ(with_toml_value("x = \"p\"\n", "x", "b", "7"), "[x]\npreset = \"p\"\nb = 7\n");
  EXPECT_EQ(without_toml_key("x = {a = 1, b = 2}\n", "x", "a"), "[x]\nb = 2\n");
  // A # inside quotes is no comment.
  EXPECT_EQ(with_toml_value("name = \"a # b\" # c\n", "", "name", "\"d\""), "name = \"d\"  # c\n");
}

TEST(ScenarioText, ASavedDesignOpensAsItself) {
  Design design = example_design("tp=2,cp=2,pp=2,dp=1,recompute=full,micro_batch=1");
  design = *with_value(design, "sequence_length", "64k");
  design = *with_value(design, "global_batch", "16");
  const Outcome<std::string> text = scenario_text(design);
  ASSERT_TRUE(text.ok()) << to_text(text.problems().front());
  EXPECT_THAT(*text, HasSubstr("# a comment"));
  const Outcome<Scenario> read = read_scenario(*text, "saved.toml");
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->base, design.recipe);
  EXPECT_EQ(read->training.sequence.count(), 65536);
  EXPECT_EQ(read->training.global_batch, 16);
  EXPECT_EQ(opening_recipe(*read), design.recipe);
}

TEST(ScenarioText, AFormThatCannotBeEditedIsSaid) {
  Design design = example_design();
  auto odd = std::make_shared<Scenario>(*design.scenario);
  odd->text =
      "name = \"x\"\nmodel = \"llama3-8b\"\ncluster = \"dgx-h100\"\ntraining.sequence_length = \"128k\"\ntraining.global_batch = "
      "8\n";
  design.scenario = odd;
  const Outcome<std::string> text = scenario_text(design);
  ASSERT_FALSE(text.ok());
  EXPECT_EQ(text.problems().front().code, "gui.scenario_form");
  odd = std::make_shared<Scenario>(*design.scenario);
  odd->text =
      "name = \"x\"\nmodel = \"llama3-8b\"\ncluster = \"dgx-h100\"\ntraining = {sequence_length = \"64k\", global_batch = 8}\n";
  design.scenario = odd;
  const Outcome<std::string> one_line = scenario_text(design);
  ASSERT_TRUE(one_line.ok());
  EXPECT_EQ(read_scenario(*one_line, "x.toml")->training.sequence, design.training().sequence);
}

TEST(Estimates, LegalDesignsHaveStagesAndIllegalOnesRules) {
  Estimator estimator(example_rates());
  const Estimate legal = estimator.estimate(example_design("tp=2,cp=2,pp=2,dp=1,recompute=full"), std::nullopt);
  ASSERT_TRUE(legal.legal());
  ASSERT_EQ(legal.stages.size(), 2u);
  for (const StageMemory& stage : legal.stages) {
    Bytes sum;
    for (const Bytes bytes : stage.components) sum += bytes;
    EXPECT_NEAR(sum.value(), stage.device.value(), 1.0);  // components sum to what the device must hold
  }
  const Estimate illegal = estimator.estimate(example_design("tp=3,cp=4,pp=1,dp=1,recompute=full"), std::nullopt);
  EXPECT_FALSE(illegal.legal());
  ASSERT_FALSE(illegal.problems.empty());
  EXPECT_EQ(illegal.problems.front().code, "recipe.world_size");
  EXPECT_EQ(parameter_of(illegal.problems.front()), "dp");
}

TEST(Estimates, VariationsAgreeWithTheEstimateOfEachValue) {
  Estimator estimator(example_rates());
  const Design design = example_design();
  for (const Variation& variation : estimator.vary(design, "cp", "dp")) {
    const Estimate with = estimator.estimate(*with_value(design, "cp", variation.value), std::nullopt);
    EXPECT_EQ(variation.legal, with.legal()) << variation.value;
    if (with.legal()) {
      EXPECT_EQ(variation.step, with.candidate->time.step());
    }
    EXPECT_EQ(variation.current, variation.value == "4");
  }
}

TEST(Estimates, NearestLegalValuesStandOnBothSides) {
  std::vector<Variation> variations(5);
  for (std::size_t i = 0; i < variations.size(); ++i) variations[i].value = std::to_string(i);
  variations[0].legal = variations[1].legal = variations[4].legal = true;
  variations[2].current = true;
  EXPECT_THAT(nearest_legal(variations), ElementsAre("1", "4"));
}

// CP = 1 at tp 2 without recompute misses by far; the same with full recompute fits: no gain of CP.
TEST(Estimates, AFitWonByRecomputeIsMarked) {
  Estimator estimator(example_rates());
  const Estimate control = estimator.estimate(example_design("tp=8,cp=1,pp=1,dp=1,recompute=none"), std::nullopt);
  ASSERT_TRUE(control.legal());
  ASSERT_NE(control.candidate->verdict.fit, Fit::kFits);
  const Estimate won = estimator.estimate(example_design("tp=4,cp=1,pp=1,dp=2,recompute=full"), control.candidate);
  ASSERT_EQ(won.candidate->verdict.fit, Fit::kFits);
  EXPECT_THAT(won.not_of_cp, HasSubstr("recompute"));
  EXPECT_TRUE(estimator.estimate(example_design("tp=4,cp=1,pp=1,dp=2,recompute=full"), std::nullopt).not_of_cp.empty());
}

class Document : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(document.open_text(example_toml(), "test.toml").empty()); }
  StudyDocument document;
};

TEST_F(Document, EditsAreUndoneAndOneGestureIsOneStep) {
  const Recipe before = document.design().recipe;
  ASSERT_TRUE(document.set_value("micro_batch", "2", 7).empty());
  ASSERT_TRUE(document.set_value("micro_batch", "4", 7).empty());
  ASSERT_TRUE(document.set_value("micro_batch", "8", 8).empty());
  EXPECT_EQ(document.undo().count(), 2);
  document.undo().undo();
  EXPECT_EQ(document.design().recipe.micro_batch, 4);
  document.undo().undo();
  EXPECT_EQ(document.design().recipe, before);
  document.undo().redo();
  EXPECT_EQ(document.design().recipe.micro_batch, 4);
}

TEST_F(Document, ABadValueChangesNothing) {
  const Recipe before = document.design().recipe;
  EXPECT_FALSE(document.set_value("tp", "two").empty());
  EXPECT_EQ(document.design().recipe, before);
  EXPECT_EQ(document.undo().count(), 0);
}

TEST_F(Document, ASearchStartsTheStudyOnlyWhileNothingWasEdited) {
  Recipe found = document.design().recipe;
  found.recompute = {RecomputeKind::kFull, 0};
  document.start_from(found);
  EXPECT_EQ(document.design().recipe, found);
  EXPECT_EQ(document.undo().count(), 0);
  (void)document.set_value("micro_batch", "2");
  const Recipe edited = document.design().recipe;
  document.start_from(example_design().recipe);
  EXPECT_EQ(document.design().recipe, edited);
}

TEST_F(Document, ABrokenFileLeavesTheOpenStudy) {
  EXPECT_FALSE(document.open_text("name = ", "broken.toml").empty());
  EXPECT_EQ(document.path(), "test.toml");
  EXPECT_FALSE(document.open_file("/nowhere/at/all.toml").empty());
  EXPECT_TRUE(document.is_open());
}

TEST_F(Document, SavingIntoNowhereIsAProblem) {
  const Problems problems = document.save("/nowhere/at/all.toml");
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_EQ(problems.front().code, "gui.unwritable");
  QTemporaryDir folder;
  EXPECT_TRUE(document.save(folder.filePath("saved.toml")).empty());
  StudyDocument again;
  EXPECT_TRUE(again.open_file(folder.filePath("saved.toml")).empty());
  EXPECT_EQ(again.design().recipe, document.design().recipe);
}

TEST(History, GoesBackAndForwardAndForgetsWhatLayAhead) {
  ViewHistory history;
  const ViewPlace a{"v", 0, 1}, b{"v", 0, 2}, c{"v", 0, 3};
  history.visit(a);
  history.visit(b);
  EXPECT_EQ(history.back(), a);
  EXPECT_EQ(history.forward(), b);
  EXPECT_EQ(history.back(), a);
  history.visit(c);
  EXPECT_FALSE(history.forward());
  EXPECT_EQ(history.back(), a);
}

TEST(History, AGestureIsOnePlace) {
  ViewHistory history;
  history.visit({"v", 0, 1});
  for (int i = 2; i < 10; ++i) history.visit({"v", 0, double(i)}, true);
  EXPECT_EQ(history.back(), (ViewPlace{"v", 0, 1}));
  EXPECT_EQ(history.forward(), (ViewPlace{"v", 0, 9}));
}

TEST(Selections, CarryTheirOriginAndStaySilentWhenNothingChanges) {
  Selection selection;
  QSignalSpy changes(&selection, &Selection::changed);
  QObject origin;
  selection.change(&origin, [](Selected& s) { s.link = SelectedLink{"a", "b"}; });
  selection.change(&origin, [](Selected& s) { s.link = SelectedLink{"a", "b"}; });
  ASSERT_EQ(changes.count(), 1);
  EXPECT_EQ(changes.front().at(1).value<const QObject*>(), &origin);
  selection.change(&origin, [](Selected& s) { s.focus = FocusRange{1, 2}; });
  EXPECT_TRUE(selection.clear_step(&origin));
  EXPECT_TRUE(selection.now().link && !selection.now().focus);
  EXPECT_TRUE(selection.clear_step(&origin));
  EXPECT_FALSE(selection.clear_step(&origin));
}

TEST(JobList, NewestWinsAndLateResultsAreDropped) {
  Jobs jobs;
  const QAbstractItemModelTester tester(&jobs, QAbstractItemModelTester::FailureReportingMode::Fatal);
  std::atomic<bool> go{false};
  std::vector<int> results;
  const auto work = [&](int value) {
    return [&go, value](const std::atomic<bool>&) -> std::any {
      while (!go.load()) QThread::msleep(1);
      return value;
    };
  };
  const auto done = [&](const std::any& result) {
    results.push_back(std::any_cast<int>(result));
    return QString("done");
  };
  jobs.start("channel", "one", work(1), done);
  jobs.start("channel", "two", work(2), done);
  go = true;
  ASSERT_TRUE(QTest::qWaitFor([&] { return !jobs.is_running("channel"); }));
  QTest::qWait(20);
  EXPECT_EQ(results, std::vector<int>{2});
  EXPECT_EQ(jobs.rows()[1].state, JobState::kStopped);
  EXPECT_EQ(jobs.rows()[0].state, JobState::kDone);
}

TEST(JobList, AFailureIsASentence) {
  Jobs jobs;
  jobs.start(
      "channel", "fails", [](const std::atomic<bool>&) -> std::any { throw Error("the disk is full"); },
      [](const std::any&) { return QString(); });
  ASSERT_TRUE(QTest::qWaitFor([&] { return !jobs.is_running("channel"); }));
  EXPECT_EQ(jobs.rows().front().state, JobState::kFailed);
  EXPECT_EQ(jobs.rows().front().sentence, "the disk is full");
}

TEST(JobList, LongWorkKeepsWhatItDidWhenItIsStopped) {
  Jobs jobs;
  std::any brought;
  std::atomic<bool> began{false};
  const int number = jobs.start_keeping(
      "long", "count",
      [&began](const std::atomic<bool>& stop) -> std::any {
        int counted = 1;
        began = true;
        while (!stop) ++counted;
        return counted;
      },
      [&](const std::any& result) {
        brought = result;
        return QStringLiteral("some");
      });
  ASSERT_TRUE(QTest::qWaitFor([&] { return began.load(); }, 5'000));
  jobs.set_progress(number, 0.25, "a quarter");
  EXPECT_EQ(jobs.index(0, 2).data().toString(), "25 %");
  EXPECT_EQ(jobs.index(0, 3).data().toString(), "a quarter");
  jobs.stop(number);
  EXPECT_TRUE(jobs.is_running("long"));
  EXPECT_EQ(jobs.index(0, 1).data().toString(), "stopping");
  ASSERT_TRUE(QTest::qWaitFor([&] { return !jobs.is_running("long"); }, 5'000));
  EXPECT_GE(std::any_cast<int>(brought), 1);
  EXPECT_EQ(jobs.rows().front().state, JobState::kStopped);
  EXPECT_EQ(jobs.rows().front().sentence, "some");
}

TEST(JobList, WorkOfOthersIsListedToldToStopOnceAndEndsWhenTheySaySo) {
  Jobs jobs;
  int told = 0;
  const int number = jobs.adopt("child", "measure", [&] { ++told; });
  jobs.stop_all();
  jobs.stop(number);
  EXPECT_EQ(told, 1);
  EXPECT_TRUE(jobs.is_running("child"));
  jobs.end(number, JobState::kFailed, "it crashed");
  jobs.end(number, JobState::kDone, "too late");
  EXPECT_EQ(jobs.rows().front().state, JobState::kFailed);
  EXPECT_EQ(jobs.rows().front().sentence, "it crashed");
}

TEST(Simulate, EndsWhenItsJobIsStopped) {
  std::atomic<bool> stop{true};
  const Design design = example_design("tp=1,cp=8,pp=1,dp=1,recompute=full");  // a ring: every layer is simulated
  try {
    (void)simulate(design, example_rates(), stop);
    FAIL() << "went on";
  } catch (const Error& error) {
    EXPECT_THAT(std::string(error.what()), testing::HasSubstr("stopped"));
  }
  stop = false;
  EXPECT_NE(simulate(design, example_rates(), stop), nullptr);
}

TEST(Live, AChosenCalibrationHoldsUntilItIsTakenBack) {
  StudyDocument document;
  Jobs jobs;
  LiveEstimate live(document, jobs, example_rates());
  ASSERT_TRUE(document.open_text(example_toml("16k"), "test.toml").empty());
  ASSERT_TRUE(QTest::qWaitFor([&] { return !live.is_busy(); }, 60'000));
  const Seconds before = live.now().candidate->time.step();
  const auto defaults = live.rates();
  // The defaults' rows of this GPU's attention, told as measured ones; every kernel takes 100 us more.
  auto chosen = std::make_shared<ChosenCalibration>();
  chosen->calibration.name = "slow";
  chosen->calibration.id = std::string(64, 'a');
  chosen->from = "my.sqlite";
  std::string rows = default_calibration().rates_toml;
  for (std::size_t at = rows.find("launch_us = "); at != std::string::npos; at = rows.find("launch_us = ", at + 13))
    rows.insert(at + 12, "10");
  chosen->calibration.rates_toml = rows;
  Design design = document.design();
  design.calibration = chosen;
  document.set_design(design, "Rates");
  EXPECT_NE(live.rates(), defaults);
  ASSERT_TRUE(live.calibration());
  EXPECT_FALSE(live.calibration()->used.empty());
  EXPECT_GT(live.now().candidate->time.step(), before);
  EXPECT_TRUE(simulate_command("test.toml", document.design()).endsWith("--calibration \"my.sqlite:aaaaaaaaaaaa\""));
  ASSERT_TRUE(QTest::qWaitFor([&] { return !live.is_busy(); }, 60'000));
  EXPECT_EQ(live.search()->rates, live.rates()) << "the search is made again";
  ASSERT_TRUE(document.set_value("cluster", "dgx-a100").empty());
  EXPECT_TRUE(live.calibration_trouble().isEmpty()) << "it has rows of that GPU, too";
  document.undo().undo();
  document.undo().undo();
  EXPECT_EQ(live.rates(), defaults);
  EXPECT_EQ(live.now().candidate->time.step(), before);
}

TEST(Live, AnEditIsAnsweredAtOnceAndSimulatedBehind) {
  StudyDocument document;
  Jobs jobs;
  LiveEstimate live(document, jobs, example_rates());
  ASSERT_TRUE(document.open_text(example_toml("32k"), "test.toml").empty());
  ASSERT_TRUE(QTest::qWaitFor([&] { return !live.is_busy(); }, 60'000));
  ASSERT_TRUE(live.search());
  EXPECT_TRUE(live.sweep());
  const Recipe found = document.design().recipe;
  EXPECT_EQ(found, live.search()->plan.ship.recipe);  // the study starts from what ships
  ASSERT_TRUE(document.set_value("micro_batch", "2").empty());
  EXPECT_EQ(live.now().design.recipe.micro_batch, 2);  // no event loop in between
  EXPECT_FALSE(live.simulation_is_current());
  ASSERT_TRUE(QTest::qWaitFor([&] { return !live.is_busy(); }, 60'000));
  EXPECT_TRUE(live.simulation_is_current());
  EXPECT_FALSE(live.variations("cp").empty());
  // The timeline and the closed form are of the same step.
  const double ratio = live.simulation()->now.ratio();
  EXPECT_GT(ratio, 0.9);
  EXPECT_LT(ratio, 1.5);
}

}  // namespace
}  // namespace cpfit::gui
