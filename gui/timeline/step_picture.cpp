#include "gui/timeline/step_picture.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <tuple>
#include <unordered_map>

#include "sim/timeline/critical_path.h"
#include "sim/timeline/exposure.h"
#include "sim/timeline/lanes.h"

namespace cpfit::gui {

namespace {

bool is_kernel(SpanKind kind) {
  return kind == SpanKind::kAttention || kind == SpanKind::kCompute || kind == SpanKind::kOptimizer;
}

/// Spans that two ranks have in common when they do the same: everything but who they talk to.
std::uint64_t fingerprint(const Timeline& timeline, const std::vector<std::int32_t>& lanes) {
  std::uint64_t hash = 1469598103934665603ULL;  // FNV-1a, 64 bits at a time
  const auto mix = [&hash](std::uint64_t value) {
    hash ^= value;
    hash *= 1099511628211ULL;
    hash ^= hash >> 29U;
  };
  for (const std::int32_t index : lanes) {
    const SpanLane& lane = timeline.lanes[static_cast<std::size_t>(index)];
    mix(std::hash<std::string>{}(lane.name));
    for (const LaneSpan& span : lane.spans) {
      mix(static_cast<std::uint64_t>(span.start));
      mix(static_cast<std::uint64_t>(span.end));
      mix(static_cast<std::uint64_t>(span.exposed) ^ (static_cast<std::uint64_t>(span.name) << 48U));
    }
  }
  return hash;
}

bool same_lanes(const Timeline& timeline, const PictureRank& a, const PictureRank& b) {
  if (a.lanes.size() != b.lanes.size() || a.node != b.node || a.stage != b.stage) return false;
  for (std::size_t i = 0; i < a.lanes.size(); ++i) {
    const SpanLane& x = timeline.lanes[static_cast<std::size_t>(a.lanes[i])];
    const SpanLane& y = timeline.lanes[static_cast<std::size_t>(b.lanes[i])];
    const auto alike = [](const LaneSpan& s, const LaneSpan& t) {
      return s.start == t.start && s.end == t.end && s.exposed == t.exposed && s.name == t.name && s.layer == t.layer;
    };
    if (x.name != y.name || !std::equal(x.spans.begin(), x.spans.end(), y.spans.begin(), y.spans.end(), alike)) return false;
  }
  return true;
}

void find_alike(StepPicture& picture) {
  std::unordered_map<std::uint64_t, std::int32_t> first;
  for (std::size_t r = 0; r < picture.ranks.size(); ++r) {
    PictureRank& rank = picture.ranks[r];
    rank.alike = static_cast<std::int32_t>(r);
    const auto [known, fresh] = first.try_emplace(fingerprint(picture.timeline, rank.lanes), rank.alike);
    if (!fresh && same_lanes(picture.timeline, picture.ranks[static_cast<std::size_t>(known->second)], rank)) {
      rank.alike = known->second;
    }
  }
}

/// Kernels of backward before the first gradient kernel of their layer and micro-batch repeat forward (layer_schedule.cpp).
void mark_recomputed(StepPicture& picture) {
  const Timeline& timeline = picture.timeline;
  std::vector<bool> gradient(timeline.names.size());
  for (std::size_t n = 0; n < gradient.size(); ++n) gradient[n] = timeline.names[n].find("gradient") != std::string::npos;
  using Key = std::tuple<std::int16_t, std::int16_t, std::int8_t>;
  for (const PictureRank& rank : picture.ranks) {
    std::map<Key, std::int64_t> begins;  // of backward proper
    const auto each = [&](auto&& visit) {
      for (const std::int32_t index : rank.lanes) {
        const SpanLane& lane = timeline.lanes[static_cast<std::size_t>(index)];
        for (std::size_t s = 0; s < lane.spans.size(); ++s) {
          const LaneSpan& span = lane.spans[s];
          if (span.pass == SpanPass::kBackward && span.layer >= 0 && is_kernel(span.kind)) visit(index, s, span);
        }
      }
    };
    each([&](std::int32_t, std::size_t, const LaneSpan& span) {
      if (!gradient[static_cast<std::size_t>(span.name)]) return;
      const auto [known, fresh] = begins.try_emplace(Key{span.layer, span.micro_batch, span.chunk}, span.start);
      if (!fresh) known->second = std::min(known->second, span.start);
    });
    each([&](std::int32_t index, std::size_t s, const LaneSpan& span) {
      const auto known = begins.find(Key{span.layer, span.micro_batch, span.chunk});
      if (known == begins.end() || span.start >= known->second) return;
      std::vector<std::uint8_t>& marks = picture.marks[static_cast<std::size_t>(index)];
      if (marks.empty()) marks.resize(timeline.lanes[static_cast<std::size_t>(index)].spans.size());
      marks[s] |= kRecomputed;
    });
  }
}

void mark_critical(StepPicture& picture, const timeline::History& history) {
  const timeline::CriticalPath path = timeline::critical_path(history);
  std::vector<std::vector<std::int32_t>> lanes_of(picture.ranks.size());
  for (std::size_t r = 0; r < picture.ranks.size(); ++r) lanes_of[r] = picture.ranks[r].lanes;
  for (const timeline::CriticalLink& link : path.links) {
    for (const std::int32_t index : lanes_of[static_cast<std::size_t>(link.rank)]) {
      const SpanLane& lane = picture.lane(index);
      const std::size_t s = first_span_after(lane, link.start);
      if (s >= lane.spans.size()) continue;
      const LaneSpan& span = lane.spans[s];
      if (span.activity != link.instance.activity || span.copy != link.instance.copy) continue;
      std::vector<std::uint8_t>& marks = picture.marks[static_cast<std::size_t>(index)];
      if (marks.empty()) marks.resize(lane.spans.size());
      marks[s] |= kCritical;
    }
  }
}

void build_sums(StepPicture& picture) {
  const std::size_t lanes = picture.timeline.lanes.size();
  picture.sums.reserve(lanes);
  picture.marks.resize(lanes);
  picture.bytes_before.resize(lanes);
  for (std::size_t l = 0; l < lanes; ++l) {
    const SpanLane& lane = picture.timeline.lanes[l];
    picture.sums.push_back(sums_of(lane));
    if (std::none_of(lane.spans.begin(), lane.spans.end(), [](const LaneSpan& s) { return s.bytes > 0; })) continue;
    std::vector<double>& before = picture.bytes_before[l];
    before.reserve(lane.spans.size() + 1);
    double sum = 0;
    before.push_back(0);
    for (const LaneSpan& span : lane.spans) before.push_back(sum += span.bytes);
  }
}

void collect_lanes(StepPicture& picture) {
  std::int32_t ranks = static_cast<std::int32_t>(picture.ranks.size());
  for (const SpanLane& lane : picture.timeline.lanes) ranks = std::max(ranks, lane.rank + 1);
  for (std::int32_t r = static_cast<std::int32_t>(picture.ranks.size()); r < ranks; ++r) {
    PictureRank rank;
    rank.rank = r;
    rank.ring = r;
    rank.stands_for = {r};
    picture.ranks.push_back(std::move(rank));
  }
  for (std::size_t l = 0; l < picture.timeline.lanes.size(); ++l) {
    const SpanLane& lane = picture.timeline.lanes[l];
    if (lane.spans.empty()) continue;
    PictureRank& rank = picture.ranks[static_cast<std::size_t>(lane.rank)];
    rank.lanes.push_back(static_cast<std::int32_t>(l));
    const LaneSums& sums = picture.sums[l];
    rank.exposed += sums.before.back();  // the last column of the last row
  }
  for (PictureRank& rank : picture.ranks) {
    std::stable_sort(rank.lanes.begin(), rank.lanes.end(),
                     [&](std::int32_t a, std::int32_t b) { return family_of(picture.lane(a)) < family_of(picture.lane(b)); });
  }
}

void count_ring_steps(StepPicture& picture) {
  std::map<std::string, std::int32_t> steps;  // by what stands before the number
  const auto stem = [](const std::string& name) { return name.substr(0, name.find_last_of(' ')); };
  for (const std::string& name : picture.timeline.names) {
    if (const std::int32_t number = number_of(name); number >= 0) {
      std::int32_t& known = steps[stem(name)];
      known = std::max(known, number + 1);
    }
  }
  for (const std::string& name : picture.timeline.names) {
    picture.ring_steps.push_back(number_of(name) >= 0 ? steps[stem(name)] : 0);
  }
}

void finish(StepPicture& picture) {
  build_sums(picture);
  collect_lanes(picture);
  count_ring_steps(picture);
  mark_recomputed(picture);
  find_alike(picture);
}

}  // namespace

std::int64_t StepPicture::cluster_rank(std::int32_t index) const {
  return index >= 0 && static_cast<std::size_t>(index) < ranks.size() ? ranks[static_cast<std::size_t>(index)].rank : index;
}

std::size_t StepPicture::spans() const {
  std::size_t count = 0;
  for (const SpanLane& lane : timeline.lanes) count += lane.spans.size();
  return count;
}

std::shared_ptr<const StepPicture> picture_of(std::shared_ptr<const StepTimeline> step, std::int32_t gpus_per_node) {
  auto picture = std::make_shared<StepPicture>();
  const timeline::History history = step->history();
  picture->timeline = timeline::timeline_of(history);
  for (const timeline::RankAnswer& rank : step->answer.ranks) timeline::mark_exposed(picture->timeline, rank);
  const schedule::SimulatedRanks& simulated = step->step->ranks;
  const Recipe& recipe = step->candidate.recipe;
  for (std::int32_t r = 0; r < simulated.count(); ++r) {
    PictureRank rank;
    rank.rank = simulated.global(r);
    rank.node = static_cast<std::int32_t>(rank.rank / std::max(1, gpus_per_node));
    Coordinate at = simulated.coordinate(r);
    rank.stage = at.pp;
    rank.ring_place = at.cp;
    at.cp = 0;
    rank.ring = simulated.index(at);
    picture->ranks.push_back(std::move(rank));
  }
  for (std::int64_t rank = 0; rank < recipe.world(); ++rank) {
    picture->ranks[static_cast<std::size_t>(simulated.index_of(rank))].stands_for.push_back(rank);
  }
  if (!simulated.every_rank()) {
    std::string what;
    if (recipe.tp > simulated.tp()) what += "one TP lane stands for " + std::to_string(recipe.tp);
    if (recipe.dp > simulated.dp())
      what += (what.empty() ? "" : ", ") + std::string("one DP replica for ") + std::to_string(recipe.dp);
    picture->notes.push_back(std::to_string(simulated.count()) + " of " + std::to_string(recipe.world()) +
                             " ranks are simulated: " + what + ".");
  }
  picture->last_rank = step->answer.rank;
  finish(*picture);
  mark_critical(*picture, history);
  picture->step = std::move(step);
  return picture;
}

std::shared_ptr<const StepPicture> picture_of(Timeline timeline, const std::vector<timeline::RankPlace>& places) {
  auto picture = std::make_shared<StepPicture>();
  picture->timeline = std::move(timeline);
  for (std::size_t r = 0; r < places.size(); ++r) {
    PictureRank rank;
    rank.rank = places[r].rank;
    rank.node = places[r].node;
    rank.stage = places[r].stage;
    rank.ring = static_cast<std::int32_t>(r);
    rank.stands_for = {places[r].rank};
    picture->ranks.push_back(std::move(rank));
  }
  finish(*picture);
  std::int64_t last = -1;
  for (std::size_t r = 0; r < picture->ranks.size(); ++r) {
    for (const std::int32_t lane : picture->ranks[r].lanes) {
      if (picture->lane(lane).spans.back().end <= last) continue;
      last = picture->lane(lane).spans.back().end;
      picture->last_rank = static_cast<std::int32_t>(r);
    }
  }
  return picture;
}

LaneFamily family_of(const SpanLane& lane) {
  if (lane.name.starts_with("compute")) return LaneFamily::kCompute;
  if (lane.name.starts_with("cp")) return LaneFamily::kRing;
  if (lane.name.starts_with("tp")) return LaneFamily::kTp;
  if (lane.name.starts_with("pp")) return LaneFamily::kPp;
  if (lane.name.starts_with("dp")) return LaneFamily::kDp;
  return LaneFamily::kOther;
}

std::string lane_title(const SpanLane& lane) {
  const std::string& name = lane.name;
  switch (family_of(lane)) {
    case LaneFamily::kCompute:
    case LaneFamily::kOther:
      return name;
    case LaneFamily::kRing:
      return "ring" + name.substr(2);
    case LaneFamily::kTp:
      return "TP" + name.substr(2);
    case LaneFamily::kPp:
      return "PP" + name.substr(2);
    case LaneFamily::kDp:
      break;
  }
  return "DP" + name.substr(2);
}

std::int32_t number_of(std::string_view name) {
  const std::size_t blank = name.find_last_of(' ');
  if (blank == std::string_view::npos) return -1;
  const std::string_view digits = name.substr(blank + 1);
  std::int32_t number = -1;
  const auto [end, failed] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  return failed == std::errc{} && end == digits.data() + digits.size() ? number : -1;
}

}  // namespace cpfit::gui
