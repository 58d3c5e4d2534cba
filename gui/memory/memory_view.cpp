#include "gui/memory/memory_view.h"

#include <QComboBox>
#include <QHBoxLayout>
#include <QHeaderView>
#include <QLabel>
#include <QSplitter>
#include <QTableView>
#include <QTreeView>
#include <QVBoxLayout>

#include "gui/look/figures.h"
#include "gui/memory/free_list.h"
#include "gui/memory/memory_tree.h"
#include "gui/memory/stage_bars.h"
#include "gui/study/recipe_values.h"
#include "model/recipe/recipe_names.h"

namespace cpfit::gui {

namespace {

/// What the choice of a moment means; the first is the peak, tensor by tensor.
enum MomentChoice { kAtPeak = -1, kForwardPeak = -2, kBackwardPeak = -3 };

QLabel* heading(const QString& text, QWidget* parent) {
  auto* label = new QLabel(text, parent);
  QFont font = label->font();
  font.setBold(true);
  label->setFont(font);
  return label;
}

}  // namespace

MemoryView::MemoryView(StudyDocument& document, LiveEstimate& live, Selection& selection, QWidget* parent)
    : StudyView(QStringLiteral("memory"), tr("Memory"), parent),
      document_(document),
      live_(live),
      selection_(selection),
      bars_(new StageBars(this)),
      moment_(new QComboBox(this)),
      headline_(new QLabel(this)),
      tree_(new QTreeView(this)),
      nodes_(new MemoryTree(this)),
      free_(new QTableView(this)),
      changes_(new FreeList(this)),
      nothing_to_free_(new QLabel(this)),
      assumptions_(new QLabel(this)) {
  moment_->setAccessibleName(tr("Moment of the step"));
  moment_->addItem(tr("at the peak"), kAtPeak);
  moment_->addItem(tr("forward peak"), kForwardPeak);
  moment_->addItem(tr("backward peak"), kBackwardPeak);
  for (int m = 0; m < kMomentCount; ++m) moment_->addItem(text_of(name_of(static_cast<Moment>(m))), m);
  moment_->insertSeparator(3);
  tree_->setModel(nodes_);
  tree_->setAccessibleName(tr("Tensors by class"));
  tree_->setUniformRowHeights(true);
  tree_->setAlternatingRowColors(true);
  tree_->header()->setSectionResizeMode(0, QHeaderView::Interactive);
  tree_->header()->setStretchLastSection(true);
  tree_->setColumnWidth(0, 150);
  tree_->setColumnWidth(1, 70);
  tree_->setColumnWidth(2, 110);
  free_->setModel(changes_);
  free_->setAccessibleName(tr("What would free memory"));
  free_->verticalHeader()->hide();
  free_->horizontalHeader()->setSectionResizeMode(QHeaderView::ResizeToContents);
  free_->horizontalHeader()->setSectionResizeMode(0, QHeaderView::Stretch);
  free_->setSelectionBehavior(QAbstractItemView::SelectRows);
  free_->setSelectionMode(QAbstractItemView::SingleSelection);
  free_->setShowGrid(false);
  free_->setAlternatingRowColors(true);
  free_->verticalHeader()->setDefaultSectionSize(fontMetrics().height() + 8);
  assumptions_->setWordWrap(true);
  headline_->setWordWrap(true);
  nothing_to_free_->setWordWrap(true);
  assumptions_->setForegroundRole(QPalette::PlaceholderText);

  auto* top = new QHBoxLayout;
  top->addWidget(headline_, 1);
  top->addWidget(new QLabel(tr("Show"), this));
  top->addWidget(moment_);
  auto* upper = new QWidget(this);
  auto* upper_layout = new QVBoxLayout(upper);
  upper_layout->setContentsMargins(0, 0, 0, 0);
  upper_layout->addLayout(top);
  upper_layout->addWidget(bars_);
  upper_layout->addWidget(tree_, 1);
  auto* lower = new QWidget(this);
  auto* lower_layout = new QVBoxLayout(lower);
  lower_layout->setContentsMargins(0, 4, 0, 0);
  lower_layout->addWidget(heading(tr("What one change would free"), lower));
  lower_layout->addWidget(nothing_to_free_);
  lower_layout->addWidget(free_, 1);
  lower_layout->addWidget(assumptions_);
  auto* splitter = new QSplitter(Qt::Vertical, this);
  splitter->addWidget(upper);
  splitter->addWidget(lower);
  splitter->setStretchFactor(0, 3);
  splitter->setStretchFactor(1, 2);
  splitter->setChildrenCollapsible(false);
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(8, 6, 8, 6);
  layout->addWidget(splitter);

  connect(bars_, &StageBars::stage_chosen, this, [this](std::int32_t stage) {
    stage_ = stage;
    stage_was_chosen_ = true;
    refresh();
  });
  connect(bars_, &StageBars::component_clicked, this, [this](std::int32_t, int component) {
    for (int row = 0; row < nodes_->rowCount(); ++row) {
      const QModelIndex index = nodes_->index(row, 0);
      if (nodes_->node(index)->component != static_cast<Component>(component)) continue;
      tree_->expand(index);
      tree_->setCurrentIndex(index);
    }
  });
  connect(moment_, &QComboBox::currentIndexChanged, this, &MemoryView::refresh);
  connect(tree_->selectionModel(), &QItemSelectionModel::currentChanged, this, &MemoryView::select_tensor);
  connect(free_, &QTableView::activated, this, [this](const QModelIndex& index) {
    const FreeingChange change = changes_->changes()[static_cast<std::size_t>(index.row())];
    (void)document_.set_value(change.key, change.value);
  });
  connect(&live_, &LiveEstimate::estimate_changed, this, &MemoryView::refresh);
  connect(&live_, &LiveEstimate::all_variations_changed, this, &MemoryView::refresh_free);
  connect(&document_, &StudyDocument::locks_changed, this, &MemoryView::refresh_free);
  connect(&document_, &StudyDocument::opened_changed, this, [this] { stage_was_chosen_ = false; });
}

void MemoryView::go_to_peak() {
  stage_was_chosen_ = false;
  moment_->setCurrentIndex(0);
  refresh();
  bars_->setFocus();
}

void MemoryView::refresh() {
  const Estimate& now = live_.now();
  if (!now.legal()) {
    bars_->show_stages({}, Bytes(0), 0, 0);
    nodes_->set_nodes({});
    headline_->setText(document_.is_open() ? tr("No memory is counted for a recipe that is not legal.") : QString());
    refresh_free();
    tell();
    return;
  }
  if (!stage_was_chosen_ || stage_ >= now.design.recipe.pp) stage_ = now.candidate->memory.stage;
  const int choice = moment_->currentData().toInt();
  std::vector<StageBar> bars;
  for (std::size_t i = 0; i < now.stages.size(); ++i) {
    const StageMemory& stage = now.stages[i];
    StageBar bar{stage.stage, stage.components, stage.device, now.verdicts[i].fit};
    if (choice != kAtPeak) {
      const Moment moment = choice == kForwardPeak    ? stage.forward_moment
                            : choice == kBackwardPeak ? stage.backward_moment
                                                      : static_cast<Moment>(choice);
      bar.components = live_.estimator().allocated(now.design, stage.stage, moment);
      bar.total = Bytes(0);
      for (const Bytes bytes : bar.components) bar.total += bytes;
      bar.fit = bar.total > now.candidate->verdict.capacity ? Fit::kOom : Fit::kFits;
    }
    bars.push_back(bar);
  }
  bars_->show_stages(std::move(bars), now.candidate->verdict.capacity, now.design.scenario->requirements.memory_margin_share,
                     stage_);
  refresh_tree();
  tell();
}

void MemoryView::refresh_tree() {
  const Estimate& now = live_.now();
  const StageMemory& stage = now.stages[static_cast<std::size_t>(stage_)];
  const int choice = moment_->currentData().toInt();
  const QString place = now.design.recipe.pp > 1 ? tr("Stage %1").arg(stage_) : tr("Every GPU");
  if (choice == kAtPeak) {
    nodes_->set_nodes(memory_nodes(live_.estimator().ledger(now.design, stage_)));
    headline_->setText(tr("%1 peaks at %2 (%3).").arg(place, bytes_text(stage.device), text_of(name_of(stage.moment))));
  } else {
    const Moment moment = choice == kForwardPeak    ? stage.forward_moment
                          : choice == kBackwardPeak ? stage.backward_moment
                                                    : static_cast<Moment>(choice);
    nodes_->set_nodes(memory_nodes(live_.estimator().allocated(now.design, stage_, moment)));
    Bytes total;
    for (const MemoryNode& node : nodes_->nodes()) total += node.bytes;
    headline_->setText(tr("%1 has %2 allocated (%3).").arg(place, bytes_text(total), text_of(name_of(moment))));
  }
  for (int row = 0; row < std::min(2, nodes_->rowCount()); ++row) tree_->expand(nodes_->index(row, 0));
}

void MemoryView::refresh_free() {
  std::map<std::string, std::vector<Variation>> variations;
  for (const Parameter& parameter : parameters()) {
    // What is locked is not proposed.
    if (parameter.strip && !document_.locks().contains(parameter.key))
      variations[std::string(parameter.key)] = live_.variations(std::string(parameter.key));
  }
  changes_->set_changes(freeing_changes(live_.now(), variations));
  const bool none = changes_->changes().empty();
  nothing_to_free_->setVisible(none);
  free_->setVisible(!none);
  nothing_to_free_->setText(live_.now().legal() ? tr("No single change frees memory here.")
                                                : tr("Repair the recipe first: Problems says how."));
  if (!live_.now().legal()) return;
  const Recipe& recipe = live_.now().design.recipe;
  assumptions_->setText(
      tr("Counted in %1, %2 gradients, rules of %3; upper bound +%4 of what is allocated. Not counted: fragmentation beyond the "
         "allocator's factor, other processes on the GPU.")
          .arg(text_of(name_of(recipe.precision)), text_of(name_of(live_.now().design.training().grad_dtype)),
               text_of(recipe.framework), share_text(kLedgerUncertainty)));
}

void MemoryView::select_tensor() {
  const MemoryNode* node = nodes_->node(tree_->currentIndex());
  if (node == nullptr) return;
  const bool tensor = tree_->currentIndex().parent().isValid();
  selection_.change(this, [&](Selected& selected) {
    selected.tensor = SelectedTensor{stage_, title_of(node->component), tensor ? node->name : QString()};
  });
}

QString MemoryView::summary() const {
  if (!live_.now().legal()) return tr("No memory to show");
  return headline_->text() + QLatin1Char(' ') + tr("Capacity %1.").arg(bytes_text(live_.now().candidate->verdict.capacity));
}

QString MemoryView::csv() const {
  if (!live_.now().legal()) return {};
  QString text = QStringLiteral("stage,component,tensor,bytes,formula,source\n");
  const Estimate& now = live_.now();
  for (std::int32_t stage = 0; stage < now.design.recipe.pp; ++stage) {
    const StageLedger ledger = live_.estimator().ledger(now.design, stage);
    for (const LedgerEntry& entry : ledger.entries)
      text += QStringLiteral("%1,%2,%3,%4,%5,%6\n")
                  .arg(stage)
                  .arg(text_of(name_of(entry.component)), csv_field(text_of(entry.tensor)),
                       QString::number(entry.bytes.value(), 'f', 0), csv_field(text_of(entry.formula)),
                       csv_field(text_of(entry.source)));
  }
  return text;
}

QString MemoryView::command() const {
  return document_.is_open()
             ? simulate_command(document_.path(), document_.design(), QStringLiteral(" --ledger --stage %1").arg(stage_))
             : QString();
}

}  // namespace cpfit::gui
