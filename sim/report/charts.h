// Pictures of a report as inline SVG: nothing but text, no script, colours by class so that the page's theme holds. Every picture
// says in its title what a person who does not see it needs.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "model/record/lane.h"

namespace cpfit::report {

/// What the pictures of one page share (the hatching of exposed communication): once, before the first of them.
[[nodiscard]] std::string shared_definitions();

/// & < > " as entities.
[[nodiscard]] std::string escaped(const std::string& text);

/// Lines over sequence lengths: the length on a logarithmic axis, a mark at every point.
struct LineChart {
  struct Line {
    std::string name;
    std::vector<std::pair<double, double>> points;  // (tokens, value), ascending
  };
  struct Level {
    std::string name;
    double value;
  };
  std::string title, unit;
  std::vector<Line> lines;
  std::vector<Level> levels;  // horizontal: capacity, margin
  double here = 0;            // a length to mark; 0: none
};
/// Empty when no line has a point.
[[nodiscard]] std::string svg_of(const LineChart& chart);

/// Rows of parts that add up: what fills memory, where a step's time goes. Parts of one name have one colour in all rows.
struct PartsChart {
  struct Row {
    std::string name, total;  // the total in words
    std::vector<std::pair<std::string, double>> parts;
  };
  std::string title;
  std::vector<Row> rows;
  double limit = 0;  // a vertical line, in the unit of the parts; 0: none
  std::string limit_name;
};
[[nodiscard]] std::string svg_of(const PartsChart& chart);

/// Lanes of one rank over [from, to): exact occupancy by kind in every column, exposed communication hatched.
[[nodiscard]] std::string svg_of(const std::vector<const SpanLane*>& lanes, std::int64_t from, std::int64_t to,
                                 const std::string& title);

}  // namespace cpfit::report
