// Work beside the window: numbered, newest wins, stoppable. A channel holds one question at a time ("simulate"): a newer job of
// it ends the older one, whose late result is dropped. Results and failures arrive on the thread of the window. Two kinds keep
// what they did when they are stopped: long work (a sweep), and work of another process.
#pragma once

#include <QAbstractTableModel>
#include <QElapsedTimer>
#include <QString>
#include <QThreadPool>
#include <any>
#include <atomic>
#include <functional>
#include <memory>
#include <vector>

namespace cpfit::gui {

enum class JobState { kRunning, kDone, kStopped, kFailed };

struct JobRow {
  int number = 0;
  QString channel, title;
  JobState state = JobState::kRunning;
  QString sentence;       // what came of it; of a running one how far it is
  double share = -1.0;    // done, of a running job that tells; below 0: it does not
  bool stopping = false;  // was told to stop, and still brings in what it has
  qint64 started_ms = 0, took_ms = 0;
};

class Jobs : public QAbstractTableModel {
  Q_OBJECT
 public:
  using Work = std::function<std::any(const std::atomic<bool>& stop)>;
  /// Gets the work's result; returns the sentence that the list keeps of it.
  using Done = std::function<QString(std::any)>;

  explicit Jobs(QObject* parent = nullptr);
  ~Jobs() override;

  /// The job's number. Whatever `work` throws becomes a sentence of failure.
  int start(const QString& channel, const QString& title, Work work, Done done);
  /// The same for long work that keeps what it did: told to stop, it runs on until it returns, and `done` gets its result then
  /// too.
  int start_keeping(const QString& channel, const QString& title, Work work, Done done);
  /// Lists work that somebody else does, a process for instance: `stop` is called when a person stops it, end() when it is over.
  int adopt(const QString& channel, const QString& title, std::function<void()> stop);
  void end(int number, JobState state, const QString& sentence);
  /// How far a running job is: share done (below 0: not known) and words for it.
  void set_progress(int number, double share, const QString& words);

  void stop(int number);
  void stop_all();
  void stop_channel(const QString& channel);
  [[nodiscard]] bool is_running(const QString& channel) const;
  [[nodiscard]] const std::vector<JobRow>& rows() const { return rows_; }

  [[nodiscard]] int rowCount(const QModelIndex& parent = {}) const override;
  [[nodiscard]] int columnCount(const QModelIndex& parent = {}) const override;
  [[nodiscard]] QVariant data(const QModelIndex& index, int role) const override;
  [[nodiscard]] QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

 signals:
  void started(const QString& channel);
  /// Done, failed or stopped: `channel` has no job any more.
  void ended(const QString& channel, cpfit::gui::JobState state, const QString& sentence);

 private:
  struct Running {
    int number;
    std::shared_ptr<std::atomic<bool>> stop;
    Done done;
    bool keeps = false;
    std::function<void()> tell;  // of adopted work
  };
  int open_row(const QString& channel, const QString& title);
  int run_in(QThreadPool& pool, const QString& channel, const QString& title, Work work, Done done, bool keeps);
  [[nodiscard]] JobRow* row_of(int number);
  void changed(const JobRow& row);
  void finish(int number, const std::any& result, const QString& failure);
  void close_row(int number, JobState state, const QString& sentence);
  QThreadPool pool_, long_pool_;  // long work does not keep an edit's answer waiting
  QElapsedTimer clock_;
  std::vector<Running> running_;
  std::vector<JobRow> rows_;  // newest first
  int last_ = 0;
};

}  // namespace cpfit::gui
