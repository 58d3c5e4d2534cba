#include "gui/results/filter_bar.h"

#include <QCheckBox>
#include <QComboBox>
#include <QHBoxLayout>
#include <QLabel>
#include <QLineEdit>
#include <QMenu>
#include <QToolButton>
#include <QVBoxLayout>
#include <algorithm>

#include "gui/look/figures.h"

namespace cpfit::gui {

FilterBar::FilterBar(ResultBook& book, QWidget* parent)
    : QWidget(parent),
      book_(book),
      places_(new QComboBox(this)),
      field_(new QLineEdit(this)),
      fits_(new QCheckBox(tr("Fits &only"), this)),
      front_(new QCheckBox(tr("Fron&t only"), this)),
      kept_(new QToolButton(this)),
      count_(new QLabel(this)),
      first_(new QHBoxLayout),
      chips_(new QWidget(this)),
      chip_row_(new QHBoxLayout(chips_)) {
  places_->setAccessibleName(tr("Where results come from"));
  places_->setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon);
  places_->setMinimumContentsLength(18);
  field_->setAccessibleName(tr("Filter"));
  field_->setPlaceholderText(tr("Filter: cp>=4, recompute=none|full, memory<70GiB"));
  field_->setClearButtonEnabled(true);
  QStringList keys;
  for (const ResultField& each : result_fields())
    keys.append(QStringLiteral("%1 (%2)").arg(text_of(each.key), header_text(each)));
  field_->setToolTip(tr("Enter adds a limit for each comparison; other words are looked for in the recipe.\nFields: %1")
                         .arg(keys.join(QStringLiteral(", "))));
  fits_->setToolTip(tr("Leave out recipes that do not fit or are at risk"));
  front_->setToolTip(tr("Leave out recipes that another one beats in both time and memory"));
  count_->setForegroundRole(QPalette::PlaceholderText);
  first_->setContentsMargins(0, 0, 0, 0);
  first_->addWidget(places_, 2);
  first_->addWidget(field_, 3);
  kept_->setText(tr("Fi&lters"));
  kept_->setAccessibleName(tr("Kept filters"));
  kept_->setToolTip(tr("Filters that were kept, and keeping this one"));
  kept_->setPopupMode(QToolButton::InstantPopup);
  kept_->setFocusPolicy(Qt::StrongFocus);
  kept_->setMenu(new QMenu(kept_));
  kept_->menu()->setToolTipsVisible(true);
  first_->addWidget(kept_);
  first_->addWidget(fits_);
  first_->addWidget(front_);
  chip_row_->setContentsMargins(0, 0, 0, 0);
  chip_row_->setSpacing(4);
  auto* second = new QHBoxLayout;
  second->setContentsMargins(0, 0, 0, 0);
  second->addWidget(count_);
  second->addSpacing(8);
  second->addWidget(chips_);
  second->addStretch(1);
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->setSpacing(4);
  layout->addLayout(first_);
  layout->addLayout(second);
  connect(places_, &QComboBox::activated, this, [this](int index) { book_.go_to(static_cast<std::size_t>(index)); });
  connect(field_, &QLineEdit::returnPressed, this, &FilterBar::take_text);
  connect(field_, &QLineEdit::textChanged, this, [this](const QString& text) {
    if (!text.isEmpty() || book_.filter().text.isEmpty()) return;
    ResultFilter filter = book_.filter();
    filter.text.clear();
    book_.set_filter(filter);
  });
  connect(fits_, &QCheckBox::toggled, this, [this](bool on) {
    if (filling_) return;
    ResultFilter filter = book_.filter();
    filter.fits_only = on;
    book_.set_filter(filter);
  });
  connect(front_, &QCheckBox::toggled, this, [this](bool on) {
    if (filling_) return;
    ResultFilter filter = book_.filter();
    filter.front_only = on;
    book_.set_filter(filter);
  });
  connect(kept_->menu(), &QMenu::aboutToShow, this, &FilterBar::fill_kept_menu);
  connect(&book_, &ResultBook::places_changed, this, &FilterBar::refresh_places);
  connect(&book_, &ResultBook::rows_changed, this, &FilterBar::refresh);
  refresh_places();
  refresh();
}

void FilterBar::add_tool(QWidget* tool) { first_->addWidget(tool); }

void FilterBar::refresh_places() {
  places_->clear();
  for (const ResultBook::Place& place : book_.places()) places_->addItem(place.name);
  places_->setCurrentIndex(static_cast<int>(book_.place()));
  places_->setEnabled(book_.places().size() > 1);
  places_->setToolTip(book_.places().size() > 1 ? places_->currentText()
                                                : tr("Open a result database to see its runs here as well"));
}

QString FilterBar::count_line() const {
  if (book_.is_empty()) return tr("no recipes");
  const FilteredRows& rows = book_.rows();
  return tr("%1 of %2 recipes, %3 on the front")
      .arg(count_text(static_cast<std::int64_t>(rows.rows.size())), count_text(static_cast<std::int64_t>(book_.set()->size())))
      .arg(rows.front.size());
}

void FilterBar::refresh() {
  filling_ = true;
  fits_->setChecked(book_.filter().fits_only);
  front_->setChecked(book_.filter().front_only);
  filling_ = false;
  count_->setText(count_line());
  while (QLayoutItem* item = chip_row_->takeAt(0)) {
    // A chip may be the one that was just clicked: it goes when its click has ended.
    if (item->widget() != nullptr) item->widget()->deleteLater();
    delete item;
  }
  const std::vector<FilterTerm>& terms = book_.filter().terms;
  for (std::size_t i = 0; i < terms.size(); ++i) {
    auto* chip = new QToolButton(chips_);
    chip->setText(text_of_term(terms[i]) + QStringLiteral("  ✕"));
    chip->setAccessibleName(tr("Remove the limit %1").arg(text_of_term(terms[i])));
    chip->setToolTip(chip->accessibleName());
    chip->setFocusPolicy(Qt::StrongFocus);
    connect(chip, &QToolButton::clicked, this, [this, term = terms[i]] {
      ResultFilter filter = book_.filter();
      std::erase(filter.terms, term);
      book_.set_filter(filter);
    });
    chip_row_->addWidget(chip);
  }
}

void FilterBar::take_text() {
  const Outcome<ResultFilter> typed = parse_filter(field_->text());
  if (!typed.ok()) {
    emit said(sentence_of(typed.problems().front()));
    return;
  }
  ResultFilter filter = book_.filter();
  filter.terms.insert(filter.terms.end(), typed->terms.begin(), typed->terms.end());
  filter.fits_only = filter.fits_only || typed->fits_only;
  filter.front_only = filter.front_only || typed->front_only;
  filter.text = typed->text;
  if (filter.text != field_->text()) {
    const QSignalBlocker quiet(field_);
    field_->setText(filter.text);
  }
  book_.set_filter(filter);
}

void FilterBar::fill_kept_menu() {
  QMenu* menu = kept_->menu();
  menu->clear();
  const std::vector<ResultFilter>& kept = book_.kept_filters();
  for (const ResultFilter& filter : kept) {
    QAction* take = menu->addAction(text_of_filter(filter), this, [this, filter] {
      const QSignalBlocker quiet(field_);
      field_->setText(filter.text);
      book_.set_filter(filter);
    });
    take->setToolTip(line_of_filter(filter));
  }
  if (!kept.empty()) menu->addSeparator();
  const bool known =
      std::ranges::any_of(kept, [&](const ResultFilter& each) { return line_of_filter(each) == line_of_filter(book_.filter()); });
  QAction* keep = menu->addAction(tr("&Keep “%1”").arg(text_of_filter(book_.filter())), &book_, &ResultBook::keep_filter);
  keep->setEnabled(!known);
  if (kept.empty()) return;
  QMenu* forget = menu->addMenu(tr("&Forget"));
  for (std::size_t i = 0; i < kept.size(); ++i)
    forget->addAction(text_of_filter(kept[i]), &book_, [this, i] { book_.forget_filter(i); });
}

}  // namespace cpfit::gui
