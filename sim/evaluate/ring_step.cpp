#include "sim/evaluate/ring_step.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "model/attention/ring_work.h"
#include "model/rates/overlay.h"

namespace cpfit {

namespace {

/// How a method of cpfit-bench runs its ring (kernels/strategy): TransformerEngine's order, or that of the fp32-dKV codes.
struct RingPolicy {
  bool one_message = false;        // K and V (and dKV) of a hop travel as one
  bool deferred_output = false;    // partial outputs are summed after the last step
  bool reversed_backward = false;  // from the KV received last, ending on the diagonal; dKV rides a step behind
};
std::optional<RingPolicy> policy_of(const std::string& method) {
  if (method == "te_p2p" || method == "te_p2p_wide") return RingPolicy{true, true, true};
  if (method == "fp32_ring" || method == "narrow_ring") return RingPolicy{false, false, false};
  return std::nullopt;
}

struct RingCase {
  RingPolicy policy;
  attention::Shard shard;
  attention::MaskView mask;
  std::int64_t heads = 0, kv_heads = 0, head_dim = 0;
  bool backward = false;
};

/// Seconds of the parts, on one rank.
class Parts {
 public:
  Parts(const RingRates& rates, const RingCase& at) : rates_(rates), at_(at) {
    const double rows = static_cast<double>(at.shard.tokens_per_rank()),
                 width = bytes_of_number() * static_cast<double>(at.head_dim);
    query_bytes_ = rows * width * static_cast<double>(at.heads);
    kv_bytes_ = 2 * rows * width * static_cast<double>(at.kv_heads);
  }

  [[nodiscard]] double query_bytes() const { return query_bytes_; }
  [[nodiscard]] double kv_bytes() const { return kv_bytes_; }  // K and V of one shard
  [[nodiscard]] double query_bytes(const attention::Kernel& kernel) const { return query_bytes_ * share(kernel.q_len); }
  [[nodiscard]] double kv_bytes(const attention::Kernel& kernel) const { return kv_bytes_ * share(kernel.kv_len); }

  /// Every array comes cleared: written once.
  [[nodiscard]] double clear(double bytes) const { return moved(rates_.copy, bytes / 2); }
  [[nodiscard]] double copy(double bytes) const { return moved(rates_.copy, bytes); }
  [[nodiscard]] double add(double bytes) const { return moved(rates_.sum ? rates_.sum : rates_.copy, 1.5 * bytes); }
  [[nodiscard]] double merge(double bytes) const { return moved(rates_.merge ? rates_.merge : rates_.copy, 1.5 * bytes); }

  [[nodiscard]] double message(double bytes) const {
    return bytes <= 0 ? 0 : collective_seconds(rates_.message, CollectiveKind::kSendRecv, rates_.link_rate, bytes);
  }
  /// A hop of K and V, apart or as one.
  [[nodiscard]] double hop(double bytes) const { return at_.policy.one_message ? message(bytes) : 2 * message(bytes / 2); }

  [[nodiscard]] Rated kernel(const attention::Kernel& kernel) const {
    AttentionShape shape;
    shape.q_len = kernel.q_len;
    shape.kv_len = kernel.kv_len;
    shape.pairs = kernel.pairs;
    shape.causal = kernel.kind != attention::BlockKind::kFull;
    shape.heads = at_.heads;
    shape.kv_heads = at_.kv_heads;
    shape.head_dim = at_.head_dim;
    shape.math = rates_.math;
    return attention_time(rates_.kernels, shape, at_.backward ? AttentionPass::kBackward : AttentionPass::kForward,
                          rates_.library);
  }

 private:
  [[nodiscard]] double bytes_of_number() const { return rates_.math == MathKind::kFp32 ? 4.0 : 2.0; }
  [[nodiscard]] double share(std::int64_t rows) const {
    return static_cast<double>(rows) / static_cast<double>(at_.shard.tokens_per_rank());
  }
  /// `bytes` of the result; a copy reads as much.
  [[nodiscard]] double moved(const std::optional<MemoryCurve>& curve, double bytes) const {
    return curve && bytes > 0 ? memory_seconds(*curve, rates_.memory_rate, 2 * bytes, 1) : 0;
  }

  const RingRates& rates_;
  const RingCase& at_;
  double query_bytes_ = 0, kv_bytes_ = 0;
};

/// What every rank has done so far.
struct RankClock {
  double now = 0, compute = 0, exposed = 0, variance = 0;
};

/// One pass of all ranks, step by step; hops go from `source(rank)` to rank.
class RingRun {
 public:
  RingRun(const RingRates& rates, const RingCase& at) : rates_(rates), at_(at), parts_(rates, at) {
    ranks_.resize(static_cast<std::size_t>(at.shard.cp));
  }

  RingStepPrediction run() {
    at_.backward ? backward() : forward();
    const auto last =
        std::max_element(ranks_.begin(), ranks_.end(), [](const RankClock& a, const RankClock& b) { return a.now < b.now; });
    return {last->now, last->exposed, last->compute, last->now > 0 ? std::sqrt(last->variance) / last->now : 0, in_range_};
  }

 private:
  [[nodiscard]] std::int32_t cp() const { return at_.shard.cp; }
  [[nodiscard]] std::size_t index(std::int32_t rank) const { return static_cast<std::size_t>((rank % cp() + cp()) % cp()); }

  void everybody(double seconds) {
    for (RankClock& rank : ranks_) rank.now += seconds;
  }

  /// A step: `message` seconds of hop in flight while each rank computes `work(rank)`; waits for what it receives and sends.
  /// `forward_ring`: hops go to rank + 1, else to rank - 1.
  template <class Owner>
  void step(Owner owner, double message, bool forward_ring, std::vector<attention::StepWork>& done) {
    std::vector<double> posted;
    for (const RankClock& rank : ranks_) posted.push_back(rank.now);
    std::vector<Beside> ends(ranks_.size());
    done.assign(ranks_.size(), {});
    for (std::int32_t r = 0; r < cp(); ++r) {
      RankClock& rank = ranks_[index(r)];
      const attention::StepWork work = attention::ring_step(at_.shard, at_.mask, r, owner(r));
      done[index(r)] = work;
      double seconds = 0;
      if (work.count > 0) {
        const Rated rated = parts_.kernel(work.kernel[0]);
        seconds = rated.time.value();
        rank.variance += seconds * seconds * rated.relative_sigma * rated.relative_sigma;
        in_range_ = in_range_ && rated.in_range;
      }
      const double source = posted[index(forward_ring ? r - 1 : r + 1)];
      const double begin = std::max(posted[index(r)], source);
      ends[index(r)] = message > 0 ? run_beside(rank.now, seconds, begin, message, rates_.slowdown, rates_.message_slowdown)
                                   : Beside{rank.now + seconds, rank.now};
      rank.compute += ends[index(r)].kernel_end - rank.now;
    }
    for (std::int32_t r = 0; r < cp(); ++r)
      ready_[index(r)] = std::max(ends[index(r)].message_end, ends[index(forward_ring ? r + 1 : r - 1)].message_end);
    for (std::size_t r = 0; r < ranks_.size(); ++r) ranks_[r].now = ends[r].kernel_end;
  }

  /// Each rank waits until its hop has ended.
  void wait() {
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
      const double waited = std::max(0.0, ready_[r] - ranks_[r].now);
      ranks_[r].exposed += waited;
      ranks_[r].now += waited;
    }
  }

  void forward() {
    const RingPolicy& policy = at_.policy;
    ready_.assign(ranks_.size(), 0);
    const int buffers = (cp() > 1 ? 1 : 0) + (cp() > 2 || policy.one_message ? 1 : 0);
    everybody(buffers * parts_.clear(parts_.kv_bytes()) + parts_.clear(parts_.query_bytes()));
    if (policy.one_message) everybody(parts_.copy(parts_.kv_bytes()));
    if (!policy.deferred_output) everybody(parts_.clear(parts_.query_bytes()));
    std::vector<double> deferred(ranks_.size(), 0);
    std::vector<attention::StepWork> done;
    for (std::int32_t i = 0; i < cp(); ++i) {
      if (policy.deferred_output) {
        for (std::int32_t r = 0; r < cp(); ++r) {
          const auto work = attention::ring_step(at_.shard, at_.mask, r, attention::ring_owner(cp(), r, i));
          if (work.count > 0) ranks_[index(r)].now += parts_.clear(parts_.query_bytes(work.kernel[0]));
        }
      }
      step([&](std::int32_t r) { return attention::ring_owner(cp(), r, i); }, i + 1 < cp() ? parts_.hop(parts_.kv_bytes()) : 0,
           true, done);
      for (std::size_t r = 0; r < ranks_.size(); ++r) {
        if (done[r].count == 0) continue;
        const double seconds = parts_.merge(parts_.query_bytes(done[r].kernel[0]));
        (policy.deferred_output ? deferred[r] : ranks_[r].now) += seconds;
      }
      if (i + 1 < cp()) wait();
    }
    for (std::size_t r = 0; r < ranks_.size(); ++r) ranks_[r].now += deferred[r];
  }

  void backward() {
    at_.policy.reversed_backward ? reversed_backward() : homecoming_backward();
    // The caller's gradients are copied out of the sums.
    everybody(parts_.clear(parts_.kv_bytes()) + parts_.copy(parts_.kv_bytes()));
  }

  /// delta, the sums over steps and one block's gradients.
  void begin_backward() {
    ready_.assign(ranks_.size(), 0);
    const double q = parts_.query_bytes(), kv = parts_.kv_bytes();
    everybody(parts_.copy(q) + 2 * parts_.clear(q) + parts_.clear(kv));
  }

  void add_queries(const std::vector<attention::StepWork>& done) {
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
      if (done[r].count > 0) ranks_[r].now += parts_.add(parts_.query_bytes(done[r].kernel[0]));
    }
  }
  void add_kv(const std::vector<attention::StepWork>& done) {
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
      if (done[r].count > 0) ranks_[r].now += parts_.add(parts_.kv_bytes(done[r].kernel[0]));
    }
  }

  void reversed_backward() {
    begin_backward();
    const double kv = parts_.kv_bytes();
    everybody(8 * parts_.clear(kv) + parts_.copy(kv));  // two carriers of KV and dKV, allocated apart and then together
    std::vector<attention::StepWork> done;
    for (std::int32_t i = 0; i < cp(); ++i) {
      const bool last = i + 1 == cp();
      const double bytes = (last ? 0 : kv) + (i > 0 ? kv : 0);
      step([&](std::int32_t r) { return (r + 1 + i) % cp(); }, parts_.message(bytes), false, done);
      add_queries(done);
      if (i == 0) everybody(parts_.clear(kv));
      if (bytes > 0) wait();
      add_kv(done);
    }
  }

  void homecoming_backward() {
    begin_backward();
    const double kv = parts_.kv_bytes();
    everybody((2 + (cp() > 1 ? 1 : 0) + (cp() > 2 ? 1 : 0)) * parts_.clear(kv));
    std::vector<attention::StepWork> done;
    for (std::int32_t i = 0; i < cp(); ++i) {
      const bool last = i + 1 == cp();
      // The KV of this step and the dKV of the last one share the link.
      const double hops = (last ? 0 : parts_.hop(kv)) + (i > 0 ? parts_.hop(kv) : 0);
      step([&](std::int32_t r) { return attention::ring_owner(cp(), r, i); }, hops, true, done);
      add_queries(done);
      if (hops > 0) wait();
      add_kv(done);
    }
    // The last hop brings dKV home; nothing is left to hide it.
    std::vector<double> posted;
    for (const RankClock& rank : ranks_) posted.push_back(rank.now);
    for (std::int32_t r = 0; r < cp(); ++r)
      ready_[index(r)] = std::max({posted[index(r)], posted[index(r - 1)], posted[index(r + 1)]}) + parts_.hop(kv);
    wait();
  }

  const RingRates& rates_;
  const RingCase& at_;
  Parts parts_;
  std::vector<RankClock> ranks_;
  std::vector<double> ready_;
  bool in_range_ = true;
};

Gpu gpu_of(const FittedDevice& device) {
  Gpu gpu;
  gpu.name = device.gpu;
  gpu.generation = device.generation;
  gpu.scale_up_link = device.scale_up_link;
  gpu.sm_count = static_cast<std::int32_t>(device.peaks.sm_count);
  gpu.hbm = BytesPerSecond(device.peaks.hbm);
  const auto peak = [&](MathKind math) { return FlopsPerSecond(device.peaks.math[static_cast<std::size_t>(math)]); };
  gpu.bf16 = peak(MathKind::kBf16);
  gpu.fp8 = peak(MathKind::kFp8Tensor);
  gpu.fp4 = peak(MathKind::kNvfp4);
  gpu.fp32 = peak(MathKind::kFp32);
  return gpu;
}

}  // namespace

Beside run_beside(double kernel_begin, double work, double message_begin, double message, double slowdown,
                  double message_slowdown) {
  const double alone = std::max(0.0, message_begin - kernel_begin);
  if (work <= alone) return {kernel_begin + work, message_begin + message};  // the kernel is through before the message begins
  const double left = work - alone;
  const double beside = message * message_slowdown;
  if (beside <= left * slowdown) return {message_begin + beside + left - beside / slowdown, message_begin + beside};
  const double end = message_begin + left * slowdown;
  return {end, end + message * (1 - left * slowdown / beside)};
}

Outcome<RingRates> ring_rates(const RateTables& tables, const std::string& device, const std::string& link) {
  const auto missing = [&](const std::string& what) {
    return Problem{"ring.rates", device, "no rate of " + what, "measure it: cpfit-bench without --probe measures all"};
  };
  const auto own = [&](const auto& row) { return row.gpu == device; };
  const auto found = std::find_if(tables.devices.begin(), tables.devices.end(), own);
  if (found == tables.devices.end()) return missing("the device itself");
  RingRates rates;
  const auto forward = std::find_if(tables.attention.begin(), tables.attention.end(),
                                    [&](const AttentionRow& row) { return own(row) && row.pass == AttentionPass::kForward; });
  if (forward == tables.attention.end()) return missing("attention forward");
  rates.library = forward->library;
  rates.math = forward->math;
  const bool backward = std::any_of(tables.attention.begin(), tables.attention.end(), [&](const AttentionRow& row) {
    return own(row) && row.pass == AttentionPass::kBackward && row.library == rates.library && row.math == rates.math;
  });
  if (!backward) return missing("attention backward");
  const auto message = std::find_if(tables.collective.begin(), tables.collective.end(), [&](const CollectiveRow& row) {
    return row.link == link && row.kind == CollectiveKind::kSendRecv;
  });
  if (message == tables.collective.end()) return missing("messages over " + link);
  rates.message = message->curve;
  rates.link_rate = message->raw;
  for (const OverlapRow& row : tables.overlap) {
    if (row.link != link) continue;
    rates.slowdown = row.slowdown;
    rates.message_slowdown = row.message_slowdown;
  }
  for (const MemoryRow& row : tables.memory) {
    if (!own(row)) continue;
    if (row.kernels == "copy") rates.copy = row.curve;
    if (row.kernels == "sum") rates.sum = row.curve;
    if (row.kernels == "merge") rates.merge = row.curve;
  }
  if (!rates.copy) return missing("copies");
  rates.memory_rate = found->peaks.hbm;
  rates.kernels = assemble_gpu_rates(tables, gpu_of(*found));
  return rates;
}

namespace {

Outcome<RingCase> case_of(const MeasuredPoint& point) {
  const std::string method = point.text("method"), mask = point.text("mask"), layout = point.text("layout");
  const auto policy = policy_of(method);
  if (!policy) return Problem{"ring.method", axes_text(point.axes), "a step by " + method + " is not predicted", "p2p rings are"};
  const auto cp = point.integer("cp"), length = point.integer("length"), heads = point.integer("heads"),
             d = point.integer("head_dim");
  if (!cp || !length || !heads || !d || *cp < 1 || *length < 1)
    return Problem{"ring.axes", axes_text(point.axes), "an axis is missing", "give a ring_step point of cpfit-bench"};
  RingCase at;
  at.policy = *policy;
  at.shard = {layout == "contiguous" ? attention::Layout::kContiguous
              : layout == "striped"  ? attention::Layout::kStriped
                                     : attention::Layout::kZigzag,
              *length, static_cast<std::int32_t>(*cp)};
  at.mask = {mask == "full" ? attention::MaskShape::kFull : attention::MaskShape::kCausal, 0, nullptr, 0};
  at.heads = *heads;
  at.kv_heads = point.integer("kv_heads").value_or(*heads);
  at.head_dim = *d;
  at.backward = point.text("pass") == "backward";
  return at;
}

}  // namespace

Outcome<RingStepPrediction> predict_ring_step(const RingRates& rates, const MeasuredPoint& point) {
  const Outcome<RingCase> at = case_of(point);
  if (!at) return at.problems();
  return RingRun(rates, *at).run();
}

RingWork ring_work(const MeasuredPoint& point) {
  RingWork all;
  const Outcome<RingCase> at = case_of(point);
  if (!at) return all;
  for (std::int32_t rank = 0; rank < at->shard.cp; ++rank) {
    for (std::int32_t owner = 0; owner < at->shard.cp; ++owner) {
      const attention::StepWork work = attention::ring_step(at->shard, at->mask, rank, owner);
      if (work.count == 0) continue;
      AttentionShape shape;
      shape.q_len = work.kernel[0].q_len;
      shape.kv_len = work.kernel[0].kv_len;
      shape.causal = work.kernel[0].kind != attention::BlockKind::kFull;
      shape.heads = at->heads;
      shape.kv_heads = at->kv_heads;
      shape.head_dim = at->head_dim;
      all.kernels.push_back(shape);
    }
  }
  const double number = point.text("dtype") == "fp32" ? 4.0 : 2.0;
  const double kv = 2 * number * static_cast<double>(at->shard.tokens_per_rank() * at->kv_heads * at->head_dim);
  all.message_bytes = at->policy.one_message ? std::vector<double>{kv, 2 * kv} : std::vector<double>{kv / 2};
  return all;
}

}  // namespace cpfit
