// What the step timeline says in words and tables: for tooltips, screen readers, the clipboard and files.
#include <QApplication>
#include <QClipboard>

#include "gui/look/figures.h"
#include "gui/timeline/span_table_model.h"
#include "gui/timeline/span_text.h"
#include "gui/timeline/timeline_view.h"

namespace cpfit::gui {

QString TimelineView::summary() const {
  if (mode_ != Mode::kReady || state_.picture() == nullptr) return sentence_;
  return picture_sentence(*state_.picture());
}

QString TimelineView::currentText() const {
  const StepPicture* picture = state_.picture();
  if (picture == nullptr) return {};
  if (state_.selected()) return span_sentence(*picture, *state_.selected());
  if (state_.current_row() < 0) return {};
  const TimelineRow& row = state_.layout().rows[static_cast<std::size_t>(state_.current_row())];
  QString text = text_of(row.title);
  if (row.kind == RowKind::kLane) {
    const PictureRank& rank = picture->ranks[static_cast<std::size_t>(row.rank)];
    text = (rank.title.empty() ? tr("rank %1").arg(static_cast<qlonglong>(rank.rank)) : text_of(rank.title)) +
           QStringLiteral(", ") + text;
  }
  if (!row.note.empty()) text += QStringLiteral(", ") + text_of(row.note);
  if (row.collapsed) text += tr(", collapsed");
  return text;
}

const TimelineElements& TimelineView::visibleElements() const {
  const StepPicture* picture = mode_ == Mode::kReady ? state_.picture() : nullptr;
  const TimelineLayout& layout = state_.layout();
  const QRect& lanes = geometry_.lanes;
  const auto of =
      std::tuple(picture, state_.window().from, state_.window().to, lanes.left(), lanes.top(), lanes.width(), lanes.height(),
                 scroll(), layout.rows.size() * 100'003 + static_cast<std::size_t>(layout.pinned_height));
  if (of != elements_of_) {
    elements_ = picture == nullptr ? TimelineElements{} : visible_elements(*picture, layout, state_.window(), lanes, scroll());
    elements_of_ = of;
  }
  return elements_;
}

std::optional<QRect> TimelineView::placeOf(SpanRef span) const {
  for (const TimelineElement& element : visibleElements().elements) {
    if (element.span == span) return element.rect;
  }
  return std::nullopt;
}

QString TimelineView::rangeText() const {
  if (!state_.range() || state_.picture() == nullptr) return {};
  return range_sentence(*state_.picture(), state_.range()->rank,
                        range_sums(*state_.picture(), state_.range()->rank, state_.range()->time));
}

QString TimelineView::rangeTable() const {
  const StepPicture* picture = state_.picture();
  if (picture == nullptr) return {};
  const TimeWindow range = state_.range() ? state_.range()->time : state_.window();
  QStringList lines{
      tr("rank\tkind\tcount\tsum (ms)\tmean (µs)\tminimum (µs)\tmaximum (µs)\texposed (ms)\tmoved (MiB)\tshare of the range")};
  const auto number = [](double value) { return QString::number(value, 'f', 3); };
  for (const PictureRank& rank : picture->ranks) {
    for (const KindSums& kind : kind_sums(*picture, rank.lanes, range)) {
      lines << QStringList{rank.title.empty() ? QString::number(static_cast<qlonglong>(rank.rank)) : text_of(rank.title),
                           kind_title(kind.kind),
                           QString::number(static_cast<qlonglong>(kind.count)),
                           number(static_cast<double>(kind.sum) * 1e-9),
                           number(kind.mean() * 1e-6),
                           number(static_cast<double>(kind.least) * 1e-6),
                           number(static_cast<double>(kind.most) * 1e-6),
                           number(static_cast<double>(kind.exposed) * 1e-9),
                           number(kind.bytes / kMiB),
                           number(static_cast<double>(kind.sum) / static_cast<double>(range.length()))}
                   .join(QLatin1Char('\t'));
    }
  }
  return lines.join(QLatin1Char('\n')) + QLatin1Char('\n');
}

QString TimelineView::csv() const {
  SpanTableModel model;
  std::vector<std::int32_t> lanes;
  const StepPicture* picture = state_.picture();
  if (picture == nullptr) return {};
  for (const TimelineRow& row : state_.layout().rows) {
    if (row.kind == RowKind::kLane) lanes.push_back(row.lane);
  }
  model.show(state_.shared_picture(), lanes, state_.range() ? state_.range()->time : state_.window());
  QString text;
  for (int c = 0; c < model.columnCount(); ++c)
    text +=
        (c > 0 ? QStringLiteral(",") : QString()) + csv_field(model.headerData(c, Qt::Horizontal, Qt::DisplayRole).toString());
  text += QLatin1Char('\n');
  for (int r = 0; r < model.rowCount(); ++r) {
    for (int c = 0; c < model.columnCount(); ++c)
      text += (c > 0 ? QStringLiteral(",") : QString()) + csv_field(model.index(r, c).data().toString());
    text += QLatin1Char('\n');
  }
  return text;
}

void TimelineView::copy() const {
  const QString text = state_.range() ? rangeTable() : state_.selected() ? currentText() : summary();
  QApplication::clipboard()->setText(text);
}

}  // namespace cpfit::gui
