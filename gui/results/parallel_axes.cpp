#include "gui/results/parallel_axes.h"

#include <QCoreApplication>
#include <algorithm>
#include <cmath>
#include <set>

namespace cpfit::gui {

namespace {

/// Room at the foot of a logarithmic axis for those that are zero.
constexpr double kZeroRoom = 0.08;
double foot_of(const ParallelAxis& axis) { return axis.low > 0.0 ? 0.0 : kZeroRoom; }

double least_above_zero(const ResultSet& set, const std::vector<std::uint32_t>& rows, const ParallelAxis& axis) {
  double least = std::numeric_limits<double>::infinity();
  for (const std::uint32_t row : rows) {
    const double value = set.columns[axis.field].values[row];
    if (value > 0.0) least = std::min(least, value);
  }
  return least;
}

}  // namespace

std::vector<ParallelAxis> parallel_axes(const ResultSet& set, const std::vector<std::uint32_t>& rows,
                                        const std::vector<std::size_t>& fields) {
  std::vector<ParallelAxis> axes;
  for (const std::size_t at : fields) {
    const ResultField& field = result_fields()[at];
    if (field.group == FieldGroup::kVerdict) continue;
    const std::vector<double>& values = set.columns[at].values;
    ParallelAxis axis;
    axis.field = at;
    axis.low = std::numeric_limits<double>::infinity();
    axis.high = -axis.low;
    std::set<double> kinds;
    const bool discrete = field.group == FieldGroup::kRecipe;
    for (const std::uint32_t row : rows) {
      if (std::isnan(values[row])) continue;
      axis.low = std::min(axis.low, values[row]);
      axis.high = std::max(axis.high, values[row]);
      if (discrete) kinds.insert(values[row]);
    }
    if (!(axis.low < axis.high)) continue;
    if (discrete) axis.stops.assign(kinds.begin(), kinds.end());
    axes.push_back(std::move(axis));
  }
  return axes;
}

QString why_not_logarithmic(const ResultSet& set, const std::vector<std::uint32_t>& rows, const ParallelAxis& axis) {
  if (!axis.stops.empty()) return QCoreApplication::translate("Results", "its values stand at equal distances");
  if (axis.low < 0.0) return QCoreApplication::translate("Results", "it holds figures below zero");
  if (!(least_above_zero(set, rows, axis) < axis.high))
    return QCoreApplication::translate("Results", "it holds one figure above zero only");
  return {};
}

void set_logarithmic(const ResultSet& set, const std::vector<std::uint32_t>& rows, bool on, ParallelAxis& axis) {
  axis.logarithmic = on && why_not_logarithmic(set, rows, axis).isEmpty();
  axis.least = axis.logarithmic ? least_above_zero(set, rows, axis) : 0.0;
}

double value_at(const ParallelAxis& axis, double place) {
  const double share = axis.flipped ? 1.0 - place : place;
  if (!axis.logarithmic) return axis.low + share * (axis.high - axis.low);
  const double foot = foot_of(axis);
  if (share < foot) return share < foot / 2 ? 0.0 : axis.least;
  return axis.least * std::pow(axis.high / axis.least, (share - foot) / (1.0 - foot));
}

double place_of(const ParallelAxis& axis, double value) {
  double place = 0.5;
  if (!axis.stops.empty()) {
    const auto at = std::ranges::lower_bound(axis.stops, value);
    const auto index = static_cast<double>(at - axis.stops.begin());
    place = axis.stops.size() > 1 ? index / static_cast<double>(axis.stops.size() - 1) : 0.5;
  } else if (axis.logarithmic) {
    const double foot = foot_of(axis);
    place = value <= 0.0 ? 0.0 : foot + (1.0 - foot) * std::log(value / axis.least) / std::log(axis.high / axis.least);
  } else if (axis.high > axis.low) {
    place = (value - axis.low) / (axis.high - axis.low);
  }
  place = std::clamp(place, 0.0, 1.0);
  return axis.flipped ? 1.0 - place : place;
}

FilterTerm brush_between(const ResultSet& set, const ParallelAxis& axis, double from, double to) {
  FilterTerm term;
  term.field = axis.field;
  term.brushed = true;
  const double low = std::min(from, to), high = std::max(from, to);
  if (!axis.stops.empty()) {
    for (const double stop : axis.stops) {
      const double place = place_of(axis, stop);
      if (place < low || place > high) continue;
      if (result_fields()[axis.field].word)
        term.words.append(set.columns[axis.field].vocabulary[static_cast<qsizetype>(stop)]);
      else
        term.values.push_back(stop);
    }
    if (term.values.empty() && term.words.isEmpty()) term.low = std::numeric_limits<double>::infinity();
    return term;
  }
  const double a = value_at(axis, std::clamp(low, 0.0, 1.0)), b = value_at(axis, std::clamp(high, 0.0, 1.0));
  // The ends of an axis are open: rounding must not lose the outermost rows.
  const double least = std::min(a, b), most = std::max(a, b);
  const double slack = axis.logarithmic ? std::max(axis.least * 1e-9, axis.high * 1e-12) : (axis.high - axis.low) * 1e-9;
  if (least > axis.low + slack) term.low = least;
  if (most < axis.high - slack) term.high = most;
  return term;
}

std::pair<double, double> brush_places(const ResultSet& set, const ParallelAxis& axis, const ResultFilter& filter) {
  for (const FilterTerm& term : filter.terms) {
    if (!term.brushed || term.field != axis.field) continue;
    double low = 1.0, high = 0.0;
    const auto cover = [&](double value) {
      const double place = place_of(axis, value);
      low = std::min(low, place);
      high = std::max(high, place);
    };
    for (const double value : term.values) cover(value);
    for (const QString& word : term.words) cover(static_cast<double>(set.columns[axis.field].vocabulary.indexOf(word)));
    if (term.values.empty() && term.words.isEmpty() && term.low <= axis.high) {
      cover(std::max(term.low, axis.low));
      cover(std::min(term.high, axis.high));
    }
    return {low, high};
  }
  return {1.0, 0.0};
}

std::vector<LineBundle> line_bundles(const ResultSet& set, const std::vector<std::uint32_t>& rows, const ParallelAxis& left,
                                     const ParallelAxis& right, const std::vector<float>& color, int resolution) {
  const auto steps = static_cast<std::size_t>(resolution) + 1;
  std::vector<LineBundle> cells(steps * steps);
  const std::vector<double>& at_left = set.columns[left.field].values;
  const std::vector<double>& at_right = set.columns[right.field].values;
  for (const std::uint32_t row : rows) {
    if (std::isnan(at_left[row]) || std::isnan(at_right[row])) continue;
    const auto a = static_cast<std::size_t>(std::lround(place_of(left, at_left[row]) * resolution));
    const auto b = static_cast<std::size_t>(std::lround(place_of(right, at_right[row]) * resolution));
    LineBundle& cell = cells[a * steps + b];
    cell.color = cell.rows == 0 ? color[row] : std::min(cell.color, color[row]);
    ++cell.rows;
  }
  std::vector<LineBundle> bundles;
  for (std::size_t a = 0; a < steps; ++a) {
    for (std::size_t b = 0; b < steps; ++b) {
      LineBundle& cell = cells[a * steps + b];
      if (cell.rows == 0) continue;
      cell.left = static_cast<float>(a) / static_cast<float>(resolution);
      cell.right = static_cast<float>(b) / static_cast<float>(resolution);
      bundles.push_back(cell);
    }
  }
  std::ranges::stable_sort(bundles, [](const LineBundle& a, const LineBundle& b) { return a.color > b.color; });
  return bundles;
}

std::vector<float> color_shares(const ResultSet& set, const std::vector<std::uint32_t>& rows, std::size_t field) {
  const std::vector<double>& values = set.columns[field].values;
  std::vector<float> shares(set.size(), 0.5F);
  double low = std::numeric_limits<double>::infinity(), high = -low;
  for (const std::uint32_t row : rows) {
    if (std::isnan(values[row])) continue;
    low = std::min(low, values[row]);
    high = std::max(high, values[row]);
  }
  const Better better = result_fields()[field].better;
  if (!(low < high) || better == Better::kNeither) return shares;
  for (const std::uint32_t row : rows) {
    if (std::isnan(values[row])) continue;
    const double share = (values[row] - low) / (high - low);
    shares[row] = static_cast<float>(better == Better::kLess ? share : 1.0 - share);
  }
  return shares;
}

}  // namespace cpfit::gui
