#include "gui/timeline/timeline_layout.h"

#include <algorithm>
#include <map>

namespace cpfit::gui {

namespace {

/// Ranks that are drawn as one: equal ones of one node.
struct Block {
  std::vector<std::int32_t> members;  // indices, ascending
  std::int32_t more_ring = -1;        // the ring whose other ranks are hidden behind this block
};

class RowWriter {
 public:
  RowWriter(const StepPicture& picture, const RowChoices& choices, const RowMetrics& metrics)
      : picture_(picture), choices_(choices), metrics_(metrics) {}

  void block(const Block& block, bool pinned) {
    const std::int32_t first = block.members.front();
    const PictureRank& rank = picture_.ranks[static_cast<std::size_t>(first)];
    const bool collapsed = choices_.collapsed_ranks.contains(rank.rank);
    skip(metrics_.gap);
    TimelineRow header = row(RowKind::kRank, rank.node, first, metrics_.rank);
    header.collapsed = collapsed;
    header.title = rank.title.empty() ? title_of(block) : rank.title;
    header.note = rank.title.empty() ? note_of(block) : rank.note;
    add(std::move(header), pinned);
    if (!collapsed) {
      for (std::size_t l = 0; l < rank.lanes.size(); ++l) {
        TimelineRow lane = row(RowKind::kLane, rank.node, first, metrics_.lane);
        lane.lane = rank.lanes[l];
        for (std::size_t m = 1; m < block.members.size(); ++m) {
          lane.same.push_back(picture_.ranks[static_cast<std::size_t>(block.members[m])].lanes[l]);
        }
        lane.title = lane_title(picture_.lane(lane.lane));
        add(std::move(lane), pinned);
      }
    }
    if (block.more_ring >= 0) more(block.more_ring, rank, pinned);
  }

  void node(std::int32_t number, std::size_t ranks) {
    TimelineRow header = row(RowKind::kNode, number, -1, metrics_.node);
    header.collapsed = choices_.collapsed_nodes.contains(number);
    header.title = "node " + std::to_string(number);
    header.note = std::to_string(ranks) + (ranks == 1 ? " rank" : " ranks");
    add(std::move(header), false);
  }

  [[nodiscard]] TimelineLayout take() {
    layout_.scrolled_height = y_;
    return std::move(layout_);
  }
  void end_pinned() {
    layout_.pinned = layout_.rows.size();
    layout_.pinned_height = y_ + (y_ > 0 ? metrics_.gap : 0);
    y_ = 0;
  }

 private:
  static TimelineRow row(RowKind kind, std::int32_t node, std::int32_t rank, int height) {
    TimelineRow made;
    made.kind = kind;
    made.node = node;
    made.rank = rank;
    made.height = height;
    return made;
  }
  void skip(int pixels) {
    if (y_ > 0) y_ += pixels;
  }
  void add(TimelineRow made, bool pinned) {
    made.pinned = pinned;
    made.top = y_;
    y_ += made.height;
    layout_.rows.push_back(std::move(made));
  }
  void more(std::int32_t ring, const PictureRank& shown, bool pinned) {
    std::vector<std::int64_t> others;
    for (const PictureRank& rank : picture_.ranks) {
      if (rank.ring == ring && rank.rank != shown.rank) others.push_back(rank.rank);
    }
    if (others.empty()) return;
    TimelineRow made = row(RowKind::kMore, shown.node, -1, metrics_.more);
    made.ring = ring;
    made.title = "show all " + std::to_string(others.size() + 1);
    made.note =
        (others.size() == 1 ? "1 more rank of this ring: " : std::to_string(others.size()) + " more ranks of this ring: ") +
        print_ranks(others);
    add(std::move(made), pinned);
  }
  [[nodiscard]] std::string title_of(const Block& block) const {
    std::vector<std::int64_t> ranks;
    for (const std::int32_t member : block.members) ranks.push_back(picture_.ranks[static_cast<std::size_t>(member)].rank);
    if (ranks.size() == 1) return "rank " + std::to_string(ranks.front());
    return "ranks " + print_ranks(ranks) + ", identical";
  }
  [[nodiscard]] std::string note_of(const Block& block) const {
    const PictureRank& rank = picture_.ranks[static_cast<std::size_t>(block.members.front())];
    std::string note;
    const auto add_part = [&note](const std::string& part) { note += (note.empty() ? "" : ", ") + part; };
    if (stages_ > 1) add_part("stage " + std::to_string(rank.stage));
    const bool last = std::find(block.members.begin(), block.members.end(), picture_.last_rank) != block.members.end();
    if (last && picture_.ranks.size() > 1) add_part("ends last");
    if (rank.stands_for.size() > 1) add_part("stands for " + std::to_string(rank.stands_for.size()));
    return note;
  }
  std::int32_t count_stages() const {
    std::int32_t stages = 1;
    for (const PictureRank& rank : picture_.ranks) stages = std::max(stages, rank.stage + 1);
    return stages;
  }

  const StepPicture& picture_;
  const RowChoices& choices_;
  const RowMetrics& metrics_;
  TimelineLayout layout_;
  int y_ = 0;
  std::int32_t stages_ = count_stages();
};

std::int64_t first_rank_of(const StepPicture& picture, std::int32_t ring) {
  for (const PictureRank& rank : picture.ranks) {
    if (rank.ring == ring) return rank.rank;
  }
  return -1;
}

/// Blocks of a node in the order of their first rank.
std::vector<Block> blocks_of(const StepPicture& picture, const RowChoices& choices, const std::vector<std::int32_t>& members) {
  std::vector<Block> blocks;
  std::map<std::int32_t, std::size_t> block_of;  // by `alike`
  std::map<std::int32_t, std::int32_t> shown;    // by ring
  for (const std::int32_t index : members) {
    const PictureRank& rank = picture.ranks[static_cast<std::size_t>(index)];
    const bool alone = std::count_if(picture.ranks.begin(), picture.ranks.end(),
                                     [&](const PictureRank& other) { return other.ring == rank.ring; }) == 1;
    if (!alone && !choices.open_rings.contains(first_rank_of(picture, rank.ring))) {
      const auto [known, fresh] = shown.try_emplace(rank.ring, 0);
      if (fresh) known->second = representative_of(picture, rank.ring);
      if (known->second != index) continue;
      blocks.push_back({{index}, rank.ring});
      continue;
    }
    const auto [known, fresh] = block_of.try_emplace(rank.alike, blocks.size());
    if (fresh) blocks.push_back({});
    blocks[known->second].members.push_back(index);
  }
  return blocks;
}

}  // namespace

std::ptrdiff_t TimelineLayout::row_at(int y, int scroll) const {
  const bool in_pinned = y < pinned_height;
  const int inside = in_pinned ? y : y - pinned_height + scroll;
  const std::size_t begin = in_pinned ? 0 : pinned;
  const std::size_t end = in_pinned ? pinned : rows.size();
  const auto first = rows.begin() + static_cast<std::ptrdiff_t>(begin), last = rows.begin() + static_cast<std::ptrdiff_t>(end);
  const auto found = std::partition_point(first, last, [&](const TimelineRow& row) { return row.top + row.height <= inside; });
  return found == last || found->top > inside ? -1 : found - rows.begin();
}

int TimelineLayout::top_of(std::size_t row, int scroll) const {
  return row < pinned ? rows[row].top : rows[row].top + pinned_height - scroll;
}

std::ptrdiff_t TimelineLayout::row_of_lane(std::int32_t lane) const {
  for (std::size_t r = 0; r < rows.size(); ++r) {
    if (rows[r].kind != RowKind::kLane) continue;
    const std::vector<std::int32_t>& same = rows[r].same;
    if (rows[r].lane == lane || std::find(same.begin(), same.end(), lane) != same.end()) return static_cast<std::ptrdiff_t>(r);
  }
  return -1;
}

TimelineLayout timeline_layout(const StepPicture& picture, const RowChoices& choices, const RowMetrics& metrics) {
  RowWriter writer(picture, choices, metrics);
  std::map<std::int32_t, std::vector<std::int32_t>> nodes;
  std::vector<std::int32_t> with_lanes;
  for (std::size_t r = 0; r < picture.ranks.size(); ++r) {
    const PictureRank& rank = picture.ranks[r];
    if (rank.lanes.empty()) continue;
    if (choices.pinned_ranks.contains(rank.rank)) {
      writer.block({{static_cast<std::int32_t>(r)}, -1}, true);
    } else {
      nodes[rank.node].push_back(static_cast<std::int32_t>(r));
    }
  }
  writer.end_pinned();
  for (const auto& [node, members] : nodes) {
    const std::vector<Block> blocks = blocks_of(picture, choices, members);
    if (blocks.empty()) continue;
    if (nodes.size() > 1) writer.node(node, members.size());
    if (nodes.size() > 1 && choices.collapsed_nodes.contains(node)) continue;
    for (const Block& block : blocks) writer.block(block, false);
  }
  return writer.take();
}

void show_rank(const StepPicture& picture, std::int32_t rank, RowChoices& choices) {
  if (rank < 0 || static_cast<std::size_t>(rank) >= picture.ranks.size()) return;
  const PictureRank& wanted = picture.ranks[static_cast<std::size_t>(rank)];
  choices.collapsed_ranks.erase(wanted.rank);
  choices.collapsed_nodes.erase(wanted.node);
  if (choices.pinned_ranks.contains(wanted.rank) || representative_of(picture, wanted.ring) == rank) return;
  choices.open_rings.insert(first_rank_of(picture, wanted.ring));
}

std::int32_t representative_of(const StepPicture& picture, std::int32_t ring) {
  std::int32_t best = -1;
  for (std::size_t r = 0; r < picture.ranks.size(); ++r) {
    const PictureRank& rank = picture.ranks[r];
    if (rank.ring != ring || rank.lanes.empty()) continue;
    if (static_cast<std::int32_t>(r) == picture.last_rank) return picture.last_rank;
    if (best < 0 || rank.exposed > picture.ranks[static_cast<std::size_t>(best)].exposed) best = static_cast<std::int32_t>(r);
  }
  return best;
}

std::string print_ranks(const std::vector<std::int64_t>& ranks) {
  if (ranks.empty()) return {};
  const std::int64_t step = ranks.size() > 1 ? ranks[1] - ranks[0] : 1;
  bool even = true;
  for (std::size_t i = 1; i < ranks.size(); ++i) even = even && ranks[i] - ranks[i - 1] == step;
  if (ranks.size() > 2 && even && step == 1) return std::to_string(ranks.front()) + "–" + std::to_string(ranks.back());
  std::string text;
  const bool shorten = ranks.size() > 5;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    if (shorten && i >= 3 && i + 1 < ranks.size()) continue;
    if (shorten && i + 1 == ranks.size()) {
      text += " … ";
    } else if (i > 0) {
      text += ", ";
    }
    text += std::to_string(ranks[i]);
  }
  return text;
}

}  // namespace cpfit::gui
