#include "sim/plan/memory_stack.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "sim/plan/step_memory.h"
#include "sim/timeline/memory_change.h"

namespace cpfit {

namespace {

using timeline::MemoryChange;
using ByComponent = std::array<std::int64_t, kComponentCount>;

std::vector<Component> occurring(const ByComponent& resident, const std::vector<MemoryChange>& changes) {
  std::array<bool, kComponentCount> seen{};
  for (std::size_t c = 0; c < resident.size(); ++c) seen[c] = resident[c] > 0;
  for (const MemoryChange& change : changes) seen[static_cast<std::size_t>(change.tensor.component)] = true;
  std::vector<Component> components;
  for (std::size_t c = 0; c < seen.size(); ++c) {
    if (seen[c]) components.push_back(static_cast<Component>(c));
  }
  return components;
}

/// What is alive after the first `count` changes, by name.
std::vector<MemoryStack::Part> alive_by_name(const std::vector<MemoryChange>& changes, std::size_t count,
                                             const std::vector<std::string>& names) {
  std::map<std::int32_t, MemoryStack::Part> parts;
  for (std::size_t i = 0; i < count; ++i) {
    MemoryStack::Part& part = parts[changes[i].tensor.name];
    part.bytes += changes[i].tensor.bytes;
    part.tensors += changes[i].tensor.bytes > 0 ? 1 : -1;
  }
  std::vector<MemoryStack::Part> result;
  for (auto& [name, part] : parts) {
    if (part.bytes <= 0) continue;
    part.name = names[static_cast<std::size_t>(name)];
    result.push_back(part);
  }
  std::stable_sort(result.begin(), result.end(), [](const auto& a, const auto& b) { return a.bytes > b.bytes; });
  return result;
}

}  // namespace

std::optional<MemoryStack> memory_stack(const Workbench& bench, const Training& training, const StepTimeline& timeline,
                                        std::int32_t rank) {
  const ScreenContext context = bench.context(training);
  const Recipe& recipe = timeline.candidate.recipe;
  const Outcome<ResolvedLayout> layout = resolve_layout(context.model, recipe);
  if (!layout.ok()) return std::nullopt;
  const MemoryCase at{context.model, training, recipe, context.rules, context.cluster.gpu, *layout};
  const timeline::MemoryProgram memory = memory_program(at, *timeline.step);
  const std::vector<MemoryChange> changes = timeline::memory_changes(timeline.history(), memory, rank);

  MemoryStack stack;
  stack.rank = rank;
  ByComponent now{};
  const std::int32_t stage = timeline.step->ranks.coordinate(rank).pp;
  const std::array<Bytes, kComponentCount> between = allocated_at(at, stage, Moment::kBetweenSteps);
  for (std::size_t c = 0; c < now.size(); ++c) {
    now[c] = std::llround(between[c].value());
    stack.resident += now[c];
  }
  stack.components = occurring(now, changes);
  std::int64_t total = stack.resident;
  const auto point = [&](timeline::Picoseconds time) {
    stack.times.push_back(time);
    stack.totals.push_back(total);
    for (const Component component : stack.components) stack.parts.push_back(now[static_cast<std::size_t>(component)]);
  };
  point(0);
  std::size_t changes_at_peak = 0;
  for (std::size_t i = 0; i < changes.size(); ++i) {
    now[static_cast<std::size_t>(changes[i].tensor.component)] += changes[i].tensor.bytes;
    total += changes[i].tensor.bytes;
    if (i + 1 < changes.size() && timeline::counts_with(changes[i], changes[i + 1])) continue;
    point(changes[i].time);
    if (total > stack.totals[stack.peak]) {
      stack.peak = stack.totals.size() - 1;
      changes_at_peak = i + 1;
    }
  }
  stack.at_peak = alive_by_name(changes, changes_at_peak, memory.names);
  return stack;
}

}  // namespace cpfit
