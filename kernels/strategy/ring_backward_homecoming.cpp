#include "kernels/strategy/ring.h"
#include "model/attention/ring_work.h"

namespace cpfit::kernels {

Gradients homecoming_ring_backward(const RankContext& context, const RingSeat& seat, const KvView& own, const QueryView& query) {
  StepPlan plan(context.layer, context.method.fault, context.operators, seat.rank);
  BlockBackward backward(context);
  const Accumulation& accumulation = context.method.accumulation;
  const Array dq = allocate_dq(context, context.sum_type(accumulation.wide_dq));
  const Number dkv_number = context.sum_type(accumulation.wide_dkv);
  const KvBuffer dkv[2] = {allocate_kv(context, dkv_number), allocate_kv(context, dkv_number)};
  KvBuffer buffer[2];
  if (seat.size > 1) buffer[1] = allocate_kv(context, context.layer.number);
  if (seat.size > 2) buffer[0] = allocate_kv(context, context.layer.number);
  const std::int32_t next = seat.member(seat.rank + 1);
  const std::int32_t previous = seat.member(seat.rank - 1);
  const auto hop = [&](const KvView& send, const KvView& receive) {
    std::vector<Message> batch;
    add_apart(batch, Message::Direction::kSend, next, send);
    add_apart(batch, Message::Direction::kReceive, previous, receive);
    return context.transport.start(batch);
  };

  KvView present = own;
  Ticket dkv_hop;
  for (std::int32_t step = 0; step < seat.size; ++step) {
    context.transport.begin_step(step);
    const bool last = step + 1 == seat.size;
    const Ticket kv_hop = last ? Ticket{} : hop(present, buffer[(step + 1) % 2].kv);
    const std::optional<Block> block = plan.step(attention::ring_owner(seat.size, seat.rank, step));
    if (block) {
      backward.run(*block, query, context.method.fault == Fault::kKvOfStepZero ? own : present);
      backward.add_query(*block, dq);
    }
    context.transport.wait(dkv_hop);  // the sum that came in during this step is of the shard just computed
    if (block) backward.add_kv(*block, dkv[step % 2].kv);
    context.transport.wait(kv_hop);
    if (!last) present = buffer[(step + 1) % 2].kv;
    const bool goes_on = seat.size > 1 && !(last && context.method.fault == Fault::kDkvOneHopShort);
    dkv_hop = goes_on ? hop(dkv[step % 2].kv, dkv[(step + 1) % 2].kv) : Ticket{};
  }
  context.transport.wait(dkv_hop);
  // After the homecoming hop the own shard's sum lies where the last one was received.
  const bool came_home = seat.size > 1 && context.method.fault != Fault::kDkvOneHopShort;
  Gradients gradients;
  gradients.dq = in_layer_type(context, dq);
  hand_back(context, dkv[(came_home ? seat.size : seat.size - 1) % 2].kv, gradients);
  return gradients;
}

}  // namespace cpfit::kernels
