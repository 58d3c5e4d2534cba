#include "sim/schedule/data_parallel.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "model/recipe/data_ranks.h"
#include "model/recipe/pipeline_order.h"
#include "sim/screen/gradient_units.h"
#include "sim/screen/layer_cost.h"

namespace cpfit::schedule {

using engine::ActivityId;
using engine::kNone;
using engine::LaneKind;
using engine::StepPass;
using engine::TrafficAxis;
using engine::Work;

DataParallel::DataParallel(const ScreenContext& context, const Recipe& recipe, const ResolvedLayout& layout, Writer& writer,
                           LayerSchedule& layers)
    : context_(context),
      recipe_(recipe),
      layout_(layout),
      writer_(writer),
      layers_(layers),
      count_(count_parameters(context.model)),
      in_bucket_(static_cast<std::size_t>(recipe.pp), 0),
      posted_(static_cast<std::size_t>(writer.ranks().count())),
      earlier_(static_cast<std::size_t>(writer.ranks().count()), kNone),
      updated_(earlier_) {
  layer_parameters_ = parameters_on_stage(context, recipe, count_, 1.0, false, false);
  const DpTraffic traffic = dp_traffic(layer_parameters_, context.training, recipe, context.rules);
  data_ranks_ = traffic.data_ranks();
  if (traffic.reduce_scatter.value() > 0.0) {
    layers_per_bucket_ =
        std::max(1, static_cast<std::int32_t>(std::lround(gradient_bucket(context.rules, data_ranks_) / traffic.reduce_scatter)));
  }
}

bool DataParallel::layers_alike() const {
  return !active() || sharded() || layers_per_bucket_ == 1 || (!recipe_.overlap_grad_reduce && !recipe_.overlap_param_gather);
}

double DataParallel::chunk_parameters(std::int32_t stage, std::int32_t chunk) const {
  const double layers = layout_.layers_of_chunk[chunk_index(recipe_, stage, chunk)];
  return parameters_on_stage(context_, recipe_, count_, layers, stage == 0 && chunk == 0,
                             stage == recipe_.pp - 1 && chunk == recipe_.vpp - 1);
}

double DataParallel::root_parameters(std::int32_t stage, std::int32_t chunk) const {
  return chunk_parameters(stage, chunk) - layout_.layers_of_chunk[chunk_index(recipe_, stage, chunk)] * layer_parameters_;
}

std::vector<std::vector<std::int32_t>> DataParallel::groups(std::int32_t stage, bool replicas) const {
  const std::int64_t shards = recipe_.state_sharding == StateSharding::kNone ? data_ranks_ : shard_ranks(recipe_);
  std::vector<std::vector<std::int32_t>> all;
  for (std::int32_t t = 0; t < writer_.ranks().tp(); ++t) {
    std::map<std::int64_t, std::vector<std::int32_t>> by_number;
    for (std::int32_t d = 0; d < writer_.ranks().dp(); ++d) {
      for (const std::int32_t rank : layers_.context_group(stage, t, d)) {
        const std::int64_t place = data_place(recipe_, writer_.ranks().coordinate(rank));
        by_number[replicas ? place % shards : place / shards].push_back(rank);
      }
    }
    for (auto& [number, ranks] : by_number) all.push_back(std::move(ranks));
  }
  return all;
}

void DataParallel::reduce(std::int32_t stage, double parameters, const Place& at) {
  if (!active() || parameters <= 0.0) return;
  const DpTraffic traffic = dp_traffic(parameters, context_.training, recipe_, context_.rules);
  std::vector<ActivityId> scattered(posted_.size(), kNone);
  if (traffic.ranks > 1) {
    const CollectiveKind kind = traffic.all_reduce ? CollectiveKind::kAllReduce : CollectiveKind::kReduceScatter;
    const engine::TagId tag = writer_.tag("reduce gradients", Work::kCollective, at, TrafficAxis::kDp);
    for (const std::vector<std::int32_t>& group : groups(stage)) {
      const Transfer transfer =
          writer_.network().collective(kind, group_shapes(recipe_).dp, group, traffic.reduce_scatter, traffic.ranks);
      const ActivityId id = writer_.collective(group, LaneKind::kDpReduce, tag, transfer, at);
      for (const std::int32_t rank : group) {
        scattered[static_cast<std::size_t>(rank)] = id;
        posted_[static_cast<std::size_t>(rank)] = {id};  // one stream: the last ends last
      }
    }
  }
  if (traffic.replicas > 1) reduce_replicas(stage, traffic, scattered, at);
}

/// Megatron runs it behind its scatter on the same stream, so that the next bucket's scatter waits for both
/// (param_and_grad_buffer.py, start_grad_sync); FSDP has a stream for it.
void DataParallel::reduce_replicas(std::int32_t stage, const DpTraffic& traffic, const std::vector<ActivityId>& scattered,
                                   const Place& at) {
  const LaneKind kind = context_.rules.replica_reduce_stream ? LaneKind::kDpReplica : LaneKind::kDpReduce;
  const engine::TagId tag = writer_.tag("reduce over replicas", Work::kCollective, at, TrafficAxis::kDp);
  for (const std::vector<std::int32_t>& group : groups(stage, true)) {
    const Transfer transfer = writer_.network().collective(CollectiveKind::kAllReduce, group_shapes(recipe_).dp_replica, group,
                                                           traffic.replica_reduce, traffic.replicas);
    const ActivityId id =
        traffic.ranks > 1 ? writer_.posted(group, kind, tag, transfer, at) : writer_.collective(group, kind, tag, transfer, at);
    for (const std::int32_t rank : group) {
      const ActivityId scatter = scattered[static_cast<std::size_t>(rank)];
      if (scatter != kNone) writer_.program().wait(id, writer_.lane(rank, kind), scatter);
      posted_[static_cast<std::size_t>(rank)] = {id};
    }
  }
}

void DataParallel::gather(std::int32_t stage, double parameters, const Place& at, const std::vector<ActivityId>& after) {
  const DpTraffic traffic = dp_traffic(parameters, context_.training, recipe_, context_.rules);
  if (traffic.ranks <= 1 || traffic.all_gather.value() <= 0.0) return;
  const engine::TagId tag = writer_.tag("gather parameters", Work::kCollective, at, TrafficAxis::kDp);
  for (const std::vector<std::int32_t>& group : groups(stage)) {
    const Transfer transfer = writer_.network().collective(CollectiveKind::kAllGather, group_shapes(recipe_).dp, group,
                                                           traffic.all_gather, traffic.ranks);
    const ActivityId id = writer_.posted(group, LaneKind::kDpGather, tag, transfer, at);
    for (const std::int32_t rank : group) {
      writer_.program().wait(id, writer_.lane(rank, LaneKind::kDpGather), after[static_cast<std::size_t>(rank)]);
      writer_.gate(rank, id);
    }
  }
}

void DataParallel::alone(std::int32_t stage, CollectiveKind kind, double parameters, double tensors, const Place& at) {
  const DpTraffic traffic = dp_traffic(parameters / tensors, context_.training, recipe_, context_.rules);
  const bool gathers = kind == CollectiveKind::kAllGather;
  const Bytes bytes = gathers ? traffic.all_gather : traffic.reduce_scatter;
  if (traffic.ranks <= 1 || bytes.value() <= 0.0) return;
  const engine::TagId tag =
      writer_.tag(gathers ? "gather parameters" : "reduce gradients", Work::kCollective, at, TrafficAxis::kDp);
  const engine::Picoseconds host = engine::to_picoseconds(host_time_of_slices(context_, traffic.ranks, 1.0));
  const std::vector<std::vector<std::int32_t>> all = groups(stage);
  for (std::int32_t i = 0; i < static_cast<std::int32_t>(tensors); ++i) {
    for (const std::vector<std::int32_t>& group : all) {
      Transfer transfer = writer_.network().collective(kind, group_shapes(recipe_).dp, group, bytes, traffic.ranks);
      transfer.fixed += host;
      writer_.waited_collective(group, gathers ? LaneKind::kDpGather : LaneKind::kDpReduce, tag, transfer, at);
    }
  }
}

void DataParallel::copy_slices(std::int32_t stage) {
  if (context_.rules.shard_host_operations <= 0.0 || shard_ranks(recipe_) <= 1) return;
  if (recipe_.state_sharding == StateSharding::kNone) return;
  double layers = 0.0;
  for (std::int32_t chunk = 0; chunk < recipe_.vpp; ++chunk)
    layers += layout_.layers_of_chunk[chunk_index(recipe_, stage, chunk)];
  const Place at;
  Transfer copies;
  copies.fixed =
      engine::to_picoseconds(host_time_of_slices(context_, shard_ranks(recipe_), layers * sliced_tensors(context_, recipe_)));
  const engine::TagId tag = writer_.tag("copies of slices", Work::kCollective, at, TrafficAxis::kDp);
  for (const std::int32_t rank : layers_.stage_ranks(stage)) {
    writer_.waited_collective(std::vector<std::int32_t>{rank}, LaneKind::kDpGather, tag, copies, at);
  }
}

void DataParallel::begin_step(std::int32_t stage) {
  if (sharded() || !stale_) return;
  if (!recipe_.overlap_param_gather) {
    Place at;
    for (std::int32_t chunk = 0; chunk < recipe_.vpp; ++chunk) {
      at.chunk = chunk;
      gather(stage, chunk_parameters(stage, chunk), at, updated_);
    }
  }
  copy_slices(stage);
}

void DataParallel::before_chunk(std::int32_t stage, const Place& at) {
  if (!sharded() || (stay_gathered() && at.micro_batch > 0)) return;
  if (context_.rules.zero3_waits) return alone(stage, CollectiveKind::kAllGather, root_parameters(stage, at.chunk), 1.0, at);
  // FSDP2 keeps the root for backward; its forward begins with the compute stream, not ahead of it.
  if (at.pass == StepPass::kBackward) return;
  for (const std::int32_t rank : layers_.stage_ranks(stage)) earlier_[static_cast<std::size_t>(rank)] = writer_.last(rank);
  gather(stage, root_parameters(stage, at.chunk), at, earlier_);
}

/// Gathers are one ahead: this one is posted when the unit before it begins (Megatron's forward hooks dispatch the next bucket,
/// FSDP2 prefetches the next module).
void DataParallel::gather_ahead(std::int32_t stage, double parameters, const Place& at) {
  const std::vector<ActivityId> before = earlier_;
  for (const std::int32_t rank : layers_.stage_ranks(stage)) earlier_[static_cast<std::size_t>(rank)] = writer_.last(rank);
  gather(stage, parameters, at, before);
}

void DataParallel::before_forward(std::int32_t stage, const Place& at) {
  if (sharded()) {
    if (context_.rules.zero3_waits) {
      alone(stage, CollectiveKind::kAllGather, layer_parameters_, matrices_per_layer(context_, recipe_), at);
    } else if (!stay_gathered() || at.micro_batch == 0) {
      gather_ahead(stage, layer_parameters_, at);
    }
    return;
  }
  if (at.micro_batch != 0 || !recipe_.overlap_param_gather || !stale_) return;
  const auto index = chunk_index(recipe_, stage, at.chunk);
  const std::int32_t layers = layout_.layers_of_chunk[index];
  std::int32_t first = 0;
  for (std::size_t i = 0; i < index; ++i) first += layout_.layers_of_chunk[i];
  const std::int32_t place = at.layer - first;
  if (!many_buckets(stage, at.chunk)) {
    if (place == 0) gather(stage, chunk_parameters(stage, at.chunk), at, updated_);
    return;
  }
  // Buckets in the order of the layers; the embedding goes with the first one.
  if (place == 0) gather(stage, chunk_parameters(stage, at.chunk) - layers * layer_parameters_, at, updated_);
  if (place % layers_per_bucket_ == 0) {
    gather_ahead(stage, std::min(layers_per_bucket_, layers - place) * layer_parameters_, at);
  }
}

void DataParallel::before_backward(std::int32_t stage, const Place& at) {
  if (!sharded() || stay_gathered()) return;
  if (!context_.rules.zero3_waits) return gather_ahead(stage, layer_parameters_, at);
  // What is recomputed is gathered once more.
  const int times = recipe_.recompute.kind == RecomputeKind::kFull ? 2 : 1;
  for (int i = 0; i < times; ++i) {
    alone(stage, CollectiveKind::kAllGather, layer_parameters_, matrices_per_layer(context_, recipe_), at);
  }
}

void DataParallel::after_backward(std::int32_t stage, const Place& at, std::int32_t micro_batches) {
  if (sharded()) {
    if (stay_gathered() && at.micro_batch != micro_batches - 1) return;
    if (context_.rules.zero3_waits) {
      alone(stage, CollectiveKind::kReduceScatter, layer_parameters_, matrices_per_layer(context_, recipe_), at);
    } else if (!stay_gathered()) {
      reduce(stage, layer_parameters_, at);
    }
    return;
  }
  if (at.micro_batch != micro_batches - 1 || !recipe_.overlap_grad_reduce || !many_buckets(stage, at.chunk)) return;
  const auto p = static_cast<std::size_t>(stage);
  if (++in_bucket_[p] < layers_per_bucket_) return;
  reduce(stage, layers_per_bucket_ * layer_parameters_, at);
  in_bucket_[p] = 0;
}

void DataParallel::after_chunk(std::int32_t stage, const Place& at, std::int32_t micro_batches) {
  if (const engine::Picoseconds add =
          engine::to_picoseconds(accumulation_time(context_, recipe_, chunk_parameters(stage, at.chunk)));
      add > 0) {
    const engine::TagId tag = writer_.tag("accumulate gradients", Work::kElementwise, at);
    for (const std::int32_t rank : layers_.stage_ranks(stage)) writer_.kernel(rank, LaneKind::kCompute, tag, add, 1, at);
  }
  if (sharded()) return end_sharded(stage, at, micro_batches);
  if (at.micro_batch != micro_batches - 1 || !recipe_.overlap_grad_reduce) return;
  const auto p = static_cast<std::size_t>(stage);
  const double layers = layout_.layers_of_chunk[chunk_index(recipe_, stage, at.chunk)];
  // Counted by the stage's layers, not by those written: folded ones have been reduced as well.
  const double done = many_buckets(stage, at.chunk) ? layers - in_bucket_[p] : 0.0;
  reduce(stage, chunk_parameters(stage, at.chunk) - done * layer_parameters_, at);
  in_bucket_[p] = 0;
}

void DataParallel::end_sharded(std::int32_t stage, const Place& at, std::int32_t micro_batches) {
  const double root = root_parameters(stage, at.chunk);
  if (context_.rules.zero3_waits) return alone(stage, CollectiveKind::kReduceScatter, root, 1.0, at);
  if (stay_gathered()) {
    if (at.micro_batch != micro_batches - 1) return;
    const std::int32_t layers = layout_.layers_of_chunk[chunk_index(recipe_, stage, at.chunk)];
    for (std::int32_t i = 0; i < layers; ++i) reduce(stage, layer_parameters_, at);
    return reduce(stage, root, at);
  }
  reduce(stage, root, at);
  // Backward ends when its reductions have.
  for (const std::int32_t rank : layers_.stage_ranks(stage)) {
    for (const ActivityId id : posted_[static_cast<std::size_t>(rank)]) writer_.gate(rank, id);
  }
}

void DataParallel::end_step(std::int32_t stage) {
  Place at;
  at.pass = StepPass::kBackward;
  if (!recipe_.overlap_grad_reduce && !sharded()) {
    for (std::int32_t chunk = 0; chunk < recipe_.vpp; ++chunk) {
      at.chunk = chunk;
      reduce(stage, chunk_parameters(stage, chunk), at);
    }
  }
  for (const std::int32_t rank : layers_.stage_ranks(stage)) {
    for (const ActivityId id : posted_[static_cast<std::size_t>(rank)]) writer_.gate(rank, id);
  }
  if (stage == recipe_.pp - 1) sum_tied();
}

void DataParallel::sum_tied() {
  const Bytes bytes = tied_gradients(context_, recipe_);
  if (bytes.value() <= 0.0) return;
  Place at;
  at.pass = StepPass::kBackward;
  const engine::TagId tag = writer_.tag("sum tied embeddings", Work::kCollective, at, TrafficAxis::kDp);
  const auto& first = layers_.stage_ranks(0);
  const auto& last = layers_.stage_ranks(recipe_.pp - 1);
  for (std::size_t i = 0; i < first.size(); ++i) {
    const std::array<std::int32_t, 2> ends{first[i], last[i]};
    const Transfer transfer =
        writer_.network().collective(CollectiveKind::kAllReduce, group_shapes(recipe_).pp, ends, bytes, ends.size());
    writer_.waited_collective(ends, LaneKind::kDpReduce, tag, transfer, at);
  }
}

void DataParallel::norm() {
  Place at;
  at.pass = StepPass::kUpdate;
  std::vector<std::int32_t> all;
  for (std::int32_t rank = 0; rank < writer_.ranks().count(); ++rank) all.push_back(rank);
  // A few bytes, but no rank goes on before every rank has its own, and the host reads it (Megatron-LM: total_norm.item()).
  const ActivityId norm =
      writer_.waited_collective(all, LaneKind::kOther, writer_.tag("gradient norm", Work::kOther, at), Transfer{}, at);
  writer_.program().host_reads(norm);
  for (std::vector<ActivityId>& posted : posted_) posted.clear();
}

void DataParallel::update() {
  Place at;
  at.pass = StepPass::kUpdate;
  const engine::TagId tag = writer_.tag("optimizer", Work::kOptimizer, at);
  for (std::int32_t stage = 0; stage < recipe_.pp; ++stage) {
    double parameters = 0.0;
    for (std::int32_t chunk = 0; chunk < recipe_.vpp; ++chunk) parameters += chunk_parameters(stage, chunk);
    const engine::Picoseconds time = engine::to_picoseconds(optimizer_time(context_, recipe_, parameters));
    for (const std::int32_t rank : layers_.stage_ranks(stage)) {
      updated_[static_cast<std::size_t>(rank)] = writer_.kernel(rank, LaneKind::kCompute, tag, time, 4, at);
    }
  }
  earlier_ = updated_;
  stale_ = true;
}

}  // namespace cpfit::schedule
