#include "gui/timeline/timeline_state.h"

#include <algorithm>
#include <cmath>

#include "gui/timeline/span_flow.h"
#include "gui/timeline/span_search.h"

namespace cpfit::gui {

namespace {

constexpr double kFitMargin = 0.15;  // of a fitted span, on both sides

/// Picoseconds of any step are whole in a double.
ViewPlace place_of(TimeWindow window) {
  ViewPlace place;
  place.view = QStringLiteral("timeline");
  place.from = static_cast<double>(window.from);
  place.to = static_cast<double>(window.to);
  return place;
}
TimeWindow window_of(const ViewPlace& place) { return {std::llround(place.from), std::llround(place.to)}; }

/// The same span in another picture: by rank of the cluster, lane's name, span's name, layer, micro-batch and copy.
std::optional<SpanRef> same_span(const StepPicture& old, SpanRef ref, const StepPicture& now) {
  const SpanLane& lane = old.lane(ref.lane);
  const LaneSpan& span = span_of(old, ref);
  const std::int64_t rank = old.cluster_rank(lane.rank);
  const std::string& name = old.timeline.names[static_cast<std::size_t>(span.name)];
  for (const PictureRank& candidate : now.ranks) {
    if (candidate.rank != rank) continue;
    for (const std::int32_t index : candidate.lanes) {
      const SpanLane& other = now.lane(index);
      if (other.name != lane.name) continue;
      for (std::size_t s = 0; s < other.spans.size(); ++s) {
        const LaneSpan& x = other.spans[s];
        if (x.layer == span.layer && x.micro_batch == span.micro_batch && x.pass == span.pass && x.chunk == span.chunk &&
            now.timeline.names[static_cast<std::size_t>(x.name)] == name)
          return SpanRef{index, s};
      }
    }
  }
  return std::nullopt;
}

}  // namespace

void TimelineState::set_picture(std::shared_ptr<const StepPicture> picture) {
  const std::shared_ptr<const StepPicture> old = picture_;
  picture_ = std::move(picture);
  if (!picture_) {
    selected_.reset();
    range_.reset();
    lay_out();
    return;
  }
  const double before = old ? static_cast<double>(old->timeline.step) : 0, now = static_cast<double>(step());
  if (std::abs(before - now) > 0.1 * now) {
    window_ = whole(step());
    history_ = {};
    history_.visit(place_of(window_));
    range_.reset();
  } else {
    window_ = panned(zoomed(window_, 1.0, 0.5, step()), 0, step());
    history_.visit(place_of(window_), true);
    if (range_ && (range_->time.to > step() || static_cast<std::size_t>(range_->rank) >= picture_->ranks.size())) range_.reset();
  }
  if (selected_) selected_ = old ? same_span(*old, *selected_, *picture_) : std::nullopt;
  lay_out();
}

void TimelineState::set_axis(std::int64_t longest) {
  const bool all = window_ == whole(step());
  axis_ = longest;
  window_ = all ? whole(step()) : panned(zoomed(window_, 1.0, 0.5, step()), 0, step());
  history_.visit(place_of(window_), true);
}

void TimelineState::set_metrics(RowMetrics metrics) {
  metrics_ = metrics;
  lay_out();
}

void TimelineState::lay_out() {
  const std::optional<TimelineRow> before = current_row_ >= 0 && static_cast<std::size_t>(current_row_) < layout_.rows.size()
                                                ? std::optional(layout_.rows[static_cast<std::size_t>(current_row_)])
                                                : std::nullopt;
  layout_ = picture_ ? timeline_layout(*picture_, choices_, metrics_) : TimelineLayout{};
  current_row_ = -1;
  if (!before) return;
  for (std::size_t r = 0; r < layout_.rows.size(); ++r) {
    const TimelineRow& row = layout_.rows[r];
    const bool same =
        row.kind == before->kind && row.rank == before->rank && row.lane == before->lane && row.node == before->node;
    const bool header = before->kind == RowKind::kLane && row.kind == RowKind::kRank && row.rank == before->rank;
    if (same || (header && current_row_ < 0)) current_row_ = static_cast<std::ptrdiff_t>(r);
    if (same) return;
  }
}

void TimelineState::set_choices(RowChoices choices) {
  choices_ = std::move(choices);
  lay_out();
}

void TimelineState::set_current_row(std::ptrdiff_t row) {
  current_row_ = row >= 0 && static_cast<std::size_t>(row) < layout_.rows.size() ? row : -1;
}

void TimelineState::move_row(int by) {
  if (layout_.rows.empty()) return;
  const std::ptrdiff_t last = static_cast<std::ptrdiff_t>(layout_.rows.size()) - 1;
  current_row_ = current_row_ < 0 ? (by > 0 ? 0 : last) : std::clamp<std::ptrdiff_t>(current_row_ + by, 0, last);
  const TimelineRow& row = layout_.rows[static_cast<std::size_t>(current_row_)];
  if (row.kind != RowKind::kLane || !selected_) return;
  const LaneSpan& span = span_of(*picture_, *selected_);
  selected_ = span_nearest(*picture_, row.lane, span.start + (span.end - span.start) / 2);
}

void TimelineState::toggle_row() {
  if (current_row_ < 0) return;
  const TimelineRow row = layout_.rows[static_cast<std::size_t>(current_row_)];
  const auto toggle = [](auto& set, auto key) {
    if (set.erase(key) == 0) set.insert(key);
  };
  switch (row.kind) {
    case RowKind::kNode:
      toggle(choices_.collapsed_nodes, row.node);
      break;
    case RowKind::kRank:
    case RowKind::kLane:
      toggle(choices_.collapsed_ranks, picture_->cluster_rank(row.rank));
      break;
    case RowKind::kMore:
      choices_.open_rings.insert(picture_->ranks[static_cast<std::size_t>(row.ring)].rank);
      break;
  }
  lay_out();
}

void TimelineState::pin_row() {
  if (current_row_ < 0) return;
  const std::int32_t index = layout_.rows[static_cast<std::size_t>(current_row_)].rank;
  if (index < 0) return;
  const std::int64_t rank = picture_->cluster_rank(index);
  if (choices_.pinned_ranks.erase(rank) == 0) choices_.pinned_ranks.insert(rank);
  lay_out();
}

void TimelineState::show_all_ranks(bool all) {
  if (!picture_) return;
  choices_.open_rings.clear();
  if (all) {
    for (const PictureRank& rank : picture_->ranks) {
      choices_.open_rings.insert(picture_->ranks[static_cast<std::size_t>(rank.ring)].rank);
    }
  }
  lay_out();
}

bool TimelineState::shows_all_ranks() const {
  return std::none_of(layout_.rows.begin(), layout_.rows.end(), [](const TimelineRow& r) { return r.kind == RowKind::kMore; });
}

void TimelineState::remember() { history_.visit(place_of(window_), true); }

void TimelineState::settle() { history_.visit(place_of(window_)); }

void TimelineState::set_window(TimeWindow window) {
  if (window == window_) return;
  window_ = window;
  remember();
}

void TimelineState::zoom(double factor, double share) { set_window(zoomed(window_, factor, share, step())); }
void TimelineState::pan(double shares) { set_window(panned(window_, shares, step())); }

void TimelineState::fit_all() {
  settle();
  set_window(whole(step()));
  settle();
}

void TimelineState::fit_selection() {
  if (!picture_) return;
  settle();
  if (selected_) {
    const LaneSpan& span = span_of(*picture_, *selected_);
    set_window(fitted(span.start, span.end, kFitMargin, step()));
  } else if (range_) {
    set_window(fitted(range_->time.from, range_->time.to, 0.02, step()));
  } else {
    set_window(whole(step()));
  }
  settle();
}

bool TimelineState::back() {
  const std::optional<ViewPlace> place = history_.back();
  if (place) window_ = window_of(*place);
  return place.has_value();
}

bool TimelineState::forward() {
  const std::optional<ViewPlace> place = history_.forward();
  if (place) window_ = window_of(*place);
  return place.has_value();
}

void TimelineState::select(std::optional<SpanRef> span, bool reveal) {
  if (span && (!picture_ || !exists(*picture_, *span))) span.reset();
  selected_ = span;
  if (!span) return;
  const std::int32_t rank = picture_->lane(span->lane).rank;
  if (reveal && layout_.row_of_lane(span->lane) < 0) {
    show_rank(*picture_, rank, choices_);
    lay_out();
  }
  if (const std::ptrdiff_t row = layout_.row_of_lane(span->lane); row >= 0) current_row_ = row;
  if (reveal) {
    const LaneSpan& chosen = span_of(*picture_, *span);
    set_window(revealed(window_, chosen.start, chosen.end, step()));
  }
}

void TimelineState::step_span(int by) {
  if (!picture_) return;
  if (!selected_) {
    std::int32_t lane = current_row_ >= 0 ? layout_.rows[static_cast<std::size_t>(current_row_)].lane : -1;
    for (std::size_t r = 0; lane < 0 && r < layout_.rows.size(); ++r) lane = layout_.rows[r].lane;
    const std::optional<SpanRef> first = lane < 0 ? std::nullopt : span_nearest(*picture_, lane, window_.from);
    return select(first, true);
  }
  const std::ptrdiff_t count = static_cast<std::ptrdiff_t>(picture_->lane(selected_->lane).spans.size());
  const std::ptrdiff_t next = std::clamp<std::ptrdiff_t>(static_cast<std::ptrdiff_t>(selected_->span) + by, 0, count - 1);
  select(SpanRef{selected_->lane, static_cast<std::size_t>(next)}, true);
}

void TimelineState::step_flow(int by) {
  if (!picture_ || !selected_) return;
  if (by < 0) {
    if (const std::optional<SpanRef> cause = cause_of(*picture_, *selected_)) select(cause, true);
    return;
  }
  const std::vector<SpanRef> effects = effects_of(*picture_, *selected_, 1);
  if (!effects.empty()) {
    select(effects.front(), true);
  } else if (const std::optional<SpanRef> partner = partner_of(*picture_, *selected_)) {
    select(partner, true);
  }
}

bool TimelineState::find(const std::string& query, int by) {
  if (!picture_) return false;
  const std::optional<SpanRef> found = find_match(*picture_, span_query(query), selected_, window_.from, by);
  if (!found) return false;
  settle();
  select(found, true);
  settle();
  return true;
}

void TimelineState::set_range(std::optional<DraggedRange> range) {
  if (range) {
    if (range->time.from > range->time.to) std::swap(range->time.from, range->time.to);
    range->time.from = std::clamp<std::int64_t>(range->time.from, 0, step());
    range->time.to = std::clamp<std::int64_t>(range->time.to, 0, step());
    if (range->time.length() <= 0) range.reset();
  }
  range_ = range;
}

void TimelineState::range_from_selection() {
  if (!picture_ || !selected_) return;
  const LaneSpan& span = span_of(*picture_, *selected_);
  set_range(DraggedRange{{span.start, span.end}, picture_->lane(selected_->lane).rank, false});
}

void TimelineState::commit_range() {
  if (range_) range_->committed = true;
}

bool TimelineState::clear() {
  if (range_) {
    range_.reset();
    return true;
  }
  const bool had = selected_.has_value();
  selected_.reset();
  return had;
}

void TimelineState::add_marker(std::int64_t time) {
  Marker marker{"marker " + std::to_string(markers_.size() + 1), std::clamp<std::int64_t>(time, 0, step())};
  const auto taken = [&](const std::string& name) {
    return std::any_of(markers_.begin(), markers_.end(), [&](const Marker& m) { return m.name == name; });
  };
  for (std::size_t n = markers_.size() + 1; taken(marker.name); ++n) marker.name = "marker " + std::to_string(n + 1);
  markers_.push_back(std::move(marker));
}

void TimelineState::remove_marker(std::size_t index) {
  if (index < markers_.size()) markers_.erase(markers_.begin() + static_cast<std::ptrdiff_t>(index));
}

void TimelineState::add_track(const TrackChoice& track) {
  if (std::find(tracks_.begin(), tracks_.end(), track) == tracks_.end()) tracks_.push_back(track);
}

void TimelineState::remove_track(std::size_t index) {
  if (index < tracks_.size()) tracks_.erase(tracks_.begin() + static_cast<std::ptrdiff_t>(index));
}

void TimelineState::move_track(std::size_t index, int by) {
  const std::ptrdiff_t to = static_cast<std::ptrdiff_t>(index) + by;
  if (index >= tracks_.size() || to < 0 || to >= static_cast<std::ptrdiff_t>(tracks_.size())) return;
  std::swap(tracks_[index], tracks_[static_cast<std::size_t>(to)]);
}

std::int32_t TimelineState::current_rank() const {
  if (!picture_) return -1;
  if (selected_) return picture_->lane(selected_->lane).rank;
  if (current_row_ >= 0 && layout_.rows[static_cast<std::size_t>(current_row_)].rank >= 0)
    return layout_.rows[static_cast<std::size_t>(current_row_)].rank;
  return picture_->last_rank;
}

}  // namespace cpfit::gui
