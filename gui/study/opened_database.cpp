#include "gui/study/opened_database.h"

#include <QFileInfo>
#include <algorithm>

#include "db/store/calibration_store.h"
#include "gui/look/figures.h"
#include "gui/look/taken.h"

namespace cpfit::gui {

std::shared_ptr<const DatabaseContent> read_database(const QString& path) {
  const Store store = open_store(to_std(path), {.access = StoreAccess::kRead});
  auto content = std::make_shared<DatabaseContent>();
  content->path = path;
  content->runs = list_runs(store);
  content->calibrations = list_calibrations(store);
  for (const ValidationListing& listing : list_validations(store))
    content->validations.push_back({listing, taken(load_validation(store, listing.id))});
  for (const VerificationListing& listing : list_verifications(store))
    content->verifications.push_back({listing, taken(load_verification(store, listing.id))});
  return content;
}

std::shared_ptr<const StoredRun> read_run(const QString& path, RunId run) {
  const Store store = open_store(to_std(path), {.access = StoreAccess::kRead});
  auto stored = std::make_shared<StoredRun>();
  const std::vector<RunSummary> runs = list_runs(store);
  const auto summary = std::ranges::find(runs, run, &RunSummary::run);
  if (summary == runs.end()) throw Error("the database has no run " + std::to_string(static_cast<std::int64_t>(run)));
  stored->summary = *summary;
  stored->database = path;
  stored->plan = taken(load_run(store, run));
  stored->scenario = std::make_shared<const Scenario>(
      taken(read_scenario(stored->plan.provenance.scenario_text, stored->plan.provenance.scenario_path)));
  stored->candidates = candidates_of(store, run);
  // A run that stored its verdict only still has what it names.
  if (stored->candidates.empty()) {
    const auto add = [&](const Candidate& candidate) {
      if (std::ranges::find(stored->candidates, candidate.recipe, &Candidate::recipe) == stored->candidates.end())
        stored->candidates.push_back(candidate);
    };
    if (stored->plan.ships) add(stored->plan.ship);
    if (stored->plan.has_control) add(stored->plan.control);
    for (const Candidate& candidate : stored->plan.candidates) add(candidate);
    for (const Candidate& candidate : stored->plan.front) add(candidate);
  }
  return stored;
}

void OpenedDatabase::open(const QString& path, std::optional<RunId> run) {
  jobs_.start(
      QStringLiteral("database"), tr("Read %1").arg(QFileInfo(path).fileName()),
      [path](const std::atomic<bool>&) -> std::any { return read_database(path); },
      [this, path, run](const std::any& result) {
        const bool other = path != path_;
        path_ = path;
        content_ = std::any_cast<std::shared_ptr<const DatabaseContent>>(result);
        if (other && run_ && run_->database != path) {
          run_.reset();
          emit run_changed();
        }
        emit content_changed();
        if (run) load_run(*run);
        return tr("%1 runs, %2 calibrations, %3 validations, %4 verifications")
            .arg(content_->runs.size())
            .arg(content_->calibrations.size())
            .arg(content_->validations.size())
            .arg(content_->verifications.size());
      });
}

void OpenedDatabase::load_run(RunId run) {
  const QString path = content_ ? path_ : QString();
  if (path.isEmpty() || (run_ && run_->database == path && run_->summary.run == run)) return;
  jobs_.start(
      QStringLiteral("candidates"), tr("Read the recipes of run %1").arg(static_cast<qint64>(run)),
      [path, run](const std::atomic<bool>&) -> std::any { return read_run(path, run); },
      [this](const std::any& result) {
        run_ = std::any_cast<std::shared_ptr<const StoredRun>>(result);
        emit run_changed();
        return tr("%1 recipes").arg(count_text(static_cast<std::int64_t>(run_->candidates.size())));
      });
}

void OpenedDatabase::close() {
  jobs_.stop_channel(QStringLiteral("database"));
  jobs_.stop_channel(QStringLiteral("candidates"));
  path_.clear();
  content_.reset();
  run_.reset();
  emit run_changed();
  emit content_changed();
}

}  // namespace cpfit::gui
