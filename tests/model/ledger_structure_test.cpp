// Properties of the ledger that hold whatever the model: sums, zero cases, equalities between strategies, monotony.
#include <gtest/gtest.h>

#include <set>

#include "model/memory/in_flight.h"
#include "tests/model/memory_cases.h"

namespace cpfit::test {
namespace {

LedgerCase long_context(CpComm comm, std::int32_t cp) {
  LedgerCase c;
  c.model = llama(32, 4096, 14336, 32, 8, 128256);
  c.training.sequence = Tokens(131072);
  c.training.global_batch = 64;
  c.recipe.cp = cp;
  c.recipe.cp_comm = comm;
  c.gpu = gpu_of("hopper");
  return c.even();
}

double cp_bytes(const LedgerCase& c, Moment moment) { return component(allocated_at(c.at(), 0, moment), Component::kCpBuffers); }

constexpr Moment kAll[] = {Moment::kBetweenSteps, Moment::kAttentionForward, Moment::kForwardEnd,        Moment::kLoss,
                           Moment::kHeadBackward, Moment::kMlpBackward,      Moment::kAttentionBackward, Moment::kOptimizerStep};

TEST(LedgerStructure, ComponentsSumToDevice) {
  for (const RecomputeKind kind :
       {RecomputeKind::kNone, RecomputeKind::kSelective, RecomputeKind::kMlp, RecomputeKind::kFull, RecomputeKind::kBlock}) {
    LedgerCase c = long_context(CpComm::kP2p, 8);
    c.recipe.pp = 4;
    c.recipe.tp = 2;
    c.recipe.recompute = {kind, kind == RecomputeKind::kBlock ? 3 : 0};
    c.even();
    for (std::int32_t stage = 0; stage < 4; ++stage) {
      const StageMemory memory = stage_memory(c.at(), stage);
      EXPECT_DOUBLE_EQ(total(memory.components), memory.device.value());
      EXPECT_DOUBLE_EQ(total(allocated_at(c.at(), stage, memory.moment)), memory.peak.value());
      const StageLedger ledger = stage_ledger(c.at(), stage);
      Bytes listed;
      std::array<Bytes, kComponentCount> by_component{};
      for (const LedgerEntry& entry : ledger.entries) {
        listed += entry.bytes;
        by_component[static_cast<std::size_t>(entry.component)] += entry.bytes;
        EXPECT_FALSE(entry.tensor.empty() || entry.formula.empty() || entry.source.empty());
        EXPECT_GT(entry.bytes.value(), 0.0) << entry.tensor;
      }
      EXPECT_NEAR(listed.value() / memory.device.value(), 1.0, 1e-12);
      for (std::size_t i = 0; i < by_component.size(); ++i) {
        EXPECT_NEAR(by_component[i].value(), memory.components[i].value(), 1.0) << name_of(static_cast<Component>(i));
      }
    }
  }
}

/// Llama 3 8B without tp and pp on 32 data ranks: N parameters, all of them multiples of 128.
struct Shards {
  LedgerCase c = long_context(CpComm::kP2p, 4);
  double parameters = 0;
  Shards() {
    c.recipe.dp = 8;
    // layer: H (H + 2*1024) + H*H + 3*H*F + 2*H; embedding, head and the final norm
    parameters = 32 * (4096.0 * 6144 + 4096.0 * 4096 + 3 * 4096.0 * 14336 + 2 * 4096) + 2 * 128256.0 * 4096 + 4096;
  }
  double between_steps(Component which) const { return component(allocated_at(c.at(), 0, Moment::kBetweenSteps), which); }
};

TEST(LedgerStructure, OptimizerStatesOfSeveralInstancesAreSharedByFewerRanks) {
  Shards s;
  EXPECT_DOUBLE_EQ(s.between_steps(Component::kOptimizer), 12 * s.parameters / 32);  // all of dp 8 * cp 4
  s.c.recipe.state_shards = 8;
  EXPECT_DOUBLE_EQ(s.between_steps(Component::kOptimizer), 12 * s.parameters / 8);
  EXPECT_DOUBLE_EQ(s.between_steps(Component::kGradients), 4 * s.parameters) << "the distributed optimizer keeps them whole";
  // One more communicator than before: over the four replicas.
  const double of_groups = component(stage_memory(s.c.at(), 0).components, Component::kCommunicators);
  s.c.recipe.state_shards = 32;
  EXPECT_DOUBLE_EQ(s.between_steps(Component::kOptimizer), 12 * s.parameters / 32);
  const double of_all = component(stage_memory(s.c.at(), 0).components, Component::kCommunicators);
  EXPECT_DOUBLE_EQ(of_groups - of_all, s.c.rules.nccl_mib_per_communicator * 1024 * 1024);
}

TEST(LedgerStructure, StatesOfOneRankAreThoseOfPlainDataParallelism) {
  Shards one, none;
  one.c.recipe.state_shards = 1;
  none.c.recipe.state_sharding = StateSharding::kNone;
  for (const Moment moment : kAll) {
    EXPECT_DOUBLE_EQ(total(allocated_at(one.c.at(), 0, moment)), total(allocated_at(none.c.at(), 0, moment))) << name_of(moment);
  }
}

TEST(LedgerStructure, HybridShardingHoldsWeightsGradientsAndMomentsOfItsGroup) {
  Shards s;
  s.c.recipe.state_sharding = StateSharding::kZero3;
  s.c.rules.grad_buffer_padding = false;
  s.c.rules.fsdp_per_layer = true;
  for (const std::int32_t group : {4, 8, 16}) {
    s.c.recipe.state_shards = group;
    // FSDP2: fp32 weights and gradients, two fp32 moments.
    EXPECT_DOUBLE_EQ(s.between_steps(Component::kWeights), 4 * s.parameters / group);
    EXPECT_DOUBLE_EQ(s.between_steps(Component::kGradients), 4 * s.parameters / group);
    EXPECT_DOUBLE_EQ(s.between_steps(Component::kOptimizer), 8 * s.parameters / group);
  }
  // While later micro-batches are added up, the summed part of one layer stays beside the gradients: fp32 / 16 of a layer.
  const double layer = 4096.0 * 6144 + 4096.0 * 4096 + 3 * 4096.0 * 14336 + 2 * 4096;
  const auto transient = [&] { return component(allocated_at(s.c.at(), 0, Moment::kMlpBackward), Component::kTransient); };
  const double accumulating = transient();
  s.c.training.global_batch = 8;  // one micro-batch
  EXPECT_DOUBLE_EQ(accumulating - transient(), 4 * layer / 16);
}

/// ZB-H1 holds pp micro-batches on every stage: pp - p alive as in 1F1B, p that wait for their weight gradients with the inputs
/// of the four products and the gradients of their outputs.
TEST(LedgerStructure, ZeroBubbleKeepsWhatWeightGradientsWaitFor) {
  LedgerCase one = long_context(CpComm::kP2p, 2), zero = one;
  one.recipe.pp = zero.recipe.pp = 4;
  one.even();
  zero.even();
  zero.recipe.schedule = Schedule::kZeroBubble;
  const double tokens = 65536, hidden = 4096, kv = 1024, ffn = 14336;
  const double inputs = 2 * tokens * (hidden + hidden + hidden + ffn);  // QKV, MLP in, projection, MLP out; bf16
  const double outputs = 2 * tokens * (hidden + 2 * kv + hidden + 2 * ffn + hidden);
  const double head = 2 * tokens * hidden + 2 * tokens * 128256;
  for (std::int32_t stage = 0; stage < 4; ++stage) {
    for (const Moment moment : {Moment::kForwardEnd, Moment::kMlpBackward}) {
      const double more = total(allocated_at(zero.at(), stage, moment)) - total(allocated_at(one.at(), stage, moment));
      EXPECT_NEAR(more, stage * (8 * (inputs + outputs) + (stage == 3 ? head : 0.0)), 1e3) << stage << " " << name_of(moment);
    }
    EXPECT_DOUBLE_EQ(stage_memory(zero.at(), stage).resident.value(), stage_memory(one.at(), stage).resident.value());
  }
  zero.training.global_batch = 2 * zero.recipe.dp;  // two micro-batches: the third stage holds both in flight, nothing waits
  EXPECT_EQ(in_flight(zero.recipe, zero.layout, 2, 2).pending, 0.0);
  EXPECT_EQ(in_flight(zero.recipe, zero.layout, 3, 8).pending, 3.0);
}

TEST(LedgerStructure, PeakIsTheLargestMoment) {
  const LedgerCase c = long_context(CpComm::kP2p, 4);
  const StageMemory memory = stage_memory(c.at(), 0);
  double most = 0;
  for (const Moment moment : kAll) most = std::max(most, total(allocated_at(c.at(), 0, moment)));
  EXPECT_DOUBLE_EQ(memory.peak.value(), most);
  EXPECT_EQ(memory.phase, phase_of(memory.moment));
  EXPECT_LE(memory.resident, memory.peak);
  EXPECT_DOUBLE_EQ(memory.forward_peak.value(), total(allocated_at(c.at(), 0, memory.forward_moment)));
  EXPECT_DOUBLE_EQ(memory.backward_peak.value(), total(allocated_at(c.at(), 0, memory.backward_moment)));
  EXPECT_EQ(phase_of(memory.forward_moment), Phase::kForward);
  EXPECT_EQ(phase_of(memory.backward_moment), Phase::kBackward);
}

TEST(LedgerStructure, WorstStageIsTheWorstOfAllStages) {
  for (const std::int32_t vpp : {1, 2}) {
    LedgerCase c = long_context(CpComm::kP2p, 2);
    c.recipe.pp = 8;
    c.recipe.vpp = vpp;
    c.even();
    if (vpp == 1) c.layout.layers_of_stage = c.layout.layers_of_chunk = {2, 3, 5, 3, 5, 6, 5, 3};
    Bytes most;
    std::int32_t where = -1;
    for (std::int32_t stage = 0; stage < 8; ++stage) {
      const StageMemory memory = stage_memory(c.at(), stage);
      if (memory.device > most) {
        most = memory.device;
        where = stage;
      }
    }
    const StageMemory worst = worst_stage_memory(c.at());
    EXPECT_EQ(worst.device, most);
    EXPECT_EQ(worst.stage, where);
  }
}

TEST(LedgerStructure, NoContextParallelismNoBuffers) {
  for (const CpComm comm : {CpComm::kP2p, CpComm::kAllGather, CpComm::kA2a, CpComm::kA2aP2p, CpComm::kDoubleRing}) {
    const LedgerCase c = long_context(comm, 1);
    for (const Moment moment : kAll) EXPECT_EQ(cp_bytes(c, moment), 0.0);
    EXPECT_EQ(stage_memory(c.at(), 0).cp_rank, 0);
  }
}

TEST(LedgerStructure, TwiceTheMicroBatchOnTwiceTheRanksKeepsActivations) {  // Megatron-LM PR 7220
  LedgerCase c = long_context(CpComm::kP2p, 4);
  const double once = component(allocated_at(c.at(), 0, Moment::kForwardEnd), Component::kActivations);
  c.recipe.cp = 8;
  c.recipe.micro_batch = 2;
  EXPECT_DOUBLE_EQ(component(allocated_at(c.at(), 0, Moment::kForwardEnd), Component::kActivations), once);
}

TEST(LedgerStructure, HybridIsRingOrUlyssesAtItsEnds) {
  LedgerCase hybrid = long_context(CpComm::kA2aP2p, 8);
  const LedgerCase ring = long_context(CpComm::kP2p, 8);
  const LedgerCase ulysses = long_context(CpComm::kA2a, 8);
  for (const Moment moment : {Moment::kAttentionForward, Moment::kAttentionBackward}) {
    hybrid.recipe.a2a_degree = 1;
    EXPECT_DOUBLE_EQ(cp_bytes(hybrid, moment), cp_bytes(ring, moment));
    hybrid.recipe.a2a_degree = 8;
    EXPECT_DOUBLE_EQ(cp_bytes(hybrid, moment), cp_bytes(ulysses, moment));
    EXPECT_GT(cp_bytes(ulysses, moment), 0.0);
  }
}

TEST(LedgerStructure, DoubleRingWithOneWindowIsARing) {
  LedgerCase one = long_context(CpComm::kDoubleRing, 8);
  one.rules.ring_buffers = RingBuffers::kTwoSlots;
  one.recipe.window = 8;
  LedgerCase ring = long_context(CpComm::kP2p, 8);
  ring.rules.ring_buffers = RingBuffers::kTwoSlots;
  LedgerCase two = one;
  two.recipe.window = 4;
  const double kv = 2.0 * 131072 / 8 * 8 * 128 * 2;
  for (const Moment moment : {Moment::kAttentionForward, Moment::kAttentionBackward}) {
    EXPECT_DOUBLE_EQ(cp_bytes(one, moment), cp_bytes(ring, moment));
    EXPECT_DOUBLE_EQ(cp_bytes(two, moment) - cp_bytes(one, moment), moment == Moment::kAttentionForward ? kv : 2 * kv);
  }
}

TEST(LedgerStructure, TeRingLessTwoSlotsIsTheUnneededSteps) {  // cp_model.md H.8 item 12
  for (const std::int32_t cp : {2, 4, 8, 16}) {
    LedgerCase all = long_context(CpComm::kP2p, cp);
    LedgerCase two = all;
    two.rules.ring_buffers = RingBuffers::kTwoSlots;
    const double tokens = 131072.0 / cp;
    const double kv = 2 * tokens * 8 * 128 * 2, output = tokens * 32 * 128 * 2 + 4 * tokens * 32;
    EXPECT_DOUBLE_EQ(cp_bytes(all, Moment::kAttentionForward) - cp_bytes(two, Moment::kAttentionForward),
                     (cp - 2) * (kv + output));
    EXPECT_EQ(stage_memory(all.at(), 0).cp_rank, cp - 1);
  }
}

TEST(LedgerStructure, TeRingBuffersDoNotShrinkWithTheDegree) {
  const double at4 = cp_bytes(long_context(CpComm::kP2p, 4), Moment::kAttentionForward);
  const double at32 = cp_bytes(long_context(CpComm::kP2p, 32), Moment::kAttentionForward);
  EXPECT_GT(at32, 0.9 * at4);
}

TEST(LedgerStructure, StatesShardOverDataAndContextParallelRanks) {
  LedgerCase c = long_context(CpComm::kP2p, 4);
  c.recipe.dp = 2;
  const auto resident = [&](StateSharding sharding) {
    c.recipe.state_sharding = sharding;
    return allocated_at(c.at(), 0, Moment::kBetweenSteps);
  };
  const auto none = resident(StateSharding::kNone);
  const double parameters = component(none, Component::kWeights) / 2;
  EXPECT_DOUBLE_EQ(component(none, Component::kGradients), 4 * parameters);
  EXPECT_DOUBLE_EQ(component(none, Component::kOptimizer), 12 * parameters);
  const auto zero1 = resident(StateSharding::kZero1);
  EXPECT_NEAR(component(zero1, Component::kOptimizer), 12 * parameters / 8, 12 * 128);
  EXPECT_NEAR(component(zero1, Component::kGradients), 4 * parameters, 4 * 128);
  const auto zero2 = resident(StateSharding::kZero2);
  EXPECT_NEAR(component(zero2, Component::kGradients), 4 * parameters / 8 + c.rules.grad_bucket.value(), 4 * 128);
  const auto zero3 = resident(StateSharding::kZero3);
  EXPECT_NEAR(total(zero3) - component(zero3, Component::kWorkspace), 16 * parameters / 8, 16 * 128);
  // The same eight ranks shared out as dp 1 x cp 8 hold the same states.
  c.recipe.cp = 8;
  c.recipe.dp = 1;
  EXPECT_DOUBLE_EQ(component(resident(StateSharding::kZero1), Component::kOptimizer), component(zero1, Component::kOptimizer));
}

TEST(LedgerStructure, FullyShardedUnitsAreGatheredOneAhead) {  // cp_model.md B.5
  LedgerCase c = long_context(CpComm::kP2p, 4);
  c.recipe.state_sharding = StateSharding::kZero3;
  c.rules.fsdp_per_layer = true;
  const double unit = 4096.0 * (32 + 16) * 128 + 4096.0 * 4096 + 3 * 4096.0 * 14336 + 2 * 4096;
  const auto transient = [&](Moment moment) { return component(allocated_at(c.at(), 0, moment), Component::kTransient); };
  EXPECT_DOUBLE_EQ(transient(Moment::kForwardEnd), 3 * 2 * unit);
  const double mlp_gradients = 131072.0 / 4 * (2 * 4096 + 4 * 14336);
  EXPECT_DOUBLE_EQ(transient(Moment::kMlpBackward), (3 * 2 + 2 + 2 * 4) * unit + mlp_gradients);
  // With a pipeline that does not reshard, the stage's weights and fp32 gradients stay whole.
  c.recipe.pp = 2;
  c.rules.zero3_unsharded_through_step = true;
  const double stage = 16 * unit + 4096.0 * 128256;  // 128256 is a multiple of 128
  EXPECT_NEAR(component(allocated_at(c.even().at(), 0, Moment::kForwardEnd), Component::kTransient), (2 + 4) * stage, 6 * 128);
}

TEST(LedgerStructure, GpipeKeepsEveryMicroBatch) {
  LedgerCase c = long_context(CpComm::kP2p, 4);
  c.recipe.pp = 2;
  c.training.global_batch = 8;
  const auto bytes = [&](Component which) { return component(allocated_at(c.at(), 1, Moment::kLoss), which); };
  c.even();
  const double once = bytes(Component::kActivations), loss = bytes(Component::kLoss);
  c.recipe.schedule = Schedule::kGpipe;
  const double tokens = 131072.0 / 4;
  EXPECT_DOUBLE_EQ(bytes(Component::kActivations) - 28 * tokens, 8 * (once - 28 * tokens));
  EXPECT_DOUBLE_EQ(bytes(Component::kLoss) - loss, 7 * (4 * tokens * 128256 + 2 * 2 * tokens * 4096));
}

TEST(LedgerStructure, RecomputeOnlySavesActivations) {
  LedgerCase c = long_context(CpComm::kP2p, 8);
  const auto activations = [&](Recompute recompute) {
    c.recipe.recompute = recompute;
    return component(allocated_at(c.at(), 0, Moment::kForwardEnd), Component::kActivations);
  };
  const double none = activations({RecomputeKind::kNone, 0});
  const double full = activations({RecomputeKind::kFull, 0});
  const double half = activations({RecomputeKind::kBlock, 16});
  EXPECT_DOUBLE_EQ(activations({RecomputeKind::kBlock, 0}), none);
  EXPECT_DOUBLE_EQ(activations({RecomputeKind::kBlock, 32}), full);
  EXPECT_NEAR(half, (none + full) / 2, 1e-6 * none);
  EXPECT_DOUBLE_EQ(activations({RecomputeKind::kSelective, 0}), none);  // flash attention left nothing to drop
  const double batch = 28.0 * 131072 / 8;
  EXPECT_DOUBLE_EQ(full, 32 * (131072.0 / 8 * 4096 * 2) + batch);  // one input per layer
  c.recipe.recompute = {RecomputeKind::kFull, 0};
  EXPECT_GT(component(allocated_at(c.at(), 0, Moment::kMlpBackward), Component::kRecompute), 0.0);
}

TEST(LedgerStructure, RecomputingTheMlpKeepsItsResidualAlone) {
  // Per layer the norm's output 2*T*H/sp and 6*T*F/tp less (gate, up, product); in backward one layer's come back, with its
  // output, 2*T*H/sp more.
  LedgerCase c = long_context(CpComm::kP2p, 4);
  c.recipe.tp = 2;
  c.even();
  const auto at = [&](RecomputeKind kind, Moment moment, Component which) {
    c.recipe.recompute = {kind, 0};
    return component(allocated_at(c.at(), 0, moment), which);
  };
  const double tokens = 131072.0 / 4, hidden = 2 * tokens * 4096 / 2, width = 6 * tokens * 14336 / 2;
  EXPECT_DOUBLE_EQ(at(RecomputeKind::kNone, Moment::kForwardEnd, Component::kActivations) -
                       at(RecomputeKind::kMlp, Moment::kForwardEnd, Component::kActivations),
                   32 * (hidden + width));
  EXPECT_DOUBLE_EQ(at(RecomputeKind::kMlp, Moment::kMlpBackward, Component::kRecompute), 2 * hidden + width);
  EXPECT_EQ(at(RecomputeKind::kMlp, Moment::kAttentionBackward, Component::kRecompute), 0.0);
}

TEST(LedgerStructure, AHeadExchangeKeepsAttentionsOutputOnBothSides) {
  LedgerCase c = long_context(CpComm::kA2a, 4);
  const auto kept = [&] { return component(allocated_at(c.at(), 0, Moment::kForwardEnd), Component::kActivations); };
  const double both = kept(), query = 2.0 * (131072.0 / 4) * 32 * 128;  // bytes of a layer's output on one rank
  c.rules.a2a_keeps_both_outputs = false;
  EXPECT_DOUBLE_EQ(both - kept(), 32 * query);
  c.recipe.cp_comm = CpComm::kP2p;
  const double ring = kept();
  c.rules.a2a_keeps_both_outputs = true;
  EXPECT_DOUBLE_EQ(kept(), ring) << "nothing is exchanged";
}

TEST(LedgerStructure, LlamaLayerBytes) {
  // T*[8H/sp + (2(a+2g)d + 2ad + 6F)/tp] + LSE + RMS statistics (cp_model.md B.3).
  LedgerCase c = long_context(CpComm::kP2p, 4);
  c.recipe.tp = 4;
  c.even();
  const double tokens = 131072.0 / 4;
  const double layer = tokens * (8 * 4096.0 / 4 + (2 * (32 + 16) * 128.0 + 2 * 32 * 128.0 + 6 * 14336.0) / 4) + 4 * tokens * 8 +
                       2 * 4 * tokens / 4;
  EXPECT_DOUBLE_EQ(component(allocated_at(c.at(), 0, Moment::kForwardEnd), Component::kActivations), 32 * layer + 28 * tokens);
}

TEST(LedgerStructure, Fp8SavesLinearInputsInOneByte) {
  // (2H/sp + F/tp) bytes per token and layer less than BF16 (frameworks.md 1.4): 2H + F for Llama-3 8B is 22,528.
  LedgerCase c = long_context(CpComm::kP2p, 4);
  const double bf16 = component(allocated_at(c.at(), 0, Moment::kForwardEnd), Component::kActivations);
  c.recipe.precision = Precision::kFp8Current;
  const double fp8 = component(allocated_at(c.at(), 0, Moment::kForwardEnd), Component::kActivations);
  EXPECT_DOUBLE_EQ(bf16 - fp8, 32 * (131072.0 / 4) * (2 * 4096 + 14336));
  c.rules.fp8_saves_low_precision = false;
  EXPECT_DOUBLE_EQ(component(allocated_at(c.at(), 0, Moment::kForwardEnd), Component::kActivations), bf16);
}

TEST(LedgerStructure, Fp8WeightsByPolicyAndGpu) {
  LedgerCase c = long_context(CpComm::kP2p, 4);
  const double linear = 32 * (4096.0 * (32 + 16) * 128 + 4096.0 * 4096 + 3 * 4096.0 * 14336);
  const auto weights = [&] { return component(allocated_at(c.at(), 0, Moment::kBetweenSteps), Component::kWeights); };
  const double bf16 = weights();
  c.recipe.precision = Precision::kFp8Current;
  EXPECT_DOUBLE_EQ(weights() - bf16, 2 * linear);  // cache with its transpose beside BF16 weights
  c.rules.fp8_param_gather = true;
  EXPECT_DOUBLE_EQ(weights() - bf16, 0.0);  // 1 + 1 transpose in place of 2
  c.gpu = gpu_of("blackwell");
  EXPECT_DOUBLE_EQ(weights() - bf16, -1 * linear);  // one buffer serves both directions
  c.recipe.precision = Precision::kMxfp8;
  EXPECT_DOUBLE_EQ(weights() - bf16, 0.0625 * linear);
}

TEST(LedgerStructure, UserBuffersLieOutsideTheAllocator) {
  LedgerCase c = long_context(CpComm::kP2p, 4);
  c.recipe.tp = 2;
  const StageMemory without = stage_memory(c.at(), 0);
  c.recipe.overlap_tp = true;
  const StageMemory with = stage_memory(c.at(), 0);
  // But for the workspaces of two more streams of products.
  const double workspaces = 2 * (32 * kMiB + 1024) * c.rules.reserved_over_allocated;
  EXPECT_NEAR((with.reserved - without.reserved).value(), workspaces, 1.0);
  EXPECT_NEAR((with.device - without.device).value(), workspaces + 8 * (131072.0 / 4) * 4096 * 2, 1.0);
}

TEST(LedgerStructure, Fp16GradientCopiesLeaveBeforeTheForwardPeak) {
  LedgerCase c = long_context(CpComm::kP2p, 4);
  c.recipe.state_sharding = StateSharding::kNone;
  const double parameters = component(allocated_at(c.at(), 0, Moment::kBetweenSteps), Component::kWeights) / 2;
  c.recipe.precision = Precision::kFp16;
  EXPECT_DOUBLE_EQ(component(allocated_at(c.at(), 0, Moment::kBetweenSteps), Component::kGradients), 6 * parameters);
  EXPECT_DOUBLE_EQ(component(allocated_at(c.at(), 0, Moment::kLoss), Component::kGradients), 2 * parameters);
}

TEST(InFlight, CountsOfEverySchedule) {
  Recipe recipe;
  recipe.pp = 4;
  ResolvedLayout layout{{4, 4, 4, 4}, {4, 4, 4, 4}};
  for (std::int32_t stage = 0; stage < 4; ++stage) {
    EXPECT_EQ(in_flight(recipe, layout, stage, 64).layers, 4 * (4 - stage));
    EXPECT_EQ(in_flight(recipe, layout, stage, 2).layers, 4 * std::min(2, 4 - stage));
  }
  recipe.schedule = Schedule::kGpipe;
  EXPECT_EQ(in_flight(recipe, layout, 0, 64).layers, 256);
  EXPECT_EQ(in_flight(recipe, layout, 3, 64).micro_batches, 64);

  recipe.schedule = Schedule::kInterleaved;
  recipe.vpp = 3;
  layout.layers_of_stage = {3, 3, 3, 3};
  layout.layers_of_chunk.assign(12, 1);
  // (1 + (pp-1)/(pp*vpp)) * pp stages on stage 0; (vpp-1)*pp + 1 chunks on the last.
  EXPECT_DOUBLE_EQ(in_flight(recipe, layout, 0, 64).layers, (1 + 3.0 / 12) * 4 * 3);
  EXPECT_DOUBLE_EQ(in_flight(recipe, layout, 3, 64).layers, 2 * 4 + 1);
  EXPECT_DOUBLE_EQ(in_flight(recipe, layout, 0, 4).layers, 4 * 3);  // capped by m * vpp

  // Embedding and loss counted as layers: the last chunk of the last stage is empty.
  recipe.vpp = 2;
  layout.layers_of_chunk = {0, 1, 1, 1, 1, 1, 1, 0};
  EXPECT_DOUBLE_EQ(in_flight(recipe, layout, 3, 64).layers, 4);
}

TEST(Verdict, ThreeAnswers) {
  StageMemory memory;
  const Gpu gpu = gpu_of("hopper");
  memory.peak = memory.device = gib(50);
  EXPECT_EQ(judge(memory, gpu, 0.05).fit, Fit::kFits);
  memory.peak = memory.device = gib(77);
  EXPECT_EQ(judge(memory, gpu, 0.05).fit, Fit::kAtRisk);
  memory.peak = memory.device = gib(80);
  const MemoryVerdict verdict = judge(memory, gpu, 0.05);
  EXPECT_EQ(verdict.fit, Fit::kOom);
  EXPECT_LT(verdict.margin.value(), 0.0);
}

TEST(Verdict, UpperBoundHasTheLargerOfBothSpreads) {
  StageMemory memory;
  Gpu gpu = gpu_of("hopper");
  gpu.memory_usable = gib(80);
  memory.peak = gib(60);
  memory.reserved = gib(66);
  memory.device = gib(68);
  EXPECT_DOUBLE_EQ(judge(memory, gpu, 0.05).upper / gib(1), 68 + kLedgerUncertainty * 60);
  EXPECT_EQ(judge(memory, gpu, 0.05).fit, Fit::kFits);
  EXPECT_DOUBLE_EQ(judge(memory, gpu, 0.05, 0.02).upper / gib(1), 68 + kLedgerUncertainty * 60);
  // Where reserved bytes of runs scatter by 13 %: 68 + 8.58 GiB, and 4 GiB stay free of 80.
  const MemoryVerdict verdict = judge(memory, gpu, 0.05, 0.13);
  EXPECT_DOUBLE_EQ(verdict.upper / gib(1), 68 + 0.13 * 66);
  EXPECT_EQ(verdict.fit, Fit::kAtRisk);
}

}  // namespace
}  // namespace cpfit::test
