#include "sim/plan/step_memory.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "model/memory/in_flight.h"

namespace cpfit {

namespace {

using engine::ActivityId;
using engine::StepPass;
using engine::Work;
using Bytewise = std::array<std::int64_t, kComponentCount>;  // by component

constexpr auto kActivation = static_cast<std::size_t>(Component::kActivations);

/// What one stage allocates, in whole bytes.
struct StageBytes {
  std::int64_t resident = 0;  // between steps
  Bytewise left_over{};       // of that, what the next forward replaces: a stage's last input, gathered weights
  std::int64_t attention_half = 0, mlp_half = 0;  // saved per layer and micro-batch
  std::int64_t pending = 0;                       // per layer and micro-batch from its backward to its gradients of weights
  std::array<Bytewise, kMomentCount> beyond{};    // of each moment: what is neither there all the time nor saved
};

StageBytes stage_bytes(const MemoryCase& at, std::int32_t stage, std::int32_t micro_batches) {
  StageBytes bytes;
  const auto whole = [](Bytes value) { return static_cast<std::int64_t>(std::llround(value.value())); };
  const auto at_moment = [&](cpfit::Moment moment) { return allocated_at(at, stage, moment); };
  const std::array<Bytes, kComponentCount> resident = at_moment(cpfit::Moment::kBetweenSteps);
  for (const Bytes part : resident) bytes.resident += whole(part);
  const InFlight alive = in_flight(at.recipe, at.layout, stage, micro_batches);
  const double layers = std::max(1.0, alive.layers);
  std::int64_t waiting = 0;  // all that waits for gradients of weights, by what 1F1B holds less
  if (alive.pending > 0.0) {
    Recipe without = at.recipe;
    without.schedule = Schedule::kOneFOneB;
    const MemoryCase other{at.model, at.training, without, at.rules, at.gpu, at.layout};
    const auto end = cpfit::Moment::kForwardEnd;
    waiting = whole(allocated_at(at, stage, end)[kActivation] - allocated_at(other, stage, end)[kActivation]);
    const double stage_layers = at.layout.layers_of_stage[static_cast<std::size_t>(stage)];
    bytes.pending = static_cast<std::int64_t>(static_cast<double>(waiting) / (alive.pending * std::max(1.0, stage_layers)));
  }
  const std::int64_t saved = whole(at_moment(cpfit::Moment::kForwardEnd)[kActivation] - resident[kActivation]) - waiting;
  const std::int64_t at_attention =
      whole(at_moment(cpfit::Moment::kAttentionForward)[kActivation] - resident[kActivation]) - waiting;
  const auto per_layer = static_cast<std::int64_t>(static_cast<double>(saved) / layers);
  bytes.mlp_half = std::clamp<std::int64_t>(saved - at_attention, 0, per_layer);
  bytes.attention_half = per_layer - bytes.mlp_half;
  Bytewise always{};
  std::array<std::array<Bytes, kComponentCount>, kMomentCount> all;
  for (std::size_t c = 0; c < kComponentCount; ++c) always[c] = whole(resident[c]);
  for (int m = 0; m < kMomentCount; ++m) {
    all[static_cast<std::size_t>(m)] = at_moment(static_cast<cpfit::Moment>(m));
    for (std::size_t c = 0; c < kComponentCount; ++c) always[c] = std::min(always[c], whole(all[static_cast<std::size_t>(m)][c]));
  }
  for (std::size_t c = 0; c < kComponentCount; ++c) {
    if (c == kActivation) continue;
    bytes.left_over[c] = whole(resident[c]) - always[c];
    for (int m = 0; m < kMomentCount; ++m)
      bytes.beyond[static_cast<std::size_t>(m)][c] = whole(all[static_cast<std::size_t>(m)][c]) - always[c];
  }
  return bytes;
}

bool is_weights(const engine::Tag& tag) { return tag.name == schedule::kWeightGradients; }

/// The compute activities of one rank between two others of another layer, micro-batch, chunk or pass.
struct Segment {
  std::vector<ActivityId> activities;
  /// First and one past the last of its last run of attention (with the merges between); equal where there is none.
  std::size_t attention_begin = 0, attention_end = 0;
};

class RankMemory {
 public:
  RankMemory(const engine::Program& program, std::int32_t rank, const StageBytes& bytes, timeline::MemoryProgram& memory)
      : program_(program), rank_(rank), bytes_(bytes), memory_(memory) {}

  /// `update_next`: no further segment of this step's forward and backward passes follows.
  void add(const Segment& segment, bool update_next) {
    const engine::Tag& tag = program_.tags[activity(segment.activities.front()).tag];
    if (left_over_there_ && tag.pass == StepPass::kForward) {
      for (std::size_t c = 0; c < kComponentCount; ++c)
        event(segment.activities.front(), timeline::Moment::kStart, c, kLeftOver, -bytes_.left_over[c]);
      left_over_there_ = false;
    }
    add(segment);
    if (left_over_there_ || !update_next || tag.pass != StepPass::kBackward) return;
    for (std::size_t c = 0; c < kComponentCount; ++c)
      event(segment.activities.back(), timeline::Moment::kEnd, c, kLeftOver, bytes_.left_over[c]);
    left_over_there_ = true;
  }

 private:
  void add(const Segment& segment) {
    const engine::Activity& first = activity(segment.activities.front());
    const engine::Tag& tag = program_.tags[first.tag];
    if (tag.work == Work::kOptimizer) return hold(cpfit::Moment::kOptimizerStep, segment, 0, segment.activities.size());
    if (tag.work == Work::kHead) {
      const bool forward = tag.pass == StepPass::kForward;
      return hold(forward ? cpfit::Moment::kLoss : cpfit::Moment::kHeadBackward, segment, 0, segment.activities.size());
    }
    if (first.layer < 0) return;
    if (tag.pass == StepPass::kForward) {
      forward(segment);
    } else if (tag.pass == StepPass::kBackward) {
      backward(segment);
    }
  }

  [[nodiscard]] const engine::Activity& activity(ActivityId id) const {
    return program_.activities[static_cast<std::size_t>(id)];
  }

  void event(ActivityId id, timeline::Moment moment, std::size_t component, std::int32_t name, std::int64_t bytes) {
    if (bytes != 0)
      memory_.events.push_back({rank_, id, moment, static_cast<std::int32_t>(component), name, bytes, engine::kNone});
  }

  /// The moment's own tensors live from the start of activity `begin` of the segment to the end of activity end - 1.
  void hold(cpfit::Moment moment, const Segment& segment, std::size_t begin, std::size_t end) {
    if (begin >= end) return;
    const auto m = static_cast<std::int32_t>(moment);
    for (std::size_t c = 0; c < kComponentCount; ++c) {
      const std::int64_t bytes = bytes_.beyond[static_cast<std::size_t>(m)][c];
      event(segment.activities[begin], timeline::Moment::kStart, c, kSavedNames + m, bytes);
      event(segment.activities[end - 1], timeline::Moment::kEnd, c, kSavedNames + m, -bytes);
    }
  }

  void forward(const Segment& segment) {
    event(segment.activities.front(), timeline::Moment::kStart, kActivation, 0, bytes_.attention_half);
    hold(cpfit::Moment::kAttentionForward, segment, segment.attention_begin, segment.attention_end);
    const std::size_t behind = std::min(segment.attention_end, segment.activities.size() - 1);
    event(segment.activities[behind], timeline::Moment::kStart, kActivation, 1, bytes_.mlp_half);
    hold(cpfit::Moment::kForwardEnd, segment, segment.attention_end, segment.activities.size());
  }

  void backward(const Segment& segment) {
    if (is_weights(program_.tags[activity(segment.activities.front()).tag]))
      return event(segment.activities.back(), timeline::Moment::kEnd, kActivation, 2, -bytes_.pending);
    hold(cpfit::Moment::kMlpBackward, segment, 0, segment.attention_begin);
    const std::size_t mlp_ends = segment.attention_begin > 0 ? segment.attention_begin - 1 : 0;
    event(segment.activities[mlp_ends], timeline::Moment::kEnd, kActivation, 1, -bytes_.mlp_half);
    hold(cpfit::Moment::kAttentionBackward, segment, segment.attention_begin, segment.attention_end);
    event(segment.activities.back(), timeline::Moment::kEnd, kActivation, 0, -bytes_.attention_half);
    event(segment.activities.back(), timeline::Moment::kEnd, kActivation, 2, bytes_.pending);
  }

  const engine::Program& program_;
  std::int32_t rank_;
  const StageBytes& bytes_;
  timeline::MemoryProgram& memory_;
  bool left_over_there_ = true;

 public:
  static constexpr std::int32_t kLeftOver = 3;
  static constexpr std::int32_t kSavedNames = 4;  // names before those of the moments; 2: what waits for gradients of weights
};

/// Compute activities of every rank in the order of the program, cut into segments.
std::vector<std::vector<Segment>> segments_of(const engine::Program& program, std::int32_t ranks) {
  std::vector<std::vector<Segment>> all(static_cast<std::size_t>(ranks));
  for (ActivityId id = 0; id < static_cast<ActivityId>(program.activities.size()); ++id) {
    const engine::Activity& a = program.activities[static_cast<std::size_t>(id)];
    const engine::Lane& lane =
        program.lanes[static_cast<std::size_t>(program.slots[static_cast<std::size_t>(a.first_slot)].lane)];
    if (!timeline::is_compute_lane(lane.kind)) continue;
    const engine::Tag& tag = program.tags[a.tag];
    if (tag.work == Work::kEmbedding || tag.work == Work::kOther) continue;
    std::vector<Segment>& segments = all[static_cast<std::size_t>(lane.rank)];
    if (!segments.empty()) {
      const engine::Activity& b = program.activities[static_cast<std::size_t>(segments.back().activities.front())];
      const engine::Tag& before = program.tags[b.tag];
      const auto own = [](const engine::Tag& t) { return t.work == Work::kHead || t.work == Work::kOptimizer; };
      if (a.layer == b.layer && a.micro_batch == b.micro_batch && a.chunk == b.chunk && tag.pass == before.pass &&
          own(tag) == own(before) && is_weights(tag) == is_weights(before)) {
        segments.back().activities.push_back(id);
        continue;
      }
    }
    segments.push_back({{id}, 0, 0});
  }
  for (std::vector<Segment>& segments : all) {
    for (Segment& segment : segments) {
      const auto attends = [&](std::size_t i) {
        const Work work = program.tags[program.activities[static_cast<std::size_t>(segment.activities[i])].tag].work;
        return work == Work::kAttention || work == Work::kMerge;
      };
      std::size_t end = segment.activities.size();
      while (end > 0 && !attends(end - 1)) --end;
      std::size_t begin = end;
      while (begin > 0 && attends(begin - 1)) --begin;
      if (end == 0) begin = end = segment.activities.size();  // no attention: all of it comes before
      segment.attention_begin = begin;
      segment.attention_end = end;
    }
  }
  return all;
}

}  // namespace

timeline::MemoryProgram memory_program(const MemoryCase& at, const schedule::StepProgram& step) {
  timeline::MemoryProgram memory;
  for (int c = 0; c < kComponentCount; ++c) memory.components.emplace_back(name_of(static_cast<Component>(c)));
  memory.names = {"saved by the attention half", "saved by the MLP half", "kept for gradients of weights",
                  "left over from the step before"};
  memory.of_resident = RankMemory::kLeftOver;
  for (int m = 0; m < kMomentCount; ++m) memory.names.emplace_back(name_of(static_cast<cpfit::Moment>(m)));
  std::vector<StageBytes> stages;
  for (std::int32_t stage = 0; stage < at.recipe.pp; ++stage) stages.push_back(stage_bytes(at, stage, step.micro_batches));
  const std::vector<std::vector<Segment>> segments = segments_of(step.program, step.ranks.count());
  for (std::int32_t rank = 0; rank < step.ranks.count(); ++rank) {
    const StageBytes& bytes = stages[static_cast<std::size_t>(step.ranks.coordinate(rank).pp)];
    memory.resident.push_back(bytes.resident);
    RankMemory of_rank(step.program, rank, bytes, memory);
    const std::vector<Segment>& own = segments[static_cast<std::size_t>(rank)];
    for (std::size_t i = 0; i < own.size(); ++i) {
      const auto pass_of = [&](const Segment& segment) {
        return step.program.tags[step.program.activities[static_cast<std::size_t>(segment.activities.front())].tag].pass;
      };
      of_rank.add(own[i], i + 1 == own.size() || pass_of(own[i + 1]) == StepPass::kUpdate);
    }
  }
  return memory;
}

StepMemory step_memory(Workbench& bench, const Training& training, const StepTimeline& timeline) {
  const ScreenContext context = bench.context(training);
  const Recipe& recipe = timeline.candidate.recipe;
  const Outcome<ResolvedLayout> layout = resolve_layout(context.model, recipe);
  if (!layout.ok()) return {};
  const MemoryCase at{context.model, training, recipe, context.rules, context.cluster.gpu, *layout};
  timeline::MemoryProgram memory = memory_program(at, *timeline.step);
  std::vector<timeline::MemoryTrack> tracks = timeline::memory_tracks(timeline.history(), memory);
  return {std::move(memory.names), std::move(tracks)};
}

}  // namespace cpfit
