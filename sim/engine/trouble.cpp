#include "sim/engine/trouble.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <utility>
#include <vector>

#include "model/quantity/counted.h"
#include "model/quantity/index.h"
#include "sim/engine/engine.h"

namespace cpfit::engine {

namespace {

std::string ranks_of(const Program& program, const Activity& activity) {
  std::vector<std::int32_t> ranks;
  for (SlotId slot = activity.first_slot; slot < activity.first_slot + activity.slots; ++slot) {
    ranks.push_back(program.lanes[at(program.slots[at(slot)].lane)].rank);
  }
  std::sort(ranks.begin(), ranks.end());
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  if (ranks.empty()) return "no rank";
  if (ranks.size() == 1) return fmt::format("rank {}", ranks[0]);
  if (ranks.size() == 2) return fmt::format("ranks {} and {}", ranks[0], ranks[1]);
  return fmt::format("ranks {}, {} and {} more", ranks[0], ranks[1], ranks.size() - 2);
}

std::string name_of(const Program& program, ResourceId id) {
  const Resource& resource = program.resources[at(id)];
  std::string name = fmt::format("resource {}", id);
  if (resource.link != kNone) name += fmt::format(" (link {})", resource.link);
  if (resource.rank != kNone) name += fmt::format(" (rank {})", resource.rank);
  return name;
}

}  // namespace

void mistake(const char* what, long long value) {
  std::fprintf(stderr, "cpfit: internal error: engine: %s %lld\n", what, value);
  std::abort();
}

std::string describe(const Program& program, ActivityId id) {
  const Activity& activity = program.activities[at(id)];
  const std::string name = activity.tag < program.tags.size() ? program.tags[activity.tag].name : fmt::format("activity {}", id);
  std::string place = ranks_of(program, activity);
  if (activity.layer >= 0) place += fmt::format(", layer {}", activity.layer);
  if (activity.micro_batch >= 0) place += fmt::format(", micro-batch {}", activity.micro_batch);
  if (activity.chunk > 0) place += fmt::format(", chunk {}", activity.chunk);
  return fmt::format("{} ({})", name, place);
}

Problems without_rate(const Program& program) {
  // Per pattern, the first resource that cannot carry anything.
  std::vector<ResourceId> dead(program.pattern_begin.empty() ? 0 : program.pattern_begin.size() - 1, kNone);
  for (std::size_t p = 0; p < dead.size(); ++p) {
    for (std::uint32_t u = program.pattern_begin[p]; u < program.pattern_begin[p + 1] && dead[p] == kNone; ++u) {
      const Use& use = program.uses[u];
      if (use.weight > 0.0 && !(program.resources[at(use.resource)].capacity > 0.0)) dead[p] = use.resource;
    }
  }
  const bool all_carry = std::all_of(dead.begin(), dead.end(), [](ResourceId resource) { return resource == kNone; });
  const auto moves = [](const Activity& activity) { return activity.cap > 0.0 || !(activity.amount > 0.0); };
  if (all_carry && std::all_of(program.activities.begin(), program.activities.end(), moves)) return {};
  std::map<ResourceId, std::pair<ActivityId, std::int64_t>> found;  // kNone: the activity's own cap is zero
  for (std::size_t a = 0; a < program.activities.size(); ++a) {
    const Activity& activity = program.activities[a];
    if (!(activity.amount > 0.0)) continue;
    const ResourceId resource = activity.pattern == kNone ? kNone : dead[at(activity.pattern)];
    if (activity.cap > 0.0 && resource == kNone) continue;
    ++found.try_emplace(resource, static_cast<ActivityId>(a), 0).first->second.second;
  }
  Problems problems;
  for (const auto& [resource, activities] : found) {
    const auto& [first, count] = activities;
    const std::string who =
        describe(program, first) + (count > 1 ? " and " + counted(count - 1, "more activity", "more activities") : std::string());
    if (resource == kNone) {
      problems.push_back({"engine.no_rate", "", fmt::format("{} can never end: the rate it may attain is zero", who),
                          "give the kind of link or kernel it uses a rate above zero"});
    } else {
      problems.push_back(
          {"engine.no_rate", "",
           fmt::format("{} can never end: it goes through {}, whose capacity is zero", who, name_of(program, resource)),
           "give that link a bandwidth above zero, or route around it"});
    }
  }
  return problems;
}

Problem waits_in_cycle(const Program& program, std::span<const std::uint8_t> done) {
  const std::size_t count = program.activities.size();
  std::vector<ActivityId> before(count, kNone);  // the unfinished activity of lowest id that each waits for
  const auto note = [&](SlotId slot, ActivityId by) {
    ActivityId& known = before[at(program.slots[at(slot)].activity)];
    if (known == kNone) known = by;
  };
  ActivityId first = kNone;
  for (std::size_t a = 0; a < count; ++a) {
    if (done[a] != 0) continue;
    const Activity& activity = program.activities[a];
    if (first == kNone) first = static_cast<ActivityId>(a);
    for (SlotId slot = activity.first_slot; slot < activity.first_slot + activity.slots; ++slot) {
      if (program.slots[at(slot)].next != kNone) note(program.slots[at(slot)].next, static_cast<ActivityId>(a));
    }
    for (std::uint32_t r = program.release_begin[a]; r < program.release_begin[a + 1]; ++r) {
      note(program.released[r], static_cast<ActivityId>(a));
    }
  }
  if (first == kNone) mistake("a cycle without unfinished activities", 0);
  std::vector<std::uint8_t> seen(count, 0);
  ActivityId at_now = first;
  while (seen[at(at_now)] == 0) {
    seen[at(at_now)] = 1;
    if (before[at(at_now)] == kNone) mistake("nobody releases activity", at_now);
    at_now = before[at(at_now)];
  }
  std::string cycle = describe(program, at_now);
  ActivityId next = before[at(at_now)];
  int links = 1;
  for (; next != at_now; next = before[at(next)], ++links) {
    if (links < 12) cycle += " waits for " + describe(program, next);
  }
  if (links > 12) cycle += fmt::format(" and {} more, the last", links - 12);
  cycle += " waits for " + describe(program, at_now);
  return {"engine.cycle", "", "activities wait for each other: " + cycle,
          "order them alike on all their lanes, or move one to a lane of its own"};
}

Problem without_period(const Program& program, const Section& section) {
  return {
      "engine.no_period", "",
      fmt::format("the section that begins with {} never reached the same state twice within its {} copies, so it cannot stand "
                  "for {}",
                  describe(program, section.first), section.copies, section.stands_for),
      "build more copies of it"};
}

Problem too_long(const Program& program, std::span<const Picoseconds> start, std::span<const Picoseconds> end) {
  std::string who = "nothing";
  for (std::size_t a = 0; a < start.size(); ++a) {
    if (start[a] < 0 || end[a] >= 0) continue;
    who = describe(program, static_cast<ActivityId>(a));
    break;
  }
  return {"engine.too_long", "", fmt::format("the step takes more than 26 days, where the clock ends; {} is still running", who),
          "look for a rate that is far too low, or a size that is far too large"};
}

}  // namespace cpfit::engine
