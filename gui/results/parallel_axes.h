// The axes of parallel coordinates: which fields vary, where a value lies on its axis, what a brush means, and the lines between
// two axes folded to what a screen can tell apart. Pure.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "gui/results/result_filter.h"

namespace cpfit::gui {

struct ParallelAxis {
  std::size_t field = 0;
  bool flipped = false;
  std::vector<double> stops;  // few distinct values stand at equal distances; empty: a scale from low to high
  double low = 0, high = 1;   // of a scale
  bool logarithmic = false;   // of a scale; see set_logarithmic
  double least = 0;           // of a logarithmic one: the least figure above zero; zero itself stands apart at the foot
  friend bool operator==(const ParallelAxis&, const ParallelAxis&) = default;
};

/// Of `fields` those of which `rows` hold more than one value, in their order. Choices of a recipe become stops, results scales.
[[nodiscard]] std::vector<ParallelAxis> parallel_axes(const ResultSet& set, const std::vector<std::uint32_t>& rows,
                                                      const std::vector<std::size_t>& fields);

/// Why an axis cannot be logarithmic: its stops stand at equal distances, or figures are below zero; empty: it can.
[[nodiscard]] QString why_not_logarithmic(const ResultSet& set, const std::vector<std::uint32_t>& rows, const ParallelAxis& axis);
/// Equal factors at equal distances, where that can be.
void set_logarithmic(const ResultSet& set, const std::vector<std::uint32_t>& rows, bool on, ParallelAxis& axis);

/// 0 at the foot, 1 at the head.
[[nodiscard]] double place_of(const ParallelAxis& axis, double value);
/// The figure at a place of a scale.
[[nodiscard]] double value_at(const ParallelAxis& axis, double place);

/// The term that keeps what lies between two places of the axis, in either order; stops within it as values. Nothing between two
/// stops is a term that nothing passes.
[[nodiscard]] FilterTerm brush_between(const ResultSet& set, const ParallelAxis& axis, double from, double to);
/// Where a brush of the axis' field lies; first > second: there is none.
[[nodiscard]] std::pair<double, double> brush_places(const ResultSet& set, const ParallelAxis& axis, const ResultFilter& filter);

/// A bundle of lines between two axes that no eye tells apart, with the best colour of its rows.
struct LineBundle {
  float left = 0, right = 0;  // places
  float color = 0;            // 0 best, 1 worst
  std::uint32_t rows = 0;
};
/// Places are told apart in steps of 1/`resolution`. `color`: figure per row of the set, 0 to 1. Worst first, so that the best
/// are painted on top.
[[nodiscard]] std::vector<LineBundle> line_bundles(const ResultSet& set, const std::vector<std::uint32_t>& rows,
                                                   const ParallelAxis& left, const ParallelAxis& right,
                                                   const std::vector<float>& color, int resolution);

/// 0 for the best figure of `rows` in a field, 1 for the worst; 0.5 where all are equal or neither end is better.
[[nodiscard]] std::vector<float> color_shares(const ResultSet& set, const std::vector<std::uint32_t>& rows, std::size_t field);

}  // namespace cpfit::gui
