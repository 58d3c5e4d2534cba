#include "kernels/strategy/double_ring.h"

#include <functional>

#include "model/attention/ring_work.h"

namespace cpfit::kernels {

namespace {

/// cp ranks as windows (rows) of `window` ranks.
struct Windows {
  std::int32_t cp = 1;
  std::int32_t window = 1;
  std::int32_t rank = 0;

  [[nodiscard]] std::int32_t count() const { return cp / window; }
  /// The rank `outer` windows and `inner` places on; both go round.
  [[nodiscard]] std::int32_t on(std::int32_t outer, std::int32_t inner) const {
    const std::int32_t row = (rank / window + outer + count()) % count();
    return row * window + (rank % window + inner + window) % window;
  }
};

Ticket hop(Transport& transport, std::int32_t to, const KvView& send, std::int32_t from, const KvView& receive) {
  std::vector<Message> batch;
  add_apart(batch, Message::Direction::kSend, to, send);
  add_apart(batch, Message::Direction::kReceive, from, receive);
  return transport.start(batch);
}

/// KV goes round both rings; each step is done while the next KV is on its way. after_kv: called when it has arrived.
struct StepCalls {
  std::function<void(std::int32_t step, const KvView& kv)> compute;
  std::function<void(std::int32_t step)> after_kv = [](std::int32_t) {};
};

void turn_kv(const RankContext& context, const Windows& windows, const KvView& own, const StepCalls& calls) {
  KvBuffer inner[2];
  KvBuffer outer[2];
  for (KvBuffer& buffer : inner) {
    if (windows.window > 1) buffer = allocate_kv(context, context.layer.number);
  }
  for (KvBuffer& buffer : outer) {
    if (windows.count() > 1) buffer = allocate_kv(context, context.layer.number);
  }
  KvView present = own;
  for (std::int32_t turn = 0; turn < windows.count(); ++turn) {
    // What the window begins with moves on at once: it has the whole window to arrive.
    const bool last_turn = turn + 1 == windows.count();
    const KvView& coming = outer[(turn + 1) % 2].kv;
    const Ticket to_next_window =
        last_turn ? Ticket{} : hop(context.transport, windows.on(1, 0), present, windows.on(-1, 0), coming);
    for (std::int32_t place = 0; place < windows.window; ++place) {
      const bool last_place = place + 1 == windows.window;
      const std::int32_t step = turn * windows.window + place;
      context.transport.begin_step(step);
      const KvView& next = inner[(place + 1) % 2].kv;
      const Ticket to_next_rank =
          last_place ? Ticket{} : hop(context.transport, windows.on(0, 1), present, windows.on(0, -1), next);
      calls.compute(step, present);
      context.transport.wait(to_next_rank);
      if (!last_place) present = next;
      calls.after_kv(step);
    }
    context.transport.wait(to_next_window);
    if (!last_turn) present = coming;
  }
}

Windows windows_of(const RankContext& context) {
  return {context.layer.queries.cp, context.method.window, context.transport.rank()};
}

}  // namespace

Forward double_ring_forward(const RankContext& context, const View& q, const KvView& own) {
  const Windows windows = windows_of(context);
  StepPlan plan(context.layer, context.method.fault, context.operators, windows.rank);
  OutputSum sum(context);
  StepCalls calls;
  calls.compute = [&](std::int32_t step, const KvView& kv) {
    const std::int32_t owner = attention::double_ring_owner(windows.cp, windows.window, windows.rank, step);
    if (const std::optional<Block> block = plan.step(owner)) sum.attend(*block, q, kv);
  };
  turn_kv(context, windows, own, calls);
  Forward forward;
  sum.finish(forward);
  return forward;
}

Gradients double_ring_backward(const RankContext& context, const Forward& forward, const View& q, const KvView& own,
                               const View& dout) {
  const Windows windows = windows_of(context);
  Operators& operators = context.operators;
  const Accumulation& accumulation = context.method.accumulation;
  const Array delta = delta_of(context, forward.out, dout);
  const QueryView query{q, dout, forward.lse, delta};
  StepPlan plan(context.layer, context.method.fault, operators, windows.rank);
  BlockBackward backward(context);

  Array dq = allocate_dq(context, operators.sum_number());
  const Number wide = operators.sum_number();
  KvBuffer dkv[2] = {allocate_kv(context, wide), allocate_kv(context, wide)};  // of this step's shard, and of the next one's
  Ticket dkv_hop;
  const auto cast_dkv = [&](std::int32_t step) {
    const KvBuffer arrived = dkv[step % 2];
    for (KvBuffer& buffer : dkv) buffer = allocate_kv(context, context.layer.number);
    operators.copy(arrived.all, dkv[step % 2].all);
  };
  StepCalls calls;
  std::optional<Block> block;
  calls.compute = [&](std::int32_t step, const KvView& kv) {
    const bool enters_second_window = step == windows.window;
    if (enters_second_window && !accumulation.wide_dq) dq = in_layer_type(context, dq);
    block = plan.step(attention::double_ring_owner(windows.cp, windows.window, windows.rank, step));
    if (!block) return;
    backward.run(*block, query, context.method.fault == Fault::kKvOfStepZero ? own : kv);
    backward.add_query(*block, dq);
  };
  calls.after_kv = [&](std::int32_t step) {
    context.transport.wait(dkv_hop);
    dkv_hop = {};
    if (step == windows.window && !accumulation.wide_dkv) cast_dkv(step);
    if (block) backward.add_kv(*block, dkv[step % 2].kv);
    const bool last = step + 1 == windows.cp;
    if (windows.cp == 1 || (last && context.method.fault == Fault::kDkvOneHopShort)) return;
    const std::int32_t outer = (step + 1) % windows.window == 0 ? 1 : 0;
    dkv_hop = hop(context.transport, windows.on(outer, 1), dkv[step % 2].kv, windows.on(-outer, -1), dkv[(step + 1) % 2].kv);
  };
  turn_kv(context, windows, own, calls);
  context.transport.wait(dkv_hop);

  const bool came_home = windows.cp > 1 && context.method.fault != Fault::kDkvOneHopShort;
  Gradients gradients;
  gradients.dq = in_layer_type(context, dq);
  hand_back(context, dkv[(came_home ? windows.cp : windows.cp - 1) % 2].kv, gradients);
  return gradients;
}

}  // namespace cpfit::kernels
