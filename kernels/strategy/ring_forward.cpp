#include "kernels/strategy/ring.h"
#include "model/attention/ring_work.h"

namespace cpfit::kernels {

namespace {

/// The messages of one hop: TransformerEngine sends K and V as one, out of `buffer`; the others from where they lie.
void add_hop(const RankContext& context, const RingSeat& seat, const KvBuffer& buffer, const KvView& send,
             const KvBuffer& receive, std::vector<Message>& batch) {
  const std::int32_t next = seat.member(seat.rank + 1);
  const std::int32_t previous = seat.member(seat.rank - 1);
  if (context.method.deferred_output) {
    batch.push_back(send_to(next, buffer.all));
    batch.push_back(receive_from(previous, receive.all));
  } else {
    add_apart(batch, Message::Direction::kSend, next, send);
    add_apart(batch, Message::Direction::kReceive, previous, receive.kv);
  }
}

}  // namespace

Forward ring_forward(const RankContext& context, const RingSeat& seat, const View& q, const KvView& own) {
  StepPlan plan(context.layer, context.method.fault, context.operators, seat.rank);
  OutputSum sum(context);
  const bool one_message = context.method.deferred_output;
  KvBuffer buffer[2];
  if (seat.size > 1) buffer[1] = allocate_kv(context, context.layer.number);
  if (seat.size > 2 || one_message) buffer[0] = allocate_kv(context, context.layer.number);
  KvView present = own;
  if (one_message) {
    copy_kv(context.operators, own, buffer[0].kv);
    present = buffer[0].kv;
  }
  for (std::int32_t step = 0; step < seat.size; ++step) {
    context.transport.begin_step(step);
    const KvBuffer& next = buffer[(step + 1) % 2];
    Ticket hop;
    if (step + 1 < seat.size) {
      std::vector<Message> batch;
      add_hop(context, seat, buffer[step % 2], present, next, batch);
      hop = context.transport.start(batch);
    }
    const std::int32_t owner = attention::ring_owner(seat.size, seat.rank, step);
    if (const std::optional<Block> block = plan.step(owner)) sum.attend(*block, q, present);
    context.transport.wait(hop);
    if (step + 1 < seat.size) present = next.kv;
  }
  Forward forward;
  sum.finish(forward);
  if (context.method.reversed_backward) {  // the KV received last, of the next rank, is what TransformerEngine saves
    const std::int32_t last = (seat.size - 1) % 2;
    if (buffer[last].all.empty()) {
      buffer[last] = allocate_kv(context, context.layer.number);
      copy_kv(context.operators, own, buffer[last].kv);
    }
    forward.kv_key = share(buffer[last].all, buffer[last].kv.key);
    forward.kv_value = share(buffer[last].all, buffer[last].kv.value);
    forward.kv_owner = attention::ring_owner(seat.size, seat.rank, seat.size - 1);
  }
  return forward;
}

Gradients ring_backward(const RankContext& context, const RingSeat& seat, const Forward& forward, const View& out, const View& q,
                        const KvView& own, const View& dout) {
  const Array delta = delta_of(context, out, dout);
  const QueryView query{q, dout, forward.lse, delta};
  return context.method.reversed_backward ? reversed_ring_backward(context, seat, {forward.kv_key, forward.kv_value}, query)
                                          : homecoming_ring_backward(context, seat, own, query);
}

}  // namespace cpfit::kernels
