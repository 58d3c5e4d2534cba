#include "sim/timeline/kernel_stretch.h"

#include <algorithm>
#include <cmath>
#include <span>

namespace cpfit::timeline {

namespace {

std::span<const engine::Use> uses_of(const engine::Program& program, engine::PatternId pattern) {
  if (pattern == kNone) return {};
  const std::size_t p = static_cast<std::size_t>(pattern);
  const std::uint32_t first = program.pattern_begin[p];
  return std::span<const engine::Use>(program.uses).subspan(first, program.pattern_begin[p + 1] - first);
}

bool draws_on(std::span<const engine::Use> uses, engine::ResourceId resource) {
  return std::any_of(uses.begin(), uses.end(), [&](const engine::Use& use) { return use.resource == resource; });
}

}  // namespace

void Takers::takes_of(const RankSpan& transfer, const RankSpan& kernel, std::size_t taker, std::vector<Take>& takes) const {
  const engine::Program& program = history_->program();
  const std::span<const engine::Use> wanted = uses_of(program, history_->activity(kernel.instance).pattern);
  const auto add = [&](Picoseconds from, Picoseconds to, double amount, engine::ResourceId resource) {
    const double capacity = program.resources[static_cast<std::size_t>(resource)].capacity;
    from = std::max(from, kernel.start);
    to = std::min(to, kernel.end);
    if (from < to && capacity > 0 && amount > 0) takes.push_back({taker, from, to, std::min(1.0, amount / capacity)});
  };
  const engine::HoldId hold = program.slots[static_cast<std::size_t>(transfer.slot)].hold;
  if (hold >= 0) {
    const engine::Hold& held = program.holds[static_cast<std::size_t>(hold)];
    if (draws_on(wanted, held.resource)) add(transfer.posted, transfer.end, held.amount, held.resource);
  }
  const engine::Activity& a = history_->activity(transfer.instance);
  const Picoseconds flows_from = transfer.start + a.fixed;
  for (const engine::Use& use : uses_of(program, a.pattern)) {
    if (flows_from >= transfer.end || !draws_on(wanted, use.resource)) continue;
    const double mean_rate = a.amount / static_cast<double>(transfer.end - flows_from);
    add(flows_from, transfer.end, mean_rate * use.weight, use.resource);
  }
}

std::vector<StretchPart> Takers::split(const RankSpan& kernel, const std::vector<RankSpan>& others) const {
  std::vector<const RankSpan*> takers;
  for (const std::vector<RankSpan>& lane : lanes_) {
    const auto ends_before = [&](const RankSpan& t) { return t.end <= kernel.start; };
    for (auto t = std::partition_point(lane.begin(), lane.end(), ends_before); t != lane.end() && t->posted < kernel.end; ++t) {
      takers.push_back(&*t);
    }
  }
  const auto posted_first = [](const RankSpan* a, const RankSpan* b) {
    return a->posted != b->posted ? a->posted < b->posted : a->instance.activity < b->instance.activity;
  };
  std::sort(takers.begin(), takers.end(), posted_first);
  std::vector<Take> takes;
  for (std::size_t i = 0; i < takers.size(); ++i) takes_of(*takers[i], kernel, i, takes);
  if (takes.empty()) return {};
  const Picoseconds stretch = kernel.end - kernel.start - history_->undisturbed(kernel.instance);
  if (takes.size() == 1 && others.empty()) {
    return {{takers[takes[0].taker]->instance, std::min(stretch, takes[0].to - takes[0].from)}};
  }

  std::vector<Picoseconds> bounds{kernel.start, kernel.end};
  for (const Take& take : takes) bounds.insert(bounds.end(), {take.from, take.to});
  for (const RankSpan& other : others) {
    bounds.insert(bounds.end(),
                  {std::clamp(other.start, kernel.start, kernel.end), std::clamp(other.end, kernel.start, kernel.end)});
  }
  std::sort(bounds.begin(), bounds.end());
  std::vector<double> weight(takers.size(), 0.0);
  std::vector<Picoseconds> longest(takers.size(), 0);
  double total = 0;
  for (std::size_t b = 0; b + 1 < bounds.size(); ++b) {
    const Picoseconds from = bounds[b];
    const Picoseconds length = bounds[b + 1] - from;
    if (length == 0) continue;
    const bool shared =
        std::any_of(others.begin(), others.end(), [&](const RankSpan& o) { return o.start <= from && from < o.end; });
    double share = 0;
    std::size_t first = takers.size();
    for (const Take& take : takes) {
      if (take.from > from || take.to <= from) continue;
      share += take.share;
      first = std::min(first, take.taker);
    }
    // Two kernels at once slow each other to a half, whoever else takes from them.
    total += static_cast<double>(length) * (shared ? std::max(0.5, share) : share);
    if (shared || first == takers.size()) continue;
    weight[first] += static_cast<double>(length) * share;
    longest[first] += length;
  }

  std::vector<StretchPart> parts;
  Picoseconds left = stretch;
  for (std::size_t i = 0; i < takers.size(); ++i) {
    if (weight[i] <= 0) continue;
    const auto exact = static_cast<double>(stretch) * weight[i] / total;
    const Picoseconds part = std::min({static_cast<Picoseconds>(std::llround(exact)), longest[i], left});
    left -= part;
    if (part > 0) parts.push_back({takers[i]->instance, part});
  }
  return parts;
}

}  // namespace cpfit::timeline
