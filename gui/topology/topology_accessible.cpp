#include "gui/topology/topology_accessible.h"

#include <QAccessible>
#include <QAccessibleWidget>
#include <map>

#include "gui/topology/topology_graph.h"
#include "gui/view/accessible.h"

namespace cpfit::gui {

namespace {

/// A box or an edge of one layout.
class GraphElement : public LeafElement, public QAccessibleActionInterface {
 public:
  GraphElement(TopologyGraph* graph, std::uint64_t layout, bool box, std::int32_t index)
      : graph_(graph), layout_(layout), box_(box), index_(index) {}
  [[nodiscard]] bool isValid() const override { return graph_->layout_number() == layout_; }
  [[nodiscard]] QAccessibleInterface* parent() const override { return QAccessible::queryAccessibleInterface(graph_); }
  [[nodiscard]] QString text(QAccessible::Text kind) const override {
    if (kind != QAccessible::Name || !isValid()) return {};
    return box_ ? graph_->boxText(index_) : graph_->edgeText(index_);
  }
  [[nodiscard]] QRect rect() const override {
    const TopologyElement* element = here();
    return element == nullptr ? QRect() : QRect(graph_->mapToGlobal(element->rect.topLeft()), element->rect.size());
  }
  [[nodiscard]] QAccessible::Role role() const override { return box_ ? QAccessible::Graphic : QAccessible::ListItem; }
  [[nodiscard]] QAccessible::State state() const override {
    QAccessible::State state;
    const TopologyElement* element = here();
    state.selectable = state.focusable = !box_;
    state.selected = !box_ && element != nullptr && graph_->edgeHolds(index_, graph_->selectedLink());
    state.focused = state.selected && graph_->hasFocus();
    state.expandable = box_ && isValid() && graph_->layout_of_graph().boxes[static_cast<std::size_t>(index_)].vertex < 0;
    state.offscreen = element == nullptr;
    state.invalid = !isValid();
    return state;
  }
  void* interface_cast(QAccessible::InterfaceType type) override {
    return type == QAccessible::ActionInterface ? static_cast<QAccessibleActionInterface*>(this) : nullptr;
  }
  [[nodiscard]] QStringList actionNames() const override { return {pressAction()}; }
  void doAction(const QString& name) override {
    const TopologyElement* element = here();
    if (name != pressAction() || element == nullptr) return;
    if (!box_) return graph_->selectLink(element->link);
    const TopologyBox& box = graph_->layout_of_graph().boxes[static_cast<std::size_t>(index_)];
    if (box.vertex < 0) graph_->toggleGroup(GroupKey(box.group));
  }
  [[nodiscard]] QStringList keyBindingsForAction(const QString&) const override { return {}; }

 private:
  [[nodiscard]] const TopologyElement* here() const {
    if (!isValid()) return nullptr;
    for (const TopologyElement& element : graph_->elements()) {
      if ((box_ ? element.box : element.edge) == index_) return &element;
    }
    return nullptr;
  }
  TopologyGraph* graph_;
  std::uint64_t layout_;
  bool box_;
  std::int32_t index_;
};

class AccessibleTopology : public QAccessibleWidget {
 public:
  explicit AccessibleTopology(TopologyGraph* graph) : QAccessibleWidget(graph, QAccessible::Chart), graph_(graph) {}
  ~AccessibleTopology() override { forget(); }
  [[nodiscard]] int childCount() const override {
    return QAccessibleWidget::childCount() + static_cast<int>(graph_->elements().size());
  }
  [[nodiscard]] QAccessibleInterface* child(int index) const override {
    const int widgets = QAccessibleWidget::childCount();
    if (index < widgets) return QAccessibleWidget::child(index);
    const std::vector<TopologyElement>& elements = graph_->elements();
    const auto at = static_cast<std::size_t>(index - widgets);
    return at < elements.size() ? element(elements[at]) : nullptr;
  }
  [[nodiscard]] int indexOfChild(const QAccessibleInterface* child) const override {
    for (int index = QAccessibleWidget::childCount(); index < childCount(); ++index) {
      if (this->child(index) == child) return index;
    }
    return QAccessibleWidget::indexOfChild(child);
  }
  [[nodiscard]] QAccessibleInterface* childAt(int x, int y) const override {
    const QPoint at = graph_->mapFromGlobal(QPoint(x, y));
    for (const TopologyElement& each : graph_->elements()) {
      if (each.box >= 0 && each.rect.contains(at)) return element(each);
    }
    const std::int32_t link = graph_->linkAt(at);
    for (const TopologyElement& each : graph_->elements()) {
      if (link >= 0 && each.link == link) return element(each);
    }
    return QAccessibleWidget::childAt(x, y);
  }
  [[nodiscard]] QAccessibleInterface* focusChild() const override {
    for (const TopologyElement& each : graph_->elements()) {
      if (graph_->hasFocus() && each.edge >= 0 && graph_->edgeHolds(each.edge, graph_->selectedLink())) return element(each);
    }
    return QAccessibleWidget::focusChild();
  }
  [[nodiscard]] QString text(QAccessible::Text kind) const override {
    return kind == QAccessible::Value ? graph_->sentence() : QAccessibleWidget::text(kind);
  }

 private:
  [[nodiscard]] QAccessibleInterface* element(const TopologyElement& of) const {
    if (layout_ != graph_->layout_number()) {
      forget();
      layout_ = graph_->layout_number();
    }
    const bool box = of.box >= 0;
    const std::int32_t index = box ? of.box : of.edge;
    QAccessible::Id& id = ids_[{box, index}];
    if (id == 0) id = QAccessible::registerAccessibleInterface(new GraphElement(graph_, layout_, box, index));
    return QAccessible::accessibleInterface(id);
  }
  void forget() const {
    for (const auto& [of, id] : ids_) QAccessible::deleteAccessibleInterface(id);
    ids_.clear();
  }
  TopologyGraph* graph_;
  mutable std::uint64_t layout_ = 0;
  mutable std::map<std::pair<bool, std::int32_t>, QAccessible::Id> ids_;
};

QAccessibleInterface* make_accessible(const QString& name, QObject* object) {
  if (name != QLatin1String("cpfit::gui::TopologyGraph")) return nullptr;
  return new AccessibleTopology(static_cast<TopologyGraph*>(object));
}

}  // namespace

void install_topology_accessibility(TopologyGraph& graph) { use_accessible_factory(make_accessible, graph); }

void announce_topology(TopologyGraph& graph) {
  if (!QAccessible::isActive()) return;
  QAccessibleInterface* chart = QAccessible::queryAccessibleInterface(&graph);
  QAccessibleInterface* current = chart == nullptr || !graph.hasFocus() ? nullptr : chart->focusChild();
  if (current == nullptr || current == chart) return;
  QAccessibleEvent focus(&graph, QAccessible::Focus);
  focus.setChild(chart->indexOfChild(current));
  QAccessible::updateAccessibility(&focus);
}

}  // namespace cpfit::gui
