// The five arrangements of the docks, as data: which docks are shown, where, in which tab, how wide.
#pragma once

#include <QString>
#include <QStringList>
#include <vector>

namespace cpfit::gui {

enum class DockPlace { kLeft, kMain, kRight, kBottom };

struct DockSlot {
  QString id;
  DockPlace place;
};

struct WindowLayout {
  QString name;
  std::vector<DockSlot> docks;                // in order; those of one place are tabs of each other, the first in front
  int left = 372, right = 400, bottom = 210;  // pixels at a scale of 1
};

/// Design, Step, Choose, Trust, Present: Ctrl+1 … Ctrl+5.
[[nodiscard]] const std::vector<WindowLayout>& window_layouts();

}  // namespace cpfit::gui
