#include "gui/timeline/timeline_paint.h"

#include <QPainter>
#include <QPainterPath>
#include <algorithm>
#include <cmath>

#include "gui/look/figures.h"
#include "gui/look/hatch.h"
#include "gui/timeline/span_text.h"

namespace cpfit::gui {

namespace {

QColor with_alpha(QColor color, int alpha) {
  color.setAlpha(alpha);
  return color;
}

/// Black or white, whatever reads better.
QColor ink_on(Pixel ground) {
  const QColor color = QColor::fromRgb(ground);
  return contrast(color, Qt::white) >= contrast(color, QColor(0x10, 0x13, 0x1A)) ? QColor(Qt::white) : QColor(0x10, 0x13, 0x1A);
}

}  // namespace

RasterPalette raster_palette(const ColorTokens& tokens) {
  RasterPalette palette;
  for (std::size_t k = 0; k < kSpanKinds; ++k) palette.kind[k] = color_of(tokens, static_cast<SpanKind>(k)).rgb() | 0xff000000U;
  palette.background = tokens.surface.rgb() | 0xff000000U;
  palette.exposed = tokens.exposed.rgb() | 0xff000000U;
  // The darker of the exposed hue and the text: the hatch reads on both themes.
  palette.hatch = mixed(tokens.exposed, QColor(0x10, 0x08, 0x02), 0.72).rgb() | 0xff000000U;
  palette.stall = palette.exposed;
  palette.critical = tokens.text.rgb() | 0xff000000U;
  return palette;
}

TimelinePainter::TimelinePainter(const TimelineView& view, QPainter& painter)
    : view_(view),
      painter_(painter),
      tokens_(tokens_for(view.palette())),
      at_(view.geometry_),
      picture_(view.state_.picture()),
      small_(view.font()) {
  small_.setPointSizeF(std::max(6.5, small_.pointSizeF() * 0.88));
}

void TimelinePainter::paint() {
  painter_.fillRect(view_.rect(), tokens_.window);
  if (picture_ == nullptr || view_.mode_ == TimelineView::Mode::kEmpty) return state();
  painter_.setFont(view_.font());
  view_.refreshImage();
  overview();
  ruler();
  lanes();
  label_column();
  tracks();
  range();
  markers();
  info();
  if (view_.mode_ != TimelineView::Mode::kReady) state();
  if (view_.hasFocus()) {
    painter_.setPen(QPen(tokens_.accent, 2));
    painter_.setBrush(Qt::NoBrush);
    painter_.drawRect(QRectF(view_.rect()).adjusted(1, 1, -1, -1));
  }
}

void TimelinePainter::words(const QRectF& area, const QString& text, const QColor& color, Qt::Alignment alignment) {
  painter_.setPen(color);
  const QString fitting = painter_.fontMetrics().elidedText(text, Qt::ElideRight, static_cast<int>(area.width()));
  painter_.drawText(area, static_cast<int>(alignment) | Qt::TextSingleLine, fitting);
}

void TimelinePainter::overview() {
  const QRect area = at_.overview;
  painter_.fillRect(area, tokens_.surface);
  painter_.drawImage(area.topLeft(), view_.overview_);
  const TimeScale scale = view_.overviewScale();
  const TimeWindow window = view_.state_.window();
  const double from = scale.x_of(window.from), to = std::max(scale.x_of(window.to), from + 3);
  const QColor veil = with_alpha(tokens_.window, 150);
  painter_.fillRect(QRectF(area.left(), area.top(), from - area.left(), area.height()), veil);
  painter_.fillRect(QRectF(to, area.top(), area.right() + 1 - to, area.height()), veil);
  painter_.setPen(QPen(tokens_.accent, 2));
  painter_.setBrush(Qt::NoBrush);
  painter_.drawRect(QRectF(from, area.top() + 1, to - from, area.height() - 2));
  painter_.setBrush(tokens_.accent);
  painter_.setPen(Qt::NoPen);
  for (const double x : {from, to}) painter_.drawRect(QRectF(x - 2, area.center().y() - 6, 4, 12));
  painter_.setFont(small_);
  words(QRectF(4, area.top(), at_.label_width - 12, area.height()),
        view_.tr("whole step, %1").arg(duration_text(picture_->timeline.step)), tokens_.muted, Qt::AlignVCenter | Qt::AlignRight);
}

void TimelinePainter::ruler() {
  const QRect area = at_.ruler;
  painter_.fillRect(QRect(0, area.top(), view_.width(), area.height()), tokens_.raised);
  painter_.setFont(small_);
  const TimeScale scale = view_.scale();
  const TimeAxis axis = time_axis(scale, 84);
  QString unit = view_.tr("time in %1").arg(QString::fromUtf8(name_of(axis.unit)));
  if (axis.label_origin != 0)
    unit = view_.tr("from %1, in %2")
               .arg(text_of(print_instant(axis.label_origin, axis.distance)), QString::fromUtf8(name_of(axis.unit)));
  words(QRectF(4, area.top(), at_.label_width - 12, 16), unit, tokens_.muted, Qt::AlignVCenter | Qt::AlignRight);
  painter_.save();
  painter_.setClipRect(area);
  for (const TimeTick& tick : axis.ticks) {
    const double x = std::round(scale.x_of(tick.time)) + 0.5;
    painter_.setPen(tick.label.empty() ? tokens_.line : tokens_.muted);
    painter_.drawLine(QPointF(x, area.top() + (tick.label.empty() ? 12 : 2)), QPointF(x, area.top() + 17));
    if (!tick.label.empty()) {
      painter_.setPen(tokens_.text);
      painter_.drawText(QRectF(x + 4, area.top(), 82, 16), Qt::AlignVCenter | Qt::AlignLeft, QString::fromStdString(tick.label));
    }
  }
  ring_steps(scale);
  painter_.restore();
  painter_.setPen(tokens_.line);
  painter_.drawLine(0, area.bottom(), view_.width(), area.bottom());
}

/// Steps of the ring on the current rank, where they are wide enough to be counted.
void TimelinePainter::ring_steps(const TimeScale& scale) {
  const std::int32_t rank = view_.state_.current_rank();
  if (rank < 0) return;
  const QRect area = at_.ruler;
  std::vector<SpanRef> steps;  // attention of all compute lanes: a ring may alternate between two
  for (const std::int32_t index : picture_->ranks[static_cast<std::size_t>(rank)].lanes) {
    const SpanLane& lane = picture_->lane(index);
    if (family_of(lane) != LaneFamily::kCompute) break;
    constexpr std::size_t kMost = 4000;  // beyond, they are far too narrow to be numbered
    const std::size_t first = first_span_after(lane, scale.window.from);
    for (std::size_t s = first; s < std::min(lane.spans.size(), first + kMost) && lane.spans[s].start < scale.window.to; ++s) {
      const LaneSpan& span = lane.spans[s];
      if (span.kind == SpanKind::kAttention && number_of(picture_->timeline.names[static_cast<std::size_t>(span.name)]) >= 0)
        steps.push_back({index, s});
    }
  }
  const auto start_of = [&](SpanRef ref) { return span_of(*picture_, ref).start; };
  std::sort(steps.begin(), steps.end(), [&](SpanRef a, SpanRef b) { return start_of(a) < start_of(b); });
  bool any = false;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const LaneSpan& span = span_of(*picture_, steps[i]);
    const double left = scale.x_of(span.start);
    double right = scale.x_of(span.end);
    if (i + 1 < steps.size()) right = std::min(right, scale.x_of(start_of(steps[i + 1])));
    if (right - left < 16) continue;
    const std::int32_t number = number_of(picture_->timeline.names[static_cast<std::size_t>(span.name)]);
    const QRectF cell(left, area.top() + 18, right - left, area.height() - 19);
    painter_.fillRect(cell.adjusted(0, 1, -1, -1), mixed(tokens_.raised, tokens_.attention, number % 2 == 0 ? 0.16 : 0.28));
    words(cell, QString::number(number + 1), tokens_.text, Qt::AlignCenter);
    any = true;
  }
  if (!any) return;
  painter_.setClipping(false);
  words(QRectF(4, area.top() + 18, at_.label_width - 12, area.height() - 19),
        view_.tr("ring step, %1")
            .arg(picture_->ranks[static_cast<std::size_t>(rank)].title.empty()
                     ? view_.tr("rank %1").arg(static_cast<qlonglong>(picture_->cluster_rank(rank)))
                     : text_of(picture_->ranks[static_cast<std::size_t>(rank)].title)),
        tokens_.muted, Qt::AlignVCenter | Qt::AlignRight);
}

void TimelinePainter::label_column() {
  const TimelineState& state = view_.state_;
  const QRect area = at_.labels;
  painter_.save();
  painter_.setClipRect(QRect(area.left(), area.top(), view_.width() - area.left(), area.height()));
  painter_.fillRect(area, tokens_.window);
  const TimelineLayout& layout = state.layout();
  const int scroll = view_.scroll();
  const auto row_at = [&](std::size_t r) {
    const TimelineRow& row = layout.rows[r];
    const int top = at_.lanes.top() + layout.top_of(r, scroll);
    if (top + row.height <= area.top() || top > area.bottom()) return;
    const bool current = static_cast<std::ptrdiff_t>(r) == state.current_row();
    const QRect line(area.left(), top, area.width(), row.height);
    if (row.kind != RowKind::kLane && !(row.kind == RowKind::kRank && row.collapsed)) {
      painter_.fillRect(QRect(line.left(), top, view_.width() - line.left(), row.height),
                        row.kind == RowKind::kMore ? tokens_.window : tokens_.raised);
    }
    if (current) painter_.fillRect(line, with_alpha(tokens_.accent, 56));
    if (current) painter_.fillRect(QRect(line.left(), top, 3, row.height), tokens_.accent);
    const bool header = row.kind == RowKind::kNode || row.kind == RowKind::kRank;
    QFont font = row.kind == RowKind::kLane ? small_ : view_.font();
    font.setBold(header);
    painter_.setFont(font);
    const int indent = row.kind == RowKind::kNode ? 18 : row.kind == RowKind::kRank ? 24 : 30;
    if (header) {
      QPainterPath triangle;  // points down when open, right when collapsed
      const QPointF middle(line.left() + indent - 10, line.center().y() + 1);
      triangle.addPolygon(row.collapsed ? QPolygonF({middle + QPointF(-3, -4), middle + QPointF(3, 0), middle + QPointF(-3, 4)})
                                        : QPolygonF({middle + QPointF(-4, -3), middle + QPointF(4, -3), middle + QPointF(0, 3)}));
      painter_.fillPath(triangle, tokens_.muted);
    }
    QString title = text_of(row.title);
    if (row.kind == RowKind::kLane) {
      words(QRectF(line.left() + indent, top, line.width() - indent - 10, row.height), title, tokens_.muted,
            Qt::AlignVCenter | Qt::AlignRight);
      return;
    }
    if (row.kind == RowKind::kMore) {
      painter_.setFont(small_);
      words(QRectF(line.left() + indent, top, line.width() - indent - 10, row.height), title, tokens_.accent,
            Qt::AlignVCenter | Qt::AlignRight);
      words(QRectF(at_.lanes.left() + 6, top, at_.lanes.width() - 12, row.height), text_of(row.note), tokens_.muted,
            Qt::AlignVCenter | Qt::AlignLeft);
      return;
    }
    if (row.pinned) title = QStringLiteral("◆ ") + title;
    words(QRectF(line.left() + indent, top, line.width() - indent - 6, row.height), title, tokens_.text,
          Qt::AlignVCenter | Qt::AlignLeft);
    painter_.setFont(small_);
    if (!row.note.empty() && !row.collapsed)
      words(QRectF(at_.lanes.left() + 6, top, at_.lanes.width() - 12, row.height), text_of(row.note), tokens_.muted,
            Qt::AlignVCenter | Qt::AlignLeft);
  };
  painter_.save();
  painter_.setClipRect(
      QRect(area.left(), area.top() + layout.pinned_height, view_.width() - area.left(), area.height() - layout.pinned_height));
  for (std::size_t r = layout.pinned; r < layout.rows.size(); ++r) row_at(r);
  painter_.restore();
  painter_.setClipRect(QRect(area.left(), area.top(), view_.width() - area.left(), area.height()));
  for (std::size_t r = 0; r < layout.pinned; ++r) row_at(r);
  if (layout.pinned > 0) {
    painter_.setPen(QPen(tokens_.muted, 1));
    const int y = area.top() + layout.pinned_height - 2;
    painter_.drawLine(area.left(), y, view_.width(), y);
  }
  painter_.restore();
  painter_.setPen(tokens_.line);
  painter_.drawLine(area.right(), area.top(), area.right(), view_.at_bottom());
}

void TimelinePainter::lanes() {
  painter_.fillRect(at_.lanes, tokens_.surface);
  painter_.drawImage(at_.lanes.topLeft(), view_.image_);
  // Ticks go on as faint lines, so that a lane far below is still read against the ruler.
  const TimeScale scale = view_.scale();
  painter_.save();
  painter_.setClipRect(at_.lanes);
  painter_.setPen(with_alpha(tokens_.text, 22));
  for (const TimeTick& tick : time_axis(scale, 84).ticks) {
    if (tick.label.empty()) continue;
    const double x = std::round(scale.x_of(tick.time)) + 0.5;
    painter_.drawLine(QPointF(x, at_.lanes.top()), QPointF(x, at_.lanes.bottom()));
  }
  step_end(scale);
  span_labels();
  flow();
  selection();
  painter_.restore();
}

/// On a longer axis: where the step ends, and that behind it there is nothing.
void TimelinePainter::step_end(const TimeScale& scale) {
  const std::int64_t end = picture_->timeline.step;
  if (view_.state_.step() <= end || scale.window.to <= end) return;
  const double x = std::max(scale.x_of(end), static_cast<double>(at_.lanes.left()));
  const QRectF behind(x, at_.lanes.top(), at_.lanes.right() + 1 - x, at_.lanes.height());
  painter_.fillRect(behind, QBrush(with_alpha(tokens_.muted, 50), Qt::BDiagPattern));
  painter_.setPen(QPen(tokens_.muted, 1.5));
  painter_.drawLine(behind.topLeft(), behind.bottomLeft());
  painter_.setFont(small_);
  words(behind.adjusted(6, 4, 0, 0), view_.tr("step ends, %1").arg(duration_text(end)), tokens_.muted,
        Qt::AlignTop | Qt::AlignLeft);
}

void TimelinePainter::span_labels() {
  painter_.setFont(small_);
  const QFontMetricsF metrics(small_);
  for (const LabelPlace& place : view_.labels_) {
    const double left = std::max(place.left, 0.0) + 4, right = std::min(place.right, static_cast<double>(at_.lanes.width())) - 3;
    if (right - left < 8) continue;
    for (const QString& text : gui::span_labels(*picture_, place.span)) {
      auto known = view_.words_.find(text);
      if (known == view_.words_.end()) {
        QStaticText made(text);
        made.setTextFormat(Qt::PlainText);
        made.prepare({}, small_);
        known = view_.words_.insert(text, made);
      }
      const QSizeF size = known->size();
      if (size.width() > right - left) continue;
      painter_.setPen(ink_on(place.ground));
      painter_.drawStaticText(QPointF(at_.lanes.left() + left, at_.lanes.top() + place.top + (place.height - size.height()) / 2),
                              *known);
      break;
    }
  }
}

void TimelinePainter::range() {
  const std::optional<DraggedRange>& range = view_.state_.range();
  if (!range) return;
  const TimeScale scale = view_.scale();
  const int top = at_.ruler.top(), bottom = view_.at_bottom();
  const double left = std::clamp(scale.x_of(range->time.from), double(at_.lanes.left()), double(at_.lanes.right()) + 1);
  const double right = std::clamp(scale.x_of(range->time.to), double(at_.lanes.left()), double(at_.lanes.right()) + 1);
  if (right <= left && (scale.x_of(range->time.to) < at_.lanes.left() || scale.x_of(range->time.from) > at_.lanes.right()))
    return;
  painter_.fillRect(QRectF(left, top, right - left, bottom - top), with_alpha(tokens_.accent, range->committed ? 44 : 28));
  painter_.setPen(QPen(tokens_.accent, range->committed ? 2 : 1));
  painter_.drawLine(QPointF(left, top), QPointF(left, bottom));
  painter_.drawLine(QPointF(right, top), QPointF(right, bottom));
  // Its length, in the middle of what is seen of it.
  painter_.setFont(small_);
  const QString text = duration_text(range->time.length());
  const double width = painter_.fontMetrics().horizontalAdvance(text) + 12;
  const double x = std::clamp((left + right - width) / 2, double(at_.lanes.left()), double(at_.lanes.right()) - width);
  const QRectF box(x, top + 1, width, 16);
  painter_.setPen(Qt::NoPen);
  painter_.setBrush(tokens_.accent);
  painter_.drawRoundedRect(box, 3, 3);
  words(box, text, tokens_.on_accent, Qt::AlignCenter);
}

void TimelinePainter::markers() {
  const TimeScale scale = view_.scale();
  painter_.setFont(small_);
  for (const Marker& marker : view_.state_.markers()) {
    const double x = std::round(scale.x_of(marker.time)) + 0.5;
    if (x < at_.lanes.left() || x > at_.lanes.right()) continue;
    painter_.setPen(QPen(tokens_.text, 1, Qt::DashLine));
    painter_.drawLine(QPointF(x, at_.ruler.top()), QPointF(x, view_.at_bottom()));
    const QString text = text_of(marker.name);
    const QRectF box(x, at_.ruler.top() + 18, painter_.fontMetrics().horizontalAdvance(text) + 10, 15);
    painter_.setPen(Qt::NoPen);
    painter_.setBrush(tokens_.text);
    painter_.drawRect(box);
    words(box, text, tokens_.surface, Qt::AlignCenter);
  }
}

void TimelinePainter::info() {
  const QRect area = at_.info;
  painter_.fillRect(area, tokens_.raised);
  painter_.setPen(tokens_.line);
  painter_.drawLine(area.topLeft(), area.topRight());
  painter_.setFont(small_);
  const QRect inner = area.adjusted(8, 0, -8, 0);
  if (view_.state_.range()) {
    const QRect chip = view_.chipRect();
    painter_.setRenderHint(QPainter::Antialiasing, true);
    painter_.setPen(QPen(tokens_.accent, 1));
    painter_.setBrush(view_.state_.range()->committed ? tokens_.accent : tokens_.surface);
    painter_.drawRoundedRect(QRectF(chip).adjusted(0.5, 0.5, -0.5, -0.5), 8, 8);
    painter_.setRenderHint(QPainter::Antialiasing, false);
    words(QRectF(chip).adjusted(8, 0, -6, 0),
          (view_.state_.range()->committed ? view_.tr("focus") : view_.tr("range")) + QStringLiteral("  ✕"),
          view_.state_.range()->committed ? tokens_.on_accent : tokens_.text, Qt::AlignVCenter | Qt::AlignLeft);
    words(QRectF(chip.right() + 10, area.top(), inner.right() - chip.right() - 10, area.height()), view_.rangeText(),
          tokens_.text, Qt::AlignVCenter | Qt::AlignLeft);
    return;
  }
  if (view_.state_.selected()) {
    words(QRectF(inner), span_sentence(*picture_, *view_.state_.selected()), tokens_.text, Qt::AlignVCenter | Qt::AlignLeft);
    return;
  }
  legend(inner);
}

/// What the hues and hatches mean: those that occur.
void TimelinePainter::legend(const QRect& area) {
  std::array<bool, kSpanKinds> seen{};
  bool exposed = false, recomputed = false;
  for (std::size_t l = 0; l < picture_->sums.size(); ++l) {
    for (const SpanKind kind : picture_->sums[l].kinds) seen[static_cast<std::size_t>(kind)] = true;
    exposed = exposed || (!picture_->sums[l].before.empty() && picture_->sums[l].before.back() > 0);
    recomputed = recomputed || !picture_->marks[l].empty();
  }
  double x = area.left();
  const auto entry = [&](const QString& name, const QColor& color, Hatch hatch, const QColor& ink) {
    const double width = painter_.fontMetrics().horizontalAdvance(name);
    if (x + 20 + width > area.right()) return;
    const QRectF box(x, area.center().y() - 5, 14, 11);
    painter_.fillRect(box, color);
    paint_hatch(painter_, box, hatch, ink);
    words(QRectF(x + 19, area.top(), width + 2, area.height()), name, tokens_.text, Qt::AlignVCenter | Qt::AlignLeft);
    x += 19 + width + 16;
  };
  for (std::size_t k = 0; k < kSpanKinds; ++k) {
    if (seen[k]) entry(kind_title(static_cast<SpanKind>(k)), color_of(tokens_, static_cast<SpanKind>(k)), Hatch::kNone, {});
  }
  const RasterPalette palette = raster_palette(tokens_);
  if (exposed) {
    entry(view_.tr("exposed"), tokens_.exposed, Hatch::kExposed, QColor::fromRgb(palette.hatch));
    const double width = painter_.fontMetrics().horizontalAdvance(view_.tr("stalled by it"));
    if (x + 20 + width <= area.right()) {
      painter_.fillRect(QRectF(x, area.center().y() + 2, 14, 3), tokens_.exposed);
      words(QRectF(x + 19, area.top(), width + 2, area.height()), view_.tr("stalled by it"), tokens_.text,
            Qt::AlignVCenter | Qt::AlignLeft);
      x += 19 + width + 16;
    }
  }
  if (recomputed && std::any_of(picture_->marks.begin(), picture_->marks.end(), [](const auto& lane) {
        return std::any_of(lane.begin(), lane.end(), [](std::uint8_t m) { return (m & kRecomputed) != 0; });
      }))
    entry(view_.tr("recomputed"), tokens_.attention, Hatch::kRecompute, mixed(tokens_.attention, tokens_.surface, 0.3));
  if (view_.critical_) {
    painter_.fillRect(QRectF(x, area.center().y() + 3, 14, 2), tokens_.text);
    words(QRectF(x + 19, area.top(), area.right() - x - 19, area.height()), view_.tr("critical path"), tokens_.text,
          Qt::AlignVCenter | Qt::AlignLeft);
  }
}

/// Empty, busy, failed: a sentence where the picture is missing, or across a dimmed one.
void TimelinePainter::state() {
  const bool dimmed = picture_ != nullptr && view_.mode_ != TimelineView::Mode::kEmpty;
  const QRect area = view_.rect();
  if (dimmed) painter_.fillRect(area, with_alpha(tokens_.window, 150));
  QFont font = view_.font();
  font.setPointSizeF(font.pointSizeF() * 1.1);
  painter_.setFont(font);
  const QRectF room(area.left() + 24, area.center().y() - 64, area.width() - 48, 60);
  if (dimmed) {
    const QRectF box = QRectF(painter_.fontMetrics().boundingRect(
                                  room.toRect(), Qt::AlignHCenter | Qt::AlignBottom | Qt::TextWordWrap, view_.sentence_))
                           .adjusted(-18, -12, 18, 64);
    painter_.setRenderHint(QPainter::Antialiasing, true);
    painter_.setPen(tokens_.line);
    painter_.setBrush(tokens_.surface);
    painter_.drawRoundedRect(box, 6, 6);
    painter_.setRenderHint(QPainter::Antialiasing, false);
  }
  painter_.setPen(view_.mode_ == TimelineView::Mode::kFailed ? tokens_.bad : tokens_.text);
  painter_.drawText(room, Qt::AlignHCenter | Qt::AlignBottom | Qt::TextWordWrap, view_.sentence_);
  if (view_.mode_ == TimelineView::Mode::kBusy) {
    const QRectF bar(area.center().x() - 100, area.center().y() + 2, 200, 6);
    painter_.fillRect(bar, tokens_.grid);
    const double share = view_.progress_ >= 0 ? std::min(1.0, view_.progress_) : 0.25;
    painter_.fillRect(QRectF(bar.left(), bar.top(), bar.width() * share, bar.height()), tokens_.accent);
  }
}

}  // namespace cpfit::gui
