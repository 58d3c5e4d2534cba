#include "kernels/strategy/all_gather.h"

#include <limits>
#include <numeric>

namespace cpfit::kernels {

namespace {

std::vector<std::int32_t> all_ranks(const Transport& transport) {
  std::vector<std::int32_t> ranks(static_cast<std::size_t>(transport.size()));
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

Array upload_index(Operators& operators, const std::vector<std::int32_t>& rows) {
  return operators.upload_int(static_cast<std::int64_t>(rows.size()), 1, rows);
}

/// K and V of the whole sequence, in its order.
struct WholeKv {
  Array key, value;
  [[nodiscard]] KvView view() const { return {key, value}; }
};

WholeKv gather(const RankContext& context, const KvView& own) {
  Operators& operators = context.operators;
  const Cut& keys = context.layer.keys;
  const std::vector<std::int32_t> group = all_ranks(context.transport);
  const Array index = upload_index(operators, unshard_rows(keys, context.layer.mask));
  const auto gathered = [&](const View& shard) {
    const Array ranks = operators.allocate(shard.number, keys.tokens, shard.row_elements);
    context.transport.wait(context.transport.start_all_gather(group, shard, ranks));
    Array ordered = operators.allocate(shard.number, keys.tokens, shard.row_elements);
    operators.gather_rows(ranks, index, ordered);
    return ordered;
  };
  return {gathered(own.key), gathered(own.value)};
}

/// The sum over ranks of the own rows of a whole-sequence gradient.
Array scatter(const RankContext& context, const View& whole) {
  Operators& operators = context.operators;
  const Cut& keys = context.layer.keys;
  std::vector<std::int32_t> rows;
  for (std::int32_t rank = 0; rank < keys.cp; ++rank) {
    const std::vector<std::int32_t> of_rank = storage_rows(keys, context.layer.mask, rank);
    rows.insert(rows.end(), of_rank.begin(), of_rank.end());
  }
  const Array by_rank = operators.allocate(whole.number, whole.rows, whole.row_elements);
  operators.gather_rows(whole, upload_index(operators, rows), by_rank);
  const Array own = operators.allocate(whole.number, keys.tokens_per_rank(), whole.row_elements);
  context.transport.reduce_scatter(operators, all_ranks(context.transport), by_rank, own);
  return in_layer_type(context, own);
}

}  // namespace

Forward all_gather_forward(const RankContext& context, const View& q, const KvView& own) {
  Operators& operators = context.operators;
  const Heads& heads = context.layer.heads;
  const WholeKv whole = gather(context, own);
  StepPlan plan(context.layer, context.method.fault, operators, context.transport.rank());
  Forward forward;
  forward.out = operators.allocate(context.layer.number, q.rows, std::int64_t{heads.q} * heads.v_dim);
  forward.lse = operators.allocate(operators.sum_number(), q.rows, heads.q);
  operators.fill(forward.lse, -std::numeric_limits<double>::infinity());
  // Every query is in one kernel at most: nothing is merged.
  for (const Block& block : plan.gathered()) {
    operators.forward(heads, block.mask, block.queries(q), block.keys(whole.key), block.keys(whole.value),
                      block.queries(forward.out), block.queries(forward.lse));
  }
  return forward;
}

Gradients all_gather_backward(const RankContext& context, const Forward& forward, const View& q, const KvView& own,
                              const View& dout) {
  Operators& operators = context.operators;
  const Heads& heads = context.layer.heads;
  const Accumulation& accumulation = context.method.accumulation;
  const Array delta = delta_of(context, forward.out, dout);
  const WholeKv whole = gather(context, own);
  StepPlan plan(context.layer, context.method.fault, operators, context.transport.rank());
  const Number dkv_number = context.sum_type(accumulation.wide_dkv);
  const auto zero_like = [&](const View& view, Number number) {
    return operators.allocate(number, view.rows, view.row_elements);
  };
  const Array dq = zero_like(q, context.layer.number);
  const WholeKv dkv{zero_like(whole.key, dkv_number), zero_like(whole.value, dkv_number)};
  const WholeKv part{zero_like(whole.key, context.layer.number), zero_like(whole.value, context.layer.number)};
  for (const Block& block : plan.gathered()) {
    const View dk = part.key.view().slice(0, block.at.k_count);
    const View dv = part.value.view().slice(0, block.at.k_count);
    operators.backward(heads, block.mask, block.queries(q), block.keys(whole.key), block.keys(whole.value), block.queries(dout),
                       block.queries(forward.lse), block.queries(delta), block.queries(dq), dk, dv);
    operators.add(dk, block.keys(dkv.key));
    operators.add(dv, block.keys(dkv.value));
  }
  return {dq, scatter(context, dkv.key), scatter(context, dkv.value)};
}

}  // namespace cpfit::kernels
