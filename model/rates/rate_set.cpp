#include "model/rates/rate_set.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <tuple>

#include "model/presets/embedded.h"
#include "model/rates/gpu_rates.h"
#include "model/rates/rate_tables.h"
#include "model/rates/reach.h"

namespace cpfit {

namespace {

Rated rated(double seconds, float sigma, const Reach& reach, Evidence evidence) {
  return {Seconds(seconds), static_cast<float>(reach.sigma(sigma)), reach.in_range(), evidence};
}

Reach sizes_of(const CollectiveCurve& curve, Bytes bytes) {
  return reach({curve.pieces[0].from, curve.pieces[static_cast<std::size_t>(curve.piece_count - 1)].to}, bytes.value());
}

constexpr Reach kInside;
constexpr Reach kElsewhere{0, true};  // on an axis where no curve says how it goes on

double number(std::int64_t count) { return static_cast<double>(count); }

/// Ring steps of a collective, what its fixed cost grows with.
double ring_steps(CollectiveKind kind, double ranks) {
  switch (kind) {
    case CollectiveKind::kAllReduce:
      return 2 * (ranks - 1);
    case CollectiveKind::kAllGather:
    case CollectiveKind::kReduceScatter:
      return ranks - 1;
    case CollectiveKind::kAllToAll:
    case CollectiveKind::kSendRecv:
      return 1;
  }
  return 1;
}

/// The curves of `form`, or the usual ones where that form was not measured on so many ranks.
const RankLadder& ladder_for(const GpuRates& rates, std::size_t link, std::size_t kind, CollectiveForm form, std::int64_t ranks) {
  const RankLadder& usual = rates.collective[link][kind];
  if (form == CollectiveForm::kUsual) return usual;
  const RankLadder& own = (form == CollectiveForm::kStrided ? rates.strided : rates.int8_sums)[link][kind];
  return own.count > 0 && own.curves[static_cast<std::size_t>(own.count - 1)].ranks >= ranks ? own : usual;
}

/// Time of a curve measured on curve.ranks at another number of ranks: same bus rate, fixed cost as the ring's steps.
double at_ranks(const CollectiveCurve& curve, CollectiveKind kind, double rate, double bytes, double ranks) {
  return collective_seconds_at(curve, kind, rate, bytes, ranks, ring_steps(kind, ranks) / ring_steps(kind, number(curve.ranks)));
}

}  // namespace

struct RateSet::Body {
  RateTables tables;
  // A GPU is assembled when first asked for; the key holds what assembly reads, so that an edited GPU is another one.
  using Key = std::tuple<std::string, std::string, std::string, double, double, double, double, double, std::int32_t, double,
                         std::int32_t>;
  std::mutex mutex;
  std::map<Key, GpuRates> known;  // nodes stay in place: references handed out remain valid
};

RateSet::RateSet() : body_(std::make_unique<Body>()) {}
RateSet::~RateSet() = default;
RateSet::RateSet(RateSet&&) noexcept = default;
RateSet& RateSet::operator=(RateSet&&) noexcept = default;

Outcome<RateSet> RateSet::parse(std::string_view toml_text) {
  Outcome<RateTables> tables = parse_rate_tables(toml_text);
  if (!tables) return tables.problems();
  return from_tables(std::move(tables).value());
}

Outcome<RateSet> RateSet::from_tables(RateTables tables, const std::string& origin) {
  bool gemm = false, forward = false, backward = false;
  for (const GemmRow& row : tables.gemm) gemm |= row.math == MathKind::kBf16;
  for (const AttentionRow& row : tables.attention) {
    forward |= row.math == MathKind::kBf16 && row.pass == AttentionPass::kForward;
    backward |= row.math == MathKind::kBf16 && row.pass == AttentionPass::kBackward;
  }
  if (!gemm || !forward || !backward || tables.memory.empty() || tables.link.empty()) {
    return Problem{"rates.incomplete", origin, "needs bf16 gemm, bf16 attention forward and backward, memory and link rows",
                   "generate it with: cpfit calibrate fit"};
  }
  RateSet set;
  set.version_ = tables.version;
  set.body_->tables = std::move(tables);
  return set;
}

RateSet RateSet::defaults() {
  Outcome<RateSet> set = parse(embedded_file("presets/rates.toml"));
  if (!set) {
    for (const Problem& problem : set.problems()) std::fprintf(stderr, "cpfit: internal error: %s\n", to_text(problem).c_str());
    std::abort();
  }
  return std::move(set).value();
}

const GpuRates& RateSet::of(const Gpu& gpu) const {
  const Body::Key key{gpu.name,         gpu.generation,  gpu.scale_up_link, gpu.bf16.value(), gpu.fp8.value(),   gpu.fp4.value(),
                      gpu.fp32.value(), gpu.hbm.value(), gpu.sm_count,      gpu.pcie.value(), gpu.scale_up_links};
  const std::lock_guard lock(body_->mutex);
  const auto found = body_->known.find(key);
  if (found != body_->known.end()) return found->second;
  return body_->known.emplace(key, assemble_gpu_rates(body_->tables, gpu)).first->second;
}

Rated gemm_time(const GpuRates& rates, const GemmShape& shape, MathKind math, double warm) {
  const Chosen<GemmCurve>& chosen = rates.gemm[static_cast<std::size_t>(math)];
  const GemmCurve& curve = chosen.curve;
  return rated(gemm_seconds(curve, rates.peaks, chosen.peak, bytes_per_input(math), shape, warm), chosen.sigma,
               reach_of(curve, shape), chosen.evidence);
}

Rated attention_time(const GpuRates& rates, const AttentionShape& shape, AttentionPass pass, AttentionLibrary library,
                     double warm) {
  const Chosen<AttentionCurve>& chosen = rates.attention[attention_index(shape.math, library, pass)];
  const AttentionCurve& curve = chosen.curve;
  return rated(attention_seconds(curve, rates.peaks, chosen.peak, shape, pass, warm), chosen.sigma, reach_of(curve, shape),
               chosen.evidence);
}

Rated memory_time(const GpuRates& rates, Bytes traffic, int kernels) {
  const Chosen<MemoryCurve>& chosen = rates.memory;
  return rated(memory_seconds(chosen.curve, rates.peaks.hbm, traffic.value(), kernels), chosen.sigma,
               // Above the range there is nothing to extrapolate: the rate is that of the memory.
               kernels > 0 ? Reach{0, traffic.value() / kernels < chosen.curve.traffic.low} : kElsewhere, chosen.evidence);
}

Rated norm_time(const GpuRates& rates, const NormShape& shape) {
  const Chosen<MemoryCurve>& chosen = rates.norm[norm_index(shape.kernels, shape.pass)];
  if (chosen.curve.quality.rows == 0) return memory_time(rates, shape.traffic, 1);
  const NormRows rows{number(shape.row), number(shape.rows), shape.layer_norm};
  return rated(norm_seconds(chosen.curve, rates.peaks, shape.traffic.value(), rows), chosen.sigma,
               Reach{0, shape.traffic.value() < chosen.curve.traffic.low}, chosen.evidence);
}

TrainingFactors training_factors(const GpuRates& rates, MathKind math, AttentionLibrary library) {
  return rates.training[training_index(math, library)];
}

Seconds launch_cost(const GpuRates& rates, bool graph) { return Seconds(graph ? rates.launch_graph : rates.launch_eager); }

Rated message_time(const GpuRates& rates, LinkClass link, BytesPerSecond rate, Seconds latency, Bytes bytes) {
  return message_time(rates, link, rate, latency, bytes, 1);
}

Rated message_time(const GpuRates& rates, LinkClass link, BytesPerSecond rate, Seconds latency, Bytes bytes,
                   std::int32_t nic_ports) {
  const auto index = static_cast<std::size_t>(link);
  const RankLadder& measured = rates.collective[index][static_cast<std::size_t>(CollectiveKind::kSendRecv)];
  if (measured.count > 0) {
    const CollectiveCurve& curve = measured.curves[0];
    return rated(collective_seconds(curve, CollectiveKind::kSendRecv, rate.value(), bytes.value()), relative_sigma(curve.quality),
                 sizes_of(curve, bytes), measured.evidence);
  }
  const Chosen<LinkCurve>& chosen = rates.link[index];
  const double seconds = chosen.curve.alpha + latency.value() +
                         (bytes.value() + chosen.curve.half_bytes) / message_rate(chosen.curve, rate.value(), nic_ports);
  return rated(seconds, chosen.sigma, kInside, chosen.evidence);
}

BytesPerSecond attained_by_messages(const GpuRates& rates, LinkClass link, BytesPerSecond rate) {
  const auto index = static_cast<std::size_t>(link);
  const RankLadder& measured = rates.collective[index][static_cast<std::size_t>(CollectiveKind::kSendRecv)];
  if (measured.count == 0) return rate * rates.link[index].curve.share;
  const CollectiveCurve& curve = measured.curves[0];
  return rate * curve.pieces[static_cast<std::size_t>(curve.piece_count) - 1].bus_share;
}

Rated collective_time(const GpuRates& rates, CollectiveKind kind, LinkClass link, BytesPerSecond rate, Seconds latency,
                      std::int64_t ranks, Bytes bytes, CollectiveForm form) {
  if (ranks <= 1) return {Seconds(0.0), 0.0f, true, Evidence::kMeasured};
  if (kind == CollectiveKind::kSendRecv) return message_time(rates, link, rate, latency, bytes);
  const auto index = static_cast<std::size_t>(link);
  const RankLadder& ladder = ladder_for(rates, index, static_cast<std::size_t>(kind), form, ranks);
  const double n = number(ranks);
  if (ladder.count == 0) {
    const Chosen<LinkCurve>& chosen = rates.link[index];
    const double seconds = ring_steps(kind, n) * (chosen.curve.alpha + latency.value()) +
                           (bytes.value() + chosen.curve.half_bytes) * bus_factor(kind, n) / (chosen.curve.share * rate.value());
    return rated(seconds, chosen.sigma, kInside, chosen.evidence);
  }
  std::int32_t upper = 0;
  while (upper + 1 < ladder.count && ladder.curves[static_cast<std::size_t>(upper)].ranks < ranks) ++upper;
  const CollectiveCurve& high = ladder.curves[static_cast<std::size_t>(upper)];
  const Reach sizes = sizes_of(high, bytes);
  const float sigma = relative_sigma(high.quality);
  if (high.ranks == ranks)
    return rated(collective_seconds(high, kind, rate.value(), bytes.value()), sigma, sizes, ladder.evidence);
  if (upper == 0 || high.ranks < ranks) {
    return rated(at_ranks(high, kind, rate.value(), bytes.value(), n), sigma, kElsewhere, ladder.evidence);
  }
  const CollectiveCurve& low = ladder.curves[static_cast<std::size_t>(upper) - 1];
  const double share = std::log2(n / number(low.ranks)) / std::log2(number(high.ranks) / number(low.ranks));
  const double seconds = (1 - share) * at_ranks(low, kind, rate.value(), bytes.value(), n) +
                         share * at_ranks(high, kind, rate.value(), bytes.value(), n);
  return rated(seconds, sigma, sizes, ladder.evidence);
}

double overlap_slowdown(const GpuRates& rates, LinkClass link) { return rates.overlap[static_cast<std::size_t>(link)]; }

double message_overlap_slowdown(const GpuRates& rates, LinkClass link) {
  return rates.message_overlap[static_cast<std::size_t>(link)];
}

}  // namespace cpfit
