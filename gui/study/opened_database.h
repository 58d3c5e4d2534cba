// A result database beside the study: what it holds, read once by a job with a connection of its own; the window never waits for
// the file. Candidates of a run come on demand.
#pragma once

#include <QObject>
#include <QString>
#include <memory>
#include <optional>
#include <vector>

#include "db/query/runs.h"
#include "db/store/validation_store.h"
#include "db/store/verification_store.h"
#include "gui/study/jobs.h"
#include "model/recipe/scenario.h"
#include "model/record/calibration.h"

namespace cpfit::gui {

struct StoredValidation {
  ValidationListing listing;
  ValidationResult result;
};

struct StoredVerification {
  VerificationListing listing;
  Verification result;
};

/// All but candidates. Youngest first, as the store lists them.
struct DatabaseContent {
  QString path;
  std::vector<RunSummary> runs;
  std::vector<Calibration> calibrations;
  std::vector<StoredValidation> validations;
  std::vector<StoredVerification> verifications;
};

/// One run with every candidate that was stored.
struct StoredRun {
  RunSummary summary;
  QString database;
  PlanResult plan;
  std::shared_ptr<const Scenario> scenario;
  std::vector<Candidate> candidates;
};

class OpenedDatabase : public QObject {
  Q_OBJECT
 public:
  explicit OpenedDatabase(Jobs& jobs, QObject* parent = nullptr) : QObject(parent), jobs_(jobs) {}

  /// Null while none is open or it is still being read.
  [[nodiscard]] const std::shared_ptr<const DatabaseContent>& content() const { return content_; }
  [[nodiscard]] const std::shared_ptr<const StoredRun>& run() const { return run_; }
  [[nodiscard]] const QString& path() const { return path_; }

  /// Reads the file in a job, then the candidates of `run` where one is named; trouble is the job's sentence, and what was there
  /// before stays.
  void open(const QString& path, std::optional<RunId> run = std::nullopt);
  /// Reads the candidates of a run of it.
  void load_run(RunId run);
  void close();

 signals:
  void content_changed();
  void run_changed();

 private:
  Jobs& jobs_;
  QString path_;
  std::shared_ptr<const DatabaseContent> content_;
  std::shared_ptr<const StoredRun> run_;
};

/// The bodies of the jobs. Throw Error with a sentence.
[[nodiscard]] std::shared_ptr<const DatabaseContent> read_database(const QString& path);
[[nodiscard]] std::shared_ptr<const StoredRun> read_run(const QString& path, RunId run);

}  // namespace cpfit::gui
