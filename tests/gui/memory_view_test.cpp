// Memory, the curve and the feasible degrees: models, pure figures, and the views driven by keyboard and mouse.
#include <gmock/gmock.h>
#include <qcustomplot.h>

#include <QAbstractItemModelTester>
#include <QComboBox>
#include <QSignalSpy>
#include <QTableView>
#include <QTableWidget>
#include <QTest>

#include "example_study.h"
#include "gui/look/color_tokens.h"
#include "gui/look/theme.h"
#include "gui/memory/feasible_grid.h"
#include "gui/memory/feasible_view.h"
#include "gui/memory/free_list.h"
#include "gui/memory/length_curve.h"
#include "gui/memory/memory_tree.h"
#include "gui/memory/memory_view.h"
#include "gui/memory/stage_bars.h"
#include "gui/memory/sweep_figures.h"

namespace cpfit::gui {
namespace {

using testing::ElementsAre;

Bytes sum_of(const std::vector<MemoryNode>& nodes) {
  Bytes sum;
  for (const MemoryNode& node : nodes) sum += node.bytes;
  return sum;
}

TEST(MemoryNodes, SumToTheStageAndGroupTheSmall) {
  Estimator estimator(example_rates());
  const StageLedger ledger = estimator.ledger(example_design(), 0);
  const std::vector<MemoryNode> nodes = memory_nodes(ledger);
  ASSERT_GE(nodes.size(), 3u);
  EXPECT_NEAR(sum_of(nodes).value(), ledger.summary.device.value(), 1.0);
  for (std::size_t i = 1; i < nodes.size(); ++i) EXPECT_GE(nodes[i - 1].bytes, nodes[i].bytes);
  for (const MemoryNode& node : nodes)
    EXPECT_NEAR(sum_of(node.children).value(), node.bytes.value(), 1.0) << node.name.toStdString();
}

TEST(MemoryNodes, OtherHoldsWhatIsBelowAHundredth) {
  StageLedger ledger;
  ledger.summary.device = Bytes(1000);
  // Four shown whatever their size, then 20 (2 %) is large enough, 5 and 4 are not.
  for (const double bytes : {400.0, 300.0, 200.0, 71.0, 20.0, 5.0, 4.0})
    ledger.entries.push_back({Component::kWeights, "w", "f", "s", Bytes(bytes)});
  const std::vector<MemoryNode> nodes = memory_nodes(ledger);
  ASSERT_EQ(nodes.size(), 1u);
  ASSERT_EQ(nodes[0].children.size(), 6u);
  EXPECT_EQ(nodes[0].children[5].name, "other (2)");
  EXPECT_EQ(nodes[0].children[5].bytes, Bytes(9));
  EXPECT_EQ(nodes[0].children[5].children.size(), 2u);
}

TEST(MemoryTreeModel, ObeysTheRulesOfModels) {
  Estimator estimator(example_rates());
  MemoryTree tree;
  const QAbstractItemModelTester tester(&tree, QAbstractItemModelTester::FailureReportingMode::Fatal);
  tree.set_nodes(memory_nodes(estimator.ledger(example_design(), 0)));
  ASSERT_GT(tree.rowCount(), 0);
  const QModelIndex component = tree.index(0, 0);
  ASSERT_GT(tree.rowCount(component), 0);
  EXPECT_EQ(tree.parent(tree.index(0, 0, component)), component);
  tree.set_nodes({});
  EXPECT_EQ(tree.rowCount(), 0);
}

TEST(FreeListModel, ObeysTheRulesOfModelsAndPutsFitsFirst) {
  Estimator estimator(example_rates());
  const Design design = example_design("tp=2,cp=2,pp=1,dp=2,recompute=none");
  const Estimate estimate = estimator.estimate(design, std::nullopt);
  ASSERT_TRUE(estimate.legal());
  std::map<std::string, std::vector<Variation>> variations;
  for (const char* key : {"recompute", "cp", "tp", "pp", "micro_batch"}) variations[key] = estimator.vary(design, key, "dp");
  const std::vector<FreeingChange> changes = freeing_changes(estimate, variations);
  ASSERT_FALSE(changes.empty());
  bool still = false;
  for (const FreeingChange& change : changes) {
    EXPECT_GT(change.freed.value(), 0.0);
    if (change.fit != Fit::kFits) still = true;
    EXPECT_FALSE(still && change.fit == Fit::kFits) << "fits stand first";
    EXPECT_EQ(change.caution.isEmpty(), change.key != "recompute" && change.key != "micro_batch") << change.key;
  }
  FreeList list;
  const QAbstractItemModelTester tester(&list, QAbstractItemModelTester::FailureReportingMode::Fatal);
  list.set_changes(changes);
  EXPECT_EQ(list.rowCount(), static_cast<int>(changes.size()));
}

/// Degrees 1, 2, 4 at two lengths: 1 fits only the short one, 4 exposes.
Sweep small_sweep() {
  Sweep sweep;
  sweep.cps = {1, 2, 4};
  sweep.lengths = {1024, 2048};
  sweep.sequence = 2048;
  const auto add = [&](std::int32_t cp, std::int64_t length, Fit fit, double exposed, double rate) {
    Candidate c;
    c.recipe.cp = cp;
    c.verdict.fit = fit;
    c.time.compute = Seconds(1.0 - exposed);
    c.time.exposed_cp = Seconds(exposed);
    c.tokens_per_second_per_gpu = rate;
    sweep.points.push_back({cp, length, cp, c, ""});
  };
  add(1, 1024, Fit::kFits, 0.0, 10.0);
  add(1, 2048, Fit::kOom, 0.0, 9.0);
  add(2, 1024, Fit::kFits, 0.01, 9.0);
  add(2, 2048, Fit::kFits, 0.02, 9.5);
  add(4, 1024, Fit::kFits, 0.2, 8.0);
  add(4, 2048, Fit::kFits, 0.1, 8.5);
  return sweep;
}

TEST(SweepFigures, FloorAndCeilingAreSetsOfDegrees) {
  const Sweep sweep = small_sweep();
  Requirements requirements;  // 5 % of the step may be exposed
  const LengthAnswer answer = answer_at(sweep, 2048, requirements);
  EXPECT_THAT(answer.fit, ElementsAre(2, 4));
  EXPECT_THAT(answer.hide, ElementsAre(1, 2));
  EXPECT_THAT(answer.feasible, ElementsAre(2));
  EXPECT_EQ(needed_at(sweep), 2048);
  EXPECT_EQ(faster_at(sweep), 2048);
  EXPECT_EQ(state_of(*point_of(sweep, 4, 2048), requirements), CellState::kExposed);
  EXPECT_EQ(state_of(*point_of(sweep, 1, 2048), requirements), CellState::kTooMuch);
  EXPECT_TRUE(sentence_of(answer).contains("only CP 2 does both"));
}

TEST(SweepFigures, AnEmptyIntervalIsSaid) {
  const LengthAnswer answer{131072, {8, 16}, {1, 2}, {}};
  EXPECT_TRUE(sentence_of(answer).contains("no degree does both"));
  EXPECT_TRUE(sentence_of({131072, {}, {1}, {}}).contains("no degree shown fits"));
}

class Views : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(document.open_text(example_toml("64k"), "test.toml").empty());
    settle();
    document.set_recipe(example_design("tp=2,cp=2,pp=2,dp=1,recompute=none").recipe, "start");
    settle();
    for (StudyView* view : std::initializer_list<StudyView*>{&memory, &curve, &feasible}) {
      view->resize(700, 600);
      view->show();
    }
  }
  void settle() {
    ASSERT_TRUE(QTest::qWaitFor([&] { return !live.is_busy(); }, 60'000));
  }
  StudyDocument document;
  Jobs jobs;
  Selection selection;
  LiveEstimate live{document, jobs, example_rates()};
  MemoryView memory{document, live, selection};
  LengthCurve curve{document, live};
  FeasibleView feasible{document, live};
};

TEST_F(Views, AStageIsChosenByKeyboard) {
  memory.bars()->setFocus();
  memory.bars()->choose(0);
  QTest::keyClick(memory.bars(), Qt::Key_Down);
  EXPECT_EQ(memory.bars()->chosen(), 1);
  EXPECT_TRUE(memory.summary().startsWith("Stage 1"));
  memory.go_to_peak();
  EXPECT_EQ(memory.bars()->chosen(), live.now().candidate->memory.stage);
}

TEST_F(Views, AMomentShowsWhatIsAllocatedThen) {
  const QString at_peak = memory.summary();
  memory.moments()->setCurrentIndex(1);
  EXPECT_NE(memory.summary(), at_peak);
  EXPECT_TRUE(memory.summary().contains("allocated"));
}

TEST_F(Views, AFreeingChangeIsAppliedAndUndone) {
  ASSERT_GT(memory.free_table()->model()->rowCount(), 0);
  const Recipe before = document.design().recipe;
  const Bytes needed = live.now().candidate->memory.device;
  memory.free_table()->setCurrentIndex(memory.free_table()->model()->index(0, 0));
  memory.free_table()->setFocus();
  QTest::keyClick(memory.free_table(), Qt::Key_Return);
  EXPECT_LT(live.now().candidate->memory.device, needed);
  document.undo().undo();
  EXPECT_EQ(document.design().recipe, before);
}

TEST_F(Views, TheTableOfMemoryHoldsEveryTensorOfEveryStage) {
  const QString csv = memory.csv();
  EXPECT_TRUE(csv.startsWith("stage,component,tensor,bytes"));
  EXPECT_TRUE(csv.contains("\n0,") && csv.contains("\n1,"));
}

TEST_F(Views, TheCurveFollowsTheTheme) {
  // The rim above the axes shows the plot's own ground, nothing else.
  const QPoint rim(curve.plot()->width() / 2, 1);
  for (const Theme theme : {Theme::kDark, Theme::kLight}) {
    curve.setPalette(palette_of(theme));
    ASSERT_TRUE(
        QTest::qWaitFor([&] { return curve.plot()->grab().toImage().pixelColor(rim) == tokens_of(theme).surface; }, 5'000))
        << curve.plot()->grab().toImage().pixelColor(rim).name().toStdString();
  }
}

TEST_F(Views, TheCurveZoomsAroundThePointerAndFits) {
  const QCPRange whole = curve.plot()->xAxis->range();
  const QPointF at(curve.plot()->axisRect()->center());
  const double under = curve.plot()->xAxis->pixelToCoord(at.x());
  QWheelEvent wheel(at, curve.plot()->mapToGlobal(at), {}, {0, 120}, Qt::NoButton, Qt::ControlModifier, Qt::NoScrollPhase, false);
  QApplication::sendEvent(curve.plot(), &wheel);
  EXPECT_LT(curve.plot()->xAxis->range().size(), whole.size());
  EXPECT_NEAR(curve.plot()->xAxis->pixelToCoord(at.x()) / under, 1.0, 0.01);
  curve.plot()->setFocus();
  QTest::keyClick(curve.plot(), Qt::Key_Home);
  EXPECT_NEAR(curve.plot()->xAxis->range().size(), whole.size(), 1.0);
}

TEST_F(Views, TheCurveHasAGraphPerFamilyPeakAndDegree) {
  std::size_t degrees = 0;
  for (const std::int32_t cp : live.sweep()->cps) degrees += points_of(*live.sweep(), cp).empty() ? 0 : 1;
  EXPECT_EQ(static_cast<std::size_t>(curve.plot()->graphCount()), 6 + 2 + degrees);
  EXPECT_EQ(curve.csv().count('\n'), static_cast<qsizetype>(live.sweep()->points.size()) + 1);
}

TEST_F(Views, ACellIsWalkedToAndTaken) {
  QSignalSpy taken(feasible.grid(), &FeasibleGrid::taken);
  feasible.grid()->setFocus();
  QTest::keyClick(feasible.grid(), Qt::Key_Left);
  EXPECT_FALSE(feasible.grid()->accessibleDescription().isEmpty());
  QTest::keyClick(feasible.grid(), Qt::Key_Return);
  ASSERT_EQ(taken.count(), 1);
  EXPECT_LT(document.design().training().sequence.count(), 65536);
}

}  // namespace
}  // namespace cpfit::gui
