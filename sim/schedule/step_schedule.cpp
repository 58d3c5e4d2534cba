#include "sim/schedule/step_schedule.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <tuple>

#include "model/recipe/axis_fields.h"
#include "model/recipe/pipeline_order.h"
#include "sim/schedule/data_parallel.h"
#include "sim/schedule/step_size.h"
#include "sim/screen/operators.h"

namespace cpfit::schedule {

namespace {

using engine::ActivityId;
using engine::kNone;
using engine::LaneKind;
using engine::StepPass;
using engine::TrafficAxis;
using engine::Work;

/// Writes the turns of all stages, stage by stage as far as their inputs exist.
class StepWriter {
 public:
  StepWriter(const ScreenContext& context, const Recipe& recipe, const ResolvedLayout& layout, const StepOptions& options,
             Writer& writer, const OperatorTimes& times)
      : context_(context),
        recipe_(recipe),
        layout_(layout),
        options_(options),
        writer_(writer),
        layers_(context, recipe, times, writer),
        data_(context, recipe, layout, writer, layers_),
        micro_batches_(static_cast<std::int32_t>(context.training.global_batch / (std::int64_t{recipe.dp} * recipe.micro_batch))),
        message_(pp_message(context.model, context.training, recipe, context.rules)),
        gather_(pp_gather(context.model, context.training, recipe, context.rules)),
        early_(static_cast<std::size_t>(writer.ranks().count()), kNone) {
    first_layer_.resize(layout.layers_of_chunk.size());
    std::exclusive_scan(layout.layers_of_chunk.begin(), layout.layers_of_chunk.end(), first_layer_.begin(), 0);
  }

  /// False when the turns wait for each other.
  [[nodiscard]] bool write() {
    std::vector<std::vector<StageTurn>> turns;
    for (std::int32_t stage = 0; stage < recipe_.pp; ++stage) turns.push_back(stage_turns(recipe_, stage, micro_batches_));
    for (std::int32_t step = 0; step < options_.steps; ++step) {
      if (step > 0 || !options_.from_start) data_.update();
      if (!write_turns(turns)) return false;
      data_.norm();
    }
    return true;
  }

 private:
  /// Gathers, all turns and reductions of one step.
  [[nodiscard]] bool write_turns(const std::vector<std::vector<StageTurn>>& turns) {
    inbound_.clear();
    for (std::size_t rank = 0; rank < early_.size(); ++rank) early_[rank] = writer_.last(static_cast<std::int32_t>(rank));
    for (std::int32_t stage = 0; stage < recipe_.pp; ++stage) data_.begin_step(stage);
    std::vector<std::size_t> done(turns.size(), 0);
    for (bool moved = true; moved;) {
      moved = false;
      for (std::int32_t stage = 0; stage < recipe_.pp; ++stage) {
        std::size_t& next = done[static_cast<std::size_t>(stage)];
        const std::vector<StageTurn>& all = turns[static_cast<std::size_t>(stage)];
        while (next < all.size() && input_exists(stage, all[next])) {
          turn(stage, all[next]);
          ++next;
          moved = true;
        }
      }
    }
    for (std::size_t stage = 0; stage < turns.size(); ++stage) {
      if (done[stage] < turns[stage].size()) return false;
    }
    for (std::int32_t stage = 0; stage < recipe_.pp; ++stage) data_.end_step(stage);
    return true;
  }

  /// A pipeline message that enters a stage: (forward, stage, chunk, micro-batch).
  using Entry = std::tuple<bool, std::int32_t, std::int32_t, std::int32_t>;

  [[nodiscard]] bool is_first(std::int32_t stage, std::int32_t chunk) const { return stage == 0 && chunk == 0; }
  [[nodiscard]] bool is_last(std::int32_t stage, std::int32_t chunk) const {
    return stage == recipe_.pp - 1 && chunk == recipe_.vpp - 1;
  }

  [[nodiscard]] bool input_exists(std::int32_t stage, const StageTurn& turn) const {
    if (turn.weights) return true;  // the backward that it completes comes before it in the turns
    if (turn.forward && is_first(stage, turn.chunk)) return true;
    if (!turn.forward && is_last(stage, turn.chunk)) return true;  // its own forward comes before it in the turns
    return inbound_.contains({turn.forward, stage, turn.chunk, turn.micro_batch});
  }

  void turn(std::int32_t stage, const StageTurn& turn) {
    Place at;
    at.micro_batch = turn.micro_batch;
    at.chunk = turn.chunk;
    at.pass = turn.forward ? StepPass::kForward : StepPass::kBackward;
    if (turn.weights) return weights(stage, at);
    receive(stage, turn, at);
    if (turn.forward) {
      forward(stage, at);
    } else {
      backward(stage, at);
    }
    send(stage, turn, at);
  }

  void forward(std::int32_t stage, Place at) {
    data_.before_chunk(stage, at);
    if (is_first(stage, at.chunk)) layers_.embedding(stage, at);
    repeat_layers(stage, at, [&](const Place& here) {
      data_.before_forward(stage, here);
      layers_.forward(stage, here);
    });
    if (is_last(stage, at.chunk)) layers_.head_forward(stage, at);
  }

  void backward(std::int32_t stage, Place at) {
    data_.before_chunk(stage, at);
    if (is_last(stage, at.chunk)) layers_.head_backward(stage, at);
    repeat_layers(stage, at, [&](const Place& here) {
      data_.before_backward(stage, here);
      layers_.backward(stage, here, repeated(stage, here));
      if (!split_backward(recipe_)) data_.after_backward(stage, here, micro_batches_);
    });
    if (is_first(stage, at.chunk)) layers_.embedding(stage, at);
    if (!split_backward(recipe_)) data_.after_chunk(stage, at, micro_batches_);
  }

  /// Gradients of weights of a micro-batch whose backward ran before.
  void weights(std::int32_t stage, Place at) {
    if (is_last(stage, at.chunk)) layers_.head_weight_gradient(stage, at);
    repeat_layers(stage, at, [&](const Place& here) {
      layers_.weight_gradients(stage, here);
      data_.after_backward(stage, here, micro_batches_);
    });
    data_.after_chunk(stage, at, micro_batches_);
  }

  /// Layers of the chunk in the order of the pass; one section where they repeat.
  template <class Layer>
  void repeat_layers(std::int32_t stage, Place at, Layer write_layer) {
    const std::size_t index = chunk_index(recipe_, stage, at.chunk);
    const std::int32_t count = layout_.layers_of_chunk[index], first = first_layer_[index];
    const std::int32_t written = folds(count) ? options_.fold_copies : count;
    engine::ProgramBuilder& program = writer_.program();
    engine::ActivityId second = program.next_id();
    LayerBefore before;
    for (std::int32_t i = 0; i < written; ++i) {
      if (i == 1) second = program.next_id();
      const engine::ProgramBuilder::Mark begin = program.mark();
      const std::int32_t place = at.pass == StepPass::kForward ? i : count - 1 - i;
      at.layer = first + place;
      write_layer(at);
      const std::vector<ActivityId> references = alike() ? all_references() : std::vector<ActivityId>();
      if (i >= 2 && alike() && goes_on(before, begin, references)) {
        program.repeat(begin, written - 1 - i);
        move_references(before.references, references, written - 1 - i);
        break;
      }
      before = {begin, references};
    }
    if (written < count) {
      // The first layer stands apart: what comes before it is no layer.
      engine::Section section;
      section.first = second;
      section.stride = (writer_.program().next_id() - second) / (written - 1);
      section.copies = written - 1;
      section.stands_for = count - 1;
      writer_.program().section(section);
    }
  }

  /// A layer as written, to be compared with the next.
  struct LayerBefore {
    engine::ProgramBuilder::Mark begin;
    std::vector<ActivityId> references;  // what the next layer may wait for
  };

  /// Whether the layer since `begin` is the one before it a layer later, and leaves to the next what that one left: then all that
  /// follow are the same.
  [[nodiscard]] bool goes_on(const LayerBefore& before, const engine::ProgramBuilder::Mark& begin,
                             const std::vector<ActivityId>& references) {
    if (references.size() != before.references.size() || !writer_.program().repeats(before.begin, begin)) return false;
    const ActivityId layer = writer_.program().next_id() - begin.activity;
    for (std::size_t r = 0; r < references.size(); ++r) {
      const ActivityId further = references[r] - before.references[r];
      if (further != layer && !(further == 0 && references[r] < before.begin.activity)) return false;
    }
    return true;
  }

  [[nodiscard]] std::vector<ActivityId> all_references() {
    std::vector<ActivityId> all;
    const auto add = [&](ActivityId id) { all.push_back(id); };
    writer_.visit_references(add);
    data_.visit_references(add);
    return all;
  }

  /// As they are when `layers` more have been written.
  void move_references(const std::vector<ActivityId>& before, const std::vector<ActivityId>& now, std::int32_t layers) {
    std::size_t r = 0;
    const auto move = [&](ActivityId& id) {
      id += layers * (now[r] - before[r]);
      ++r;
    };
    writer_.visit_references(move);
    data_.visit_references(move);
  }

  /// Layers differ in nothing but their number, once the first ones are through.
  [[nodiscard]] bool alike() const {
    const bool alternating = context_.model.sliding_window > 0 && context_.model.window_period > 0;
    return !alternating && recipe_.recompute.kind != RecomputeKind::kBlock && data_.layers_alike();
  }

  /// Ranks of a ring drift apart and settle over tens of layers (a rank ahead is slowed by its own waiting sender): their layers
  /// never repeat bit for bit, and trying would only cost time.
  [[nodiscard]] bool folds(std::int32_t layers) const {
    const bool rings = recipe_.cp_comm != CpComm::kAllGather && recipe_.cp / a2a_ranks(recipe_) > 1;
    return options_.fold_layers && recipe_.pp == 1 && !rings && alike() && layers > options_.fold_copies;
  }

  [[nodiscard]] Repeated repeated(std::int32_t stage, const Place& at) const {
    switch (recipe_.recompute.kind) {
      case RecomputeKind::kNone:
        return {};
      case RecomputeKind::kSelective:
        return repeated_by_selective(context_.rules);
      case RecomputeKind::kMlp:
        return kMlpAgain;
      case RecomputeKind::kFull:
        return repeated_by_full(context_.rules);
      case RecomputeKind::kBlock: {
        // The first layers of the stage, chunk by chunk (Megatron: of each chunk in turn).
        std::int32_t before = 0;
        for (std::int32_t chunk = 0; chunk < at.chunk; ++chunk)
          before += layout_.layers_of_chunk[chunk_index(recipe_, stage, chunk)];
        const std::int32_t inside = at.layer - first_layer_[chunk_index(recipe_, stage, at.chunk)];
        return before + inside < recipe_.recompute.block_layers ? repeated_by_full(context_.rules) : Repeated{};
      }
    }
    return {};
  }

  [[nodiscard]] bool overlapped() const { return (recipe_.vpp > 1 || split_backward(recipe_)) && recipe_.overlap_p2p; }

  /// The stage's end of the messages that this turn needs: posted when the compute stream comes to it, or with overlap one turn
  /// ahead. Interleaved without overlap, what a stage sends is received in the same turn and kept until its own comes (Megatron
  /// schedules.py: send_forward_recv_forward, input_tensors): from the beginning on.
  void receive(std::int32_t stage, const StageTurn& turn, const Place& at) {
    const auto found = inbound_.find({turn.forward, stage, turn.chunk, turn.micro_batch});
    const std::vector<std::int32_t>& ranks = layers_.stage_ranks(stage);
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      const ActivityId now = writer_.last(ranks[i]);
      if (found != inbound_.end()) {
        const LaneKind kind = turn.forward ? LaneKind::kPpReceive : LaneKind::kPpBackReceive;
        ActivityId& early = early_[static_cast<std::size_t>(ranks[i])];
        const ActivityId posted = overlapped() ? early : recipe_.vpp > 1 ? engine::kNone : now;
        writer_.program().wait(found->second[i], writer_.lane(ranks[i], kind), posted);
        writer_.gate(ranks[i], found->second[i]);
      }
      early_[static_cast<std::size_t>(ranks[i])] = now;
    }
    if (found != inbound_.end() && gather_.value() > 0.0) layers_.gather_message(stage, gather_, at);
  }

  void send(std::int32_t stage, const StageTurn& turn, const Place& at) {
    if (turn.forward ? is_last(stage, turn.chunk) : is_first(stage, turn.chunk)) return;
    std::int32_t to = stage, chunk = turn.chunk;
    if (turn.forward) {
      to = (stage + 1) % recipe_.pp;
      if (to == 0) ++chunk;
    } else {
      to = (stage + recipe_.pp - 1) % recipe_.pp;
      if (stage == 0) --chunk;
    }
    const std::vector<std::int32_t>&from_ranks = layers_.stage_ranks(stage), &to_ranks = layers_.stage_ranks(to);
    const LaneKind send_kind = turn.forward ? LaneKind::kPpSend : LaneKind::kPpBackSend;
    const LaneKind receive_kind = turn.forward ? LaneKind::kPpReceive : LaneKind::kPpBackReceive;
    const engine::TagId tag =
        writer_.tag(turn.forward ? "send activations" : "send gradients", Work::kMessage, at, TrafficAxis::kPp);
    std::vector<ActivityId>& entry = inbound_[{turn.forward, to, chunk, turn.micro_batch}];
    for (std::size_t i = 0; i < from_ranks.size(); ++i) {
      const ActivityId sent = writer_.message(from_ranks[i], to_ranks[i], send_kind, receive_kind, tag,
                                              writer_.network().message(from_ranks[i], to_ranks[i], message_, 1), at);
      const engine::LaneId lane = writer_.lane(from_ranks[i], send_kind);
      writer_.program().wait(sent, lane, writer_.last(from_ranks[i]));
      writer_.wait_gates(from_ranks[i], sent, lane);
      if (!overlapped()) writer_.gate(from_ranks[i], sent);
      entry.push_back(sent);
    }
  }

  const ScreenContext& context_;
  const Recipe& recipe_;
  const ResolvedLayout& layout_;
  const StepOptions& options_;
  Writer& writer_;
  LayerSchedule layers_;
  DataParallel data_;
  std::int32_t micro_batches_;
  Bytes message_;
  Bytes gather_;                           // of the parts of a message
  std::vector<std::int32_t> first_layer_;  // (chunks) of the model
  std::map<Entry, std::vector<ActivityId>> inbound_;
  std::vector<ActivityId> early_;  // (ranks) the compute stream's last activity before the previous turn
};

/// The first pair of neighbours that must talk and cannot.
Problems unreachable(const ScreenContext& context, const Recipe& recipe, const SimulatedRanks& ranks) {
  const Topology& topology = *context.cluster.topology;
  const auto problem = [&](std::int64_t a, std::int64_t b) {
    Problem none;
    none.code = "schedule.route";
    none.where = "cluster";
    none.message = "rank " + std::to_string(a) + " and rank " + std::to_string(b) +
                   " must exchange data, but the topology has no route between their GPUs";
    none.repair = "give both a NIC and a common switch, or join them by NVLink; `cpfit topology check` lists every such pair";
    return none;
  };
  for (std::int32_t i = 0; i < ranks.count(); ++i) {
    const Coordinate at = ranks.coordinate(i);
    for (const Axis axis : {Axis::kTp, Axis::kCp, Axis::kDp, Axis::kPp}) {
      Coordinate next = at;
      std::int32_t& place = place_on(next, axis);
      place = (place + 1) % degree_of(recipe, axis);
      const std::int64_t a = rank_of(recipe, at), b = rank_of(recipe, next);
      if (a != b && !topology.reachable(a, b)) return {problem(a, b)};
    }
  }
  return {};
}

/// How much longer the kernels of each simulated rank take.
Outcome<std::vector<double>> slowness_of(const Recipe& recipe, const SimulatedRanks& ranks, const std::vector<SlowRank>& slow) {
  std::vector<double> slowness(static_cast<std::size_t>(ranks.count()), 1.0);
  std::vector<bool> named(slowness.size(), false);
  for (const SlowRank& entry : slow) {
    if (entry.rank < 0 || entry.rank >= recipe.world() || !std::isfinite(entry.factor) || entry.factor <= 0.0) {
      Problem none;
      none.code = "schedule.slow_rank";
      none.where = "slow rank";
      none.message = "rank " + std::to_string(entry.rank) + " cannot be slowed by " + std::to_string(entry.factor);
      none.repair = "ranks are 0 to " + std::to_string(recipe.world() - 1) + ", a factor is a number above 0, e.g. 1.2";
      return Problems{none};
    }
    const auto index = static_cast<std::size_t>(ranks.index_of(entry.rank));
    slowness[index] = named[index] ? std::max(slowness[index], entry.factor) : entry.factor;
    named[index] = true;
  }
  return slowness;
}

}  // namespace

Outcome<StepProgram> step_program(const ScreenContext& context, const Recipe& recipe, const ResolvedLayout& layout,
                                  const StepOptions& options) {
  StepProgram step{{}, SimulatedRanks(recipe, options.every_rank), 1};
  Problems problems = unreachable(context, recipe, step.ranks);
  if (!problems.empty()) return problems;
  Outcome<std::vector<double>> slowness = slowness_of(recipe, step.ranks, options.slow_ranks);
  if (!slowness.ok()) return slowness.problems();
  engine::ProgramBuilder program;
  program.expect(estimated_activities(context, recipe, options));
  StepNetwork network(context, recipe, step.ranks, program);
  Writer writer(step.ranks, network, program, std::move(slowness).value());
  program.launch_cost(engine::to_picoseconds(operators::host_call(context)));
  const OperatorTimes times = operator_times(context, recipe);
  StepWriter steps(context, recipe, layout, options, writer, times);
  if (!steps.write()) {
    Problem order;
    order.code = "schedule.order";
    order.where = "recipe";
    order.message = "the pipeline's turns wait for each other under " + to_text(recipe);
    order.repair = "use a number of micro-batches that is a multiple of pp, or vpp=1";
    return Problems{order};
  }
  step.micro_batches = static_cast<std::int32_t>(context.training.global_batch / (std::int64_t{recipe.dp} * recipe.micro_batch));
  step.program = program.take();
  return step;
}

}  // namespace cpfit::schedule
