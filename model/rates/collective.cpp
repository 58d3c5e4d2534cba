#include <cmath>

#include "model/rates/curves.h"

namespace cpfit {

double collective_seconds(const CollectiveCurve& curve, CollectiveKind kind, double rate, double bytes) {
  const double factor = bus_factor(kind, static_cast<double>(curve.ranks));
  const auto piece_time = [&](const CollectivePiece& piece, double at) {
    return piece.alpha + at * factor / (piece.bus_share * rate);
  };
  for (std::int32_t i = 0; i < curve.piece_count; ++i) {
    const CollectivePiece& piece = curve.pieces[static_cast<std::size_t>(i)];
    if (bytes <= piece.to || i + 1 == curve.piece_count) return piece_time(piece, bytes);
    const CollectivePiece& next = curve.pieces[static_cast<std::size_t>(i + 1)];
    if (bytes < next.from) {  // the protocol switches somewhere in this gap: go from one piece to the other in logarithms
      const double share = std::log(bytes / piece.to) / std::log(next.from / piece.to);
      return std::exp((1 - share) * std::log(piece_time(piece, piece.to)) + share * std::log(piece_time(next, next.from)));
    }
  }
  return 0.0;
}

}  // namespace cpfit
