// What every exchange is built from: a K and a V that may travel as one message, the sum of partial outputs, the gradients of
// one block and the sums they are added to. One rank, one layer, one pass.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/strategy/step_plan.h"
#include "kernels/strategy/strategy.h"

namespace cpfit::kernels {

/// What one rank works with in one pass; borrowed.
struct RankContext {
  const Method& method;
  const Layer& layer;
  Operators& operators;
  Transport& transport;

  /// The type of a sum over ring steps.
  [[nodiscard]] Number sum_type(bool wide) const { return wide ? operators.sum_number() : layer.number; }
  [[nodiscard]] MergeForm merge_form() const {
    return method.fault == Fault::kMergeThroughExp ? MergeForm::kThroughExp : MergeForm::kStable;
  }
};

/// The KV (or dKV) of one shard.
struct KvView {
  View key;    // [s_kv][h_kv * d_qk]
  View value;  // [s_kv][h_kv * d_v]
};

/// Its memory, V right behind K. The Array holds all as rows of one number.
struct KvBuffer {
  Array all;
  KvView kv;
};
[[nodiscard]] KvBuffer allocate_kv(const RankContext& context, Number number);
/// Same numbers, converted.
void copy_kv(Operators& operators, const KvView& from, const KvView& to);
/// The caller's KV in the layer's type, from a sum of any type.
void hand_back(const RankContext& context, const KvView& sum, Gradients& gradients);
/// `sum` in the layer's type; the sum itself when it has that type already.
[[nodiscard]] Array in_layer_type(const RankContext& context, const Array& sum);
/// An owner of part of a buffer, with the shape of `view`.
[[nodiscard]] Array share(const Array& all, const View& view);

/// K and V as two messages.
void add_apart(std::vector<Message>& batch, Message::Direction direction, std::int32_t peer, const KvView& kv);

/// out and lse over all blocks. Merges parts as they come, or keeps all and corrects them after the last (TransformerEngine; a
/// part's lse is then merged one step late).
class OutputSum {
 public:
  explicit OutputSum(const RankContext& context);
  /// Computes a block and takes it in.
  void attend(const Block& block, const View& q, const KvView& kv);
  /// Fills out and lse; once, after the last block.
  void finish(Forward& forward);

 private:
  struct Part {
    Rectangle at;
    Array out;  // [q_count][h_q * v_dim], the layer's type
    Array lse;  // [q_count][h_q]
  };
  [[nodiscard]] Part allocate_part(const Rectangle& at) const;
  void merge_pending_lse();

  const RankContext& context_;
  Array out_;  // [s_q][h_q * v_dim]
  Array lse_;  // [s_q][h_q]
  std::vector<Part> parts_;
  std::size_t lse_merged_ = 0;  // parts whose lse is in lse_
};

/// What the backward pass of every block needs of the queries' side.
struct QueryView {
  View q, dout, lse, delta;
};

/// The gradients of one block after another, in memory that is used again.
class BlockBackward {
 public:
  explicit BlockBackward(const RankContext& context);
  void run(const Block& block, const QueryView& query, const KvView& kv);
  /// Add the present block's gradients to sums over whole shards.
  void add_query(const Block& block, const View& dq) const;
  void add_kv(const Block& block, const KvView& dkv) const;

 private:
  const RankContext& context_;
  Array dq_;      // [s_q][h_q * d_qk]
  KvBuffer dkv_;  // both of the layer's type
};

/// delta of the whole shard: [s_q][h_q].
[[nodiscard]] Array delta_of(const RankContext& context, const View& out, const View& dout);
/// A sum over queries' rows, zero: [s_q][h_q * d_qk].
[[nodiscard]] Array allocate_dq(const RankContext& context, Number number);

}  // namespace cpfit::kernels
