#include "gui/memory/feasible_view.h"

#include <QHeaderView>
#include <QLabel>
#include <QPainter>
#include <QTableWidget>
#include <QVBoxLayout>
#include <algorithm>

#include "gui/look/color_tokens.h"
#include "gui/look/figures.h"
#include "gui/memory/feasible_grid.h"
#include "gui/memory/sweep_figures.h"
#include "gui/study/recipe_values.h"

namespace cpfit::gui {

FeasibleView::FeasibleView(StudyDocument& document, LiveEstimate& live, QWidget* parent)
    : StudyView(QStringLiteral("feasible"), tr("Feasible CP"), parent),
      document_(document),
      live_(live),
      headline_(new QLabel(this)),
      grid_(new FeasibleGrid(this)),
      pointed_(new QLabel(this)),
      levers_title_(new QLabel(this)),
      levers_(new QTableWidget(0, 3, this)) {
  headline_->setWordWrap(true);
  pointed_->setWordWrap(true);
  pointed_->setForegroundRole(QPalette::PlaceholderText);
  pointed_->setMinimumHeight(fontMetrics().height() + 2);
  QFont bold = font();
  bold.setBold(true);
  levers_title_->setFont(bold);
  levers_->setAccessibleName(tr("Other levers"));
  levers_->setHorizontalHeaderLabels({tr("Change"), tr("Gains"), tr("Costs")});
  levers_->verticalHeader()->hide();
  levers_->horizontalHeader()->setStretchLastSection(true);
  levers_->horizontalHeader()->setSectionResizeMode(0, QHeaderView::ResizeToContents);
  levers_->horizontalHeader()->setSectionResizeMode(1, QHeaderView::Stretch);
  levers_->setEditTriggers(QAbstractItemView::NoEditTriggers);
  levers_->setSelectionBehavior(QAbstractItemView::SelectRows);
  levers_->setSelectionMode(QAbstractItemView::SingleSelection);
  levers_->setShowGrid(false);
  levers_->setAlternatingRowColors(true);
  levers_->setMaximumHeight(190);
  levers_->verticalHeader()->setDefaultSectionSize(fontMetrics().height() + 8);
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(10, 8, 10, 8);
  layout->addWidget(headline_);
  layout->addWidget(grid_, 1);
  layout->addWidget(pointed_);
  layout->addWidget(levers_title_);
  layout->addWidget(levers_);
  connect(&live_, &LiveEstimate::sweep_changed, this, &FeasibleView::refresh);
  connect(&live_, &LiveEstimate::estimate_changed, this, &FeasibleView::refresh);
  connect(&live_, &LiveEstimate::levers_changed, this, &FeasibleView::refresh_levers);
  connect(grid_, &FeasibleGrid::pointed, pointed_, &QLabel::setText);
  connect(grid_, &FeasibleGrid::taken, this, &FeasibleView::take_cell);
  connect(levers_, &QTableWidget::cellActivated, this, [this](int row, int) { take_lever(row); });
}

void FeasibleView::refresh() {
  const bool ready = document_.is_open() && live_.sweep();
  grid_->show_sweep(ready ? live_.sweep() : nullptr, document_.design());
  headline_->setText(summary());
  pointed_->setText(ready ? tr("Controlled sweep: %1. Double-click or Enter takes a cell.").arg(held_text(*live_.sweep()))
                          : QString());
  refresh_levers();
  tell();
}

void FeasibleView::refresh_levers() {
  const std::vector<Lever>& levers = live_.levers();
  // Levers are an answer to a recipe that misses something; one that fits and hides needs none.
  const bool misses =
      live_.now().legal() && !judge_candidate(*live_.now().candidate, document_.design().scenario->requirements).feasible();
  const bool shown = misses && !levers.empty();
  levers_->setVisible(shown);
  levers_title_->setVisible(shown);
  if (!shown) return;
  const bool fits = live_.now().candidate->verdict.fit == Fit::kFits;
  levers_title_->setText(fits ? tr("Other levers that expose less") : tr("Other levers that free memory"));
  levers_->setRowCount(static_cast<int>(levers.size()));
  for (int row = 0; row < static_cast<int>(levers.size()); ++row) {
    const Lever& lever = levers[static_cast<std::size_t>(row)];
    const QString texts[] = {text_of(lever.change), text_of(lever.gains), text_of(lever.costs)};
    for (int column = 0; column < 3; ++column) {
      auto* item = new QTableWidgetItem(texts[column]);
      item->setToolTip(texts[column] + tr("\nDouble-click or Enter applies it; Ctrl+Z takes it back."));
      levers_->setItem(row, column, item);
    }
  }
}

void FeasibleView::take_cell(std::int32_t cp, std::int64_t sequence) {
  const SweepPointOrReason* point = live_.sweep() ? point_of(*live_.sweep(), cp, sequence) : nullptr;
  if (point == nullptr) return;
  Changes changes = {{"sequence_length", to_std(tokens_text(sequence))}};
  // The sweep adds whole nodes as CP grows; below one node dp fills what is left.
  const Cluster& cluster = document_.design().scenario->cluster;
  const std::int64_t nodes = std::max<std::int64_t>(1, point->gpus / cluster.gpus_per_node);
  if (nodes != cluster.nodes) changes.emplace_back("nodes", std::to_string(nodes));
  changes.emplace_back("cp", std::to_string(cp));
  take(changes, tr("CP %1 at %2 tokens").arg(cp).arg(tokens_text(sequence)));
}

void FeasibleView::take_lever(int row) {
  if (row < 0 || row >= static_cast<int>(live_.levers().size())) return;
  // "cp_comm=a2a+p2p, a2a_degree=2": one edit; sizes make the derived one follow.
  const QString change = text_of(live_.levers()[static_cast<std::size_t>(row)].change);
  Changes changes;
  for (const QString& part : change.split(QStringLiteral(", ")))
    changes.emplace_back(to_std(part.section(QLatin1Char('='), 0, 0)), to_std(part.section(QLatin1Char('='), 1)));
  take(changes, change);
}

void FeasibleView::take(const Changes& changes, const QString& what) {
  Design design = document_.design();
  for (const auto& [key, value] : changes) {
    Outcome<Design> changed = with_value(design, key, value, document_.derived());
    if (!changed.ok()) {
      emit said(sentence_of(changed.problems().front()));
      return;
    }
    design = std::move(changed).value();
  }
  document_.set_design(design, what);
}

QString FeasibleView::summary() const {
  if (!document_.is_open()) return tr("No study is open");
  if (!live_.sweep()) return tr("The sweep over degrees and lengths is being computed …");
  const Scenario& scenario = *document_.design().scenario;
  return sentence_of(answer_at(*live_.sweep(), scenario.training.sequence.count(), scenario.requirements));
}

QString FeasibleView::csv() const {
  if (!document_.is_open() || !live_.sweep()) return {};
  QString text = QStringLiteral("cp,sequence_tokens,gpus,state,device_bytes,exposed_cp_share,reason\n");
  for (const SweepPointOrReason& point : live_.sweep()->points) {
    text += QStringLiteral("%1,%2,%3,%4,")
                .arg(point.cp)
                .arg(point.sequence)
                .arg(point.gpus)
                .arg(csv_field(name_of(state_of(point, document_.design().scenario->requirements))));
    text += point.candidate ? QStringLiteral("%1,%2,\n")
                                  .arg(point.candidate->memory.device.value(), 0, 'f', 0)
                                  .arg(exposed_cp_share(*point.candidate), 0, 'g', 6)
                            : QStringLiteral(",,") + csv_field(text_of(point.reason)) + QLatin1Char('\n');
  }
  return text;
}

QString FeasibleView::command() const {
  if (!document_.is_open()) return {};
  return QStringLiteral("cpfit curve \"%1\" --recipe \"%2\"")
      .arg(document_.path(), text_of(to_text(document_.design().recipe, document_.design().scenario->base)));
}

}  // namespace cpfit::gui
