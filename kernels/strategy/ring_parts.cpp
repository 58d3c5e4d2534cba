#include "kernels/strategy/ring_parts.h"

#include <limits>
#include <memory>

namespace cpfit::kernels {

namespace {

std::int64_t q_rows(const RankContext& context) { return context.layer.queries.tokens_per_rank(); }

}  // namespace

KvBuffer allocate_kv(const RankContext& context, Number number) {
  const Heads& heads = context.layer.heads;
  const std::int64_t rows = context.layer.keys.tokens_per_rank();
  const std::int64_t keys = rows * heads.k_columns();
  KvBuffer buffer;
  buffer.all = context.operators.allocate(number, keys + rows * heads.v_columns(), 1);
  const View all = buffer.all;
  buffer.kv.key = {all.data, number, rows, heads.k_columns()};
  buffer.kv.value = {all.slice(keys, 0).data, number, rows, heads.v_columns()};
  return buffer;
}

void copy_kv(Operators& operators, const KvView& from, const KvView& to) {
  operators.copy(from.key, to.key);
  operators.copy(from.value, to.value);
}

Array share(const Array& all, const View& view) {
  return {std::shared_ptr<void>(std::make_shared<Array>(all), view.data), view.number, view.rows, view.row_elements};
}

Array in_layer_type(const RankContext& context, const Array& sum) {
  const View from = sum;
  if (from.number == context.layer.number) return sum;
  Array to = context.operators.allocate(context.layer.number, from.rows, from.row_elements);
  context.operators.copy(from, to);
  return to;
}

void hand_back(const RankContext& context, const KvView& sum, Gradients& gradients) {
  const Number number = context.layer.number;
  gradients.dk = context.operators.allocate(number, sum.key.rows, sum.key.row_elements);
  gradients.dv = context.operators.allocate(number, sum.value.rows, sum.value.row_elements);
  copy_kv(context.operators, sum, {gradients.dk, gradients.dv});
}

void add_apart(std::vector<Message>& batch, Message::Direction direction, std::int32_t peer, const KvView& kv) {
  batch.push_back({direction, peer, kv.key});
  batch.push_back({direction, peer, kv.value});
}

OutputSum::OutputSum(const RankContext& context) : context_(context) {
  const Heads& heads = context.layer.heads;
  Operators& operators = context.operators;
  out_ = operators.allocate(context.sum_type(context.method.accumulation.wide_out), q_rows(context), heads.out_columns());
  lse_ = operators.allocate(operators.sum_number(), q_rows(context), heads.q);
  operators.fill(lse_, -std::numeric_limits<double>::infinity());
}

OutputSum::Part OutputSum::allocate_part(const Rectangle& at) const {
  const Heads& heads = context_.layer.heads;
  Operators& operators = context_.operators;
  return {at, operators.allocate(context_.layer.number, at.q_count, heads.out_columns()),
          operators.allocate(operators.sum_number(), at.q_count, heads.q)};
}

void OutputSum::merge_pending_lse() {
  for (; lse_merged_ < parts_.size(); ++lse_merged_) {
    const Part& part = parts_[lse_merged_];
    context_.operators.merge_lse(context_.merge_form(), part.lse, lse_.view().slice(part.at.q_begin, part.at.q_count));
  }
}

void OutputSum::attend(const Block& block, const View& q, const KvView& kv) {
  const Heads& heads = context_.layer.heads;
  Operators& operators = context_.operators;
  const bool deferred = context_.method.deferred_output;
  if (!deferred && parts_.empty()) {  // one part's memory serves all blocks
    parts_.push_back(allocate_part({0, q_rows(context_), 0, 0, attention::BlockKind::kFull}));
  }
  const Part part = deferred ? allocate_part(block.at)
                             : Part{block.at, share(parts_[0].out, parts_[0].out.view().slice(0, block.at.q_count)),
                                    share(parts_[0].lse, parts_[0].lse.view().slice(0, block.at.q_count))};
  operators.forward(heads, block.mask, block.queries(q), block.keys(kv.key), block.keys(kv.value), part.out, part.lse);
  if (deferred) {
    merge_pending_lse();
    parts_.push_back(part);
  } else {
    operators.merge(heads, context_.merge_form(), part.out, part.lse, block.queries(out_), block.queries(lse_));
  }
}

void OutputSum::finish(Forward& forward) {
  if (context_.method.deferred_output) {
    merge_pending_lse();
    for (const Part& part : parts_) {
      const std::int64_t begin = part.at.q_begin;
      const std::int64_t count = part.at.q_count;
      context_.operators.add_weighted(context_.layer.heads, part.out, part.lse, lse_.view().slice(begin, count),
                                      out_.view().slice(begin, count));
    }
  }
  parts_.clear();
  forward.out = in_layer_type(context_, out_);
  forward.lse = lse_;
}

BlockBackward::BlockBackward(const RankContext& context)
    : context_(context), dq_(allocate_dq(context, context.layer.number)), dkv_(allocate_kv(context, context.layer.number)) {}

void BlockBackward::run(const Block& block, const QueryView& query, const KvView& kv) {
  const std::int64_t rows = block.at.q_count;
  const std::int64_t keys = block.at.k_count;
  context_.operators.backward(context_.layer.heads, block.mask, block.queries(query.q), block.keys(kv.key), block.keys(kv.value),
                              block.queries(query.dout), block.queries(query.lse), block.queries(query.delta),
                              dq_.view().slice(0, rows), dkv_.kv.key.slice(0, keys), dkv_.kv.value.slice(0, keys));
}

void BlockBackward::add_query(const Block& block, const View& dq) const {
  context_.operators.add(dq_.view().slice(0, block.at.q_count), block.queries(dq));
}

void BlockBackward::add_kv(const Block& block, const KvView& dkv) const {
  context_.operators.add(dkv_.kv.key.slice(0, block.at.k_count), block.keys(dkv.key));
  context_.operators.add(dkv_.kv.value.slice(0, block.at.k_count), block.keys(dkv.value));
}

Array delta_of(const RankContext& context, const View& out, const View& dout) {
  Array delta = context.operators.allocate(context.operators.sum_number(), out.rows, context.layer.heads.q);
  context.operators.row_delta(context.layer.heads, out, dout, delta);
  return delta;
}

Array allocate_dq(const RankContext& context, Number number) {
  const Heads& heads = context.layer.heads;
  return context.operators.allocate(number, q_rows(context), std::int64_t{heads.q} * heads.qk_dim);
}

}  // namespace cpfit::kernels
