#include "model/memory/ledger.h"

#include <algorithm>

#include "model/memory/stage_tensors.h"

namespace cpfit {
namespace {

constexpr Moment kMoments[kMomentCount] = {
    Moment::kBetweenSteps, Moment::kAttentionForward, Moment::kForwardEnd,        Moment::kLoss,
    Moment::kHeadBackward, Moment::kMlpBackward,      Moment::kAttentionBackward, Moment::kOptimizerStep};

/// Communicators a rank creates: count them, not parallel sizes. Source: cp_model.md B.9.
double communicators(const Recipe& recipe) {
  if (recipe.world() == 1) return 0.0;
  double count = 1.0;  // world
  if (recipe.tp > 1) count += 1.0;
  if (recipe.cp > 1) {
    count += 1.0;
    if (recipe.cp_comm == CpComm::kA2aP2p) count += 2.0;
    if (recipe.cp_comm == CpComm::kDoubleRing) count += 4.0;
  }
  if (recipe.dp > 1) count += 1.0;
  if (recipe.dp > 1 && recipe.cp > 1) count += 1.0;
  if (recipe.state_sharding != StateSharding::kNone && shard_replicas(recipe) > 1) count += 1.0;  // over the replicas
  if (recipe.pp > 1) count += 2.0;                                                                // a neighbour on each side
  return count;
}

/// Device bytes around the allocated ones.
template <class Sink>
void around_allocated(const StageFigures& f, double allocated, Sink& sink) {
  const RuleSet& rules = *f.at.rules;
  double slack = (rules.reserved_over_allocated - 1.0) * allocated;
  if (f.at.tp > 1.0) {
    slack += rules.reserved_over_allocated_tp * allocated + rules.tp_stream_bytes_per_hidden * f.at.tokens * f.at.hidden;
  }
  sink({Component::kReservedExtra, "allocator.slack", "(reserved/allocated - 1)*allocated", "cp_model B.10; rule set"}, slack);
  sink({Component::kCommunicators, "nccl.buffers", "per communicator", "cp_model B.9"},
       communicators(f.recipe) * rules.nccl_mib_per_communicator * kMiB);
  if (f.recipe.overlap_tp && rules.tp_overlap != TpOverlap::kNone && f.at.sp > 1.0) {
    // qkv, proj, fc1 and fc2 each overlap a forward and a backward collective of a full-size tensor. TE's user buffers are static
    // and not the caching allocator's. Without them the same room is assumed for blocks that a collective's stream has not passed
    // and that cannot be given out again: no figure of a run that lives shows it, but with it 6 of the 943 dead runs of
    // nanotron's sweep are called fitting, without it 15.
    const bool user_buffers = rules.tp_overlap == TpOverlap::kUserBuffers;
    sink({Component::kCommunicators, user_buffers ? "tp.user_buffers" : "tp.held_blocks", "8*T*H*e",
          user_buffers ? "frameworks 3.1" : "assumed"},
         8.0 * f.at.tokens * f.at.hidden * (f.at.linear_input < 2.0 ? 1.0 : 2.0));
  }
  sink({Component::kContext, "cuda.context", "context and loaded kernels", "cp_model B.9"}, rules.cuda_context_gib * kGiB);
}

StageMemory sum_stage(const StageFigures& f) {
  TotalSink state;
  state_tensors(f, state);
  StageMemory memory;
  memory.stage = f.stage;
  double peak = -1.0;
  for (const Moment moment : kMoments) {
    if (!passes(f, moment)) continue;
    TotalSink total = state;
    moment_tensors(f, moment, total);
    const Bytes bytes(total.total);
    if (moment == Moment::kBetweenSteps) memory.resident = bytes;
    const Phase phase = phase_of(moment);
    if (phase == Phase::kBackward && bytes > memory.backward_peak) {
      memory.backward_peak = bytes;
      memory.backward_moment = moment;
    } else if (phase == Phase::kForward && bytes > memory.forward_peak) {
      memory.forward_peak = bytes;
      memory.forward_moment = moment;
    }
    if (total.total > peak) {
      peak = total.total;
      memory.moment = moment;
    }
  }
  memory.phase = phase_of(memory.moment);
  memory.cp_rank = worst_cp_rank(f.at, f.recipe);
  memory.peak = Bytes(peak);
  return memory;
}

void finish(const StageFigures& f, StageMemory& memory) {
  ComponentSink components;
  state_tensors(f, components);
  moment_tensors(f, memory.moment, components);
  around_allocated(f, memory.peak.value(), components);
  Bytes device;
  for (std::size_t i = 0; i < components.bytes.size(); ++i) {
    memory.components[i] = Bytes(components.bytes[i]);
    device += memory.components[i];
  }
  memory.reserved = memory.peak + memory.components[static_cast<std::size_t>(Component::kReservedExtra)];
  memory.device = device;
}

}  // namespace

StageMemory stage_memory(const MemoryCase& at, std::int32_t stage) {
  const RecipeFigures figures = recipe_figures(at);
  const StageFigures f = stage_figures(at, figures, stage);
  StageMemory memory = sum_stage(f);
  finish(f, memory);
  return memory;
}

StageMemory worst_stage_memory(const MemoryCase& at) {
  const RecipeFigures figures = recipe_figures(at);
  const std::int32_t last = at.recipe.pp - 1;
  StageMemory worst;
  double most = -1.0;
  double middle_layers = -1.0, middle_in_flight = -1.0;  // of a middle stage already summed
  for (std::int32_t stage = 0; stage <= last; ++stage) {
    const StageFigures f = stage_figures(at, figures, stage);
    if (stage > 0 && stage < last) {
      // Middle stages differ only in their layers and in the activations in flight, and bytes grow with both; under ZB-H1 those
      // that wait for weight gradients grow where the others shrink.
      if (f.in_flight.pending == 0.0 && f.layers <= middle_layers && f.in_flight.layers <= middle_in_flight) continue;
      middle_layers = f.layers;
      middle_in_flight = f.in_flight.layers;
    }
    const StageMemory memory = sum_stage(f);
    if (memory.peak.value() > most) {  // slack and communicators grow with the peak or are equal on all stages
      most = memory.peak.value();
      worst = memory;
    }
  }
  finish(stage_figures(at, figures, worst.stage), worst);
  return worst;
}

std::array<Bytes, kComponentCount> allocated_at(const MemoryCase& at, std::int32_t stage, Moment moment) {
  const RecipeFigures figures = recipe_figures(at);
  const StageFigures f = stage_figures(at, figures, stage);
  ComponentSink components;
  state_tensors(f, components);
  moment_tensors(f, moment, components);
  std::array<Bytes, kComponentCount> result;
  for (std::size_t i = 0; i < result.size(); ++i) result[i] = Bytes(components.bytes[i]);
  return result;
}

StageLedger stage_ledger(const MemoryCase& at, std::int32_t stage) {
  const RecipeFigures figures = recipe_figures(at);
  const StageFigures f = stage_figures(at, figures, stage);
  StageLedger ledger;
  ledger.summary = sum_stage(f);
  finish(f, ledger.summary);
  ListSink lines{ledger.entries};
  state_tensors(f, lines);
  moment_tensors(f, ledger.summary.moment, lines);
  around_allocated(f, ledger.summary.peak.value(), lines);
  return ledger;
}

}  // namespace cpfit
