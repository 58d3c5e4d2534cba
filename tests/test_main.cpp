// main of every test program but those of the desktop.
#include "tests/run_all_tests.h"

int main(int argc, char** argv) {
  testing::InitGoogleMock(&argc, argv);
  const int result = cpfit::testing_main::run_all_tests();
  cpfit::testing_main::look_for_leaks();
  return result;
}
