#include "gui/timeline/timeline_accessible.h"

#include <QAccessible>
#include <QAccessibleWidget>
#include <map>

#include "gui/timeline/span_text.h"
#include "gui/timeline/timeline_elements.h"
#include "gui/timeline/timeline_view.h"
#include "gui/view/accessible.h"

namespace cpfit::gui {

namespace {

/// The row that is current where no visible span is. It is no object of its own: it always answers for what is current.
class CurrentElement : public LeafElement {
 public:
  explicit CurrentElement(TimelineView* view) : view_(view) {}
  [[nodiscard]] bool isValid() const override { return true; }
  [[nodiscard]] QAccessibleInterface* parent() const override { return QAccessible::queryAccessibleInterface(view_); }
  [[nodiscard]] QString text(QAccessible::Text kind) const override {
    if (kind == QAccessible::Name) return view_->currentText();
    if (kind == QAccessible::Value) return view_->rangeText();
    return {};
  }
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

/// A span that is wide enough to be told apart. Pressing it selects it.
class SpanElement : public LeafElement, public QAccessibleActionInterface {
 public:
  SpanElement(TimelineView* view, std::shared_ptr<const StepPicture> picture, SpanRef span)
      : view_(view), picture_(std::move(picture)), span_(span) {}
  [[nodiscard]] bool isValid() const override { return view_->state().shared_picture() == picture_; }
  [[nodiscard]] QAccessibleInterface* parent() const override { return QAccessible::queryAccessibleInterface(view_); }
  [[nodiscard]] QString text(QAccessible::Text kind) const override {
    if (!isValid()) return {};
    if (kind == QAccessible::Name) return span_sentence(*picture_, span_);
    const LaneSpan& span = span_of(*picture_, span_);
    if (kind == QAccessible::Value) return duration_text(span.end - span.start);
    return {};
  }
  [[nodiscard]] QRect rect() const override {
    const std::optional<QRect> place = view_->placeOf(span_);
    return place && isValid() ? QRect(view_->mapToGlobal(place->topLeft()), place->size()) : QRect();
  }
  [[nodiscard]] QAccessible::Role role() const override { return QAccessible::ListItem; }
  [[nodiscard]] QAccessible::State state() const override {
    QAccessible::State state;
    state.focusable = state.selectable = true;
    state.selected = isValid() && view_->state().selected() == span_;
    state.focused = state.selected && view_->hasFocus();
    state.offscreen = !isValid() || !view_->placeOf(span_);
    state.invalid = !isValid();
    return state;
  }
  void* interface_cast(QAccessible::InterfaceType type) override {
    return type == QAccessible::ActionInterface ? static_cast<QAccessibleActionInterface*>(this) : nullptr;
  }
  [[nodiscard]] QStringList actionNames() const override { return {pressAction()}; }
  void doAction(const QString& name) override {
    if (name == pressAction() && isValid()) view_->selectSpan(span_);
  }
  [[nodiscard]] QStringList keyBindingsForAction(const QString&) const override { return {}; }

 private:
  TimelineView* view_;
  std::shared_ptr<const StepPicture> picture_;
  SpanRef span_;
};

class AccessibleTimeline : public QAccessibleWidget {
 public:
  explicit AccessibleTimeline(TimelineView* view) : QAccessibleWidget(view, QAccessible::Chart), view_(view) {
    current_ = QAccessible::registerAccessibleInterface(new CurrentElement(view));  // owned by Qt's cache
  }
  ~AccessibleTimeline() override {
    QAccessible::deleteAccessibleInterface(current_);
    forget_spans();
  }

  [[nodiscard]] int childCount() const override {
    return widgets() + static_cast<int>(view_->visibleElements().elements.size()) + (has_current() ? 1 : 0);
  }
  [[nodiscard]] QAccessibleInterface* child(int index) const override {
    if (index < widgets()) return QAccessibleWidget::child(index);
    const std::vector<TimelineElement>& elements = view_->visibleElements().elements;
    const auto at = static_cast<std::size_t>(index - widgets());
    if (at < elements.size()) return span(elements[at].span);
    return at == elements.size() && has_current() ? QAccessible::accessibleInterface(current_) : nullptr;
  }
  [[nodiscard]] int indexOfChild(const QAccessibleInterface* child) const override {
    for (int index = widgets(); index < childCount(); ++index) {
      if (this->child(index) == child) return index;
    }
    return QAccessibleWidget::indexOfChild(child);
  }
  [[nodiscard]] QAccessibleInterface* childAt(int x, int y) const override {
    for (const TimelineElement& element : view_->visibleElements().elements) {
      if (element.rect.contains(view_->mapFromGlobal(QPoint(x, y)))) return span(element.span);
    }
    return QAccessibleWidget::childAt(x, y);
  }
  [[nodiscard]] QAccessibleInterface* focusChild() const override {
    if (!view_->hasFocus()) return QAccessibleWidget::focusChild();
    const std::optional<SpanRef> selected = view_->state().selected();
    if (selected && view_->placeOf(*selected)) return span(*selected);
    return has_current() ? QAccessible::accessibleInterface(current_) : QAccessibleWidget::focusChild();
  }
  [[nodiscard]] QString text(QAccessible::Text kind) const override {
    if (kind == QAccessible::Value) return view_->summary();
    return QAccessibleWidget::text(kind);
  }

 private:
  [[nodiscard]] int widgets() const { return QAccessibleWidget::childCount(); }
  /// What is current and no visible span: a row, or a span that is out of sight or too narrow.
  [[nodiscard]] bool has_current() const {
    const std::optional<SpanRef> selected = view_->state().selected();
    return !view_->currentText().isEmpty() && !(selected && view_->placeOf(*selected));
  }
  /// The interface of a span, made when it is first asked for and kept while the picture stays.
  [[nodiscard]] QAccessibleInterface* span(SpanRef ref) const {
    const std::shared_ptr<const StepPicture> picture = view_->state().shared_picture();
    if (picture != of_) {
      forget_spans();
      of_ = picture;
    }
    QAccessible::Id& id = spans_[{ref.lane, ref.span}];
    if (id == 0) id = QAccessible::registerAccessibleInterface(new SpanElement(view_, picture, ref));
    return QAccessible::accessibleInterface(id);
  }
  void forget_spans() const {
    for (const auto& [ref, id] : spans_) QAccessible::deleteAccessibleInterface(id);
    spans_.clear();
  }
  TimelineView* view_;
  QAccessible::Id current_ = 0;
  mutable std::shared_ptr<const StepPicture> of_;
  mutable std::map<std::pair<std::int32_t, std::size_t>, QAccessible::Id> spans_;
};

QAccessibleInterface* make_accessible(const QString& name, QObject* object) {
  if (name != QLatin1String("cpfit::gui::TimelineView")) return nullptr;
  return new AccessibleTimeline(static_cast<TimelineView*>(object));
}

}  // namespace

void install_timeline_accessibility(TimelineView& view) { use_accessible_factory(make_accessible, view); }

void announce_timeline(TimelineView& view) {
  if (!QAccessible::isActive()) return;
  QAccessibleValueChangeEvent changed(&view, view.currentText().isEmpty() ? view.summary() : view.currentText());
  QAccessible::updateAccessibility(&changed);
  if (!view.hasFocus()) return;
  QAccessibleInterface* chart = QAccessible::queryAccessibleInterface(&view);
  QAccessibleInterface* current = chart == nullptr ? nullptr : chart->focusChild();
  if (current == nullptr || current == chart) return;
  QAccessibleEvent focus(&view, QAccessible::Focus);
  focus.setChild(chart->indexOfChild(current));
  QAccessible::updateAccessibility(&focus);
}

}  // namespace cpfit::gui
