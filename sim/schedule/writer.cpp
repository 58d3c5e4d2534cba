#include "sim/schedule/writer.h"

#include <algorithm>
#include <cmath>

namespace cpfit::schedule {

using engine::ActivityId;
using engine::LaneId;
using engine::LaneKind;
using engine::Spec;
using engine::TagId;

namespace {

/// Kernels that are timed by the bytes they move. Where neighbouring kernels are one activity it counts as a product.
bool memory_bound(engine::Work work) {
  return work == engine::Work::kElementwise || work == engine::Work::kMerge || work == engine::Work::kEmbedding ||
         work == engine::Work::kOptimizer;
}

}  // namespace

TagId Writer::tag(const std::string& name, engine::Work work, const Place& place, engine::TrafficAxis axis) {
  engine::Tag tag;
  tag.name = name;
  tag.work = work;
  tag.axis = axis;
  tag.pass = place.pass;
  return program_.tag(tag);
}

Spec Writer::spec(TagId tag, const Transfer& transfer, const Place& place) const {
  Spec spec;
  spec.tag = tag;
  spec.fixed = transfer.fixed;
  spec.amount = transfer.amount;
  spec.cap = transfer.cap;
  spec.pattern = transfer.pattern;
  spec.layer = place.layer;
  spec.micro_batch = place.micro_batch;
  spec.chunk = place.chunk;
  return spec;
}

ActivityId Writer::kernel(std::int32_t rank, LaneKind kind, TagId tag, engine::Picoseconds time, std::int32_t launches,
                          const Place& place) {
  Transfer work;
  const double slowness = slowness_[static_cast<std::size_t>(rank)];
  work.amount = slowness == 1.0 ? static_cast<double>(time) : std::ceil(static_cast<double>(time) * slowness);
  work.pattern = memory_bound(program_.tag_of(tag).work) ? network_.memory_kernel(rank) : network_.kernel(rank);
  const LaneId lane = program_.lane(rank, kind);
  const ActivityId id = program_.add(spec(tag, work, place), {lane});
  if (launches > 0) program_.launch(id, lane, launches);
  if (kind == LaneKind::kCompute) take_gates(rank, id, lane);
  return id;
}

void Writer::gate(std::int32_t rank, ActivityId activity) {
  std::vector<ActivityId>& gates = gates_[static_cast<std::size_t>(rank)];
  if (activity != engine::kNone && std::find(gates.begin(), gates.end(), activity) == gates.end()) gates.push_back(activity);
}

void Writer::wait_gates(std::int32_t rank, ActivityId activity, LaneId lane) {
  for (const ActivityId before : gates_[static_cast<std::size_t>(rank)]) program_.wait(activity, lane, before);
}

void Writer::take_gates(std::int32_t rank, ActivityId activity, LaneId lane) {
  wait_gates(rank, activity, lane);
  gates_[static_cast<std::size_t>(rank)].clear();
}

ActivityId Writer::last(std::int32_t rank) { return program_.last_on(program_.lane(rank, LaneKind::kCompute)); }

ActivityId Writer::message(std::int32_t from, std::int32_t to, LaneKind send, LaneKind receive, TagId tag,
                           const Transfer& transfer, const Place& place) {
  const LaneId lanes[] = {program_.lane(from, send), program_.lane(to, receive)};
  const engine::HoldId holds[] = {network_.hold(from, transfer), engine::HoldId{-1}};
  return program_.add(spec(tag, transfer, place), lanes, holds);
}

ActivityId Writer::posted(std::span<const std::int32_t> members, LaneKind kind, TagId tag, const Transfer& transfer,
                          const Place& place) {
  lanes_.clear();
  holds_.clear();
  for (const std::int32_t member : members) {
    lanes_.push_back(program_.lane(member, kind));
    const bool no_sms = transfer.empty() || transfer.by_copy_engine;
    holds_.push_back(no_sms ? engine::HoldId{-1} : network_.hold(member, transfer));
  }
  return program_.add(spec(tag, transfer, place), lanes_, holds_);
}

ActivityId Writer::collective(std::span<const std::int32_t> members, LaneKind kind, TagId tag, const Transfer& transfer,
                              const Place& place) {
  const ActivityId id = posted(members, kind, tag, transfer, place);
  for (const std::int32_t member : members) {
    const LaneId lane = program_.lane(member, kind);
    program_.wait(id, lane, last(member));
    wait_gates(member, id, lane);
  }
  return id;
}

ActivityId Writer::waited_collective(std::span<const std::int32_t> members, LaneKind kind, TagId tag, const Transfer& transfer,
                                     const Place& place) {
  const ActivityId id = collective(members, kind, tag, transfer, place);
  for (const std::int32_t member : members) {
    gates_[static_cast<std::size_t>(member)].clear();  // the collective waited for them already
    gate(member, id);
  }
  return id;
}

}  // namespace cpfit::schedule
