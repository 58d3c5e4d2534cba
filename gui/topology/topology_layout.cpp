#include "gui/topology/topology_layout.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace cpfit::gui {

namespace {

// Sizes in pixels at zoom 1.
constexpr double kDeviceWidth = 58, kDeviceHeight = 30, kGap = 14, kTierGap = 46, kFramePad = 14, kFrameTitle = 20;
constexpr double kGroupWidth = 150, kGroupHeight = 62, kGroupGap = 22;

/// Rows inside a node, from above.
int tier_in_node(VertexKind kind) {
  switch (kind) {
    case VertexKind::kNic:
      return 0;
    case VertexKind::kCpu:
      return 1;
    case VertexKind::kPcieSwitch:
      return 2;
    case VertexKind::kGpu:
      return 3;
    case VertexKind::kNvSwitch:
    case VertexKind::kLeaf:
    case VertexKind::kSpine:
      break;
  }
  return 4;
}

/// How far a bow between two boxes of a tier hangs down.
double sag_over(double distance) { return 12 + 0.11 * distance; }

/// Groups of a graph: which node, unit and block every vertex belongs to.
struct Grouping {
  std::int32_t nodes = 0, units = 0, blocks = 0;
  std::vector<std::int32_t> unit_of_node, block_of_unit;
  std::vector<std::int32_t> unit_of_leaf;  // (vertices)
  GroupLevel top = GroupLevel::kNode;      // what is folded from the start
  bool folded = false;
};

Grouping grouping_of(const Topology& topology) {
  Grouping g;
  const std::vector<Vertex>& vertices = topology.vertices();
  for (const Vertex& v : vertices) g.nodes = std::max(g.nodes, v.node + 1);
  g.unit_of_node.assign(static_cast<std::size_t>(g.nodes), -1);
  g.unit_of_leaf.assign(vertices.size(), -1);
  std::map<std::int32_t, std::int32_t> unit_of_first_leaf;
  for (std::size_t r = 0; r < topology.gpus().size(); ++r) {
    const std::int32_t node = vertices[static_cast<std::size_t>(topology.gpus()[r])].node;
    if (node < 0) continue;
    std::int32_t& unit = g.unit_of_node[static_cast<std::size_t>(node)];
    const std::int32_t leaf = topology.leaf_of(static_cast<std::int64_t>(r));
    if (unit < 0) {
      const auto [known, fresh] = unit_of_first_leaf.try_emplace(leaf, g.units);
      if (fresh) ++g.units;
      unit = known->second;
    }
    if (leaf >= 0) g.unit_of_leaf[static_cast<std::size_t>(leaf)] = unit;
  }
  for (std::int32_t& unit : g.unit_of_node) {
    if (unit < 0) unit = g.units++;
  }
  const std::int32_t per_block = std::max(1, static_cast<std::int32_t>(std::ceil(static_cast<double>(g.units) / kDrawnGroups)));
  for (std::int32_t u = 0; u < g.units; ++u) g.block_of_unit.push_back(u / per_block);
  g.blocks = g.units == 0 ? 0 : g.block_of_unit.back() + 1;
  g.folded = static_cast<std::int64_t>(topology.gpus().size()) > kDrawnDevices;
  if (static_cast<std::size_t>(g.nodes) > kDrawnGroups) g.top = GroupLevel::kUnit;
  if (g.top == GroupLevel::kUnit && static_cast<std::size_t>(g.units) > kDrawnGroups) g.top = GroupLevel::kBlock;
  return g;
}

std::string title_of(GroupKey key) {
  switch (key.level) {
    case GroupLevel::kNode:
      return "node " + std::to_string(key.number);
    case GroupLevel::kUnit:
      return "unit " + std::to_string(key.number);
    case GroupLevel::kBlock:
      return "block " + std::to_string(key.number);
    case GroupLevel::kSpines:
      break;
  }
  return "spines";
}

class LayoutWriter {
 public:
  LayoutWriter(const Topology& topology, const std::set<GroupKey>& open)
      : topology_(topology), open_(open), grouping_(grouping_of(topology)) {
    layout_.box_of.assign(topology.vertices().size(), -1);
    for (std::size_t v = 0; v < topology.vertices().size(); ++v) {
      const Vertex& vertex = topology.vertices()[v];
      if (vertex.node >= 0) in_node_[vertex.node].push_back(static_cast<std::int32_t>(v));
      if (vertex.node < 0) fabric_.push_back(static_cast<std::int32_t>(v));
    }
    for (const Link& link : topology.links()) {
      const Vertex &a = topology.vertices()[static_cast<std::size_t>(link.from)],
                   &b = topology.vertices()[static_cast<std::size_t>(link.to)];
      if (a.kind == VertexKind::kGpu && b.kind == VertexKind::kGpu && a.node == b.node && std::abs(a.index - b.index) > 1)
        meshed_.insert(a.node);
    }
  }

  TopologyLayout write() {
    const double top = place_fabric_height();
    double x = 0;
    switch (grouping_.folded ? grouping_.top : GroupLevel::kNode) {
      case GroupLevel::kBlock:
        for (std::int32_t b = 0; b < grouping_.blocks; ++b) place(GroupKey{GroupLevel::kBlock, b}, x, top);
        break;
      case GroupLevel::kUnit:
        for (std::int32_t u = 0; u < grouping_.units; ++u) place(GroupKey{GroupLevel::kUnit, u}, x, top);
        break;
      case GroupLevel::kNode:
      case GroupLevel::kSpines:
        for (std::int32_t n = 0; n < grouping_.nodes; ++n) place(GroupKey{GroupLevel::kNode, n}, x, top);
        break;
    }
    end_grid(x, top);
    place_fabric();
    edges();
    for (const TopologyBox& box : layout_.boxes) layout_.bounds = layout_.bounds.united(box.rect);
    for (const TopologyFrame& frame : layout_.frames) layout_.bounds = layout_.bounds.united(frame.rect);
    return std::move(layout_);
  }

 private:
  [[nodiscard]] bool is_open(GroupKey key) const {
    return open_.contains(key) || (!grouping_.folded && key.level == GroupLevel::kNode);
  }
  [[nodiscard]] std::vector<GroupKey> members(GroupKey key) const {
    std::vector<GroupKey> inside;
    if (key.level == GroupLevel::kBlock) {
      for (std::int32_t u = 0; u < grouping_.units; ++u) {
        if (grouping_.block_of_unit[static_cast<std::size_t>(u)] == key.number) inside.push_back({GroupLevel::kUnit, u});
      }
    } else if (key.level == GroupLevel::kUnit) {
      for (std::int32_t n = 0; n < grouping_.nodes; ++n) {
        if (grouping_.unit_of_node[static_cast<std::size_t>(n)] == key.number) inside.push_back({GroupLevel::kNode, n});
      }
    }
    return inside;
  }

  /// Folded boxes wait until the row is known; open groups stand beside the grid.
  void place(GroupKey key, double& x, double top) {
    if (!is_open(key)) {
      grid_.push_back(key);
      return;
    }
    if (key.level == GroupLevel::kNode) {
      end_grid(x, top);
      x += open_node(key, x, top) + kGroupGap;
      return;
    }
    end_grid(x, top);
    const double left = x;
    const std::size_t first_frame = layout_.frames.size();
    layout_.frames.push_back({key, {}, title_of(key)});
    double inner = left + kFramePad;
    const std::size_t first_box = layout_.boxes.size();
    for (const GroupKey member : members(key)) place(member, inner, top + kFrameTitle + kFramePad);
    end_grid(inner, top + kFrameTitle + kFramePad);
    double bottom = top + kFrameTitle;
    for (std::size_t b = first_box; b < layout_.boxes.size(); ++b) bottom = std::max(bottom, layout_.boxes[b].rect.bottom());
    for (std::size_t f = first_frame + 1; f < layout_.frames.size(); ++f)
      bottom = std::max(bottom, layout_.frames[f].rect.bottom());
    layout_.frames[first_frame].rect =
        QRectF(left, top, std::max(kGroupWidth, inner - kGroupGap + kFramePad - left), bottom + kFramePad - top);
    x = layout_.frames[first_frame].rect.right() + kGroupGap;
  }

  void end_grid(double& x, double top) {
    if (grid_.empty()) return;
    const std::size_t count = grid_.size();
    // About twice as wide as high.
    const std::size_t columns =
        count <= 10 ? count : static_cast<std::size_t>(std::ceil(std::sqrt(static_cast<double>(count) * 1.3)));
    for (std::size_t i = 0; i < count; ++i) {
      const double left = x + static_cast<double>(i % columns) * (kGroupWidth + kGroupGap);
      const double upper = top + static_cast<double>(i / columns) * (kGroupHeight + kGroupGap);
      folded_box(grid_[i], QRectF(left, upper, kGroupWidth, kGroupHeight));
    }
    x += static_cast<double>(columns) * (kGroupWidth + kGroupGap);
    grid_.clear();
  }

  void swallow(GroupKey key, std::int32_t box) {
    if (key.level == GroupLevel::kNode) {
      for (const std::int32_t v : in_node_[key.number]) layout_.box_of[static_cast<std::size_t>(v)] = box;
      return;
    }
    for (const GroupKey member : members(key)) swallow(member, box);
    if (key.level != GroupLevel::kUnit) return;
    for (const std::int32_t v : fabric_) {
      if (grouping_.unit_of_leaf[static_cast<std::size_t>(v)] == key.number) layout_.box_of[static_cast<std::size_t>(v)] = box;
    }
  }

  void folded_box(GroupKey key, const QRectF& rect) {
    const std::int32_t index = static_cast<std::int32_t>(layout_.boxes.size());
    swallow(key, index);
    TopologyBox box;
    box.group = key;
    box.rect = rect;
    box.title = title_of(key);
    for (const std::int32_t gpu : topology_.gpus()) box.gpus += layout_.box_of[static_cast<std::size_t>(gpu)] == index ? 1 : 0;
    box.note = std::to_string(box.gpus) + (box.gpus == 1 ? " GPU" : " GPUs");
    if (key.level != GroupLevel::kNode) {
      std::int64_t nodes = 0;
      for (const GroupKey member : members(key))
        nodes += member.level == GroupLevel::kNode ? 1 : static_cast<std::int64_t>(members(member).size());
      box.note = std::to_string(nodes) + (nodes == 1 ? " node, " : " nodes, ") + box.note;
    }
    layout_.boxes.push_back(std::move(box));
  }

  void device(std::int32_t v, const QRectF& rect) {
    const Vertex& vertex = topology_.vertices()[static_cast<std::size_t>(v)];
    TopologyBox box;
    box.vertex = v;
    box.gpus = vertex.kind == VertexKind::kGpu ? 1 : 0;
    box.rect = rect;
    const std::size_t dot = vertex.name.find('.');
    box.title = vertex.node >= 0 && dot != std::string::npos ? vertex.name.substr(dot + 1) : vertex.name;
    layout_.box_of[static_cast<std::size_t>(v)] = static_cast<std::int32_t>(layout_.boxes.size());
    layout_.boxes.push_back(std::move(box));
  }

  /// The devices of a node in tiers; a tier with fewer devices is spread over the width. Returns the frame's width.
  double open_node(GroupKey key, double x, double top) {
    std::map<int, std::vector<std::int32_t>> tiers;
    for (const std::int32_t v : in_node_[key.number])
      tiers[tier_in_node(topology_.vertices()[static_cast<std::size_t>(v)].kind)].push_back(v);
    std::size_t widest = 1;
    for (const auto& [tier, devices] : tiers) widest = std::max(widest, devices.size());
    const double width = static_cast<double>(widest) * (kDeviceWidth + kGap) - kGap;
    double y = top + kFrameTitle + 6;
    for (const auto& [tier, devices] : tiers) {
      const double cell = width / static_cast<double>(devices.size());
      const double box_width = std::min(cell - 4, devices.size() < widest ? std::max(kDeviceWidth, cell * 0.6) : kDeviceWidth);
      for (std::size_t i = 0; i < devices.size(); ++i) {
        const double middle = x + kFramePad + cell * (static_cast<double>(i) + 0.5);
        device(devices[i], QRectF(middle - box_width / 2, y, box_width, kDeviceHeight));
      }
      y += kDeviceHeight + kTierGap;
    }
    const double bows = meshed_.contains(key.number) ? sag_over(width) : 0;
    const QRectF frame(x, top, width + 2 * kFramePad, y - kTierGap + kFramePad + bows - top);
    layout_.frames.push_back({key, frame, title_of(key)});
    return frame.width();
  }

  /// Fabric switches that no folded group holds, by tier; a tier of more than kDrawnGroups is one box.
  [[nodiscard]] std::map<int, std::vector<std::int32_t>> fabric_tiers() const {
    std::map<int, std::vector<std::int32_t>> tiers;  // 0 spine, 1 leaf, 2 NVSwitch plane of a rack
    for (const std::int32_t v : fabric_) {
      const VertexKind kind = topology_.vertices()[static_cast<std::size_t>(v)].kind;
      tiers[kind == VertexKind::kSpine ? 0 : kind == VertexKind::kLeaf ? 1 : 2].push_back(v);
    }
    return tiers;
  }

  double place_fabric_height() {
    // Leaves that folded units hold need no room of their own.
    const bool inside = grouping_.folded && grouping_.top != GroupLevel::kNode;
    const std::map<int, std::vector<std::int32_t>> tiers = fabric_tiers();
    return static_cast<double>(tiers.size() - (inside ? tiers.count(1) : 0)) * (kDeviceHeight + kTierGap * 1.4);
  }

  void place_fabric() {
    double left = 1e300, right = -1e300;
    for (const TopologyBox& box : layout_.boxes) {
      left = std::min(left, box.rect.left());
      right = std::max(right, box.rect.right());
    }
    if (layout_.boxes.empty()) left = right = 0;
    double y = 0;
    for (const auto& [tier, all] : fabric_tiers()) {
      std::vector<std::int32_t> free;
      for (const std::int32_t v : all) {
        if (layout_.box_of[static_cast<std::size_t>(v)] < 0) free.push_back(v);
      }
      if (free.size() > kDrawnGroups || (tier == 1 && grouping_.folded && free.size() > 1)) {
        const std::int32_t index = static_cast<std::int32_t>(layout_.boxes.size());
        for (const std::int32_t v : free) layout_.box_of[static_cast<std::size_t>(v)] = index;
        TopologyBox box;
        box.group = {GroupLevel::kSpines, tier};
        box.title = std::to_string(free.size()) + (tier == 0 ? " spines" : tier == 1 ? " leaves" : " planes");
        box.rect = QRectF((left + right) / 2 - kGroupWidth, y, 2 * kGroupWidth, kDeviceHeight);
        layout_.boxes.push_back(std::move(box));
      } else if (!free.empty()) {
        const double room = std::max(right - left, static_cast<double>(free.size()) * (kDeviceWidth + kGap));
        const double start = (left + right - room) / 2, cell = room / static_cast<double>(free.size());
        const double width = std::clamp(cell * 0.4, kDeviceWidth, 2.2 * kDeviceWidth);
        for (std::size_t i = 0; i < free.size(); ++i) {
          const double middle = start + cell * (static_cast<double>(i) + 0.5);
          device(free[i], QRectF(middle - width / 2, y, width, kDeviceHeight));
        }
      }
      if (!free.empty()) y += kDeviceHeight + kTierGap * 1.4;
    }
  }

  void edges() {
    std::map<std::pair<std::int32_t, std::int32_t>, std::size_t> known;
    layout_.inner_of.assign(topology_.links().size(), -1);
    for (std::size_t l = 0; l < topology_.links().size(); ++l) {
      const Link& link = topology_.links()[l];
      const std::int32_t a = layout_.box_of[static_cast<std::size_t>(link.from)],
                         b = layout_.box_of[static_cast<std::size_t>(link.to)];
      if (a < 0 || b < 0) continue;
      if (a == b) {
        layout_.inner_of[l] = a;
        continue;
      }
      const auto [edge, fresh] = known.try_emplace({a, b}, layout_.edges.size());
      if (fresh) layout_.edges.push_back({a, b, {}});
      layout_.edges[edge->second].links.push_back(static_cast<std::int32_t>(l));
    }
  }

  const Topology& topology_;
  const std::set<GroupKey>& open_;
  Grouping grouping_;
  TopologyLayout layout_;
  std::map<std::int32_t, std::vector<std::int32_t>> in_node_;
  std::vector<std::int32_t> fabric_;
  std::set<std::int32_t> meshed_;  // nodes whose GPUs are joined over the heads of their neighbours
  std::vector<GroupKey> grid_;
};

/// Where the line from the middle of a box towards `to` leaves it.
QPointF rim(const QRectF& box, const QPointF& to) {
  const QPointF middle = box.center(), way = to - middle;
  if (way.isNull()) return middle;
  const double sx = way.x() == 0 ? 1e9 : std::abs(box.width() / 2 / way.x()),
               sy = way.y() == 0 ? 1e9 : std::abs(box.height() / 2 / way.y());
  return middle + way * std::min({sx, sy, 1.0});
}

/// Whether a straight line between two boxes of a tier would run through others.
bool others_between(const TopologyLayout& layout, const QRectF& a, const QRectF& b) {
  const double left = std::min(a.center().x(), b.center().x()), right = std::max(a.center().x(), b.center().x());
  return std::any_of(layout.boxes.begin(), layout.boxes.end(), [&](const TopologyBox& box) {
    const QPointF middle = box.rect.center();
    return middle.x() > left && middle.x() < right && std::abs(middle.y() - a.center().y()) < 1;
  });
}

}  // namespace

bool folds(const Topology& topology) { return static_cast<std::int64_t>(topology.gpus().size()) > kDrawnDevices; }

TopologyLayout topology_layout(const Topology& topology, const std::set<GroupKey>& open) {
  return LayoutWriter(topology, open).write();
}

EdgeLine edge_line(const TopologyLayout& layout, const TopologyEdge& edge, double width) {
  const QRectF& a = layout.boxes[static_cast<std::size_t>(edge.from)].rect;
  const QRectF& b = layout.boxes[static_cast<std::size_t>(edge.to)].rect;
  const double apart = std::abs(a.center().x() - b.center().x());
  if (std::abs(a.center().y() - b.center().y()) < 1 && others_between(layout, a, b)) {
    // The way back hangs lower, and leaves outside.
    const bool right = b.center().x() > a.center().x();
    const double aside = (width / 2 + 1.5) * (right ? 1 : -1), lower = right ? 0 : width + 3;
    const QPointF from(a.center().x() + aside, a.bottom()), to(b.center().x() - aside, b.bottom());
    return {from, to, QPointF((from.x() + to.x()) / 2, from.y() + 2 * (sag_over(apart) + lower))};
  }
  QPointF from = rim(a, b.center()), to = rim(b, a.center());
  const QPointF way = to - from;
  const double length = std::hypot(way.x(), way.y());
  if (length > 0) {
    // Each direction keeps to its right.
    const QPointF aside = QPointF(-way.y(), way.x()) / length * (width / 2 + 1.5);
    from += aside;
    to += aside;
  }
  return {from, to, (from + to) / 2};
}

}  // namespace cpfit::gui
