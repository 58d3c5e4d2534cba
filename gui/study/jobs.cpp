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
  pool_.setMaxThreadCount(2);  // one job that is told to stop may still be finishing while the next begins
  clock_.start();
}

Jobs::~Jobs() {
  for (const Running& job : running_) job.stop->store(true);
  pool_.clear();
  pool_.waitForDone();
}

int Jobs::start(const QString& channel, const QString& title, Work work, Done done) {
  stop_channel(channel);
  const int number = ++last_;
  beginInsertRows({}, 0, 0);
  rows_.insert(rows_.begin(), JobRow{number, channel, title, JobState::kRunning, {}, clock_.elapsed(), 0});
  endInsertRows();
  if (rows_.size() > kRowsKept && rows_.back().state != JobState::kRunning) {
    beginRemoveRows({}, static_cast<int>(rows_.size()) - 1, static_cast<int>(rows_.size()) - 1);
    rows_.pop_back();
    endRemoveRows();
  }
  auto stop = std::make_shared<std::atomic<bool>>(false);
  running_.push_back({number, stop, std::move(done)});
  emit started(channel);
  pool_.start([self = QPointer<Jobs>(this), number, stop, work = std::move(work)] {
    std::any result;
    QString failure;
    if (!stop->load()) {
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

void Jobs::stop(int number) {
  const auto job = std::ranges::find(running_, number, &Running::number);
  if (job == running_.end()) return;
  job->stop->store(true);
  running_.erase(job);
  close_row(number, JobState::kStopped, {});
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
  running_.erase(job);
  if (!failure.isEmpty()) {
    close_row(number, JobState::kFailed, failure);
    return;
  }
  close_row(number, JobState::kDone, done(result));
}

void Jobs::close_row(int number, JobState state, const QString& sentence) {
  const auto row = std::ranges::find(rows_, number, &JobRow::number);
  if (row == rows_.end()) return;
  row->state = state;
  row->sentence = sentence;
  row->took_ms = clock_.elapsed() - row->started_ms;
  const int at = static_cast<int>(row - rows_.begin());
  const QString channel = row->channel;
  emit dataChanged(index(at, 0), index(at, columnCount() - 1));
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
      return name_of(row.state);
    case 2:
      return row.state == JobState::kRunning ? QStringLiteral("…") : time_text(milliseconds(static_cast<double>(row.took_ms)));
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
