// The topology as a painted graph: boxes and directed links with width by capacity and shade by used share; the CP ring over it
// as numbered arrows. Wheel zooms at the pointer, drag pans, double-click opens and closes a group, arrows and Tab choose, Home
// fits.
#pragma once

#include <QWidget>
#include <memory>
#include <optional>
#include <set>
#include <tuple>

#include "gui/topology/network_picture.h"
#include "gui/topology/topology_elements.h"
#include "gui/topology/topology_layout.h"

namespace cpfit::gui {

class TopologyGraph : public QWidget {
  Q_OBJECT

 public:
  explicit TopologyGraph(QWidget* parent = nullptr);

  void setPicture(std::shared_ptr<const NetworkPicture> picture, const LinkEdits& edits);
  /// Another share per link (at the cursor, over a focus range) than the picture's mean; empty: the picture's. `what` names it.
  void setShares(std::vector<double> shares, const QString& what);
  void selectLink(std::int32_t link);  // -1: none
  void highlightLinks(std::vector<std::int32_t> links);
  void showRing(int ring);  // -1: none
  void fit();
  void toggleGroup(GroupKey group);
  void setOpenGroups(std::set<GroupKey> groups);

  [[nodiscard]] std::int32_t selectedLink() const { return selected_; }
  [[nodiscard]] const TopologyLayout& layout_of_graph() const { return layout_; }
  [[nodiscard]] const std::set<GroupKey>& openGroups() const { return open_; }
  [[nodiscard]] double zoom() const { return zoom_; }
  [[nodiscard]] QPointF toScreen(const QPointF& point) const { return point * zoom_ + offset_; }
  /// The link nearest to a place of the widget within a few pixels; -1: none.
  [[nodiscard]] std::int32_t linkAt(const QPointF& place) const;
  [[nodiscard]] QString linkText(std::int32_t link) const;
  // For who does not see it.
  [[nodiscard]] QString sentence() const;
  [[nodiscard]] QString boxText(std::int32_t box) const;    // "node 3, 8 GPUs, folded"
  [[nodiscard]] QString edgeText(std::int32_t edge) const;  // of its most used link, and how many they are
  [[nodiscard]] bool edgeHolds(std::int32_t edge, std::int32_t link) const;
  /// Boxes and links in sight.
  [[nodiscard]] const std::vector<TopologyElement>& elements() const;
  /// Another one after every new layout.
  [[nodiscard]] std::uint64_t layout_number() const { return layout_number_; }
  [[nodiscard]] QSize sizeHint() const override { return {560, 420}; }
  [[nodiscard]] QSize minimumSizeHint() const override { return {200, 160}; }

 signals:
  void linkSelected(int link);
  void groupsChanged();

 protected:
  void paintEvent(QPaintEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;
  void wheelEvent(QWheelEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;
  void mouseMoveEvent(QMouseEvent* event) override;
  void mouseReleaseEvent(QMouseEvent* event) override;
  void mouseDoubleClickEvent(QMouseEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;
  bool event(QEvent* event) override;

 private:
  friend class TopologyPainter;
  void lay_out();
  void zoom_at(const QPointF& place, double factor);
  [[nodiscard]] double share_of(std::int32_t link) const;
  [[nodiscard]] std::ptrdiff_t edge_of(std::int32_t link) const;

  std::shared_ptr<const NetworkPicture> picture_;
  LinkEdits edits_;
  std::vector<double> shares_;
  QString shares_name_;
  TopologyLayout layout_;
  std::set<GroupKey> open_;
  std::int32_t selected_ = -1;
  std::set<std::int32_t> highlighted_;
  int ring_ = -1;
  double zoom_ = 1;
  QPointF offset_, pressed_at_, pressed_offset_;
  bool moved_ = false, fitted_ = true;
  std::uint64_t layout_number_ = 1, shares_number_ = 1;
  mutable std::vector<TopologyElement> elements_;
  mutable std::tuple<std::uint64_t, std::uint64_t, double, double, double, int, int> elements_of_{};
};

}  // namespace cpfit::gui
