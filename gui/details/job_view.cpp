#include "gui/details/job_view.h"

#include <QHBoxLayout>
#include <QHeaderView>
#include <QPushButton>
#include <QTableView>
#include <QVBoxLayout>
#include <algorithm>

#include "gui/look/figures.h"

namespace cpfit::gui {

JobView::JobView(Jobs& jobs, QWidget* parent)
    : StudyView(QStringLiteral("jobs"), tr("Jobs"), parent),
      jobs_(jobs),
      table_(new QTableView(this)),
      stop_(new QPushButton(tr("&Stop"), this)) {
  table_->setModel(&jobs_);
  table_->setAccessibleName(tr("Jobs"));
  table_->verticalHeader()->hide();
  table_->setShowGrid(false);
  table_->setAlternatingRowColors(true);
  table_->setSelectionBehavior(QAbstractItemView::SelectRows);
  table_->setSelectionMode(QAbstractItemView::SingleSelection);
  table_->horizontalHeader()->setStretchLastSection(true);
  table_->setColumnWidth(0, 240);
  table_->setColumnWidth(1, 80);
  table_->setColumnWidth(2, 80);
  table_->verticalHeader()->setDefaultSectionSize(fontMetrics().height() + 8);
  stop_->setAccessibleName(tr("Stop the chosen job"));
  auto* side = new QVBoxLayout;
  side->addWidget(stop_);
  side->addStretch(1);
  auto* layout = new QHBoxLayout(this);
  layout->setContentsMargins(0, 0, 6, 0);
  layout->addWidget(table_, 1);
  layout->addLayout(side);
  connect(table_->selectionModel(), &QItemSelectionModel::currentChanged, this, &JobView::refresh);
  connect(&jobs_, &QAbstractItemModel::dataChanged, this, &JobView::refresh);
  connect(&jobs_, &QAbstractItemModel::rowsInserted, this, &JobView::refresh);
  connect(stop_, &QPushButton::clicked, this, [this] {
    const QModelIndex index = table_->currentIndex();
    if (index.isValid()) jobs_.stop(jobs_.rows()[static_cast<std::size_t>(index.row())].number);
  });
  refresh();
}

void JobView::refresh() {
  const QModelIndex index = table_->currentIndex();
  const JobRow* row = index.isValid() ? &jobs_.rows()[static_cast<std::size_t>(index.row())] : nullptr;
  const bool running = row != nullptr && row->state == JobState::kRunning && !row->stopping;
  stop_->setEnabled(running);
  stop_->setToolTip(running ? tr("Ends the chosen job; a sweep or a measurement keeps what it has")
                            : tr("Choose a running job first"));
  tell();
}

QString JobView::summary() const {
  const auto running = std::ranges::count(jobs_.rows(), JobState::kRunning, &JobRow::state);
  return tr("%1 jobs, %2 running").arg(jobs_.rows().size()).arg(running);
}

QString JobView::csv() const {
  QString text = QStringLiteral("job,state,time,result\n");
  for (int row = 0; row < jobs_.rowCount(); ++row) {
    QStringList fields;
    for (int column = 0; column < jobs_.columnCount(); ++column)
      fields.append(csv_field(jobs_.data(jobs_.index(row, column), Qt::DisplayRole).toString()));
    text += fields.join(QLatin1Char(',')) + QLatin1Char('\n');
  }
  return text;
}

}  // namespace cpfit::gui
