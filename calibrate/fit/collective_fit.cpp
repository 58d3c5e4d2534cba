// Collectives in pieces alpha + wire / rate: NCCL changes protocol and algorithm with size, and fills its channels one by one
// before it uses them all; one line through all of it misses by a quarter in the middle. Pieces are found by dynamic programming
// over the measured sizes; each is a robust two-parameter fit of relative errors with both parameters kept positive. A piece more
// has to earn its three figures (fixed cost, rate, where it begins) by the Bayesian information criterion of the fitted points:
// how many there are never depends on points that are kept out.
#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>

#include "calibrate/fit/fit_rates.h"
#include "calibrate/fit/hold_out.h"
#include "calibrate/fit/robust.h"

namespace cpfit {

namespace {

constexpr std::size_t kSizesPerPiece = 2;
constexpr double kNoRate = 1e6;  // share of a flat piece: latency only, its bytes cost nothing visible
constexpr double kHuber = 0.03;  // relative error beyond which a point counts linearly

struct Line {
  double alpha = 0, slope = 0;  // s, s per wire byte of raw-rate share: seconds = alpha + slope * wire / raw
  double cost = 0;
};

/// Weighted least squares of y = alpha + slope x with alpha >= 0 and slope >= least_slope.
void solve(const std::vector<double>& x, const std::vector<double>& y, const std::vector<double>& w, double least_slope,
           Line& line) {
  double s = 0, sx = 0, sy = 0, sxx = 0, sxy = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    s += w[i];
    sx += w[i] * x[i];
    sy += w[i] * y[i];
    sxx += w[i] * x[i] * x[i];
    sxy += w[i] * x[i] * y[i];
  }
  const double det = s * sxx - sx * sx;
  line.slope = det > 0 ? (s * sxy - sx * sy) / det : 0;
  line.alpha = (sy - line.slope * sx) / s;
  if (line.slope < least_slope) line = {(sy - least_slope * sx) / s, least_slope, 0};
  if (line.alpha < 0) line = {0, std::max(least_slope, sxy / sxx), 0};
}

/// `trust`: weight of each point beside that of its relative error.
Line fit_line(const std::vector<double>& x, const std::vector<double>& y, const std::vector<double>& trust, double least_slope) {
  std::vector<double> w(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) w[i] = trust[i] / (y[i] * y[i]);
  Line line;
  for (int pass = 0; pass < 12; ++pass) {
    solve(x, y, w, least_slope, line);
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double error = std::abs((line.alpha + line.slope * x[i]) / y[i] - 1);
      w[i] = trust[i] * std::min(1.0, kHuber / std::max(error, 1e-9)) / (y[i] * y[i]);
    }
  }
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double error = std::abs((line.alpha + line.slope * x[i]) / y[i] - 1);
    line.cost += trust[i] * (error < kHuber ? error * error / 2 : kHuber * (error - kHuber / 2));
  }
  return line;
}

CollectiveCurve fit_pieces(const std::vector<CollectivePoint>& points, CollectiveKind kind, std::int64_t ranks,
                           double largest_share) {
  const double factor = bus_factor(kind, static_cast<double>(ranks));
  std::map<double, std::vector<const CollectivePoint*>> by_size;
  for (const CollectivePoint& point : points) by_size[point.bytes].push_back(&point);
  std::vector<double> sizes;
  for (const auto& [bytes, group] : by_size) sizes.push_back(bytes);
  const std::size_t count = sizes.size();

  const auto line_over = [&](std::size_t first, std::size_t end) {
    std::vector<double> x, y, trust;
    for (std::size_t i = first; i < end; ++i) {
      for (const CollectivePoint* point : by_size[sizes[i]]) {
        x.push_back(point->bytes * factor / point->raw);
        y.push_back(point->seconds);
        const double scale = row_scale(point->spread) / kErrorScale;
        trust.push_back(1 / (scale * scale));
      }
    }
    return fit_line(x, y, trust, 1 / largest_share);
  };
  struct Best {
    double cost = 1e300;
    std::size_t from = 0;
    Line line;
  };
  // best[p][end]: cheapest cover of sizes[0, end) by p + 1 pieces
  std::vector<std::optional<Line>> known(count * (count + 1));
  const auto line_of = [&](std::size_t from, std::size_t end) -> const Line& {
    std::optional<Line>& line = known[from * (count + 1) + end];
    if (!line) line = line_over(from, end);
    return *line;
  };
  const double price = 1.5 * kHuber * kHuber * std::log(static_cast<double>(points.size()));
  std::array<std::vector<Best>, kMostPieces> best;
  for (std::size_t p = 0; p < kMostPieces; ++p) {
    best[p].resize(count + 1);
    for (std::size_t end = (p + 1) * std::min(kSizesPerPiece, count); end <= count; ++end) {
      const std::size_t last_start = p == 0 ? 0 : end - kSizesPerPiece;
      for (std::size_t from = p == 0 ? 0 : p * kSizesPerPiece; from <= last_start; ++from) {
        const double before = p == 0 ? 0.0 : best[p - 1][from].cost;
        if (before >= 1e300) continue;
        const Line& line = line_of(from, end);
        if (before + line.cost + price < best[p][end].cost) best[p][end] = {before + line.cost + price, from, line};
      }
    }
  }
  std::size_t pieces = 0;
  for (std::size_t p = 1; p < kMostPieces; ++p) {
    if (best[p][count].cost < best[pieces][count].cost) pieces = p;
  }
  CollectiveCurve curve;
  curve.ranks = ranks;
  curve.piece_count = static_cast<std::int32_t>(pieces + 1);
  std::size_t end = count;
  for (std::size_t p = pieces + 1; p-- > 0;) {
    const Best& step = best[p][end];
    curve.pieces[p] = {sizes[step.from], sizes[end - 1], step.line.alpha, 1 / std::max(step.line.slope, 1 / kNoRate)};
    end = step.from;
  }
  return curve;
}

}  // namespace

CollectiveCurve fit_collective(const std::vector<CollectivePoint>& points, CollectiveKind kind, std::int64_t ranks,
                               double largest_share) {
  std::vector<std::string> shapes;
  for (const CollectivePoint& point : points) shapes.push_back(std::to_string(point.bytes));
  const auto pick = [&](const std::vector<std::size_t>& rows) {
    std::vector<CollectivePoint> picked;
    for (const std::size_t row : rows) picked.push_back(points[row]);
    return picked;
  };
  FitQuality quality;
  score_by_hold_out(
      shapes,
      [&](const std::vector<std::size_t>& fitted, const std::vector<std::size_t>& predicted) {
        const CollectiveCurve curve = fit_pieces(pick(fitted), kind, ranks, largest_share);
        std::vector<double> errors;
        for (const std::size_t row : predicted) {
          errors.push_back(std::log(collective_seconds(curve, kind, points[row].raw, points[row].bytes) / points[row].seconds));
        }
        return errors;
      },
      quality);
  CollectiveCurve curve = fit_pieces(points, kind, ranks, largest_share);
  curve.quality = quality;
  std::vector<double> spreads, seconds;
  for (const CollectivePoint& point : points) {
    spreads.push_back(point.spread);
    seconds.push_back(point.seconds);
  }
  curve.quality.noise = noise_of(spreads, shapes, seconds);
  return curve;
}

}  // namespace cpfit
