// One application for all tests of a program, on the platform without a display, with a settings folder of its own.
// Worker threads end before the process does: see ../test_main.cpp.
#include <gmock/gmock.h>
#include <tbb/global_control.h>

#include <QApplication>
#include <QStandardPaths>
#include <new>

int main(int argc, char** argv) {
  if (!qEnvironmentVariableIsSet("QT_QPA_PLATFORM")) qputenv("QT_QPA_PLATFORM", "offscreen");
  QStandardPaths::setTestModeEnabled(true);
  testing::InitGoogleMock(&argc, argv);
  const QApplication application(argc, argv);
  tbb::task_scheduler_handle workers{tbb::attach{}};
  const int result = RUN_ALL_TESTS();
  tbb::finalize(workers, std::nothrow);
  return result;
}
