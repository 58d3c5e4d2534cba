// How a view that paints itself gives screen readers an interface of its own.
#pragma once

#include <QAccessible>
#include <QString>

class QWidget;

namespace cpfit::gui {

/// A painted thing without things inside: a span, a box, a link. Its name, place, role and state are its class's.
class LeafElement : public QAccessibleInterface {
 public:
  [[nodiscard]] QObject* object() const override { return nullptr; }
  [[nodiscard]] QAccessibleInterface* child(int) const override { return nullptr; }
  [[nodiscard]] QAccessibleInterface* childAt(int, int) const override { return nullptr; }
  [[nodiscard]] int childCount() const override { return 0; }
  [[nodiscard]] int indexOfChild(const QAccessibleInterface*) const override { return -1; }
  void setText(QAccessible::Text, const QString&) override {}
};

/// Makes `factory` answer for its class (once per program), and forgets an interface that the widget already has: whoever asked
/// while its base class was being built was answered with a plain widget's, which Qt keeps.
void use_accessible_factory(QAccessible::InterfaceFactory factory, QWidget& widget);

}  // namespace cpfit::gui
