// Everything a person can change about the step timeline, and the commands that change it: what the keys and the mouse do,
// without a widget. The picture is immutable; the state survives a new one as far as its ranks and times exist there.
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gui/study/view_history.h"
#include "gui/timeline/range_sums.h"
#include "gui/timeline/timeline_hit.h"
#include "gui/timeline/timeline_layout.h"

namespace cpfit::gui {

/// A focus range: dragged, not yet committed, or committed (then it also limits what other views sum).
struct DraggedRange {
  TimeWindow time;
  std::int32_t rank = 0;  // index into StepPicture::ranks: whose sums are shown
  bool committed = false;
  friend bool operator==(const DraggedRange&, const DraggedRange&) = default;
};

struct Marker {
  std::string name;
  std::int64_t time = 0;
  friend bool operator==(const Marker&, const Marker&) = default;
};

enum class TrackKind : std::uint8_t { kMemory, kLink, kInFlight };
struct TrackChoice {
  TrackKind kind = TrackKind::kMemory;
  std::string key;  // a rank of the cluster ("0"), or a link's name
  friend bool operator==(const TrackChoice&, const TrackChoice&) = default;
};

class TimelineState {
 public:
  explicit TimelineState(RowMetrics metrics = {}) : metrics_(metrics) {}

  /// Choices, markers and tracks stay; selection and range stay where the same span and time exist; the window stays unless the
  /// step is another one by more than a tenth.
  void set_picture(std::shared_ptr<const StepPicture> picture);
  [[nodiscard]] const StepPicture* picture() const { return picture_.get(); }
  [[nodiscard]] std::shared_ptr<const StepPicture> shared_picture() const { return picture_; }
  void set_metrics(RowMetrics metrics);

  // Rows.
  [[nodiscard]] const TimelineLayout& layout() const { return layout_; }
  [[nodiscard]] const RowChoices& choices() const { return choices_; }
  void set_choices(RowChoices choices);
  [[nodiscard]] std::ptrdiff_t current_row() const { return current_row_; }  // -1: none
  void set_current_row(std::ptrdiff_t row);
  void move_row(int by);  // and selects the span of the new lane nearest in time
  void toggle_row();      // collapse, expand, show all
  void pin_row();
  void show_all_ranks(bool all);
  [[nodiscard]] bool shows_all_ranks() const;

  // Time.
  [[nodiscard]] TimeWindow window() const { return window_; }
  /// How far time goes: the step, or the axis where that is longer.
  [[nodiscard]] std::int64_t step() const { return std::max(axis_, picture_ ? picture_->timeline.step : 1); }
  /// A longer axis, for a step that stands beside another; 0: the step's own.
  void set_axis(std::int64_t longest);
  void set_window(TimeWindow window);  // remembered; gestures that follow each other closely are one entry: see settle()
  void zoom(double factor, double share);
  void pan(double shares);
  void fit_all();
  void fit_selection();  // the span, else the range, else everything
  bool back();
  bool forward();
  [[nodiscard]] bool can_go_back() const { return history_.can_go_back(); }
  [[nodiscard]] bool can_go_forward() const { return history_.can_go_forward(); }
  /// Ends a gesture: the next move of the window is a new entry of the history.
  void settle();

  // Selection.
  [[nodiscard]] std::optional<SpanRef> selected() const { return selected_; }
  void select(std::optional<SpanRef> span, bool reveal);
  void step_span(int by);                       // along the lane
  void step_flow(int by);                       // to the effect, or back to the cause
  bool find(const std::string& query, int by);  // the next span that matches, round the end; false when none does

  // Range.
  [[nodiscard]] const std::optional<DraggedRange>& range() const { return range_; }
  void set_range(std::optional<DraggedRange> range);
  void range_from_selection();
  void commit_range();
  /// Esc: the range, else the selection. False when there was nothing.
  bool clear();

  // Markers and tracks.
  [[nodiscard]] const std::vector<Marker>& markers() const { return markers_; }
  void add_marker(std::int64_t time);
  void set_markers(std::vector<Marker> markers) { markers_ = std::move(markers); }
  void remove_marker(std::size_t index);
  [[nodiscard]] const std::vector<TrackChoice>& tracks() const { return tracks_; }
  void set_tracks(std::vector<TrackChoice> tracks) { tracks_ = std::move(tracks); }
  void add_track(const TrackChoice& track);
  void remove_track(std::size_t index);
  void move_track(std::size_t index, int by);

  /// The rank whose ring steps the ruler counts and whose lanes the overview shows: the current row's, else the last to end.
  [[nodiscard]] std::int32_t current_rank() const;

 private:
  void lay_out();
  void remember();

  std::shared_ptr<const StepPicture> picture_;
  RowMetrics metrics_;
  RowChoices choices_;
  TimelineLayout layout_;
  std::ptrdiff_t current_row_ = -1;
  TimeWindow window_;
  ViewHistory history_;
  std::optional<SpanRef> selected_;
  std::optional<DraggedRange> range_;
  std::int64_t axis_ = 0;
  std::vector<Marker> markers_;
  std::vector<TrackChoice> tracks_;
};

}  // namespace cpfit::gui
