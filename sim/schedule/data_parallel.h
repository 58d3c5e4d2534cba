// Data parallelism around the layers: which gradients are reduced when, which parameters are gathered when, and the optimizer
// (cp_model.md D.1, B.5; step_schedule.h says the rules).
#pragma once

#include <vector>

#include "model/traffic/collective_traffic.h"
#include "sim/schedule/layer_schedule.h"
#include "sim/screen/sharded_time.h"

namespace cpfit::schedule {

class DataParallel {
 public:
  DataParallel(const ScreenContext& context, const Recipe& recipe, const ResolvedLayout& layout, Writer& writer,
               LayerSchedule& layers);

  /// The update with the gradients of the step before: optimizer, then every gather waits for it. Not before a job's first step.
  void update();
  /// Gathers that do not overlap. After no update there is nothing to gather: every rank has its parameters.
  void begin_step(std::int32_t stage);
  /// Before the first kernel of a chunk: fully sharded, what lies beside its layers is gathered before anything else.
  void before_chunk(std::int32_t stage, const Place& at);
  void before_forward(std::int32_t stage, const Place& at);
  void before_backward(std::int32_t stage, const Place& at);
  /// After the backward of one layer; `micro_batches` of the step.
  void after_backward(std::int32_t stage, const Place& at, std::int32_t micro_batches);
  /// After the backward of a whole chunk.
  void after_chunk(std::int32_t stage, const Place& at, std::int32_t micro_batches);
  /// Reductions that do not overlap; every rank of the stage then waits for its own. After the last stage the ends of the
  /// pipeline sum up tied embeddings.
  void end_step(std::int32_t stage);
  /// The clipping norm, for which all ranks wait: the border between two steps.
  void norm();

  /// Every activity that what comes next may wait for.
  template <class Visit>
  void visit_references(Visit&& visit) {
    for (std::vector<engine::ActivityId>& posted : posted_) {
      for (engine::ActivityId& id : posted) visit(id);
    }
    for (engine::ActivityId& id : earlier_) visit(id);
  }

  /// Every layer has collectives of its own: layers may be folded.
  [[nodiscard]] bool layers_alike() const;

 private:
  [[nodiscard]] bool sharded() const { return recipe_.state_sharding == StateSharding::kZero3; }
  [[nodiscard]] bool active() const { return data_ranks_ > 1; }
  [[nodiscard]] bool many_buckets(std::int32_t stage, std::int32_t chunk) const {
    return (stage == 0 && chunk == 0) || context_.rules.buckets_on_every_stage;
  }
  [[nodiscard]] double chunk_parameters(std::int32_t stage, std::int32_t chunk) const;
  /// Those of them that are no layer's.
  [[nodiscard]] double root_parameters(std::int32_t stage, std::int32_t chunk) const;
  /// Weights are gathered by the step's first micro-batch and kept, gradients reduced behind its last.
  [[nodiscard]] bool stay_gathered() const { return weights_stay_gathered(context_.rules, recipe_); }
  /// One collective of `parameters` per tensor-parallel lane and group that shares the states, then one over the replicas of each
  /// part; `after`: by rank, what it waits for.
  void reduce(std::int32_t stage, double parameters, const Place& at);
  void reduce_replicas(std::int32_t stage, const DpTraffic& traffic, const std::vector<engine::ActivityId>& scattered,
                       const Place& at);
  void gather(std::int32_t stage, double parameters, const Place& at, const std::vector<engine::ActivityId>& after);
  /// Simulated ranks that share one copy of the states; `replicas`: those that hold the same part of one.
  [[nodiscard]] std::vector<std::vector<std::int32_t>> groups(std::int32_t stage, bool replicas = false) const;
  void gather_ahead(std::int32_t stage, double parameters, const Place& at);
  void sum_tied();
  /// Collectives over one tensor after the other, the host's copies beside each, with nothing under way meanwhile
  /// (RuleSet::zero3_waits).
  void alone(std::int32_t stage, CollectiveKind kind, double parameters, double tensors, const Place& at);
  /// The end of a micro-batch's backward through a chunk.
  void end_sharded(std::int32_t stage, const Place& at, std::int32_t micro_batches);
  /// The host copies each rank's slice of each gathered tensor (RuleSet::shard_host_operations).
  void copy_slices(std::int32_t stage);

  const ScreenContext& context_;
  const Recipe& recipe_;
  const ResolvedLayout& layout_;
  Writer& writer_;
  LayerSchedule& layers_;
  ParameterCount count_;
  std::int64_t data_ranks_ = 1;
  double layer_parameters_ = 0;  // of one rank
  std::int32_t layers_per_bucket_ = 1;
  std::vector<std::int32_t> in_bucket_;                  // (stages) layers in the open bucket
  std::vector<std::vector<engine::ActivityId>> posted_;  // (ranks) reductions the optimizer waits for
  std::vector<engine::ActivityId> earlier_;              // (ranks) compute stream at the start of the previous layer
  std::vector<engine::ActivityId> updated_;              // (ranks) the step's optimizer
  bool stale_ = false;                                   // an update has changed the shards: parameters must be gathered
};

}  // namespace cpfit::schedule
