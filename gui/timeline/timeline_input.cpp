// Keys, wheel and mouse of the step timeline: which command of TimelineState each of them is.
#include <QApplication>
#include <QContextMenuEvent>
#include <QHelpEvent>
#include <QKeyEvent>
#include <QMenu>
#include <QMouseEvent>
#include <QNativeGestureEvent>
#include <QScrollBar>
#include <QToolTip>
#include <QWheelEvent>
#include <algorithm>
#include <cmath>

#include "gui/look/figures.h"
#include "gui/timeline/span_text.h"
#include "gui/timeline/timeline_view.h"

namespace cpfit::gui {

namespace {

constexpr double kKeyZoom = 0.6;    // W
constexpr double kKeyPan = 0.15;    // A, D; with Shift three times as far
constexpr double kWheelZoom = 0.8;  // a notch
constexpr double kEdge = 6;         // pixels within which an edge is taken

/// W A S D by their place on the keyboard: scan codes of X11 and evdev; synthetic events carry none, their letter counts.
int physical_letter(const QKeyEvent& event) {
  switch (event.nativeScanCode()) {
    case 25:
      return Qt::Key_W;
    case 38:
      return Qt::Key_A;
    case 39:
      return Qt::Key_S;
    case 40:
      return Qt::Key_D;
    default:
      break;
  }
  if (event.nativeScanCode() != 0 &&
      (event.key() == Qt::Key_W || event.key() == Qt::Key_A || event.key() == Qt::Key_S || event.key() == Qt::Key_D))
    return Qt::Key_unknown;  // the letter, but not its place
  return event.key();
}

}  // namespace

bool TimelineView::handleLetter(int key) {
  switch (key) {
    case Qt::Key_W:
    case Qt::Key_Plus:
    case Qt::Key_Equal:
    case Qt::Key_S:
    case Qt::Key_Minus: {
      // At the pointer where it is over the lanes, else about the middle.
      const double share = geometry_.lanes.contains(hover_at_) && underMouse()
                               ? (hover_at_.x() - geometry_.lanes.left()) / static_cast<double>(geometry_.lanes.width())
                               : 0.5;
      const bool in = key == Qt::Key_W || key == Qt::Key_Plus || key == Qt::Key_Equal;
      state_.zoom(in ? kKeyZoom : 1 / kKeyZoom, share);
      windowMoved();
      return true;
    }
    case Qt::Key_Comma:
    case Qt::Key_Less:
      state_.step_span(-1);
      selectionMoved();
      return true;
    case Qt::Key_Period:
    case Qt::Key_Greater:
      state_.step_span(1);
      selectionMoved();
      return true;
    case Qt::Key_BracketLeft:
      state_.step_flow(-1);
      selectionMoved();
      return true;
    case Qt::Key_BracketRight:
      state_.step_flow(1);
      selectionMoved();
      return true;
    case Qt::Key_F:
      state_.fit_selection();
      windowMoved();
      return true;
    case Qt::Key_R:
      state_.range_from_selection();
      changed();
      announce();
      return true;
    case Qt::Key_M: {
      const bool pointed = geometry_.lanes.contains(hover_at_) && underMouse();
      std::int64_t time = state_.window().from + state_.window().length() / 2;
      if (state_.selected()) time = span_of(*state_.picture(), *state_.selected()).start;
      if (pointed) time = snapped(hover_at_, {});
      state_.add_marker(time);
      emit markersChanged();
      update();
      return true;
    }
    case Qt::Key_P:
      state_.pin_row();
      place();
      scrollToRow();
      update();
      emit rowsChanged();
      return true;
    case Qt::Key_C:
      setShowsCriticalPath(!critical_);
      return true;
    case Qt::Key_Slash:
      showFind();
      return true;
    default:
      return false;
  }
}

bool TimelineView::handleKey(const QKeyEvent& event) {
  const Qt::KeyboardModifiers modifiers = event.modifiers();
  const bool control = modifiers.testFlag(Qt::ControlModifier), alt = modifiers.testFlag(Qt::AltModifier);
  const int key = event.key();
  if (alt && (key == Qt::Key_Left || key == Qt::Key_Right)) {
    if (key == Qt::Key_Left ? state_.back() : state_.forward()) windowMoved();
    return true;
  }
  if (control && key == Qt::Key_T) {
    setTableShown(!tableShown());
    return true;
  }
  if (control && key == Qt::Key_C) {
    copy();
    return true;
  }
  if (control && key == Qt::Key_F) {
    showFind();
    return true;
  }
  if (control || alt) return false;
  const int letter = physical_letter(event);
  const double far = modifiers.testFlag(Qt::ShiftModifier) ? 3 : 1;
  if (letter == Qt::Key_A || key == Qt::Key_Left) {
    state_.pan(-kKeyPan * far);
    windowMoved();
    return true;
  }
  if (letter == Qt::Key_D || key == Qt::Key_Right) {
    state_.pan(kKeyPan * far);
    windowMoved();
    return true;
  }
  switch (key) {
    case Qt::Key_Up:
    case Qt::Key_Down:
      state_.move_row(key == Qt::Key_Up ? -1 : 1);
      selectionMoved();
      return true;
    case Qt::Key_PageUp:
    case Qt::Key_PageDown:
      scroll_->triggerAction(key == Qt::Key_PageUp ? QAbstractSlider::SliderPageStepSub : QAbstractSlider::SliderPageStepAdd);
      return true;
    case Qt::Key_Home:
      state_.fit_all();
      windowMoved();
      return true;
    case Qt::Key_Space:
      state_.toggle_row();
      place();
      scrollToRow();
      update();
      announce();
      emit rowsChanged();
      return true;
    case Qt::Key_Return:
    case Qt::Key_Enter:
      if (state_.range()) {
        state_.commit_range();
        changed();
      } else if (state_.current_row() >= 0 && !state_.selected()) {
        state_.toggle_row();
        place();
        update();
        emit rowsChanged();
      }
      return true;
    case Qt::Key_Escape:
      if (!state_.clear()) return false;
      changed();
      selectionMoved();
      return true;
    default:
      return handleLetter(letter);
  }
}

void TimelineView::keyPressEvent(QKeyEvent* event) {
  if (mode_ != Mode::kEmpty && event->key() == Qt::Key_Shift) {
    chain_ = true;
    update();
  }
  if (mode_ == Mode::kEmpty || !handleKey(*event)) QWidget::keyPressEvent(event);
}

void TimelineView::keyReleaseEvent(QKeyEvent* event) {
  if (event->key() == Qt::Key_Shift) {
    chain_ = false;
    update();
  }
  if (!event->isAutoRepeat()) state_.settle();  // one press, however long, is one step of the history
  QWidget::keyReleaseEvent(event);
}

void TimelineView::wheelEvent(QWheelEvent* event) {
  if (mode_ == Mode::kEmpty) return event->ignore();
  const QPoint delta = event->angleDelta();
  const double notches = delta.y() / 120.0, sideways = delta.x() / 120.0;
  const double share = std::clamp((event->position().x() - geometry_.lanes.left()) / geometry_.lanes.width(), 0.0, 1.0);
  if (event->modifiers().testFlag(Qt::ControlModifier)) {
    state_.zoom(std::pow(kWheelZoom, notches), share);
    windowMoved();
  } else if (event->modifiers().testFlag(Qt::ShiftModifier) || std::abs(sideways) > std::abs(notches)) {
    state_.pan(-(sideways != 0 ? sideways : notches) * kKeyPan);
    windowMoved();
  } else {
    wheel_rows_ += -notches * 3 * scroll_->singleStep();
    const int whole_pixels = static_cast<int>(wheel_rows_);
    wheel_rows_ -= whole_pixels;
    scroll_->setValue(scroll_->value() + whole_pixels);
  }
  event->accept();
}

bool TimelineView::event(QEvent* event) {
  if (event->type() == QEvent::NativeGesture) {
    const auto* gesture = static_cast<QNativeGestureEvent*>(event);
    if (gesture->gestureType() == Qt::ZoomNativeGesture && mode_ != Mode::kEmpty) {
      const double share = std::clamp((gesture->position().x() - geometry_.lanes.left()) / geometry_.lanes.width(), 0.0, 1.0);
      state_.zoom(std::exp(-gesture->value()), share);
      windowMoved();
      return true;
    }
  }
  if (event->type() == QEvent::ToolTip) return true;  // its own, after its own delay
  // Single letters belong to the view while it has focus, before any shortcut of the window.
  if (event->type() == QEvent::ShortcutOverride && mode_ != Mode::kEmpty) {
    const auto* key = static_cast<QKeyEvent*>(event);
    const bool plain = (key->modifiers() & ~(Qt::ShiftModifier | Qt::KeypadModifier)) == Qt::NoModifier;
    const bool back = key->modifiers() == Qt::AltModifier && (key->key() == Qt::Key_Left || key->key() == Qt::Key_Right);
    const bool own = key->modifiers() == Qt::ControlModifier &&
                     (key->key() == Qt::Key_T || key->key() == Qt::Key_C || key->key() == Qt::Key_F);
    static constexpr int kKeys[] = {Qt::Key_W,     Qt::Key_A,      Qt::Key_S,           Qt::Key_D,
                                    Qt::Key_F,     Qt::Key_R,      Qt::Key_M,           Qt::Key_P,
                                    Qt::Key_C,     Qt::Key_Space,  Qt::Key_Home,        Qt::Key_Slash,
                                    Qt::Key_Comma, Qt::Key_Period, Qt::Key_BracketLeft, Qt::Key_BracketRight};
    if (back || own || (plain && std::find(std::begin(kKeys), std::end(kKeys), key->key()) != std::end(kKeys))) {
      event->accept();
      return true;
    }
  }
  return QWidget::event(event);
}

void TimelineView::mousePressEvent(QMouseEvent* event) {
  if (mode_ == Mode::kEmpty) return;
  const QPoint at = event->position().toPoint();
  pressed_at_ = at;
  pressed_window_ = state_.window();
  QToolTip::hideText();
  hover_timer_.stop();
  if (event->button() == Qt::MiddleButton) {
    drag_ = Drag::kPan;
    setCursor(Qt::ClosedHandCursor);
    return;
  }
  if (event->button() != Qt::LeftButton) return;
  if (state_.range() && chipRect().contains(at)) {
    state_.set_range({});
    return changed();
  }
  if (geometry_.overview.contains(at)) {
    const TimeScale strip = overviewScale();
    const double from = strip.x_of(state_.window().from), to = strip.x_of(state_.window().to);
    if (std::abs(at.x() - from) <= kEdge && at.x() <= (from + to) / 2) {
      drag_ = Drag::kOverviewFrom;
    } else if (std::abs(at.x() - to) <= kEdge) {
      drag_ = Drag::kOverviewTo;
    } else {
      drag_ = Drag::kOverview;
      if (at.x() < from || at.x() > to) {  // a press outside brings the frame there
        const double middle = static_cast<double>(strip.time_at(at.x()));
        state_.set_window(fitted(static_cast<std::int64_t>(middle) - pressed_window_.length() / 2,
                                 static_cast<std::int64_t>(middle) + pressed_window_.length() / 2, 0, state_.step()));
        pressed_window_ = state_.window();
        windowMoved();
      }
    }
    return;
  }
  const bool in_time = at.x() >= geometry_.lanes.left() && at.x() <= geometry_.lanes.right() && at.y() >= geometry_.ruler.top() &&
                       at.y() < at_bottom();
  if (in_time && state_.range()) {
    const TimeScale now = scale();
    if (std::abs(now.x_of(state_.range()->time.from) - at.x()) <= kEdge) drag_ = Drag::kRangeFrom;
    if (std::abs(now.x_of(state_.range()->time.to) - at.x()) <= kEdge) drag_ = Drag::kRangeTo;
    if (drag_ != Drag::kNone) return;
  }
  drag_ = Drag::kPress;
  pressed_time_ = in_time ? snapped(at, event->modifiers()) : 0;
  if (!in_time) drag_ = Drag::kNone;
  if (!in_time) click(at);
}

void TimelineView::dragTo(const QPoint& at, Qt::KeyboardModifiers modifiers) {
  switch (drag_) {
    case Drag::kNone:
      return;
    case Drag::kPress:
      if (std::abs(at.x() - pressed_at_.x()) < 4) return;
      drag_ = Drag::kRange;
      [[fallthrough]];
    case Drag::kRange: {
      std::int32_t rank = state_.current_rank();
      const std::ptrdiff_t row = rowAt(pressed_at_);
      if (row >= 0 && state_.layout().rows[static_cast<std::size_t>(row)].rank >= 0)
        rank = state_.layout().rows[static_cast<std::size_t>(row)].rank;
      state_.set_range(DraggedRange{{pressed_time_, snapped(at, modifiers)}, rank, false});
      return changed();
    }
    case Drag::kRangeFrom:
    case Drag::kRangeTo: {
      if (!state_.range()) return;
      DraggedRange range = *state_.range();
      const std::int64_t time = snapped(at, modifiers);
      (drag_ == Drag::kRangeFrom ? range.time.from : range.time.to) = time;
      if (range.time.from > range.time.to) {
        std::swap(range.time.from, range.time.to);
        drag_ = drag_ == Drag::kRangeFrom ? Drag::kRangeTo : Drag::kRangeFrom;
      }
      if (range.time.length() <= 0) return;
      state_.set_range(range);
      return changed();
    }
    case Drag::kPan: {
      const double shares = (pressed_at_.x() - at.x()) / static_cast<double>(std::max(1, geometry_.lanes.width()));
      state_.set_window(panned(pressed_window_, shares, state_.step()));
      return windowMoved();
    }
    case Drag::kOverview: {
      const double moved =
          (at.x() - pressed_at_.x()) / static_cast<double>(geometry_.overview.width()) * static_cast<double>(state_.step());
      state_.set_window(panned(pressed_window_, moved / static_cast<double>(pressed_window_.length()), state_.step()));
      return windowMoved();
    }
    case Drag::kOverviewFrom:
    case Drag::kOverviewTo: {
      TimeWindow window = pressed_window_;
      const std::int64_t time = std::clamp<std::int64_t>(overviewScale().time_at(at.x()), 0, state_.step());
      if (drag_ == Drag::kOverviewFrom) window.from = std::min(time, window.to - kShortestWindow);
      if (drag_ == Drag::kOverviewTo) window.to = std::max(time, window.from + kShortestWindow);
      state_.set_window(fitted(window.from, window.to, 0, state_.step()));
      return windowMoved();
    }
  }
}

void TimelineView::mouseMoveEvent(QMouseEvent* event) {
  const QPoint at = event->position().toPoint();
  if (event->buttons() != Qt::NoButton) return dragTo(at, event->modifiers());
  hover(at);
}

void TimelineView::mouseReleaseEvent(QMouseEvent* event) {
  const QPoint at = event->position().toPoint();
  if (drag_ == Drag::kPress && event->button() == Qt::LeftButton) click(at);
  drag_ = Drag::kNone;
  unsetCursor();
  state_.settle();
}

void TimelineView::click(const QPoint& at) {
  const std::ptrdiff_t row = rowAt(at);
  if (row >= 0) {
    const TimelineRow& found = state_.layout().rows[static_cast<std::size_t>(row)];
    const bool label = at.x() < geometry_.lanes.left();
    state_.set_current_row(row);
    if (found.kind == RowKind::kMore || (label && (found.kind == RowKind::kNode || found.kind == RowKind::kRank))) {
      state_.toggle_row();
      place();
      update();
      announce();
      emit rowsChanged();
      return;
    }
    if (label) {
      announce();
      overview_stale_ = true;
      return update();
    }
  }
  state_.select(spanAt(at), false);
  selectionMoved();
}

void TimelineView::mouseDoubleClickEvent(QMouseEvent* event) {
  if (mode_ == Mode::kEmpty || event->button() != Qt::LeftButton) return;
  const QPoint at = event->position().toPoint();
  if (geometry_.overview.contains(at)) {
    state_.fit_all();
    return windowMoved();
  }
  if (const std::optional<SpanRef> span = spanAt(at)) {
    state_.select(span, false);
    state_.fit_selection();
    selectionMoved();
  }
}

void TimelineView::contextMenuEvent(QContextMenuEvent* event) {
  if (mode_ == Mode::kEmpty) return;
  QMenu menu(this);
  fillMenu(menu, event->pos());
  menu.exec(event->globalPos());
}

}  // namespace cpfit::gui
