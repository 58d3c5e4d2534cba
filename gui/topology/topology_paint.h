// Paints one frame of the topology graph.
#pragma once

#include <QFont>

#include "gui/look/color_tokens.h"
#include "gui/topology/topology_graph.h"

class QPainter;

namespace cpfit::gui {

/// Width of a link's line in pixels at zoom 1, by its capacity: 1.5 at 10 GB/s, 9 at a TB/s.
[[nodiscard]] double link_width(BytesPerSecond capacity);
/// Colour of a link by its used share: from the grid's grey over the ring's green to the exposed hue when it is full.
[[nodiscard]] QColor share_color(const ColorTokens& tokens, double share);

class TopologyPainter {
 public:
  TopologyPainter(const TopologyGraph& graph, QPainter& painter);
  void paint();

 private:
  struct EdgeLook {
    double width = 1, share = 0, bytes = 0;
    bool edited = false, selected = false, highlighted = false;
  };
  [[nodiscard]] EdgeLook look_of(const TopologyEdge& edge) const;
  [[nodiscard]] EdgeLine line_of(const TopologyEdge& edge, double width) const;
  void frames();
  void edges();
  void boxes();
  void worst_labels();
  void ring();
  void legend();
  void label(const QPointF& middle, const QString& text, const QColor& frame);

  const TopologyGraph& graph_;
  QPainter& painter_;
  const ColorTokens& tokens_;
  QFont small_;
};

}  // namespace cpfit::gui
