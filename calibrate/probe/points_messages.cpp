// Probes of messages, alone and beside attention. A batch is timed from its start until this rank's part has ended; the figure of
// several ranks is that of the last to be ready.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>

#include "calibrate/probe/pass_recorder.h"
#include "calibrate/probe/plan.h"
#include "calibrate/probe/points.h"

namespace cpfit::probe {

using kernels::Array;
using kernels::Message;
using kernels::Number;
using kernels::Transport;
using kernels::View;

namespace {

/// On a device that plays all ends everybody is a neighbour of itself; it takes two ends to make a message.
Transport& transport_of(const PointContext& context) {
  return context.device.transport(context.device.plays_all_ends() ? 2 : context.together.size());
}

struct Neighbours {
  std::int32_t next = 0;
  std::int32_t previous = 0;
};
Neighbours neighbours_of(const Transport& transport) {
  const std::int32_t size = transport.size();
  return {(transport.rank() + 1) % size, (transport.rank() + size - 1) % size};
}

/// `bytes` in the device's number type, a multiple of `parts` of them.
struct MessageBuffer {
  Array array;
  MessageBuffer(const PointContext& context, std::int64_t bytes, std::int64_t parts = 1) {
    const Number number = context.device.number();
    const std::int64_t elements = bytes / kernels::bytes_of(number) / parts * parts;
    array = context.device.operators().allocate(number, std::max(elements, parts), 1);
  }
};

SeriesRequest request_of(const PointContext& context, std::function<double()> seconds) {
  return {context.rule,
          {"seconds"},
          {Combine::kLargest},
          [seconds = std::move(seconds)] { return std::vector<double>{seconds()}; },
          context.interrupted};
}

double exchange_seconds(const PointContext& context, Transport& transport, const std::vector<Message>& batch) {
  transport.barrier();
  if (batch.empty()) return kNoPart;
  return context.device.seconds_of(context.device.operators(), [&] { transport.wait(transport.start(batch)); });
}

/// One way is half of there and back.
double ping_pong_seconds(const PointContext& context, Transport& transport, std::int32_t peer, bool first, const View& out,
                         const View& in) {
  const Message send = kernels::send_to(peer, out);
  const Message receive = kernels::receive_from(peer, in);
  const double both = context.device.seconds_of(context.device.operators(), [&] {
    for (const Message& message : first ? std::vector<Message>{send, receive} : std::vector<Message>{receive, send}) {
      transport.wait(transport.start({&message, 1}));
    }
  });
  return first ? both / 2 : kNoPart;
}

std::int32_t second_of_pair(const std::string& pair) { return std::atoi(pair.c_str() + pair.find('-') + 1); }

void start_collective(const PointContext& context, Transport& transport, const std::string& kind,
                      const std::vector<std::int32_t>& group, const View& whole, const View& part, const View& other) {
  kernels::Operators& operators = context.device.operators();
  if (kind == "all_gather") transport.wait(transport.start_all_gather(group, part, whole));
  if (kind == "reduce_scatter") transport.reduce_scatter(operators, group, whole, part);
  if (kind == "all_reduce") transport.all_reduce(operators, group, whole);
  if (kind == "all_to_all") transport.wait(transport.start_all_to_all(group, whole, other));
}

}  // namespace

void measure_p2p(const PointContext& context, MeasuredPoint& point) {
  Transport& transport = transport_of(context);
  const MessageBuffer out(context, *point.integer("bytes"));
  const MessageBuffer in(context, *point.integer("bytes"));
  const std::string pair = point.text("pair");
  const Neighbours neighbours = neighbours_of(transport);
  if (pair == "ring" || context.device.plays_all_ends()) {
    const std::vector<Message> batch = {kernels::send_to(neighbours.next, out.array),
                                        kernels::receive_from(neighbours.previous, in.array)};
    take(context, request_of(context, [&] { return exchange_seconds(context, transport, batch); }), point);
    return;
  }
  const std::int32_t second = second_of_pair(pair);
  const bool takes_part = transport.rank() == 0 || transport.rank() == second;
  const std::int32_t peer = transport.rank() == 0 ? second : 0;
  if (point.text("direction") == "one") {
    take(context,
         request_of(context,
                    [&] {
                      transport.barrier();
                      return takes_part ? ping_pong_seconds(context, transport, peer, transport.rank() == 0, out.array, in.array)
                                        : kNoPart;
                    }),
         point);
    return;
  }
  std::vector<Message> batch;
  if (takes_part) batch = {kernels::send_to(peer, out.array), kernels::receive_from(peer, in.array)};
  take(context, request_of(context, [&] { return exchange_seconds(context, transport, batch); }), point);
}

void measure_collective(const PointContext& context, MeasuredPoint& point) {
  Transport& transport = transport_of(context);
  const auto ranks = static_cast<std::int32_t>(*point.integer("ranks"));
  std::vector<std::int32_t> group;
  for (const auto& one : groups_of(transport.size(), ranks, point.text("stride") == "strided")) {
    if (std::ranges::find(one, transport.rank()) != one.end()) group = one;
  }
  const MessageBuffer whole(context, *point.integer("bytes"), ranks);
  const MessageBuffer other(context, *point.integer("bytes"), ranks);
  const std::int64_t part_rows = whole.array.view().rows / ranks;
  const Array part = context.device.operators().allocate(context.device.number(), part_rows, 1);
  const std::string kind = point.text("kind");
  take(context,
       request_of(context,
                  [&] {
                    transport.barrier();
                    return context.device.seconds_of(context.device.operators(), [&] {
                      start_collective(context, transport, kind, group, whole.array, part, other.array);
                    });
                  }),
       point);
}

void measure_overlap(const PointContext& context, MeasuredPoint& point) {
  Transport& transport = transport_of(context);
  BenchDevice& device = context.device;
  kernels::Operators& operators = device.operators();
  const bool backward = point.text("pass") == "backward";
  const BlockTensors block = make_block(operators, device.number(), heads_at(point), *point.integer("q"), *point.integer("kv"),
                                        point.text("mask") == "causal", context.seed);
  const MessageBuffer out(context, *point.integer("bytes"));
  const MessageBuffer in(context, *point.integer("bytes"));
  const Neighbours neighbours = neighbours_of(transport);
  const std::vector<Message> batch = {kernels::send_to(neighbours.next, out.array),
                                      kernels::receive_from(neighbours.previous, in.array)};
  const auto clock = device.pass_clock();
  ArrayPool pool(operators, [&](const View& view) { device.zero(view); });
  PassRecorder recorder(*clock, transport);
  TimedTransport timed(transport, pool, recorder);
  const bool by_this_core = device.moves_messages_between_tiles();
  const auto once = [&]() -> std::vector<double> {
    transport.barrier();
    const double compute_alone = device.seconds_of(operators, [&] { run_block(operators, block, backward); });
    const double message_alone = exchange_seconds(context, transport, batch);
    transport.barrier();
    recorder.begin();
    double polling = 0;
    device.call_between_tiles([&] {
      const auto asked = std::chrono::steady_clock::now();
      recorder.poll();
      polling += std::chrono::duration<double>(std::chrono::steady_clock::now() - asked).count();
    });
    const kernels::Ticket ticket = timed.start(batch);
    const std::size_t begin = recorder.mark();
    run_block(operators, block, backward);
    recorder.note(PassRecorder::Lane::kCompute, begin);
    timed.wait(ticket);
    device.call_between_tiles({});
    const PassTimes times = recorder.end();
    double message_beside = 0;
    for (const MeasuredWindow& window : recorder.windows()) {
      if (window.lane == "receive") message_beside = window.end_seconds - window.start_seconds;
    }
    std::vector<double> figures = {compute_alone, times.compute_seconds, message_alone, message_beside};
    if (by_this_core) figures.push_back(times.compute_seconds > 0 ? std::min(1.0, polling / times.compute_seconds) : 0);
    return figures;
  };
  std::vector<std::string> names = {"compute_alone_seconds", "compute_beside_seconds", "message_alone_seconds",
                                    "message_beside_seconds"};
  std::vector<Combine> combine = {Combine::kMean, Combine::kMean, Combine::kLargest, Combine::kLargest};
  if (by_this_core) {
    names.emplace_back("sm_share");
    combine.push_back(Combine::kMean);
  }
  take(context, {context.rule, names, combine, once, context.interrupted}, point);
  if (by_this_core) return;
  if (const auto share = device.message_sm_share()) point.results.push_back(exact("sm_share", *share));
}

void measure_shared_nic(const PointContext& context, MeasuredPoint& point) {
  Transport& transport = transport_of(context);
  const MessageBuffer out(context, *point.integer("bytes"));
  const MessageBuffer in(context, *point.integer("bytes"));
  const std::int32_t peer = partner_of(transport.rank(), transport.size(), static_cast<std::int32_t>(*point.integer("rings")));
  std::vector<Message> batch;
  if (peer >= 0) batch = {kernels::send_to(peer, out.array), kernels::receive_from(peer, in.array)};
  take(context, request_of(context, [&] { return exchange_seconds(context, transport, batch); }), point);
}

std::string check_messages(const PointContext& context) {
  Transport& transport = transport_of(context);
  kernels::Operators& operators = context.device.operators();
  const Neighbours neighbours = neighbours_of(transport);
  constexpr std::int64_t kRows = 4096;
  // Small whole numbers, which every type holds exactly; each rank's differ.
  const auto pattern = [](std::int32_t rank) {
    std::vector<double> values(kRows);
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = static_cast<double>((i + 7 * static_cast<std::size_t>(rank)) % 251);
    return values;
  };
  const Array out = operators.upload(context.device.number(), kRows, 1, pattern(transport.rank()));
  const Array in = operators.allocate(context.device.number(), kRows, 1);
  const std::vector<Message> batch = {kernels::send_to(neighbours.next, out), kernels::receive_from(neighbours.previous, in)};
  transport.wait(transport.start(batch));
  const std::int32_t from = context.device.plays_all_ends() ? transport.rank() : neighbours.previous;
  if (operators.download(in) == pattern(from)) return "";
  return fmt::format("what rank {} received from rank {} is not what was sent", transport.rank(), from);
}

}  // namespace cpfit::probe
