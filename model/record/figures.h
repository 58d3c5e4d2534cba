// A candidate's figures by name, each with its unit at the end of the name, so that two predictions of one recipe are compared
// figure by figure: bit for bit, or by how much they moved.
#pragma once

#include <string>
#include <vector>

#include "model/record/candidate.h"

namespace cpfit {

struct Figure {
  std::string name;  // "step_seconds", "memory.components.weights_bytes"
  double value = 0;
  friend bool operator==(const Figure&, const Figure&) = default;
};

/// Step with its interval, its parts, the ring, memory with its components. Unrounded.
[[nodiscard]] std::vector<Figure> figures_of(const Candidate& candidate);

struct FigureChange {
  std::string name;
  double before = 0, after = 0;
  /// (after - before) / before; infinite where something came out of nothing.
  [[nodiscard]] double relative() const;
  friend bool operator==(const FigureChange&, const FigureChange&) = default;
};

/// Figures that are not the same bit for bit, in the order of `after`. One that only one side has counts as 0 on the other.
[[nodiscard]] std::vector<FigureChange> changed_figures(const std::vector<Figure>& before, const std::vector<Figure>& after);

/// The figure of that name; 0 where there is none.
[[nodiscard]] double figure_named(const std::vector<Figure>& figures, const std::string& name);

}  // namespace cpfit
