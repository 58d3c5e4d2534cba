#include "gui/topology/topology_elements.h"

#include <algorithm>

namespace cpfit::gui {

std::vector<TopologyElement> topology_elements(const TopologyLayout& layout, const std::vector<double>& shares, double zoom,
                                               const QPointF& offset, const QRect& sight) {
  std::vector<TopologyElement> boxes, links;
  const auto to_screen = [&](const QPointF& point) { return point * zoom + offset; };
  for (std::size_t b = 0; b < layout.boxes.size(); ++b) {
    const QRectF& rect = layout.boxes[b].rect;
    const QRect place = QRectF(to_screen(rect.topLeft()), rect.size() * zoom).toAlignedRect().intersected(sight);
    if (!place.isEmpty()) boxes.push_back({static_cast<std::int32_t>(b), -1, -1, place});
  }
  std::ranges::stable_sort(boxes, [](const TopologyElement& a, const TopologyElement& b) {
    return a.rect.top() != b.rect.top() ? a.rect.top() < b.rect.top() : a.rect.left() < b.rect.left();
  });
  const auto share_of = [&](std::int32_t link) {
    const auto at = static_cast<std::size_t>(link);
    return at < shares.size() ? shares[at] : 0.0;
  };
  for (std::size_t e = 0; e < layout.edges.size(); ++e) {
    const TopologyEdge& edge = layout.edges[e];
    if (edge.links.empty()) continue;
    const EdgeLine line = edge_line(layout, edge, 4);
    // A line straight up has no width of its own; a pointer needs some.
    const QRectF ends = QRectF(to_screen(line.from), to_screen(line.to)).normalized();
    const QRectF around = ends.united(QRectF(to_screen(line.at(0.5)), QSizeF(1, 1))).adjusted(-3, -3, 3, 3);
    const QRect place = around.toAlignedRect().intersected(sight);
    if (place.isEmpty()) continue;
    const std::int32_t most = *std::ranges::max_element(edge.links, {}, share_of);
    links.push_back({-1, static_cast<std::int32_t>(e), most, place});
  }
  std::ranges::stable_sort(
      links, [&](const TopologyElement& a, const TopologyElement& b) { return share_of(a.link) > share_of(b.link); });
  boxes.insert(boxes.end(), links.begin(), links.end());
  return boxes;
}

}  // namespace cpfit::gui
