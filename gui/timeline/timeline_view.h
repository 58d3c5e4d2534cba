// The step timeline: overview, ruler, lanes, and tracks under them on the same axis. A thin widget: what it decides is in
// TimelineState, what it paints comes from the pure cores of this folder.
//
// Keys (W A S D by place on the keyboard): W S + - zoom, A D and arrows pan, up and down choose a row, comma and dot a span,
// [ and ] follow cause and effect, F fits the selection, Home everything, Alt+Left and Alt+Right go back and forward, R makes a
// range of the span, Enter focuses it, M sets a marker, P pins, Space collapses, C shows the critical path, / finds, Esc clears,
// Ctrl+T shows the spans as a table, Ctrl+C copies, Shift shows the chain that led to the selected span.
#pragma once

#include <QElapsedTimer>
#include <QHash>
#include <QImage>
#include <QStaticText>
#include <QTimer>
#include <memory>
#include <optional>
#include <tuple>

#include "gui/look/color_tokens.h"
#include "gui/timeline/lanes_image.h"
#include "gui/timeline/recorded_lanes.h"
#include "gui/timeline/step_tracks.h"
#include "gui/timeline/time_axis.h"
#include "gui/timeline/timeline_elements.h"
#include "gui/timeline/timeline_state.h"
#include "gui/view/study_view.h"

class QLineEdit;
class QLabel;
class QMenu;
class QPushButton;
class QScrollBar;
class QTableView;

namespace cpfit::gui {

class SpanTableModel;

/// Where the parts of the view are, in its own pixels.
struct TimelineGeometry {
  QRect overview, ruler, labels, lanes, info;
  std::vector<QRect> tracks;  // each with its label column
  int label_width = 0;
};

class TimelineView : public StudyView {
  Q_OBJECT

 public:
  explicit TimelineView(QWidget* parent = nullptr);
  ~TimelineView() override;

  // What it shows.
  void setPicture(std::shared_ptr<const StepPicture> picture);
  void setTracks(std::shared_ptr<const StepTracks> tracks);
  /// A real trace beside the predicted step; nothing takes it away.
  void setRecorded(std::optional<RecordedLanes> recorded);
  /// Nothing to show yet: a sentence, and a button where there is something to do about it.
  void setEmpty(const QString& sentence, const QString& button);
  /// A simulation runs: what is shown stays, dimmed. progress 0..1, below 0: unknown.
  void setBusy(const QString& sentence, double progress);
  /// It failed: the sentence, and the details that "copy details" copies.
  void setFailed(const QString& sentence, const QString& details);
  [[nodiscard]] QString stateSentence() const { return sentence_; }

  // What a person chose.
  [[nodiscard]] const TimelineState& state() const { return state_; }
  [[nodiscard]] TimeWindow window() const { return state_.window(); }
  void setWindow(TimeWindow window);
  /// A longer axis than the step's own, so that two steps stand one under the other; 0: its own.
  void setAxis(std::int64_t longest);
  /// Room for the rows' names at least this wide, so that the times of two steps lie one under the other.
  void setLeastLabelWidth(int width);
  [[nodiscard]] int wantedLabelWidth() const { return wanted_label_width_; }  // of its own rows
  void selectSpan(std::optional<SpanRef> span);
  void selectByIdentity(std::int32_t lane, std::int32_t activity, std::int32_t copy);
  void setRange(std::optional<DraggedRange> range);
  void setChoices(const RowChoices& choices);
  void setMarkers(std::vector<Marker> markers);
  void setTrackChoices(std::vector<TrackChoice> tracks);
  void addTrack(const TrackChoice& track);
  void setShowsAllRanks(bool all);
  void setShowsCriticalPath(bool shown);
  [[nodiscard]] bool showsCriticalPath() const { return critical_; }
  void setTableShown(bool shown);
  [[nodiscard]] bool tableShown() const;
  [[nodiscard]] SpanTableModel* tableModel() const { return table_model_; }
  void showFind();
  void findNext(const QString& query, int by);

  // What it says.
  [[nodiscard]] const TimelineGeometry& geometryOfParts() const { return geometry_; }
  [[nodiscard]] QString summary() const override;  // one sentence on the picture
  [[nodiscard]] QString currentText() const;       // the selected span, else the current row
  [[nodiscard]] QString rangeText() const;
  [[nodiscard]] QString hoverText() const { return hover_text_; }
  [[nodiscard]] int scroll() const;
  /// The spans that can be told apart now, with their places; and the place of one of them.
  [[nodiscard]] const TimelineElements& visibleElements() const;
  [[nodiscard]] std::optional<QRect> placeOf(SpanRef span) const;
  /// Rows of the focus range: what "copy" copies while there is one. Tab separated, header with units.
  [[nodiscard]] QString rangeTable() const;
  /// Spans of the range, else of the window, as CSV.
  [[nodiscard]] QString csv() const override;
  /// The view's picture at `ratio` pixels per pixel; `whole_step`: everything, not the window.
  [[nodiscard]] QImage image(double ratio, bool whole_step) const;

  [[nodiscard]] QSize sizeHint() const override { return {960, 520}; }
  [[nodiscard]] QSize minimumSizeHint() const override { return {360, 220}; }

 signals:
  void spanSelected(int lane, int activity, int copy);        // lane -1: none
  void rangeChanged(qint64 from, qint64 to, bool committed);  // to <= from: none
  void windowChanged(qint64 from, qint64 to);
  void timePointed(qint64 time);  // under the pointer; -1 when it left
  void markersChanged();
  void rowsChanged();
  void wantedLabelWidthChanged(int width);
  void simulateRequested();
  void stopRequested();

 protected:
  void paintEvent(QPaintEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;
  void keyReleaseEvent(QKeyEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;
  void mouseMoveEvent(QMouseEvent* event) override;
  void mouseReleaseEvent(QMouseEvent* event) override;
  void mouseDoubleClickEvent(QMouseEvent* event) override;
  void wheelEvent(QWheelEvent* event) override;
  void leaveEvent(QEvent* event) override;
  void changeEvent(QEvent* event) override;
  void contextMenuEvent(QContextMenuEvent* event) override;
  void focusInEvent(QFocusEvent* event) override;
  void focusOutEvent(QFocusEvent* event) override;
  bool event(QEvent* event) override;

 private:
  enum class Mode { kEmpty, kReady, kBusy, kFailed };
  enum class Drag { kNone, kPress, kRange, kRangeFrom, kRangeTo, kPan, kOverview, kOverviewFrom, kOverviewTo };
  friend class TimelinePainter;

  void place();
  void changed();  // something other than the time window
  void windowMoved();
  void selectionMoved();
  void announce();
  void showMode();
  void scrollToRow();
  void rebuildPicture();
  void defaultTracks();
  bool handleKey(const QKeyEvent& event);
  bool handleLetter(int key);
  void dragTo(const QPoint& position, Qt::KeyboardModifiers modifiers);
  void click(const QPoint& position);
  void hover(const QPoint& position);
  void showHover();
  [[nodiscard]] QString trackText(std::size_t track, std::int64_t time) const;
  [[nodiscard]] std::optional<SpanRef> spanAt(const QPoint& position) const;
  [[nodiscard]] std::ptrdiff_t rowAt(const QPoint& position) const;
  [[nodiscard]] std::int64_t snapped(const QPoint& position, Qt::KeyboardModifiers modifiers) const;
  [[nodiscard]] TimeScale scale() const;
  [[nodiscard]] TimeScale overviewScale() const;
  [[nodiscard]] QRect chipRect() const;
  [[nodiscard]] int at_bottom() const { return geometry_.info.top(); }
  void fillMenu(QMenu& menu, const QPoint& position);
  void fillTrackMenu(QMenu& menu, std::ptrdiff_t track);
  [[nodiscard]] std::vector<TrackChoice> offeredTracks() const;
  void refreshImage() const;
  void refreshTable();
  void copy() const;

  TimelineState state_;
  std::shared_ptr<const StepPicture> predicted_;
  std::optional<RecordedLanes> recorded_;
  std::shared_ptr<const StepTracks> tracks_;
  Mode mode_ = Mode::kEmpty;
  QString sentence_, details_;
  double progress_ = -1;
  int wanted_label_width_ = 0, least_label_width_ = 0;
  TimelineGeometry geometry_;

  // The lanes' picture, kept until what it shows changes.
  mutable QImage image_, overview_;
  mutable std::vector<LabelPlace> labels_;
  mutable bool image_stale_ = true, overview_stale_ = true;
  mutable QHash<QString, QStaticText> words_;
  mutable std::vector<QImage> track_images_;
  // Elements, and what they are of.
  mutable TimelineElements elements_;
  mutable std::tuple<const StepPicture*, std::int64_t, std::int64_t, int, int, int, int, int, std::size_t> elements_of_{};
  double export_ratio_ = 0;  // pixels per pixel of an exported picture; 0: the screen's

  Drag drag_ = Drag::kNone;
  QPoint pressed_at_, hover_at_;
  std::int64_t pressed_time_ = 0;
  TimeWindow pressed_window_;
  QString hover_text_;
  QTimer hover_timer_;
  double wheel_rows_ = 0;
  bool critical_ = false, chain_ = false, tracks_chosen_ = false;

  QScrollBar* scroll_;
  QPushButton *button_, *second_button_;
  QWidget* find_bar_;
  QLineEdit* find_;
  QLabel* find_count_;
  QTableView* table_ = nullptr;
  SpanTableModel* table_model_ = nullptr;
};

}  // namespace cpfit::gui
