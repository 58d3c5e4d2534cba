#include "calibrate/probe/pass_recorder.h"

#include <algorithm>
#include <thread>

namespace cpfit::probe {

using kernels::Array;
using kernels::Heads;
using kernels::Number;
using kernels::View;
using Lane = PassRecorder::Lane;

namespace {

const char* name_of(Lane lane) { return lane == Lane::kCompute ? "compute" : lane == Lane::kMerge ? "merge" : "wait"; }

}  // namespace

void PassRecorder::begin() {
  spans_.clear();
  flights_.clear();
  windows_.clear();
  open_ = 0;
  step_ = 0;
  clock_.restart();
}

void PassRecorder::poll() {
  if (open_ == 0) return;
  for (Flight& flight : flights_) {
    if (flight.end >= 0 || !transport_.test(flight.ticket)) continue;
    flight.end = clock_.now();
    --open_;
  }
}

void PassRecorder::note(Lane lane, std::size_t begin) { spans_.push_back({lane, step_, begin, clock_.mark()}); }

void PassRecorder::batch_started(kernels::Ticket ticket, bool sends, bool receives, std::size_t begin) {
  note(Lane::kWait, begin);
  if (ticket.id == 0) return;
  flights_.push_back({ticket, step_, sends, receives, begin, -1});
  ++open_;
}

void PassRecorder::batch_waited(kernels::Ticket ticket) {
  if (!clock_.host_waits()) return;  // the device waits: poll() and end() see the batch's own end
  for (Flight& flight : flights_) {
    if (flight.ticket.id != ticket.id || flight.end >= 0) continue;
    flight.end = clock_.now();
    --open_;
  }
}

PassTimes PassRecorder::end() {
  const std::size_t last = clock_.mark();
  if (!clock_.host_waits()) {
    while (open_ > 0) {
      poll();
      std::this_thread::yield();
    }
  }
  const std::vector<double> at = clock_.seconds();
  PassTimes times;
  times.seconds = at[last];
  for (const Span& span : spans_) {
    const double begin = at[span.begin];
    const double end = std::max(begin, at[span.end]);
    (span.lane == Lane::kCompute ? times.compute_seconds
     : span.lane == Lane::kMerge ? times.merge_seconds
                                 : times.exposed_seconds) += end - begin;
    add_window({transport_.rank(), name_of(span.lane), span.step, begin, end});
  }
  for (const Flight& flight : flights_) {
    const double begin = at[flight.begin];
    const double end = flight.end >= 0 ? std::max(begin, flight.end) : times.seconds;
    if (flight.sends) windows_.push_back({transport_.rank(), "send", flight.step, begin, end});
    if (flight.receives) windows_.push_back({transport_.rank(), "receive", flight.step, begin, end});
  }
  return times;
}

/// One window for calls of one lane that follow each other; none for what took no time.
void PassRecorder::add_window(const MeasuredWindow& window) {
  if (window.end_seconds <= window.start_seconds) return;
  if (!windows_.empty() && windows_.back().lane == window.lane && windows_.back().ring_step == window.ring_step) {
    windows_.back().end_seconds = window.end_seconds;
  } else {
    windows_.push_back(window);
  }
}

// --- operators

Array TimedOperators::allocate(Number number, std::int64_t rows, std::int64_t row_elements) {
  Array array;
  timed(Lane::kMerge, [&] { array = pool_.allocate(number, rows, row_elements); });
  return array;
}
Array TimedOperators::upload(Number number, std::int64_t rows, std::int64_t row_elements, std::span<const double> values) {
  Array array;
  timed(Lane::kMerge, [&] { array = pool_.adopt(inner_.upload(number, rows, row_elements, values)); });
  return array;
}
Array TimedOperators::upload_int(std::int64_t rows, std::int64_t row_elements, std::span<const std::int32_t> values) {
  Array array;
  timed(Lane::kMerge, [&] { array = pool_.adopt(inner_.upload_int(rows, row_elements, values)); });
  return array;
}
std::vector<double> TimedOperators::download(const View& view) { return inner_.download(view); }
void TimedOperators::copy(const View& from, const View& to) {
  timed(Lane::kMerge, [&] { inner_.copy(from, to); });
}
void TimedOperators::fill(const View& to, double value) {
  timed(Lane::kMerge, [&] { inner_.fill(to, value); });
}
void TimedOperators::gather_rows(const View& from, const View& index, const View& to) {
  timed(Lane::kMerge, [&] { inner_.gather_rows(from, index, to); });
}
void TimedOperators::pack_columns(const View& from, std::int64_t begin, const View& to) {
  timed(Lane::kMerge, [&] { inner_.pack_columns(from, begin, to); });
}
void TimedOperators::unpack_columns(const View& from, const View& to, std::int64_t begin) {
  timed(Lane::kMerge, [&] { inner_.unpack_columns(from, to, begin); });
}
void TimedOperators::forward(const Heads& heads, const kernels::BlockMask& mask, const View& q, const View& k, const View& v,
                             const View& out, const View& lse) {
  timed(Lane::kCompute, [&] { inner_.forward(heads, mask, q, k, v, out, lse); });
}
void TimedOperators::row_delta(const Heads& heads, const View& out, const View& dout, const View& delta) {
  timed(Lane::kMerge, [&] { inner_.row_delta(heads, out, dout, delta); });
}
void TimedOperators::backward(const Heads& heads, const kernels::BlockMask& mask, const View& q, const View& k, const View& v,
                              const View& dout, const View& lse, const View& delta, const View& dq, const View& dk,
                              const View& dv) {
  timed(Lane::kCompute, [&] { inner_.backward(heads, mask, q, k, v, dout, lse, delta, dq, dk, dv); });
}
void TimedOperators::merge(const Heads& heads, kernels::MergeForm form, const View& part, const View& part_lse, const View& sum,
                           const View& sum_lse) {
  timed(Lane::kMerge, [&] { inner_.merge(heads, form, part, part_lse, sum, sum_lse); });
}
void TimedOperators::merge_lse(kernels::MergeForm form, const View& part_lse, const View& sum_lse) {
  timed(Lane::kMerge, [&] { inner_.merge_lse(form, part_lse, sum_lse); });
}
void TimedOperators::add_weighted(const Heads& heads, const View& part, const View& part_lse, const View& total_lse,
                                  const View& sum) {
  timed(Lane::kMerge, [&] { inner_.add_weighted(heads, part, part_lse, total_lse, sum); });
}
void TimedOperators::add(const View& part, const View& sum) {
  timed(Lane::kMerge, [&] { inner_.add(part, sum); });
}

// --- transport

kernels::Ticket TimedTransport::start(std::span<const kernels::Message> batch) {
  bool sends = false;
  bool receives = false;
  for (const kernels::Message& message : batch) {
    (message.direction == kernels::Message::Direction::kSend ? sends : receives) = true;
    pool_.mark_buffer(message.view.data);
  }
  const std::size_t begin = recorder_.mark();
  const kernels::Ticket ticket = inner_.start(batch);
  recorder_.batch_started(ticket, sends, receives, begin);
  return ticket;
}

void TimedTransport::wait(kernels::Ticket ticket) {
  const std::size_t begin = recorder_.mark();
  inner_.wait(ticket);
  recorder_.note(Lane::kWait, begin);
  recorder_.batch_waited(ticket);
}

kernels::Ticket TimedTransport::start_all_gather(std::span<const std::int32_t> group, const View& own, const View& all) {
  pool_.mark_buffer(own.data);
  pool_.mark_buffer(all.data);
  const std::size_t begin = recorder_.mark();
  const kernels::Ticket ticket = inner_.start_all_gather(group, own, all);
  recorder_.batch_started(ticket, true, true, begin);
  return ticket;
}

}  // namespace cpfit::probe
