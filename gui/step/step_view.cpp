#include "gui/step/step_view.h"

#include <QVBoxLayout>
#include <algorithm>
#include <map>

#include "calibrate/read/trace.h"
#include "gui/look/figures.h"
#include "gui/timeline/span_text.h"
#include "gui/timeline/timeline_view.h"

namespace cpfit::gui {

namespace {

constexpr std::size_t kLinkTracks = 12;

struct Pictured {
  std::shared_ptr<const StepPicture> picture;
  std::shared_ptr<const StepTracks> tracks;
};

/// Of every pipeline stage the simulated rank that ends last: tracks of all ranks would be too much to build for each edit.
std::vector<std::int32_t> tracked_ranks(const StepTimeline& step) {
  std::map<std::int32_t, std::int32_t> first;
  const schedule::SimulatedRanks& ranks = step.step->ranks;
  for (std::int32_t rank = 0; rank < ranks.count(); ++rank) first[ranks.coordinate(rank).pp] = rank;
  std::vector<std::int32_t> tracked;
  for (const auto& [stage, rank] : first) tracked.push_back(rank);
  return tracked;
}

Pictured pictured(const std::shared_ptr<const SimulatedStep>& simulated) {
  Pictured result;
  const Scenario& scenario = *simulated->design.scenario;
  const std::shared_ptr<const StepTimeline> step(simulated, &simulated->now);
  result.picture = picture_of(step, scenario.cluster.gpus_per_node);
  Scenario of_recipe = scenario;
  of_recipe.base = simulated->design.recipe;
  Outcome<Workbench> bench = Workbench::build(of_recipe, *simulated->rates);
  if (bench.ok()) {
    bench.value().prepare(simulated->design.recipe);
    result.tracks = tracks_of(bench.value(), scenario.training, *step, tracked_ranks(*step), kLinkTracks);
  }
  return result;
}

}  // namespace

StepView::StepView(StudyDocument& document, LiveEstimate& live, Jobs& jobs, Selection& selection, QWidget* parent)
    : StudyView(QStringLiteral("step"), tr("Step"), parent),
      document_(document),
      live_(live),
      jobs_(jobs),
      selection_(selection),
      timeline_(new TimelineView(this)) {
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->addWidget(timeline_);
  setFocusProxy(timeline_);
  connect(&live_, &LiveEstimate::simulation_changed, this, &StepView::refresh);
  connect(&live_, &LiveEstimate::estimate_changed, this, &StepView::refresh);
  connect(&jobs_, &Jobs::started, this, [this](const QString& channel) {
    if (channel == QLatin1String("simulate")) refresh();
  });
  connect(timeline_, &TimelineView::simulateRequested, &live_, &LiveEstimate::simulate_now);
  connect(timeline_, &TimelineView::stopRequested, this, [this] { jobs_.stop_channel(QStringLiteral("simulate")); });
  connect(timeline_, &TimelineView::spanSelected, this, [this](int lane, int activity, int copy) {
    selection_.change(this, [&](Selected& selected) {
      if (lane < 0)
        selected.span.reset();
      else
        selected.span = SelectedSpan{lane, activity, copy};
    });
  });
  connect(timeline_, &TimelineView::rangeChanged, this, [this](qint64 from, qint64 to, bool committed) {
    selection_.change(this, [&](Selected& selected) {
      if (committed && to > from)
        selected.focus = FocusRange{from, to};
      else
        selected.focus.reset();
    });
  });
  connect(&selection_, &Selection::changed, this, [this](const Selected&, const QObject* origin) { take_selection(origin); });
}

void StepView::refresh() {
  if (!document_.is_open() || !live_.now().legal()) {
    timeline_->setEmpty(document_.is_open()
                            ? tr("The recipe is not legal: there is no step to see. Problems says what to repair.")
                            : tr("No study is open."),
                        {});
  } else if (live_.simulation_is_current()) {
    if (shown_ != live_.simulation()) build_picture();
  } else if (!live_.simulation_trouble().isEmpty()) {
    const bool waits = !jobs_.is_running(QStringLiteral("simulate")) && live_.simulation() == nullptr;
    if (waits)
      timeline_->setEmpty(live_.simulation_trouble(), tr("Simulate"));
    else
      timeline_->setFailed(live_.simulation_trouble(), live_.simulation_trouble());
  } else if (jobs_.is_running(QStringLiteral("simulate"))) {
    timeline_->setBusy(tr("Simulating the step …"), -1.0);
  } else if (live_.simulation() == nullptr) {
    timeline_->setEmpty(tr("Simulate to see the step."), tr("Simulate"));
  }
  tell();
}

void StepView::build_picture() {
  shown_ = live_.simulation();
  jobs_.start(
      QStringLiteral("picture"), tr("Draw the step"),
      [simulated = shown_](const std::atomic<bool>&) -> std::any { return pictured(simulated); },
      [this](const std::any& result) {
        const auto& done = std::any_cast<const Pictured&>(result);
        timeline_->setPicture(done.picture);
        timeline_->setTracks(done.tracks);
        tell();
        return tr("%1 spans").arg(count_text(static_cast<std::int64_t>(done.picture->spans())));
      });
}

void StepView::take_selection(const QObject* origin) {
  if (origin == this) return;
  const Selected& now = selection_.now();
  if (now.span)
    timeline_->selectByIdentity(now.span->lane, now.span->activity, now.span->copy);
  else
    timeline_->selectSpan(std::nullopt);
  if (now.focus)
    timeline_->setRange(DraggedRange{{now.focus->from, now.focus->to}, timeline_->state().current_rank(), true});
  else if (timeline_->state().range())
    timeline_->setRange(std::nullopt);
}

QString StepView::span_text() const { return timeline_->state().selected() ? timeline_->currentText() : QString(); }

QString StepView::overlay_trace(const QString& path) {
  const Outcome<RecordedTrace> trace = read_trace(to_std(path));
  if (!trace.ok()) return sentence_of(trace.problems().front());
  const std::vector<TracedStep> steps = steps_of(*trace);
  if (trace->devices.empty() || steps.empty()) return tr("%1 holds no work of a GPU to lay beside the step.").arg(path);
  // The middle step: the first ones of a trace are still warming up.
  timeline_->setRecorded(recorded_lanes(*trace, 0, steps[steps.size() / 2]));
  return {};
}

QString StepView::summary() const { return timeline_->summary(); }
QString StepView::csv() const { return live_.simulation() ? timeline_->csv() : QString(); }

QString StepView::command() const {
  return document_.is_open() ? simulate_command(document_.path(), document_.design(), QStringLiteral(" --fidelity timeline"))
                             : QString();
}

}  // namespace cpfit::gui
