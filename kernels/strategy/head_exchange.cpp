#include "kernels/strategy/head_exchange.h"

#include <algorithm>
#include <unordered_map>

#include "kernels/strategy/ring.h"

namespace cpfit::kernels {

namespace {

using Rows = std::vector<std::int32_t>;

Cut ring_cut(Cut cut, std::int32_t degree) {
  cut.cp /= degree;
  return cut;
}

/// Storage rows of the group's tokens, rank after rank.
Rows group_rows(const Cut& cut, const Mask& mask, std::int32_t place, std::int32_t degree) {
  Rows rows;
  for (std::int32_t i = 0; i < degree; ++i) {
    const Rows of_rank = storage_rows(cut, mask, place * degree + i);
    rows.insert(rows.end(), of_rank.begin(), of_rank.end());
  }
  return rows;
}

/// index[i] = where wanted[i] stands in `rows`.
Rows where(const Rows& rows, const Rows& wanted) {
  std::unordered_map<std::int32_t, std::int32_t> at;
  for (std::size_t i = 0; i < rows.size(); ++i) at[rows[i]] = static_cast<std::int32_t>(i);
  Rows index;
  index.reserve(wanted.size());
  for (const std::int32_t row : wanted) index.push_back(at.at(row));
  return index;
}

/// Trades the tokens of one side (queries or keys) for heads, and back.
class HeadExchange {
 public:
  HeadExchange(const RankContext& context, const Cut& cut)
      : context_(context), degree_(context.method.a2a_degree), rows_(cut.tokens_per_rank()) {
    const std::int32_t place = context.transport.rank() / degree_;
    for (std::int32_t i = 0; i < degree_; ++i) group_.push_back(place * degree_ + i);
    const Rows exchanged = group_rows(cut, context.layer.mask, place, degree_);
    const Rows in_ring = storage_rows(ring_cut(cut, degree_), context.layer.mask, place);
    const auto upload = [&](const Rows& index) {
      return context.operators.upload_int(static_cast<std::int64_t>(index.size()), 1, index);
    };
    to_ring_ = upload(where(exchanged, in_ring));
    from_ring_ = upload(where(in_ring, exchanged));
  }

  struct InFlight {
    Array send, received;
    Ticket ticket;
  };

  /// [s][heads * dim], this rank's tokens: part i are the heads of member i. With fewer heads than members, neighbours share one.
  [[nodiscard]] InFlight start_to_heads(const View& tokens, std::int32_t heads, std::int32_t dim) {
    const std::int64_t columns = std::int64_t{std::max(1, heads / degree_)} * dim;
    InFlight flight = allocate(tokens.number, columns);
    for (std::int32_t i = 0; i < degree_; ++i) {
      context_.operators.pack_columns(tokens, first_head(i, heads) * dim, part(flight.send, i));
    }
    flight.ticket = context_.transport.start_all_to_all(group_, flight.send, flight.received);
    return flight;
  }
  /// [u * s][heads / u * dim], in the order of the ring's cut.
  [[nodiscard]] Array finish_to_heads(const InFlight& flight) {
    context_.transport.wait(flight.ticket);
    const View received = flight.received;
    Array ordered = context_.operators.allocate(received.number, received.rows, received.row_elements);
    context_.operators.gather_rows(received, to_ring_, ordered);
    return ordered;
  }

  [[nodiscard]] InFlight start_to_tokens(const View& some_heads) {
    InFlight flight = allocate(some_heads.number, some_heads.row_elements);
    context_.operators.gather_rows(some_heads, from_ring_, flight.send);
    flight.ticket = context_.transport.start_all_to_all(group_, flight.send, flight.received);
    return flight;
  }
  /// [s][heads * dim]; a head that several members had is the sum of theirs.
  [[nodiscard]] Array finish_to_tokens(const InFlight& flight, std::int32_t heads, std::int32_t dim) {
    context_.transport.wait(flight.ticket);
    Array tokens = context_.operators.allocate(flight.received.view().number, rows_, std::int64_t{heads} * dim);
    for (std::int32_t i = 0; i < degree_;) {
      const std::int64_t head = first_head(i, heads);
      const View sum = part(flight.received, i);
      for (++i; i < degree_ && first_head(i, heads) == head; ++i) context_.operators.add(part(flight.received, i), sum);
      context_.operators.unpack_columns(sum, tokens, head * dim);
    }
    return tokens;
  }

 private:
  [[nodiscard]] InFlight allocate(Number number, std::int64_t columns) const {
    const std::int64_t rows = rows_ * degree_;
    return {context_.operators.allocate(number, rows, columns), context_.operators.allocate(number, rows, columns), {}};
  }
  [[nodiscard]] View part(const Array& all, std::int32_t member) const { return all.view().slice(member * rows_, rows_); }
  [[nodiscard]] std::int64_t first_head(std::int32_t member, std::int32_t heads) const {
    return std::int64_t{member} * heads / degree_;
  }

  const RankContext& context_;
  std::int32_t degree_;
  std::int64_t rows_;  // tokens of this rank
  std::vector<std::int32_t> group_;
  Array to_ring_, from_ring_;  // int32 [u * s]
};

}  // namespace

Layer layer_after_exchange(const Layer& layer, std::int32_t degree) {
  Layer inner = layer;
  inner.queries = ring_cut(layer.queries, degree);
  inner.keys = ring_cut(layer.keys, degree);
  inner.heads.q = layer.heads.q / degree;
  inner.heads.kv = std::max(1, layer.heads.kv / degree);
  return inner;
}

RingSeat seat_after_exchange(std::int32_t rank, std::int32_t cp, std::int32_t degree) {
  return {rank / degree, cp / degree, rank % degree, degree};
}

bool groups_make_shards(const Cut& cut, const Mask& mask, std::int32_t degree) {
  for (std::int32_t place = 0; place < cut.cp / degree; ++place) {
    Rows group = group_rows(cut, mask, place, degree);
    Rows shard = storage_rows(ring_cut(cut, degree), mask, place);
    std::ranges::sort(group);
    std::ranges::sort(shard);
    if (group != shard) return false;
  }
  return true;
}

Forward exchanged_forward(const RankContext& context, const View& q, const KvView& own) {
  const std::int32_t degree = context.method.a2a_degree;
  const Heads& heads = context.layer.heads;
  HeadExchange queries(context, context.layer.queries);
  HeadExchange keys(context, context.layer.keys);
  const auto q_flight = queries.start_to_heads(q, heads.q, heads.qk_dim);
  const auto k_flight = keys.start_to_heads(own.key, heads.kv, heads.qk_dim);
  const auto v_flight = keys.start_to_heads(own.value, heads.kv, heads.v_dim);
  const Array some_q = queries.finish_to_heads(q_flight);
  const Array some_k = keys.finish_to_heads(k_flight);
  const Array some_v = keys.finish_to_heads(v_flight);

  const Layer inner = layer_after_exchange(context.layer, degree);
  const RankContext ring{context.method, inner, context.operators, context.transport};
  const RingSeat seat = seat_after_exchange(context.transport.rank(), context.layer.queries.cp, degree);
  Forward forward = ring_forward(ring, seat, some_q, {some_k, some_v});
  forward.exchanged_q = some_q;
  forward.exchanged_out = forward.out;
  if (forward.kv_key.empty()) {
    forward.kv_key = some_k;
    forward.kv_value = some_v;
    forward.kv_owner = seat.rank;
  }
  forward.out = queries.finish_to_tokens(queries.start_to_tokens(forward.exchanged_out), heads.q, heads.v_dim);
  return forward;
}

Gradients exchanged_backward(const RankContext& context, const Forward& forward, const View& dout) {
  const std::int32_t degree = context.method.a2a_degree;
  const Heads& heads = context.layer.heads;
  HeadExchange queries(context, context.layer.queries);
  HeadExchange keys(context, context.layer.keys);
  const Array some_dout = queries.finish_to_heads(queries.start_to_heads(dout, heads.q, heads.v_dim));

  const Layer inner = layer_after_exchange(context.layer, degree);
  const RankContext ring{context.method, inner, context.operators, context.transport};
  const RingSeat seat = seat_after_exchange(context.transport.rank(), context.layer.queries.cp, degree);
  const Gradients some = ring_backward(ring, seat, forward, forward.exchanged_out, forward.exchanged_q,
                                       {forward.kv_key, forward.kv_value}, some_dout);

  const auto dq_flight = queries.start_to_tokens(some.dq);
  const auto dk_flight = keys.start_to_tokens(some.dk);
  const auto dv_flight = keys.start_to_tokens(some.dv);
  Gradients gradients;
  gradients.dq = queries.finish_to_tokens(dq_flight, heads.q, heads.qk_dim);
  gradients.dk = keys.finish_to_tokens(dk_flight, heads.kv, heads.qk_dim);
  gradients.dv = keys.finish_to_tokens(dv_flight, heads.kv, heads.v_dim);
  return gradients;
}

Array lse_sent_home(const RankContext& context, const View& lse) {
  HeadExchange queries(context, context.layer.queries);
  return queries.finish_to_tokens(queries.start_to_tokens(lse), context.layer.heads.q, 1);
}

}  // namespace cpfit::kernels
