#include "gui/timeline/timeline_accessible.h"

#include <QAccessible>
#include <QAccessibleWidget>

#include "gui/timeline/timeline_view.h"

namespace cpfit::gui {

namespace {

/// The selected span, or the row where none is selected. It is no object of its own: it always answers for what is current.
class CurrentElement : public QAccessibleInterface {
 public:
  explicit CurrentElement(TimelineView* view) : view_(view) {}
  [[nodiscard]] bool isValid() const override { return true; }
  [[nodiscard]] QObject* object() const override { return nullptr; }
  [[nodiscard]] QAccessibleInterface* parent() const override { return QAccessible::queryAccessibleInterface(view_); }
  [[nodiscard]] QAccessibleInterface* child(int) const override { return nullptr; }
  [[nodiscard]] QAccessibleInterface* childAt(int, int) const override { return nullptr; }
  [[nodiscard]] int childCount() const override { return 0; }
  [[nodiscard]] int indexOfChild(const QAccessibleInterface*) const override { return -1; }
  [[nodiscard]] QString text(QAccessible::Text kind) const override {
    if (kind == QAccessible::Name) return view_->currentText();
    if (kind == QAccessible::Value) return view_->rangeText();
    return {};
  }
  void setText(QAccessible::Text, const QString&) override {}
  [[nodiscard]] QRect rect() const override {
    const QRect lanes = view_->geometryOfParts().lanes;
    return {view_->mapToGlobal(lanes.topLeft()), lanes.size()};
  }
  [[nodiscard]] QAccessible::Role role() const override { return QAccessible::ListItem; }
  [[nodiscard]] QAccessible::State state() const override {
    QAccessible::State state;
    state.focusable = state.selectable = true;
    state.selected = view_->state().selected().has_value();
    state.focused = view_->hasFocus();
    return state;
  }

 private:
  TimelineView* view_;
};

class AccessibleTimeline : public QAccessibleWidget {
 public:
  explicit AccessibleTimeline(TimelineView* view) : QAccessibleWidget(view, QAccessible::Chart), view_(view) {
    id_ = QAccessible::registerAccessibleInterface(new CurrentElement(view));  // owned by Qt's cache
  }
  ~AccessibleTimeline() override { QAccessible::deleteAccessibleInterface(id_); }

  [[nodiscard]] int childCount() const override { return QAccessibleWidget::childCount() + (has_current() ? 1 : 0); }
  [[nodiscard]] QAccessibleInterface* child(int index) const override {
    if (has_current() && index == QAccessibleWidget::childCount()) return QAccessible::accessibleInterface(id_);
    return QAccessibleWidget::child(index);
  }
  [[nodiscard]] int indexOfChild(const QAccessibleInterface* child) const override {
    if (child == QAccessible::accessibleInterface(id_)) return has_current() ? QAccessibleWidget::childCount() : -1;
    return QAccessibleWidget::indexOfChild(child);
  }
  [[nodiscard]] QAccessibleInterface* focusChild() const override {
    return has_current() && view_->hasFocus() ? QAccessible::accessibleInterface(id_) : QAccessibleWidget::focusChild();
  }
  [[nodiscard]] QString text(QAccessible::Text kind) const override {
    if (kind == QAccessible::Value) return view_->summary();
    return QAccessibleWidget::text(kind);
  }

 private:
  [[nodiscard]] bool has_current() const { return !view_->currentText().isEmpty(); }
  TimelineView* view_;
  QAccessible::Id id_ = 0;
};

QAccessibleInterface* make_accessible(const QString& name, QObject* object) {
  if (name != QLatin1String("cpfit::gui::TimelineView")) return nullptr;
  return new AccessibleTimeline(static_cast<TimelineView*>(object));
}

}  // namespace

void install_timeline_accessibility() { QAccessible::installFactory(make_accessible); }

void announce_timeline(TimelineView& view) {
  if (!QAccessible::isActive()) return;
  QAccessibleValueChangeEvent changed(&view, view.currentText().isEmpty() ? view.summary() : view.currentText());
  QAccessible::updateAccessibility(&changed);
}

}  // namespace cpfit::gui
