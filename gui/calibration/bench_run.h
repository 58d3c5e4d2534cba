// Measuring the machine under the window: `cpfit-bench` as a child process, its progress line by line, a stop that keeps what was
// measured. Whatever becomes of the child is a sentence.
#pragma once

#include <QElapsedTimer>
#include <QObject>
#include <QProcess>
#include <QStringList>
#include <QTimer>
#include <optional>

#include "gui/study/jobs.h"

namespace cpfit::gui {

struct BenchCommand {
  QString program;     // cpfit-bench
  QString backend;     // "host", "cuda", "loopback"
  int ranks = 1;       // above 1 by mpirun
  bool smoke = false;  // tiny sizes: does everything run?
  double minutes = 0;  // at most; 0: as long as it takes
  QString out;         // a run with the same file goes on where the last one ended
  QString mpirun{"mpirun"};
};
/// Program and arguments, as a shell would be given them.
[[nodiscard]] QStringList words_of(const BenchCommand& command);
/// The same as one line to copy.
[[nodiscard]] QString line_of(const BenchCommand& command);

/// One line of the child's progress.
struct BenchProgress {
  QString probe;
  qint64 done = 0, total = 0;  // points of the whole run
  double seconds_left = -1;    // below 0: not known yet
  QString outcome, reason;     // "running", "done", "failed"
};
/// None where the line is something else.
[[nodiscard]] std::optional<BenchProgress> parse_progress(const QByteArray& line);

/// The program of that name of the same build or installation: beside this one, where the build puts it, or in PATH; else empty.
[[nodiscard]] QString find_companion(const QString& name);

class BenchRun : public QObject {
  Q_OBJECT
 public:
  explicit BenchRun(Jobs& jobs, QObject* parent = nullptr);
  ~BenchRun() override;

  [[nodiscard]] bool is_running() const { return job_ != 0; }
  /// How long a child that was told to stop may take to write its last point.
  void set_patience(int ms) { patience_.setInterval(ms); }
  void start(const BenchCommand& command);
  void stop();

  [[nodiscard]] const BenchCommand& command() const { return command_; }
  [[nodiscard]] const std::optional<BenchProgress>& progress() const { return progress_; }
  [[nodiscard]] const QString& sentence() const { return sentence_; }
  [[nodiscard]] bool went_wrong() const { return went_wrong_; }
  /// Points in the file when the last run ended.
  [[nodiscard]] qint64 measured() const { return measured_; }

 signals:
  void changed();
  void ended();

 private:
  void read_lines();
  void finish(JobState state, const QString& sentence);
  void closed(int exit_code, QProcess::ExitStatus status);
  [[nodiscard]] QString what_it_said() const;
  Jobs& jobs_;
  QProcess process_;
  QTimer patience_;
  BenchCommand command_;
  std::optional<BenchProgress> progress_;
  QByteArray errors_;  // the end of its standard error
  QString sentence_, failure_;
  qint64 measured_ = 0;
  int job_ = 0;
  bool stopped_ = false, went_wrong_ = false;
};

}  // namespace cpfit::gui
