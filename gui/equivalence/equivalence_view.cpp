#include "gui/equivalence/equivalence_view.h"

#include <QCheckBox>
#include <QComboBox>
#include <QDateTime>
#include <QHBoxLayout>
#include <QHeaderView>
#include <QLabel>
#include <QLineEdit>
#include <QSplitter>
#include <QTableView>
#include <QTableWidget>
#include <QVBoxLayout>
#include <cmath>

#include "gui/look/figures.h"
#include "gui/view/quiet_table.h"

namespace cpfit::gui {

namespace {

constexpr int kFirstTensor = 7;

QString error_text(double value) { return std::isfinite(value) ? QString::number(value, 'e', 1) : QStringLiteral("no number"); }

}  // namespace

void CaseTable::show_cases(const Verification* verification, std::vector<std::size_t> rows) {
  beginResetModel();
  verification_ = verification;
  rows_ = std::move(rows);
  endResetModel();
}

int CaseTable::rowCount(const QModelIndex& parent) const { return parent.isValid() ? 0 : static_cast<int>(rows_.size()); }
int CaseTable::columnCount(const QModelIndex& parent) const { return parent.isValid() ? 0 : kFirstTensor + kVerifiedTensors; }

QVariant CaseTable::data(const QModelIndex& index, int role) const {
  if (!checkIndex(index, CheckIndexOption::IndexIsValid)) return {};
  const VerifiedCase& one = verification_->cases[rows_[static_cast<std::size_t>(index.row())]];
  const int column = index.column();
  if (role == Qt::TextAlignmentRole)
    return column == 3 || column >= kFirstTensor ? QVariant(static_cast<int>(Qt::AlignRight | Qt::AlignVCenter)) : QVariant();
  if (role == Qt::ToolTipRole) {
    if (column >= kFirstTensor) {
      const TensorError& error = one.errors[static_cast<std::size_t>(column - kFirstTensor)];
      if (!error.judged) return tr("The implementation does not give this tensor.");
      return tr("normwise %1 of at most %2, largest %3 of at most %4; the unsharded kernel itself is off by %5")
          .arg(error_text(error.normwise), error_text(error.normwise_limit), error_text(error.largest),
               error_text(error.largest_limit), error_text(error.kernel_normwise));
    }
    return one.trouble.empty() ? QVariant() : QVariant(text_of(one.trouble));
  }
  if (role != Qt::DisplayRole) return {};
  switch (column) {
    case 0:
      return one.passed ? tr("✓ agrees") : tr("✕ differs");
    case 1:
      return text_of(one.method);
    case 2:
      return text_of(one.mask);
    case 3:
      return one.cp;
    case 4:
      return text_of(one.shape);
    case 5:
      return text_of(one.layout);
    case 6:
      return text_of(one.dtype);
    default: {
      const TensorError& error = one.errors[static_cast<std::size_t>(column - kFirstTensor)];
      if (!error.judged) return QStringLiteral("–");
      return error_text(error.normwise) + (error.passed() ? QString() : QStringLiteral(" ✕"));
    }
  }
}

QVariant CaseTable::headerData(int section, Qt::Orientation orientation, int role) const {
  if (orientation != Qt::Horizontal || section < 0 || section >= kFirstTensor + kVerifiedTensors) return {};
  if (section >= kFirstTensor) {
    if (role == Qt::DisplayRole) return text_of(name_of(static_cast<VerifiedTensor>(section - kFirstTensor)));
    return role == Qt::ToolTipRole ? QVariant(tr("normwise error against the unsharded fp64 truth")) : QVariant();
  }
  const QString names[] = {tr("Result"), tr("Method"), tr("Mask"), tr("CP"), tr("Shape"), tr("Cut"), tr("Numbers")};
  return role == Qt::DisplayRole ? QVariant(names[section]) : QVariant();
}

EquivalenceView::EquivalenceView(StudyDocument& document, OpenedDatabase& database, QWidget* parent)
    : StudyView(QStringLiteral("equivalence"), tr("Equivalence"), parent),
      document_(document),
      database_(database),
      runs_(new QComboBox(this)),
      only_(new QCheckBox(tr("Of this &recipe only"), this)),
      filter_(new QLineEdit(this)),
      headline_(new QLabel(this)),
      table_(new QTableView(this)),
      rows_(new CaseTable(this)),
      controls_(new QTableWidget(0, 5, this)),
      controls_title_(new QLabel(tr("Planted faults"), this)),
      empty_(new QLabel(this)),
      split_(new QSplitter(Qt::Vertical, this)) {
  runs_->setAccessibleName(tr("Verification"));
  only_->setChecked(true);
  only_->setToolTip(tr("Cases of the recipe's exchange and of the masks its layers see"));
  filter_->setAccessibleName(tr("Filter of cases"));
  filter_->setPlaceholderText(tr("Filter: zigzag bf16"));
  filter_->setClearButtonEnabled(true);
  headline_->setWordWrap(true);
  QFont bold = font();
  bold.setBold(true);
  headline_->setFont(bold);
  controls_title_->setFont(bold);
  table_->setModel(rows_);
  table_->setAccessibleName(tr("Cases"));
  make_quiet(table_);
  controls_->setAccessibleName(tr("Planted faults"));
  controls_->setHorizontalHeaderLabels({tr("Fault"), tr("Caught"), tr("Shows in"), tr("Error, limit"), tr("What it is")});
  make_quiet(controls_);
  empty_->setWordWrap(true);
  empty_->setAlignment(Qt::AlignCenter);
  empty_->setForegroundRole(QPalette::PlaceholderText);
  auto* lower = new QWidget(this);
  auto* lower_layout = new QVBoxLayout(lower);
  lower_layout->setContentsMargins(0, 4, 0, 0);
  lower_layout->addWidget(controls_title_);
  lower_layout->addWidget(controls_, 1);
  split_->addWidget(table_);
  split_->addWidget(lower);
  split_->setSizes({330, 220});
  split_->setChildrenCollapsible(false);
  auto* head = new QHBoxLayout;
  head->addWidget(runs_, 1);
  head->addWidget(only_);
  head->addWidget(filter_, 1);
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(10, 8, 10, 8);
  layout->addLayout(head);
  layout->addWidget(headline_);
  layout->addWidget(empty_, 1);
  layout->addWidget(split_, 1);
  connect(runs_, &QComboBox::currentIndexChanged, this, &EquivalenceView::refresh);
  connect(only_, &QCheckBox::toggled, this, &EquivalenceView::refresh);
  connect(filter_, &QLineEdit::textChanged, this, &EquivalenceView::refresh);
  connect(&database_, &OpenedDatabase::content_changed, this, &EquivalenceView::refresh_runs);
  connect(&document_, &StudyDocument::design_changed, this, &EquivalenceView::refresh);
  connect(&document_, &StudyDocument::opened_changed, this, &EquivalenceView::refresh);
  refresh_runs();
}

const StoredVerification* EquivalenceView::shown() const {
  const int index = runs_->currentIndex();
  if (!content_ || index < 0 || index >= static_cast<int>(content_->verifications.size())) return nullptr;
  return &content_->verifications[static_cast<std::size_t>(index)];
}

CaseFilter EquivalenceView::filter_now() const {
  CaseFilter filter;
  filter.text = filter_->text();
  if (only_->isChecked() && document_.is_open() && document_.design().recipe.cp > 1) {
    filter.methods = methods_of(document_.design().recipe.cp_comm);
    filter.masks = masks_of_layers(document_.design().scenario->model, document_.design().training());
  }
  return filter;
}

void EquivalenceView::refresh_runs() {
  rows_->show_cases(nullptr, {});
  content_ = database_.content();
  const QSignalBlocker quiet(runs_);
  runs_->clear();
  for (std::size_t i = 0; content_ && i < content_->verifications.size(); ++i) {
    const VerificationListing& listing = content_->verifications[i].listing;
    runs_->addItem(
        tr("%1 %2, %3 on %4, %5")
            .arg(text_of(listing.implementation), text_of(listing.implementation_version), text_of(listing.suite),
                 text_of(listing.backend),
                 QDateTime::fromSecsSinceEpoch(listing.stored_unix_seconds).toString(QStringLiteral("yyyy-MM-dd hh:mm"))));
  }
  refresh();
}

void EquivalenceView::refresh() {
  const StoredVerification* stored = shown();
  for (QWidget* widget : std::initializer_list<QWidget*>{runs_, only_, filter_, split_}) widget->setVisible(stored != nullptr);
  headline_->setVisible(stored != nullptr);
  empty_->setVisible(stored == nullptr);
  if (stored == nullptr) {
    const QString how =
        tr("`cpfit verify --suite full --db FILE` compares context-parallel attention with the unsharded truth, "
           "tensor by tensor, and stores what it found.");
    empty_->setText(content_ ? tr("%1 holds no verification. %2").arg(content_->path, how)
                             : tr("Open a result database with a verification to see it here. %1").arg(how));
    controls_->setRowCount(0);
    return tell();
  }
  const CaseFilter filter = filter_now();
  std::vector<std::size_t> rows = case_rows(stored->result, filter);
  QString of;
  if (!filter.methods.isEmpty()) {
    of = tr(" of %1 under a %2 mask").arg(text_of(name_of(document_.design().recipe.cp_comm)), filter.masks.join(tr(" or ")));
  }
  QString text = verified_sentence(stored->result, rows, of);
  if (only_->isChecked() && document_.is_open() && document_.design().recipe.cp == 1)
    text = tr("At CP 1 nothing is cut, and there is nothing to prove. ") + text;
  headline_->setText(text);
  rows_->show_cases(&stored->result, std::move(rows));
  for (int column = 0; column + 1 < rows_->columnCount(); ++column) table_->resizeColumnToContents(column);
  const std::vector<VerifiedControl>& controls = stored->result.controls;
  controls_title_->setVisible(!controls.empty());
  controls_->setVisible(!controls.empty());
  controls_->setRowCount(static_cast<int>(controls.size()));
  for (int row = 0; row < static_cast<int>(controls.size()); ++row) {
    const VerifiedControl& control = controls[static_cast<std::size_t>(row)];
    QString caught = control.caught ? tr("✓ caught") : tr("✕ missed");
    if (control.loss_looks_alike) caught += tr(", the loss looks alike");
    const QString texts[] = {text_of(control.name), caught, text_of(control.tensor),
                             QStringLiteral("%1, %2").arg(error_text(control.error), error_text(control.limit)),
                             text_of(control.meaning)};
    for (int column = 0; column < 5; ++column) {
      auto* item = new QTableWidgetItem(texts[column]);
      item->setToolTip(tr("Planted in %1").arg(text_of(control.planted_in)));
      controls_->setItem(row, column, item);
    }
  }
  for (int column = 0; column < 4; ++column) controls_->resizeColumnToContents(column);
  tell();
}

QString EquivalenceView::summary() const { return shown() != nullptr ? headline_->text() : empty_->text(); }

QString EquivalenceView::csv() const {
  const StoredVerification* stored = shown();
  if (stored == nullptr) return {};
  QString text = QStringLiteral(
      "passed,method,mask,cp,shape,layout,dtype,tensor,normwise,normwise_limit,largest,largest_limit,kernel_normwise\n");
  for (const std::size_t row : case_rows(stored->result, filter_now())) {
    const VerifiedCase& one = stored->result.cases[row];
    for (int tensor = 0; tensor < kVerifiedTensors; ++tensor) {
      const TensorError& error = one.errors[static_cast<std::size_t>(tensor)];
      if (!error.judged) continue;
      text += QStringLiteral("%1,%2,%3,%4,")
                  .arg(one.passed ? QStringLiteral("yes") : QStringLiteral("no"), text_of(one.method), text_of(one.mask))
                  .arg(one.cp);
      text += QStringLiteral("%1,%2,%3,%4,")
                  .arg(csv_field(text_of(one.shape)), csv_field(text_of(one.layout)), text_of(one.dtype),
                       text_of(name_of(static_cast<VerifiedTensor>(tensor))));
      text += QStringLiteral("%1,%2,%3,%4,%5\n")
                  .arg(error.normwise, 0, 'g', 6)
                  .arg(error.normwise_limit, 0, 'g', 6)
                  .arg(error.largest, 0, 'g', 6)
                  .arg(error.largest_limit, 0, 'g', 6)
                  .arg(error.kernel_normwise, 0, 'g', 6);
    }
  }
  return text;
}

QString EquivalenceView::command() const {
  const StoredVerification* stored = shown();
  if (stored == nullptr) return QStringLiteral("cpfit verify --suite full --db cpfit.sqlite");
  return QStringLiteral("cpfit verify --suite %1 --backend %2 --db \"%3\"")
      .arg(text_of(stored->listing.suite), text_of(stored->listing.backend), content_->path);
}

}  // namespace cpfit::gui
