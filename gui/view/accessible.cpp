#include "gui/view/accessible.h"

#include <QWidget>

namespace cpfit::gui {

void use_accessible_factory(QAccessible::InterfaceFactory factory, QWidget& widget) {
  QAccessible::installFactory(factory);
  if (QAccessibleInterface* early = QAccessible::queryAccessibleInterface(&widget))
    QAccessible::deleteAccessibleInterface(QAccessible::uniqueId(early));
}

}  // namespace cpfit::gui
