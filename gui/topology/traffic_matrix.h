// Who sends how much to whom as a matrix: ranks, or nodes where there are many. Rows send, columns receive. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gui/topology/network_picture.h"

namespace cpfit::gui {

struct TrafficMatrix {
  bool by_node = false;
  std::int64_t size = 0;
  std::vector<double> bytes;  // (size, size) of one step
  double most = 0;
  [[nodiscard]] double at(std::int64_t from, std::int64_t to) const { return bytes[static_cast<std::size_t>(from * size + to)]; }
};

/// All axes, or one of them.
[[nodiscard]] TrafficMatrix traffic_matrix(const NetworkPicture& picture, bool by_node, const Axis* only = nullptr);

/// 0..1 on a logarithmic scale from a 10,000th of the largest up; 0 for nothing, at least 0.15 for something.
[[nodiscard]] double matrix_shade(const TrafficMatrix& matrix, std::int64_t from, std::int64_t to);

/// A brushed block of pairs, both ends included.
struct PairBlock {
  std::int64_t from_first = 0, from_last = 0, to_first = 0, to_last = 0;
  friend bool operator==(const PairBlock&, const PairBlock&) = default;
};
struct BlockSums {
  std::int64_t pairs = 0;  // that send something
  double bytes = 0;
};
[[nodiscard]] BlockSums block_sums(const TrafficMatrix& matrix, const PairBlock& block);

/// Directed links on the ways of the block's pairs, ascending.
[[nodiscard]] std::vector<std::int32_t> links_of(const NetworkPicture& picture, const TrafficMatrix& matrix,
                                                 const PairBlock& block);

/// Graphviz; a link's label its capacity and share, edited ones dashed.
[[nodiscard]] std::string topology_dot(const NetworkPicture& picture, const LinkEdits& edits);
/// from,to,class,capacity_bytes_per_second,latency_seconds,bytes,busy_share,flows,edited
[[nodiscard]] std::string links_csv(const NetworkPicture& picture, const LinkEdits& edits);
[[nodiscard]] std::string matrix_csv(const TrafficMatrix& matrix);

}  // namespace cpfit::gui
