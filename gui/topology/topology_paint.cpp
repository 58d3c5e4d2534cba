#include "gui/topology/topology_paint.h"

#include <QPainter>
#include <QPainterPath>
#include <algorithm>
#include <cmath>

#include "gui/look/figures.h"

namespace cpfit::gui {

namespace {

QColor with_alpha(QColor color, int alpha) {
  color.setAlpha(alpha);
  return color;
}

}  // namespace

double link_width(BytesPerSecond capacity) {
  const double decades = std::log10(std::max(1.0, capacity.value() / 1e10));
  return std::clamp(1.5 + 3.75 * decades, 1.5, 9.0);
}

QColor share_color(const ColorTokens& tokens, double share) {
  if (share <= 0) return mixed(tokens.surface, tokens.muted, 0.32);
  if (share < 0.5) return mixed(mixed(tokens.surface, tokens.ring, 0.45), tokens.ring, share / 0.5);
  return mixed(tokens.ring, tokens.exposed, std::min(1.0, (share - 0.5) / 0.4));
}

TopologyPainter::TopologyPainter(const TopologyGraph& graph, QPainter& painter)
    : graph_(graph), painter_(painter), tokens_(tokens_for(graph.palette())), small_(graph.font()) {
  small_.setPointSizeF(std::max(6.5, small_.pointSizeF() * 0.88));
}

void TopologyPainter::paint() {
  painter_.fillRect(graph_.rect(), tokens_.surface);
  if (!graph_.picture_) {
    painter_.setPen(tokens_.muted);
    painter_.drawText(graph_.rect().adjusted(24, 24, -24, -24), Qt::AlignCenter | Qt::TextWordWrap,
                      graph_.tr("Open a scenario or a topology file to see its network."));
    return;
  }
  painter_.setRenderHint(QPainter::Antialiasing, true);
  frames();
  edges();
  boxes();
  ring();
  worst_labels();
  legend();
  if (graph_.hasFocus()) {
    painter_.setRenderHint(QPainter::Antialiasing, false);
    painter_.setPen(QPen(tokens_.accent, 2));
    painter_.setBrush(Qt::NoBrush);
    painter_.drawRect(QRectF(graph_.rect()).adjusted(1, 1, -1, -1));
  }
}

TopologyPainter::EdgeLook TopologyPainter::look_of(const TopologyEdge& edge) const {
  EdgeLook look;
  double capacity = 0;
  for (const std::int32_t link : edge.links) {
    capacity += graph_.picture_->topology().links()[static_cast<std::size_t>(link)].capacity.value();
    look.bytes += graph_.picture_->links[static_cast<std::size_t>(link)].bytes;
    look.share = std::max(look.share, graph_.share_of(link));
    look.edited = look.edited || graph_.edits_.contains(link);
    look.selected = look.selected || link == graph_.selected_;
    look.highlighted = look.highlighted || graph_.highlighted_.contains(link);
  }
  look.width = std::max(1.0, link_width(BytesPerSecond(capacity)) * std::clamp(graph_.zoom_, 0.5, 1.4));
  // Beside folded groups idle links are hairlines: there are many, and they cross.
  const bool folded = graph_.layout_.boxes[static_cast<std::size_t>(edge.from)].vertex < 0 ||
                      graph_.layout_.boxes[static_cast<std::size_t>(edge.to)].vertex < 0;
  if (folded && look.share <= 0 && !look.selected && !look.highlighted) look.width = 1;
  return look;
}

EdgeLine TopologyPainter::line_of(const TopologyEdge& edge, double width) const {
  const EdgeLine line = edge_line(graph_.layout_, edge, width / std::max(0.2, graph_.zoom_));
  return {graph_.toScreen(line.from), graph_.toScreen(line.to), graph_.toScreen(line.bend)};
}

void TopologyPainter::frames() {
  for (const TopologyFrame& frame : graph_.layout_.frames) {
    const QRectF rect(graph_.toScreen(frame.rect.topLeft()), frame.rect.size() * graph_.zoom_);
    painter_.setPen(QPen(tokens_.line, 1));
    painter_.setBrush(mixed(tokens_.surface, tokens_.window, 0.7));
    painter_.drawRoundedRect(rect, 5, 5);
  }
}

void TopologyPainter::edges() {
  // Faint links first, so that the loaded ones lie above them.
  std::vector<std::pair<double, const TopologyEdge*>> order;
  for (const TopologyEdge& edge : graph_.layout_.edges) order.emplace_back(look_of(edge).share, &edge);
  std::stable_sort(order.begin(), order.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  const bool dim = !graph_.highlighted_.empty();
  for (const auto& [share, edge] : order) {
    const EdgeLook look = look_of(*edge);
    const EdgeLine line = line_of(*edge, look.width);
    QColor color = share_color(tokens_, look.share);
    if (dim && !look.highlighted && !look.selected) color = mixed(tokens_.surface, color, 0.25);
    QPainterPath path(line.from);
    path.quadTo(line.bend, line.to);
    const auto stroke = [&](const QColor& with, double width, Qt::PenStyle style) {
      painter_.strokePath(path, QPen(with, width, style, Qt::FlatCap));
    };
    if (look.selected || look.highlighted)
      stroke(look.selected ? tokens_.accent : mixed(tokens_.surface, tokens_.accent, 0.6), look.width + 5, Qt::SolidLine);
    stroke(color, look.width, look.edited ? Qt::DashLine : Qt::SolidLine);
    if (look.edited) stroke(tokens_.text, 1, Qt::DotLine);
  }
}

void TopologyPainter::boxes() {
  // Names of frames lie over the links that enter them.
  painter_.setFont(small_);
  for (const TopologyFrame& frame : graph_.layout_.frames) {
    const QPointF corner = graph_.toScreen(frame.rect.topLeft());
    if (frame.rect.width() * graph_.zoom_ < 40) continue;
    const QString title = text_of(frame.title);
    const QRectF room(corner + QPointF(5, 3),
                      QSizeF(painter_.fontMetrics().horizontalAdvance(title) + 8, painter_.fontMetrics().height()));
    painter_.setPen(Qt::NoPen);
    painter_.setBrush(mixed(tokens_.surface, tokens_.window, 0.7));
    painter_.drawRect(room);
    painter_.setPen(tokens_.muted);
    painter_.drawText(room, Qt::AlignCenter, title);
  }
  const Topology& topology = graph_.picture_->topology();
  for (std::size_t b = 0; b < graph_.layout_.boxes.size(); ++b) {
    const TopologyBox& box = graph_.layout_.boxes[b];
    const QRectF rect(graph_.toScreen(box.rect.topLeft()), box.rect.size() * graph_.zoom_);
    if (!rect.intersects(QRectF(graph_.rect()))) continue;
    const bool gpu = box.vertex >= 0 && topology.vertices()[static_cast<std::size_t>(box.vertex)].kind == VertexKind::kGpu;
    painter_.setPen(QPen(gpu ? tokens_.attention : tokens_.muted, 1));
    painter_.setBrush(gpu ? mixed(tokens_.surface, tokens_.attention, 0.16) : tokens_.raised);
    painter_.drawRoundedRect(rect, 3, 3);
    if (rect.height() < 11 || rect.width() < 18) continue;
    painter_.setFont(small_);
    painter_.setPen(tokens_.text);
    if (box.vertex >= 0) {
      const QString title =
          painter_.fontMetrics().elidedText(text_of(box.title), Qt::ElideRight, static_cast<int>(rect.width()) - 2);
      painter_.drawText(rect, Qt::AlignCenter, title);
      continue;
    }
    // A folded group: its name, what it holds, how busy its busiest link inside is.
    double inner = 0;
    for (std::size_t l = 0; l < graph_.layout_.inner_of.size(); ++l) {
      if (graph_.layout_.inner_of[l] == static_cast<std::int32_t>(b))
        inner = std::max(inner, graph_.share_of(static_cast<std::int32_t>(l)));
    }
    QFont bold = small_;
    bold.setBold(true);
    painter_.setFont(bold);
    const double line = painter_.fontMetrics().height();
    const bool room = rect.height() > 3.2 * line;
    painter_.drawText(room ? QRectF(rect.left(), rect.top() + 3, rect.width(), line) : rect, Qt::AlignCenter, text_of(box.title));
    if (!room) continue;
    painter_.setFont(small_);
    painter_.setPen(tokens_.muted);
    painter_.drawText(QRectF(rect.left() + 2, rect.top() + 3 + line, rect.width() - 4, line), Qt::AlignCenter,
                      painter_.fontMetrics().elidedText(text_of(box.note), Qt::ElideRight, static_cast<int>(rect.width()) - 6));
    if (box.group.level == GroupLevel::kSpines) continue;
    const QRectF bar(rect.left() + 8, rect.bottom() - 9, rect.width() - 16, 5);
    painter_.setPen(Qt::NoPen);
    painter_.setBrush(tokens_.grid);
    painter_.drawRect(bar);
    painter_.setBrush(share_color(tokens_, inner));
    painter_.drawRect(QRectF(bar.left(), bar.top(), bar.width() * std::min(1.0, inner), bar.height()));
  }
}

void TopologyPainter::label(const QPointF& middle, const QString& text, const QColor& frame) {
  painter_.setFont(small_);
  const QRectF room = QRectF(painter_.fontMetrics().boundingRect(text)).adjusted(-5, -2, 5, 2);
  QRectF box(middle - QPointF(room.width() / 2, room.height() / 2), room.size());
  // Inside the widget, whole.
  if (box.left() < 2) box.moveLeft(2);
  if (box.right() > graph_.width() - 2) box.moveRight(graph_.width() - 2);
  if (box.top() < 2) box.moveTop(2);
  painter_.setPen(QPen(frame, 1));
  painter_.setBrush(tokens_.surface);
  painter_.drawRoundedRect(box, 3, 3);
  painter_.setPen(tokens_.text);
  painter_.drawText(box, Qt::AlignCenter, text);
}

/// The three edges with the highest share, one label each; edges that lie on each other do not repeat it.
void TopologyPainter::worst_labels() {
  std::vector<std::pair<double, const TopologyEdge*>> order;
  for (const TopologyEdge& edge : graph_.layout_.edges) {
    const double share = look_of(edge).share;
    if (share > 0) order.emplace_back(share, &edge);
  }
  std::stable_sort(order.begin(), order.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<QPointF> taken;
  for (const auto& [share, edge] : order) {
    if (taken.size() == 3) break;
    const EdgeLook look = look_of(*edge);
    const EdgeLine line = line_of(*edge, look.width);
    // Beside boxes that stand close a label hangs below them, off their names.
    QPointF middle = line.at(0.5);
    const QRectF& box = graph_.layout_.boxes[static_cast<std::size_t>(edge->from)].rect;
    const bool across = line.straight() && std::abs(line.from.y() - line.to.y()) < 1;
    if (across) middle.setY(graph_.toScreen(box.bottomLeft()).y() + painter_.fontMetrics().height());
    if (!QRectF(graph_.rect()).contains(middle)) continue;
    const bool near = std::any_of(taken.begin(), taken.end(), [&](const QPointF& p) {
      return std::abs(p.x() - middle.x()) < 120 && std::abs(p.y() - middle.y()) < 24;
    });
    if (near) continue;
    taken.push_back(middle);
    label(middle, graph_.tr("%1 used").arg(share_text(share)), share_color(tokens_, share));
  }
}

/// Numbered arrows from rank to rank; a hop that leaves its node is heavier.
void TopologyPainter::ring() {
  if (graph_.ring_ < 0 || static_cast<std::size_t>(graph_.ring_) >= graph_.picture_->rings.size()) return;
  const RingPicture& ring = graph_.picture_->rings[static_cast<std::size_t>(graph_.ring_)];
  const Topology& topology = graph_.picture_->topology();
  struct Number {
    QPointF place;
    int number;
    bool heavy;
  };
  std::vector<Number> numbers;
  for (std::size_t h = 0; h < ring.hops.size(); ++h) {
    const RingHopPicture& hop = ring.hops[h];
    const std::int32_t a = graph_.layout_.box_of[static_cast<std::size_t>(topology.gpus()[static_cast<std::size_t>(hop.from)])];
    const std::int32_t b = graph_.layout_.box_of[static_cast<std::size_t>(topology.gpus()[static_cast<std::size_t>(hop.to)])];
    if (a < 0 || b < 0 || a == b) continue;
    const QRectF from = graph_.layout_.boxes[static_cast<std::size_t>(a)].rect,
                 to = graph_.layout_.boxes[static_cast<std::size_t>(b)].rect;
    const bool heavy = hop.network.crosses_node;
    // Below the boxes: links leave GPUs upwards and downwards in the middle, the ring takes the corners.
    const QPointF start = graph_.toScreen(QPointF(from.left() + from.width() * 0.72, from.bottom()));
    const QPointF end = graph_.toScreen(QPointF(to.left() + to.width() * 0.28, to.bottom()));
    const double sag = std::clamp(18 + std::abs(end.x() - start.x()) * 0.10, 18.0, 110.0);
    QPainterPath path(start);
    path.cubicTo(start + QPointF(0, sag), end + QPointF(0, sag), end);
    const QColor color = heavy ? tokens_.exposed : tokens_.ring;
    painter_.strokePath(path, QPen(tokens_.surface, heavy ? 6.5 : 4.5));
    painter_.strokePath(path, QPen(color, heavy ? 4 : 2));
    painter_.setPen(Qt::NoPen);
    painter_.setBrush(color);
    const double head = heavy ? 5.5 : 4;
    painter_.drawPolygon(QPolygonF({end, end + QPointF(-head, head * 1.9), end + QPointF(head, head * 1.9)}));
    numbers.push_back({path.pointAtPercent(0.5), static_cast<int>(h) + 1, heavy});
  }
  for (const Number& n : numbers) {
    painter_.setFont(small_);
    const QRectF circle(n.place - QPointF(9, 9), QSizeF(18, 18));
    painter_.setPen(QPen(tokens_.surface, 1));
    painter_.setBrush(n.heavy ? tokens_.exposed : tokens_.ring);
    painter_.drawEllipse(circle);
    painter_.setPen(contrast(n.heavy ? tokens_.exposed : tokens_.ring, Qt::white) > 4 ? QColor(Qt::white)
                                                                                      : QColor(0x10, 0x13, 0x1A));
    painter_.drawText(circle, Qt::AlignCenter, QString::number(n.number));
  }
}

void TopologyPainter::legend() {
  painter_.setFont(small_);
  const double line = painter_.fontMetrics().height() + 3;
  const QString what = graph_.shares_name_.isEmpty() ? graph_.tr("share of the step a link is used") : graph_.shares_name_;
  const double width = std::max(150.0, painter_.fontMetrics().horizontalAdvance(what) + 16.0);
  const QRectF box(8, graph_.height() - 2 * line - 14, width, 2 * line + 6);
  painter_.setPen(QPen(tokens_.line, 1));
  painter_.setBrush(with_alpha(tokens_.surface, 235));
  painter_.drawRoundedRect(box, 4, 4);
  painter_.setPen(tokens_.muted);
  painter_.drawText(QRectF(box.left() + 8, box.top() + 2, box.width() - 16, line), Qt::AlignLeft | Qt::AlignVCenter, what);
  const double left = box.left() + 8 + painter_.fontMetrics().horizontalAdvance(QStringLiteral("0 ")),
               right = box.right() - 8 - painter_.fontMetrics().horizontalAdvance(QStringLiteral(" 100 %"));
  const QRectF bar(left, box.top() + line + 5, right - left, line - 8);
  for (int i = 0; i < static_cast<int>(bar.width()); ++i)
    painter_.fillRect(QRectF(bar.left() + i, bar.top(), 1, bar.height()), share_color(tokens_, (i + 0.5) / bar.width()));
  painter_.setPen(tokens_.muted);
  painter_.drawText(QRectF(box.left() + 8, bar.top() - 4, 20, bar.height() + 8), Qt::AlignLeft | Qt::AlignVCenter,
                    QStringLiteral("0"));
  painter_.drawText(QRectF(box.left(), bar.top() - 4, box.width() - 8, bar.height() + 8), Qt::AlignRight | Qt::AlignVCenter,
                    QStringLiteral("100 %"));
}

}  // namespace cpfit::gui
