// Memory of a simulated step over time: the ledger's tensors put on the activities that allocate and free them. The ledger says
// how much there is at each moment of a step (model/memory/ledger.h), the timeline when these moments come and how many
// micro-batches are in flight then; their peaks agree.
#pragma once

#include <string>
#include <vector>

#include "model/memory/ledger.h"
#include "sim/plan/step_timeline.h"
#include "sim/timeline/memory_track.h"

namespace cpfit {

/// Allocations of every simulated rank, on its worst CP rank's ledger. Per layer and micro-batch: the attention half of the saved
/// activations from the layer's first kernel, the MLP half from the first kernel behind attention, both until backward has
/// passed them. What a moment holds beyond these lives as long as the moment's kernels: ring slots and partial outputs while
/// attention runs, the loss's copies under the head, temporaries of backward, the optimizer's.
[[nodiscard]] timeline::MemoryProgram memory_program(const MemoryCase& at, const schedule::StepProgram& step);

struct StepMemory {
  std::vector<std::string> names;             // of LiveTensor::name
  std::vector<timeline::MemoryTrack> tracks;  // one per simulated rank
};

/// Live bytes over time.
[[nodiscard]] StepMemory step_memory(Workbench& bench, const Training& training, const StepTimeline& timeline);

}  // namespace cpfit
