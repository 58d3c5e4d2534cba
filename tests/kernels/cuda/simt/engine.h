// A small emulator of one thread block of a GPU: every thread is a fiber on one host thread, so a run is deterministic. A fiber
// runs until it must meet others (barrier, shuffle, tensor core instruction); the engine lets one warp run as far as it can
// before the next one starts, which is the greatest skew between warps that a GPU could show, and can do all in reversed order. A
// kernel without races gives the same bits in both orders. Reported: lanes that meet at different instructions, threads that wait
// for ever, shared memory read or written outside of what the launch asked for, misaligned places. Shared memory starts as NaN; a
// place that an asynchronous copy was started for holds NaN until the copying thread has waited for it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

namespace simt {

struct Launch {
  int blocks_x = 1;
  int blocks_y = 1;
  int threads = 32;  // a multiple of 32
  std::size_t shared_bytes = 0;
  bool reversed = false;  // blocks, warps and lanes from the last to the first
};

/// Runs `kernel` once per thread. Empty, or what went wrong (the first thing, with the thread that did it).
std::string run(const Launch& launch, const std::function<void()>& kernel);

/// The thread that is running; only inside a kernel.
struct ThreadPlace {
  int thread = 0;
  int block_x = 0;
  int block_y = 0;
  Launch launch;
};
const ThreadPlace& place();

/// Stops the run: what went wrong.
[[noreturn]] void fail(std::string&& what);

void sync_block();

/// All 32 lanes of a warp hand over their operand and go on when `execute` has seen all of them; `operand` stays on the lane's
/// stack meanwhile. `what` names the instruction: lanes that meet at two different ones are reported.
using Execute = void (*)(void* const (&operands)[32]);
void meet_warp(const char* what, void* operand, Execute execute);

unsigned char* shared_memory();
/// `bytes` of shared memory at an address that shared_address() gave.
unsigned char* shared_place(std::uint32_t address, int bytes);
std::uint32_t shared_address(const void* shared);

void start_copy_16(std::uint32_t shared, const void* global, bool valid);
void commit_copies();
void wait_copies(int pending);

}  // namespace simt
