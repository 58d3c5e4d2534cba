#include "gui/compare/twin_steps.h"

#include <QHeaderView>
#include <QLabel>
#include <QSplitter>
#include <QTableWidget>
#include <QVBoxLayout>
#include <algorithm>

#include "gui/look/figures.h"
#include "gui/timeline/span_text.h"
#include "gui/timeline/timeline_view.h"
#include "gui/view/quiet_table.h"

namespace cpfit::gui {

bool TwinSteps::Drawn::is_of(const Design& other, const std::shared_ptr<const RateSet>& other_rates) const {
  return same_design(design, other) && rates == other_rates;
}

TwinSteps::TwinSteps(LiveEstimate& live, Jobs& jobs, QWidget* parent)
    : QWidget(parent), live_(live), jobs_(jobs), table_(new QTableWidget(0, 4, this)), sentence_(new QLabel(this)) {
  auto* steps = new QSplitter(Qt::Vertical, this);
  steps->setChildrenCollapsible(false);
  for (std::size_t i = 0; i < sides_.size(); ++i) {
    Side& side = sides_[i];
    auto* box = new QWidget(this);
    side.title = new QLabel(box);
    side.title->setTextInteractionFlags(Qt::TextSelectableByMouse);
    QFont bold = side.title->font();
    bold.setBold(true);
    side.title->setFont(bold);
    side.view = new TimelineView(box);
    side.view->setTrackChoices({});
    side.view->setAccessibleName(i == 0 ? tr("Step of the first recipe") : tr("Step of the second recipe"));
    side.title->setBuddy(side.view);
    auto* layout = new QVBoxLayout(box);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->setSpacing(2);
    layout->addWidget(side.title);
    layout->addWidget(side.view, 1);
    steps->addWidget(box);
    connect(side.view, &TimelineView::windowChanged, this, [this, i](qint64 from, qint64 to) {
      if (linking_) return;
      linking_ = true;
      if (TimelineView* other = sides_[1 - i].view; other->window() != TimeWindow{from, to}) other->setWindow({from, to});
      linking_ = false;
    });
    connect(side.view, &TimelineView::rangeChanged, this, [this, i](qint64 from, qint64 to, bool committed) {
      if (linking_) return;
      linking_ = true;
      dragged_ = i;
      const Side& other = sides_[1 - i];
      const std::int32_t rank = other.shown && other.shown->picture ? other.shown->picture->last_rank : 0;
      other.view->setRange(to > from ? std::optional(DraggedRange{{from, to}, rank, committed}) : std::nullopt);
      linking_ = false;
      refresh_sums();
    });
    connect(side.view, &TimelineView::wantedLabelWidthChanged, this,
            [this, i](int width) { sides_[1 - i].view->setLeastLabelWidth(width); });
    connect(side.view, &TimelineView::simulateRequested, this, &TwinSteps::ask);
    connect(side.view, &TimelineView::stopRequested, this, [this] { jobs_.stop_channel(QStringLiteral("twin")); });
  }
  make_quiet(table_);
  table_->setAccessibleName(tr("Sums of the stretch on both sides"));
  table_->horizontalHeader()->setSectionResizeMode(QHeaderView::ResizeToContents);
  table_->horizontalHeader()->setStretchLastSection(false);
  table_->setVerticalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  sentence_->setWordWrap(true);
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(0, 4, 0, 0);
  layout->addWidget(steps, 1);
  layout->addWidget(sentence_);
  layout->addWidget(table_);
  // A result that comes late, or not at all, must not leave the pictures busy.
  connect(&jobs_, &Jobs::ended, this, [this](const QString& channel, JobState state, const QString& sentence) {
    if (channel != QLatin1String("twin") || state == JobState::kDone) return;
    asked_ = false;
    for (const Side& side : sides_) {
      if (!side.of || (side.drawn && side.drawn->picture)) continue;
      side.view->setFailed(state == JobState::kFailed ? sentence : tr("The simulation was stopped."), sentence);
    }
  });
}

void TwinSteps::show_sides(std::optional<ComparedSide> a, std::optional<ComparedSide> b, const QString& why) {
  sides_[0].of = std::move(a);
  sides_[1].of = std::move(b);
  why_ = why;
  asked_ = false;
  if (isVisible()) ask();
}

void TwinSteps::showEvent(QShowEvent* event) {
  QWidget::showEvent(event);
  if (!asked_) ask();
}

std::shared_ptr<const TwinSteps::Drawn> TwinSteps::drawn_of(const Design& design, const std::shared_ptr<const RateSet>& rates,
                                                            const std::atomic<bool>& stop) {
  auto drawn = std::make_shared<Drawn>();
  drawn->design = design;
  drawn->rates = rates;
  try {
    const std::shared_ptr<const SimulatedStep> step = simulate(design, rates, stop);
    drawn->picture = picture_of(std::shared_ptr<const StepTimeline>(step, &step->now), design.scenario->cluster.gpus_per_node);
  } catch (const Error& error) {
    drawn->trouble = text_of(error.what());
  }
  return drawn;
}

void TwinSteps::ask() {
  asked_ = true;
  if (!sides_[0].of || !sides_[1].of) {
    jobs_.stop_channel(QStringLiteral("twin"));
    for (Side& side : sides_) {
      side.shown.reset();
      side.title->clear();
      side.view->setEmpty(why_, {});
    }
    return refresh_sums();
  }
  // Each side with the rates that its figures rest on: those of the study, but for a baseline that was pinned with others.
  std::array<Design, 2> designs;
  std::array<std::shared_ptr<const Drawn>, 2> known;
  bool all = true;
  for (std::size_t i = 0; i < sides_.size(); ++i) {
    Side& side = sides_[i];
    designs[i] = side.of->design;
    side.title->setText(QStringLiteral("%1: %2").arg(side.of->name, text_of(to_text(side.of->design.recipe))));
    for (const Side& each : sides_) {
      if (each.drawn && each.drawn->is_of(designs[i], live_.rates())) known[i] = each.drawn;
    }
    if (!known[i] && live_.simulation_is_current() && same_design(live_.simulation()->design, designs[i]) &&
        live_.simulation()->rates == live_.rates()) {
      const auto& step = live_.simulation();
      auto drawn = std::make_shared<Drawn>();
      drawn->design = designs[i];
      drawn->rates = live_.rates();
      drawn->picture =
          picture_of(std::shared_ptr<const StepTimeline>(step, &step->now), designs[i].scenario->cluster.gpus_per_node);
      known[i] = drawn;
    }
    all = all && known[i];
  }
  if (all) {
    jobs_.stop_channel(QStringLiteral("twin"));
    return take(known);
  }
  for (std::size_t i = 0; i < sides_.size(); ++i) {
    if (!known[i]) sides_[i].view->setBusy(tr("Simulating the step …"), -1.0);
  }
  jobs_.start(
      QStringLiteral("twin"), tr("Simulate the steps that are compared"),
      [designs, known, rates = live_.rates()](const std::atomic<bool>& stop) -> std::any {
        std::array<std::shared_ptr<const Drawn>, 2> drawn = known;
        for (std::size_t i = 0; i < drawn.size(); ++i) {
          if (!drawn[i]) drawn[i] = drawn_of(designs[i], rates, stop);
        }
        return drawn;
      },
      [this](const std::any& result) {
        take(std::any_cast<const std::array<std::shared_ptr<const Drawn>, 2>&>(result));
        return sentence();
      });
}

void TwinSteps::take(const std::array<std::shared_ptr<const Drawn>, 2>& drawn) {
  for (std::size_t i = 0; i < sides_.size(); ++i) sides_[i].drawn = drawn[i];
  draw();
}

void TwinSteps::draw() {
  std::int64_t longest = 0;
  for (const Side& side : sides_) {
    if (side.drawn->picture) longest = std::max(longest, side.drawn->picture->timeline.step);
  }
  linking_ = true;
  for (Side& side : sides_) {
    if (!side.drawn->picture) {
      side.shown = side.drawn;
      side.view->setFailed(side.drawn->trouble, side.drawn->trouble);
      continue;
    }
    if (side.shown != side.drawn || side.view->state().picture() == nullptr) {
      side.shown = side.drawn;
      side.view->setPicture(side.drawn->picture);
    } else {
      side.view->setPicture(side.drawn->picture);  // it was busy meanwhile
    }
    side.view->setAxis(longest);
  }
  // Both show the same stretch: what the first shows.
  if (is_complete()) {
    sides_[1].view->setWindow(sides_[0].view->window());
    const auto& range = sides_[dragged_].view->state().range();
    const std::int32_t rank = sides_[1 - dragged_].shown->picture->last_rank;
    sides_[1 - dragged_].view->setRange(range ? std::optional(DraggedRange{range->time, rank, range->committed}) : std::nullopt);
  }
  linking_ = false;
  refresh_sums();
}

bool TwinSteps::is_complete() const {
  return std::ranges::all_of(sides_, [this](const Side& side) {
    return side.of && side.shown && side.shown->picture && side.shown->is_of(side.of->design, live_.rates());
  });
}

std::int32_t TwinSteps::rank_of(std::size_t side) const {
  const auto& range = sides_[side].view->state().range();
  return side == dragged_ && range ? range->rank : sides_[side].shown->picture->last_rank;
}

std::vector<TwinRow> TwinSteps::rows() const {
  if (!is_complete()) return {};
  const auto& range = sides_[dragged_].view->state().range();
  std::array<RangeSums, 2> sums;
  for (std::size_t i = 0; i < sums.size(); ++i) {
    const StepPicture& picture = *sides_[i].shown->picture;
    sums[i] = sums_inside(picture, rank_of(i), range ? range->time : whole(picture.timeline.step));
  }
  return twin_rows(sums[0], sums[1]);
}

QString TwinSteps::sentence() const {
  if (!is_complete()) return why_;
  const auto& range = sides_[dragged_].view->state().range();
  const auto rank = [this](std::size_t side) {
    return static_cast<qlonglong>(sides_[side].shown->picture->cluster_rank(rank_of(side)));
  };
  const QString of =
      range ? tr("From %1 to %2 after the step's start").arg(duration_text(range->time.from), duration_text(range->time.to))
            : tr("The whole step");
  return tr("%1, on rank %2 above and rank %3 below. A drag in either picture chooses a stretch; Esc takes it back.")
      .arg(of)
      .arg(rank(0))
      .arg(rank(1));
}

void TwinSteps::refresh_sums() {
  const std::vector<TwinRow> shown = rows();
  table_->setVisible(!shown.empty());
  sentence_->setVisible(!shown.empty());
  sentence_->setText(sentence());
  table_->setRowCount(static_cast<int>(shown.size()));
  if (!shown.empty())
    table_->setHorizontalHeaderLabels({tr("In the stretch"), sides_[0].of->name, sides_[1].of->name, tr("Difference")});
  for (int row = 0; row < table_->rowCount(); ++row) {
    const TwinRow& each = shown[static_cast<std::size_t>(row)];
    const QString texts[] = {each.name, each.text(each.a), each.text(each.b), each.change_text()};
    for (int column = 0; column < 4; ++column) {
      auto* item = new QTableWidgetItem(texts[column]);
      if (column > 0) {
        item->setTextAlignment(Qt::AlignRight | Qt::AlignVCenter);
        const std::int64_t exact[] = {0, each.a, each.b, each.change()};
        item->setToolTip(QStringLiteral("%1 %2").arg(count_text(exact[column]), each.bytes ? tr("bytes") : tr("ps")));
      }
      table_->setItem(row, column, item);
    }
  }
  const int lines = table_->rowCount() * table_->verticalHeader()->defaultSectionSize();
  table_->setFixedHeight(lines + table_->horizontalHeader()->sizeHint().height() + 2 * table_->frameWidth());
  emit changed();
}

QString TwinSteps::csv() const {
  const std::vector<TwinRow> shown = rows();
  if (shown.empty()) return {};
  QString text = QStringLiteral("part,%1,%2,difference,unit\n").arg(csv_field(sides_[0].of->name), csv_field(sides_[1].of->name));
  for (const TwinRow& row : shown) {
    text += QStringLiteral("%1,%2,%3,%4,%5\n")
                .arg(csv_field(row.name))
                .arg(row.a)
                .arg(row.b)
                .arg(row.change())
                .arg(row.bytes ? QStringLiteral("bytes") : QStringLiteral("ps"));
  }
  return text;
}

}  // namespace cpfit::gui
