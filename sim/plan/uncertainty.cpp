#include "sim/plan/uncertainty.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>

#include "model/rates/gpu_rates.h"
#include "model/rates/rate_tables.h"
#include "model/rates/reach.h"
#include "sim/screen/attention_cost.h"
#include "sim/screen/composition.h"
#include "sim/screen/screen.h"

namespace cpfit {

namespace {

constexpr double kStep = 0.02;  // by which a surface is made slower: small enough that what hides stays hidden

void slow(CollectiveCurve& curve, double factor) {
  for (CollectivePiece& piece : curve.pieces) {
    piece.alpha *= factor;
    piece.bus_share /= factor;
  }
}

std::string_view link_text(LinkClass link) {
  static constexpr std::string_view kNames[kLinkClasses] = {"NVLink", "xGMI",      "PCIe",       "sockets",
                                                            "NICs",   "the spine", "local links"};
  return kNames[static_cast<std::size_t>(link)];
}

/// One surface: its uncertainty, and how to make it slower.
struct Attributed {
  UncertainSurface surface;
  std::function<void(GpuRates&, double factor)> slower;
};

class Attribution {
 public:
  Attribution(Workbench& bench, const Recipe& recipe, const ResolvedLayout& layout)
      : recipe_(recipe), layout_(layout), context_(bench.context(bench.scenario().training)), rates_(context_.rates) {}

  StepUncertainty run() {
    collect_gemms();
    collect_attention();
    collect_memory();
    collect_links();
    const TimeBreakdown time = time_with(rates_);
    const double step = time.step().value();
    StepUncertainty result;
    result.composition = composition_sigma(time);
    for (Attributed& one : candidates_) {
      GpuRates slower = rates_;
      one.slower(slower, 1 + kStep);
      UncertainSurface surface = std::move(one.surface);
      surface.sensitivity = (time_with(slower).step().value() / step - 1) / kStep;
      surface.variance = surface.sensitivity * surface.sensitivity * surface.sigma * surface.sigma;
      if (surface.sensitivity > 1e-4) result.surfaces.push_back(std::move(surface));
    }
    std::stable_sort(result.surfaces.begin(), result.surfaces.end(),
                     [](const UncertainSurface& a, const UncertainSurface& b) { return a.variance > b.variance; });
    return result;
  }

 private:
  [[nodiscard]] TimeBreakdown time_with(const GpuRates& rates) {
    const ScreenContext changed{context_.model, context_.cluster, context_.training, context_.requirements, context_.rules,
                                rates,          context_.network};
    return screen(changed, recipe_, layout_).time;
  }

  void collect_gemms() {
    const operators::RankShape shape = operators::rank_shape(context_, recipe_);
    const auto tokens = static_cast<std::int64_t>(shape.tokens);
    UncertainSurface surface;
    surface.surface = "gemm " + std::string(name_of(shape.math));
    surface.probe = ProbeKind::kGemm;
    const GemmCurve& curve = rates_.gemm[static_cast<std::size_t>(shape.math)].curve;
    surface.evidence = rates_.gemm[static_cast<std::size_t>(shape.math)].evidence;
    Reach all;
    for (const operators::Linear& linear : operators::layer_linears(context_, recipe_, shape)) {
      const auto n = static_cast<std::int64_t>(linear.n), k = static_cast<std::int64_t>(linear.k);
      for (const GemmShape& used : {GemmShape{tokens, n, k}, GemmShape{tokens, k, n}, GemmShape{n, k, tokens}}) {
        const Reach one = reach_of(curve, used);
        all = all | one;
        if (one.inside()) continue;
        note(surface, "m=" + std::to_string(used.m) + " n=" + std::to_string(used.n) + " k=" + std::to_string(used.k));
      }
    }
    surface.sigma = all.sigma(rates_.gemm[static_cast<std::size_t>(shape.math)].sigma);
    const MathKind math = shape.math;
    add(std::move(surface), [math](GpuRates& rates, double factor) {
      Chosen<GemmCurve>& gemm = rates.gemm[static_cast<std::size_t>(math)];
      gemm.curve.launch *= factor;
      gemm.peak /= factor;
    });
  }

  void collect_attention() {
    const operators::RankShape shape = operators::rank_shape(context_, recipe_);
    for (const AttentionPass pass : {AttentionPass::kForward, AttentionPass::kBackward}) {
      const std::size_t index = attention_index(MathKind::kBf16, shape.library, pass);
      UncertainSurface surface;
      surface.surface = "attention " + std::string(name_of(shape.library)) + " bf16 " + std::string(name_of(pass));
      surface.probe = ProbeKind::kAttention;
      surface.evidence = rates_.attention[index].evidence;
      const AttentionCurve& curve = rates_.attention[index].curve;
      Reach all;
      for (const operators::StepRectangle& step : operators::attention_rectangles(context_, recipe_)) {
        const double heads = shape.heads / a2a_ranks(recipe_) * recipe_.micro_batch;
        AttentionShape rectangle;
        rectangle.q_len = step.q_len;
        rectangle.kv_len = step.kv_len;
        rectangle.heads = static_cast<std::int64_t>(heads);
        rectangle.pairs = static_cast<double>(step.q_len) * static_cast<double>(step.kv_len);
        const Reach one = reach_of(curve, rectangle);
        all = all | one;
        if (one.inside()) continue;
        note(surface, "q=" + std::to_string(step.q_len) + " kv=" + std::to_string(step.kv_len) +
                          " heads=" + std::to_string(static_cast<std::int64_t>(heads)));
      }
      surface.sigma = all.sigma(rates_.attention[index].sigma);
      add(std::move(surface), [index](GpuRates& rates, double factor) {
        Chosen<AttentionCurve>& attention = rates.attention[index];
        attention.curve.launch *= factor;
        attention.peak /= factor;
      });
    }
  }

  void collect_memory() {
    UncertainSurface memory;
    memory.surface = "memory-bound kernels";
    memory.probe = ProbeKind::kMemory;
    memory.evidence = rates_.memory.evidence;
    memory.sigma = rates_.memory.sigma;
    add(std::move(memory), [](GpuRates& rates, double factor) {
      rates.memory.curve.launch *= factor;
      rates.memory.curve.hbm_share /= factor;
    });
    UncertainSurface launch;
    launch.surface = "kernel launch";
    launch.probe = ProbeKind::kLaunch;
    launch.sigma = 0.3;  // as its documented row: the median of published overheads against their spread
    add(std::move(launch), [](GpuRates& rates, double factor) { rates.launch_eager *= factor; });
  }

  void collect_links() {
    for (std::size_t index = 0; index < kLinkClasses; ++index) {
      const auto link = static_cast<LinkClass>(index);
      for (std::size_t kind = 0; kind < kCollectiveKinds; ++kind) {
        const RankLadder& ladder = rates_.collective[index][kind];
        if (ladder.count == 0) continue;
        const auto named = static_cast<CollectiveKind>(kind);
        UncertainSurface surface;
        const bool message = named == CollectiveKind::kSendRecv;
        surface.surface = message ? "messages over " + std::string(link_text(link))
                                  : std::string(name_of(named)) + " over " + std::string(link_text(link));
        surface.probe = message ? ProbeKind::kMessages : ProbeKind::kCollectives;
        surface.evidence = ladder.evidence;
        for (std::int32_t i = 0; i < ladder.count; ++i)
          surface.sigma = std::max<double>(surface.sigma, relative_sigma(ladder.curves[static_cast<std::size_t>(i)].quality));
        if (ladder.evidence == Evidence::kAssumed) surface.sigma = std::hypot(surface.sigma, 0.25);
        add(std::move(surface), [index, kind](GpuRates& rates, double factor) {
          for (GpuRates::Ladders* forms : {&rates.collective, &rates.strided})
            for (CollectiveCurve& curve : (*forms)[index][kind].curves) slow(curve, factor);
        });
      }
      const Chosen<LinkCurve>& curve = rates_.link[index];
      UncertainSurface surface;
      surface.surface = "messages and collectives over " + std::string(link_text(link)) + " without a size curve";
      surface.probe = ProbeKind::kMessages;
      surface.evidence = curve.evidence;
      surface.sigma = curve.sigma;
      add(std::move(surface), [index](GpuRates& rates, double factor) {
        rates.link[index].curve.alpha *= factor;
        rates.link[index].curve.share /= factor;
        rates.link[index].curve.peer_rate /= factor;
      });
      UncertainSurface overlap;
      overlap.surface = "slowdown of kernels beside messages over " + std::string(link_text(link));
      overlap.probe = ProbeKind::kOverlap;
      overlap.sigma = 0.1;  // as the documented rows' 90 % error
      add(std::move(overlap), [index](GpuRates& rates, double factor) {
        rates.overlap[index] *= factor;
        rates.message_overlap[index] *= factor;
      });
    }
  }

  static void note(UncertainSurface& surface, std::string shape) {
    if (std::find(surface.outside.begin(), surface.outside.end(), shape) == surface.outside.end())
      surface.outside.push_back(std::move(shape));
  }
  void add(UncertainSurface surface, std::function<void(GpuRates&, double)> slower) {
    candidates_.push_back({std::move(surface), std::move(slower)});
  }

  const Recipe& recipe_;
  const ResolvedLayout& layout_;
  ScreenContext context_;
  const GpuRates& rates_;
  std::vector<Attributed> candidates_;
};

}  // namespace

std::string_view name_of(ProbeKind probe) {
  switch (probe) {
    case ProbeKind::kAttention:
      return "attention";
    case ProbeKind::kGemm:
      return "gemm";
    case ProbeKind::kMemory:
      return "memory";
    case ProbeKind::kLaunch:
      return "launch";
    case ProbeKind::kMessages:
      return "p2p";
    case ProbeKind::kCollectives:
      return "collective";
    case ProbeKind::kOverlap:
      return "overlap";
  }
  return "";
}

double StepUncertainty::sigma() const {
  double variance = composition * composition;
  for (const UncertainSurface& surface : surfaces) variance += surface.variance;
  return std::sqrt(variance);
}

double StepUncertainty::sigma_with(const UncertainSurface& known, double measured_sigma) const {
  const double whole = sigma();
  const double then = std::min(known.sigma, measured_sigma) * known.sensitivity;
  return std::sqrt(std::max(0.0, whole * whole - known.variance + then * then));
}

Outcome<StepUncertainty> step_uncertainty(Workbench& bench, const Recipe& recipe) {
  const Outcome<Candidate> candidate = bench.evaluate(bench.scenario().training, recipe);  // prepares the network too
  if (!candidate) return candidate.problems();
  const Outcome<ResolvedLayout> layout = resolve_layout(bench.scenario().model, recipe);
  if (!layout) return layout.problems();
  return Attribution(bench, recipe, *layout).run();
}

}  // namespace cpfit
