#include "engine.h"

#include <setjmp.h>
#include <ucontext.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>
#include <vector>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#endif

namespace simt {

namespace {

constexpr std::size_t kStackBytes = 256 * 1024;
#if defined(__SANITIZE_ADDRESS__)
constexpr std::size_t kGuardBytes = 0;  // the sanitizer watches
#else
constexpr std::size_t kGuardBytes = 256;  // behind the shared memory
#endif
constexpr unsigned char kUnwritten = 0xFF;    // NaN in every number type
constexpr std::uint32_t kFirstAddress = 512;  // address 0 is no place

struct Copy {
  std::uint32_t shared;
  const void* global;  // null: zeros
};

enum class State { kReady, kAtWarp, kAtBlock, kDone };

struct Fiber {
  ucontext_t context{};
  std::unique_ptr<unsigned char[]> stack = std::make_unique_for_overwrite<unsigned char[]>(kStackBytes);
  State state = State::kReady;
  std::uint64_t waits_for = 0;  // the generation that frees it
  ThreadPlace place;
  std::vector<Copy> open;
  std::deque<std::vector<Copy>> groups;
  void* fake_stack = nullptr;  // of the address sanitizer
  jmp_buf jump;
  bool entered = false;
};

struct Warp {
  const char* what = nullptr;
  int arrived = 0;
  std::uint64_t generation = 0;
  void* operands[32] = {};
};

struct Engine {
  const std::function<void()>* kernel = nullptr;
  Launch launch;
  ucontext_t scheduler{};
  jmp_buf scheduler_jump;
  void* scheduler_fake_stack = nullptr;
  const void* scheduler_stack = nullptr;
  std::size_t scheduler_stack_bytes = 0;
  std::vector<Fiber> fibers;
  std::vector<Warp> warps;
  int arrived = 0;  // at the barrier
  std::uint64_t generation = 0;
  std::unique_ptr<unsigned char, decltype(&std::free)> shared{nullptr, &std::free};
  Fiber* current = nullptr;
  std::string failure;
  ThreadPlace failed_at{0, 0, 0, {1, 1, 0, 0, false}};  // no threads: not one thread's failure
};

// Fibers find their engine here: a run is one call on one host thread.
thread_local Engine* engine = nullptr;

#if defined(__SANITIZE_ADDRESS__)

// The sanitizer is told of every change of stacks.
void to_scheduler(bool for_ever = false) {
  Fiber& fiber = *engine->current;
  __sanitizer_start_switch_fiber(for_ever ? nullptr : &fiber.fake_stack, engine->scheduler_stack, engine->scheduler_stack_bytes);
  swapcontext(&fiber.context, &engine->scheduler);
  __sanitizer_finish_switch_fiber(fiber.fake_stack, nullptr, nullptr);
}

void resume(Fiber& fiber) {
  engine->current = &fiber;
  __sanitizer_start_switch_fiber(&engine->scheduler_fake_stack, fiber.stack.get(), kStackBytes);
  swapcontext(&engine->scheduler, &fiber.context);
  __sanitizer_finish_switch_fiber(engine->scheduler_fake_stack, nullptr, nullptr);
}

#else

// swapcontext saves the signal mask, a system call each time; a jump between stacks that were entered once does not.
void to_scheduler(bool = false) {
  if (_setjmp(engine->current->jump) == 0) _longjmp(engine->scheduler_jump, 1);
}

void resume(Fiber& fiber) {
  engine->current = &fiber;
  if (_setjmp(engine->scheduler_jump) != 0) return;
  if (fiber.entered) _longjmp(fiber.jump, 1);
  fiber.entered = true;
  setcontext(&fiber.context);
}

#endif

void fiber_main() {
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(nullptr, &engine->scheduler_stack, &engine->scheduler_stack_bytes);
#endif
  (*engine->kernel)();
  engine->current->state = State::kDone;
  to_scheduler(true);
}

void prepare_to_enter(Fiber& fiber) {
  getcontext(&fiber.context);
  fiber.context.uc_stack.ss_sp = fiber.stack.get();
  fiber.context.uc_stack.ss_size = kStackBytes;
  fiber.context.uc_link = nullptr;
  makecontext(&fiber.context, &fiber_main, 0);
}

bool can_run(const Fiber& fiber) {
  switch (fiber.state) {
    case State::kReady:
      return true;
    case State::kAtWarp:
      return engine->warps[static_cast<std::size_t>(fiber.place.thread / 32)].generation >= fiber.waits_for;
    case State::kAtBlock:
      return engine->generation >= fiber.waits_for;
    case State::kDone:
      return false;
  }
  return false;
}

/// Lets the warp run until every lane waits for another warp, or is done. True when anything ran.
bool run_warp(int warp) {
  bool ran = false;
  for (bool again = true; again && engine->failure.empty();) {
    again = false;
    for (int i = 0; i < 32 && engine->failure.empty(); ++i) {
      const int lane = engine->launch.reversed ? 31 - i : i;
      Fiber& fiber = engine->fibers[static_cast<std::size_t>(32 * warp + lane)];
      if (!can_run(fiber)) continue;
      fiber.state = State::kReady;
      resume(fiber);
      again = true;
      ran = true;
    }
  }
  return ran;
}

std::string stuck() {
  std::string text = "threads wait for ever:";
  for (const Fiber& fiber : engine->fibers) {
    if (fiber.state == State::kDone) continue;
    const Warp& warp = engine->warps[static_cast<std::size_t>(fiber.place.thread / 32)];
    return text + " thread " + std::to_string(fiber.place.thread) + " at " +
           (fiber.state == State::kAtBlock ? "the block's barrier" : warp.what);
  }
  return text;
}

void run_block(int block_x, int block_y) {
  Engine& e = *engine;
  std::memset(e.shared.get(), kUnwritten, e.launch.shared_bytes + kGuardBytes);
  e.arrived = 0;
  std::ranges::fill(e.warps, Warp{});
  for (std::size_t i = 0; i < e.fibers.size(); ++i) {
    Fiber& fiber = e.fibers[i];
    fiber.state = State::kReady;
    fiber.waits_for = 0;
    fiber.place = {static_cast<int>(i), block_x, block_y, e.launch};
    fiber.open.clear();
    fiber.groups.clear();
    fiber.entered = false;
    prepare_to_enter(fiber);
  }
  const int warps = e.launch.threads / 32;
  while (e.failure.empty()) {
    bool ran = false;
    for (int i = 0; i < warps; ++i) ran |= run_warp(e.launch.reversed ? warps - 1 - i : i);
    if (std::ranges::all_of(e.fibers, [](const Fiber& fiber) { return fiber.state == State::kDone; })) break;
    if (!ran && e.failure.empty()) e.failure = stuck();
  }
  const unsigned char* guard = e.shared.get() + e.launch.shared_bytes;
  if (e.failure.empty() && std::any_of(guard, guard + kGuardBytes, [](unsigned char byte) { return byte != kUnwritten; })) {
    e.failure = "shared memory was written behind its end";
  }
}

}  // namespace

std::string run(const Launch& launch, const std::function<void()>& kernel) {
  Engine own;
  own.kernel = &kernel;
  own.launch = launch;
  own.fibers = std::vector<Fiber>(static_cast<std::size_t>(launch.threads));
  own.warps.resize(static_cast<std::size_t>(launch.threads / 32));
  void* memory = nullptr;
  if (posix_memalign(&memory, 128, launch.shared_bytes + kGuardBytes) != 0) std::abort();
  own.shared.reset(static_cast<unsigned char*>(memory));
  engine = &own;
  const int blocks = launch.blocks_x * launch.blocks_y;
  for (int i = 0; i < blocks && own.failure.empty(); ++i) {
    const int block = launch.reversed ? blocks - 1 - i : i;
    run_block(block % launch.blocks_x, block / launch.blocks_x);
  }
  engine = nullptr;
  if (own.failed_at.launch.threads == 0) return own.failure;
  const ThreadPlace& at = own.failed_at;
  return "thread " + std::to_string(at.thread) + " of block (" + std::to_string(at.block_x) + ", " + std::to_string(at.block_y) +
         "): " + own.failure;
}

const ThreadPlace& place() { return engine->current->place; }

void fail(std::string&& what) {
  // Taken over, not copied: nobody returns to this stack to free anything.
  if (engine->failure.empty()) {
    engine->failure = std::move(what);
    engine->failed_at = place();
  }
  to_scheduler();
  std::abort();  // nobody resumes a failed run
}

void sync_block() {
  Fiber& fiber = *engine->current;
  if (++engine->arrived == engine->launch.threads) {
    engine->arrived = 0;
    ++engine->generation;
    return;
  }
  fiber.waits_for = engine->generation + 1;
  fiber.state = State::kAtBlock;
  to_scheduler();
}

void meet_warp(const char* what, void* operand, Execute execute) {
  Fiber& fiber = *engine->current;
  Warp& warp = engine->warps[static_cast<std::size_t>(fiber.place.thread / 32)];
  if (warp.arrived == 0) warp.what = what;
  if (std::strcmp(warp.what, what) != 0) fail(std::string("lanes of one warp meet at ") + warp.what + " and at " + what);
  warp.operands[fiber.place.thread % 32] = operand;
  if (++warp.arrived == 32) {
    warp.arrived = 0;
    ++warp.generation;
    execute(warp.operands);
    return;
  }
  fiber.waits_for = warp.generation + 1;
  fiber.state = State::kAtWarp;
  to_scheduler();
}

unsigned char* shared_memory() { return engine->shared.get(); }

unsigned char* shared_place(std::uint32_t address, int bytes) {
  const std::int64_t offset = std::int64_t{address} - kFirstAddress;
  if (offset < 0 || offset + bytes > static_cast<std::int64_t>(engine->launch.shared_bytes)) {
    fail("shared memory at byte " + std::to_string(offset) + " of " + std::to_string(engine->launch.shared_bytes));
  }
  if (offset % bytes != 0) fail("shared memory at byte " + std::to_string(offset) + ": not aligned to " + std::to_string(bytes));
  return engine->shared.get() + offset;
}

std::uint32_t shared_address(const void* shared) {
  const std::ptrdiff_t offset = static_cast<const unsigned char*>(shared) - engine->shared.get();
  if (offset < 0 || offset > static_cast<std::ptrdiff_t>(engine->launch.shared_bytes))
    fail("an address that is not shared memory");
  return static_cast<std::uint32_t>(offset) + kFirstAddress;
}

void start_copy_16(std::uint32_t shared, const void* global, bool valid) {
  std::memset(shared_place(shared, 16), kUnwritten, 16);
  if (reinterpret_cast<std::uintptr_t>(global) % 16 != 0) fail("an asynchronous copy from a place not aligned to 16 bytes");
  engine->current->open.push_back({shared, valid ? global : nullptr});
}

void commit_copies() {
  engine->current->groups.push_back(std::move(engine->current->open));
  engine->current->open.clear();
}

void wait_copies(int pending) {
  std::deque<std::vector<Copy>>& groups = engine->current->groups;
  while (static_cast<int>(groups.size()) > pending) {
    for (const Copy& copy : groups.front()) {
      unsigned char* const to = shared_place(copy.shared, 16);
      if (copy.global == nullptr) {
        std::memset(to, 0, 16);
      } else {
        std::memcpy(to, copy.global, 16);
      }
    }
    groups.pop_front();
  }
}

}  // namespace simt
