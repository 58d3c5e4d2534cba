// How one sequence of s tokens is cut over cp ranks. Header-only and constexpr: the simulator's work counts, the CPU truth and
// the CUDA kernels use this one implementation. Zigzag: rank r owns chunks r and 2cp-1-r of 2cp; contiguous: chunk r of cp;
// striped: token t on rank t mod cp; cp = 1 is the identity in every layout, for any length. Source: cp_model.md A.3, E.4.
#pragma once

#include <cstdint>

#if defined(__CUDACC__)
#define CPFIT_HD __host__ __device__
#else
#define CPFIT_HD
#endif

namespace cpfit::attention {

enum class Layout : std::uint8_t { kZigzag, kContiguous, kStriped };

struct Shard {
  Layout layout = Layout::kZigzag;
  std::int64_t sequence = 0;  // s, padded; divisible by cp (zigzag: by 2*cp)
  std::int32_t cp = 1;

  CPFIT_HD constexpr std::int64_t tokens_per_rank() const { return sequence / cp; }
  /// Tokens of one piece of consecutive positions; zigzag ranks own two pieces when cp > 1, the others one.
  CPFIT_HD constexpr std::int64_t chunk() const { return zigzag() ? sequence / (std::int64_t{2} * cp) : sequence / cp; }
  CPFIT_HD constexpr bool zigzag() const { return layout == Layout::kZigzag && cp > 1; }
  /// The length the cut can serve: every rank gets the same number of tokens, zigzag two equal chunks.
  CPFIT_HD constexpr bool divides() const { return sequence % (zigzag() ? 2 * cp : cp) == 0; }

  /// Global position of local token j of rank r.
  CPFIT_HD constexpr std::int64_t global_of(std::int32_t r, std::int64_t j) const {
    if (layout == Layout::kStriped) return j * cp + r;
    if (!zigzag()) return r * tokens_per_rank() + j;
    const std::int64_t w = chunk();
    return j < w ? r * w + j : (2 * cp - 1 - r) * w + (j - w);
  }
  /// Rank that owns global position t.
  CPFIT_HD constexpr std::int32_t owner_of(std::int64_t t) const {
    if (layout == Layout::kStriped) return static_cast<std::int32_t>(t % cp);
    if (!zigzag()) return static_cast<std::int32_t>(t / tokens_per_rank());
    const std::int64_t c = t / chunk();
    return static_cast<std::int32_t>(c < cp ? c : 2 * cp - 1 - c);
  }
  /// Local index of global position t on its owner: the inverse of global_of.
  CPFIT_HD constexpr std::int64_t local_of(std::int64_t t) const {
    if (layout == Layout::kStriped) return t / cp;
    if (!zigzag()) return t % tokens_per_rank();
    const std::int64_t w = chunk();
    const std::int64_t c = t / w;
    return c < cp ? t % w : w + t % w;
  }
};

}  // namespace cpfit::attention
