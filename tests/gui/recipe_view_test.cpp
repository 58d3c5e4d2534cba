// The verdict and the recipe panel: what they say, and that keyboard and mouse change the study as they should.
#include <gmock/gmock.h>

#include <QAbstractScrollArea>
#include <QApplication>
#include <QComboBox>
#include <QLabel>
#include <QLineEdit>
#include <QMouseEvent>
#include <QPushButton>
#include <QSignalSpy>
#include <QTest>

#include "example_study.h"
#include "gui/recipe/lock_button.h"
#include "gui/recipe/recipe_panel.h"
#include "gui/recipe/recipe_row.h"
#include "gui/recipe/sensitivity_strip.h"
#include "gui/recipe/strip_layout.h"
#include "gui/recipe/verdict_strip.h"
#include "gui/recipe/verdict_text.h"
#include "gui/study/locks.h"
#include "sim/plan/verdict.h"

namespace cpfit::gui {
namespace {

Variation variation(const std::string& value, bool legal, double step, bool current = false) {
  Variation v;
  v.value = value;
  v.legal = legal;
  v.step = Seconds(step);
  v.fit = Fit::kFits;
  v.current = current;
  return v;
}

TEST(StripLayout, HeightsAreStepTimesAndNoneVanishes) {
  const std::vector<Variation> variations = {variation("1", true, 4.0), variation("2", true, 2.0), variation("4", false, 0.0),
                                             variation("8", true, 0.4)};
  const std::vector<StripColumn> columns = strip_columns(QRectF(0, 0, 80, 24), variations);
  ASSERT_EQ(columns.size(), 4u);
  EXPECT_DOUBLE_EQ(columns[0].bar.height(), 24.0);  // the slowest
  EXPECT_DOUBLE_EQ(columns[1].bar.height(), 12.0);  // half of it
  EXPECT_DOUBLE_EQ(columns[3].bar.height(), 4.0);   // a sixth at least
  EXPECT_DOUBLE_EQ(columns[1].bar.bottom(), 24.0);
  EXPECT_EQ(column_at(columns, 25.0), 1u);  // 20 pixels each
  EXPECT_EQ(column_at(columns, 1000.0), 3u);
  EXPECT_FALSE(column_at({}, 1.0));
}

TEST(StripLayout, StepsSkipWhatIsNotLegal) {
  const std::vector<Variation> variations = {variation("1", true, 1, true), variation("2", false, 0), variation("4", true, 1),
                                             variation("8", true, 1)};
  EXPECT_EQ(legal_step(variations, 1), 2u);
  EXPECT_EQ(legal_step(variations, 2), 3u);
  EXPECT_EQ(legal_step(variations, 99), 3u);
  EXPECT_FALSE(legal_step(variations, -1));
  EXPECT_EQ(nearest_legal_column(variations, 1), 0u);
}

TEST(VerdictText, TheLimitIsTheLargestLossOrTheWorkItself) {
  TimeBreakdown time;
  time.compute = Seconds(9.0);
  time.bubble = Seconds(1.0);
  EXPECT_EQ(limit_of(time), "pipeline bubble, 10 % of the step");
  time.bubble = Seconds(0.1);
  EXPECT_TRUE(limit_of(time).startsWith("compute")) << limit_of(time).toStdString();
}

// Three hops of 1 + 2 ms a layer are 9 ms of messages; 0.9 ms exposed leave 90 % hidden. An all-gather has no hops to hide.
TEST(VerdictText, HiddenIsSaidOfRingsOnly) {
  CpExposure cp;
  cp.forward_message = milliseconds(1);
  cp.backward_message = milliseconds(2);
  cp.backward_exposed = milliseconds(0.9);
  TimeBreakdown time;
  time.exposed_cp = Seconds(0.1);
  Recipe recipe;
  recipe.cp = 4;
  ASSERT_TRUE(hidden_share(cp, time, recipe));
  EXPECT_NEAR(*hidden_share(cp, time, recipe), 0.9, 1e-12);
  cp.backward_exposed = Seconds(0);
  EXPECT_FALSE(hidden_share(cp, time, recipe));  // exposed, but not by a hop: "100 % hidden" would be wrong
  recipe.cp_comm = CpComm::kAllGather;
  EXPECT_FALSE(hidden_share(cp, time, recipe));
}

TEST(VerdictText, TheSmallestLeverThatIsEnoughIsNamed) {
  std::vector<Lever> levers(3);
  levers[0] = {"recompute=full", "", "step +30 %", 5.0, {"recompute"}};
  levers[1] = {"cp=8", "", "step +2 %", 1.2, {"cp"}};
  levers[2] = {"nodes=2", "", "twice the GPUs", 1.0, {"cluster"}};
  const std::optional<Lever> found = smallest_enough(levers);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->change, "cp=8");
  levers[1].gain = 0.4;
  EXPECT_EQ(smallest_enough(levers)->change, "recompute=full");
}

class Panel : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(document.open_text(example_toml("32k"), "test.toml").empty());
    ASSERT_TRUE(QTest::qWaitFor([&] { return !live.is_busy(); }, 60'000));
    document.set_recipe(example_design("tp=2,cp=4,pp=1,dp=1,recompute=full").recipe, "start");
    panel.resize(380, 900);
    panel.show();
    verdict.resize(1000, 90);
    verdict.show();
    settle();
  }
  void settle() {
    ASSERT_TRUE(QTest::qWaitFor([&] { return !live.is_busy(); }, 60'000));
  }
  StudyDocument document;
  Jobs jobs;
  Selection selection;
  LiveEstimate live{document, jobs, example_rates()};
  RecipePanel panel{document, live, selection};
  VerdictStrip verdict{live, document};
};

TEST_F(Panel, ArrowKeysStepOverLegalValues) {
  SensitivityStrip* strip = panel.row("tp")->strip();
  strip->setFocus();
  QTest::keyClick(strip, Qt::Key_Up);
  EXPECT_EQ(document.design().recipe.tp, 2);  // cp 4 x tp 4 would need 16 of 8 GPUs
  QTest::keyClick(strip, Qt::Key_Down);
  EXPECT_EQ(document.design().recipe.tp, 1);
  settle();
  EXPECT_EQ(document.design().recipe.dp, 2);  // follows, so that all GPUs are used
  QTest::keyClick(strip, Qt::Key_Up);
  settle();
  EXPECT_EQ(document.design().recipe.tp, 2);
  EXPECT_EQ(document.design().recipe.world(), 8);
}

TEST_F(Panel, ADragIsOneUndoStep) {
  SensitivityStrip* strip = panel.row("micro_batch")->strip();
  const int before = document.undo().count();
  const std::vector<StripColumn> columns = strip_columns(QRectF(strip->rect()).adjusted(2, 3, -2, -3), strip->variations());
  ASSERT_GE(columns.size(), 3u);
  QTest::mousePress(strip, Qt::LeftButton, {}, columns[1].place.center().toPoint());
  QMouseEvent move(QEvent::MouseMove, columns[2].place.center(), strip->mapToGlobal(columns[2].place.center()), Qt::LeftButton,
                   Qt::LeftButton, {});
  QApplication::sendEvent(strip, &move);
  EXPECT_EQ(document.undo().count(), before + 1);
  document.undo().undo();
  EXPECT_EQ(document.design().recipe.micro_batch, 1);
}

TEST_F(Panel, AnIllegalValueShowsItsRuleAndNearestLegalOnes) {
  RecipeRow* row = panel.row("sequence_length");
  auto* box = row->findChild<QLineEdit*>();
  box->setFocus();
  box->selectAll();
  QTest::keyClicks(box, "32769");
  QTest::keyClick(box, Qt::Key_Return);
  EXPECT_EQ(document.design().training().sequence.count(), 32769);
  EXPECT_FALSE(live.now().legal());
  settle();
  QString shown;
  RecipeRow* troubled = nullptr;
  for (const Parameter& parameter : parameters()) {
    if (RecipeRow* each = panel.row(std::string(parameter.key)); !each->trouble().isEmpty()) {
      troubled = each;
      break;
    }
  }
  ASSERT_NE(troubled, nullptr);
  EXPECT_THAT(troubled->trouble().toStdString(), testing::HasSubstr("32769"));
}

TEST_F(Panel, AButtonTakesTheNearestLegalValue) {
  ASSERT_TRUE(document.set_value("global_batch", "3").empty());
  ASSERT_TRUE(document.set_value("cp", "2").empty());  // dp follows: 2, and 3 sequences do not divide over it
  settle();
  ASSERT_FALSE(live.now().legal());
  const std::string key = parameter_of(live.now().problems.front());
  QPushButton* button = panel.row(key)->findChild<QPushButton*>();
  ASSERT_NE(button, nullptr) << key;
  QTest::mouseClick(button, Qt::LeftButton);
  settle();
  EXPECT_TRUE(live.now().legal());
}

TEST_F(Panel, UnreadableTextStaysInItsRow) {
  auto* box = panel.row("cp")->findChild<QLineEdit*>();
  box->setFocus();
  box->selectAll();
  QTest::keyClicks(box, "lots");
  QTest::keyClick(box, Qt::Key_Return);
  EXPECT_FALSE(panel.row("cp")->trouble().isEmpty());
  EXPECT_EQ(document.design().recipe.cp, 4);
}

TEST_F(Panel, TheDerivedSizeCannotBeTyped) {
  EXPECT_TRUE(panel.row("dp")->findChild<QLineEdit*>()->isReadOnly());
  EXPECT_FALSE(panel.row("cp")->findChild<QLineEdit*>()->isReadOnly());
  document.set_derived("cp");
  EXPECT_TRUE(panel.row("cp")->findChild<QLineEdit*>()->isReadOnly());
}

TEST_F(Panel, ALockedChoiceIsTurnedByNothingButUndo) {
  LockButton* lock = panel.row("cp")->lock();
  ASSERT_NE(lock, nullptr);
  EXPECT_EQ(panel.row("sequence_length")->lock(), nullptr) << "what is asked is not searched";
  EXPECT_EQ(lock->accessibleName(), "Lock CP");
  EXPECT_NE(lock->focusPolicy() & Qt::TabFocus, 0);
  lock->setFocus();
  QTest::keyClick(lock, Qt::Key_Space);
  ASSERT_TRUE(document.locks().contains("cp"));
  EXPECT_EQ(lock->accessibleName(), "CP is locked");
  auto* box = panel.row("cp")->findChild<QLineEdit*>();
  EXPECT_TRUE(box->isReadOnly());
  EXPECT_FALSE(panel.row("cp")->strip()->isEnabled());
  QSignalSpy refused(&document, &StudyDocument::refused);
  EXPECT_EQ(document.set_value("cp", "2").at(0).code, "gui.locked");
  const Recipe other = example_design("tp=2,cp=2,pp=1,dp=2,recompute=full").recipe;
  EXPECT_EQ(document.set_recipe(other, "from a list").at(0).message, "CP is locked at 4");
  EXPECT_EQ(document.design().recipe.cp, 4);
  EXPECT_EQ(refused.count(), 2);
  // One that keeps it is taken.
  EXPECT_TRUE(document.set_recipe(example_design("tp=1,cp=4,pp=1,dp=2,recompute=none").recipe, "from a list").empty());
  // Undo goes past locks: the step before the lock comes back whole.
  document.undo().undo();
  document.undo().undo();
  QTest::keyClick(lock, Qt::Key_Space);
  EXPECT_TRUE(document.locks().empty());
  EXPECT_FALSE(box->isReadOnly());
  EXPECT_TRUE(document.set_value("cp", document.design().recipe.cp == 2 ? "4" : "2").empty());
}

TEST_F(Panel, ALockedDegreeDoesNotFollowAndAnotherOneDoes) {
  ASSERT_EQ(document.derived(), "dp");
  panel.row("dp")->lock()->click();
  EXPECT_EQ(document.derived(), "cp") << "the first that is free, of dp, cp, tp, pp";
  ASSERT_TRUE(document.set_value("tp", "4").empty());
  EXPECT_EQ(document.design().recipe.dp, 1);
  EXPECT_EQ(document.design().recipe.cp, 2);  // 8 GPUs over tp 4
  for (const char* key : {"cp", "tp", "pp"}) document.set_locked(key, true);
  EXPECT_EQ(document.derived(), "");
  document.set_derived("tp");
  EXPECT_EQ(document.derived(), "") << "what is locked cannot follow";
}

TEST_F(Panel, TheBestIsTheBestOfThoseThatKeepTheLocks) {
  document.set_locked("cp", true);
  document.set_locked("tp", true);
  settle();
  ASSERT_TRUE(live.search());
  // By hand: of the feasible recipes with cp 4 and tp 2 the fastest, for there is one CP degree only.
  const Requirements& requirements = live.search()->scenario->requirements;
  const Candidate* fastest = nullptr;
  for (const Candidate& candidate : live.search()->evaluated) {
    if (candidate.recipe.cp != 4 || candidate.recipe.tp != 2 || !judge_candidate(candidate, requirements).feasible()) continue;
    if (fastest == nullptr || candidate.time.step() < fastest->time.step()) fastest = &candidate;
  }
  ASSERT_EQ(live.best().has_value(), fastest != nullptr);
  if (fastest != nullptr) {
    EXPECT_EQ(live.best()->time.step(), fastest->time.step());
  }
  for (const Lever& lever : live.levers()) {
    EXPECT_THAT(lever.differs, testing::Not(testing::Contains("cp"))) << lever.change;
    EXPECT_THAT(lever.differs, testing::Not(testing::Contains("tp"))) << lever.change;
  }
  document.set_locks({});
  ASSERT_EQ(live.best().has_value(), live.search()->plan.ships);
  if (live.best()) {
    EXPECT_EQ(live.best()->recipe, live.search()->plan.ship.recipe);
  }
}

TEST_F(Panel, NoOtherValueIsProposedForALockedOne) {
  ASSERT_TRUE(document.set_value("vpp", "2").empty());  // chunks without a pipeline
  settle();
  ASSERT_FALSE(live.now().legal());
  const std::string key = parameter_of(live.now().problems.front());
  ASSERT_TRUE(is_lockable(key)) << key;
  ASSERT_NE(panel.row(key)->findChild<QPushButton*>(), nullptr);
  document.set_locked(key, true);
  QTest::qWait(0);  // buttons go with the next turn of the loop
  EXPECT_EQ(panel.row(key)->findChild<QPushButton*>(), nullptr);
  EXPECT_FALSE(panel.row(key)->trouble().isEmpty()) << "the rule stays said";
}

TEST_F(Panel, EveryControlHasAnAccessibleName) {
  for (const QWidget* widget : panel.findChildren<QWidget*>()) {
    if (widget->focusPolicy() == Qt::NoFocus || qobject_cast<const QAbstractScrollArea*>(widget) != nullptr ||
        qobject_cast<const QLabel*>(widget) != nullptr)
      continue;
    if (widget->objectName().startsWith("qt_")) continue;
    EXPECT_FALSE(widget->accessibleName().isEmpty()) << widget->metaObject()->className();
  }
}

TEST_F(Panel, TheVerdictHasItsFiveAnswersAndTheDifference) {
  ASSERT_EQ(verdict.cells().size(), 5u);
  EXPECT_TRUE(verdict.cells()[0].delta.isEmpty());
  document.pin_baseline({document.design(), *live.now().candidate, "base"});
  ASSERT_TRUE(document.set_value("recompute", "none").empty());
  // Without recompute the step is shorter and the memory more.
  EXPECT_TRUE(verdict.cells()[0].delta.startsWith("+")) << verdict.cells()[0].delta.toStdString();
  EXPECT_TRUE(verdict.cells()[1].delta.startsWith(QChar(0x2212))) << verdict.cells()[1].delta.toStdString();
  EXPECT_FALSE(verdict.cells()[0].better);
  EXPECT_TRUE(verdict.cells()[1].better);
}

TEST_F(Panel, EveryNumberOfTheVerdictSaysWhatItRestsOn) {
  for (const VerdictCell& cell : verdict.cells()) EXPECT_FALSE(cell.source.isEmpty()) << cell.id.toStdString();
  EXPECT_TRUE(verdict.cells()[1].tip.contains("attention fitted")) << verdict.cells()[1].tip.toStdString();
  Estimate estimate = live.now();
  for (auto& [what, evidence] : estimate.sources) evidence = "fitted";
  EXPECT_EQ(verdict_cells(estimate, shown_candidate(live), std::nullopt)[1].mark, QString::fromUtf8("◐"));
  for (auto& [what, evidence] : estimate.sources) evidence = what == "cp_links" ? "assumed" : "measured";
  const std::vector<VerdictCell> cells = verdict_cells(estimate, shown_candidate(live), std::nullopt);
  EXPECT_EQ(cells[1].mark, QString::fromUtf8("○")) << "the weakest of what a step rests on";
  EXPECT_EQ(cells[2].mark, QString::fromUtf8("○"));
  for (auto& [what, evidence] : estimate.sources) evidence = "measured";
  EXPECT_EQ(verdict_cells(estimate, shown_candidate(live), std::nullopt)[1].mark, "●");
  EXPECT_TRUE(verdict_line(live.now(), shown_candidate(live), std::nullopt).contains("[fitted]"));
}

TEST_F(Panel, ATryOfTheClusterReachesTheVerdictAndEndsWithTheNextEdit) {
  ASSERT_TRUE(QTest::qWaitFor([&] { return live.simulation_is_current(); }, 60'000));
  auto slower = std::make_shared<SimulatedStep>(*live.simulation());
  slower->now.candidate.time.exposed_cp += Seconds(1.0);
  const QString before = verdict.cells()[1].value;
  live.set_what_if(slower, "2 edited links");
  EXPECT_NE(verdict.cells()[1].value, before);
  EXPECT_EQ(verdict.cells()[1].note, "with 2 edited links");
  EXPECT_EQ(verdict.cells()[1].mark, "✎");
  EXPECT_EQ(verdict.cells()[0].mark, "◐") << "memory does not change with links";
  live.set_what_if(nullptr, {});
  EXPECT_EQ(verdict.cells()[1].value, before);
  live.set_what_if(slower, "2 edited links");
  ASSERT_TRUE(document.set_value("micro_batch", "2").empty());
  EXPECT_EQ(live.what_if(), nullptr);
  EXPECT_NE(verdict.cells()[1].mark, "✎");
}

TEST_F(Panel, TheVerdictsNumbersRevealTheirPlaceByKeyboard) {
  QSignalSpy reveal(&verdict, &VerdictStrip::reveal);
  verdict.setFocus();
  QTest::keyClick(&verdict, Qt::Key_Right);
  QTest::keyClick(&verdict, Qt::Key_Return);
  ASSERT_EQ(reveal.count(), 1);
  EXPECT_EQ(reveal.front().front().toString(), "step");
}

}  // namespace
}  // namespace cpfit::gui
