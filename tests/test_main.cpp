// main of every test program. Worker threads end before the process does: a leak check that meets one on its way out reads
// memory that is gone, and fails a test that had passed.
#include <gmock/gmock.h>
#include <tbb/global_control.h>

#include <new>

int main(int argc, char** argv) {
  testing::InitGoogleMock(&argc, argv);
  tbb::task_scheduler_handle workers{tbb::attach{}};
  const int result = RUN_ALL_TESTS();
  tbb::finalize(workers, std::nothrow);
  return result;
}
