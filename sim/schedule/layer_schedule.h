// One transformer layer on all simulated ranks of a pipeline stage: kernels between tensor-parallel collectives, core attention
// by attention_schedule.h, recompute. Order and overlap as Megatron-LM runs them (cp_model.md D.2, frameworks.md 3.1):
//
//   forward    norm | gather | QKV, RoPE | attention | projection | scatter | norm | gather | MLP | scatter     (with sequence
//              parallelism; without it an all-reduce after each half)
//   backward   each half: gather dY | row products | what stands between | column input gradient beside the re-gather of its
//   input |
//              column weight gradient beside the scatter of dX | norm
//   overlap_tp by user buffers: a ring gather by the copy engines, which take no SMs, under (tp-1)/tp of the product that needs
//   it, a scatter pipelined in four chunks (TransformerEngine initialize_ub, use_ce; frameworks.md 3.1);
//   behind the own shard: a gather under 1/tp of the product, a scatter under nothing in forward (model/framework/rule_set.h).
// Without tensor parallelism neighbouring kernels are one activity: nothing can come between them.
#pragma once

#include <vector>

#include "model/traffic/collective_traffic.h"
#include "sim/schedule/attention_schedule.h"
#include "sim/screen/stage_work.h"

namespace cpfit::schedule {

/// Name of the activities of weight_gradients().
inline constexpr const char* kWeightGradients = "weight gradients";

class LayerSchedule {
 public:
  /// All references must outlive the schedule.
  LayerSchedule(const ScreenContext& context, const Recipe& recipe, const OperatorTimes& times, Writer& writer);

  /// Layer at.layer of stage `stage` on every simulated replica and lane.
  /// `again`: recomputed in backward, where some frameworks end early.
  void forward(std::int32_t stage, const Place& at, bool again = false);
  /// `repeated`: what recompute runs again first, as shares of this layer. Of a split backward (ZB-H1) gradients of inputs only:
  /// nothing then passes under products for gradients of weights.
  void backward(std::int32_t stage, const Place& at, Repeated repeated);
  /// The other part of a split backward: products only, of gathered inputs and gradients that were kept.
  void weight_gradients(std::int32_t stage, const Place& at);
  void head_weight_gradient(std::int32_t stage, const Place& at);

  /// The parts of a pipeline message, together `whole` bytes, over each tensor-parallel group of the stage.
  void gather_message(std::int32_t stage, Bytes whole, const Place& at) {
    tensor_parallel(stage, CollectiveKind::kAllGather, "gather message", whole, at);
  }

  /// The stage's simulated ranks of one context group: tp lane `t`, replica `d`; in ring order.
  [[nodiscard]] const std::vector<std::int32_t>& context_group(std::int32_t stage, std::int32_t t, std::int32_t d) const;
  /// All simulated ranks of the stage.
  [[nodiscard]] const std::vector<std::int32_t>& stage_ranks(std::int32_t stage) const;

  /// Head and loss of the last stage, embedding of the first.
  void head_forward(std::int32_t stage, const Place& at);
  void head_backward(std::int32_t stage, const Place& at);
  void embedding(std::int32_t stage, const Place& at);

 private:
  using Kernel = engine::Picoseconds;
  void attention(std::int32_t stage, const Place& at, bool forward);
  void each_kernel(std::int32_t stage, engine::TagId tag, Kernel time, std::int32_t launches, const Place& at);
  /// One after which a pass ends; `read`: the hosts wait for it before they launch on.
  void last_kernel(std::int32_t stage, engine::TagId tag, Kernel time, std::int32_t launches, const Place& at, bool read);
  /// A collective of every tensor-parallel group of the stage that the next kernels wait for; without tensor parallelism nothing.
  void tensor_parallel(std::int32_t stage, CollectiveKind kind, const char* name, Bytes bytes, const Place& at);
  [[nodiscard]] std::vector<engine::ActivityId> posted_collectives(std::int32_t stage, CollectiveKind kind, const char* name,
                                                                   Bytes bytes, const Place& at, bool by_copy_engine = false);
  void gate_groups(std::int32_t stage, const std::vector<engine::ActivityId>& collectives);
  void gathered_product(std::int32_t stage, const char* name, Kernel time, std::int32_t launches, const Place& at);
  void scattered_product(std::int32_t stage, const char* name, Kernel time, std::int32_t launches, const Place& at);
  void half_backward(std::int32_t stage, const HalfTimes& half, bool attention_half, const Place& at);
  void mlp_up(std::int32_t stage, const Place& at);  // the MLP half as far as its second product; with tensor parallelism
  void mlp_again(std::int32_t stage, const Place& at);
  [[nodiscard]] bool windowed(std::int32_t layer) const;

  const ScreenContext& context_;
  const Recipe& recipe_;
  const OperatorTimes& times_;
  Writer& writer_;
  AttentionSchedule attention_;
  TpTraffic tp_;
  TpOverlap overlap_tp_;
  struct StageGroups {
    std::vector<std::int32_t> ranks;
    std::vector<std::vector<std::int32_t>> tensor;   // (dp, cp) groups, cp fastest
    std::vector<std::vector<std::int32_t>> context;  // (dp, tp) groups, tp fastest
  };
  std::vector<StageGroups> groups_;  // (stages)
};

}  // namespace cpfit::schedule
