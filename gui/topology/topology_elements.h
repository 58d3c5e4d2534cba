// The boxes and links of the topology graph that are in sight, as elements with places: for screen readers. Pure.
#pragma once

#include <QRect>
#include <cstdint>
#include <vector>

#include "gui/topology/topology_layout.h"

namespace cpfit::gui {

struct TopologyElement {
  std::int32_t box = -1;   // of the layout; -1: a link
  std::int32_t edge = -1;  // of the layout; -1: a box
  std::int32_t link = -1;  // of an edge the most used one
  QRect rect;              // in the widget
};

/// Boxes as they lie, top left first, then links, the most used first. `shares`: used share by link. `zoom` and `offset` take the
/// layout to the widget, whose own place is `sight`; what is out of it is left out.
[[nodiscard]] std::vector<TopologyElement> topology_elements(const TopologyLayout& layout, const std::vector<double>& shares,
                                                             double zoom, const QPointF& offset, const QRect& sight);

}  // namespace cpfit::gui
