// Results: columns, filter, order, front, axes by tables; the model by its tester; the view by keyboard and mouse; a stored run.
#include <gmock/gmock.h>
#include <qcustomplot.h>

#include <QAbstractItemModelTester>
#include <QCheckBox>
#include <QComboBox>
#include <QHeaderView>
#include <QLineEdit>
#include <QMenu>
#include <QScrollBar>
#include <QTableView>
#include <QTemporaryDir>
#include <QTest>
#include <QTimer>
#include <QToolButton>
#include <cmath>

#include "db/store/run_store.h"
#include "example_study.h"
#include "gui/results/filter_bar.h"
#include "gui/results/parallel_axes.h"
#include "gui/results/parallel_plot.h"
#include "gui/results/pareto_plot.h"
#include "gui/results/result_filter.h"
#include "gui/results/result_table.h"
#include "gui/results/results_view.h"
#include "gui/view/frozen_columns.h"
#include "gui/view/plot_look.h"

namespace cpfit::gui {
namespace {

using testing::ElementsAre;

constexpr double kRow = 1024.0 * 1024.0 * 1024.0;

/// Four recipes: (cp, step s, memory GiB, fits): 1 does not fit; 2 and 4 trade time for memory; 8 is beaten by 4.
std::shared_ptr<const ResultSet> small_set() {
  std::vector<Candidate> candidates;
  const auto add = [&](std::int32_t cp, double step, double gib, Fit fit, const char* recompute) {
    Candidate c;
    c.recipe.cp = cp;
    c.recipe.recompute = parse_recompute(recompute).value();
    c.time.compute = Seconds(step);
    c.memory.device = Bytes(gib * kRow);
    c.verdict.fit = fit;
    c.tokens_per_second_per_gpu = 1000.0 / step;
    candidates.push_back(c);
  };
  add(1, 3.0, 90.0, Fit::kOom, "none");
  add(2, 4.0, 70.0, Fit::kFits, "none");
  add(4, 5.0, 40.0, Fit::kFits, "full");
  add(8, 6.0, 50.0, Fit::kFits, "block-10");
  PlanResult plan;
  plan.ships = plan.has_control = true;
  plan.ship = candidates[1];
  plan.control = candidates[0];
  return result_set("test", "cpfit plan", example_design().scenario, candidates, plan);
}

FilteredRows apply(const ResultSet& set, const ResultFilter& filter) {
  return filtered(set, filter, field_named("memory"), field_named("step"));
}

TEST(ResultColumns, HoldFiguresInTheUnitOfTheirHeaders) {
  const auto set = small_set();
  EXPECT_THAT(set->column("memory").values, ElementsAre(90.0, 70.0, 40.0, 50.0));
  EXPECT_THAT(set->column("cp").values, ElementsAre(1.0, 2.0, 4.0, 8.0));
  EXPECT_EQ(set->verdicts, (std::vector{RowVerdict::kControl, RowVerdict::kShip, RowVerdict::kOk, RowVerdict::kOk}));
  // "none" first, then by words: block-10, full.
  EXPECT_EQ(set->column("recompute").vocabulary, (QStringList{"none", "block-10", "full"}));
  EXPECT_THAT(set->column("recompute").values, ElementsAre(0.0, 0.0, 2.0, 1.0));
  EXPECT_TRUE(reason_of(*set, 1).contains("smallest CP"));
  EXPECT_TRUE(reason_of(*set, 0).contains("misses by")) << "the control does not fit, and says by how much";
  EXPECT_EQ(policy_of(*set, 2), "recompute") << "full against the control's none, which does not fit";
  EXPECT_EQ(policy_of(*set, 1), "");
}

TEST(ResultFields, AreFoundByUnambiguousBeginnings) {
  EXPECT_EQ(field_named("mem"), field_named("memory"));
  EXPECT_EQ(field_named("m"), kNoField) << "micro_batch, memory, margin, mfu";
  EXPECT_EQ(field_named("step"), field_named("step")) << "whole keys win over step_high";
  EXPECT_EQ(field_named(""), kNoField);
}

TEST(FilterTerms, AreReadWithUnits) {
  struct Row {
    const char* text;
    double low, high;
  };
  const double inf = std::numeric_limits<double>::infinity();
  for (const Row& row : {Row{"cp>=4", 4.0, inf},
                         {"memory <= 70 GiB", -inf, 70.0},
                         {"step<=800ms", -inf, 0.8},
                         {"memory>=1TiB", 1024.0, inf},
                         {"exposed≤5%", -inf, 5.0},
                         {"step<=2min", -inf, 120.0}}) {
    const Outcome<FilterTerm> term = parse_term(QString::fromUtf8(row.text));
    ASSERT_TRUE(term.ok()) << row.text;
    EXPECT_DOUBLE_EQ(term->low, row.low) << row.text;
    EXPECT_DOUBLE_EQ(term->high, row.high) << row.text;
  }
  EXPECT_LT(parse_term("memory<70")->high, 70.0) << "less is not equal";
  EXPECT_EQ(parse_term("recompute=none|full")->words, (QStringList{"none", "full"}));
  EXPECT_THAT(parse_term("cp=2|8")->values, ElementsAre(2.0, 8.0));
}

TEST(FilterTerms, SayWhatTheyDoNotUnderstand) {
  for (const auto& [text, code] : {std::pair("zigzag", "filter.form"),
                                   {"colour=red", "filter.field"},
                                   {"cp>=many", "filter.value"},
                                   {"memory<5s", "filter.value"},
                                   {"recompute<none", "filter.value"},
                                   {"cp>=1|2", "filter.value"},
                                   {"cp=", "filter.value"}}) {
    const Outcome<FilterTerm> term = parse_term(text);
    ASSERT_FALSE(term.ok()) << text;
    EXPECT_EQ(term.problems().front().code, code) << text;
    EXPECT_FALSE(term.problems().front().repair.empty());
  }
}

TEST(Filters, AreWrittenAndReadBackWithTheirFlags) {
  const Outcome<ResultFilter> filter = parse_filter("+fits, cp>=4, memory<70GiB, recompute=none|full, dp=1|2, zigzag");
  ASSERT_TRUE(filter.ok());
  EXPECT_TRUE(filter->fits_only);
  EXPECT_FALSE(filter->front_only);
  EXPECT_EQ(filter->text, "zigzag");
  EXPECT_EQ(*parse_filter(line_of_filter(*filter)), *filter) << line_of_filter(*filter).toStdString();
  EXPECT_EQ(text_of_filter(*parse_filter("+front, recompute=full")), "on the front, Recompute full");
  EXPECT_EQ(text_of_filter(*parse_filter("")), "everything");
  // A brush has two ends: two limits that leave the same rows.
  FilterTerm between;
  between.field = field_named("memory");
  between.low = 45.0;
  between.high = 75.0;
  ResultFilter brushed;
  brushed.terms = {between};
  EXPECT_THAT(apply(*small_set(), *parse_filter(line_of_filter(brushed))).rows, ElementsAre(1, 3));
  EXPECT_FALSE(parse_filter("colour=red").ok());
}

TEST(Filters, CombineAndKeepTheFrontHonest) {
  const auto set = small_set();
  ResultFilter filter;
  EXPECT_THAT(apply(*set, filter).rows, ElementsAre(1, 2, 3)) << "the first does not fit";
  EXPECT_THAT(apply(*set, filter).front, ElementsAre(2, 1)) << "by memory; cp 8 has more memory and more time than cp 4";
  filter.front_only = true;
  EXPECT_THAT(apply(*set, filter).rows, ElementsAre(1, 2));
  filter.front_only = false;
  filter.fits_only = false;
  EXPECT_THAT(apply(*set, filter).rows, ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(apply(*set, filter).front, ElementsAre(2, 1)) << "what does not fit is on no front";
  filter.terms = {parse_term("cp>=4").value()};
  EXPECT_THAT(apply(*set, filter).rows, ElementsAre(2, 3));
  filter.terms.push_back(parse_term("recompute=FULL").value());
  EXPECT_THAT(apply(*set, filter).rows, ElementsAre(2));
  filter.terms = {parse_term("recompute=selective").value()};
  EXPECT_THAT(apply(*set, filter).rows, ElementsAre()) << "a word that no recipe has";
  EXPECT_THAT(apply(*set, filter).considered, ElementsAre(0, 1, 2, 3)) << "axes are laid out without the terms";
  filter.terms.clear();
  filter.text = "cp=8";
  EXPECT_THAT(apply(*set, filter).rows, ElementsAre(3));
}

TEST(Fronts, KnowWhoBeatsWhom) {
  const auto set = small_set();
  const FilteredRows rows = apply(*set, {});
  const auto& x = set->column("memory").values;
  const auto& y = set->column("step").values;
  EXPECT_EQ(dominator_of(3, rows.front, x, Better::kLess, y, Better::kLess), 2u);
  EXPECT_EQ(dominator_of(1, rows.front, x, Better::kLess, y, Better::kLess), 1u);
  // Rates: more is better, the same front.
  const auto& rate = set->column("tokens").values;
  EXPECT_THAT(front_of(rows.rows, x, Better::kLess, rate, Better::kMore), ElementsAre(2, 1));
}

TEST(Orders, SortBySeveralKeysAndStay) {
  const auto set = small_set();
  std::vector<std::uint32_t> rows = {0, 1, 2, 3};
  sort_rows(*set, {{field_named("step"), true}}, rows);
  EXPECT_THAT(rows, ElementsAre(3, 2, 1, 0));
  sort_rows(*set, {{field_named("recompute"), false}, {field_named("memory"), false}}, rows);
  EXPECT_THAT(rows, ElementsAre(1, 0, 3, 2)) << "none: 70 before 90; then block-10; then full";
  sort_rows(*set, {}, rows);
  EXPECT_THAT(rows, ElementsAre(0, 1, 2, 3));
}

TEST(Axes, AreThoseThatVaryWithStopsAtEqualDistances) {
  const auto set = small_set();
  const std::vector<ParallelAxis> axes = parallel_axes(*set, {0, 1, 2, 3}, ResultTable::usual_columns());
  std::vector<std::string> keys;
  for (const ParallelAxis& axis : axes) keys.emplace_back(result_fields()[axis.field].key);
  EXPECT_THAT(keys, ElementsAre("cp", "cp_comm", "recompute", "step", "tokens", "memory"));
  const ParallelAxis& cp = axes.front();
  EXPECT_DOUBLE_EQ(place_of(cp, 1.0), 0.0);
  EXPECT_DOUBLE_EQ(place_of(cp, 4.0), 2.0 / 3.0) << "third of 1, 2, 4, 8";
  ParallelAxis turned = cp;
  turned.flipped = true;
  EXPECT_DOUBLE_EQ(place_of(turned, 1.0), 1.0);
  const ParallelAxis& memory = axes.back();
  EXPECT_DOUBLE_EQ(place_of(memory, 65.0), 0.5) << "between 40 and 90";
}

TEST(Axes, OnALogarithmicOneEqualFactorsAreEqualDistances) {
  const auto set = small_set();
  const std::vector<std::uint32_t> rows = {0, 1, 2, 3};
  ParallelAxis memory = parallel_axes(*set, rows, ResultTable::usual_columns()).back();
  set_logarithmic(*set, rows, true, memory);
  ASSERT_TRUE(memory.logarithmic);
  // From 40 to 90 GiB: 60 is the mean of the two by factors, 1.5 each.
  EXPECT_DOUBLE_EQ(place_of(memory, 40.0), 0.0);
  EXPECT_DOUBLE_EQ(place_of(memory, 60.0), 0.5);
  EXPECT_DOUBLE_EQ(place_of(memory, 90.0), 1.0);
  EXPECT_DOUBLE_EQ(value_at(memory, 0.5), 60.0);
  const FilterTerm lower = brush_between(*set, memory, 0.0, 0.5);
  EXPECT_DOUBLE_EQ(lower.high, 60.0);
  EXPECT_TRUE(std::isinf(lower.low));
  memory.flipped = true;
  EXPECT_DOUBLE_EQ(place_of(memory, 40.0), 1.0);
  // Degrees stand at equal distances already.
  ParallelAxis cp = parallel_axes(*set, rows, ResultTable::usual_columns()).front();
  EXPECT_FALSE(why_not_logarithmic(*set, rows, cp).isEmpty());
  set_logarithmic(*set, rows, true, cp);
  EXPECT_FALSE(cp.logarithmic);
}

TEST(Axes, ZeroStandsApartAtTheFootOfALogarithmicOne) {
  ParallelAxis axis;
  axis.logarithmic = true;
  axis.low = 0.0;
  axis.least = 0.01;
  axis.high = 1.0;
  EXPECT_DOUBLE_EQ(place_of(axis, 0.0), 0.0);
  const double foot = place_of(axis, 0.01);
  EXPECT_GT(foot, 0.0);
  EXPECT_NEAR(place_of(axis, 0.1), (foot + 1.0) / 2, 1e-12) << "a tenth is half way from a hundredth to one";
  for (const double value : {0.0, 0.01, 0.05, 1.0}) EXPECT_NEAR(value_at(axis, place_of(axis, value)), value, 1e-12);
}

TEST(Axes, BrushesAreTermsAndFindTheirPlaceAgain) {
  const auto set = small_set();
  const std::vector<ParallelAxis> axes = parallel_axes(*set, {0, 1, 2, 3}, ResultTable::usual_columns());
  const FilterTerm degrees = brush_between(*set, axes.front(), 0.3, 0.7);
  EXPECT_THAT(degrees.values, ElementsAre(2.0, 4.0));
  const FilterTerm none = brush_between(*set, axes.front(), 0.4, 0.5);
  ResultFilter filter;
  filter.terms = {none};
  EXPECT_TRUE(apply(*set, filter).rows.empty()) << "nothing lies between two stops";
  const FilterTerm memory = brush_between(*set, axes.back(), 0.0, 0.5);
  EXPECT_DOUBLE_EQ(memory.high, 65.0);
  EXPECT_TRUE(std::isinf(memory.low)) << "the end of an axis is open";
  filter.terms.clear();
  set_brush(filter, degrees);
  set_brush(filter, memory);
  EXPECT_EQ(brush_places(*set, axes.back(), filter), std::pair(0.0, 0.5));
  EXPECT_THAT(apply(*set, filter).rows, ElementsAre(2));
  set_brush(filter, brush_between(*set, axes.back(), 0.0, 1.0));
  EXPECT_EQ(filter.terms.size(), 2u) << "a newer brush replaces";
  clear_brush(filter, axes.front().field);
  EXPECT_EQ(filter.terms.size(), 1u);
}

TEST(Axes, LinesThatNoEyeTellsApartAreOneWithTheBestColour) {
  const auto set = small_set();
  const std::vector<ParallelAxis> axes = parallel_axes(*set, {0, 1, 2, 3}, ResultTable::usual_columns());
  const std::vector<float> shares = color_shares(*set, {0, 1, 2, 3}, field_named("step"));
  EXPECT_FLOAT_EQ(shares[0], 0.0F);
  EXPECT_FLOAT_EQ(shares[3], 1.0F);
  // At a resolution of 1 the steps 3, 4 s and 5, 6 s of memory 90, 70 and 40, 50 GiB fall together: two bundles of two.
  const std::vector<LineBundle> bundles = line_bundles(*set, {0, 1, 2, 3}, axes[3], axes[5], shares, 1);
  ASSERT_EQ(bundles.size(), 2u);
  EXPECT_EQ(bundles[0].rows + bundles[1].rows, 4u);
  EXPECT_GE(bundles[0].color, bundles[1].color) << "the best is painted last";
  EXPECT_FLOAT_EQ(bundles[1].color, 0.0F);
}

class ResultViews : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(document.open_text(example_toml("64k"), "test.toml").empty());
    view.resize(1100, 700);
    view.show();
    settle();
    ASSERT_FALSE(view.book().is_empty());
  }
  void settle() {
    ASSERT_TRUE(QTest::qWaitFor([&] { return !live.is_busy(); }, 60'000));
  }
  QWidget* viewport() { return view.table()->viewport(); }
  StudyDocument document;
  Jobs jobs;
  Selection selection;
  LiveEstimate live{document, jobs, example_rates()};
  OpenedDatabase database{jobs};
  ResultsView view{document, live, jobs, database, selection};
};

TEST_F(ResultViews, HoldEveryLegalRecipeWithItsVerdict) {
  const ResultSet& set = *view.book().set();
  EXPECT_EQ(static_cast<std::int64_t>(set.size()), live.search()->plan.stats.evaluated);
  ASSERT_TRUE(set.ship);
  EXPECT_EQ(set.candidates[*set.ship].recipe, live.search()->plan.ship.recipe);
  ASSERT_TRUE(set.control);
  const QAbstractItemModelTester tester(view.rows(), QAbstractItemModelTester::FailureReportingMode::Fatal);
  EXPECT_EQ(view.rows()->rowCount(), static_cast<int>(view.book().rows().rows.size()));
  EXPECT_TRUE(view.rows()->data(view.rows()->index(0, 0), Qt::DisplayRole).toString().contains("ship")) << "ships stand first";
  EXPECT_TRUE(view.summary().contains("on the front"));
}

TEST_F(ResultViews, AHeaderSortsAndShiftAddsAKey) {
  QHeaderView* header = view.table()->horizontalHeader();
  const auto click = [&](const char* key, Qt::KeyboardModifiers modifiers) {
    const auto at = std::ranges::find(view.rows()->columns(), field_named(key)) - view.rows()->columns().begin();
    const QPoint where(header->sectionViewportPosition(static_cast<int>(at)) + 10, header->height() / 2);
    QTest::mouseClick(header->viewport(), Qt::LeftButton, modifiers, where);
  };
  click("memory", Qt::NoModifier);
  EXPECT_THAT(view.rows()->keys(), ElementsAre(SortKey{field_named("memory"), false}));
  const auto& memory = view.book().set()->column("memory").values;
  for (std::size_t i = 1; i < view.rows()->order().size(); ++i)
    EXPECT_LE(memory[view.rows()->order()[i - 1]], memory[view.rows()->order()[i]]);
  click("memory", Qt::NoModifier);
  EXPECT_THAT(view.rows()->keys(), ElementsAre(SortKey{field_named("memory"), true}));
}

TEST_F(ResultViews, TheNameOfARecipeStaysWhileItsFiguresScroll) {
  QTest::qWait(1);
  QTableView* over = view.frozen()->overlay();
  ASSERT_TRUE(over->isVisible());
  EXPECT_EQ(view.frozen()->count(), 5) << "verdict, CP, TP, PP, DP";
  EXPECT_TRUE(over->isColumnHidden(5));
  view.table()->horizontalScrollBar()->setValue(view.table()->horizontalScrollBar()->maximum());
  ASSERT_GT(view.table()->horizontalScrollBar()->value(), 0);
  // The second row is chosen on its frozen part, and scrolls with the rest.
  QTest::mouseClick(over->viewport(), Qt::LeftButton, Qt::NoModifier, over->visualRect(view.rows()->index(1, 1)).center());
  EXPECT_EQ(view.table()->currentIndex().row(), 1);
  EXPECT_EQ(view.book().chosen(), view.rows()->row_at(1));
  view.table()->verticalScrollBar()->setValue(40);
  EXPECT_EQ(over->verticalScrollBar()->value(), 40);
  QHeaderView* head = over->horizontalHeader();
  QTest::mouseClick(head->viewport(), Qt::LeftButton, Qt::NoModifier, {head->sectionViewportPosition(1) + 8, head->height() / 2});
  EXPECT_THAT(view.rows()->keys(), ElementsAre(SortKey{field_named("cp"), false}));
  view.table()->horizontalHeader()->moveSection(1, 7);
  EXPECT_EQ(view.table()->horizontalHeader()->visualIndex(1), 1) << "frozen columns keep their place";
}

TEST_F(ResultViews, AFilterIsTypedShownAsAChipAndTakenAway) {
  const std::size_t all = view.book().rows().rows.size();
  view.filter_bar()->field()->setFocus();
  QTest::keyClicks(view.filter_bar()->field(), "cp>=4, recompute=full");
  QTest::keyClick(view.filter_bar()->field(), Qt::Key_Return);
  ASSERT_EQ(view.book().filter().terms.size(), 2u);
  EXPECT_LT(view.book().rows().rows.size(), all);
  for (const std::uint32_t row : view.book().rows().rows) EXPECT_GE(view.book().set()->candidates[row].recipe.cp, 4);
  EXPECT_TRUE(view.filter_bar()->field()->text().isEmpty());
  for (int i = 0; i < 2; ++i) {
    const auto chips = view.filter_bar()->findChildren<QToolButton*>();
    const auto chip = std::ranges::find_if(chips, [](QToolButton* b) { return b->text().endsWith(QStringLiteral("✕")); });
    ASSERT_NE(chip, chips.end());
    QTest::mouseClick(*chip, Qt::LeftButton);
    QTest::qWait(1);
  }
  EXPECT_EQ(view.book().rows().rows.size(), all);
  view.filter_bar()->fits_only()->click();
  EXPECT_GE(view.book().rows().rows.size(), all);
  view.filter_bar()->front_only()->click();
  EXPECT_EQ(view.book().rows().rows.size(), view.book().rows().front.size());
}

TEST(Spans, AreLogarithmicFromADecadeOn) {
  QCustomPlot plot;
  show_span(*plot.xAxis, 3.0, 29.0, 0.1);
  EXPECT_EQ(plot.xAxis->scaleType(), QCPAxis::stLinear);
  EXPECT_NEAR(plot.xAxis->range().lower, 0.4, 1e-9);
  show_span(*plot.xAxis, 3.0, 300.0, 0.1);
  EXPECT_EQ(plot.xAxis->scaleType(), QCPAxis::stLogarithmic);
  EXPECT_NEAR(plot.xAxis->range().upper, 300.0 * std::pow(100.0, 0.1), 1e-6);
  show_span(*plot.xAxis, 0.0, 300.0, 0.1);
  EXPECT_EQ(plot.xAxis->scaleType(), QCPAxis::stLinear) << "zero has no logarithm";
}

TEST_F(ResultViews, AFilterIsKeptTakenAgainAndForgotten) {
  QTest::keyClicks(view.filter_bar()->field(), "cp>=4");
  QTest::keyClick(view.filter_bar()->field(), Qt::Key_Return);
  const std::size_t some = view.book().rows().rows.size();
  QMenu* menu = view.filter_bar()->kept()->menu();
  // The menu opens with a loop of its own: what is chosen in it comes from a timer.
  const auto with_menu = [&](const QString& beginning) {
    QTimer::singleShot(0, menu, [&, beginning] {
      for (QAction* action : menu->actions()) {
        if (!action->text().startsWith(beginning)) continue;
        (action->menu() != nullptr ? action->menu()->actions().front() : action)->trigger();
        break;
      }
      menu->close();
    });
    QTest::mouseClick(view.filter_bar()->kept(), Qt::LeftButton);
  };
  with_menu("&Keep");
  ASSERT_EQ(view.book().kept_filters().size(), 1u);
  view.book().set_filter({});
  EXPECT_NE(view.book().rows().rows.size(), some);
  with_menu("fits, CP");
  EXPECT_EQ(view.book().rows().rows.size(), some);
  with_menu("&Forget");
  EXPECT_TRUE(view.book().kept_filters().empty());
}

TEST_F(ResultViews, ARowIsChosenEverywhereAndTakenAsOneUndoStep) {
  view.table()->setFocus();
  view.table()->setCurrentIndex(view.rows()->index(1, 0));
  const std::uint32_t row = view.rows()->row_at(1);
  EXPECT_EQ(selection.now().run_a, std::optional<std::int64_t>(row));
  QTest::keyClick(view.table(), Qt::Key_Space, Qt::ShiftModifier);
  EXPECT_EQ(selection.now().run_b, std::optional<std::int64_t>(row));
  EXPECT_TRUE(view.command().startsWith("cpfit simulate"));
  const int before = document.undo().count();
  const Recipe was = document.design().recipe;
  QTest::keyClick(view.table(), Qt::Key_Return);
  EXPECT_EQ(document.design().recipe, view.book().set()->candidates[row].recipe);
  EXPECT_EQ(document.undo().count(), before + 1);
  document.undo().undo();
  EXPECT_EQ(document.design().recipe, was);
}

TEST_F(ResultViews, AMarkOfTheScatterIsChosenByMouseAndKeyboard) {
  QCustomPlot* plot = view.pareto()->plot();
  const std::uint32_t row = view.book().rows().front.front();
  const ResultSet& set = *view.book().set();
  const QPoint at(static_cast<int>(plot->xAxis->coordToPixel(set.column("memory").values[row])),
                  static_cast<int>(plot->yAxis->coordToPixel(set.column("step").values[row])));
  QTest::mouseClick(plot, Qt::LeftButton, Qt::NoModifier, at);
  EXPECT_EQ(view.book().chosen(), row);
  EXPECT_EQ(view.table()->currentIndex().row(), view.rows()->line_of(row));
  if (view.book().rows().front.size() > 1) {
    plot->setFocus();
    QTest::keyClick(plot, Qt::Key_Right);
    EXPECT_EQ(view.book().chosen(), view.book().rows().front[1]);
  }
  QTest::mouseDClick(plot, Qt::LeftButton, Qt::NoModifier, at);
  EXPECT_EQ(document.design().recipe, set.candidates[row].recipe);
}

TEST_F(ResultViews, ADragOverTheScatterKeepsWhatLiesInside) {
  QCustomPlot* plot = view.pareto()->plot();
  const QRect area = plot->axisRect()->rect();
  const QPoint from = area.topLeft() + QPoint(5, 5), to = area.center();
  QTest::mousePress(plot, Qt::LeftButton, Qt::NoModifier, from);
  QTest::mouseMove(plot, to);
  QTest::mouseRelease(plot, Qt::LeftButton, Qt::NoModifier, to);
  EXPECT_EQ(view.book().filter().terms.size(), 2u);
  view.speeds()->setCurrentIndex(1);
  EXPECT_EQ(view.book().speed_field(), field_named("tokens"));
}

TEST_F(ResultViews, AnAxisIsMadeLogarithmicByKeyAndMenuAndStaysSo) {
  ParallelPlot* plot = view.parallel();
  const auto axis_of = [&](const char* key) {
    return static_cast<std::size_t>(std::ranges::find(plot->axes(), field_named(key), &ParallelAxis::field) -
                                    plot->axes().begin());
  };
  plot->setFocus();
  while (plot->focused_axis() != axis_of("memory")) QTest::keyClick(plot, Qt::Key_Right);
  QTest::keyClick(plot, Qt::Key_L);
  EXPECT_TRUE(plot->axes()[axis_of("memory")].logarithmic);
  EXPECT_TRUE(plot->accessibleDescription().contains("logarithmic"));
  EXPECT_EQ(plot->logarithmic_fields(), QStringList{"memory"});
  // Half way up everything is kept that the filter lets pass below the geometric mean.
  const ParallelAxis memory = plot->axes()[axis_of("memory")];
  const int x = static_cast<int>(plot->axis_x(axis_of("memory")));
  QTest::mousePress(plot, Qt::LeftButton, Qt::NoModifier, {x, static_cast<int>(plot->place_y(0.0))});
  QTest::mouseMove(plot, {x, static_cast<int>(plot->place_y(0.5))});
  QTest::mouseRelease(plot, Qt::LeftButton, Qt::NoModifier, {x, static_cast<int>(plot->place_y(0.5))});
  ASSERT_EQ(view.book().filter().terms.size(), 1u);
  const double mean = std::sqrt(memory.low * memory.high);
  EXPECT_NEAR(view.book().filter().terms[0].high / mean, 1.0, 0.12) << "within the slack of a pointer";
  // A new search keeps it; a degree refuses, and says why.
  ASSERT_TRUE(document.set_value("global_batch", "16").empty());
  settle();
  EXPECT_TRUE(plot->axes()[axis_of("memory")].logarithmic);
  const auto menu = plot->menu_of(axis_of("cp"));
  EXPECT_FALSE(menu->actions().front()->isEnabled());
  EXPECT_TRUE(menu->actions().front()->text().contains("equal distances"));
  plot->menu_of(axis_of("memory"))->actions().front()->trigger();
  EXPECT_FALSE(plot->axes()[axis_of("memory")].logarithmic);
}

TEST_F(ResultViews, AnAxisIsBrushedByMouseAndByKeys) {
  ParallelPlot* plot = view.parallel();
  ASSERT_GE(plot->axes().size(), 3u);
  const auto y = [&](double place) { return static_cast<int>(plot->place_y(place)); };
  const int x = static_cast<int>(plot->axis_x(0));
  const std::size_t all = view.book().rows().rows.size();
  QTest::mousePress(plot, Qt::LeftButton, Qt::NoModifier, {x, y(0.0)});
  QTest::mouseMove(plot, {x, y(0.1)});
  QTest::mouseRelease(plot, Qt::LeftButton, Qt::NoModifier, {x, y(0.1)});
  ASSERT_EQ(view.book().filter().terms.size(), 1u);
  EXPECT_LT(view.book().rows().rows.size(), all);
  QTest::mouseClick(plot, Qt::LeftButton, Qt::NoModifier, {x, y(0.5)});
  EXPECT_EQ(view.book().rows().rows.size(), all) << "a click takes the brush away";
  plot->setFocus();
  QTest::keyClick(plot, Qt::Key_Right);
  EXPECT_EQ(plot->focused_axis(), 1u);
  QTest::keyClick(plot, Qt::Key_Down);
  ASSERT_EQ(view.book().filter().terms.size(), 1u);
  EXPECT_EQ(view.book().filter().terms[0].field, plot->axes()[1].field);
  const std::size_t second = plot->axes()[1].field;
  QTest::keyClick(plot, Qt::Key_F);
  EXPECT_TRUE(plot->axes()[1].flipped);
  QTest::keyClick(plot, Qt::Key_Left, Qt::ControlModifier);
  EXPECT_EQ(plot->axes()[0].field, second) << "moved to the front";
  QTest::keyClick(plot, Qt::Key_Home);
  EXPECT_TRUE(view.book().filter().terms.empty());
}

TEST_F(ResultViews, TheTableWrittenIsWhatIsFiltered) {
  ResultFilter filter = view.book().filter();
  filter.terms = {parse_term("cp=2").value()};
  view.book().set_filter(filter);
  const QString csv = view.csv();
  EXPECT_TRUE(csv.startsWith("verdict,cp,tp,")) << csv.left(80).toStdString();
  EXPECT_TRUE(csv.section('\n', 0, 0).contains("memory [GiB]"));
  EXPECT_EQ(csv.count('\n'), static_cast<qsizetype>(view.book().rows().rows.size()) + 1);
}

TEST_F(ResultViews, AStoredRunIsShownBesideTheSearch) {
  QTemporaryDir folder;
  const QString path = folder.filePath("runs.sqlite");
  RunId run{};
  {
    Store store = open_store(path.toStdString());
    PlanResult plan = live.search()->plan;
    plan.provenance.scenario_text = example_toml("64k");
    plan.provenance.scenario_path = "test.toml";
    run = create_run(store, plan.provenance);
    std::vector<Candidate> some(live.search()->evaluated.begin(), live.search()->evaluated.begin() + 5);
    candidate_sink(store, run)(some);
    finish_run(store, run, plan);
  }
  database.open(path, run);
  settle();
  settle();
  ASSERT_EQ(view.book().places().size(), 2u);
  EXPECT_EQ(view.book().place(), 1u);
  ASSERT_FALSE(view.book().is_empty());
  EXPECT_EQ(view.book().set()->size(), 5u);
  EXPECT_TRUE(view.book().set()->command.startsWith("cpfit runs show 1 --db"));
  view.book().go_to(0);
  settle();
  EXPECT_GT(view.book().set()->size(), 5u);
}

TEST_F(ResultViews, WithoutAStudyItSaysWhatWouldFillIt) {
  document.close();
  settle();
  EXPECT_TRUE(view.book().is_empty());
  EXPECT_EQ(view.summary(), "No study is open");
  EXPECT_TRUE(view.csv().isEmpty());
  EXPECT_TRUE(view.command().isEmpty());
}

}  // namespace
}  // namespace cpfit::gui
