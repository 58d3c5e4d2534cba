// cpfit-gui [--screenshots DIR | --smoke DIR] [FILE]: the desktop program. Exit codes: 0 done, 1 failed, 2 wrong usage or bad
// input.
#include <QApplication>
#include <QCommandLineParser>
#include <QFileInfo>
#include <QIcon>
#include <QTimer>
#include <cstdio>

#include "gui/window/examples.h"
#include "gui/window/main_window.h"
#include "gui/window/screenshots.h"
#include "gui/window/session.h"
#include "gui/window/smoke_run.h"
#include "sim/plan/kept_memory.h"
#include "sim/plan/worker_threads.h"

namespace {

constexpr int kDone = 0, kFailed = 1, kBadInput = 2;

int complain(const QString& sentence) {
  std::fprintf(stderr, "cpfit-gui: %s\n", qPrintable(sentence));
  return kBadInput;
}

/// Whether the arguments ask for pictures or a text: they need no display, and that is decided before the application exists.
bool needs_no_display(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    const QString word = QString::fromLocal8Bit(argv[i]);
    if (word.startsWith(QLatin1String("--screenshots"))) return true;
    for (const char* text : {"-h", "--help", "--help-all", "-v", "--version"}) {
      if (word == QLatin1String(text)) return true;
    }
  }
  return false;
}

/// The platform without a display says of every window that it cannot raise it; nothing else is held back.
void without_platform_chatter(QtMsgType, const QMessageLogContext&, const QString& message) {
  if (!message.startsWith(QLatin1String("This plugin does not support")))
    std::fprintf(stderr, "cpfit-gui: %s\n", qPrintable(message));
}

int take_screenshots(const QString& folder, const QString& file) {
  cpfit::gui::MainWindow window({});
  window.setProperty("unattended", true);
  window.show();
  if (!window.open_path(file)) return complain(window.said());
  const cpfit::gui::ScreenshotsDone done = cpfit::gui::write_screenshots(window, folder);
  for (const QString& path : done.files) std::printf("%s\n", qPrintable(path));
  if (done.trouble.isEmpty()) return kDone;
  std::fprintf(stderr, "cpfit-gui: %s\n", qPrintable(done.trouble));
  return kFailed;
}

/// Drives a window of its own through an example, on whatever platform there is.
int try_the_desktop(const QString& folder) {
  cpfit::gui::MainWindow window({});
  window.show();
  cpfit::gui::SmokeRun run(window, folder);
  QTimer::singleShot(0, &run, &cpfit::gui::SmokeRun::start);
  const int code = QApplication::exec();
  if (!run.trouble().isEmpty()) std::fprintf(stderr, "cpfit-gui: %s\n", qPrintable(run.trouble()));
  return run.trouble().isEmpty() ? code : kFailed;
}

}  // namespace

int main(int argc, char** argv) {
  if (needs_no_display(argc, argv)) {
    qputenv("QT_QPA_PLATFORM", "offscreen");
    qInstallMessageHandler(without_platform_chatter);
  }
  cpfit::keep_freed_memory();
  const cpfit::WorkerThreads workers;
  const QApplication application(argc, argv);
  QApplication::setApplicationName(QStringLiteral("cpfit"));
  QApplication::setApplicationVersion(QStringLiteral(CPFIT_VERSION));
  QApplication::setDesktopFileName(QStringLiteral("cpfit-gui"));
  QApplication::setWindowIcon(QIcon(QStringLiteral(":/package/cpfit.svg")));

  QCommandLineParser parser;
  parser.setApplicationDescription(QObject::tr("Finds the context-parallel recipe that fits and hides its exchange."));
  const QCommandLineOption help = parser.addHelpOption(), version = parser.addVersionOption();
  const QCommandLineOption screenshots(QStringLiteral("screenshots"),
                                       QObject::tr("Write every view of FILE as PNG into DIR, light and dark, and exit."),
                                       QStringLiteral("DIR"));
  const QCommandLineOption smoke(
      QStringLiteral("smoke"),
      QObject::tr("Try this desktop: drive an example by keyboard and mouse, with pictures in DIR, and exit."),
      QStringLiteral("DIR"));
  const QCommandLineOption fresh(QStringLiteral("fresh"), QObject::tr("Start without the last session, and keep none."));
  parser.addOption(screenshots);
  parser.addOption(smoke);
  parser.addOption(fresh);
  parser.addPositionalArgument(QStringLiteral("FILE"), QObject::tr("Scenario (.toml), result database, …"),
                               QStringLiteral("[FILE]"));
  if (!parser.parse(QApplication::arguments())) return complain(parser.errorText());
  if (parser.isSet(help)) {
    std::printf("%s", qPrintable(parser.helpText()));
    return kDone;
  }
  if (parser.isSet(version)) {
    std::printf("cpfit-gui %s\n", CPFIT_VERSION);
    return kDone;
  }
  const QStringList files = parser.positionalArguments();
  if (files.size() > 1) return complain(QObject::tr("one file at a time: %1").arg(files.join(QStringLiteral(", "))));
  if (!files.isEmpty() && !QFileInfo::exists(files.front()) && cpfit::gui::example_text(files.front()).empty())
    return complain(QObject::tr("there is no file %1").arg(files.front()));
  if (parser.isSet(screenshots)) {
    if (files.isEmpty())
      return complain(QObject::tr("--screenshots needs a scenario to show, e.g. examples/llama3-8b-128k-1node.toml"));
    return take_screenshots(parser.value(screenshots), files.front());
  }

  if (parser.isSet(smoke)) {
    QCoreApplication::setAttribute(Qt::AA_DontUseNativeDialogs);
    return try_the_desktop(parser.value(smoke));
  }

  const QString session_file = parser.isSet(fresh) ? QString() : cpfit::gui::session_path();
  cpfit::gui::MainWindow window({session_file});
  cpfit::gui::SessionRead session = session_file.isEmpty() ? cpfit::gui::SessionRead{} : cpfit::gui::load_session(session_file);
  if (!files.isEmpty()) session.state.study.clear();
  window.restore(session.state);
  if (!session.trouble.isEmpty()) window.say(session.trouble, true);
  if (!files.isEmpty()) window.open_path(files.front());
  window.show();
  return QApplication::exec();
}
