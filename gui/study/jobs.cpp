#include "gui/study/jobs.h"

#include <QPointer>
#include <algorithm>
#include <exception>
#include <new>

#include "gui/look/figures.h"

namespace cpfit::gui {

namespace {

constexpr std::size_t kRowsKept = 200;

QString name_of(JobState state) {
  switch (state) {
    case JobState::kRunning:
      return QObject::tr("running");
    case JobState::kDone:
      return QObject::tr("done");
    case JobState::kStopped:
      return QObject::tr("stopped");
    case JobState::kFailed:
      break;
  }
  return QObject::tr("failed");
}

}  // namespace

Jobs::Jobs(QObject* parent) : QAbstractTableModel(parent) {
  // One job that is told to stop may still be finishing while the next begins.
  for (QThreadPool* pool : {&pool_, &long_pool_}) pool->setMaxThreadCount(2);
  clock_.start();
}

Jobs::~Jobs() {
  for (const Running& job : running_) job.stop->store(true);
  for (QThreadPool* pool : {&pool_, &long_pool_}) {
    pool->clear();
    pool->waitForDone();
  }
}

int Jobs::open_row(const QString& channel, const QString& title) {
  const int number = ++last_;
  beginInsertRows({}, 0, 0);
  JobRow row;
  row.number = number;
  row.channel = channel;
  row.title = title;
  row.started_ms = clock_.elapsed();
  rows_.insert(rows_.begin(), std::move(row));
  endInsertRows();
  if (rows_.size() > kRowsKept && rows_.back().state != JobState::kRunning) {
    beginRemoveRows({}, static_cast<int>(rows_.size()) - 1, static_cast<int>(rows_.size()) - 1);
    rows_.pop_back();
    endRemoveRows();
  }
  return number;
}

int Jobs::start(const QString& channel, const QString& title, Work work, Done done) {
  return run_in(pool_, channel, title, std::move(work), std::move(done), false);
}

int Jobs::start_keeping(const QString& channel, const QString& title, Work work, Done done) {
  return run_in(long_pool_, channel, title, std::move(work), std::move(done), true);
}

int Jobs::run_in(QThreadPool& pool, const QString& channel, const QString& title, Work work, Done done, bool keeps) {
  stop_channel(channel);
  const int number = open_row(channel, title);
  auto stop = std::make_shared<std::atomic<bool>>(false);
  running_.push_back({number, stop, std::move(done), keeps, {}});
  emit started(channel);
  pool.start([self = QPointer<Jobs>(this), number, stop, keeps, work = std::move(work)] {
    std::any result;
    QString failure;
    if (keeps || !stop->load()) {
      try {
        result = work(*stop);
      } catch (const std::bad_alloc&) {
        failure = tr("there was not enough memory for it");
      } catch (const std::exception& error) {
        failure = text_of(error.what());
      }
    }
    // The list outlives its pool's work: its destructor waits.
    QMetaObject::invokeMethod(
        self.data(), [self, number, result, failure] { self->finish(number, result, failure); }, Qt::QueuedConnection);
  });
  return number;
}

int Jobs::adopt(const QString& channel, const QString& title, std::function<void()> stop) {
  stop_channel(channel);
  const int number = open_row(channel, title);
  running_.push_back({number, std::make_shared<std::atomic<bool>>(false), {}, true, std::move(stop)});
  emit started(channel);
  return number;
}

void Jobs::end(int number, JobState state, const QString& sentence) {
  const auto job = std::ranges::find(running_, number, &Running::number);
  if (job == running_.end()) return;
  running_.erase(job);
  close_row(number, state, sentence);
}

JobRow* Jobs::row_of(int number) {
  const auto row = std::ranges::find(rows_, number, &JobRow::number);
  return row == rows_.end() ? nullptr : &*row;
}

void Jobs::changed(const JobRow& row) {
  const int at = static_cast<int>(&row - rows_.data());
  emit dataChanged(index(at, 0), index(at, columnCount() - 1));
}

void Jobs::set_progress(int number, double share, const QString& words) {
  JobRow* row = row_of(number);
  if (row == nullptr || row->state != JobState::kRunning) return;
  row->share = share;
  row->sentence = words;
  changed(*row);
}

void Jobs::stop(int number) {
  const auto job = std::ranges::find(running_, number, &Running::number);
  if (job == running_.end()) return;
  const bool again = job->stop->exchange(true);
  if (!job->keeps) {
    running_.erase(job);
    close_row(number, JobState::kStopped, {});
    return;
  }
  if (JobRow* row = row_of(number)) {
    row->stopping = true;
    changed(*row);
  }
  // A copy: what it calls may end the job at once.
  if (const std::function<void()> tell = job->tell; tell && !again) tell();
}

void Jobs::stop_all() {
  std::vector<int> numbers;
  for (const Running& job : running_) numbers.push_back(job.number);
  for (const int number : numbers) stop(number);
}

void Jobs::stop_channel(const QString& channel) {
  std::vector<int> numbers;
  for (const JobRow& row : rows_) {
    if (row.channel == channel && row.state == JobState::kRunning) numbers.push_back(row.number);
  }
  for (const int number : numbers) stop(number);
}

bool Jobs::is_running(const QString& channel) const {
  return std::ranges::any_of(rows_, [&](const JobRow& row) { return row.channel == channel && row.state == JobState::kRunning; });
}

void Jobs::finish(int number, const std::any& result, const QString& failure) {
  const auto job = std::ranges::find(running_, number, &Running::number);
  if (job == running_.end()) return;  // stopped meanwhile: too late
  const Done done = std::move(job->done);
  const bool stopped = job->stop->load();
  running_.erase(job);
  if (!failure.isEmpty()) {
    close_row(number, JobState::kFailed, failure);
    return;
  }
  const QString sentence = done(result);
  close_row(number, stopped ? JobState::kStopped : JobState::kDone, sentence);
}

void Jobs::close_row(int number, JobState state, const QString& sentence) {
  JobRow* row = row_of(number);
  if (row == nullptr) return;
  row->state = state;
  row->stopping = false;
  row->sentence = sentence;
  row->took_ms = clock_.elapsed() - row->started_ms;
  const QString channel = row->channel;
  changed(*row);
  emit ended(channel, state, sentence);
}

int Jobs::rowCount(const QModelIndex& parent) const { return parent.isValid() ? 0 : static_cast<int>(rows_.size()); }
int Jobs::columnCount(const QModelIndex& parent) const { return parent.isValid() ? 0 : 4; }

QVariant Jobs::data(const QModelIndex& index, int role) const {
  if (!checkIndex(index, CheckIndexOption::IndexIsValid)) return {};
  const JobRow& row = rows_[static_cast<std::size_t>(index.row())];
  if (role != Qt::DisplayRole && role != Qt::ToolTipRole) return {};
  switch (index.column()) {
    case 0:
      return row.title;
    case 1:
      return row.stopping ? tr("stopping") : name_of(row.state);
    case 2:
      if (row.state == JobState::kRunning) return row.share < 0.0 ? QStringLiteral("…") : share_text(row.share);
      return time_text(milliseconds(static_cast<double>(row.took_ms)));
    default:
      return row.sentence;
  }
}

QVariant Jobs::headerData(int section, Qt::Orientation orientation, int role) const {
  if (orientation != Qt::Horizontal || role != Qt::DisplayRole) return {};
  const QString names[] = {tr("Job"), tr("State"), tr("Time"), tr("Result")};
  return section >= 0 && section < 4 ? names[section] : QVariant();
}

}  // namespace cpfit::gui
