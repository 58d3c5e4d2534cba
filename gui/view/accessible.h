// How a view that paints itself gives screen readers an interface of its own.
#pragma once

#include <QAccessible>

class QWidget;

namespace cpfit::gui {

/// Makes `factory` answer for its class (once per program), and forgets an interface that the widget already has: whoever asked
/// while its base class was being built was answered with a plain widget's, which Qt keeps.
void use_accessible_factory(QAccessible::InterfaceFactory factory, QWidget& widget);

}  // namespace cpfit::gui
