#include "gui/calibration/surface_table.h"

#include <algorithm>

#include "gui/look/figures.h"

namespace cpfit::gui {

void SurfaceTable::show_surfaces(std::shared_ptr<const KnownCalibration> known, const QString& filter) {
  beginResetModel();
  known_ = std::move(known);
  shown_.clear();
  const QStringList words = filter.split(QLatin1Char(' '), Qt::SkipEmptyParts);
  for (std::size_t i = 0; known_ && i < known_->surfaces.size(); ++i) {
    const QString text = text_of(known_->surfaces[i].device) + QLatin1Char(' ') + text_of(known_->surfaces[i].name);
    if (std::ranges::all_of(words, [&](const QString& word) { return text.contains(word, Qt::CaseInsensitive); }))
      shown_.push_back(i);
  }
  endResetModel();
}

int SurfaceTable::row_of(std::size_t surface) const {
  const auto found = std::ranges::find(shown_, surface);
  return found == shown_.end() ? -1 : static_cast<int>(found - shown_.begin());
}

int SurfaceTable::rowCount(const QModelIndex& parent) const { return parent.isValid() ? 0 : static_cast<int>(shown_.size()); }
int SurfaceTable::columnCount(const QModelIndex& parent) const { return parent.isValid() ? 0 : 8; }

QVariant SurfaceTable::data(const QModelIndex& index, int role) const {
  if (!checkIndex(index, CheckIndexOption::IndexIsValid)) return {};
  const Surface& surface = known_->surfaces[surface_at(index.row())];
  const FitQuality& q = surface.quality;
  const int column = index.column();
  if (role == Qt::TextAlignmentRole)
    return column >= 3 && column <= 6 ? QVariant(static_cast<int>(Qt::AlignRight | Qt::AlignVCenter)) : QVariant();
  if (role == Qt::ToolTipRole) {
    return q.source.empty() ? QVariant()
                            : QVariant(tr("%1\nErrors are of %2 predictions of shapes that the scored fit had not seen.")
                                           .arg(text_of(q.source), count_text(q.held_out)));
  }
  if (role != Qt::DisplayRole) return {};
  switch (column) {
    case 0:
      return text_of(surface.device);
    case 1:
      return text_of(surface.name);
    case 2:
      return evidence_text(q.evidence);
    case 3:
      return q.rows > 0 ? count_text(q.rows) : QStringLiteral("–");
    case 4:
      return share_text(q.median_error);
    case 5:
      return share_text(q.p90_error);
    case 6:
      return q.noise > 0.0 ? share_text(q.noise) : QStringLiteral("–");
    default:
      return text_of(surface.range);
  }
}

QVariant SurfaceTable::headerData(int section, Qt::Orientation orientation, int role) const {
  if (orientation != Qt::Horizontal || section < 0 || section > 7) return {};
  const QString names[] = {tr("Device or link"), tr("Surface"), tr("Evidence"),       tr("Points"),
                           tr("Median error"),   tr("90 %"),    tr("Measured noise"), tr("Fitted on")};
  if (role == Qt::DisplayRole) return names[section];
  if (role == Qt::ToolTipRole && (section == 4 || section == 5))
    return tr("of predictions on shapes kept out of the fit (hold-out)");
  return {};
}

}  // namespace cpfit::gui
