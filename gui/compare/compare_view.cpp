#include "gui/compare/compare_view.h"

#include <QComboBox>
#include <QHBoxLayout>
#include <QHeaderView>
#include <QLabel>
#include <QPushButton>
#include <QSplitter>
#include <QTabWidget>
#include <QTableWidget>
#include <QVBoxLayout>

#include "gui/compare/twin_steps.h"
#include "gui/compare/waterfall_plot.h"
#include "gui/look/figures.h"

namespace cpfit::gui {

namespace {

constexpr int kSteps = 1;  // tab

QWidget* with_title(const QString& title, QWidget* content) {
  auto* box = new QWidget;
  auto* label = new QLabel(title, box);
  QFont bold = label->font();
  bold.setBold(true);
  label->setFont(bold);
  label->setBuddy(content);
  auto* layout = new QVBoxLayout(box);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->setSpacing(3);
  layout->addWidget(label);
  layout->addWidget(content);
  layout->addStretch(1);
  return box;
}

void fill_sources(QComboBox* box, bool first) {
  const auto add = [box](const QString& text, CompareSource source) { box->addItem(text, static_cast<int>(source)); };
  add(first ? CompareView::tr("baseline, else the control") : CompareView::tr("the recipe now"), CompareSource::kAutomatic);
  add(CompareView::tr("pinned baseline"), CompareSource::kBaseline);
  add(CompareView::tr("control without CP"), CompareSource::kControl);
  add(CompareView::tr("what ships"), CompareSource::kShip);
  add(CompareView::tr("result chosen"), CompareSource::kRowA);
  add(CompareView::tr("result marked B"), CompareSource::kRowB);
  add(CompareView::tr("recipe now"), CompareSource::kCurrent);
}

}  // namespace

CompareView::CompareView(StudyDocument& document, LiveEstimate& live, Jobs& jobs, ResultBook& book, Selection& selection,
                         QWidget* parent)
    : StudyView(QStringLiteral("compare"), tr("Compare"), parent),
      document_(document),
      live_(live),
      book_(book),
      selection_(selection),
      a_(new QComboBox(this)),
      b_(new QComboBox(this)),
      headline_(new QLabel(this)),
      refusal_(new QLabel(this)),
      insist_(new QPushButton(tr("Compare all the same"), this)),
      inputs_(new QTableWidget(0, 4, this)),
      inputs_title_(new QLabel(this)),
      tabs_(new QTabWidget(this)),
      twin_(new TwinSteps(live, jobs, this)),
      pictures_(new QWidget(this)),
      time_(new WaterfallPlot(WaterfallUnit::kTime, this)),
      memory_(new WaterfallPlot(WaterfallUnit::kMemory, this)) {
  a_->setAccessibleName(tr("Compare"));
  b_->setAccessibleName(tr("with"));
  fill_sources(a_, true);
  fill_sources(b_, false);
  headline_->setWordWrap(true);
  QFont bold = font();
  bold.setBold(true);
  headline_->setFont(bold);
  inputs_title_->setFont(bold);
  refusal_->setWordWrap(true);
  refusal_->setTextInteractionFlags(Qt::TextSelectableByMouse);
  insist_->setToolTip(tr("Shows the differences although the two are no equal comparison; the reasons stay visible"));
  inputs_->setAccessibleName(tr("Inputs that differ"));
  inputs_->verticalHeader()->hide();
  inputs_->verticalHeader()->setDefaultSectionSize(fontMetrics().height() + 8);
  inputs_->horizontalHeader()->setStretchLastSection(true);
  inputs_->horizontalHeader()->setSectionResizeMode(QHeaderView::ResizeToContents);
  inputs_->setEditTriggers(QAbstractItemView::NoEditTriggers);
  inputs_->setSelectionBehavior(QAbstractItemView::SelectRows);
  inputs_->setSelectionMode(QAbstractItemView::SingleSelection);
  inputs_->setShowGrid(false);
  inputs_->setAlternatingRowColors(true);

  auto* head = new QHBoxLayout;
  head->addWidget(new QLabel(tr("From"), this));
  head->addWidget(a_);
  head->addWidget(new QLabel(tr("to"), this));
  head->addWidget(b_);
  head->addStretch(1);
  auto* pictures = new QHBoxLayout(pictures_);
  pictures->setContentsMargins(0, 0, 0, 0);
  pictures->setSpacing(12);
  pictures->addWidget(with_title(tr("Step time by part"), time_), 1);
  pictures->addWidget(with_title(tr("Memory of the worst stage by component"), memory_), 1);
  auto* refused = new QHBoxLayout;
  refused->addWidget(refusal_, 1);
  refused->addWidget(insist_, 0, Qt::AlignTop);
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(10, 8, 10, 8);
  layout->addLayout(head);
  layout->addWidget(headline_);
  layout->addLayout(refused);
  auto* parts = new QWidget(this);
  auto* parts_layout = new QVBoxLayout(parts);
  parts_layout->setContentsMargins(0, 4, 0, 0);
  parts_layout->addWidget(pictures_);
  parts_layout->addWidget(inputs_title_);
  parts_layout->addWidget(inputs_, 1);
  tabs_->addTab(parts, tr("&Parts and inputs"));
  tabs_->addTab(twin_, tr("Both &steps"));
  tabs_->setDocumentMode(true);
  layout->addWidget(tabs_, 1);
  connect(tabs_, &QTabWidget::currentChanged, this, [this] { tell(); });
  connect(twin_, &TwinSteps::changed, this, [this] { tell(); });

  for (QComboBox* box : {a_, b_}) connect(box, &QComboBox::currentIndexChanged, this, &CompareView::refresh);
  connect(insist_, &QPushButton::clicked, this, [this] {
    const auto [a, b] = sides();
    if (a && b) insisted_ = {a->design.recipe, b->design.recipe};
    refresh();
  });
  connect(&live_, &LiveEstimate::estimate_changed, this, &CompareView::refresh);
  connect(&live_, &LiveEstimate::search_changed, this, &CompareView::refresh);
  connect(&document_, &StudyDocument::baseline_changed, this, &CompareView::refresh);
  connect(&document_, &StudyDocument::opened_changed, this, &CompareView::refresh);
  connect(&selection_, &Selection::changed, this, [this](const Selected& before) {
    if (before.run_a != selection_.now().run_a || before.run_b != selection_.now().run_b) refresh();
  });
  connect(&book_, &ResultBook::set_changed, this, &CompareView::refresh);
  refresh();
}

std::optional<ComparedSide> CompareView::side(CompareSource source) const {
  if (!document_.is_open()) return std::nullopt;
  const auto of_row = [this](std::optional<std::uint32_t> row, const QString& name) -> std::optional<ComparedSide> {
    if (!row) return std::nullopt;
    const ResultSet& set = *book_.set();
    return ComparedSide{name, {set.scenario, set.candidates[*row].recipe, document_.design().calibration}, set.candidates[*row]};
  };
  const auto of_plan = [this](bool there, const Candidate& candidate, const QString& name) -> std::optional<ComparedSide> {
    if (!there) return std::nullopt;
    return ComparedSide{name, {live_.search()->scenario, candidate.recipe, document_.design().calibration}, candidate};
  };
  switch (source) {
    case CompareSource::kBaseline:
      if (!document_.baseline()) return std::nullopt;
      return ComparedSide{tr("Baseline"), document_.baseline()->design, document_.baseline()->candidate};
    case CompareSource::kCurrent:
      if (!live_.now().legal()) return std::nullopt;
      return ComparedSide{tr("Recipe now"), live_.now().design, *live_.now().candidate};
    case CompareSource::kControl:
      return live_.search() ? of_plan(live_.search()->plan.has_control, live_.search()->plan.control, tr("Control"))
                            : std::nullopt;
    case CompareSource::kShip:
      return live_.search() ? of_plan(live_.search()->plan.ships, live_.search()->plan.ship, tr("Ships")) : std::nullopt;
    case CompareSource::kRowA:
      return of_row(book_.chosen(), tr("Result"));
    case CompareSource::kRowB:
      return of_row(book_.other(), tr("Result B"));
    case CompareSource::kAutomatic:
      break;
  }
  return std::nullopt;
}

std::pair<std::optional<ComparedSide>, std::optional<ComparedSide>> CompareView::sides() const {
  auto source_a = static_cast<CompareSource>(a_->currentData().toInt());
  auto source_b = static_cast<CompareSource>(b_->currentData().toInt());
  // Two marked results are what a person wants to see; else the baseline, else the control without CP, against the recipe now.
  if (source_a == CompareSource::kAutomatic && source_b == CompareSource::kAutomatic && book_.chosen() && book_.other() &&
      book_.chosen() != book_.other())
    return {side(CompareSource::kRowA), side(CompareSource::kRowB)};
  if (source_a == CompareSource::kAutomatic) source_a = document_.baseline() ? CompareSource::kBaseline : CompareSource::kControl;
  if (source_b == CompareSource::kAutomatic) source_b = CompareSource::kCurrent;
  return {side(source_a), side(source_b)};
}

QString CompareView::missing_text(CompareSource source) const {
  switch (source) {
    case CompareSource::kBaseline:
      return tr("No baseline is pinned: B pins the recipe as it is now.");
    case CompareSource::kControl:
      return live_.search() ? tr("The question has no legal recipe without CP to compare with: pin a baseline with B.")
                            : tr("The search for the control is running …");
    case CompareSource::kShip:
      return live_.search() ? tr("No recipe ships.") : tr("The search is running …");
    case CompareSource::kRowA:
      return tr("No result is chosen: click one in Results.");
    case CompareSource::kRowB:
      return tr("No result is marked B: Shift+Space in Results, or Shift+click in its picture, marks one.");
    case CompareSource::kCurrent:
    case CompareSource::kAutomatic:
      break;
  }
  return tr("The recipe is not legal: Problems says why.");
}

void CompareView::refresh() {
  const auto [a, b] = sides();
  const bool both = a && b;
  QStringList reasons;
  refused_ = false;
  if (!document_.is_open()) {
    headline_->setText(tr("Open a study: its recipe is compared here with a baseline, with the control, or with a result."));
  } else if (!both) {
    const auto source_a = static_cast<CompareSource>(a_->currentData().toInt());
    const auto source_b = static_cast<CompareSource>(b_->currentData().toInt());
    headline_->setText(!a ? missing_text(source_a != CompareSource::kAutomatic ? source_a
                                         : document_.baseline()                ? CompareSource::kBaseline
                                                                               : CompareSource::kControl)
                          : missing_text(source_b));
  } else {
    reasons = unequal_reasons(*a, *b);
    const bool wanted = insisted_ && *insisted_ == std::pair(a->design.recipe, b->design.recipe);
    refused_ = !reasons.isEmpty() && !wanted;
    headline_->setText(refused_ ? tr("These two are no equal comparison.") : comparison_sentence(*a, *b));
  }
  QString note;
  if (!reasons.isEmpty()) {
    QStringList lines;
    for (const QString& reason : reasons) lines.append(QStringLiteral("≠ ") + reason);
    note = (refused_ ? QString() : tr("Not an equal comparison:\n")) + lines.join(QLatin1Char('\n'));
  }
  const std::vector<InputDifference> found = both ? input_differences(*a, *b) : std::vector<InputDifference>();
  if (both && !refused_) {
    QStringList policy;
    for (const InputDifference& each : found) {
      if (each.policy && !each.unequal) policy.append(each.name);
    }
    if (!policy.isEmpty()) {
      if (!note.isEmpty()) note += QLatin1Char('\n');
      note += tr("≠ %1 differ as well: what that changes is not a gain of CP.").arg(policy.join(QStringLiteral(", ")));
    }
  }
  refusal_->setText(note);
  refusal_->setVisible(!note.isEmpty());
  insist_->setVisible(refused_);
  const bool shown = both && !refused_;
  pictures_->setVisible(shown);
  time_->show_rows(shown ? time_waterfall(*a, *b) : std::vector<WaterfallRow>());
  memory_->show_rows(shown ? memory_waterfall(*a, *b) : std::vector<WaterfallRow>());
  const QString why = refused_ ? tr("These two are no equal comparison.") : headline_->text();
  twin_->show_sides(shown ? a : std::nullopt, shown ? b : std::nullopt, why);
  inputs_->setVisible(both);
  inputs_title_->setVisible(both);
  if (both) {
    inputs_->setHorizontalHeaderLabels({tr("Input"), a->name, b->name, tr("Equal comparison")});
    inputs_title_->setText(found.empty() ? tr("Every input is the same") : tr("Inputs that differ (%1)").arg(found.size()));
    show_inputs(found);
  }
  tell();
}

void CompareView::show_inputs(const std::vector<InputDifference>& found) {
  inputs_->setRowCount(static_cast<int>(found.size()));
  for (int row = 0; row < static_cast<int>(found.size()); ++row) {
    const InputDifference& each = found[static_cast<std::size_t>(row)];
    const QString verdict = each.unequal ? tr("≠ must be held") : each.policy ? tr("≠ another policy") : tr("may differ");
    const QString texts[] = {each.name, each.a, each.b, verdict};
    for (int column = 0; column < 4; ++column) {
      auto* item = new QTableWidgetItem(texts[column]);
      item->setToolTip(QStringLiteral("%1: %2 → %3").arg(each.name, each.a, each.b));
      inputs_->setItem(row, column, item);
    }
  }
}

QString CompareView::summary() const {
  QString text = headline_->text();
  if (tabs_->currentIndex() == kSteps && twin_->is_complete()) text += QLatin1Char(' ') + twin_->sentence();
  if (refused_) text += QLatin1Char(' ') + refusal_->text().replace(QLatin1Char('\n'), QStringLiteral("; "));
  return text;
}

QString CompareView::csv() const {
  if (tabs_->currentIndex() == kSteps) return twin_->csv();
  const auto [a, b] = sides();
  if (!a || !b) return {};
  QString text = QStringLiteral("kind,name,a,b,difference,unit\n");
  const auto row = [&text](const char* kind, const QString& name, const QString& left, const QString& right,
                           const QString& change, const char* unit) {
    text += QStringLiteral("%1,%2,%3,%4,%5,%6\n")
                .arg(QLatin1String(kind), csv_field(name), csv_field(left), csv_field(right), change, QLatin1String(unit));
  };
  row("recipe", tr("recipe"), text_of(to_complete_text(a->design.recipe)), text_of(to_complete_text(b->design.recipe)), {}, "");
  for (const InputDifference& each : input_differences(*a, *b)) row("input", each.name, each.a, each.b, {}, "");
  for (const QString& reason : unequal_reasons(*a, *b)) row("not equal", reason, {}, {}, {}, "");
  if (refused_) return text;
  const auto parts = [&](const std::vector<WaterfallRow>& rows, const char* unit) {
    for (const WaterfallRow& each : rows) {
      if (each.kind == PartKind::kTotal) continue;
      row("part", each.name, QString::number(each.a), QString::number(each.b), QString::number(each.change()), unit);
    }
    row("total", tr("all"), QString::number(rows.front().to), QString::number(rows.back().to),
        QString::number(rows.back().to - rows.front().to), unit);
  };
  parts(time_waterfall(*a, *b), "ps");
  parts(memory_waterfall(*a, *b), "bytes");
  return text;
}

QString CompareView::command() const {
  const auto [a, b] = sides();
  if (!a || !b || document_.path().isEmpty()) return {};
  Design left = document_.design(), right = left;
  left.recipe = a->design.recipe;
  right.recipe = b->design.recipe;
  const QString how = tabs_->currentIndex() == kSteps ? QStringLiteral(" --fidelity timeline") : QString();
  return simulate_command(document_.path(), left, how) + QStringLiteral(" && ") + simulate_command(document_.path(), right, how);
}

}  // namespace cpfit::gui
