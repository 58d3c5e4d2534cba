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
  if (times < 1) return;
  const Mark end = mark();
  const ActivityId activities = end.activity - block.activity;
  const SlotId slots = end.slot - block.slot;
  const std::size_t waits = end.wait - block.wait;
  const auto from = [](auto& all, std::size_t first) { return all.begin() + static_cast<std::ptrdiff_t>(first); };
  // The block is taken out, moved on by one, and written as often as it repeats.
  std::vector<Activity> activity(from(program_.activities, at(block.activity)), program_.activities.end());
  std::vector<std::int16_t> layers;
  for (ActivityId a = block.activity; a < end.activity; ++a) {
    layers.push_back(static_cast<std::int16_t>(program_.activities[at(a)].layer - program_.activities[at(a - activities)].layer));
  }
  std::vector<std::pair<ActivityId, SlotId>> wait(from(waits_, block.wait), waits_.end());
  std::vector<ActivityId> further;
  for (std::size_t w = block.wait; w < end.wait; ++w) further.push_back(waits_[w].first - waits_[w - waits].first);
  // Behind the last slot of a lane comes the first one of the next block.
  std::vector<SlotId> first_on(program_.lanes.size(), kNone);
  for (SlotId s = end.slot - 1; s >= block.slot; --s) first_on[at(program_.slots[at(s)].lane)] = s;
  for (SlotId s = block.slot; s < end.slot; ++s) {
    Slot& here = program_.slots[at(s)];
    if (here.next == kNone) here.next = first_on[at(here.lane)] + slots;
  }
  std::vector<Slot> slot(from(program_.slots, at(block.slot)), program_.slots.end());
  std::vector<std::int32_t> launches;
  for (SlotId s = block.slot; s < end.slot; ++s) {
    const Slot& here = program_.slots[at(s)];
    launches.push_back(here.launch > 0 ? here.launch - program_.slots[at(s - slots)].launch : 0);
  }
  for (std::int32_t k = 1; k <= times; ++k) {
    for (std::size_t a = 0; a < activity.size(); ++a) {
      activity[a].first_slot += slots;
      activity[a].layer = static_cast<std::int16_t>(activity[a].layer + layers[a]);
    }
    program_.activities.insert(program_.activities.end(), activity.begin(), activity.end());
    for (std::size_t s = 0; s < slot.size(); ++s) {
      slot[s].activity += activities;
      slot[s].next += slots;
      slot[s].launch += launches[s];
    }
    program_.slots.insert(program_.slots.end(), slot.begin(), slot.end());
    for (std::size_t w = 0; w < wait.size(); ++w) {
      wait[w].first += further[w];
      wait[w].second += slots;
    }
    waits_.insert(waits_.end(), wait.begin(), wait.end());
  }
  const SlotId written = static_cast<SlotId>(program_.slots.size());
  for (SlotId s = written - slots; s < written; ++s) {
    Slot& here = program_.slots[at(s)];
    if (here.next < written) continue;
    here.next = kNone;
    last_slot_[at(here.lane)] = s;
  }
  for (std::size_t rank = 0; rank < launched_.size(); ++rank) {
    launched_[rank] += times * (end.launched[rank] - block.launched[rank]);
  }
}

}  // namespace cpfit::engine
