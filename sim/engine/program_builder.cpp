#include "sim/engine/program_builder.h"

#include "model/quantity/index.h"
#include "sim/engine/trouble.h"

namespace cpfit::engine {

namespace {}  // namespace

LaneId ProgramBuilder::lane(std::int32_t rank, LaneKind kind) {
  if (rank < 0) mistake("no rank", rank);
  if (at(rank) >= lane_of_.size()) {
    std::array<LaneId, kLaneKinds> none;
    none.fill(kNone);
    lane_of_.resize(at(rank) + 1, none);
  }
  LaneId& lane = lane_of_[at(rank)][static_cast<std::size_t>(kind)];
  if (lane == kNone) {
    lane = static_cast<LaneId>(program_.lanes.size());
    program_.lanes.push_back({rank, kind});
    program_.first_of_lane.push_back(kNone);
    last_slot_.push_back(kNone);
  }
  return lane;
}

LaneId ProgramBuilder::find_lane(std::int32_t rank, LaneKind kind) const {
  return rank < 0 || at(rank) >= lane_of_.size() ? kNone : lane_of_[at(rank)][static_cast<std::size_t>(kind)];
}

ResourceId ProgramBuilder::resource(const Resource& resource) {
  program_.resources.push_back(resource);
  return static_cast<ResourceId>(program_.resources.size() - 1);
}

PatternId ProgramBuilder::pattern(std::vector<Use> uses) {
  if (uses.empty()) return kNone;
  std::vector<std::tuple<ResourceId, double, double>> key;
  for (const Use& use : uses) {
    if (use.resource < 0 || at(use.resource) >= program_.resources.size()) mistake("no resource", use.resource);
    key.emplace_back(use.resource, use.weight, use.surplus);
  }
  if (program_.pattern_begin.empty()) program_.pattern_begin.push_back(0);
  const auto [found, fresh] = pattern_of_.try_emplace(std::move(key), static_cast<PatternId>(program_.pattern_begin.size() - 1));
  if (fresh) {
    program_.uses.insert(program_.uses.end(), uses.begin(), uses.end());
    program_.pattern_begin.push_back(static_cast<std::uint32_t>(program_.uses.size()));
  }
  return found->second;
}

TagId ProgramBuilder::tag(const Tag& tag) {
  const auto [found, fresh] =
      tag_of_.try_emplace({tag.name, tag.work, tag.axis, tag.pass}, static_cast<TagId>(program_.tags.size()));
  if (fresh) program_.tags.push_back(tag);
  return found->second;
}

HoldId ProgramBuilder::hold(const Hold& hold) {
  if (hold.amount <= 0.0) return -1;
  const auto [found, fresh] = hold_of_.try_emplace({hold.resource, hold.amount}, static_cast<HoldId>(program_.holds.size()));
  if (fresh) program_.holds.push_back(hold);
  return found->second;
}

ActivityId ProgramBuilder::add(const Spec& spec, std::initializer_list<LaneId> lanes) {
  return add(spec, std::span<const LaneId>(lanes.begin(), lanes.size()));
}

ActivityId ProgramBuilder::add(const Spec& spec, std::span<const LaneId> lanes, std::span<const HoldId> holds) {
  const ActivityId id = next_id();
  Activity activity;
  activity.fixed = spec.fixed;
  activity.amount = spec.amount;
  activity.cap = spec.cap;
  activity.pattern = spec.pattern;
  activity.first_slot = static_cast<SlotId>(program_.slots.size());
  activity.slots = static_cast<std::uint16_t>(lanes.size());
  activity.tag = spec.tag;
  activity.layer = static_cast<std::int16_t>(spec.layer);
  activity.micro_batch = static_cast<std::int16_t>(spec.micro_batch);
  activity.chunk = static_cast<std::int16_t>(spec.chunk);
  for (std::size_t i = 0; i < lanes.size(); ++i) {
    const LaneId lane = lanes[i];
    if (lane < 0 || at(lane) >= program_.lanes.size()) mistake("no lane", lane);
    Slot slot;
    slot.activity = id;
    slot.lane = lane;
    slot.hold = holds.empty() ? HoldId{-1} : holds[i];
    const SlotId index = static_cast<SlotId>(program_.slots.size());
    SlotId& last = last_slot_[at(lane)];
    if (last == kNone) {
      program_.first_of_lane[at(lane)] = index;
    } else {
      program_.slots[at(last)].next = index;
      slot.waits = 1;
    }
    last = index;
    program_.slots.push_back(slot);
  }
  program_.activities.push_back(activity);
  return id;
}

SlotId ProgramBuilder::slot_of(ActivityId activity, LaneId lane) const {
  const Activity& a = program_.activities[at(activity)];
  for (SlotId slot = a.first_slot; slot < a.first_slot + a.slots; ++slot) {
    if (program_.slots[at(slot)].lane == lane) return slot;
  }
  mistake("activity has no slot on lane", lane);
}

void ProgramBuilder::wait(ActivityId activity, LaneId lane, ActivityId before) {
  if (before == kNone) return;
  if (before < 0 || before >= next_id()) mistake("no activity", before);
  const SlotId slot = slot_of(activity, lane);
  waits_.emplace_back(before, slot);
  ++program_.slots[at(slot)].waits;
}

void ProgramBuilder::wait(ActivityId activity, ActivityId before) {
  if (before == kNone) return;
  const Activity& a = program_.activities[at(activity)];
  for (SlotId slot = a.first_slot; slot < a.first_slot + a.slots; ++slot) {
    waits_.emplace_back(before, slot);
    ++program_.slots[at(slot)].waits;
  }
}

void ProgramBuilder::launch(ActivityId activity, LaneId lane, std::int32_t kernels) {
  const std::size_t rank = at(program_.lanes[at(lane)].rank);
  if (launched_.size() <= rank) launched_.resize(rank + 1, 0);
  program_.slots[at(slot_of(activity, lane))].launch = launched_[rank] + 1;
  launched_[rank] += kernels;
}

void ProgramBuilder::host_reads(ActivityId activity) {
  if (activity < 0 || activity >= next_id()) mistake("no activity", activity);
  Activity& a = program_.activities[at(activity)];
  a.host_reads = 1;
  for (SlotId slot = a.first_slot; slot < a.first_slot + a.slots; ++slot) {
    const std::size_t rank = at(program_.lanes[at(program_.slots[at(slot)].lane)].rank);
    if (rank < launched_.size()) launched_[rank] = 0;
  }
}

ActivityId ProgramBuilder::last_on(LaneId lane) const {
  const SlotId slot = last_slot_[at(lane)];
  return slot == kNone ? kNone : program_.slots[at(slot)].activity;
}

void ProgramBuilder::expect(std::int64_t activities) {
  const auto room = [activities](double each) { return static_cast<std::size_t>(static_cast<double>(activities) * each); };
  program_.activities.reserve(room(1.0));
  program_.slots.reserve(room(2.0));  // messages and collectives have several
  waits_.reserve(room(2.5));
}

void ProgramBuilder::section(const Section& section) { program_.sections.push_back(section); }

Program ProgramBuilder::take() {
  // Counting sort of the waits by the activity that releases them; stable, so the order is that of the calls. While they are
  // put in place, begin[i + 1] is where the next one of i belongs: in the end where those of i + 1 begin.
  std::vector<std::uint32_t>& begin = program_.release_begin;
  begin.assign(program_.activities.size() + 2, 0);
  for (const auto& [before, slot] : waits_) ++begin[at(before) + 2];
  for (std::size_t i = 2; i < begin.size(); ++i) begin[i] += begin[i - 1];
  program_.released.resize(waits_.size());
  for (const auto& [before, slot] : waits_) program_.released[begin[at(before) + 1]++] = slot;
  begin.pop_back();
  if (program_.pattern_begin.empty()) program_.pattern_begin.push_back(0);
  Program done = std::move(program_);
  *this = ProgramBuilder();
  return done;
}

}  // namespace cpfit::engine
