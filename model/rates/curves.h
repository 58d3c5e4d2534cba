// The fitted curves behind the rate surfaces: coefficients with a physical meaning, the range they were fitted on and how
// far they missed the rows kept out of the fit. Plain values and pure evaluation; times in seconds, sizes in bytes, rates in
// bytes/s and FLOP/s. `calibrate/fit` uses the same evaluation, so what is fitted is what is later predicted.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "model/rates/rate_set.h"

namespace cpfit {

/// Values of one axis seen by a fit; a curve evaluated outside says so.
struct FittedRange {
  double low = 0, high = 0;
  [[nodiscard]] constexpr bool contains(double value) const { return value >= low && value <= high; }
};

/// How a curve came about and how well it did on shapes it had not seen.
struct FitQuality {
  std::int64_t rows = 0;      // rows of the final fit
  std::int64_t held_out = 0;  // rows kept out for the errors below (the final coefficients use all rows)
  double median_error = 0;    // |predicted / measured - 1|, median over the rows kept out
  double p90_error = 0;
  double noise = 0;  // relative spread of repeated measurements, median over the rows; 0 where the source does not tell
  Evidence evidence = Evidence::kFitted;
  std::string source;
  friend bool operator==(const FitQuality&, const FitQuality&) = default;
};

/// One standard deviation, relative: from the median where errors are normal, from the tail where they are not.
[[nodiscard]] float relative_sigma(const FitQuality& quality);

/// GEMM: t = launch + max(T (1 + sustained_loss T / (T + sustained)), inputs and output once through HBM), T = min over tiles of
///   waves SM 2 tm tn (k + k_half) / (share peak),  waves = w + wave_rounding (ceil(w) - w),  w = tiles / SM.
/// `sustained_loss` is what power limits and cold caches take from kernels much longer than `sustained`.
struct GemmCurve {
  double launch = 0;            // s, fixed cost of one kernel
  double peak_share = 0.7;      // of the dense peak, 128x256 tiles, infinite k
  double k_half = 100;          // elements: depth at which prologue and epilogue cost as much as the main loop
  double wave_rounding = 0.3;   // 1: a partial last wave costs a whole one; 0: work is split evenly
  double small_tile_share = 1;  // speed of 128x128 tiles against 128x256
  double sustained_loss = 0;
  double sustained = 1e-3;  // s
  FittedRange m, n, k;
  FitQuality quality;
};

/// Attention kernel over blocks of 128 rows (forward: rows of q; backward: rows of kv), each walking the other side:
///   t = launch + T (1 + sustained_loss T / (T + sustained)) + preparation,
///   T = max(waves (mean + half), longest + half) unit,  unit = 128 FLOP/pair SM / (share peak).
/// `mean` is attended pairs per row, `longest` the longest walk: with few blocks the longest one decides.
struct AttentionCurve {
  double launch = 0;        // s
  double peak_share = 0.6;  // of the dense peak, head dimension 128, infinite length
  double half = 200;        // pairs per row at which set-up costs as much as the walk
  double wave_rounding = 0.3;
  double diagonal = 60;  // extra pairs per row on a causal diagonal (masked half of the diagonal tiles)
  double share_64 = 0.8, share_192 = 1, share_256 = 1;  // speed of other head dimensions against 128
  double causal_share = 1;           // speed under a causal mask beyond the diagonal's cost; FP8 backward on Hopper skips little
  double deterministic_share = 0.9;  // backward with a fixed order of additions
  double sustained_loss = 0;
  double sustained = 5e-3;  // s
  double preparation = 0;   // passes over q, k, v in HBM that the measured operator adds (rotary, cache write); 0 in training
  FittedRange q_len, kv_len, heads;  // heads: batch x heads
  FitQuality quality;
};

/// Streaming kernel: t = kernels launch + M, M = bytes / (hbm_share HBM). A kernel that reduces rows (a norm) is held up by the
/// memory or by its multiprocessors, whichever is slower, and by both where they are alike:
///   t = kernels launch + (M'^3 + S^3)^(1/3) + C,   M' = M (1 + reread max(0, 1 - kept_row / row)),
///   S = rows / SM (row_time + element_time row'), rounded to whole waves of `resident` rows an SM,
///   C = ceil(row / 32 / SM) (column_start + column_row rows).
/// row' is the row in whole tiles. C is the second kernel of a backward pass, which sums the gradient of the weights down the
/// rows: a block to 32 columns, one block an SM. What belongs to the kernel (all but launch and hbm_share) is the same on every
/// GPU.
struct MemoryCurve {
  double launch = 3e-6;  // s
  double hbm_share = 0.75;
  double row_time = 0;       // s of one multiprocessor: a row scheduled, reduced, its barrier
  double element_time = 0;   // s of one multiprocessor an element
  double statistics = 0;     // s of one multiprocessor a row: a layer norm's mean and bias beside the square of an RMS norm
  double tile = 0;           // elements: rows are worked on in whole tiles of this; 0: as they are
  double looped_from = 0;    // elements: rows up to here are held in registers, many to a block: no row_time, no tile
  double resident = 0;       // rows that one multiprocessor works on at a time; 0: not rounded to waves
  double wave_rounding = 0;  // 1: a partial last wave takes as long as a whole one
  double reread = 0;        // share of the traffic that is read again where no part of a row stays on the chip between two passes
  double kept_row = 0;      // elements: rows up to here stay whole in the first-level cache
  double column_start = 0;  // s a wave of column blocks
  double column_row = 0;    // s a wave of column blocks and row
  FittedRange traffic;      // bytes
  FitQuality quality;
};

/// The rows that a norm reduces.
struct NormRows {
  double row = 0, rows = 0;  // elements of one, how many
  bool layer_norm = false;
};

/// One piece of a collective: t = alpha + wire bytes / (bus_share raw), wire bytes as nccl-tests' busbw counts them.
struct CollectivePiece {
  double from = 0, to = 0;  // bytes of the buffer; between two pieces the time is interpolated in logarithms
  double alpha = 0;         // s
  double bus_share = 0.7;   // of the raw rate of the link class
};

/// NCCL runs a collective by one of three protocols (LL, LL128, Simple), each first on as few channels as the size fills (time
/// stays), then on all of them (time grows with the bytes): two pieces each.
inline constexpr std::size_t kMostPieces = 6;

struct CollectiveCurve {
  std::int64_t ranks = 0;
  std::int32_t piece_count = 0;
  std::array<CollectivePiece, kMostPieces> pieces{};
  FitQuality quality;
};

/// One message over a link class: t = alpha + (bytes + half_bytes) / min(share rate, peer_rate).
struct LinkCurve {
  double alpha = 0;       // s, software and protocol; the wire's latency is added by the caller
  double share = 0.85;    // attainable share of the raw rate
  double half_bytes = 0;  // message size at which half of that share is reached, beyond alpha
  double peer_rate = 0;   // bytes/s that the channels of one peer carry, whatever the link; 0: the link fills
  FitQuality quality;
};

/// Bytes/s of a message between two peers that have `rate` of the link to themselves. A peer has two channels, which peer_rate
/// counts, and as many as a GPU's NICs where it has more (getLocalNetCountByBw in NCCL's src/graph/paths.cc).
[[nodiscard]] constexpr double message_rate(const LinkCurve& curve, double rate, std::int32_t nic_ports = 1) {
  const double shared = curve.share * rate, carried = curve.peer_rate * (nic_ports > 2 ? nic_ports / 2.0 : 1.0);
  return carried > 0 && carried < shared ? carried : shared;
}

/// What a curve needs to know of the device.
struct DevicePeaks {
  double sm_count = 132;
  double hbm = 3.35e12;                               // bytes/s
  std::array<double, 6> math{989e12, 0, 0, 0, 0, 0};  // FLOP/s, indexed by MathKind; 0 where unsupported
};

/// What power limits take from a kernel that is busy for `busy` seconds: alone it runs into them as it lasts, on a GPU that is
/// `warm` (0 idle before, 1 at its power limit before) from its first moment.
[[nodiscard]] constexpr double sustained_factor(double loss, double sustained, double busy, double warm) {
  const double reached = busy / (busy + sustained);
  return 1.0 + loss * (warm > reached ? warm : reached);
}

// The curves themselves, seconds. `warm` as above: tables of kernels are measured at 0, a training step runs at 1.
[[nodiscard]] double gemm_seconds(const GemmCurve& curve, const DevicePeaks& device, double peak, double bytes_per_input,
                                  const GemmShape& shape, double warm = 0.0);
[[nodiscard]] double attention_seconds(const AttentionCurve& curve, const DevicePeaks& device, double peak,
                                       const AttentionShape& shape, AttentionPass pass, double warm = 0.0);
/// `hbm`: bytes/s.
[[nodiscard]] double memory_seconds(const MemoryCurve& curve, double hbm, double traffic, int kernels);
[[nodiscard]] double norm_seconds(const MemoryCurve& curve, const DevicePeaks& device, double traffic, const NormRows& rows);
[[nodiscard]] double collective_seconds(const CollectiveCurve& curve, CollectiveKind kind, double rate, double bytes);
/// The same curve at another number of ranks: the bus rate stays, the fixed cost grows by `alpha_factor`.
[[nodiscard]] double collective_seconds_at(const CollectiveCurve& curve, CollectiveKind kind, double rate, double bytes,
                                           double ranks, double alpha_factor);

/// Bytes of one GEMM input element, block scales included.
[[nodiscard]] constexpr double bytes_per_input(MathKind math) {
  switch (math) {
    case MathKind::kBf16:
      return 2.0;
    case MathKind::kFp8Tensor:
      return 1.0;
    case MathKind::kFp8Block:
      return 1.0 + 4.0 / 128;
    case MathKind::kMxfp8:
      return 1.0 + 1.0 / 32;
    case MathKind::kNvfp4:
      return 0.5 + 1.0 / 16;
    case MathKind::kFp32:
      return 4.0;
  }
  return 2.0;
}

/// std::ceil without a library call, for counts far below 2^63.
[[nodiscard]] constexpr double ceiling(double value) {
  const double whole = static_cast<double>(static_cast<std::int64_t>(value));
  return whole < value ? whole + 1 : whole;
}

/// FLOPs per attended pair and head. Forward 2 matmuls, backward 5 (3 over d_qk, 2 over d_v); 2 FLOPs per multiply-add.
[[nodiscard]] constexpr double flops_per_pair(AttentionPass pass, double d_qk, double d_v) {
  return pass == AttentionPass::kForward ? 2 * (d_qk + d_v) : 6 * d_qk + 4 * d_v;
}

/// Bytes on the bus per byte of buffer, the factors of nccl-tests: all-reduce 2(n-1)/n; all-gather, reduce-scatter and
/// all-to-all (n-1)/n; send-receive 1.
[[nodiscard]] constexpr double bus_factor(CollectiveKind kind, double ranks) {
  if (kind == CollectiveKind::kSendRecv) return 1.0;
  const double once = (ranks - 1) / ranks;
  return kind == CollectiveKind::kAllReduce ? 2 * once : once;
}

}  // namespace cpfit
