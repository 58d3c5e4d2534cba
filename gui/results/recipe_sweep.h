// A search that a person started: runs beside the window, brings in rows as it goes, stops with what it has, and writes into a
// database where one was chosen. Trouble with the database ends the writing, never the search.
#pragma once

#include <QObject>
#include <QTimer>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "db/store/run_store.h"
#include "gui/study/jobs.h"
#include "gui/study/live_estimate.h"

namespace cpfit::gui {

struct SweepRequest {
  std::shared_ptr<const Scenario> scenario;
  std::shared_ptr<const RateSet> rates;
  std::optional<CalibrationUse> calibration;
  std::shared_ptr<const ChosenCalibration> chosen;  // the calibration itself, stored with the run; null: the defaults
  std::string tool_version;
  QString database;  // empty: the window only
  StoreOptions store;
  bool closer = true;  // the crossover, and the best of it on the timeline
};

/// What the search's thread leaves for the window while it runs.
struct SweepProgress {
  std::mutex mutex;
  std::vector<Candidate> found;  // guarded
  std::atomic<double> share{0.0};
};

struct SweepResult {
  std::shared_ptr<const SearchAnswer> answer;
  std::optional<RunId> run;   // in the database
  std::size_t continued = 0;  // recipes that an interrupted run of it had stored before
  bool stopped = false;
  QString not_stored;  // why the database does not hold all of it; empty: it does, or none was chosen
};

/// The body of the job. Throws Error where the scenario cannot be searched.
[[nodiscard]] SweepResult run_sweep(const SweepRequest& request, SweepProgress& progress, const std::atomic<bool>& stop);

/// The interrupted run that this request would continue, with how many recipes it holds; none without one. A database that cannot
/// be read is `trouble`.
struct Resumable {
  std::optional<RunId> run;
  std::size_t recipes = 0;
  QString trouble;
};
[[nodiscard]] Resumable resumable_run(const SweepRequest& request);

class RecipeSweep : public QObject {
  Q_OBJECT
 public:
  explicit RecipeSweep(Jobs& jobs, QObject* parent = nullptr);

  [[nodiscard]] bool is_running() const { return job_ != 0; }
  void start(const SweepRequest& request);
  void stop();

  [[nodiscard]] double share() const { return progress_ ? progress_->share.load() : 0.0; }
  /// One sentence: how far it is, or what came of the last one; empty before the first.
  [[nodiscard]] const QString& sentence() const { return sentence_; }
  [[nodiscard]] bool went_wrong() const { return went_wrong_; }
  /// Rows so far, then all of them. Null before the first.
  [[nodiscard]] const std::shared_ptr<const SearchAnswer>& found() const { return found_; }
  [[nodiscard]] const SweepRequest& request() const { return request_; }
  /// Of the last one, where it was stored.
  [[nodiscard]] std::optional<RunId> run() const { return run_; }

 signals:
  void changed();        // sentence, share, running or not
  void found_changed();  // more rows, or the end
  void ended();

 private:
  void look();
  QString take(const SweepResult& result);
  Jobs& jobs_;
  QTimer watch_;
  QElapsedTimer clock_;
  qint64 shown_ms_ = 0;
  std::size_t shown_rows_ = 0;
  int job_ = 0;
  SweepRequest request_;
  std::shared_ptr<SweepProgress> progress_;
  std::shared_ptr<const SearchAnswer> found_;
  std::optional<RunId> run_;
  QString sentence_;
  bool went_wrong_ = false;
};

}  // namespace cpfit::gui
