// Which rows the step timeline has, and where: nodes, ranks of a node, lanes of a rank. Pure: the same arrangement and the same
// picture give the same rows.
//
// By default a CP ring of a pipeline stage shows one rank, the one that ends last or else waits most, with a row that shows the
// others. Ranks of one node that do the same are one block ("ranks 0-7, identical"). Pinned blocks come first and do not scroll.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "gui/timeline/step_picture.h"

namespace cpfit::gui {

/// What a person chose; survives a new simulation, as far as the ranks exist there. Keys are ranks of the cluster.
struct RowChoices {
  std::set<std::int64_t> open_rings;       // by the ring's first rank: all its ranks are shown
  std::set<std::int32_t> collapsed_nodes;  // headers only
  std::set<std::int64_t> collapsed_ranks;  // one row instead of a header and lanes
  std::set<std::int64_t> pinned_ranks;
  friend bool operator==(const RowChoices&, const RowChoices&) = default;
};

enum class RowKind : std::uint8_t { kNode, kRank, kLane, kMore /* "7 more ranks of this ring" */ };

struct TimelineRow {
  RowKind kind = RowKind::kLane;
  std::int32_t node = -1;
  std::int32_t rank = -1;               // index into StepPicture::ranks; the block's first
  std::int32_t lane = -1;               // index into Timeline::lanes
  std::int32_t ring = -1;               // kMore: which
  std::vector<std::int32_t> same = {};  // kLane: lanes of the block's other ranks
  bool collapsed = false, pinned = false;
  int top = 0, height = 0;  // pixels; pinned rows from 0, the others from 0 behind them
  std::string title, note;  // "rank 0", "ends last, stage 0"
};

struct RowMetrics {
  int node = 22, rank = 22, lane = 20, more = 20, gap = 4;  // pixels; gap above a rank
};

struct TimelineLayout {
  std::vector<TimelineRow> rows;
  std::size_t pinned = 0;  // the first so many rows
  int pinned_height = 0, scrolled_height = 0;

  /// The row at `y` of the lanes' area that is scrolled by `scroll`; -1 between rows and below the last one.
  [[nodiscard]] std::ptrdiff_t row_at(int y, int scroll) const;
  /// Top of a row in the lanes' area.
  [[nodiscard]] int top_of(std::size_t row, int scroll) const;
  /// The row that draws a lane (its own, or its collapsed rank's); -1 when none does.
  [[nodiscard]] std::ptrdiff_t row_of_lane(std::int32_t lane) const;
};

[[nodiscard]] TimelineLayout timeline_layout(const StepPicture& picture, const RowChoices& choices, const RowMetrics& metrics);

/// Opens whatever hides the lane's rank.
void show_rank(const StepPicture& picture, std::int32_t rank, RowChoices& choices);

/// The rank of a ring that is shown when the others are not.
[[nodiscard]] std::int32_t representative_of(const StepPicture& picture, std::int32_t ring);

/// "0-7", "0, 2, 4 … 14", "0, 3": ranks in short.
[[nodiscard]] std::string print_ranks(const std::vector<std::int64_t>& ascending);

}  // namespace cpfit::gui
