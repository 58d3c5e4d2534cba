#include "gui/details/notices.h"

#include "gui/look/figures.h"
#include "gui/study/recipe_values.h"

namespace cpfit::gui {

std::vector<Notice> notices_of(const Estimate& estimate, const QString& trouble) {
  std::vector<Notice> notices;
  for (const Problem& problem : estimate.problems)
    notices.push_back({Severity::kError, text_of(problem.message), text_of(problem.repair), parameter_of(problem)});
  if (estimate.legal()) {
    const Candidate& c = *estimate.candidate;
    for (const std::string& reason : c.reasons) {
      Notice notice{reason.find("outside what was measured") != std::string::npos ? Severity::kNote : Severity::kWarning,
                    text_of(reason),
                    {},
                    {}};
      if (notice.severity == Severity::kNote) notice.repair = QObject::tr("measure such shapes and import the calibration");
      if (reason.ends_with(kNotAGainOfCp)) {
        notice.repair = QObject::tr("compare at the control's recompute, micro-batch, sharding and precision");
        notice.row = "recompute";
      }
      if (reason.find("exposes CP") != std::string::npos) notice.row = "cp_comm";
      if (reason.find("misses by") != std::string::npos || reason.find("at risk") != std::string::npos) {
        notice.row = "recompute";
        notice.repair = QObject::tr("see what would free memory, in the Memory view");
      }
      notices.push_back(std::move(notice));
    }
  }
  if (!trouble.isEmpty()) notices.push_back({Severity::kNote, trouble, {}, {}});
  return notices;
}

void NoticeTable::set_notices(std::vector<Notice> notices) {
  beginResetModel();
  notices_ = std::move(notices);
  endResetModel();
}

int NoticeTable::rowCount(const QModelIndex& parent) const { return parent.isValid() ? 0 : static_cast<int>(notices_.size()); }
int NoticeTable::columnCount(const QModelIndex& parent) const { return parent.isValid() ? 0 : 4; }

QVariant NoticeTable::data(const QModelIndex& index, int role) const {
  if (!checkIndex(index, CheckIndexOption::IndexIsValid)) return {};
  const Notice& notice = notices_[static_cast<std::size_t>(index.row())];
  if (role == Qt::ToolTipRole)
    return QStringLiteral("<p>%1</p><p>%2</p>").arg(notice.what.toHtmlEscaped(), notice.repair.toHtmlEscaped());
  if (role != Qt::DisplayRole) return {};
  switch (index.column()) {
    case 0:
      return notice.severity == Severity::kError     ? tr("✕ error")
             : notice.severity == Severity::kWarning ? tr("▲ warning")
                                                     : tr("ⓘ note");
    case 1:
      return notice.what;
    case 2:
      return notice.repair;
    default: {
      const Parameter* parameter = find_parameter(notice.row);
      return parameter == nullptr ? QString() : text_of(parameter->label);
    }
  }
}

QVariant NoticeTable::headerData(int section, Qt::Orientation orientation, int role) const {
  if (orientation != Qt::Horizontal || role != Qt::DisplayRole) return {};
  const QString names[] = {tr("Severity"), tr("What"), tr("Repair"), tr("Row")};
  return section >= 0 && section < 4 ? names[section] : QVariant();
}

}  // namespace cpfit::gui
