// One rank's pass through a strategy, timed from outside: operators and a transport that hand every call on and note when it
// began and ended. The strategy's text is the one that `cpfit verify` proves.
//
// Lanes: "compute" attention of blocks; "merge" everything else that operators do (sums, copies, clearing memory, indices);
// "send" and "receive" from the start of a batch until it was seen to have ended; "wait" what the rank spends on messages and
// nothing else: posting them, and waiting for them. So compute + merge + wait is the pass but for the strategy's own bookkeeping.
// A message's end is seen at the next poll: between tiles of attention, or in a wait.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "calibrate/probe/array_pool.h"
#include "calibrate/probe/pass_clock.h"
#include "kernels/core/operators.h"
#include "kernels/core/transport.h"
#include "model/record/measurement.h"

namespace cpfit::probe {

struct PassTimes {
  double seconds = 0;  // to the end of the last operator
  double compute_seconds = 0;
  double merge_seconds = 0;
  double exposed_seconds = 0;  // the lane "wait"
};

class PassRecorder {
 public:
  PassRecorder(PassClock& clock, kernels::Transport& transport) : clock_(clock), transport_(transport) {}

  void begin();
  /// Looks for messages that have ended. Cheap when none is on its way.
  void poll();
  /// Ends the pass; nothing may be recorded until begin().
  PassTimes end();
  [[nodiscard]] std::vector<MeasuredWindow> windows() const { return windows_; }

  // For the decorators.
  enum class Lane : std::uint8_t { kCompute, kMerge, kWait };
  [[nodiscard]] std::size_t mark() { return clock_.mark(); }
  void note(Lane lane, std::size_t begin);
  void batch_started(kernels::Ticket ticket, bool sends, bool receives, std::size_t begin);
  void batch_waited(kernels::Ticket ticket);
  void set_step(std::int32_t step) { step_ = step; }

 private:
  struct Span {
    Lane lane = Lane::kCompute;
    std::int32_t step = 0;
    std::size_t begin = 0, end = 0;  // marks
  };
  struct Flight {
    kernels::Ticket ticket;
    std::int32_t step = 0;
    bool sends = false, receives = false;
    std::size_t begin = 0;  // mark
    double end = -1;        // seconds; below 0: not seen yet
  };

  void add_window(const MeasuredWindow& window);

  PassClock& clock_;
  kernels::Transport& transport_;
  std::int32_t step_ = 0;
  std::vector<Span> spans_;
  std::vector<Flight> flights_;
  std::size_t open_ = 0;  // flights without an end
  std::vector<MeasuredWindow> windows_;
};

/// Hands on to `inner`; arrays come from the pool.
class TimedOperators final : public kernels::Operators {
 public:
  TimedOperators(kernels::Operators& inner, ArrayPool& pool, PassRecorder& recorder)
      : inner_(inner), pool_(pool), recorder_(recorder) {}

  [[nodiscard]] kernels::Number sum_number() const override { return inner_.sum_number(); }
  kernels::Array allocate(kernels::Number number, std::int64_t rows, std::int64_t row_elements) override;
  kernels::Array upload(kernels::Number number, std::int64_t rows, std::int64_t row_elements,
                        std::span<const double> values) override;
  kernels::Array upload_int(std::int64_t rows, std::int64_t row_elements, std::span<const std::int32_t> values) override;
  std::vector<double> download(const kernels::View& view) override;
  void copy(const kernels::View& from, const kernels::View& to) override;
  void fill(const kernels::View& to, double value) override;
  void gather_rows(const kernels::View& from, const kernels::View& index, const kernels::View& to) override;
  void pack_columns(const kernels::View& from, std::int64_t begin, const kernels::View& to) override;
  void unpack_columns(const kernels::View& from, const kernels::View& to, std::int64_t begin) override;
  void forward(const kernels::Heads& heads, const kernels::BlockMask& mask, const kernels::View& q, const kernels::View& k,
               const kernels::View& v, const kernels::View& out, const kernels::View& lse) override;
  void row_delta(const kernels::Heads& heads, const kernels::View& out, const kernels::View& dout,
                 const kernels::View& delta) override;
  void backward(const kernels::Heads& heads, const kernels::BlockMask& mask, const kernels::View& q, const kernels::View& k,
                const kernels::View& v, const kernels::View& dout, const kernels::View& lse, const kernels::View& delta,
                const kernels::View& dq, const kernels::View& dk, const kernels::View& dv) override;
  void merge(const kernels::Heads& heads, kernels::MergeForm form, const kernels::View& part, const kernels::View& part_lse,
             const kernels::View& sum, const kernels::View& sum_lse) override;
  void merge_lse(kernels::MergeForm form, const kernels::View& part_lse, const kernels::View& sum_lse) override;
  void add_weighted(const kernels::Heads& heads, const kernels::View& part, const kernels::View& part_lse,
                    const kernels::View& total_lse, const kernels::View& sum) override;
  void add(const kernels::View& part, const kernels::View& sum) override;
  void finish() override { inner_.finish(); }

 private:
  template <class Call>
  void timed(PassRecorder::Lane lane, const Call& call) {
    const std::size_t begin = recorder_.mark();
    call();
    recorder_.note(lane, begin);
  }

  kernels::Operators& inner_;
  ArrayPool& pool_;
  PassRecorder& recorder_;
};

/// Hands on to `inner`. Collectives are the base class's, made of batches, where reductions need operators; so that these are
/// timed too, give it the TimedOperators.
class TimedTransport final : public kernels::Transport {
 public:
  TimedTransport(kernels::Transport& inner, ArrayPool& pool, PassRecorder& recorder)
      : inner_(inner), pool_(pool), recorder_(recorder) {}

  [[nodiscard]] std::int32_t rank() const override { return inner_.rank(); }
  [[nodiscard]] std::int32_t size() const override { return inner_.size(); }
  kernels::Ticket start(std::span<const kernels::Message> batch) override;
  void wait(kernels::Ticket ticket) override;
  [[nodiscard]] bool test(kernels::Ticket ticket) override { return inner_.test(ticket); }
  void barrier() override { inner_.barrier(); }
  void begin_step(std::int32_t step) override { recorder_.set_step(step); }
  kernels::Ticket start_all_gather(std::span<const std::int32_t> group, const kernels::View& own,
                                   const kernels::View& all) override;

 private:
  kernels::Transport& inner_;
  ArrayPool& pool_;
  PassRecorder& recorder_;
};

}  // namespace cpfit::probe
