// Where a person looked, with the way back and forward: apart from undo, which is about what they changed.
#pragma once

#include <QString>
#include <cstddef>
#include <optional>
#include <vector>

namespace cpfit::gui {

/// What a view shows: a range of its axis and of its rows, in the view's own units.
struct ViewPlace {
  QString view;  // id of the dock
  double from = 0, to = 0;
  double top = 0, bottom = 0;
  friend bool operator==(const ViewPlace&, const ViewPlace&) = default;
};

class ViewHistory {
 public:
  /// Goes to a place: what lay ahead is forgotten. A place equal to the current one, or the current one moved within the last
  /// `merge` visit (a drag, a run of the wheel), replaces it.
  void visit(const ViewPlace& place, bool merge = false);
  [[nodiscard]] std::optional<ViewPlace> back();
  [[nodiscard]] std::optional<ViewPlace> forward();
  [[nodiscard]] bool can_go_back() const { return current_ > 0; }
  [[nodiscard]] bool can_go_forward() const { return current_ + 1 < places_.size(); }

 private:
  static constexpr std::size_t kMost = 200;
  std::vector<ViewPlace> places_;
  std::size_t current_ = 0;
  bool merging_ = false;
};

}  // namespace cpfit::gui
