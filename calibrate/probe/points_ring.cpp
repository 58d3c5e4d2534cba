// The whole ring attention step: one layer's forward or backward pass over all ranks, by the strategies that `cpfit verify`
// proves, timed by decorators. A repetition begins at a barrier; its time is that of the rank that is ready last, and so are its
// parts. Arrays come from a pool, so that a repetition is like a step of a run that has warmed up.
#include <fmt/format.h>

#include <algorithm>
#include <deque>

#include "calibrate/probe/pass_recorder.h"
#include "calibrate/probe/points.h"
#include "kernels/reference/truth.h"
#include "kernels/strategy/strategy.h"
#include "kernels/verify/case.h"
#include "kernels/verify/fixture.h"
#include "kernels/verify/judge.h"
#include "kernels/verify/rank_run.h"

namespace cpfit::probe {

using kernels::Array;
using kernels::Case;
using kernels::Number;
using kernels::Transport;
using kernels::View;

namespace {

attention::MaskShape mask_named(const std::string& name) {
  return name == "full" ? attention::MaskShape::kFull : attention::MaskShape::kCausal;
}
attention::Layout layout_named(const std::string& name) {
  for (const auto layout : {attention::Layout::kContiguous, attention::Layout::kZigzag, attention::Layout::kStriped}) {
    if (name == kernels::name_of(layout)) return layout;
  }
  throw Error("there is no shard layout '" + name + "'");
}

/// The case that a point is an instance of; `tokens` of the whole sequence.
Case case_at(const MeasuredPoint& point, Number number, const kernels::Heads& heads, std::int64_t tokens, std::uint64_t seed) {
  Case one;
  one.name = check_key(point);
  one.method = point.text("method");
  one.mask = mask_named(point.text("mask"));
  one.layout = layout_named(point.text("layout"));
  one.query_tokens = one.key_tokens = tokens;
  one.cp = static_cast<std::int32_t>(*point.integer("cp"));
  one.number = number;
  one.heads = heads;
  one.seed = seed;
  return one;
}

std::vector<double> rows_of(const std::vector<double>& whole, const std::vector<std::int32_t>& rows, std::int64_t columns) {
  std::vector<double> taken;
  for (const std::int32_t row : rows) {
    const auto begin = whole.begin() + row * columns;
    taken.insert(taken.end(), begin, begin + columns);
  }
  return taken;
}

/// Windows of every rank, rank by rank, on rank 0. Lanes travel as their place in this list.
constexpr const char* kLanes[] = {"compute", "merge", "wait", "send", "receive"};

std::vector<MeasuredWindow> gather_windows(Together& together, const std::vector<MeasuredWindow>& own) {
  constexpr std::size_t kFields = 5;  // rank, lane, step, start, end
  const auto most = static_cast<std::size_t>(together.largest(static_cast<double>(own.size())));
  std::vector<double> flat(most * kFields, -1.0);
  for (std::size_t i = 0; i < own.size(); ++i) {
    const auto lane = std::ranges::find(kLanes, own[i].lane) - std::begin(kLanes);
    const double fields[kFields] = {static_cast<double>(own[i].rank), static_cast<double>(lane),
                                    static_cast<double>(own[i].ring_step), own[i].start_seconds, own[i].end_seconds};
    std::ranges::copy(fields, flat.begin() + static_cast<std::ptrdiff_t>(i * kFields));
  }
  const std::vector<double> all = together.gather(flat);
  std::vector<MeasuredWindow> windows;
  for (std::size_t i = 0; i + kFields <= all.size(); i += kFields) {
    if (all[i] < 0) continue;
    windows.push_back({static_cast<std::int32_t>(all[i]), kLanes[static_cast<std::size_t>(all[i + 1])],
                       static_cast<std::int32_t>(all[i + 2]), all[i + 3], all[i + 4]});
  }
  return windows;
}

/// One rank's part of the ring at a point: its shard, the decorators, and the pass to repeat.
class RingPass {
 public:
  RingPass(const PointContext& context, const MeasuredPoint& point)
      : device_(context.device),
        transport_(device_.transport(static_cast<std::int32_t>(*point.integer("cp")))),
        clock_(device_.pass_clock()),
        pool_(device_.operators(), [this](const View& view) { device_.zero(view); }),
        recorder_(*clock_, transport_),
        operators_(device_.operators(), pool_, recorder_),
        timed_(transport_, pool_, recorder_),
        case_(case_at(point, device_.number(), heads_at(point), *point.integer("length"), context.seed)),
        layer_(kernels::layer_of(case_)),
        method_(*kernels::method_of(case_)),
        backward_(point.text("pass") == "backward") {}

  /// Empty, or why this layer cannot run by this method.
  [[nodiscard]] std::string why_not() const { return kernels::why_not(method_, layer_, case_.cp); }

  void prepare(std::uint64_t seed) {
    const std::int64_t rows = layer_.queries.tokens_per_rank();
    const auto random = [&](std::int64_t columns, std::uint64_t place) {
      return pool_.adopt(random_array(device_.operators(), case_.number, rows, columns, seed + place));
    };
    q_ = random(case_.heads.q_columns(), 1);
    k_ = random(case_.heads.k_columns(), 2);
    v_ = random(case_.heads.v_columns(), 3);
    dout_ = random(case_.heads.out_columns(), 4);
    if (backward_) forward_ = kernels::attend(method_, layer_, operators_, timed_, q_, k_, v_);
  }

  PassTimes run() {
    // The last repetition's results are given back first: a step of a run has no two sets of them.
    gradients_ = {};
    if (!backward_) forward_ = {};
    pool_.reset_peak();
    transport_.barrier();
    recorder_.begin();
    device_.call_between_tiles([this] { recorder_.poll(); });
    if (backward_) {
      gradients_ = kernels::attend_backward(method_, layer_, operators_, timed_, forward_, q_, k_, v_, dout_);
    } else {
      forward_ = kernels::attend(method_, layer_, operators_, timed_, q_, k_, v_);
    }
    device_.call_between_tiles({});
    return recorder_.end();
  }

  [[nodiscard]] std::vector<MeasuredWindow> windows() const { return recorder_.windows(); }
  [[nodiscard]] std::int64_t peak_bytes() const { return pool_.peak_bytes(); }
  [[nodiscard]] std::int64_t reserved_bytes() const { return device_.reserved_bytes(pool_); }
  [[nodiscard]] std::int64_t buffer_bytes() const { return pool_.buffer_bytes(); }

 private:
  BenchDevice& device_;
  Transport& transport_;
  std::unique_ptr<PassClock> clock_;
  ArrayPool pool_;
  PassRecorder recorder_;
  TimedOperators operators_;
  TimedTransport timed_;
  Case case_;
  kernels::Layer layer_;
  kernels::Method method_;
  bool backward_;
  Array q_, k_, v_, dout_;
  kernels::Forward forward_;
  kernels::Gradients gradients_;
};

}  // namespace

void measure_ring_step(const PointContext& context, MeasuredPoint& point) {
  RingPass pass(context, point);
  if (const std::string reason = pass.why_not(); !reason.empty()) {
    point.outcome = MeasuredOutcome::kSkipped;
    point.reason = reason;
    return;
  }
  pass.prepare(context.seed + 100 * static_cast<std::uint64_t>(context.together.rank()));
  // Kept until it is known which repetition is the median one; warm-ups come first and are not counted.
  std::vector<std::vector<MeasuredWindow>> windows;
  SeriesRequest request{context.rule,
                        {"seconds", "exposed_seconds", "compute_seconds", "merge_seconds"},
                        {Combine::kOfLast},
                        [&] {
                          const PassTimes times = pass.run();
                          windows.push_back(pass.windows());
                          return std::vector<double>{times.seconds, times.exposed_seconds, times.compute_seconds,
                                                     times.merge_seconds};
                        },
                        context.interrupted};
  request.rule.most_samples = std::min<std::int64_t>(request.rule.most_samples, 200);  // all their windows are kept
  const Series series = take_series(context.together, request);
  point.warm_ups = series.warm_ups;
  point.results = series.results;
  point.reason = series.caution;
  const auto representative = static_cast<std::size_t>(series.warm_ups + series.median_repetition);
  point.windows = gather_windows(context.together, windows[representative]);
  // The rank that needs most; counted, so without an interval.
  const double peak = context.together.largest(static_cast<double>(pass.peak_bytes()));
  const double reserved = context.together.largest(static_cast<double>(pass.reserved_bytes()));
  const double buffers = context.together.largest(static_cast<double>(pass.buffer_bytes()));
  point.results.push_back(exact("peak_allocated_bytes", peak));
  point.results.push_back(exact("peak_reserved_bytes", reserved));
  point.results.push_back(exact("buffer_bytes", buffers));
}

std::string check_ring(const PointContext& context, const MeasuredPoint& point) {
  if (context.device.plays_all_ends()) return "";  // what it computes is no attention
  const auto cp = *point.integer("cp");
  kernels::Heads heads{static_cast<std::int32_t>(2 * cp), static_cast<std::int32_t>(cp), 32, 32, 0.1767766952966369};
  const Case one = case_at(point, context.device.number(), heads, 32 * cp, context.seed);
  const kernels::Layer layer = kernels::layer_of(one);
  if (!kernels::why_not(*kernels::method_of(one), layer, one.cp).empty()) return "";  // the point will say so itself
  Transport& transport = context.device.transport(one.cp);
  const kernels::AttentionTensors own = kernels::run_rank(one, context.device.operators(), transport);
  const kernels::Fixture fixture = kernels::fixture_of(one);  // exact in the device's type
  const auto mask = layer.mask.view();
  const kernels::TrueAttention truth = kernels::true_attention(heads, mask, fixture.q, fixture.k, fixture.v);
  const kernels::TrueGradients gradients = kernels::true_gradients(heads, mask, fixture.q, fixture.k, fixture.v, fixture.dout);
  const std::vector<std::int32_t> rows = kernels::storage_rows(layer.queries, layer.mask, transport.rank());
  const double limit = tolerance_of(one.number);
  struct Compared {
    const char* name;
    const std::vector<double>& ours;
    const std::vector<double>& true_values;
    std::int64_t columns;
  };
  for (const Compared& tensor :
       {Compared{"out", own.out, truth.out, heads.out_columns()}, Compared{"dq", own.dq, gradients.dq, heads.q_columns()},
        Compared{"dk", own.dk, gradients.dk, heads.k_columns()}, Compared{"dv", own.dv, gradients.dv, heads.v_columns()}}) {
    const double error = relative_error(tensor.ours, rows_of(tensor.true_values, rows, tensor.columns));
    if (error > limit) {
      return fmt::format("{}: {} of rank {} differs from the truth by {:.3g}, {:.3g} is allowed", one.name, tensor.name,
                         transport.rank(), error, limit);
    }
  }
  return "";
}

}  // namespace cpfit::probe
