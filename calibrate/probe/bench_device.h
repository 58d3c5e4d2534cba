// What one rank measures on: a processor with BLAS, or a GPU; its operators, its messages, and the clock that fits them.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "calibrate/probe/array_pool.h"
#include "calibrate/probe/pass_clock.h"
#include "kernels/core/operators.h"
#include "kernels/core/transport.h"
#include "model/record/measurement.h"

namespace cpfit::probe {

/// c [m][n] = a [m][k] b [k][n], in the device's number type, by its library.
class MatrixProduct {
 public:
  MatrixProduct() = default;
  MatrixProduct(const MatrixProduct&) = delete;
  MatrixProduct& operator=(const MatrixProduct&) = delete;
  virtual ~MatrixProduct() = default;
  virtual void run() = 0;
  /// What is multiplied, row by row, as the device holds it.
  [[nodiscard]] virtual std::vector<double> left() = 0;
  [[nodiscard]] virtual std::vector<double> right() = 0;
  /// c, row by row, of the last run.
  [[nodiscard]] virtual std::vector<double> result() = 0;
};

class BenchDevice {
 public:
  BenchDevice() = default;
  BenchDevice(const BenchDevice&) = delete;
  BenchDevice& operator=(const BenchDevice&) = delete;
  virtual ~BenchDevice() = default;

  /// The type that is measured in: fp32 on a processor, bf16 on a GPU.
  [[nodiscard]] virtual kernels::Number number() const = 0;
  /// Implementations of attention by name ("blas"; "own", "cudnn"); the first is the one that rings use.
  [[nodiscard]] virtual std::vector<std::string> attention_kernels() const = 0;
  /// Empty, or why this one cannot be had here.
  [[nodiscard]] virtual std::string why_no_kernel(const std::string& kernel) const = 0;
  [[nodiscard]] virtual kernels::Operators& operators(const std::string& kernel) = 0;
  [[nodiscard]] kernels::Operators& operators() { return operators(attention_kernels().front()); }
  /// Did the last call of forward or backward go to `kernel`, or to one that steps in for what it does not take?
  [[nodiscard]] virtual bool was_taken_by(const std::string& kernel) {
    (void)kernel;
    return true;
  }

  /// For the tensors of operators(); of `ring` ranks, which is the number of ranks but on a device that plays all ends itself.
  [[nodiscard]] virtual kernels::Transport& transport(std::int32_t ring) = 0;
  /// True: messages are copies of the device to itself, and a ring computes no attention (nothing to check).
  [[nodiscard]] virtual bool plays_all_ends() const { return false; }
  /// Called between tiles of attention; empty: nothing is. Where messages move by themselves it is never called.
  virtual void call_between_tiles(std::function<void()> call) = 0;
  /// Messages move inside these calls, and what they take of the computing core is the time of the calls.
  [[nodiscard]] virtual bool moves_messages_between_tiles() const { return false; }

  /// Of operators() and transport(ring).
  [[nodiscard]] virtual std::unique_ptr<PassClock> pass_clock() = 0;
  /// Seconds that the device spends on `call`, which hands work to `on` (operators of this device) or waits there, with nothing
  /// else running there. A GPU overwrites its second-level cache before, which also keeps it busy while the host hands the call
  /// over; a processor's inputs may be warm, as in a step, which has copied them a moment ago.
  [[nodiscard]] virtual double seconds_of(const kernels::Operators& on, const std::function<void()>& call) = 0;
  /// Clears an array of operators().
  virtual void zero(const kernels::View& view) = 0;
  /// Taken from the device's memory by this process, or by the pool where the device cannot tell.
  [[nodiscard]] virtual std::int64_t reserved_bytes(const ArrayPool& pool) = 0;

  /// Throws Error where the library cannot.
  [[nodiscard]] virtual std::unique_ptr<MatrixProduct> product(std::int64_t m, std::int64_t n, std::int64_t k) = 0;

  /// Ways to hand work over that can be timed: "eager", "graph"; "post", "poll" (docs/measure.md).
  [[nodiscard]] virtual std::vector<std::string> launch_modes() const = 0;
  [[nodiscard]] virtual double launch_seconds(const std::string& mode) = 0;

  /// Share of the multiprocessors that messages take while they run; absent where that is not known. Of a device that moves
  /// messages between tiles it is measured instead.
  [[nodiscard]] virtual std::optional<double> message_sm_share() const { return std::nullopt; }
  /// Present clock, in MHz; absent where nothing tells it.
  [[nodiscard]] virtual std::optional<double> clock_mhz() = 0;
  /// The clock that it could have; absent: the highest that was seen counts.
  [[nodiscard]] virtual std::optional<double> highest_clock_mhz() const { return std::nullopt; }
  /// What the device itself says about being slowed down.
  [[nodiscard]] virtual std::string throttle_reason() { return ""; }
  /// Fills in what the device knows: processor, GPU, versions, power limit.
  virtual void describe(MeasuredMachine& machine) const = 0;
};

/// Backends that this program can measure with: "host", and with CUDA "cuda" and "loopback".
[[nodiscard]] std::vector<std::string> measuring_backends();
/// All ranks of `host` call it. Throws Error for a backend that this program was not built with. Borrows the transport.
[[nodiscard]] std::unique_ptr<BenchDevice> make_bench_device(const std::string& backend, kernels::Transport& host,
                                                             std::chrono::milliseconds timeout);
[[nodiscard]] std::unique_ptr<BenchDevice> make_host_device(kernels::Transport& host);

// Two sources implement it: with CUDA and without; the build takes one.
[[nodiscard]] std::unique_ptr<BenchDevice> make_gpu_device(kernels::Transport& host, bool loopback,
                                                           std::chrono::milliseconds timeout);

}  // namespace cpfit::probe
