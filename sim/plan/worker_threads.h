// The worker threads of searches and simulations, ended with a wait when this goes. For main(): a thread still on its way out
// while the process ends meets statics, and a sanitizer's leak check, that are half gone.
#pragma once

#include <memory>

namespace cpfit {

class WorkerThreads {
 public:
  WorkerThreads();
  WorkerThreads(const WorkerThreads&) = delete;
  WorkerThreads& operator=(const WorkerThreads&) = delete;
  ~WorkerThreads();

 private:
  struct Handle;
  std::unique_ptr<Handle> handle_;
};

}  // namespace cpfit
