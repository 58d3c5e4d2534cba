#include <cmath>

#include "model/rates/curves.h"

namespace cpfit {

double collective_seconds(const CollectiveCurve& curve, CollectiveKind kind, double rate, double bytes) {
  return collective_seconds_at(curve, kind, rate, bytes, static_cast<double>(curve.ranks), 1.0);
}

double collective_seconds_at(const CollectiveCurve& curve, CollectiveKind kind, double rate, double bytes, double ranks,
                             double alpha_factor) {
  const double wire_seconds = bus_factor(kind, ranks) / rate;  // per byte of buffer, at the raw rate
  const auto piece_time = [&](const CollectivePiece& piece, double at) {
    return piece.alpha * alpha_factor + at * wire_seconds / piece.bus_share;
  };
  for (std::int32_t i = 0; i < curve.piece_count; ++i) {
    const CollectivePiece& piece = curve.pieces[static_cast<std::size_t>(i)];
    if (bytes <= piece.to || i + 1 == curve.piece_count) return piece_time(piece, bytes);
    const CollectivePiece& next = curve.pieces[static_cast<std::size_t>(i) + 1];
    if (bytes < next.from) {  // the protocol switches somewhere in this gap: go from one piece to the other in logarithms
      const double before = piece_time(piece, piece.to), after = piece_time(next, next.from);
      const double share = std::log2(bytes / piece.to) / std::log2(next.from / piece.to);
      return before * std::exp2(share * std::log2(after / before));
    }
  }
  return 0.0;
}

}  // namespace cpfit
