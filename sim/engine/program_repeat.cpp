// Blocks of a program that repeat: written once more by copying, which takes a tenth of the time that a schedule needs.
#include "model/quantity/index.h"
#include "sim/engine/program_builder.h"

namespace cpfit::engine {

namespace {

bool alike(const Activity& a, const Activity& b) {
  return a.fixed == b.fixed && a.amount == b.amount && a.cap == b.cap && a.pattern == b.pattern && a.slots == b.slots &&
         a.tag == b.tag && a.micro_batch == b.micro_batch && a.chunk == b.chunk && a.host_reads == 0 && b.host_reads == 0 &&
         (a.layer < 0) == (b.layer < 0);
}

bool alike(const Slot& a, const Slot& b) {
  return a.lane == b.lane && a.waits == b.waits && a.hold == b.hold && (a.launch > 0) == (b.launch > 0);
}

}  // namespace

ProgramBuilder::Mark ProgramBuilder::mark() const {
  return {next_id(), static_cast<SlotId>(program_.slots.size()), waits_.size(), launched_};
}

bool ProgramBuilder::repeats(const Mark& first, const Mark& second) const {
  const Mark end = mark();
  const ActivityId activities = end.activity - second.activity;
  const SlotId slots = end.slot - second.slot;
  if (second.activity - first.activity != activities || second.slot - first.slot != slots ||
      second.wait - first.wait != end.wait - second.wait || first.launched.size() != end.launched.size()) {
    return false;
  }
  for (std::size_t rank = 0; rank < end.launched.size(); ++rank) {
    if (end.launched[rank] - second.launched[rank] != second.launched[rank] - first.launched[rank]) return false;
  }
  for (ActivityId a = second.activity; a < end.activity; ++a) {
    const Activity& before = program_.activities[at(a - activities)];
    const Activity& here = program_.activities[at(a)];
    if (!alike(before, here) || before.first_slot + slots != here.first_slot) return false;
  }
  for (SlotId s = second.slot; s < end.slot; ++s) {
    const Slot& before = program_.slots[at(s - slots)];
    const Slot& here = program_.slots[at(s)];
    if (!alike(before, here)) return false;
    if (here.launch == 0) continue;
    const std::size_t rank = at(program_.lanes[at(here.lane)].rank);
    if (here.launch - before.launch != end.launched[rank] - second.launched[rank]) return false;
  }
  const std::size_t waits = end.wait - second.wait;
  for (std::size_t w = second.wait; w < end.wait; ++w) {
    const auto& [before, slot] = waits_[w - waits];
    const ActivityId further = waits_[w].first - before;
    if (waits_[w].second - slot != slots || slot < first.slot) return false;
    if (further != activities && !(further == 0 && before < first.activity)) return false;
  }
  return true;
}

void ProgramBuilder::repeat(const Mark& block, std::int32_t times) {
  const Mark end = mark();
  const ActivityId activities = end.activity - block.activity;
  const SlotId slots = end.slot - block.slot;
  const std::size_t waits = end.wait - block.wait;
  program_.activities.resize(at(end.activity + times * activities));
  program_.slots.resize(at(end.slot + times * slots));
  waits_.resize(end.wait + at(times) * waits);
  for (std::int32_t k = 1; k <= times; ++k) {
    for (ActivityId a = block.activity; a < end.activity; ++a) {
      Activity& copy = program_.activities[at(a + k * activities)];
      copy = program_.activities[at(a)];
      copy.first_slot += k * slots;
      copy.layer = static_cast<std::int16_t>(copy.layer + k * (copy.layer - program_.activities[at(a - activities)].layer));
    }
    for (SlotId s = block.slot; s < end.slot; ++s) {
      const SlotId index = s + k * slots;
      Slot& copy = program_.slots[at(index)];
      copy = program_.slots[at(s)];
      copy.activity += k * activities;
      copy.next = kNone;
      if (copy.launch > 0) copy.launch += k * (copy.launch - program_.slots[at(s - slots)].launch);
      SlotId& last = last_slot_[at(copy.lane)];
      program_.slots[at(last)].next = index;
      last = index;
    }
    for (std::size_t w = block.wait; w < end.wait; ++w) {
      const ActivityId further = waits_[w].first - waits_[w - waits].first;
      waits_[w + at(k) * waits] = {waits_[w].first + k * further, waits_[w].second + k * slots};
    }
  }
  for (std::size_t rank = 0; rank < launched_.size(); ++rank) {
    launched_[rank] += times * (end.launched[rank] - block.launched[rank]);
  }
}

}  // namespace cpfit::engine
