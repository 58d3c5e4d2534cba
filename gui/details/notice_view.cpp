#include "gui/details/notice_view.h"

#include <QHeaderView>
#include <QLabel>
#include <QTableView>
#include <QVBoxLayout>
#include <algorithm>

#include "gui/details/notices.h"
#include "gui/look/figures.h"

namespace cpfit::gui {

NoticeView::NoticeView(StudyDocument& document, LiveEstimate& live, Selection& selection, QWidget* parent)
    : StudyView(QStringLiteral("problems"), tr("Problems"), parent),
      document_(document),
      live_(live),
      notices_(new NoticeTable(this)),
      table_(new QTableView(this)),
      none_(new QLabel(this)) {
  table_->setModel(notices_);
  table_->setAccessibleName(tr("Problems"));
  table_->verticalHeader()->hide();
  table_->setShowGrid(false);
  table_->setAlternatingRowColors(true);
  table_->setWordWrap(true);
  table_->setSelectionBehavior(QAbstractItemView::SelectRows);
  table_->setSelectionMode(QAbstractItemView::SingleSelection);
  table_->horizontalHeader()->setSectionResizeMode(QHeaderView::ResizeToContents);
  table_->horizontalHeader()->setSectionResizeMode(1, QHeaderView::Stretch);
  table_->verticalHeader()->setSectionResizeMode(QHeaderView::ResizeToContents);
  none_->setContentsMargins(10, 8, 10, 8);
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->addWidget(none_);
  layout->addWidget(table_, 1);
  connect(&live_, &LiveEstimate::estimate_changed, this, &NoticeView::refresh);
  connect(&live_, &LiveEstimate::simulation_changed, this, &NoticeView::refresh);
  connect(table_, &QTableView::activated, this, [this, &selection](const QModelIndex& index) {
    const QString row = text_of(notices_->notices()[static_cast<std::size_t>(index.row())].row);
    if (row.isEmpty()) return;
    // The same row twice is a wish to go there again.
    selection.change(this, [](Selected& s) { s.parameter.clear(); });
    selection.change(this, [&](Selected& s) { s.parameter = row; });
  });
}

void NoticeView::refresh() {
  notices_->set_notices(document_.is_open() ? notices_of(live_.now(), live_.simulation_trouble()) : std::vector<Notice>{});
  const bool empty = notices_->notices().empty();
  none_->setVisible(empty);
  none_->setText(document_.is_open() ? tr("No problems: every rule holds.") : tr("Open a study to see what its rules say."));
  table_->setVisible(!empty);
  tell();
}

int NoticeView::errors() const {
  return static_cast<int>(std::ranges::count(notices_->notices(), Severity::kError, &Notice::severity));
}

QString NoticeView::summary() const {
  const auto count = [this](Severity severity) { return std::ranges::count(notices_->notices(), severity, &Notice::severity); };
  return tr("%1 errors, %2 warnings, %3 notes")
      .arg(count(Severity::kError))
      .arg(count(Severity::kWarning))
      .arg(count(Severity::kNote));
}

QString NoticeView::csv() const {
  QString text = QStringLiteral("severity,what,repair,row\n");
  for (const Notice& notice : notices_->notices()) {
    const QString severity = notice.severity == Severity::kError     ? QStringLiteral("error")
                             : notice.severity == Severity::kWarning ? QStringLiteral("warning")
                                                                     : QStringLiteral("note");
    text += severity + QLatin1Char(',') + csv_field(notice.what) + QLatin1Char(',') + csv_field(notice.repair) +
            QLatin1Char(',') + csv_field(text_of(notice.row)) + QLatin1Char('\n');
  }
  return text;
}

}  // namespace cpfit::gui
