#include "kernels/strategy/ring.h"

namespace cpfit::kernels {

namespace {

/// One of the two buffers that go round: a KV and the dKV of the shard before it, one message where both have one type.
struct Carrier {
  Array all;  // empty when the types differ
  KvBuffer kv;
  KvBuffer dkv;
};

KvBuffer part_of(const Array& all, std::int64_t begin, const KvBuffer& like) {
  const auto moved = [&](const View& view, std::int64_t offset) {
    return View{all.view().slice(begin + offset, 0).data, view.number, view.rows, view.row_elements};
  };
  KvBuffer part;
  part.all = share(all, all.view().slice(begin, like.all.view().rows));
  part.kv = {moved(like.kv.key, 0), moved(like.kv.value, like.kv.key.elements())};
  return part;
}

Carrier allocate_carrier(const RankContext& context, Number dkv_number) {
  Carrier carrier;
  carrier.kv = allocate_kv(context, context.layer.number);
  carrier.dkv = allocate_kv(context, dkv_number);
  if (dkv_number == context.layer.number) {
    const std::int64_t elements = carrier.kv.all.view().rows;
    carrier.all = context.operators.allocate(dkv_number, 2 * elements, 1);
    carrier.kv = part_of(carrier.all, 0, carrier.kv);
    carrier.dkv = part_of(carrier.all, elements, carrier.dkv);
  }
  return carrier;
}

/// The first message has no dKV yet, the last needs no KV.
void add_views(const Carrier& carrier, bool kv, bool dkv, Message::Direction direction, std::int32_t peer,
               std::vector<Message>& batch) {
  if (kv && dkv && !carrier.all.empty()) {
    batch.push_back({direction, peer, carrier.all});
    return;
  }
  if (kv) batch.push_back({direction, peer, carrier.kv.all});
  if (dkv) batch.push_back({direction, peer, carrier.dkv.all});
}

}  // namespace

Gradients reversed_ring_backward(const RankContext& context, const RingSeat& seat, const KvView& received_last,
                                 const QueryView& query) {
  StepPlan plan(context.layer, context.method.fault, context.operators, seat.rank);
  BlockBackward backward(context);
  const Accumulation& accumulation = context.method.accumulation;
  const Array dq = allocate_dq(context, context.sum_type(accumulation.wide_dq));
  const Number dkv_number = context.sum_type(accumulation.wide_dkv);
  Carrier carrier[2] = {allocate_carrier(context, dkv_number), allocate_carrier(context, dkv_number)};
  copy_kv(context.operators, received_last, carrier[0].kv.kv);
  for (std::int32_t step = 0; step < seat.size; ++step) {
    context.transport.begin_step(step);
    const Carrier& present = carrier[step % 2];
    const Carrier& next = carrier[(step + 1) % 2];
    const bool last = step + 1 == seat.size;
    const bool send_dkv = step > 0 && !(last && context.method.fault == Fault::kDkvOneHopShort);
    std::vector<Message> batch;
    add_views(present, !last, send_dkv, Message::Direction::kSend, seat.member(seat.rank - 1), batch);
    add_views(next, !last, send_dkv, Message::Direction::kReceive, seat.member(seat.rank + 1), batch);
    const Ticket hop = batch.empty() ? Ticket{} : context.transport.start(batch);

    const KvView& kv = context.method.fault == Fault::kKvOfStepZero ? received_last : present.kv.kv;
    const std::optional<Block> block = plan.step((seat.rank + 1 + step) % seat.size);
    if (block) {
      backward.run(*block, query, kv);
      backward.add_query(*block, dq);
    }
    // The dKV that arrives is of the shard just computed: the own part is added after the wait.
    if (!send_dkv) context.operators.fill(next.dkv.all, 0.0);
    context.transport.wait(hop);
    if (block) backward.add_kv(*block, next.dkv.kv);
  }
  Gradients gradients;
  gradients.dq = in_layer_type(context, dq);
  hand_back(context, carrier[seat.size % 2].dkv.kv, gradients);
  return gradients;
}

}  // namespace cpfit::kernels
