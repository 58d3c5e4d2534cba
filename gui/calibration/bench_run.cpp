#include "gui/calibration/bench_run.h"

#include <QCoreApplication>
#include <QDir>
#include <QFileInfo>
#include <QJsonDocument>
#include <QJsonObject>
#include <QStandardPaths>
#include <algorithm>

#include "gui/look/figures.h"
#include "model/record/measurement.h"

namespace cpfit::gui {

namespace {

constexpr int kPatienceMs = 15'000;
constexpr qsizetype kErrorsKept = 16'384;

qint64 points_in(const QString& path) {
  const Outcome<MeasurementFile> file = read_measurement(to_std(path));
  if (!file.ok()) return 0;
  return std::ranges::count(file->points, MeasuredOutcome::kMeasured, &MeasuredPoint::outcome);
}

}  // namespace

QStringList words_of(const BenchCommand& command) {
  QStringList words;
  if (command.ranks > 1) words << command.mpirun << "-n" << QString::number(command.ranks) << "--oversubscribe";
  words << command.program << "--backend" << command.backend << "--out" << command.out;
  if (command.smoke)
    words << "--smoke";
  else if (command.minutes > 0)
    words << "--budget" << QString::number(command.minutes);
  return words;
}

QString line_of(const BenchCommand& command) {
  QStringList quoted;
  for (const QString& word : words_of(command)) {
    const bool plain = std::ranges::none_of(word, [](QChar c) { return c.isSpace() || QStringLiteral("\"'$`\\").contains(c); });
    quoted << (plain
                   ? word
                   : QLatin1Char('\'') + QString(word).replace(QStringLiteral("'"), QStringLiteral("'\\''")) + QLatin1Char('\''));
  }
  return quoted.join(QLatin1Char(' '));
}

std::optional<BenchProgress> parse_progress(const QByteArray& line) {
  const QJsonObject object = QJsonDocument::fromJson(line).object();
  if (!object["probe"].isString() || !object["outcome"].isString()) return std::nullopt;
  BenchProgress progress;
  progress.probe = object["probe"].toString();
  progress.done = object["done"].toInteger();
  progress.total = object["total"].toInteger();
  progress.seconds_left = object["seconds_left"].toDouble(-1.0);
  progress.outcome = object["outcome"].toString();
  progress.reason = object["reason"].toString();
  return progress;
}

QString find_companion(const QString& name) {
  // Installed side by side; in a build folder every program lies in the folder of its part.
  const QDir own(QCoreApplication::applicationDirPath());
  for (const char* folder : {".", "../calibrate", "../../calibrate", "../cli", "../../cli"}) {
    const QFileInfo file(own.filePath(QLatin1String(folder) + QLatin1Char('/') + name));
    if (file.isFile() && file.isExecutable()) return QDir::cleanPath(file.absoluteFilePath());
  }
  return QStandardPaths::findExecutable(name);
}

BenchRun::BenchRun(Jobs& jobs, QObject* parent) : QObject(parent), jobs_(jobs), process_(this) {
  patience_.setSingleShot(true);
  patience_.setInterval(kPatienceMs);
  connect(&patience_, &QTimer::timeout, &process_, &QProcess::kill);
  connect(&process_, &QProcess::readyReadStandardOutput, this, &BenchRun::read_lines);
  connect(&process_, &QProcess::readyReadStandardError, this, [this] {
    errors_ += process_.readAllStandardError();
    if (errors_.size() > kErrorsKept) errors_ = errors_.last(kErrorsKept);
  });
  connect(&process_, &QProcess::errorOccurred, this, [this](QProcess::ProcessError error) {
    if (error != QProcess::FailedToStart || !is_running()) return;
    finish(JobState::kFailed, tr("%1 cannot be started: %2.").arg(words_of(command_).front(), process_.errorString()));
  });
  connect(&process_, &QProcess::finished, this, &BenchRun::closed);
}

BenchRun::~BenchRun() {
  process_.disconnect(this);
  if (process_.state() == QProcess::NotRunning) return;
  process_.terminate();
  // Its file is whole after every point: nothing is lost where it has to be ended.
  if (!process_.waitForFinished(2000)) {
    process_.kill();
    process_.waitForFinished(2000);
  }
}

void BenchRun::start(const BenchCommand& command) {
  if (is_running()) return;
  command_ = command;
  progress_.reset();
  errors_.clear();
  failure_.clear();
  measured_ = 0;
  stopped_ = went_wrong_ = false;
  job_ = jobs_.adopt(QStringLiteral("measure"),
                     command.smoke ? tr("Try to measure this machine (%1)").arg(command.backend)
                                   : tr("Measure this machine (%1)").arg(command.backend),
                     [this] {
                       stopped_ = true;
                       process_.terminate();
                       patience_.start();
                     });
  sentence_ = tr("The measuring program is being started …");
  if (!QDir().mkpath(QFileInfo(command.out).absolutePath())) {
    finish(JobState::kFailed, tr("The folder %1 cannot be made.").arg(QFileInfo(command.out).absolutePath()));
    return;
  }
  QProcessEnvironment environment = QProcessEnvironment::systemEnvironment();
  if (command.ranks > 1) {
    // Ranks share the cores; as root Open MPI wants to be told that it may.
    for (const char* threads : {"OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"}) {
      if (!environment.contains(QLatin1String(threads))) environment.insert(QLatin1String(threads), QStringLiteral("1"));
    }
    environment.insert(QStringLiteral("OMPI_ALLOW_RUN_AS_ROOT"), QStringLiteral("1"));
    environment.insert(QStringLiteral("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"), QStringLiteral("1"));
  }
  process_.setProcessEnvironment(environment);
  QStringList words = words_of(command);
  const QString program = words.takeFirst();
  process_.start(program, words, QIODevice::ReadOnly);
  emit changed();
}

void BenchRun::stop() {
  if (!is_running()) return;
  jobs_.stop(job_);
  sentence_ = tr("Stopping: the point that is being measured is left out …");
  emit changed();
}

void BenchRun::read_lines() {
  while (process_.canReadLine()) {
    const std::optional<BenchProgress> progress = parse_progress(process_.readLine());
    if (!progress) continue;
    progress_ = progress;
    if (progress->outcome == QLatin1String("failed")) failure_ = progress->reason;
  }
  if (!is_running() || !progress_ || stopped_) return;
  sentence_ = tr("%1: %2 of %3 points").arg(progress_->probe, count_text(progress_->done), count_text(progress_->total));
  if (progress_->seconds_left >= 0.0) sentence_ += tr(", about %1 left").arg(time_text(Seconds(progress_->seconds_left)));
  const double share = progress_->total > 0 ? static_cast<double>(progress_->done) / static_cast<double>(progress_->total) : -1.0;
  jobs_.set_progress(job_, share, sentence_);
  emit changed();
}

QString BenchRun::what_it_said() const {
  const QString prefix = QStringLiteral("cpfit-bench: ");
  QString last;
  for (const QString& line : QString::fromUtf8(errors_).split(QLatin1Char('\n'), Qt::SkipEmptyParts)) {
    if (line.startsWith(prefix)) return line.mid(prefix.size());
    if (!line.trimmed().isEmpty()) last = line.trimmed();
  }
  return last;
}

void BenchRun::closed(int exit_code, QProcess::ExitStatus status) {
  constexpr int kWaived = 4;
  if (!is_running()) return;
  read_lines();
  errors_ += process_.readAllStandardError();
  patience_.stop();
  measured_ = points_in(command_.out);
  const QString kept =
      measured_ == 0 ? tr("Nothing was measured.")
                     : tr("%1 holds %2 points; measuring with the same file goes on.").arg(command_.out, count_text(measured_));
  const QString said = what_it_said();
  if (stopped_) return finish(JobState::kStopped, tr("Stopped. %1").arg(kept));
  if (status == QProcess::CrashExit)
    return finish(JobState::kFailed,
                  tr("The measuring program died (%1). %2").arg(said.isEmpty() ? tr("it was ended by a signal") : said, kept));
  if (exit_code == 0) {
    return finish(
        JobState::kDone,
        command_.smoke
            ? tr("Everything runs: %1 points. Figures of a try are of no use; measure in full.").arg(count_text(measured_))
            : tr("%1 points are in %2.").arg(count_text(measured_), command_.out));
  }
  QString reason = !failure_.isEmpty() ? failure_ : said.isEmpty() ? tr("it ended with exit code %1").arg(exit_code) : said;
  if (exit_code == kWaived) {
    if (reason.startsWith(QLatin1String("waived: "))) reason = reason.mid(8);
    return finish(JobState::kFailed, tr("This cannot be measured here: %1.").arg(reason));
  }
  finish(JobState::kFailed, tr("Measuring failed: %1. %2").arg(reason, kept));
}

void BenchRun::finish(JobState state, const QString& sentence) {
  const int job = job_;
  job_ = 0;
  went_wrong_ = state == JobState::kFailed;
  sentence_ = sentence;
  jobs_.end(job, state, sentence);
  emit changed();
  emit ended();
}

}  // namespace cpfit::gui
