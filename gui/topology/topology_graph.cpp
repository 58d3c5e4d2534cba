#include "gui/topology/topology_graph.h"

#include <QHelpEvent>
#include <QKeyEvent>
#include <QMouseEvent>
#include <QPainter>
#include <QToolTip>
#include <QWheelEvent>
#include <algorithm>
#include <cmath>

#include "gui/look/figures.h"
#include "gui/topology/topology_accessible.h"
#include "gui/topology/topology_paint.h"

namespace cpfit::gui {

namespace {

constexpr double kLeastZoom = 0.02, kMostZoom = 4;
constexpr double kReach = 6;  // pixels from a link

double distance_to(const QPointF& p, const QPointF& a, const QPointF& b) {
  const QPointF way = b - a;
  const double square = QPointF::dotProduct(way, way);
  const double t = square > 0 ? std::clamp(QPointF::dotProduct(p - a, way) / square, 0.0, 1.0) : 0.0;
  const QPointF off = p - (a + way * t);
  return std::hypot(off.x(), off.y());
}

}  // namespace

TopologyGraph::TopologyGraph(QWidget* parent) : QWidget(parent) {
  setFocusPolicy(Qt::StrongFocus);
  setMouseTracking(true);
  setAccessibleName(tr("Topology graph"));
  install_topology_accessibility(*this);
}

void TopologyGraph::setPicture(std::shared_ptr<const NetworkPicture> picture, const LinkEdits& edits) {
  const bool same = picture_ && picture && picture_->topology().vertices().size() == picture->topology().vertices().size() &&
                    picture_->cluster.name == picture->cluster.name;
  picture_ = std::move(picture);
  edits_ = edits;
  shares_.clear();
  shares_name_.clear();
  highlighted_.clear();
  if (!same) {
    open_.clear();
    selected_ = -1;
    fitted_ = true;
  }
  if (picture_ && ring_ >= static_cast<int>(picture_->rings.size())) ring_ = picture_->rings.empty() ? -1 : 0;
  lay_out();
}

void TopologyGraph::lay_out() {
  layout_ = picture_ ? topology_layout(picture_->topology(), open_) : TopologyLayout{};
  ++layout_number_;
  if (fitted_) fit();
  update();
}

void TopologyGraph::setShares(std::vector<double> shares, const QString& what) {
  shares_ = std::move(shares);
  shares_name_ = what;
  ++shares_number_;
  update();
}

double TopologyGraph::share_of(std::int32_t link) const {
  const std::size_t l = static_cast<std::size_t>(link);
  return l < shares_.size() ? shares_[l] : picture_->links[l].share;
}

void TopologyGraph::selectLink(std::int32_t link) {
  if (link == selected_) return;
  selected_ = link;
  setAccessibleDescription(link >= 0 ? linkText(link) : QString());
  update();
  announce_topology(*this);
  emit linkSelected(link);
}

QString TopologyGraph::sentence() const {
  if (!picture_) return tr("No cluster is shown");
  const auto boxes = static_cast<std::int64_t>(layout_.boxes.size()), links = static_cast<std::int64_t>(layout_.edges.size());
  QString text =
      tr("%1: %2 boxes, %3 links between them").arg(text_of(picture_->cluster.name), count_text(boxes), count_text(links));
  if (!picture_->worst.empty()) text += tr("; most used: %1").arg(linkText(picture_->worst.front()));
  return text;
}

QString TopologyGraph::boxText(std::int32_t box) const {
  const TopologyBox& of = layout_.boxes[static_cast<std::size_t>(box)];
  QString text = text_of(of.title);
  if (!of.note.empty()) text += QStringLiteral(", ") + text_of(of.note);
  if (of.vertex < 0 && of.group.level != GroupLevel::kSpines) text += tr(", folded");
  return text;
}

QString TopologyGraph::edgeText(std::int32_t edge) const {
  const std::vector<std::int32_t>& links = layout_.edges[static_cast<std::size_t>(edge)].links;
  const std::int32_t most = *std::ranges::max_element(links, {}, [this](std::int32_t link) { return share_of(link); });
  if (links.size() == 1) return linkText(most);
  return tr("%1 links, most used %2").arg(count_text(static_cast<std::int64_t>(links.size())), linkText(most));
}

bool TopologyGraph::edgeHolds(std::int32_t edge, std::int32_t link) const {
  return link >= 0 && std::ranges::find(layout_.edges[static_cast<std::size_t>(edge)].links, link) !=
                          layout_.edges[static_cast<std::size_t>(edge)].links.end();
}

const std::vector<TopologyElement>& TopologyGraph::elements() const {
  const auto of = std::tuple(layout_number_, shares_number_, zoom_, offset_.x(), offset_.y(), width(), height());
  if (of == elements_of_) return elements_;
  std::vector<double> shares;
  for (std::size_t link = 0; picture_ && link < picture_->links.size(); ++link)
    shares.push_back(share_of(static_cast<std::int32_t>(link)));
  elements_ = topology_elements(layout_, shares, zoom_, offset_, rect());
  elements_of_ = of;
  return elements_;
}

void TopologyGraph::highlightLinks(std::vector<std::int32_t> links) {
  highlighted_ = std::set<std::int32_t>(links.begin(), links.end());
  update();
}

void TopologyGraph::showRing(int ring) {
  ring_ = ring;
  update();
}

void TopologyGraph::fit() {
  const QRectF bounds = layout_.bounds.adjusted(-20, -16, 20, 60);
  if (bounds.isEmpty() || width() <= 0) return;
  zoom_ = std::clamp(std::min(width() / bounds.width(), height() / bounds.height()), kLeastZoom, 1.25);
  offset_ = QPointF(width(), height()) / 2 - bounds.center() * zoom_;
  fitted_ = true;
  update();
}

void TopologyGraph::toggleGroup(GroupKey group) {
  if (group.level == GroupLevel::kSpines) return;
  if (open_.erase(group) == 0) open_.insert(group);
  lay_out();
  emit groupsChanged();
}

void TopologyGraph::setOpenGroups(std::set<GroupKey> groups) {
  open_ = std::move(groups);
  lay_out();
}

std::ptrdiff_t TopologyGraph::edge_of(std::int32_t link) const {
  for (std::size_t e = 0; e < layout_.edges.size(); ++e) {
    if (std::find(layout_.edges[e].links.begin(), layout_.edges[e].links.end(), link) != layout_.edges[e].links.end())
      return static_cast<std::ptrdiff_t>(e);
  }
  return -1;
}

std::int32_t TopologyGraph::linkAt(const QPointF& place) const {
  double best = kReach;
  std::int32_t found = -1;
  for (const TopologyEdge& edge : layout_.edges) {
    const EdgeLine line = edge_line(layout_, edge, 4);
    double away = kReach;
    const int parts = line.straight() ? 1 : kBowParts;
    for (int part = 0; part < parts; ++part)
      away = std::min(away, distance_to(place, toScreen(line.at(1.0 * part / parts)), toScreen(line.at((part + 1.0) / parts))));
    if (away >= best) continue;
    best = away;
    // Of several links the most used one stands for the edge.
    found = *std::max_element(edge.links.begin(), edge.links.end(),
                              [&](std::int32_t a, std::int32_t b) { return share_of(a) < share_of(b); });
  }
  return found;
}

QString TopologyGraph::linkText(std::int32_t link) const {
  const Link& l = picture_->topology().links()[static_cast<std::size_t>(link)];
  const LinkTraffic& traffic = picture_->links[static_cast<std::size_t>(link)];
  QString text =
      tr("%1: %2, %3, latency %4")
          .arg(text_of(picture_->link_name(link)), text_of(name_of(l.link_class)), rate_text(l.capacity), time_text(l.latency));
  if (traffic.bytes > 0) {
    text += (traffic.flows == 1 ? tr("; carries %1 in a step for %2 flow, used %3")
                                : tr("; carries %1 in a step for %2 flows, used %3"))
                .arg(bytes_text(Bytes(traffic.bytes)), count_text(traffic.flows), share_text(share_of(link)));
  } else {
    text += tr("; carries nothing");
  }
  if (edits_.contains(link)) text += tr("; edited");
  return text;
}

void TopologyGraph::zoom_at(const QPointF& place, double factor) {
  const double zoom = std::clamp(zoom_ * factor, kLeastZoom, kMostZoom);
  offset_ = place - (place - offset_) * (zoom / zoom_);
  zoom_ = zoom;
  fitted_ = false;
  update();
}

void TopologyGraph::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  TopologyPainter(*this, painter).paint();
}

void TopologyGraph::resizeEvent(QResizeEvent*) {
  if (fitted_) fit();
}

void TopologyGraph::wheelEvent(QWheelEvent* event) {
  zoom_at(event->position(), std::pow(1.2, event->angleDelta().y() / 120.0));
  event->accept();
}

void TopologyGraph::mousePressEvent(QMouseEvent* event) {
  pressed_at_ = event->position();
  pressed_offset_ = offset_;
  moved_ = false;
}

void TopologyGraph::mouseMoveEvent(QMouseEvent* event) {
  if (event->buttons() == Qt::NoButton) {
    setCursor(picture_ && linkAt(event->position()) >= 0 ? Qt::PointingHandCursor : Qt::ArrowCursor);
    return;
  }
  const QPointF way = event->position() - pressed_at_;
  if (!moved_ && std::hypot(way.x(), way.y()) < 4) return;
  moved_ = true;
  fitted_ = false;
  offset_ = pressed_offset_ + way;
  update();
}

void TopologyGraph::mouseReleaseEvent(QMouseEvent* event) {
  if (moved_ || !picture_ || event->button() != Qt::LeftButton) return;
  selectLink(linkAt(event->position()));
}

void TopologyGraph::mouseDoubleClickEvent(QMouseEvent* event) {
  if (!picture_) return;
  for (const TopologyBox& box : layout_.boxes) {
    if (box.vertex < 0 && QRectF(toScreen(box.rect.topLeft()), box.rect.size() * zoom_).contains(event->position()))
      return toggleGroup(box.group);
  }
  // The innermost frame closes again.
  const TopologyFrame* inner = nullptr;
  for (const TopologyFrame& frame : layout_.frames) {
    const QRectF rect(toScreen(frame.rect.topLeft()), frame.rect.size() * zoom_);
    if (rect.contains(event->position()) && (inner == nullptr || frame.rect.width() < inner->rect.width())) inner = &frame;
  }
  if (inner != nullptr && open_.contains(inner->group)) toggleGroup(inner->group);
}

void TopologyGraph::keyPressEvent(QKeyEvent* event) {
  if (!picture_) return QWidget::keyPressEvent(event);
  switch (event->key()) {
    case Qt::Key_Home:
      return fit();
    case Qt::Key_Plus:
    case Qt::Key_Equal:
    case Qt::Key_W:
      return zoom_at(QRectF(rect()).center(), 1.25);
    case Qt::Key_Minus:
    case Qt::Key_S:
      return zoom_at(QRectF(rect()).center(), 0.8);
    case Qt::Key_Left:
    case Qt::Key_Right:
    case Qt::Key_Up:
    case Qt::Key_Down:
      offset_ += QPointF(event->key() == Qt::Key_Left    ? 60
                         : event->key() == Qt::Key_Right ? -60
                                                         : 0,
                         event->key() == Qt::Key_Up     ? 60
                         : event->key() == Qt::Key_Down ? -60
                                                        : 0);
      fitted_ = false;
      return update();
    case Qt::Key_Comma:
    case Qt::Key_Period: {
      // Along the loaded links, the most used first.
      const std::vector<std::int32_t>& worst = picture_->worst;
      if (worst.empty()) return;
      const auto at = std::find(worst.begin(), worst.end(), selected_);
      std::ptrdiff_t next = at == worst.end() ? 0 : at - worst.begin() + (event->key() == Qt::Key_Period ? 1 : -1);
      next = std::clamp<std::ptrdiff_t>(next, 0, static_cast<std::ptrdiff_t>(worst.size()) - 1);
      return selectLink(worst[static_cast<std::size_t>(next)]);
    }
    case Qt::Key_Escape:
      if (selected_ < 0 && highlighted_.empty()) break;
      highlighted_.clear();
      selectLink(-1);
      return update();
    default:
      break;
  }
  QWidget::keyPressEvent(event);
}

bool TopologyGraph::event(QEvent* event) {
  if (event->type() == QEvent::ToolTip && picture_) {
    const auto* help = static_cast<QHelpEvent*>(event);
    const std::int32_t link = linkAt(help->pos());
    if (link >= 0) {
      QToolTip::showText(help->globalPos(), linkText(link), this);
    } else {
      QToolTip::hideText();
    }
    return true;
  }
  return QWidget::event(event);
}

}  // namespace cpfit::gui
