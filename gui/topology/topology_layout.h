// Where the boxes of the topology graph are: nodes left to right, tiers from the spine at the top down to GPUs and NVSwitches,
// rails as columns. Pure: the same graph and the same open groups give the same picture.
//
// Up to kDrawnDevices GPUs every device is drawn. Beyond, nodes fold into boxes, beyond kDrawnGroups nodes the nodes that share
// their leaves (with the leaves), beyond as many of these, blocks of them; a box opens into what it holds. Beside folded nodes
// the leaves are one box: eight rails to every node would hide what they join.
#pragma once

#include <QPointF>
#include <QRectF>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "model/cluster/topology.h"

namespace cpfit::gui {

inline constexpr std::int64_t kDrawnDevices = 64;
inline constexpr std::size_t kDrawnGroups = 64;

enum class GroupLevel : std::uint8_t { kNode, kUnit /* nodes that share their leaves */, kBlock /* of units */, kSpines };

struct GroupKey {
  GroupLevel level = GroupLevel::kNode;
  std::int32_t number = 0;
  friend auto operator<=>(const GroupKey&, const GroupKey&) = default;
};

/// A device, or a folded group.
struct TopologyBox {
  std::int32_t vertex = -1;  // -1: a group
  GroupKey group;
  std::int64_t gpus = 0;  // inside
  QRectF rect;
  std::string title, note;  // "node 3", "8 GPUs"
};
/// Round the boxes of an open group.
struct TopologyFrame {
  GroupKey group;
  QRectF rect;
  std::string title;
};
/// All links from one box to another; the other direction is an edge of its own.
struct TopologyEdge {
  std::int32_t from = -1, to = -1;  // boxes
  std::vector<std::int32_t> links;
};

struct TopologyLayout {
  std::vector<TopologyBox> boxes;
  std::vector<TopologyFrame> frames;
  std::vector<TopologyEdge> edges;
  std::vector<std::int32_t> box_of;    // (vertices)
  std::vector<std::int32_t> inner_of;  // (links) the box that holds both ends, -1 where they are apart
  QRectF bounds;
};

[[nodiscard]] TopologyLayout topology_layout(const Topology& topology, const std::set<GroupKey>& open);

/// Whether anything is folded at all before somebody opens it.
[[nodiscard]] bool folds(const Topology& topology);

/// The two ends of an edge on the rims of its boxes, moved aside so that both directions are seen. Between boxes of one tier with
/// others between them it is a bow below the tier: a quadratic curve with its control point at `bend`.
struct EdgeLine {
  QPointF from, to;
  QPointF bend;  // the middle of a straight line
  [[nodiscard]] QPointF at(double t) const { return from * ((1 - t) * (1 - t)) + bend * (2 * t * (1 - t)) + to * (t * t); }
  [[nodiscard]] bool straight() const { return bend == (from + to) / 2; }
};
inline constexpr int kBowParts = 16;  // pieces of a bow that pass for straight
[[nodiscard]] EdgeLine edge_line(const TopologyLayout& layout, const TopologyEdge& edge, double width);

}  // namespace cpfit::gui
