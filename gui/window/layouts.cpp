#include "gui/window/layouts.h"

namespace cpfit::gui {

namespace {

DockSlot at(DockPlace place, const char* id) { return {QString::fromLatin1(id), place}; }

}  // namespace

const std::vector<WindowLayout>& window_layouts() {
  using enum DockPlace;
  // Docks that a build does not have are passed over.
  static const std::vector<WindowLayout> kLayouts = {
      {QStringLiteral("Design"),
       {at(kLeft, "recipe"), at(kMain, "step"), at(kMain, "lengths"), at(kMain, "feasible"), at(kMain, "topology"),
        at(kRight, "memory"), at(kBottom, "details"), at(kBottom, "problems"), at(kBottom, "jobs")},
       384,
       400,
       215},
      {QStringLiteral("Step"),
       {at(kMain, "step"), at(kMain, "topology"), at(kBottom, "details"), at(kBottom, "problems"), at(kBottom, "jobs")},
       0,
       0,
       230},
      {QStringLiteral("Choose"),
       {at(kLeft, "recipe"), at(kMain, "results"), at(kMain, "compare"), at(kMain, "feasible"), at(kMain, "lengths"),
        at(kBottom, "details"), at(kBottom, "problems")},
       372,
       0,
       190},
      {QStringLiteral("Trust"),
       {at(kMain, "calibration"), at(kMain, "equivalence"), at(kMain, "lengths"), at(kRight, "memory"), at(kBottom, "details"),
        at(kBottom, "jobs")},
       0,
       480,
       240},
      {QStringLiteral("Present"),
       {at(kMain, "step"), at(kMain, "lengths"), at(kMain, "feasible"), at(kMain, "topology"), at(kRight, "memory")},
       0,
       520,
       0},
  };
  return kLayouts;
}

}  // namespace cpfit::gui
