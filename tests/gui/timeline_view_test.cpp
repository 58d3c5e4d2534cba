// The step timeline driven by keys and mouse, without a display.
#include <QAbstractItemModelTester>
#include <QAccessible>
#include <QPushButton>
#include <QScrollBar>
#include <QSignalSpy>
#include <QTest>
#include <QWheelEvent>

#include "gui/look/theme.h"
#include "gui/timeline/span_table_model.h"
#include "gui/timeline/timeline_view.h"
#include "small_step.h"

namespace cpfit::gui {
namespace {

using test::kMicro;

class TimelineViewTest : public testing::Test {
 protected:
  void SetUp() override {
    view.setPalette(palette_of(Theme::kLight));
    view.resize(900, 420);
    view.show();
    view.setPicture(test::two_rank_picture());
    view.setFocus();
  }
  [[nodiscard]] QPoint at(std::int64_t time_us, std::int32_t lane) const {
    const QRect lanes = view.geometryOfParts().lanes;
    const TimelineLayout& layout = view.state().layout();
    const std::ptrdiff_t row = layout.row_of_lane(lane);
    const TimeScale scale{view.window(), static_cast<double>(lanes.left()), static_cast<double>(lanes.width())};
    const int y = row < 0 ? 0
                          : lanes.top() + layout.top_of(static_cast<std::size_t>(row), view.scroll()) +
                                layout.rows[static_cast<std::size_t>(row)].height / 2;
    return {static_cast<int>(scale.x_of(time_us * kMicro)), y};
  }
  void wheel(const QPoint& where, int notches, Qt::KeyboardModifiers modifiers) {
    QWheelEvent event(where, view.mapToGlobal(where), {}, QPoint(0, 120 * notches), Qt::NoButton, modifiers, Qt::NoScrollPhase,
                      false);
    QApplication::sendEvent(&view, &event);
  }
  TimelineView view;
};

TEST_F(TimelineViewTest, LettersZoomAndPan) {
  const TimeWindow all = view.window();
  QTest::keyClick(&view, Qt::Key_W);
  EXPECT_LT(view.window().length(), all.length());
  const TimeWindow zoomed_in = view.window();
  QTest::keyClick(&view, Qt::Key_D);
  EXPECT_GT(view.window().from, zoomed_in.from);
  QTest::keyClick(&view, Qt::Key_A);
  EXPECT_EQ(view.window(), zoomed_in);
  QTest::keyClick(&view, Qt::Key_S);
  EXPECT_EQ(view.window(), all);
  QTest::keyClick(&view, Qt::Key_W);
  QTest::keyClick(&view, Qt::Key_Home);
  EXPECT_EQ(view.window(), all);
  QTest::keyClick(&view, Qt::Key_Left, Qt::AltModifier);
  EXPECT_EQ(view.window(), zoomed_in);
  QTest::keyClick(&view, Qt::Key_Right, Qt::AltModifier);
  EXPECT_EQ(view.window(), all);
}

TEST_F(TimelineViewTest, ControlWheelZoomsAtThePointer) {
  const QPoint where = at(100, 0);
  wheel(where, 3, Qt::ControlModifier);
  EXPECT_LT(view.window().length(), 230 * kMicro);
  EXPECT_NEAR(at(100, 0).x(), where.x(), 1.5) << "what is under the pointer stays there";
  const TimeWindow zoomed_in = view.window();
  wheel(where, -1, Qt::ShiftModifier);
  EXPECT_GT(view.window().from, zoomed_in.from);
  EXPECT_EQ(view.window().length(), zoomed_in.length());
}

TEST_F(TimelineViewTest, SpansAreChosenByMouseAndByKeys) {
  QSignalSpy chosen(&view, &TimelineView::spanSelected);
  QTest::mouseClick(&view, Qt::LeftButton, {}, at(50, 0));
  ASSERT_EQ(view.state().selected(), (SpanRef{0, 0}));
  ASSERT_FALSE(chosen.isEmpty());
  EXPECT_EQ(chosen.last().at(0).toInt(), 0);
  QTest::keyClick(&view, Qt::Key_Period);
  EXPECT_EQ(view.state().selected(), (SpanRef{0, 1}));
  QTest::keyClick(&view, Qt::Key_Comma);
  QTest::keyClick(&view, Qt::Key_Down);
  EXPECT_EQ(view.state().selected(), (SpanRef{1, 0})) << "the lane below, the span nearest in time";
  EXPECT_TRUE(view.currentText().startsWith("rank 0, ring")) << view.currentText().toStdString();
  EXPECT_TRUE(view.currentText().contains("of which 30 µs exposed")) << view.currentText().toStdString();
  QTest::keyClick(&view, Qt::Key_Escape);
  EXPECT_FALSE(view.state().selected());
}

TEST_F(TimelineViewTest, TheFlowLeadsToTheCause) {
  QTest::mouseClick(&view, Qt::LeftButton, {}, at(200, 0));
  ASSERT_EQ(view.state().selected(), (SpanRef{0, 1}));
  QTest::keyClick(&view, Qt::Key_BracketLeft);
  ASSERT_TRUE(view.state().selected());
  EXPECT_EQ(span_of(*view.state().picture(), *view.state().selected()).end, 130 * kMicro) << "the message it waited for";
}

TEST_F(TimelineViewTest, DraggingSumsAndSnaps) {
  QSignalSpy ranges(&view, &TimelineView::rangeChanged);
  const QPoint from = at(99, 0), to = at(131, 0);
  QTest::mousePress(&view, Qt::LeftButton, {}, from);
  QMouseEvent half(QEvent::MouseMove, QPoint((from.x() + to.x()) / 2, to.y()), view.mapToGlobal(to), Qt::NoButton, Qt::LeftButton,
                   {});
  QApplication::sendEvent(&view, &half);
  ASSERT_TRUE(view.state().range()) << "sums are live while dragging";
  EXPECT_FALSE(view.rangeText().isEmpty());
  QMouseEvent rest(QEvent::MouseMove, to, view.mapToGlobal(to), Qt::NoButton, Qt::LeftButton, {});
  QApplication::sendEvent(&view, &rest);
  QTest::mouseRelease(&view, Qt::LeftButton, {}, to);
  ASSERT_TRUE(view.state().range());
  // 99 and 131 us are within six pixels of the edges at 100 and 130 us.
  EXPECT_EQ(view.state().range()->time, (TimeWindow{100 * kMicro, 130 * kMicro}));
  EXPECT_TRUE(view.rangeText().contains("exposed 60 µs")) << view.rangeText().toStdString();
  QTest::keyClick(&view, Qt::Key_Return);
  EXPECT_TRUE(view.state().range()->committed);
  EXPECT_TRUE(ranges.last().at(2).toBool());
  QTest::keyClick(&view, Qt::Key_Escape);
  EXPECT_FALSE(view.state().range());
}

TEST_F(TimelineViewTest, TheOverviewsFrameMovesTheWindow) {
  QTest::keyClick(&view, Qt::Key_W);
  QTest::keyClick(&view, Qt::Key_W);
  const QRect strip = view.geometryOfParts().overview;
  QTest::mouseClick(&view, Qt::LeftButton, {}, QPoint(strip.left() + 2, strip.center().y()));
  EXPECT_EQ(view.window().from, 0);
  QTest::mouseDClick(&view, Qt::LeftButton, {}, strip.center());
  EXPECT_EQ(view.window(), whole(230 * kMicro));
}

TEST_F(TimelineViewTest, RowsPinAndCollapse) {
  view.setShowsAllRanks(false);
  const std::size_t rows = view.state().layout().rows.size();
  QTest::keyClick(&view, Qt::Key_Down);
  QTest::keyClick(&view, Qt::Key_Space);
  EXPECT_EQ(view.state().layout().rows.size(), rows - 3);
  EXPECT_TRUE(view.currentText().endsWith("collapsed"));
  QTest::keyClick(&view, Qt::Key_Space);
  QTest::keyClick(&view, Qt::Key_P);
  EXPECT_EQ(view.state().choices().pinned_ranks.size(), 1U);
  EXPECT_EQ(view.state().layout().pinned, 4U);
}

TEST_F(TimelineViewTest, MarkersAreNamed) {
  QSignalSpy changed(&view, &TimelineView::markersChanged);
  QTest::mouseClick(&view, Qt::LeftButton, {}, at(200, 0));
  QTest::keyClick(&view, Qt::Key_M);
  ASSERT_EQ(view.state().markers().size(), 1U);
  EXPECT_EQ(view.state().markers()[0], (Marker{"marker 1", 130 * kMicro}));
  EXPECT_EQ(changed.size(), 1);
}

TEST_F(TimelineViewTest, HoveringTellsTheFacts) {
  QMouseEvent move(QEvent::MouseMove, at(60, 0), view.mapToGlobal(at(60, 0)), Qt::NoButton, Qt::NoButton, {});
  QApplication::sendEvent(&view, &move);
  EXPECT_TRUE(view.hoverText().isEmpty()) << "not before the pointer rests";
  ASSERT_TRUE(QTest::qWaitFor([&] { return !view.hoverText().isEmpty(); }, 5000));
  EXPECT_TRUE(view.hoverText().contains("attention 0"));
  EXPECT_TRUE(view.hoverText().contains("100 µs"));
}

TEST_F(TimelineViewTest, AScreenReaderHearsTheChartAndWhatIsCurrent) {
  // Only what has the focus has a focused child.
  view.activateWindow();
  ASSERT_TRUE(QTest::qWaitForWindowActive(&view));
  view.setFocus();
  QAccessibleInterface* chart = QAccessible::queryAccessibleInterface(&view);
  ASSERT_NE(chart, nullptr);
  EXPECT_EQ(chart->role(), QAccessible::Chart);
  EXPECT_EQ(chart->text(QAccessible::Name), "Step timeline");
  EXPECT_TRUE(chart->text(QAccessible::Value).startsWith("Step of 230 µs, 2 ranks, 8 spans"))
      << chart->text(QAccessible::Value).toStdString();
  QTest::mouseClick(&view, Qt::LeftButton, {}, at(50, 0));
  QAccessibleInterface* current = chart->focusChild();
  ASSERT_NE(current, nullptr);
  EXPECT_EQ(current->text(QAccessible::Name), view.currentText());
  EXPECT_EQ(chart->text(QAccessible::Description), view.currentText());
  EXPECT_TRUE(current->state().selected);
  // A row without a span is current, too.
  view.selectSpan({});
  QTest::keyClick(&view, Qt::Key_Down);
  ASSERT_FALSE(view.currentText().isEmpty());
  EXPECT_EQ(chart->focusChild()->text(QAccessible::Name), view.currentText());
}

TEST_F(TimelineViewTest, AScreenReaderReachesEverySpanThatCanBeToldApart) {
  view.activateWindow();
  ASSERT_TRUE(QTest::qWaitForWindowActive(&view));
  view.setFocus();
  QAccessibleInterface* chart = QAccessible::queryAccessibleInterface(&view);
  std::vector<QAccessibleInterface*> spans;
  for (int i = 0; i < chart->childCount(); ++i) {
    QAccessibleInterface* child = chart->child(i);
    ASSERT_NE(child, nullptr);
    EXPECT_EQ(chart->indexOfChild(child), i);
    if (child->role() == QAccessible::ListItem) spans.push_back(child);
  }
  // The rank that is shown has two attentions, a message sent and one received.
  ASSERT_EQ(spans.size(), 4u);
  for (QAccessibleInterface* span : spans) {
    EXPECT_TRUE(span->text(QAccessible::Name).startsWith("rank 0")) << span->text(QAccessible::Name).toStdString();
    EXPECT_TRUE(chart->rect().contains(span->rect()));
    EXPECT_EQ(chart->childAt(span->rect().center().x(), span->rect().center().y()), span);
    EXPECT_EQ(span->parent(), chart);
  }
  // The first lasts 0-100 of 230 us, the picture's whole width.
  const QRect lanes = view.geometryOfParts().lanes;
  EXPECT_NEAR(spans[0]->rect().width(), lanes.width() * 100.0 / 230.0, 2.0);
  EXPECT_EQ(spans[0]->rect().left(), view.mapToGlobal(lanes.topLeft()).x());
  EXPECT_EQ(spans[0]->text(QAccessible::Value), QStringLiteral("100 µs"));
  // Pressing selects.
  QAccessibleActionInterface* action = spans[1]->actionInterface();
  ASSERT_NE(action, nullptr);
  action->doAction(QAccessibleActionInterface::pressAction());
  ASSERT_TRUE(view.state().selected());
  EXPECT_EQ(view.state().selected()->span, 1u);
  EXPECT_TRUE(spans[1]->state().selected);
  EXPECT_EQ(chart->focusChild(), spans[1]);
  // Out of sight is no child; another picture makes old ones invalid without harm.
  view.setWindow({0, 50 * kMicro});
  EXPECT_TRUE(spans[1]->state().offscreen);
  view.setPicture(test::two_rank_picture());
  EXPECT_GT(chart->childCount(), 0);
  EXPECT_NE(chart->child(chart->childCount() - 1), nullptr);
}

TEST_F(TimelineViewTest, SpansAsATable) {
  QAbstractItemModelTester tester(view.tableModel(), QAbstractItemModelTester::FailureReportingMode::Fatal);
  QTest::keyClick(&view, Qt::Key_T, Qt::ControlModifier);
  ASSERT_TRUE(view.tableShown());
  SpanTableModel* model = view.tableModel();
  const int rows = model->rowCount();
  EXPECT_EQ(rows, 4);
  model->sort(SpanTableModel::kExposed, Qt::DescendingOrder);
  EXPECT_EQ(model->index(0, SpanTableModel::kExposed).data().toString(), "30.000");
  model->sort(SpanTableModel::kStart, Qt::AscendingOrder);
  EXPECT_EQ(model->index(0, SpanTableModel::kStart).data().toString(), "0.000000");
  const SpanRef first = model->spanOf(0);
  EXPECT_EQ(model->rowOf(first), 0);
  view.setTableShown(false);
  EXPECT_FALSE(view.tableShown());
}

TEST_F(TimelineViewTest, FindStepsThroughMatches) {
  QTest::keyClick(&view, Qt::Key_Slash);
  view.findNext("ring send", 1);
  ASSERT_TRUE(view.state().selected());
  const SpanRef first = *view.state().selected();
  view.findNext("ring send", 1);
  EXPECT_NE(*view.state().selected(), first) << "the other rank's, its rows opened";
  EXPECT_GE(view.state().layout().row_of_lane(view.state().selected()->lane), 0);
}

TEST_F(TimelineViewTest, TheExposedSpanIsHatchedOnScreen) {
  for (const Theme theme : {Theme::kLight, Theme::kDark, Theme::kHighContrast}) {
    view.setPalette(palette_of(theme));
    const QImage image = view.grab().toImage().convertToFormat(QImage::Format_RGB32);
    const double ratio = image.devicePixelRatio();
    const QPoint from = at(104, 1), to = at(126, 1);
    const QRgb exposed = tokens_of(theme).exposed.rgb();
    int hue = 0, other = 0;
    for (int x = from.x(); x < to.x(); ++x) {
      const QRgb pixel = image.pixel(static_cast<int>(x * ratio), static_cast<int>(from.y() * ratio));
      ++(pixel == exposed ? hue : other);
    }
    EXPECT_GT(hue, 10) << static_cast<int>(theme);
    EXPECT_GT(other, 10) << "lines of the hatch, theme " << static_cast<int>(theme);
  }
}

TEST_F(TimelineViewTest, StatesAreSentences) {
  QSignalSpy stop(&view, &TimelineView::stopRequested), simulate(&view, &TimelineView::simulateRequested);
  view.setBusy("Simulating 8 ranks.", 0.4);
  auto* button = view.findChild<QPushButton*>();
  ASSERT_TRUE(button->isVisible());
  QTest::mouseClick(button, Qt::LeftButton);
  EXPECT_EQ(stop.size(), 1);
  EXPECT_NE(view.state().picture(), nullptr) << "the old picture stays";
  view.setFailed("GPU 3 has no route to GPU 9.", "details");
  EXPECT_EQ(view.summary(), "GPU 3 has no route to GPU 9.");
  view.setEmpty("Simulate to see the step.", "Simulate");
  QTest::mouseClick(button, Qt::LeftButton);
  EXPECT_EQ(simulate.size(), 1);
  EXPECT_EQ(view.state().picture(), nullptr);
  QTest::keyClick(&view, Qt::Key_W);  // nothing to zoom, nothing breaks
  (void)view.grab();
}

TEST_F(TimelineViewTest, CopiesAndExports) {
  view.setRange(DraggedRange{{0, 230 * kMicro}, 0, false});
  const QStringList lines = view.rangeTable().trimmed().split(QLatin1Char('\n'));
  EXPECT_EQ(lines.size(), 5) << "a header; two kinds on two ranks";
  EXPECT_TRUE(lines[0].contains("sum (ms)"));
  EXPECT_EQ(view.csv().count(QLatin1Char('\n')), 4 + 1);
  EXPECT_EQ(view.image(2.0, true).width(), 1800);
}

TEST_F(TimelineViewTest, ARecordedTraceLiesBesideThePrediction) {
  RecordedLanes recorded;
  recorded.title = "recorded GPU 0";
  recorded.length = 300 * kMicro;
  LaneSpan kernel;
  kernel.end = 300 * kMicro;
  kernel.kind = SpanKind::kCompute;
  recorded.lanes.push_back({0, "compute, stream 7", {kernel}});
  view.setRecorded(recorded);
  EXPECT_EQ(view.state().step(), 300 * kMicro);
  EXPECT_GE(view.state().layout().row_of_lane(6), 0);
  view.setRecorded({});
  EXPECT_EQ(view.state().step(), 230 * kMicro);
}

}  // namespace
}  // namespace cpfit::gui
