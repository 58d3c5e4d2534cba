#include "gui/timeline/span_table_model.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "gui/look/figures.h"
#include "gui/timeline/span_text.h"

namespace cpfit::gui {

void SpanTableModel::show(std::shared_ptr<const StepPicture> picture, const std::vector<std::int32_t>& lanes, TimeWindow window) {
  beginResetModel();
  picture_ = std::move(picture);
  parts_.clear();
  order_.clear();
  rows_ = 0;
  if (picture_) {
    for (const std::int32_t lane : lanes) {
      const SpanLane& own = picture_->lane(lane);
      const std::size_t first = first_span_after(own, window.from);
      const auto end = std::partition_point(own.spans.begin() + static_cast<std::ptrdiff_t>(first), own.spans.end(),
                                            [&](const LaneSpan& s) { return s.start < window.to; });
      const std::size_t count = static_cast<std::size_t>(end - own.spans.begin()) - first;
      if (count == 0) continue;
      parts_.push_back({lane, first, count, rows_});
      rows_ += count;
    }
  }
  rows_ = std::min<std::size_t>(rows_, std::numeric_limits<int>::max());
  endResetModel();
}

SpanRef SpanTableModel::unsorted(std::size_t row) const {
  const auto part = std::partition_point(parts_.begin(), parts_.end(), [&](const Part& p) { return p.before + p.count <= row; });
  return {part->lane, part->first + (row - part->before)};
}

SpanRef SpanTableModel::spanOf(int row) const {
  const std::size_t at = static_cast<std::size_t>(row);
  return unsorted(order_.empty() ? at : order_[at]);
}

int SpanTableModel::rowOf(SpanRef span) const {
  for (const Part& part : parts_) {
    if (part.lane != span.lane || span.span < part.first || span.span >= part.first + part.count) continue;
    const std::size_t row = part.before + (span.span - part.first);
    if (order_.empty()) return static_cast<int>(row);
    return static_cast<int>(std::find(order_.begin(), order_.end(), static_cast<std::uint32_t>(row)) - order_.begin());
  }
  return -1;
}

int SpanTableModel::rowCount(const QModelIndex& parent) const { return parent.isValid() ? 0 : static_cast<int>(rows_); }
int SpanTableModel::columnCount(const QModelIndex& parent) const { return parent.isValid() ? 0 : static_cast<int>(kColumns); }

QVariant SpanTableModel::headerData(int section, Qt::Orientation orientation, int role) const {
  if (role != Qt::DisplayRole) return {};
  if (orientation == Qt::Vertical) return section + 1;
  switch (section) {
    case kRank:
      return tr("rank");
    case kLane:
      return tr("lane");
    case kWhat:
      return tr("what");
    case kPass:
      return tr("pass");
    case kLayer:
      return tr("layer");
    case kMicroBatch:
      return tr("micro-batch");
    case kStart:
      return tr("begins (ms)");
    case kTime:
      return tr("takes (µs)");
    case kExposed:
      return tr("exposed (µs)");
    case kBytes:
      return tr("moves (MiB)");
    case kPeer:
      return tr("peer");
    default:
      return {};
  }
}

double SpanTableModel::key_of(SpanRef ref, int column) const {
  const LaneSpan& span = span_of(*picture_, ref);
  switch (column) {
    case kRank:
      return static_cast<double>(picture_->cluster_rank(picture_->lane(ref.lane).rank));
    case kLane:
      return ref.lane;
    case kWhat:
      return span.name;
    case kPass:
      return static_cast<double>(span.pass);
    case kLayer:
      return span.layer;
    case kMicroBatch:
      return span.micro_batch;
    case kStart:
      return static_cast<double>(span.start);
    case kTime:
      return static_cast<double>(span.end - span.start);
    case kExposed:
      return static_cast<double>(span.exposed);
    case kBytes:
      return span.bytes;
    case kPeer:
      return static_cast<double>(picture_->cluster_rank(span.peer));
    default:
      return 0;
  }
}

QVariant SpanTableModel::data(const QModelIndex& index, int role) const {
  if (!index.isValid() || !picture_) return {};
  const SpanRef ref = spanOf(index.row());
  const LaneSpan& span = span_of(*picture_, ref);
  if (role == Qt::TextAlignmentRole) {
    const bool words = index.column() == kLane || index.column() == kWhat || index.column() == kPass;
    return QVariant::fromValue(Qt::AlignVCenter | (words ? Qt::AlignLeft : Qt::AlignRight));
  }
  if (role == Qt::ToolTipRole || role == Qt::AccessibleDescriptionRole) return span_sentence(*picture_, ref);
  if (role != Qt::DisplayRole) return {};
  const auto fixed = [](double value, int digits) { return QString::number(value, 'f', digits); };
  switch (index.column()) {
    case kRank: {
      const PictureRank& rank = picture_->ranks[static_cast<std::size_t>(picture_->lane(ref.lane).rank)];
      return rank.title.empty() ? QString::number(static_cast<qlonglong>(rank.rank)) : text_of(rank.title);
    }
    case kLane:
      return text_of(lane_title(picture_->lane(ref.lane)));
    case kWhat:
      return text_of(picture_->timeline.names[static_cast<std::size_t>(span.name)]);
    case kPass:
      return text_of(name_of(span.pass));
    case kLayer:
      return span.layer >= 0 ? QString::number(span.layer) : QString();
    case kMicroBatch:
      return span.micro_batch >= 0 ? QString::number(span.micro_batch) : QString();
    case kStart:
      return fixed(static_cast<double>(span.start) * 1e-9, 6);
    case kTime:
      return fixed(static_cast<double>(span.end - span.start) * 1e-6, 3);
    case kExposed:
      return span.exposed > 0 ? fixed(static_cast<double>(span.exposed) * 1e-6, 3) : QString();
    case kBytes:
      return span.bytes > 0 ? fixed(span.bytes / kMiB, 3) : QString();
    case kPeer:
      return span.peer >= 0 ? QString::number(static_cast<qlonglong>(picture_->cluster_rank(span.peer))) : QString();
    default:
      return {};
  }
}

void SpanTableModel::sort(int column, Qt::SortOrder order) {
  if (!picture_ || rows_ == 0) return;
  emit layoutAboutToBeChanged();
  const QModelIndexList before = persistentIndexList();
  std::vector<SpanRef> held;
  held.reserve(static_cast<std::size_t>(before.size()));
  for (const QModelIndex& index : before) held.push_back(spanOf(index.row()));
  std::vector<double> keys(rows_);
  for (std::size_t row = 0; row < rows_; ++row) keys[row] = key_of(unsorted(row), column);
  order_.resize(rows_);
  std::iota(order_.begin(), order_.end(), 0U);
  std::stable_sort(order_.begin(), order_.end(), [&](std::uint32_t a, std::uint32_t b) {
    return order == Qt::AscendingOrder ? keys[a] < keys[b] : keys[a] > keys[b];
  });
  QModelIndexList after;
  for (qsizetype i = 0; i < before.size(); ++i) {
    after << createIndex(rowOf(held[static_cast<std::size_t>(i)]), before[i].column());
  }
  changePersistentIndexList(before, after);
  emit layoutChanged();
}

}  // namespace cpfit::gui
