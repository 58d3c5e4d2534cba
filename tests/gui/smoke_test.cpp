// The program itself on a real display server: started, driven by its own --smoke, and looked at.
#include <gtest/gtest.h>

#include <QFileInfo>
#include <QImage>
#include <QLibraryInfo>
#include <QProcess>
#include <QStandardPaths>
#include <QTemporaryDir>

namespace {

constexpr int kLimitMs = 120'000;  // a sanitizer on a busy machine; some five seconds otherwise

/// An X server without a screen, on a number that it chose itself. Empty: it did not start.
QString start_xvfb(QProcess& server, const QString& program) {
  server.setProcessChannelMode(QProcess::SeparateChannels);
  server.start(program, {"-displayfd", "1", "-screen", "0", "1600x1000x24", "-nolisten", "tcp"});
  if (!server.waitForStarted(10'000)) return {};
  while (!server.canReadLine() && server.waitForReadyRead(20'000)) {
  }
  const QByteArray number = server.readLine().trimmed();
  return number.isEmpty() ? QString() : QStringLiteral(":") + QString::fromLatin1(number);
}

TEST(Smoke, AnExampleIsOpenedEditedSimulatedZoomedAndExportedOnADisplay) {
  const QString xvfb = QStandardPaths::findExecutable("Xvfb");
  if (xvfb.isEmpty()) GTEST_SKIP() << "there is no Xvfb in PATH (package xvfb)";
  QProcess server;
  const QString display = start_xvfb(server, xvfb);
  if (display.isEmpty()) GTEST_SKIP() << "Xvfb did not start: " << server.readAllStandardError().toStdString();
  const bool xcb = QFileInfo::exists(QLibraryInfo::path(QLibraryInfo::PluginsPath) + "/platforms/libqxcb.so");
  QTemporaryDir folder;
  QProcess window;
  QProcessEnvironment environment = QProcessEnvironment::systemEnvironment();
  environment.insert("DISPLAY", display);
  environment.insert("QT_QPA_PLATFORM", xcb ? "xcb" : "offscreen");
  environment.insert("HOME", folder.path());
  environment.insert("XDG_RUNTIME_DIR", folder.path());
  // Under a sanitizer: what the display's own libraries do with strings, and leave behind, is not ours; our windows are looked at
  // in their own tests.
  environment.insert("ASAN_OPTIONS", environment.value("ASAN_OPTIONS") + ":strict_string_checks=0:detect_leaks=0");
  window.setProcessEnvironment(environment);
  window.setProcessChannelMode(QProcess::MergedChannels);
  window.start(QStringLiteral(CPFIT_GUI_PROGRAM), {"--smoke", folder.path()});
  const bool ended = window.waitForFinished(kLimitMs);
  const std::string said = window.readAll().toStdString();
  if (!ended) window.kill();
  server.terminate();
  server.waitForFinished(5'000);
  ASSERT_TRUE(ended) << said;
  EXPECT_EQ(window.exitStatus(), QProcess::NormalExit) << said;
  EXPECT_EQ(window.exitCode(), 0) << said;
  for (const char* step : {"opens an example", "edits", "simulates", "zooms", "exports", "quits"})
    EXPECT_NE(said.find(step), std::string::npos) << said;
  EXPECT_FALSE(QImage(folder.filePath("view.png")).isNull()) << "what was exported is a picture";
  EXPECT_GT(QImage(folder.filePath("screen.png")).width(), 800) << "what the display showed";
}

TEST(Smoke, ADesktopThatIsNotThereIsASentence) {
  QProcess window;
  QProcessEnvironment environment = QProcessEnvironment::systemEnvironment();
  environment.insert("QT_QPA_PLATFORM", "offscreen");
  window.setProcessEnvironment(environment);
  window.start(QStringLiteral(CPFIT_GUI_PROGRAM), {"--smoke", "/proc/no/such/folder"});
  ASSERT_TRUE(window.waitForFinished(kLimitMs));
  EXPECT_EQ(window.exitCode(), 1);
  EXPECT_TRUE(window.readAllStandardError().contains("cannot be made"));
}

}  // namespace
