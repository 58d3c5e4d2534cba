#include "sim/timeline/history.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>

namespace cpfit::timeline {

namespace {

[[noreturn]] void mistake(const char* what, std::size_t a, std::size_t b) {
  std::fprintf(stderr, "cpfit: internal error: timeline: %s: %zu and %zu\n", what, a, b);
  std::abort();
}

}  // namespace

History::History(const engine::Program& program, const engine::Run& run) : program_(&program), run_(&run) {
  const std::size_t activities = program.activities.size();
  if (run.start.size() != activities || run.end.size() != activities)
    mistake("times of activities", run.start.size(), activities);
  if (run.posted.size() != program.slots.size()) mistake("times of slots", run.posted.size(), program.slots.size());

  for (const engine::Lane& lane : program.lanes) ranks_ = std::max(ranks_, lane.rank + 1);
  for (std::int32_t rank = 0; rank < ranks_; ++rank) lane_begin_.push_back(0);
  lane_begin_.push_back(0);
  for (const engine::Lane& lane : program.lanes) ++lane_begin_[at(lane.rank) + 1];
  for (std::size_t i = 1; i < lane_begin_.size(); ++i) lane_begin_[i] += lane_begin_[i - 1];
  lanes_.resize(program.lanes.size());
  std::vector<std::uint32_t> place(lane_begin_.begin(), lane_begin_.end() - 1);
  for (std::size_t lane = 0; lane < program.lanes.size(); ++lane) {
    lanes_[place[at(program.lanes[lane].rank)]++] = static_cast<LaneId>(lane);
  }

  if (!program.sections.empty()) section_of_.assign(activities, kNone);
  folds_.resize(program.sections.size());
  for (std::size_t s = 0; s < program.sections.size(); ++s) {
    const engine::Section& section = program.sections[s];
    const std::size_t size = at(section.stride) * at(section.copies);
    if (section.stride < 1 || at(section.first) + size > activities) mistake("section beyond the program", s, activities);
    std::fill_n(section_of_.begin() + section.first, size, static_cast<std::int32_t>(s));
    if (section.copies < 2) continue;
    for (ActivityId a = section.first; a < section.first + section.stride; ++a) {
      const std::int32_t layer = program.activities[at(a)].layer;
      if (layer < 0) continue;
      folds_[s].layer_step = program.activities[at(a + section.stride)].layer - layer;
      break;
    }
  }
  for (const engine::Jump& jump : run.jumps) {
    Fold& fold = folds_[at(jump.section)];
    if (fold.skipped != 0) mistake("section jumped twice", at(jump.section), at(jump.after));
    fold.after = jump.after;
    fold.skipped = jump.skipped;
    fold.period = jump.period;
    fold.cycle = jump.cycle;
    if (jump.cycle < 1 || jump.skipped % jump.cycle != 0)
      mistake("skipped copies and their cycle", at(jump.skipped), at(jump.cycle));
  }

  previous_.assign(program.slots.size(), kNone);
  for (std::size_t slot = 0; slot < program.slots.size(); ++slot) {
    if (program.slots[slot].next != kNone) previous_[at(program.slots[slot].next)] = static_cast<SlotId>(slot);
  }
  // A counting sort: while waits are put in place, wait_begin_[i + 1] is where the next one of slot i belongs.
  wait_begin_.assign(program.slots.size() + 2, 0);
  for (const SlotId slot : program.released) ++wait_begin_[at(slot) + 2];
  for (std::size_t i = 2; i < wait_begin_.size(); ++i) wait_begin_[i] += wait_begin_[i - 1];
  waits_.resize(program.released.size());
  std::uint32_t r = 0;
  for (std::size_t a = 0; a + 1 < program.release_begin.size(); ++a) {
    for (const std::uint32_t end = program.release_begin[a + 1]; r < end; ++r) {
      waits_[wait_begin_[at(program.released[r]) + 1]++] = static_cast<ActivityId>(a);
    }
  }
  wait_begin_.pop_back();
}

std::span<const LaneId> History::lanes_of(std::int32_t rank) const {
  return std::span<const LaneId>(lanes_).subspan(lane_begin_[at(rank)], lane_begin_[at(rank) + 1] - lane_begin_[at(rank)]);
}

std::int32_t History::layer(const Instance& i) const {
  const std::int32_t section = section_of(i.activity);
  if (section == kNone || activity(i).layer < 0) return activity(i).layer;
  const engine::Section& s = program_->sections[at(section)];
  const ActivityId first = s.first + (i.activity - s.first) % s.stride;
  return program_->activities[at(first)].layer + i.copy * folds_[at(section)].layer_step;
}

Picoseconds History::undisturbed(const Instance& i) const {
  const engine::Activity& a = activity(i);
  return a.fixed + (a.amount > 0 ? static_cast<Picoseconds>(std::ceil(a.amount / a.cap)) : 0);
}

Instance History::held(ActivityId activity) const {
  const std::int32_t section = section_of(activity);
  if (section == kNone) return {activity, 0, 0};
  const engine::Section& s = program_->sections[at(section)];
  const Fold& fold = folds_[at(section)];
  const std::int32_t copy = (activity - s.first) / s.stride;
  return {activity, fold.skipped > 0 && copy > fold.after ? copy + fold.skipped : copy, 0};
}

Instance History::copy_of(ActivityId in_first_copy, std::int32_t section, std::int32_t copy) const {
  const Fold& fold = folds_[at(section)];
  std::int32_t held = copy;
  std::int32_t repeat = 0;
  if (fold.skipped > 0 && copy > fold.after + fold.skipped) {
    held = copy - fold.skipped;
  } else if (fold.skipped > 0 && copy > fold.after) {
    const std::int32_t k = copy - fold.after - 1;
    held = fold.after - fold.cycle + 1 + k % fold.cycle;
    repeat = k / fold.cycle + 1;
  }
  return {in_first_copy + held * program_->sections[at(section)].stride, copy, repeat * fold.period};
}

Instance History::referred(const Instance& from, ActivityId other) const {
  const std::int32_t section = section_of(from.activity);
  if (section == kNone || section_of(other) != section) return held(other);
  const engine::Section& s = program_->sections[at(section)];
  const std::int32_t distance = (from.activity - s.first) / s.stride - (other - s.first) / s.stride;
  return copy_of(s.first + (other - s.first) % s.stride, section, from.copy - distance);
}

Instance History::later_twin(const Instance& i) const {
  const std::int32_t section = section_of(i.activity);
  if (section == kNone || i.shift == 0) return i;
  const engine::Section& s = program_->sections[at(section)];
  const std::int32_t held = (i.activity - s.first) / s.stride + folds_[at(section)].cycle;
  return held < s.copies ? Instance{s.first + (i.activity - s.first) % s.stride + held * s.stride, i.copy, 0} : i;
}

Cause History::cause(const Instance& i, SlotId slot) const {
  // What the first copy waits for may lie before the section; a repetition of it waits for the copy before, as copies that the
  // program holds behind it do.
  const Instance twin = later_twin(i);
  slot += activity(twin).first_slot - activity(i).first_slot;
  Cause last;
  const auto consider = [&](ActivityId other, bool on_lane) {
    const Instance before = referred(twin, other);
    const Picoseconds ended = end(before);
    const bool first = last.before.activity == kNone;
    const bool earlier_id = ended == last.end && !last.on_lane && other < last.before.activity;
    if (first || ended > last.end || earlier_id) last = {before, ended, on_lane};
  };
  const SlotId previous = previous_[at(slot)];
  if (previous != kNone) consider(program_->slots[at(previous)].activity, true);
  for (std::uint32_t w = wait_begin_[at(slot)]; w < wait_begin_[at(slot) + 1]; ++w) consider(waits_[w], false);
  return last;
}

SlotId History::last_posted(const Instance& i, std::int32_t rank) const {
  const engine::Activity& a = activity(i);
  SlotId last = kNone;
  for (SlotId slot = a.first_slot; slot < a.first_slot + a.slots; ++slot) {
    if (rank != kNone && rank_of(slot) != rank) continue;
    if (last == kNone || run_->posted[at(slot)] > run_->posted[at(last)]) last = slot;
  }
  return last;
}

}  // namespace cpfit::timeline
