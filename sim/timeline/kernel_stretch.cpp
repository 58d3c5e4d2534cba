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

void Takers::takes_of(const RankSpan& transfer, const RankSpan& kernel, std::size_t taker) {
  const engine::Program& program = history_->program();
  const std::span<const engine::Use> wanted = uses_of(program, history_->activity(kernel.instance).pattern);
  const auto add = [&](Picoseconds from, Picoseconds to, double amount, engine::ResourceId resource) {
    const double capacity = program.resources[static_cast<std::size_t>(resource)].capacity;
    from = std::max(from, kernel.start);
    to = std::min(to, kernel.end);
    if (from < to && capacity > 0 && amount > 0) takes_.push_back({taker, from, to, std::min(1.0, amount / capacity)});
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

/// Communication under way during the kernel, in order of posting.
void Takers::find_takers(const RankSpan& kernel) {
  takers_.clear();
  for (Lane& lane : lanes_) {
    const auto ended = [&](std::size_t i) { return lane.spans[i].end <= kernel.start; };
    if (lane.first > 0 && !ended(lane.first - 1)) lane.first = 0;  // asked for an earlier kernel
    while (lane.first < lane.spans.size() && ended(lane.first)) ++lane.first;
    for (std::size_t i = lane.first; i < lane.spans.size() && lane.spans[i].posted < kernel.end; ++i)
      takers_.push_back(&lane.spans[i]);
  }
  const auto posted_first = [](const RankSpan* a, const RankSpan* b) {
    return a->posted != b->posted ? a->posted < b->posted : a->instance.activity < b->instance.activity;
  };
  std::sort(takers_.begin(), takers_.end(), posted_first);
}

const std::vector<StretchPart>& Takers::split(const RankSpan& kernel, const std::vector<RankSpan>& others) {
  find_takers(kernel);
  takes_.clear();
  parts_.clear();
  for (std::size_t i = 0; i < takers_.size(); ++i) takes_of(*takers_[i], kernel, i);
  if (takes_.empty()) return parts_;
  const Picoseconds stretch = kernel.end - kernel.start - history_->undisturbed(kernel.instance);
  if (takes_.size() == 1 && others.empty()) {
    parts_.push_back({takers_[takes_[0].taker]->instance, std::min(stretch, takes_[0].to - takes_[0].from)});
    return parts_;
  }

  bounds_.assign({kernel.start, kernel.end});
  for (const Take& take : takes_) bounds_.insert(bounds_.end(), {take.from, take.to});
  for (const RankSpan& other : others) {
    bounds_.insert(bounds_.end(),
                   {std::clamp(other.start, kernel.start, kernel.end), std::clamp(other.end, kernel.start, kernel.end)});
  }
  std::sort(bounds_.begin(), bounds_.end());
  weight_.assign(takers_.size(), 0.0);
  longest_.assign(takers_.size(), 0);
  double total = 0;
  for (std::size_t b = 0; b + 1 < bounds_.size(); ++b) {
    const Picoseconds from = bounds_[b];
    const Picoseconds length = bounds_[b + 1] - from;
    if (length == 0) continue;
    const bool shared =
        std::any_of(others.begin(), others.end(), [&](const RankSpan& o) { return o.start <= from && from < o.end; });
    double share = 0;
    std::size_t first = takers_.size();
    for (const Take& take : takes_) {
      if (take.from > from || take.to <= from) continue;
      share += take.share;
      first = std::min(first, take.taker);
    }
    // Two kernels at once slow each other to a half, whoever else takes from them.
    total += static_cast<double>(length) * (shared ? std::max(0.5, share) : share);
    if (shared || first == takers_.size()) continue;
    weight_[first] += static_cast<double>(length) * share;
    longest_[first] += length;
  }

  Picoseconds left = stretch;
  for (std::size_t i = 0; i < takers_.size(); ++i) {
    if (weight_[i] <= 0) continue;
    const auto exact = static_cast<double>(stretch) * weight_[i] / total;
    const Picoseconds part = std::min({static_cast<Picoseconds>(std::llround(exact)), longest_[i], left});
    left -= part;
    if (part > 0) parts_.push_back({takers_[i]->instance, part});
  }
  return parts_;
}

}  // namespace cpfit::timeline
