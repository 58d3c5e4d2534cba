// Compare: parts that sum exactly, what is no equal comparison, and the view by keyboard and mouse.
#include <gmock/gmock.h>

#include <QComboBox>
#include <QPushButton>
#include <QTabWidget>
#include <QTableWidget>
#include <QTest>
#include <numeric>

#include "example_study.h"
#include "gui/compare/compare_view.h"
#include "gui/compare/twin_steps.h"
#include "gui/compare/waterfall_plot.h"
#include "gui/results/results_view.h"
#include "gui/timeline/timeline_view.h"
#include "small_step.h"

namespace cpfit::gui {
namespace {

using testing::ElementsAre;

TEST(WholeParts, SumToTheRoundedSum) {
  // 0.4 + 0.4 + 0.4 = 1.2, rounded 1: one of them gets the unit.
  EXPECT_THAT(whole_parts({0.4, 0.4, 0.4}), ElementsAre(1, 0, 0));
  // 1.6 + 2.7 = 4.3, rounded 4: 2 + 3 are one too many, taken from the larger.
  EXPECT_THAT(whole_parts({1.6, 2.7}), ElementsAre(2, 2));
  EXPECT_THAT(whole_parts({}), ElementsAre());
  EXPECT_THAT(whole_parts({5.0, 0.0}), ElementsAre(5, 0));
}

ComparedSide side(const char* name, const std::string& recipe, const std::string& sequence = "128k") {
  ComparedSide made{name, example_design(recipe, sequence), {}};
  Estimator estimator(example_rates());
  const Estimate estimate = estimator.estimate(made.design, std::nullopt);
  EXPECT_TRUE(estimate.legal()) << recipe;
  if (estimate.legal()) made.candidate = *estimate.candidate;
  return made;
}

TEST(Waterfalls, SumExactlyToTheDifference) {
  for (const auto& [left, right] : {std::pair("tp=2,cp=4,pp=1,dp=1,recompute=full", "tp=4,cp=2,pp=1,dp=1,recompute=full"),
                                    {"tp=2,cp=4,pp=1,dp=1,recompute=full", "tp=2,cp=1,pp=2,dp=2,recompute=full"},
                                    {"tp=8,cp=1,pp=1,dp=1,recompute=none", "tp=1,cp=8,pp=1,dp=1,recompute=none"}}) {
    const ComparedSide a = side("A", left), b = side("B", right);
    for (const bool time : {true, false}) {
      const std::vector<WaterfallRow> rows = time ? time_waterfall(a, b) : memory_waterfall(a, b);
      ASSERT_GE(rows.size(), 3u);
      EXPECT_EQ(rows.front().kind, PartKind::kTotal);
      EXPECT_EQ(rows.back().kind, PartKind::kTotal);
      std::int64_t sum = 0, of_a = 0, of_b = 0, level = rows.front().to;
      for (const WaterfallRow& row : rows) {
        if (row.kind == PartKind::kTotal) continue;
        sum += row.change();
        of_a += row.a;
        of_b += row.b;
        EXPECT_EQ(row.from, level) << "each begins where the last ended";
        level = row.to;
      }
      EXPECT_EQ(sum, rows.back().to - rows.front().to);
      EXPECT_EQ(of_a, rows.front().to);
      EXPECT_EQ(of_b, rows.back().to);
      EXPECT_EQ(level, rows.back().to);
      // And the totals are the candidates' own, to half a unit and what summing in another order loses.
      const double total = time ? a.candidate.time.step().value() * 1e12 : a.candidate.memory.device.value();
      EXPECT_NEAR(static_cast<double>(rows.front().to), total, 1.0);
    }
  }
}

TEST(Waterfalls, AreCutOnlyWhereTheDifferenceWouldBeASliver) {
  const auto rows = [](std::int64_t a, std::int64_t b) {
    return std::vector<WaterfallRow>{{"A", PartKind::kTotal, 0, a, a, a, 0, false},
                                     {"part", PartKind::kPart, a, b, a, b, 0, false},
                                     {"B", PartKind::kTotal, 0, b, b, b, 0, false}};
  };
  EXPECT_FALSE(waterfall_axis(rows(100, 40)).is_cut());
  const WaterfallAxis cut = waterfall_axis(rows(1000, 990));
  EXPECT_TRUE(cut.is_cut());
  EXPECT_LT(cut.low, 990);
  EXPECT_GE(cut.high, 1000);
  EXPECT_FALSE(waterfall_axis(rows(7, 7)).is_cut()) << "nothing moves";
}

TEST(EqualComparison, NamesWhatIsNotHeld) {
  const ComparedSide a = side("A", "tp=2,cp=4,pp=1,dp=1,recompute=full");
  EXPECT_TRUE(unequal_reasons(a, side("B", "tp=4,cp=2,pp=1,dp=1,recompute=full")).isEmpty()) << "degrees may differ";
  const QStringList recompute = unequal_reasons(a, side("B", "tp=2,cp=4,pp=1,dp=1,recompute=none"));
  ASSERT_EQ(recompute.size(), 1);
  EXPECT_TRUE(recompute[0].contains("recompute"));
  const QStringList batch = unequal_reasons(a, side("B", "tp=2,cp=4,pp=1,dp=1,recompute=full", "64k"));
  ASSERT_EQ(batch.size(), 1);
  EXPECT_TRUE(batch[0].contains("1,048,576 against 524,288")) << batch[0].toStdString();  // 8 x 128k, 8 x 64k
  ComparedSide other = a;
  Scenario scenario = *a.design.scenario;
  scenario.cluster.gpu.name = "H200-SXM-141GB";
  scenario.model.layers += 1;
  other.design.scenario = std::make_shared<const Scenario>(scenario);
  EXPECT_EQ(unequal_reasons(a, other).size(), 2) << "model and hardware";
}

TEST(EqualComparison, ListsEveryInputThatDiffers) {
  const ComparedSide a = side("A", "tp=2,cp=4,pp=1,dp=1,recompute=full");
  const std::vector<InputDifference> found =
      input_differences(a, side("B", "tp=4,cp=2,pp=1,dp=1,micro_batch=2,recompute=none", "64k"));
  QStringList names;
  for (const InputDifference& each : found) names.append(each.name);
  EXPECT_EQ(names, (QStringList{"Sequence", "Tokens per step", "TP", "CP", "Micro-batch", "Recompute"}))
      << names.join(", ").toStdString();
  EXPECT_TRUE(found[1].unequal);
  EXPECT_FALSE(found[2].unequal);
  EXPECT_TRUE(found[4].policy) << "micro-batch";
  EXPECT_TRUE(found[5].unequal) << "recompute";
  EXPECT_TRUE(input_differences(a, a).empty());
}

/// One rank that attends 0-100 and 130-230 us, its message 10-130 us, 1 MB, whose last 30 us keep it waiting; `slow` times that.
std::shared_ptr<const StepPicture> one_rank(std::int64_t slow) {
  Timeline step;
  step.step = 230 * slow * test::kMicro;
  step.names = {"attention 0", "receive kv 0"};
  LaneSpan message = test::span(10 * slow, 130 * slow, SpanKind::kCp, 1);
  message.exposed = 30 * slow * test::kMicro;
  message.bytes = 1e6;
  step.lanes.push_back(
      {0,
       "compute",
       {test::span(0, 100 * slow, SpanKind::kAttention, 0), test::span(130 * slow, 230 * slow, SpanKind::kAttention, 0)}});
  step.lanes.push_back({0, "cp receive", {message}});
  return picture_of(std::move(step), {{.node = 0, .rank = 0, .stage = 0}});
}

std::vector<std::int64_t> micros(const std::vector<TwinRow>& rows, std::int64_t (TwinRow::*of)() const) {
  std::vector<std::int64_t> values;
  for (const TwinRow& row : rows) {
    if (!row.bytes) values.push_back((row.*of)() / test::kMicro);
  }
  return values;
}

TEST(TwinSums, AreExactAndTheirDifferenceIsSigned) {
  const auto a = one_rank(1), b = one_rank(2);
  const TimeWindow stretch{50 * test::kMicro, 150 * test::kMicro};
  const RangeSums of_a = sums_inside(*a, 0, stretch), of_b = sums_inside(*b, 0, stretch);
  // A: attention 50-100 and 130-150, waiting 100-130, the message 50-130 of which 30 wait. B is still in its first attention,
  // 0-200, with its message 20-260 beside it.
  EXPECT_EQ(of_a.compute, 70 * test::kMicro);
  EXPECT_EQ(of_a.exposed, 30 * test::kMicro);
  EXPECT_EQ(of_a.hidden(), 50 * test::kMicro);
  EXPECT_EQ(of_b.compute, 100 * test::kMicro);
  const std::vector<TwinRow> rows = twin_rows(of_a, of_b);
  EXPECT_THAT(micros(rows, &TwinRow::change), ElementsAre(0, 30, -30, 0, 50));
  EXPECT_EQ(rows[1].change_text(), QStringLiteral("+30 µs"));
  EXPECT_EQ(rows[2].change_text(), QStringLiteral("−30 µs"));
  // 80 of 120 us of A's megabyte, 100 of 240 us of B's.
  EXPECT_EQ(rows[5].a, 666'667);
  EXPECT_EQ(rows[5].b, 416'667);
}

TEST(TwinSums, BehindTheEndOfAStepThereIsNothing) {
  const auto a = one_rank(1);
  const RangeSums sums = sums_inside(*a, 0, {200 * test::kMicro, 400 * test::kMicro});
  EXPECT_EQ(sums.range.length(), 30 * test::kMicro);
  EXPECT_EQ(sums.compute, 30 * test::kMicro);
  EXPECT_EQ(sums.idle, 0);
  EXPECT_EQ(sums_inside(*a, 0, {300 * test::kMicro, 400 * test::kMicro}).range.length(), 0);
}

class Compared : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(document.open_text(example_toml("64k"), "test.toml").empty());
    view.resize(1000, 640);
    view.show();
    settle();
    document.set_recipe(example_design("tp=2,cp=4,pp=1,dp=1,recompute=full").recipe, "start");
    settle();
  }
  void settle() {
    ASSERT_TRUE(QTest::qWaitFor([&] { return !live.is_busy(); }, 60'000));
  }
  void pin() { document.pin_baseline({document.design(), *live.now().candidate, "pinned"}); }
  StudyDocument document;
  Jobs jobs;
  Selection selection;
  LiveEstimate live{document, jobs, example_rates()};
  OpenedDatabase database{jobs};
  ResultsView results{document, live, jobs, database, selection};
  CompareView view{document, live, jobs, results.book(), selection};
};

TEST_F(Compared, TheBaselineWithTheRecipeNow) {
  pin();
  EXPECT_TRUE(view.summary().contains("same time and memory"));
  ASSERT_TRUE(document.set_value("cp", "2").empty());
  settle();
  EXPECT_FALSE(view.is_refused()) << view.summary().toStdString();
  ASSERT_FALSE(view.time()->rows().empty());
  EXPECT_EQ(view.time()->rows().front().name, "Baseline");
  EXPECT_GE(view.inputs()->rowCount(), 2);
  view.time()->setFocus();
  QTest::keyClick(view.time(), Qt::Key_Down);
  QTest::keyClick(view.time(), Qt::Key_Down);
  EXPECT_EQ(view.time()->current(), 1);
  EXPECT_TRUE(view.time()->accessibleDescription().contains("compute"));
  EXPECT_TRUE(view.command().contains(" && "));
}

TEST_F(Compared, BothStepsStandOnOneAxisAndMoveTogether) {
  pin();
  ASSERT_TRUE(document.set_value("cp", "2").empty());
  settle();
  view.tabs()->setCurrentIndex(1);
  TwinSteps& twin = *view.twin();
  ASSERT_TRUE(QTest::qWaitFor([&] { return twin.is_complete(); }, 60'000));
  TimelineView &a = *twin.timeline(0), &b = *twin.timeline(1);
  ASSERT_NE(a.state().picture(), nullptr);
  const std::int64_t step_a = a.state().picture()->timeline.step, step_b = b.state().picture()->timeline.step;
  ASSERT_NE(step_a, step_b);
  const std::int64_t longest = std::max(step_a, step_b);
  EXPECT_EQ(a.window(), (TimeWindow{0, longest})) << "both begin at 0, and the longer one fits";
  EXPECT_EQ(b.window(), a.window());
  // Without a stretch the whole steps: their lengths, and each adds up.
  // The control's rows have other names than the recipe's: times lie one under the other all the same.
  EXPECT_EQ(a.geometryOfParts().lanes.left(), b.geometryOfParts().lanes.left());
  EXPECT_EQ(a.geometryOfParts().label_width, std::max(a.wantedLabelWidth(), b.wantedLabelWidth()));
  const std::vector<TwinRow> all = twin.rows();
  EXPECT_EQ(all[0].a, step_a);
  EXPECT_EQ(all[0].b, step_b);
  // Zoom and pan of either move both.
  a.setFocus();
  QTest::keyClick(&a, Qt::Key_Plus);
  EXPECT_LT(a.window().length(), longest);
  EXPECT_EQ(b.window(), a.window());
  b.setFocus();
  QTest::keyClick(&b, Qt::Key_Left);
  EXPECT_EQ(b.window(), a.window());
  QTest::keyClick(&b, Qt::Key_Home);
  EXPECT_EQ(a.window(), (TimeWindow{0, longest}));
  // A stretch of one is summed in both; two neighbours add up to the whole, to the picosecond.
  const std::int64_t middle = step_a / 3;
  const auto rows_of = [&](TimeWindow time) {
    a.setRange(DraggedRange{time, a.state().picture()->last_rank, false});
    EXPECT_TRUE(b.state().range() && b.state().range()->time == time);
    return twin.rows();
  };
  const std::vector<TwinRow> left = rows_of({0, middle}), right = rows_of({middle, longest});
  for (std::size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(left[i].a + right[i].a, all[i].a) << all[i].name.toStdString();
    EXPECT_EQ(left[i].b + right[i].b, all[i].b) << all[i].name.toStdString();
    EXPECT_EQ(left[i].change() + right[i].change(), all[i].change());
  }
  EXPECT_EQ(twin.sums()->item(1, 3)->text(), right[1].change_text());
  EXPECT_TRUE(view.csv().startsWith("part,Baseline,Recipe now,difference,unit"));
  EXPECT_TRUE(view.command().contains("--fidelity timeline"));
  QTest::keyClick(&b, Qt::Key_Escape);
  EXPECT_FALSE(a.state().range()) << "Esc in either takes it back in both";
  EXPECT_EQ(twin.rows()[0].a, step_a);
}

TEST_F(Compared, AnotherRecomputeIsRefusedUntilAskedFor) {
  pin();
  ASSERT_TRUE(document.set_value("recompute", "none").empty());
  settle();
  ASSERT_TRUE(live.now().legal());
  EXPECT_TRUE(view.is_refused());
  EXPECT_TRUE(view.time()->rows().empty());
  EXPECT_TRUE(view.summary().contains("recompute differs")) << view.summary().toStdString();
  EXPECT_FALSE(view.csv().contains("\npart,"));
  ASSERT_TRUE(view.all_the_same()->isVisible());
  QTest::mouseClick(view.all_the_same(), Qt::LeftButton);
  EXPECT_FALSE(view.is_refused());
  EXPECT_FALSE(view.time()->rows().empty());
  EXPECT_TRUE(view.csv().contains("not equal,"));
  EXPECT_TRUE(view.csv().contains("\ntotal,"));
  ASSERT_TRUE(document.set_value("cp", "2").empty());
  EXPECT_TRUE(view.is_refused()) << "another pair is another question";
}

TEST_F(Compared, TwoResultRowsAndWhatIsMissing) {
  view.side_a()->setCurrentIndex(view.side_a()->findData(static_cast<int>(CompareSource::kRowB)));
  EXPECT_TRUE(view.summary().contains("marked B"));
  view.side_a()->setCurrentIndex(0);
  ResultBook& book = results.book();
  ASSERT_GE(book.rows().rows.size(), 2u);
  book.choose(book.rows().rows[0], nullptr);
  book.choose_other(book.rows().rows[1], nullptr);
  EXPECT_GE(view.inputs()->rowCount(), 1);
  EXPECT_EQ(view.inputs()->horizontalHeaderItem(2)->text(), "Result B");
  document.close();
  EXPECT_TRUE(view.summary().startsWith("Open a study"));
}

}  // namespace
}  // namespace cpfit::gui
