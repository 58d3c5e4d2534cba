#include "gui/timeline/span_search.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <sstream>
#include <tuple>

namespace cpfit::gui {

namespace {

std::string lower(std::string_view text) {
  std::string result(text);
  std::transform(result.begin(), result.end(), result.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return result;
}

std::optional<std::int64_t> whole_number(const std::string& text) {
  std::int64_t value = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failed != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

/// Calls visit for every lane that may match.
template <class Visit>
void visit_lanes(const StepPicture& picture, const SpanQuery& query, Visit&& visit) {
  for (const PictureRank& rank : picture.ranks) {
    if (query.rank && rank.rank != *query.rank) continue;
    for (const std::int32_t lane : rank.lanes) visit(lane);
  }
}

}  // namespace

SpanQuery span_query(const std::string& text) {
  SpanQuery query;
  std::istringstream in(lower(text));
  std::vector<std::string> words;
  for (std::string word; in >> word;) words.push_back(word);
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    const std::optional<std::int64_t> number = i + 1 < words.size() ? whole_number(words[i + 1]) : std::nullopt;
    std::optional<std::int64_t>* field = nullptr;
    if (word == "rank") field = &query.rank;
    if (word == "layer") field = &query.layer;
    if (word == "step") field = &query.step;
    if (word == "mb" || word == "micro-batch" || word == "microbatch") field = &query.micro_batch;
    if (field != nullptr && number) {
      *field = number;
      ++i;
    } else if (word == "exposed") {
      query.exposed = true;
    } else if (word == "critical") {
      query.critical = true;
    } else if (word == "recomputed" || word == "recompute") {
      query.recomputed = true;
    } else {
      query.words.push_back(word);
    }
  }
  return query;
}

bool matches(const StepPicture& picture, SpanRef ref, const SpanQuery& query) {
  const LaneSpan& span = span_of(picture, ref);
  const std::string& name = picture.timeline.names[static_cast<std::size_t>(span.name)];
  if (query.exposed && span.exposed <= 0) return false;
  if (query.layer && span.layer != *query.layer) return false;
  if (query.micro_batch && span.micro_batch != *query.micro_batch) return false;
  if (query.step && number_of(name) + 1 != *query.step) return false;
  if (query.critical && !picture.marked(ref.lane, ref.span, kCritical)) return false;
  if (query.recomputed && !picture.marked(ref.lane, ref.span, kRecomputed)) return false;
  const SpanLane& lane = picture.lane(ref.lane);
  if (query.rank && picture.cluster_rank(lane.rank) != *query.rank) return false;
  // A message is called "send …" at both ends: at the receiving one its lane says what it is.
  const bool received = span.peer >= 0 && !span.sends && name.starts_with("send ");
  for (const std::string& word : query.words) {
    if (name.find(word, received ? 5 : 0) == std::string::npos && lower(lane_title(lane)).find(word) == std::string::npos &&
        name_of(span.kind).find(word) == std::string_view::npos && name_of(span.pass).find(word) == std::string_view::npos)
      return false;
  }
  return true;
}

std::optional<SpanRef> find_match(const StepPicture& picture, const SpanQuery& query, std::optional<SpanRef> from,
                                  std::int64_t time, int by) {
  if (query.empty()) return std::nullopt;
  using Place = std::tuple<std::int64_t, std::int32_t, std::size_t>;
  const auto place_of = [&](SpanRef ref) { return Place{span_of(picture, ref).start, ref.lane, ref.span}; };
  const Place origin = from ? place_of(*from) : Place{time, -1, 0};
  std::optional<SpanRef> next, around;  // the nearest beyond the origin; the farthest on the other side
  visit_lanes(picture, query, [&](std::int32_t lane) {
    for (std::size_t s = 0; s < picture.lane(lane).spans.size(); ++s) {
      const SpanRef ref{lane, s};
      if (!matches(picture, ref, query)) continue;
      const Place place = place_of(ref);
      const bool beyond = by >= 0 ? place > origin : place < origin;
      std::optional<SpanRef>& best = beyond ? next : around;
      if (!best || (by >= 0 ? place < place_of(*best) : place > place_of(*best))) best = ref;
    }
  });
  return next ? next : around;
}

std::int64_t count_matches(const StepPicture& picture, const SpanQuery& query) {
  std::int64_t count = 0;
  if (query.empty()) return 0;
  visit_lanes(picture, query, [&](std::int32_t lane) {
    for (std::size_t s = 0; s < picture.lane(lane).spans.size(); ++s) count += matches(picture, SpanRef{lane, s}, query) ? 1 : 0;
  });
  return count;
}

}  // namespace cpfit::gui
