// The log of a training job, reduced to what can be compared with a prediction: its steps, what its allocators reported, and what
// it says of itself. Read as a stream, line by line; steps are kept, lines are not. Formats, with the file and commit each was
// read in:
//   Megatron-LM      " iteration 10/ 100 | consumed samples: .. | elapsed time per iteration (ms): 812.3 | throughput per GPU
//                    (TFLOP/s/GPU): 400.1 | global batch size: .. | lm loss: .. | number of skipped iterations: .."
//                    NVIDIA/Megatron-LM megatron/training/training.py (86df799); "[Rank 0] (after 2 iterations) memory (MB) |
//                    allocated: .. | max allocated: .. | reserved: .. | max reserved: .." megatron/training/utils.py (00caa53),
//                    MB of 2^20 bytes; the block "---- arguments ----" megatron/training/arguments.py (307dcf3)
//   Megatron-Bridge  the same iteration line; "Step Time : 1.23s GPU utilization: 500.0MODEL_TFLOP/s/GPU"; "[Rank 0] (after 2
//                    iterations) memory (GB) | mem-allocated-gigabytes: ..", GB of 10^9: NVIDIA-NeMo/Megatron-Bridge
//                    src/megatron/bridge/training/utils/train_utils.py (031e7de)
//   torchtitan       "step: 10  loss: 6.1  grad_norm: ..  memory: 49.66GiB(52.28%)  tps: 5,856  tflops: 339.16  mfu: 34.29%":
//   memory
//                    is the peak that was reserved, tps per GPU. pytorch/torchtitan torchtitan/components/metrics.py (00fbaaf);
//                    mesh and batch at its start: torchtitan/train.py (e9f5347), distributed/parallel_dims.py
//   DeepSpeed        "epoch=0/micro_step=8/global_step=8, RunningAvgSamplesPerSec=.., CurrSamplesPerSec=.., MemAllocated=6.0GB,
//                    MaxMemAllocated=19.5GB" (GB of 2^30, every steps_per_print): deepspeed/utils/timer.py (038beb6); "MA 1.2 GB
//                    Max_MA 4.5 GB CA .. Max_CA .." deepspeed/runtime/utils.py (03959e2); its printed configuration
//                    deepspeed/runtime/config.py (029f12b). Megatron-DeepSpeed prints Megatron's line as well, which then counts
//   nanotron         "iteration: 12 / 100 | consumed_tokens: 4.19M | time_per_iteration_ms: 1.23K | tokens_per_sec_per_gpu: 42.6K
//   |
//                    model_tflops_per_gpu: ..", three digits: huggingface/nanotron src/nanotron/trainer.py (004a89c), numbers
//                    and memory lines src/nanotron/logging/base.py (a5f8fb1)
//
// Logs of several ranks may be woven into one: a step that several ranks print counts once, with the time of the slowest.
// Iterations that go back begin a new attempt (a restart), kept apart: at once where the launcher's prefix tells the ranks apart,
// else when they go back by more than one logging interval or the job printed its start again.
#pragma once

#include <cstdint>
#include <istream>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "model/quantity/problem.h"

namespace cpfit {

enum class JobFramework : std::uint8_t { kMegatron, kBridge, kTorchtitan, kDeepspeed, kNanotron };
[[nodiscard]] std::string_view name_of(JobFramework framework);  // "Megatron-LM", "Megatron-Bridge", ...

/// One logged step, or the mean over the steps of a logging interval. 0: the log does not print it.
struct JobStep {
  std::int64_t iteration = 0;
  std::int64_t line = 0;
  double seconds = 0;
  double samples_per_second = 0;  // of the whole job
  double tokens_per_second_per_gpu = 0;
  double tflops_per_gpu = 0;
  double mfu = 0;                 // share
  std::int64_t global_batch = 0;  // sequences
  std::int64_t skipped = 0;       // updates skipped since the line before
  std::int64_t nan = 0;
  std::optional<double> loss;
  friend bool operator==(const JobStep&, const JobStep&) = default;
};

/// What an allocator reported on one rank, bytes; 0: not printed.
struct JobMemory {
  std::int64_t rank = -1;  // -1: not said
  std::int64_t line = 0;
  double allocated = 0;  // when the line was printed: between steps
  double peak_allocated = 0, peak_reserved = 0;
  friend bool operator==(const JobMemory&, const JobMemory&) = default;
};

/// From one start of the job to the next.
struct JobAttempt {
  std::vector<JobStep> steps;  // ascending iterations
  friend bool operator==(const JobAttempt&, const JobAttempt&) = default;
};

/// What the log says of the job. Of several starts the last.
struct JobFacts {
  std::optional<std::int64_t> world, sequence, global_batch, micro_batch, tp, cp, pp;
  std::vector<std::pair<std::string, std::string>> arguments;  // of Megatron's block, as printed; empty: none
  std::string gpu;                                             // as the driver names it
  double peak_flops = 0;                                       // that MFU is a share of; 0: not said
};

struct JobLog {
  std::string path;
  JobFramework framework = JobFramework::kMegatron;
  std::vector<JobAttempt> attempts;  // those with steps
  std::vector<JobMemory> memory;     // the highest per rank
  JobFacts facts;
  std::int64_t lines = 0, skipped = 0, nan = 0;
  Problems remarks;
};

/// Problems: "log.unreadable", "log.binary", "log.unknown" (no line of a known format: lists them).
[[nodiscard]] Outcome<JobLog> read_job_log(const std::string& path);
/// The same of a stream; `path` names it.
[[nodiscard]] Outcome<JobLog> read_job_log(std::istream& stream, const std::string& path);

}  // namespace cpfit
