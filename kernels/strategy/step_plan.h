// Which kernels one rank launches in every step: the rectangle of its queries and of the keys at hand, and which scores count in
// it. Rectangles and kinds are those of model/attention/ring_work.h, so that what is simulated is what is proved; the query
// ranges and key positions behind a mixed block come from the cut (kernels/core/cut.h). The faults that belong to masks and
// positions are planted here. Rows are local rows of a shard, or rows of the sequence where KV was gathered.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "kernels/strategy/strategy.h"

namespace cpfit::kernels {

/// A ring among the ranks of a transport: `size` of them, `stride` apart; this one sits at `rank` of the ring.
struct RingSeat {
  std::int32_t rank = 0;
  std::int32_t size = 1;
  std::int32_t first = 0;
  std::int32_t stride = 1;

  /// Rank of the transport that sits at `place`; places go round.
  [[nodiscard]] std::int32_t member(std::int32_t place) const { return first + ((place % size + size) % size) * stride; }
};

/// Rows of the score matrix that one kernel computes. kEmpty: no kernel.
struct Rectangle {
  std::int64_t q_begin = 0, q_count = 0;
  std::int64_t k_begin = 0, k_count = 0;
  attention::BlockKind kind = attention::BlockKind::kEmpty;
};

/// `rank`'s queries against the KV shard of `owner`. Shards cut document by document, and cross attention: all of both.
[[nodiscard]] Rectangle ring_rectangle(const Layer& layer, std::int32_t rank, std::int32_t owner);
/// `rank`'s queries against the gathered KV in the order of the sequence; two for zigzag under a causal mask.
[[nodiscard]] std::vector<Rectangle> gathered_rectangles(const Layer& layer, std::int32_t rank);

/// A kernel that is launched: its rectangle's rows and its mask, sliced alike.
struct Block {
  Rectangle at;
  BlockMask mask;

  [[nodiscard]] View queries(const View& rows) const { return rows.slice(at.q_begin, at.q_count); }
  [[nodiscard]] View keys(const View& rows) const { return rows.slice(at.k_begin, at.k_count); }
};

/// The blocks of one rank (of `layer.queries.cp`) in one pass over one layer. Borrows the operators.
class StepPlan {
 public:
  StepPlan(const Layer& layer, Fault fault, Operators& operators, std::int32_t rank);

  /// Nothing: this step launches no kernel.
  [[nodiscard]] std::optional<Block> step(std::int32_t owner);
  [[nodiscard]] std::vector<Block> gathered();

 private:
  [[nodiscard]] Block block(const Rectangle& at, const View& key_position) const;
  [[nodiscard]] const Array& key_position(std::int32_t owner);

  Layer layer_;  // its mask's lengths as the fault has them
  Fault fault_;
  Operators& operators_;
  std::int32_t rank_;
  bool ranges_differ_;               // a fault moved a query range: rectangles of the true mask no longer bound it
  Array query_range_;                // int32 [s_q][2]
  std::vector<Array> key_position_;  // (cp) int32 [s_kv][1], made when first asked for
};

}  // namespace cpfit::kernels
