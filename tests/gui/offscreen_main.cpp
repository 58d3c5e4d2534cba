// One application for all tests of a program, on the platform without a display, with a settings folder of its own.
#include <QApplication>
#include <QStandardPaths>

#include "tests/run_all_tests.h"

int main(int argc, char** argv) {
  if (!qEnvironmentVariableIsSet("QT_QPA_PLATFORM")) qputenv("QT_QPA_PLATFORM", "offscreen");
  QStandardPaths::setTestModeEnabled(true);
  testing::InitGoogleMock(&argc, argv);
  int result = 0;
  {
    const QApplication application(argc, argv);
    result = cpfit::testing_main::run_all_tests();
  }
  cpfit::testing_main::look_for_leaks();
  return result;
}
