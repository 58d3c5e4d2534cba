#include "sim/plan/worker_threads.h"

#include <tbb/global_control.h>

#include <new>

namespace cpfit {

struct WorkerThreads::Handle {
  tbb::task_scheduler_handle workers{tbb::attach{}};
};

WorkerThreads::WorkerThreads() : handle_(std::make_unique<Handle>()) {}
WorkerThreads::~WorkerThreads() { tbb::finalize(handle_->workers, std::nothrow); }

}  // namespace cpfit
