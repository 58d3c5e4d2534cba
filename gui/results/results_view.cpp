#include "gui/results/results_view.h"

#include <qcustomplot.h>

#include <QComboBox>
#include <QHeaderView>
#include <QKeyEvent>
#include <QLabel>
#include <QLineEdit>
#include <QMenu>
#include <QPainter>
#include <QSplitter>
#include <QTableView>
#include <QToolButton>
#include <QVBoxLayout>

#include "gui/look/figures.h"
#include "gui/results/filter_bar.h"
#include "gui/results/parallel_plot.h"
#include "gui/results/pareto_plot.h"
#include "gui/results/recipe_sweep.h"
#include "gui/results/result_table.h"
#include "gui/results/sweep_dialog.h"
#include "gui/view/frozen_columns.h"
#include "gui/view/plot_look.h"
#include "gui/view/quiet_table.h"

namespace cpfit::gui {

namespace {

/// A small line of choices over a plot.
QWidget* titled(const QString& title, QComboBox* choice, QWidget* plot) {
  auto* box = new QWidget;
  auto* head = new QHBoxLayout;
  head->setContentsMargins(0, 0, 0, 0);
  auto* label = new QLabel(title, box);
  label->setBuddy(choice);
  head->addWidget(label);
  head->addWidget(choice);
  head->addStretch(1);
  auto* layout = new QVBoxLayout(box);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->setSpacing(3);
  layout->addLayout(head);
  layout->addWidget(plot, 1);
  return box;
}

}  // namespace

ResultsView::ResultsView(StudyDocument& document, LiveEstimate& live, Jobs& jobs, OpenedDatabase& database, Selection& selection,
                         QWidget* parent)
    : StudyView(QStringLiteral("results"), tr("Results"), parent),
      document_(document),
      live_(live),
      jobs_(jobs),
      database_(database),
      selection_(selection),
      book_(new ResultBook(document, live, jobs, database, selection, this)),
      bar_(new FilterBar(*book_, this)),
      columns_(new QToolButton(this)),
      speeds_(new QComboBox(this)),
      colors_(new QComboBox(this)),
      pareto_(new ParetoPlot(*book_, selection, this)),
      parallel_(new ParallelPlot(*book_, selection, this)),
      rows_(new ResultTable(*book_, this)),
      table_(new QTableView(this)),
      sentence_(new QLabel(this)),
      empty_(new QLabel(this)),
      split_(new QSplitter(Qt::Vertical, this)),
      sweep_(new RecipeSweep(jobs, this)) {
  columns_->setText(tr("Columns"));
  columns_->setPopupMode(QToolButton::InstantPopup);
  columns_->setToolTip(tr("Which figures the table shows"));
  build_columns_menu();
  bar_->add_tool(columns_);
  auto* sweep = new QToolButton(this);
  sweep->setText(tr("S&weep …"));
  sweep->setToolTip(tr("Choose what a search tries, start, stop and store it (Ctrl+Shift+R)"));
  connect(sweep, &QToolButton::clicked, this, &ResultsView::open_sweep);
  bar_->add_tool(sweep);
  for (const char* key : {"step", "tokens"}) {
    const std::size_t at = field_named(key);
    speeds_->addItem(key == std::string_view("step") ? tr("Step time") : tr("Tokens/s/GPU"), static_cast<qulonglong>(at));
  }
  speeds_->setAccessibleName(tr("Speed shown against memory"));
  for (const char* key : {"step", "tokens", "memory", "exposed", "mfu", "bubble"}) {
    const std::size_t at = field_named(key);
    colors_->addItem(text_of(result_fields()[at].label), static_cast<qulonglong>(at));
  }
  colors_->setAccessibleName(tr("Result that colours the lines"));

  table_->setModel(rows_);
  table_->setAccessibleName(tr("Recipes"));
  make_quiet(table_);
  table_->horizontalHeader()->setSectionsClickable(true);
  table_->horizontalHeader()->setSectionsMovable(true);
  table_->horizontalHeader()->setSortIndicatorShown(true);
  table_->horizontalHeader()->setContextMenuPolicy(Qt::ActionsContextMenu);
  table_->installEventFilter(this);
  table_->setHorizontalScrollMode(QAbstractItemView::ScrollPerPixel);
  frozen_ = new FrozenColumns(table_, 0);

  auto* plots = new QSplitter(Qt::Horizontal, this);
  plots->addWidget(titled(tr("Against memory:"), speeds_, pareto_));
  plots->addWidget(titled(tr("Coloured by:"), colors_, parallel_));
  plots->setStretchFactor(0, 2);
  plots->setStretchFactor(1, 3);
  plots->setChildrenCollapsible(false);
  plots->setSizes({400, 640});
  split_->addWidget(plots);
  split_->addWidget(table_);
  split_->setStretchFactor(0, 5);
  split_->setStretchFactor(1, 4);
  split_->setChildrenCollapsible(false);
  sentence_->setWordWrap(true);
  sentence_->setTextInteractionFlags(Qt::TextSelectableByMouse);
  empty_->setWordWrap(true);
  empty_->setAlignment(Qt::AlignCenter);
  empty_->setForegroundRole(QPalette::PlaceholderText);
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(10, 8, 10, 6);
  layout->addWidget(bar_);
  layout->addWidget(empty_, 1);
  layout->addWidget(split_, 1);
  layout->addWidget(sentence_);

  connect(parallel_, &ParallelPlot::said, this, [this](const QString& sentence) { emit said(sentence, true); });
  connect(bar_, &FilterBar::said, this, [this](const QString& sentence) { emit said(sentence, true); });
  connect(speeds_, &QComboBox::currentIndexChanged, this, [this] {
    book_->set_speed_field(speeds_->currentData().toULongLong());
    pareto_->fit();
    pareto_->plot()->replot();
  });
  connect(colors_, &QComboBox::currentIndexChanged, this,
          [this] { parallel_->set_color_field(colors_->currentData().toULongLong()); });
  connect(table_->horizontalHeader(), &QHeaderView::sectionClicked, this, &ResultsView::sort_by);
  connect(table_->selectionModel(), &QItemSelectionModel::currentRowChanged, this, [this](const QModelIndex& now) {
    if (following_ || !now.isValid()) return;
    book_->choose(rows_->row_at(now.row()), this);
  });
  connect(table_, &QTableView::doubleClicked, this,
          [this](const QModelIndex& index) { book_->take(rows_->row_at(index.row())); });
  connect(book_, &ResultBook::set_changed, this, [this] {
    fit_columns();
    refresh();
  });
  connect(book_, &ResultBook::rows_changed, this, [this] {
    follow_selection();
    refresh();
  });
  connect(&selection_, &Selection::changed, this, [this](const Selected& before) {
    if (before.run_a == selection_.now().run_a && before.run_b == selection_.now().run_b) return;
    if (before.run_b != selection_.now().run_b) rows_->marks_changed();
    follow_selection();
    refresh();
  });
  connect(&document_, &StudyDocument::opened_changed, this, &ResultsView::refresh);
  connect(&document_, &StudyDocument::design_changed, this, &ResultsView::refresh);
  connect(sweep_, &RecipeSweep::found_changed, this, &ResultsView::show_swept);
  connect(sweep_, &RecipeSweep::ended, this, [this] {
    emit said(sweep_->sentence(), sweep_->went_wrong());
    if (sweep_->run()) database_.open(sweep_->request().database);
  });
  fit_columns();
  refresh();
}

SweepDialog* ResultsView::open_sweep() {
  if (!document_.is_open()) return nullptr;
  if (sweep_dialog_ == nullptr) sweep_dialog_ = new SweepDialog(document_, live_, jobs_, database_, *sweep_, this);
  sweep_dialog_->begin();
  sweep_dialog_->show();
  sweep_dialog_->raise();
  sweep_dialog_->activateWindow();
  return sweep_dialog_;
}

void ResultsView::show_swept() {
  QString command;
  if (sweep_->run()) {
    command =
        QStringLiteral("cpfit runs show %1 --db \"%2\"").arg(static_cast<qint64>(*sweep_->run())).arg(sweep_->request().database);
  }
  book_->show_sweep(sweep_->found(), tr("Sweep of %1").arg(text_of(sweep_->request().scenario->name)), command);
}

void ResultsView::build_columns_menu() {
  auto* menu = new QMenu(columns_);
  const auto shown = std::make_shared<std::vector<std::size_t>>(ResultTable::usual_columns());
  FieldGroup group = FieldGroup::kVerdict;
  for (std::size_t at = 0; at < result_fields().size(); ++at) {
    const ResultField& field = result_fields()[at];
    if (field.group == FieldGroup::kVerdict) continue;
    if (field.group != group) menu->addSection(field.group == FieldGroup::kRecipe ? tr("Recipe") : tr("Results"));
    group = field.group;
    QAction* action = menu->addAction(header_text(field));
    action->setToolTip(text_of(field.help));
    action->setCheckable(true);
    action->setChecked(field.shown);
    connect(action, &QAction::toggled, this, [this, at, shown](bool on) {
      std::erase(*shown, at);
      if (on) shown->insert(std::ranges::lower_bound(*shown, at), at);
      rows_->set_columns(*shown);
      parallel_->set_fields(*shown);
      fit_columns();
      follow_selection();
    });
  }
  columns_->setMenu(menu);
}

void ResultsView::fit_columns() {
  // By headers and the first rows: measuring every row of a large set would take longer than it shows.
  const QFontMetrics metrics(table_->font());
  for (int section = 0; section + 1 < rows_->columnCount(); ++section) {
    int width = metrics.horizontalAdvance(rows_->headerData(section, Qt::Horizontal, Qt::DisplayRole).toString()) + 30;
    for (int line = 0; line < std::min(40, rows_->rowCount()); ++line)
      width =
          std::max(width, metrics.horizontalAdvance(rows_->data(rows_->index(line, section), Qt::DisplayRole).toString()) + 18);
    if (section == 0) width = std::max(width, metrics.horizontalAdvance(QStringLiteral("✕ does not fit  ≠")) + 18);
    table_->setColumnWidth(section, width);
  }
  // Verdict and degrees: what a recipe is called while its figures scroll.
  int named = 0;
  for (const std::size_t field : rows_->columns()) {
    const std::string_view key = result_fields()[field].key;
    if (key != "verdict" && key != "cp" && key != "tp" && key != "pp" && key != "dp") break;
    ++named;
  }
  frozen_->set_count(named);
  const std::vector<SortKey>& keys = rows_->keys();
  for (std::size_t i = 0; i < rows_->columns().size(); ++i) {
    if (!keys.empty() && rows_->columns()[i] == keys.front().field) {
      table_->horizontalHeader()->setSortIndicator(static_cast<int>(i),
                                                   keys.front().descending ? Qt::DescendingOrder : Qt::AscendingOrder);
    }
  }
}

void ResultsView::sort_by(int section) {
  if (section >= static_cast<int>(rows_->columns().size())) return;
  const std::size_t field = rows_->columns()[static_cast<std::size_t>(section)];
  std::vector<SortKey> keys = rows_->keys();
  const auto at = std::ranges::find(keys, field, &SortKey::field);
  const bool more = (QGuiApplication::keyboardModifiers() & Qt::ShiftModifier) != 0;
  const bool best_first_is_descending = result_fields()[field].better == Better::kMore;
  SortKey key{field, best_first_is_descending};
  if (at != keys.end() && (more || at == keys.begin())) key.descending = !at->descending;
  if (!more) {
    keys = {key};
  } else if (at != keys.end()) {
    *at = key;
  } else {
    keys.push_back(key);
  }
  rows_->set_keys(keys);
  table_->horizontalHeader()->setSortIndicator(section, key.descending ? Qt::DescendingOrder : Qt::AscendingOrder);
  follow_selection();
}

void ResultsView::follow_selection() {
  following_ = true;
  const auto row = book_->chosen();
  const int line = row ? rows_->line_of(*row) : -1;
  if (line >= 0) {
    if (table_->currentIndex().row() != line) table_->setCurrentIndex(rows_->index(line, 0));
    table_->scrollTo(rows_->index(line, 0));
  } else {
    table_->clearSelection();
    table_->setCurrentIndex({});
  }
  following_ = false;
}

void ResultsView::refresh() {
  const bool none = book_->is_empty();
  split_->setVisible(!none);
  bar_->setVisible(document_.is_open());
  empty_->setVisible(none);
  empty_->setText(!document_.is_open()                  ? tr("Open a study: its search fills this view.")
                  : book_->places()[book_->place()].run ? tr("The run is being read …")
                  : live_.search() ? tr("No recipe of this question is legal: Problems says which rules stand against it.")
                                   : tr("The search over every recipe of this question is running …"));
  QString text;
  if (!none) {
    if (document_.is_open() && !same_question(*book_->set()->scenario, *document_.design().scenario))
      text = tr("These recipes answer another question than the open study (%1 tokens); taking one brings its question along. ")
                 .arg(tokens_text(book_->set()->scenario->training.sequence.count()));
    if (const auto row = book_->chosen()) {
      text += tr("%1 — %2: %3.")
                  .arg(text_of(to_text(book_->set()->candidates[*row].recipe)), name_of(book_->set()->verdicts[*row]),
                       reason_of(*book_->set(), *row));
      if (book_->rows().passes[*row] == 0) text += tr(" The filter leaves it out.");
    } else {
      const PlanStats& stats = book_->set()->stats;
      if (stats.considered > 0) {
        text += tr("%1 recipes were considered, %2 are legal.").arg(count_text(stats.considered), count_text(stats.legal));
        std::vector<std::pair<std::string, std::int64_t>> rules = stats.rejected_by_rule;
        std::ranges::sort(rules, std::greater{}, [](const auto& rule) { return rule.second; });
        QStringList worst;
        for (std::size_t i = 0; i < std::min<std::size_t>(3, rules.size()); ++i)
          worst.append(QStringLiteral("%1 (%2)").arg(label_of(rules[i].first).toLower(), count_text(rules[i].second)));
        if (!worst.isEmpty()) text += tr(" Most were refused by %1.").arg(worst.join(QStringLiteral(", ")));
      }
      text += tr(" Enter or double-click takes a recipe; Shift+Space marks one as B to compare with.");
    }
  }
  sentence_->setText(text);
  sentence_->setVisible(!text.isEmpty());
  tell();
}

bool ResultsView::eventFilter(QObject* watched, QEvent* event) {
  if (watched == table_ && event->type() == QEvent::KeyPress) {
    const auto* key = static_cast<QKeyEvent*>(event);
    const QModelIndex now = table_->currentIndex();
    if (now.isValid() && (key->key() == Qt::Key_Return || key->key() == Qt::Key_Enter)) {
      book_->take(rows_->row_at(now.row()));
      return true;
    }
    if (now.isValid() && key->key() == Qt::Key_Space) {
      const std::uint32_t row = rows_->row_at(now.row());
      if ((key->modifiers() & Qt::ShiftModifier) != 0)
        book_->choose_other(row, this);
      else
        book_->choose(row, this);
      return true;
    }
    if (key->key() == Qt::Key_Slash) {
      bar_->field()->setFocus();
      return true;
    }
  }
  return StudyView::eventFilter(watched, event);
}

QString ResultsView::summary() const {
  if (!document_.is_open()) return tr("No study is open");
  if (book_->is_empty()) return empty_->text();
  QString text = bar_->count_line();
  if (book_->set()->ship) text += tr("; ships %1").arg(text_of(to_text(book_->set()->candidates[*book_->set()->ship].recipe)));
  return text + QLatin1Char('.');
}

QString ResultsView::csv() const { return rows_->csv(); }

QString ResultsView::command() const {
  if (book_->is_empty()) return {};
  if (const auto row = book_->chosen(); row && document_.is_open()) {
    Design design = document_.design();
    design.recipe = book_->set()->candidates[*row].recipe;
    if (same_question(*design.scenario, *book_->set()->scenario)) return simulate_command(document_.path(), design);
  }
  return book_->set()->command;
}

void ResultsView::paint_on(QPainter& painter) {
  StudyView::paint_on(painter);
  if (!split_->isVisible()) return;
  // The plot once more as vectors, over its picture.
  painter.save();
  painter.translate(pareto_->plot()->mapTo(this, QPoint()) - pareto_->plot()->pos());
  paint_plot(*pareto_->plot(), painter);
  painter.restore();
}

}  // namespace cpfit::gui
