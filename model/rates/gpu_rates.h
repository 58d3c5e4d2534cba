// The rates of one GPU, ready to evaluate: curves picked from the tables (its own, or a donor's with shares kept and peaks
// exchanged), indexed by enumeration so that no evaluation searches or allocates.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "model/rates/curves.h"
#include "model/rates/rate_tables.h"

namespace cpfit {

inline constexpr std::size_t kMathKinds = 6, kLibraries = 5, kPasses = 2, kCollectiveKinds = 5, kLinkClasses = 7,
                             kNormKernels = 3;

/// A curve and how far it may be trusted on this GPU.
template <class Curve>
struct Chosen {
  Curve curve;
  double peak = 0;  // FLOP/s the shares refer to; 0 where no peak enters
  float sigma = 0;  // relative, of the fit and of the transfer from a donor
  Evidence evidence = Evidence::kAssumed;
};

/// The curves of one collective over one link class by number of ranks, ascending.
struct RankLadder {
  std::array<CollectiveCurve, 8> curves{};
  std::int32_t count = 0;
  Evidence evidence = Evidence::kAssumed;
  bool own_latency = true;  // the measured time contains the fabric's latency
};

struct GpuRates {
  std::string gpu;
  std::string generation;
  DevicePeaks peaks;
  std::array<Chosen<GemmCurve>, kMathKinds> gemm;
  std::array<Chosen<AttentionCurve>, kMathKinds * kLibraries * kPasses> attention;
  Chosen<MemoryCurve> memory;
  std::array<Chosen<MemoryCurve>, kNormKernels * kPasses> norm;
  using Ladders = std::array<std::array<RankLadder, kCollectiveKinds>, kLinkClasses>;
  Ladders collective;
  Ladders strided, int8_sums;  // empty where they were not measured: then `collective` counts
  std::array<Chosen<LinkCurve>, kLinkClasses> link;
  std::array<TrainingFactors, kMathKinds * kLibraries> training;
  double launch_eager = 0, launch_graph = 0;           // s
  std::array<double, kLinkClasses> overlap{};          // slowdown of kernels beside collectives
  std::array<double, kLinkClasses> message_overlap{};  // beside messages between two GPUs
};

[[nodiscard]] constexpr std::size_t attention_index(MathKind math, AttentionLibrary library, AttentionPass pass) {
  return (static_cast<std::size_t>(math) * kLibraries + static_cast<std::size_t>(library)) * kPasses +
         static_cast<std::size_t>(pass);
}
[[nodiscard]] constexpr std::size_t training_index(MathKind math, AttentionLibrary library) {
  return static_cast<std::size_t>(math) * kLibraries + static_cast<std::size_t>(library);
}

[[nodiscard]] constexpr std::size_t norm_index(NormKernels kernels, AttentionPass pass) {
  return static_cast<std::size_t>(kernels) * kPasses + static_cast<std::size_t>(pass);
}

/// Picks every curve for one GPU. Rule for a missing one: same library and math on the nearest generation, its shares of
/// peak kept, marked assumed, with the uncertainty of the transfer added (10 % inside a generation, 25 % across).
[[nodiscard]] GpuRates assemble_gpu_rates(const RateTables& tables, const Gpu& gpu);

/// message_time of a GPU that has several NICs.
[[nodiscard]] Rated message_time(const GpuRates& rates, LinkClass link, BytesPerSecond rate, Seconds latency, Bytes bytes,
                                 std::int32_t nic_ports);

/// What a link of `rate` carries of large messages, of as many peers as fill it.
[[nodiscard]] BytesPerSecond attained_by_messages(const GpuRates& rates, LinkClass link, BytesPerSecond rate);

/// Generations in the order of their release; distance between two of them decides who may stand in for whom.
[[nodiscard]] int generation_rank(std::string_view generation);

}  // namespace cpfit
