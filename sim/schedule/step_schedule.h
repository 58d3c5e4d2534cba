// One optimizer step of a recipe as a program for the engine: pipeline turns of every stage, layers, pipeline messages, gradient
// reduction and parameter gathers, optimizer.
//
// A step is cut at the gradient norm, where every rank waits for all others and the host reads the result. Nothing else is under
// way there, so the engine is in the same state at every norm but a job's start: from norm to norm each step takes exactly as
// long as the one before it, and simulating one is simulating the steady state. It begins with the update that the step before it
// left: the optimizer, which later stages run while the pipeline fills, then the gathers of changed parameters, hidden or not
// behind the first forward, and it ends with its own norm. The host's run-ahead is used up at the norm and built up anew.
//
// The first step of a job differs (StepOptions::from_start): no update comes before it, and every rank has its parameters whole
// (Megatron-LM gathers none in its first iteration), so that it gathers only what is fully sharded.
//
// Data parallelism (cp_model.md D.1, D.2): gradients are reduced over dp*cp in buckets as backward of the last micro-batch
// produces them; on pipeline ranks beyond the first, and for chunks after the first, one bucket holds the whole chunk (Megatron).
// With overlap_param_gather the gathers of the first forward run ahead bucket by bucket, otherwise before everything else. Fully
// sharded (zero3): each layer's parameters are gathered one layer ahead, in forward and again in backward, gradients scattered
// after each layer; every micro-batch.
#pragma once

#include <atomic>
#include <vector>

#include "model/quantity/problem.h"
#include "sim/engine/engine.h"
#include "sim/schedule/layer_schedule.h"

namespace cpfit::schedule {

/// A GPU whose kernels take longer than its peers': throttled, or with a fault.
struct SlowRank {
  std::int64_t rank = 0;  // of the cluster; the simulated rank that stands for it is slowed (SimulatedRanks::index_of)
  double factor = 1.0;    // > 0: its kernels' time over what they take on the others
};

struct StepOptions {
  bool every_rank = false;  // simulate all replicas and lanes, not one of each
  bool fold_layers = true;  // simulate few layers where all repeat (one stage, equal layers); exact, see engine::Section
  std::int32_t fold_copies = 4;
  std::int32_t steps = 1;                   // written one after the other; the timeline reads one
  bool from_start = false;                  // the first of them is the first of the job, not one of the steady state
  std::vector<SlowRank> slow_ranks = {};    // of several for one simulated rank the slowest counts
  const std::atomic<bool>* stop = nullptr;  // becomes true: the simulation ends with the problem "engine.stopped"
};

struct StepProgram {
  engine::Program program;
  SimulatedRanks ranks;
  std::int32_t micro_batches = 1;
};

/// Writes the step. The recipe must be legal and its layout resolved, the network prepared for its groups (our mistake
/// otherwise). Problems: "schedule.order" when the pipeline's turns wait for each other, "schedule.route" when two ranks that
/// must talk have no route between them, "schedule.slow_rank" for a rank that does not exist or a factor that is no number > 0.
[[nodiscard]] Outcome<StepProgram> step_program(const ScreenContext& context, const Recipe& recipe, const ResolvedLayout& layout,
                                                const StepOptions& options);

}  // namespace cpfit::schedule
