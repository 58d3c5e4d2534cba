// A program together with its run, and what the program leaves implicit: the skipped copies of repeated blocks (engine::Jump),
// and what each activity waited for. Everything in this folder reads a run through it, so that folded and unfolded programs give
// the same answers.
//
// Copies are counted as a person counts them: the program holds copies 0..h-1 of a section; when the engine jumped over s copies
// after copy a, held copy c > a is copy c + s of the step, and copies a+1..a+s are the n copies up to a over and over again, one
// period later each time (n is the jump's cycle, mostly 1). Layer
// numbers continue at the distance that copy 1 has from copy 0 (+1 forward, -1 backward); activities behind a section carry the
// layer of the model.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "model/quantity/index.h"
#include "sim/engine/engine.h"
#include "sim/engine/program.h"

namespace cpfit::timeline {

using engine::ActivityId;
using engine::kNone;
using engine::LaneId;
using engine::Picoseconds;
using engine::SlotId;

/// One execution of an activity.
struct Instance {
  ActivityId activity = kNone;  // as the program holds it
  std::int32_t copy = 0;        // of its section, every repetition counted; 0 outside sections
  Picoseconds shift = 0;        // to add to the run's times of `activity`
  friend bool operator==(const Instance&, const Instance&) = default;
};

/// What a slot waited for last.
struct Cause {
  Instance before;       // activity kNone: nothing
  Picoseconds end = 0;   // of `before`
  bool on_lane = false;  // the slot's predecessor on its lane, rather than an explicit wait
};

/// Communication moves bytes between ranks; everything else is a kernel or a copy.
[[nodiscard]] inline bool is_communication(const engine::Tag& tag) {
  return tag.work == engine::Work::kMessage || tag.work == engine::Work::kCollective || tag.axis != engine::TrafficAxis::kNone;
}
[[nodiscard]] inline bool is_compute_lane(engine::LaneKind kind) {
  return kind == engine::LaneKind::kCompute || kind == engine::LaneKind::kComputeSide;
}

/// Refers to `program` and `run`: both must outlive it. Aborts when their sizes do not agree.
class History {
 public:
  History(const engine::Program& program, const engine::Run& run);
  [[nodiscard]] const engine::Program& program() const { return *program_; }
  [[nodiscard]] const engine::Run& run() const { return *run_; }
  [[nodiscard]] Picoseconds step() const { return run_->makespan; }
  [[nodiscard]] std::int32_t ranks() const { return ranks_; }
  /// Lanes of a rank, ascending.
  [[nodiscard]] std::span<const LaneId> lanes_of(std::int32_t rank) const;

  [[nodiscard]] const engine::Activity& activity(const Instance& i) const { return program_->activities[at(i.activity)]; }
  [[nodiscard]] const engine::Tag& tag(const Instance& i) const { return program_->tags[activity(i).tag]; }
  [[nodiscard]] Picoseconds start(const Instance& i) const { return run_->start[at(i.activity)] + i.shift; }
  [[nodiscard]] Picoseconds end(const Instance& i) const { return run_->end[at(i.activity)] + i.shift; }
  [[nodiscard]] Picoseconds posted(const Instance& i, SlotId slot) const { return run_->posted[at(slot)] + i.shift; }
  [[nodiscard]] std::int32_t layer(const Instance& i) const;
  /// fixed + amount / cap, rounded upward: the time it takes when it shares nothing.
  [[nodiscard]] Picoseconds undisturbed(const Instance& i) const;

  /// The instance that the program holds itself.
  [[nodiscard]] Instance held(ActivityId activity) const;
  /// The instance of `other` that `from` refers to: same copy, or as many copies earlier as the program has it.
  [[nodiscard]] Instance referred(const Instance& from, ActivityId other) const;
  /// The execution in copy `copy` (counting every repetition) of an activity given as it stands in the first copy.
  [[nodiscard]] Instance copy_of(ActivityId in_first_copy, std::int32_t section, std::int32_t copy) const;
  [[nodiscard]] std::int32_t section_of(ActivityId activity) const {  // kNone outside
    return section_of_.empty() ? kNone : section_of_[at(activity)];
  }

  /// The cause that ended last; of several at one instant the lane's predecessor, then the lowest activity.
  [[nodiscard]] Cause cause(const Instance& i, SlotId slot) const;
  /// The slot of `i` on `rank` that was posted last (of equals the first), kNone when it has none there; any rank for kNone.
  [[nodiscard]] SlotId last_posted(const Instance& i, std::int32_t rank) const;
  [[nodiscard]] std::int32_t rank_of(SlotId slot) const { return program_->lanes[at(program_->slots[at(slot)].lane)].rank; }

  /// Calls visit(SlotId, const Instance&) for every execution on the lane in order of time.
  template <class Visit>
  void visit_lane(LaneId lane, Visit&& visit) const;
  /// Calls visit(const Instance&) for every execution of `activity`.
  template <class Visit>
  void visit_activity(ActivityId activity, Visit&& visit) const;

 private:
  struct Fold {  // of one section
    std::int32_t after = -1, skipped = 0, cycle = 1;
    Picoseconds period = 0;
    [[nodiscard]] bool repeats(std::int32_t held) const { return skipped > 0 && held > after - cycle && held <= after; }
    std::int32_t layer_step = 0;
  };
  /// The same activity one cycle later in the program, with the copy of `i`: to read what `i` waits for. `i` itself when it is no
  /// repetition.
  [[nodiscard]] Instance later_twin(const Instance& i) const;

  const engine::Program* program_;
  const engine::Run* run_;
  std::int32_t ranks_ = 0;
  std::vector<LaneId> lanes_;              // by rank
  std::vector<std::uint32_t> lane_begin_;  // (ranks + 1) into lanes_
  std::vector<Fold> folds_;                // (sections)
  std::vector<std::int32_t> section_of_;   // (activities), empty without sections
  std::vector<SlotId> previous_;           // (slots) on the same lane
  std::vector<ActivityId> waits_;          // explicit ones, all slots one after the other
  std::vector<std::uint32_t> wait_begin_;  // (slots + 1) into waits_
};

template <class Visit>
void History::visit_lane(LaneId lane, Visit&& visit) const {
  const std::vector<engine::Slot>& slots = program_->slots;
  for (SlotId slot = program_->first_of_lane[at(lane)]; slot != kNone;) {
    const Instance here = held(slots[at(slot)].activity);
    const std::int32_t section = section_of(here.activity);
    const engine::Section* s = section == kNone ? nullptr : &program_->sections[at(section)];
    if (s == nullptr || !folds_[at(section)].repeats((here.activity - s->first) / s->stride)) {
      visit(slot, here);
      slot = slots[at(slot)].next;
      continue;
    }
    // The slots of a cycle's copies stand together on a lane; they are repeated as a whole.
    const Fold& fold = folds_[at(section)];
    const ActivityId bound = s->first + (fold.after + 1) * s->stride;
    SlotId next = slot;
    for (std::int32_t k = 0; k <= fold.skipped / fold.cycle; ++k) {
      for (next = slot; next != kNone && slots[at(next)].activity < bound; next = slots[at(next)].next) {
        const std::int32_t copy = (slots[at(next)].activity - s->first) / s->stride;
        visit(next, Instance{slots[at(next)].activity, copy + k * fold.cycle, k * fold.period});
      }
    }
    slot = next;
  }
}

template <class Visit>
void History::visit_activity(ActivityId activity, Visit&& visit) const {
  Instance i = held(activity);
  visit(i);
  const std::int32_t section = section_of(activity);
  if (section == kNone) return;
  const engine::Section& s = program_->sections[at(section)];
  const Fold& fold = folds_[at(section)];
  if (!fold.repeats((activity - s.first) / s.stride)) return;
  for (std::int32_t k = 0; k < fold.skipped / fold.cycle; ++k) {
    i.copy += fold.cycle;
    i.shift += fold.period;
    visit(i);
  }
}

}  // namespace cpfit::timeline
