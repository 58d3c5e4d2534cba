#include "gui/timeline/timeline_view.h"

#include <QApplication>
#include <QClipboard>
#include <QHBoxLayout>
#include <QHeaderView>
#include <QLabel>
#include <QLineEdit>
#include <QPainter>
#include <QPushButton>
#include <QScrollBar>
#include <QShortcut>
#include <QTableView>
#include <QToolTip>
#include <algorithm>
#include <cmath>
#include <utility>

#include "gui/look/figures.h"
#include "gui/timeline/span_search.h"
#include "gui/timeline/span_table_model.h"
#include "gui/timeline/span_text.h"
#include "gui/timeline/timeline_accessible.h"
#include "gui/timeline/timeline_paint.h"

namespace cpfit::gui {

namespace {

constexpr int kHoverDelay = 300;  // milliseconds
constexpr int kOverviewHeight = 34, kRulerHeight = 35, kInfoHeight = 24, kTrackHeight = 84;

/// Heights of rows follow the font.
RowMetrics metrics_for(const QWidget& widget) {
  const int text = widget.fontMetrics().height();
  RowMetrics metrics;
  metrics.lane = std::max(18, text + 3);
  metrics.rank = metrics.node = metrics.more = std::max(20, text + 5);
  return metrics;
}

}  // namespace

TimelineView::TimelineView(QWidget* parent)
    : StudyView(QStringLiteral("timeline"), tr("Step timeline"), parent), state_(metrics_for(*this)) {
  install_timeline_accessibility(*this);
  setFocusPolicy(Qt::StrongFocus);
  setMouseTracking(true);
  setContextMenuPolicy(Qt::DefaultContextMenu);

  scroll_ = new QScrollBar(Qt::Vertical, this);
  scroll_->setFocusPolicy(Qt::NoFocus);
  scroll_->setAccessibleName(tr("Rows"));
  connect(scroll_, &QScrollBar::valueChanged, this, [this] {
    image_stale_ = true;
    update();
  });

  button_ = new QPushButton(this);
  second_button_ = new QPushButton(tr("Copy details"), this);
  connect(button_, &QPushButton::clicked, this, [this] {
    if (mode_ == Mode::kBusy) {
      emit stopRequested();
    } else {
      emit simulateRequested();
    }
  });
  connect(second_button_, &QPushButton::clicked, this, [this] { QApplication::clipboard()->setText(details_); });

  find_bar_ = new QWidget(this);
  find_bar_->setAutoFillBackground(true);
  auto* row = new QHBoxLayout(find_bar_);
  row->setContentsMargins(6, 3, 6, 3);
  find_ = new QLineEdit(find_bar_);
  find_->setPlaceholderText(tr("ring exposed · layer 3 step 5 · rank 6 dkv"));
  find_->setAccessibleName(tr("Find spans"));
  find_->setMinimumWidth(230);
  find_count_ = new QLabel(find_bar_);
  row->addWidget(find_);
  row->addWidget(find_count_);
  find_bar_->hide();
  connect(find_, &QLineEdit::textChanged, this, [this](const QString& text) {
    const StepPicture* picture = state_.picture();
    if (picture == nullptr || text.trimmed().isEmpty()) return find_count_->clear();
    const std::int64_t count = count_matches(*picture, span_query(to_std(text)));
    find_count_->setText(count == 1 ? tr("1 span") : tr("%1 spans").arg(count_text(count)));
  });
  connect(find_, &QLineEdit::returnPressed, this,
          [this] { findNext(find_->text(), QApplication::keyboardModifiers().testFlag(Qt::ShiftModifier) ? -1 : 1); });
  auto* close_find = new QShortcut(find_bar_);
  close_find->setKey(Qt::Key_Escape);
  close_find->setContext(Qt::WidgetWithChildrenShortcut);
  connect(close_find, &QShortcut::activated, this, [this] {
    find_bar_->hide();
    setFocus();
  });

  table_model_ = new SpanTableModel(this);
  hover_timer_.setSingleShot(true);
  hover_timer_.setInterval(kHoverDelay);
  connect(&hover_timer_, &QTimer::timeout, this, &TimelineView::showHover);
  setEmpty(tr("Simulate to see the step."), tr("Simulate"));
}

TimelineView::~TimelineView() = default;

// What it shows.

void TimelineView::setPicture(std::shared_ptr<const StepPicture> picture) {
  predicted_ = std::move(picture);
  mode_ = predicted_ ? Mode::kReady : Mode::kEmpty;
  if (predicted_) sentence_.clear();
  rebuildPicture();
  if (!tracks_chosen_) defaultTracks();
  showMode();
  place();
  windowMoved();
  announce();
}

void TimelineView::rebuildPicture() {
  state_.set_picture(predicted_ && recorded_ ? with_recorded(*predicted_, *recorded_) : predicted_);
  image_stale_ = overview_stale_ = true;
  elements_of_ = {};
  words_.clear();
}

void TimelineView::setTracks(std::shared_ptr<const StepTracks> tracks) {
  tracks_ = std::move(tracks);
  if (!tracks_chosen_) defaultTracks();
  place();
  update();
}

/// Memory of the rank that ends last, and the busiest link: a peak and its cause one above the other.
void TimelineView::defaultTracks() {
  std::vector<TrackChoice> chosen;
  if (tracks_ && predicted_) {
    if (!tracks_->memory.empty())
      chosen.push_back({TrackKind::kMemory, std::to_string(predicted_->cluster_rank(tracks_->memory.front().rank))});
    if (!tracks_->links.empty()) chosen.push_back({TrackKind::kLink, tracks_->links.front().name});
  }
  state_.set_tracks(std::move(chosen));
}

void TimelineView::setRecorded(std::optional<RecordedLanes> recorded) {
  recorded_ = std::move(recorded);
  rebuildPicture();
  place();
  windowMoved();
  announce();
}

void TimelineView::setEmpty(const QString& sentence, const QString& button) {
  mode_ = Mode::kEmpty;
  sentence_ = sentence;
  button_->setText(button);
  predicted_.reset();
  rebuildPicture();
  showMode();
  place();
  announce();
  update();
}

void TimelineView::setBusy(const QString& sentence, double progress) {
  mode_ = Mode::kBusy;
  sentence_ = sentence;
  progress_ = progress;
  button_->setText(tr("Stop"));
  showMode();
  place();
  announce();
  update();
}

void TimelineView::setFailed(const QString& sentence, const QString& details) {
  mode_ = Mode::kFailed;
  sentence_ = sentence;
  details_ = details;
  button_->setText(tr("Try again"));
  showMode();
  place();
  announce();
  update();
}

void TimelineView::showMode() {
  button_->setVisible(mode_ != Mode::kReady && !button_->text().isEmpty());
  second_button_->setVisible(mode_ == Mode::kFailed && !details_.isEmpty());
  scroll_->setVisible(mode_ != Mode::kEmpty);
  if (table_ != nullptr && mode_ != Mode::kReady) table_->hide();
}

// What a person chose.

void TimelineView::setWindow(TimeWindow window) {
  state_.settle();
  state_.set_window(panned(window, 0, state_.step()));
  state_.settle();
  windowMoved();
}

void TimelineView::setAxis(std::int64_t longest) {
  state_.set_axis(longest);
  overview_stale_ = true;
  windowMoved();
}

void TimelineView::setLeastLabelWidth(int width) {
  if (std::exchange(least_label_width_, width) == width) return;
  place();
  update();
}

void TimelineView::selectSpan(std::optional<SpanRef> span) {
  if (span == state_.selected()) return;
  state_.select(span, true);
  selectionMoved();
}

void TimelineView::selectByIdentity(std::int32_t lane, std::int32_t activity, std::int32_t copy) {
  const StepPicture* picture = state_.picture();
  if (picture == nullptr || lane < 0 || static_cast<std::size_t>(lane) >= picture->timeline.lanes.size()) return selectSpan({});
  const std::vector<LaneSpan>& spans = picture->lane(lane).spans;
  const auto found =
      std::find_if(spans.begin(), spans.end(), [&](const LaneSpan& s) { return s.activity == activity && s.copy == copy; });
  selectSpan(found == spans.end() ? std::nullopt : std::optional(SpanRef{lane, static_cast<std::size_t>(found - spans.begin())}));
}

void TimelineView::setRange(std::optional<DraggedRange> range) {
  if (range == state_.range()) return;
  state_.set_range(range);
  changed();
}

void TimelineView::setChoices(const RowChoices& choices) {
  state_.set_choices(choices);
  place();
  image_stale_ = true;
  update();
}

void TimelineView::setMarkers(std::vector<Marker> markers) {
  state_.set_markers(std::move(markers));
  update();
}

void TimelineView::setTrackChoices(std::vector<TrackChoice> tracks) {
  tracks_chosen_ = true;
  state_.set_tracks(std::move(tracks));
  place();
  update();
}

void TimelineView::addTrack(const TrackChoice& track) {
  state_.add_track(track);
  place();
  update();
}

void TimelineView::setShowsAllRanks(bool all) {
  state_.show_all_ranks(all);
  place();
  image_stale_ = true;
  update();
  emit rowsChanged();
}

void TimelineView::setShowsCriticalPath(bool shown) {
  critical_ = shown;
  image_stale_ = true;
  update();
}

void TimelineView::setTableShown(bool shown) {
  if (!shown) {
    if (table_ != nullptr) table_->hide();
    setFocus();
    return update();
  }
  if (state_.picture() == nullptr) return;
  if (table_ == nullptr) {
    table_ = new QTableView(this);
    table_->setModel(table_model_);
    table_->setSortingEnabled(true);
    table_->horizontalHeader()->setSortIndicator(-1, Qt::AscendingOrder);
    table_->setSelectionBehavior(QAbstractItemView::SelectRows);
    table_->setSelectionMode(QAbstractItemView::SingleSelection);
    table_->verticalHeader()->hide();
    table_->setAccessibleName(tr("Spans of the window as a table"));
    auto* close = new QShortcut(table_);
    close->setKey(Qt::CTRL | Qt::Key_T);
    close->setContext(Qt::WidgetWithChildrenShortcut);
    connect(close, &QShortcut::activated, this, [this] { setTableShown(false); });
    connect(table_->selectionModel(), &QItemSelectionModel::currentRowChanged, this, [this](const QModelIndex& now) {
      if (!now.isValid() || !table_->isVisible()) return;
      state_.select(table_model_->spanOf(now.row()), false);
      selectionMoved();
    });
  }
  refreshTable();
  place();
  table_->show();
  table_->raise();
  table_->setFocus();
}

bool TimelineView::tableShown() const { return table_ != nullptr && table_->isVisibleTo(this); }

void TimelineView::refreshTable() {
  std::vector<std::int32_t> lanes;
  for (const TimelineRow& row : state_.layout().rows) {
    if (row.kind == RowKind::kLane) lanes.push_back(row.lane);
  }
  table_model_->show(state_.shared_picture(), lanes, state_.range() ? state_.range()->time : state_.window());
  if (table_ == nullptr || !state_.selected()) return;
  const int row = table_model_->rowOf(*state_.selected());
  if (row >= 0) table_->setCurrentIndex(table_model_->index(row, 0));
}

void TimelineView::showFind() {
  if (state_.picture() == nullptr) return;
  find_bar_->adjustSize();
  find_bar_->move(width() - find_bar_->width() - 20, geometry_.lanes.top() + 6);
  find_bar_->show();
  find_bar_->raise();
  find_->setFocus();
  find_->selectAll();
}

void TimelineView::findNext(const QString& query, int by) {
  if (state_.find(to_std(query), by)) return selectionMoved();
  find_count_->setText(tr("none"));
}

int TimelineView::scroll() const { return scroll_->value(); }

// Places.

void TimelineView::place() {
  const int bar = scroll_->sizeHint().width();
  const QFontMetrics metrics(font());
  int widest = metrics.horizontalAdvance(QStringLiteral("memory, rank 1023"));
  for (const TimelineRow& row : state_.layout().rows)
    widest = std::max(widest, metrics.horizontalAdvance(text_of(row.title)) + (row.kind == RowKind::kLane ? 20 : 16));
  geometry_ = {};
  const int names = std::clamp(widest + 26, 120, std::max(120, width() / 4));
  const bool other_names = std::exchange(wanted_label_width_, names) != names;
  geometry_.label_width = std::max(names, least_label_width_);
  const int left = geometry_.label_width, plot = std::max(10, width() - left - bar);
  geometry_.overview = {left, 2, plot, kOverviewHeight - 2};
  geometry_.ruler = {left, kOverviewHeight + 2, plot, kRulerHeight};
  geometry_.info = {0, height() - kInfoHeight, width(), kInfoHeight};
  const int top = geometry_.ruler.bottom() + 1;
  int bottom = geometry_.info.top();
  const int count = static_cast<int>(state_.tracks().size());
  const int room = std::max(0, (bottom - top) * 45 / 100);
  // What the rows do not need, the tracks take, up to twice their height.
  const int spare = bottom - top - state_.layout().pinned_height - state_.layout().scrolled_height - 8;
  const int wanted = count > 0 ? std::clamp(spare / count, kTrackHeight, 2 * kTrackHeight) : 0;
  const int each = count > 0 ? std::min(wanted, std::max(room, spare) / count) : 0;
  if (each >= 34) {
    bottom -= each * count;
    for (int t = 0; t < count; ++t) geometry_.tracks.emplace_back(0, bottom + t * each, width() - bar, each);
  }
  geometry_.lanes = {left, top, plot, std::max(0, bottom - top)};
  geometry_.labels = {0, top, left, std::max(0, bottom - top)};
  scroll_->setGeometry(width() - bar, top, bar, std::max(0, bottom - top));
  const int page = geometry_.lanes.height() - state_.layout().pinned_height;
  scroll_->setRange(0, std::max(0, state_.layout().scrolled_height - page + 4));
  scroll_->setPageStep(std::max(1, page));
  scroll_->setSingleStep(20);
  if (table_ != nullptr) table_->setGeometry(0, geometry_.ruler.top(), width(), geometry_.info.top() - geometry_.ruler.top());
  button_->adjustSize();
  second_button_->adjustSize();
  const bool both = second_button_->isVisibleTo(this);
  const int wide = button_->width() + (both ? second_button_->width() + 8 : 0);
  button_->move((width() - wide) / 2, height() / 2 + 16);
  second_button_->move((width() - wide) / 2 + button_->width() + 8, height() / 2 + 16);
  image_stale_ = overview_stale_ = true;
  if (other_names) emit wantedLabelWidthChanged(names);
}

TimeScale TimelineView::scale() const {
  return {state_.window(), static_cast<double>(geometry_.lanes.left()), static_cast<double>(geometry_.lanes.width())};
}
TimeScale TimelineView::overviewScale() const {
  return {whole(state_.step()), static_cast<double>(geometry_.overview.left()), static_cast<double>(geometry_.overview.width())};
}

QRect TimelineView::chipRect() const {
  const int wide = fontMetrics().horizontalAdvance(tr("focus") + QStringLiteral("  ✕")) + 14;
  return {geometry_.info.left() + 8, geometry_.info.top() + 3, wide, geometry_.info.height() - 6};
}

std::ptrdiff_t TimelineView::rowAt(const QPoint& position) const {
  if (position.y() < geometry_.lanes.top() || position.y() > geometry_.lanes.bottom() || position.x() > geometry_.lanes.right())
    return -1;
  return state_.layout().row_at(position.y() - geometry_.lanes.top(), scroll());
}

std::optional<SpanRef> TimelineView::spanAt(const QPoint& position) const {
  const std::ptrdiff_t row = rowAt(position);
  if (row < 0 || position.x() < geometry_.lanes.left() || state_.picture() == nullptr) return std::nullopt;
  const TimelineRow& found = state_.layout().rows[static_cast<std::size_t>(row)];
  std::int32_t lane = found.lane;
  if (found.kind == RowKind::kRank && found.collapsed &&
      !state_.picture()->ranks[static_cast<std::size_t>(found.rank)].lanes.empty())
    lane = state_.picture()->ranks[static_cast<std::size_t>(found.rank)].lanes.front();
  return span_under(*state_.picture(), lane, scale(), position.x() + 0.5, 2);
}

std::int64_t TimelineView::snapped(const QPoint& position, Qt::KeyboardModifiers modifiers) const {
  const TimeScale at = scale();
  const std::int64_t time = std::clamp<std::int64_t>(at.time_at(position.x()), 0, state_.step());
  if (modifiers.testFlag(Qt::ControlModifier) || state_.picture() == nullptr) return time;
  const std::ptrdiff_t row = rowAt(position);
  if (row < 0 || state_.layout().rows[static_cast<std::size_t>(row)].lane < 0) return time;
  return edge_near(state_.picture()->lane(state_.layout().rows[static_cast<std::size_t>(row)].lane), at, position.x(), kSnapReach)
      .value_or(time);
}

// What changed.

void TimelineView::changed() {
  update();
  const std::optional<DraggedRange>& range = state_.range();
  emit rangeChanged(range ? range->time.from : 0, range ? range->time.to : 0, range && range->committed);
  if (tableShown()) refreshTable();
}

void TimelineView::windowMoved() {
  image_stale_ = true;
  update();
  emit windowChanged(state_.window().from, state_.window().to);
}

void TimelineView::selectionMoved() {
  place();  // a hidden rank may have been opened
  scrollToRow();
  windowMoved();
  overview_stale_ = true;
  const std::optional<SpanRef> selected = state_.selected();
  if (selected) {
    const LaneSpan& span = span_of(*state_.picture(), *selected);
    emit spanSelected(selected->lane, span.activity, span.copy);
  } else {
    emit spanSelected(-1, -1, 0);
  }
  announce();
}

void TimelineView::announce() {
  const QString current = currentText();
  setAccessibleDescription(current.isEmpty() ? summary() : current);
  announce_timeline(*this);
}

void TimelineView::scrollToRow() {
  const std::ptrdiff_t row = state_.current_row();
  if (row < static_cast<std::ptrdiff_t>(state_.layout().pinned)) return;
  const TimelineRow& current = state_.layout().rows[static_cast<std::size_t>(row)];
  const int page = geometry_.lanes.height() - state_.layout().pinned_height;
  if (current.top < scroll()) scroll_->setValue(current.top);
  if (current.top + current.height > scroll() + page) scroll_->setValue(current.top + current.height - page);
}

// Painting.

void TimelineView::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  TimelinePainter(*this, painter).paint();
}

void TimelineView::resizeEvent(QResizeEvent*) { place(); }

void TimelineView::changeEvent(QEvent* event) {
  if (event->type() == QEvent::PaletteChange || event->type() == QEvent::FontChange || event->type() == QEvent::StyleChange) {
    if (event->type() == QEvent::FontChange) {
      state_.set_metrics(metrics_for(*this));
      words_.clear();
    }
    place();
    update();
  }
  QWidget::changeEvent(event);
}

void TimelineView::focusInEvent(QFocusEvent* event) {
  QWidget::focusInEvent(event);
  update();
}
void TimelineView::focusOutEvent(QFocusEvent* event) {
  chain_ = false;
  QWidget::focusOutEvent(event);
  update();
}

}  // namespace cpfit::gui
