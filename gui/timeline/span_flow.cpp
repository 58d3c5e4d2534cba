#include "gui/timeline/span_flow.h"

#include <algorithm>
#include <string_view>

#include "sim/timeline/history.h"

namespace cpfit::gui {

namespace {

using timeline::History;
using timeline::Instance;

/// The execution that a span is.
Instance instance_of(const History& history, const LaneSpan& span) {
  const std::int32_t section = history.section_of(span.activity);
  if (section == engine::kNone) return {span.activity, 0, 0};
  const engine::Section& s = history.program().sections[static_cast<std::size_t>(section)];
  return history.copy_of(s.first + (span.activity - s.first) % s.stride, section, span.copy);
}

engine::SlotId slot_on(const History& history, const Instance& instance, std::int32_t rank) {
  const engine::Activity& activity = history.activity(instance);
  for (engine::SlotId slot = activity.first_slot; slot < activity.first_slot + activity.slots; ++slot) {
    if (history.rank_of(slot) == rank) return slot;
  }
  return engine::kNone;
}

/// An execution as a span: on `rank` where it has a slot there, else where it has one.
std::optional<SpanRef> span_for(const StepPicture& picture, const History& history, const Instance& instance, std::int32_t rank) {
  if (instance.activity == engine::kNone) return std::nullopt;
  engine::SlotId slot = slot_on(history, instance, rank);
  if (slot == engine::kNone) slot = history.activity(instance).first_slot;
  return find_span(picture, history.rank_of(slot), instance.activity, instance.copy, history.start(instance));
}

std::optional<SpanRef> cause_by_simulation(const StepPicture& picture, SpanRef ref) {
  const History history = picture.step->history();
  const LaneSpan& span = span_of(picture, ref);
  const Instance instance = instance_of(history, span);
  const std::int32_t rank = picture.lane(ref.lane).rank;
  // The slot that was posted last made the activity start; of a rank's own two that one too.
  const engine::SlotId slot = history.last_posted(instance, engine::kNone);
  if (slot == engine::kNone) return std::nullopt;
  return span_for(picture, history, history.cause(instance, slot).before,
                  span.start > span.posted ? history.rank_of(slot) : rank);
}

/// The span of a rank that ended exactly then, kernels first.
std::optional<SpanRef> ended_at(const StepPicture& picture, std::int32_t rank, std::int64_t time, SpanRef but) {
  for (const std::int32_t lane : picture.ranks[static_cast<std::size_t>(rank)].lanes) {
    const SpanLane& own = picture.lane(lane);
    std::size_t next = first_span_after(own, time);
    for (; next > 0 && own.spans[next - 1].end == time; --next) {
      const SpanRef found{lane, next - 1};
      if (found != but && own.spans[found.span].start < time) return found;
    }
  }
  return std::nullopt;
}

std::optional<SpanRef> cause_by_instants(const StepPicture& picture, SpanRef ref) {
  const LaneSpan& span = span_of(picture, ref);
  const std::int32_t rank = picture.lane(ref.lane).rank;
  if (span.start > span.posted && span.peer >= 0) return ended_at(picture, span.peer, span.start, ref);
  return ended_at(picture, rank, span.posted, ref);
}

bool carries_block(std::string_view name) { return name.starts_with("send kv") || name.starts_with("send dkv"); }

/// Sends of one ring: same pass, layer, micro-batch and chunk, over the given sender's lanes, with the step's number.
std::optional<SpanRef> send_of(const StepPicture& picture, std::int32_t sender, const LaneSpan& like, std::int32_t step) {
  const std::size_t name = static_cast<std::size_t>(like.name);
  for (const std::int32_t lane : picture.ranks[static_cast<std::size_t>(sender)].lanes) {
    const SpanLane& own = picture.lane(lane);
    if (family_of(own) != LaneFamily::kRing) continue;
    // Steps of a ring lie close together: a look around the known one is enough.
    const std::size_t middle = first_span_after(own, like.start);
    const std::size_t reach = 4 * static_cast<std::size_t>(std::max(2, picture.ring_steps[name]));
    const std::size_t from = middle > reach ? middle - reach : 0;
    std::optional<SpanRef> best;
    for (std::size_t s = from; s < std::min(own.spans.size(), middle + reach); ++s) {
      const LaneSpan& other = own.spans[s];
      const std::string& words = picture.timeline.names[static_cast<std::size_t>(other.name)];
      if (!other.sends || !carries_block(words) || number_of(words) != step) continue;
      if (other.pass != like.pass || other.layer != like.layer || other.micro_batch != like.micro_batch ||
          other.chunk != like.chunk)
        continue;
      // Recompute sends the same steps once more in the same pass: the nearest in time is this round's.
      const auto away = [&](std::size_t i) { return std::abs(own.spans[i].start - like.start); };
      if (!best || away(s) < away(best->span)) best = SpanRef{lane, s};
    }
    if (best) return best;
  }
  return std::nullopt;
}

}  // namespace

std::optional<SpanRef> find_span(const StepPicture& picture, std::int32_t rank, std::int32_t activity, std::int32_t copy,
                                 std::int64_t start) {
  if (rank < 0 || static_cast<std::size_t>(rank) >= picture.ranks.size()) return std::nullopt;
  for (const std::int32_t lane : picture.ranks[static_cast<std::size_t>(rank)].lanes) {
    const std::vector<LaneSpan>& spans = picture.lane(lane).spans;
    const auto first = std::partition_point(spans.begin(), spans.end(), [&](const LaneSpan& s) { return s.start < start; });
    for (auto s = first; s != spans.end() && s->start == start; ++s) {
      if (s->activity == activity && s->copy == copy) return SpanRef{lane, static_cast<std::size_t>(s - spans.begin())};
    }
  }
  return std::nullopt;
}

std::optional<SpanRef> partner_of(const StepPicture& picture, SpanRef ref) {
  const LaneSpan& span = span_of(picture, ref);
  if (span.peer < 0) return std::nullopt;
  return find_span(picture, span.peer, span.activity, span.copy, span.start);
}

std::optional<SpanRef> cause_of(const StepPicture& picture, SpanRef ref) {
  const PictureRank& rank = picture.ranks[static_cast<std::size_t>(picture.lane(ref.lane).rank)];
  if (!rank.title.empty()) return std::nullopt;  // a trace does not say what waited for what
  std::optional<SpanRef> cause = picture.step ? cause_by_simulation(picture, ref) : cause_by_instants(picture, ref);
  if (cause && *cause == ref) cause.reset();
  return cause;
}

std::vector<SpanRef> effects_of(const StepPicture& picture, SpanRef ref, std::size_t limit) {
  const LaneSpan& span = span_of(picture, ref);
  std::vector<std::int32_t> ranks{picture.lane(ref.lane).rank};
  if (span.peer >= 0) ranks.push_back(span.peer);
  std::vector<SpanRef> effects;
  for (const std::int32_t rank : ranks) {
    for (const std::int32_t lane : picture.ranks[static_cast<std::size_t>(rank)].lanes) {
      const SpanLane& own = picture.lane(lane);
      // What waited for this one starts at its end or, kept by its lane or its peer, a little later.
      const std::size_t first = first_span_after(own, span.end - 1);
      for (std::size_t s = first; s < std::min(own.spans.size(), first + 3); ++s) {
        const SpanRef candidate{lane, s};
        if (candidate == ref || own.spans[s].start < span.end) continue;
        const std::optional<SpanRef> cause = cause_of(picture, candidate);
        if (!cause) continue;
        const LaneSpan& before = span_of(picture, *cause);
        if (*cause == ref || (before.activity == span.activity && before.copy == span.copy)) effects.push_back(candidate);
      }
    }
  }
  std::stable_sort(effects.begin(), effects.end(),
                   [&](SpanRef a, SpanRef b) { return span_of(picture, a).start < span_of(picture, b).start; });
  if (effects.size() > limit) effects.resize(limit);
  return effects;
}

std::vector<SpanRef> block_hops(const StepPicture& picture, SpanRef ref) {
  const LaneSpan* span = &span_of(picture, ref);
  if (!carries_block(picture.timeline.names[static_cast<std::size_t>(span->name)])) return {};
  if (!span->sends) {
    const std::optional<SpanRef> send = partner_of(picture, ref);
    if (!send) return {};
    ref = *send;
    span = &span_of(picture, ref);
  }
  const std::int32_t step = number_of(picture.timeline.names[static_cast<std::size_t>(span->name)]);
  std::vector<SpanRef> hops{ref};
  // Backward along the ring: what a rank sends in step k came to it in step k - 1.
  SpanRef at = ref;
  for (std::int32_t k = step - 1; k >= 0; --k) {
    const std::int32_t rank = picture.lane(at.lane).rank;
    std::optional<SpanRef> found;
    const std::int32_t ring = picture.ranks[static_cast<std::size_t>(rank)].ring;
    for (std::size_t r = 0; r < picture.ranks.size() && !found; ++r) {
      if (picture.ranks[r].ring != ring) continue;
      const std::optional<SpanRef> send = send_of(picture, static_cast<std::int32_t>(r), span_of(picture, at), k);
      if (send && span_of(picture, *send).peer == rank) found = send;
    }
    if (!found) break;
    hops.insert(hops.begin(), *found);
    at = *found;
  }
  at = ref;
  for (std::int32_t k = step + 1;; ++k) {
    const std::int32_t receiver = span_of(picture, at).peer;
    const std::optional<SpanRef> send = send_of(picture, receiver, span_of(picture, at), k);
    if (!send || hops.size() > picture.ranks.size()) break;
    hops.push_back(*send);
    at = *send;
  }
  return hops;
}

std::vector<SpanRef> chain_before(const StepPicture& picture, SpanRef ref, std::size_t limit) {
  std::vector<SpanRef> chain;
  std::optional<SpanRef> at = cause_of(picture, ref);
  while (at && chain.size() < limit) {
    chain.push_back(*at);
    at = cause_of(picture, *at);
  }
  return chain;
}

}  // namespace cpfit::gui
