#include "gui/study/view_history.h"

namespace cpfit::gui {

void ViewHistory::visit(const ViewPlace& place, bool merge) {
  if (places_.empty()) {
    places_.push_back(place);
    merging_ = merge;
    return;
  }
  if (places_[current_] == place) {
    merging_ = merge && merging_;  // a gesture that has ended stays ended
    return;
  }
  places_.resize(current_ + 1);
  // The place a gesture began at stays: only places within the gesture replace each other.
  if (merge && merging_ && current_ > 0 && places_[current_].view == place.view) {
    places_[current_] = place;
  } else {
    if (places_.size() == kMost) places_.erase(places_.begin());
    places_.push_back(place);
    current_ = places_.size() - 1;
  }
  merging_ = merge;
}

std::optional<ViewPlace> ViewHistory::back() {
  if (!can_go_back()) return std::nullopt;
  merging_ = false;
  return places_[--current_];
}

std::optional<ViewPlace> ViewHistory::forward() {
  if (!can_go_forward()) return std::nullopt;
  merging_ = false;
  return places_[++current_];
}

}  // namespace cpfit::gui
