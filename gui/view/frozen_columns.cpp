#include "gui/view/frozen_columns.h"

#include <QApplication>
#include <QEvent>
#include <QHeaderView>
#include <QScrollBar>
#include <QTableView>

#include "gui/view/quiet_table.h"

namespace cpfit::gui {

FrozenColumns::FrozenColumns(QTableView* table, int count)
    : QObject(table), table_(table), overlay_(new QTableView(table)), count_(count) {
  make_quiet(overlay_);
  overlay_->setModel(table_->model());
  overlay_->setSelectionModel(table_->selectionModel());
  overlay_->setFocusPolicy(Qt::NoFocus);
  overlay_->setFrameShape(QFrame::NoFrame);
  overlay_->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  overlay_->setVerticalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  overlay_->setVerticalScrollMode(QAbstractItemView::ScrollPerPixel);
  table_->setVerticalScrollMode(QAbstractItemView::ScrollPerPixel);
  overlay_->horizontalHeader()->setStretchLastSection(false);
  overlay_->horizontalHeader()->setSectionsClickable(true);
  overlay_->horizontalHeader()->setSectionResizeMode(QHeaderView::Fixed);
  overlay_->horizontalHeader()->setContextMenuPolicy(Qt::NoContextMenu);
  overlay_->setAccessibleName(table_->accessibleName());
  QHeaderView* header = table_->horizontalHeader();
  connect(header, &QHeaderView::sectionResized, this, &FrozenColumns::follow_columns);
  connect(header, &QHeaderView::geometriesChanged, this, &FrozenColumns::place);
  connect(header, &QHeaderView::sectionMoved, this, [this, header](int, int from, int to) {
    if (moving_ || (from >= count_ && to >= count_)) return;
    moving_ = true;
    header->moveSection(to, from);
    moving_ = false;
  });
  // A click on a frozen heading is one on the heading below it.
  connect(overlay_->horizontalHeader(), &QHeaderView::sectionClicked, header, &QHeaderView::sectionClicked);
  connect(header, &QHeaderView::sortIndicatorChanged, this, &FrozenColumns::follow_columns);
  for (const auto& [one, other] : {std::pair(table_, overlay_), {overlay_, table_}})
    connect(one->verticalScrollBar(), &QScrollBar::valueChanged, other->verticalScrollBar(), &QScrollBar::setValue);
  connect(overlay_, &QTableView::doubleClicked, table_, &QTableView::doubleClicked);
  connect(table_->model(), &QAbstractItemModel::modelReset, this, &FrozenColumns::follow_columns, Qt::QueuedConnection);
  connect(table_->model(), &QAbstractItemModel::columnsInserted, this, &FrozenColumns::follow_columns, Qt::QueuedConnection);
  connect(table_->model(), &QAbstractItemModel::columnsRemoved, this, &FrozenColumns::follow_columns, Qt::QueuedConnection);
  table_->installEventFilter(this);
  table_->viewport()->installEventFilter(this);
  follow_columns();
}

void FrozenColumns::set_count(int count) {
  count_ = count;
  follow_columns();
}

void FrozenColumns::follow_columns() {
  const QHeaderView* header = table_->horizontalHeader();
  overlay_->horizontalHeader()->setSortIndicatorShown(header->isSortIndicatorShown() && header->sortIndicatorSection() < count_);
  if (header->sortIndicatorSection() < count_)
    overlay_->horizontalHeader()->setSortIndicator(header->sortIndicatorSection(), header->sortIndicatorOrder());
  const int columns = table_->model()->columnCount();
  for (int section = 0; section < columns; ++section) {
    overlay_->setColumnHidden(section, section >= count_);
    if (section < count_) overlay_->setColumnWidth(section, table_->columnWidth(section));
  }
  place();
}

void FrozenColumns::place() {
  int width = 0;
  for (int section = 0; section < std::min(count_, table_->model()->columnCount()); ++section)
    width += table_->columnWidth(section);
  // A table that is hardly wider than its frozen part has no room for it.
  const bool room = width > 0 && width < table_->viewport()->width() * 2 / 3;
  overlay_->setVisible(room);
  if (!room) return;
  const QRect inside = table_->viewport()->geometry();
  const int head = table_->horizontalHeader()->height();
  overlay_->horizontalHeader()->setFixedHeight(head);
  overlay_->verticalHeader()->setDefaultSectionSize(table_->verticalHeader()->defaultSectionSize());
  overlay_->setGeometry(inside.left(), inside.top() - head, width, inside.height() + head);
  overlay_->raise();
}

bool FrozenColumns::eventFilter(QObject* watched, QEvent* event) {
  if (event->type() == QEvent::Resize || event->type() == QEvent::Show || event->type() == QEvent::FontChange)
    QMetaObject::invokeMethod(this, &FrozenColumns::place, Qt::QueuedConnection);
  return QObject::eventFilter(watched, event);
}

}  // namespace cpfit::gui
