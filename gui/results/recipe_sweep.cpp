#include "gui/results/recipe_sweep.h"

#include <QFileInfo>
#include <algorithm>

#include "db/store/run_recorder.h"
#include "gui/look/figures.h"

namespace cpfit::gui {

namespace {

constexpr QLatin1String kChannel("recipes");
constexpr int kLookMs = 100;
constexpr qint64 kRowsMs = 500;  // rows come in at most twice a second, and less often where laying them out takes longer

/// The database of a search: the first trouble ends the writing.
class Writing {
 public:
  Writing(const SweepRequest& request, const Provenance& provenance, QString& trouble) : trouble_(trouble) {
    if (request.database.isEmpty()) return;
    attempt([&] {
      recorder_ = std::make_unique<RunRecorder>(to_std(request.database), provenance, request.store);
      recorder_->keep_inputs(*request.scenario, request.chosen ? &request.chosen->calibration : nullptr);
    });
  }
  template <class Action>
  void with(Action action) {
    if (recorder_ == nullptr) return;
    attempt([&] { action(*recorder_); });
    if (trouble_.isEmpty()) return;
    // What was stored before stays, and can be continued where even this can still be written.
    try {
      recorder_->interrupt();
    } catch (const Error&) {  // NOLINT(bugprone-empty-catch): the first trouble is the one to tell
    }
    recorder_.reset();
  }
  [[nodiscard]] const RunRecorder* recorder() const { return recorder_.get(); }

 private:
  template <class Action>
  void attempt(Action action) {
    try {
      action();
    } catch (const Error& error) {
      trouble_ = text_of(error.what());
    }
  }
  std::unique_ptr<RunRecorder> recorder_;
  QString& trouble_;
};

Provenance provenance_of(const SweepRequest& request) {
  return cpfit::provenance_of(*request.scenario, *request.rates, request.tool_version,
                              request.calibration ? &*request.calibration : nullptr);
}

}  // namespace

SweepResult run_sweep(const SweepRequest& request, SweepProgress& progress, const std::atomic<bool>& stop) {
  SweepResult result;
  const Provenance provenance = provenance_of(request);
  Writing writing(request, provenance, result.not_stored);
  if (const RunRecorder* recorder = writing.recorder()) {
    result.run = recorder->run();
    result.continued = recorder->continued();
  }
  auto answer = std::make_shared<SearchAnswer>();
  PlanOptions options;
  options.crossover = options.timeline = request.closer;
  options.controls.stop = &stop;
  options.controls.progress = [&](double share) { progress.share = share; };
  options.controls.sink = [&](const std::vector<Candidate>& batch) {
    {
      const std::lock_guard lock(progress.mutex);
      progress.found.insert(progress.found.end(), batch.begin(), batch.end());
    }
    writing.with([&](RunRecorder& recorder) { recorder.receive(batch); });
  };
  Outcome<PlanResult> planned = plan(*request.scenario, *request.rates, options);
  if (!planned.ok()) throw Error(to_text(planned.problems().front()));
  answer->scenario = request.scenario;
  answer->rates = request.rates;
  answer->plan = std::move(planned).value();
  answer->plan.provenance = provenance;
  {
    const std::lock_guard lock(progress.mutex);
    answer->evaluated = progress.found;
  }
  result.stopped = progress.share < 1.0 && stop;
  writing.with([&](RunRecorder& recorder) {
    if (result.stopped)
      recorder.interrupt();
    else
      recorder.finish(answer->plan);
  });
  result.answer = std::move(answer);
  return result;
}

Resumable resumable_run(const SweepRequest& request) {
  Resumable found;
  if (request.database.isEmpty() || !QFileInfo::exists(request.database)) return found;
  try {
    StoreOptions options = request.store;
    options.access = StoreAccess::kRead;
    const Store store = open_store(to_std(request.database), options);
    if (const std::optional<ResumableRun> run = find_resumable(store, provenance_of(request))) {
      found.run = run->run;
      found.recipes = run->recipes.size();
    }
  } catch (const Error& error) {
    found.trouble = text_of(error.what());
  }
  return found;
}

RecipeSweep::RecipeSweep(Jobs& jobs, QObject* parent) : QObject(parent), jobs_(jobs) {
  watch_.setInterval(kLookMs);
  connect(&watch_, &QTimer::timeout, this, &RecipeSweep::look);
  connect(&jobs_, &Jobs::ended, this, [this](const QString& channel, JobState state, const QString& sentence) {
    if (channel != kChannel || job_ == 0) return;
    job_ = 0;
    watch_.stop();
    went_wrong_ = went_wrong_ || state == JobState::kFailed;
    sentence_ = sentence;
    emit changed();
    emit ended();
  });
}

void RecipeSweep::start(const SweepRequest& request) {
  if (is_running()) return;
  request_ = request;
  progress_ = std::make_shared<SweepProgress>();
  run_.reset();
  went_wrong_ = false;
  clock_.start();
  shown_ms_ = 0;
  shown_rows_ = 0;
  sentence_ = tr("The search begins …");
  job_ = jobs_.start_keeping(
      kChannel, tr("Sweep the recipes of %1").arg(text_of(request.scenario->name)),
      [request, progress = progress_](const std::atomic<bool>& stop) -> std::any { return run_sweep(request, *progress, stop); },
      [this](const std::any& result) { return take(std::any_cast<const SweepResult&>(result)); });
  watch_.start();
  emit changed();
}

void RecipeSweep::stop() {
  if (is_running()) jobs_.stop(job_);
  emit changed();
}

void RecipeSweep::look() {
  if (!is_running()) return;
  const double share = progress_->share;
  const qint64 passed = clock_.elapsed();
  std::size_t rows = 0;
  {
    const std::lock_guard lock(progress_->mutex);
    rows = progress_->found.size();
    if (passed - shown_ms_ >= kRowsMs && rows > shown_rows_ && !jobs_.is_running(QStringLiteral("results"))) {
      auto answer = std::make_shared<SearchAnswer>();
      answer->scenario = request_.scenario;
      answer->rates = request_.rates;
      answer->evaluated = progress_->found;
      found_ = std::move(answer);
      shown_ms_ = passed;
      shown_rows_ = rows;
    }
  }
  const double left = share > 0.02 ? static_cast<double>(passed) / share * (1.0 - share) : -1.0;
  sentence_ = share >= 1.0 ? tr("%1 recipes; looking closer at the best …").arg(count_text(static_cast<std::int64_t>(rows)))
              : left < 0.0 ? tr("%1 recipes so far").arg(count_text(static_cast<std::int64_t>(rows)))
                           : tr("%1 recipes so far, about %2 left")
                                 .arg(count_text(static_cast<std::int64_t>(rows)), time_text(milliseconds(left)));
  jobs_.set_progress(job_, share, sentence_);
  if (shown_ms_ == passed) emit found_changed();
  emit changed();
}

QString RecipeSweep::take(const SweepResult& result) {
  found_ = result.answer;
  run_ = result.run;
  went_wrong_ = !result.not_stored.isEmpty();
  const QString rows = count_text(static_cast<std::int64_t>(found_->evaluated.size()));
  QString text = result.stopped       ? tr("Stopped with %1 recipes.").arg(rows)
                 : found_->plan.ships ? tr("%1 recipes; %2 ships.").arg(rows, text_of(to_text(found_->plan.ship.recipe)))
                                      : tr("%1 recipes; none fits, hides and keeps pace.").arg(rows);
  if (!result.not_stored.isEmpty()) {
    text += tr(" They are in the window but not all in the database: %1").arg(result.not_stored);
  } else if (result.run) {
    const auto number = static_cast<qint64>(*result.run);
    const QString file = QFileInfo(request_.database).fileName();
    text += result.stopped          ? tr(" Run %1 of %2 holds them and can go on.").arg(number).arg(file)
            : result.continued == 0 ? tr(" Stored as run %1 of %2.").arg(number).arg(file)
                                    : tr(" Run %1 of %2, continued after %3 of them, is complete.")
                                          .arg(number)
                                          .arg(file, count_text(static_cast<std::int64_t>(result.continued)));
  }
  emit found_changed();
  return text;
}

}  // namespace cpfit::gui
