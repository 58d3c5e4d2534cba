// A bundle from elsewhere, verified: its recipe's legality, the place of every rank and all its figures are worked out again from
// its own inputs. With the same cpfit and presets they must come out the same bit for bit; with others it is said what changed
// and by how much.
#pragma once

#include <string>
#include <vector>

#include "model/record/bundle.h"

namespace cpfit::cli {

struct MovedRecipe {
  std::string role, recipe;
  std::string fits_before, fits_now;
  std::vector<FigureChange> figures;
};

struct BundleReview {
  Problems refused;  // empty: it may be stored
  bool same_tool = false;
  std::vector<std::string> changed;  // inputs: "presets/gpus.toml: c0ffee.. then, 1234.. now"
  std::vector<MovedRecipe> moved;    // figures that are not the same; empty: all are, bit for bit
  std::vector<std::string> differs;  // parts beside figures: "topology", "cluster"
  std::int64_t figures = 0;          // that were compared
  std::int64_t cases = 0, known_cases = 0;
  std::vector<std::string> notes;
};

/// `where` names the bundle in problems.
[[nodiscard]] BundleReview review_bundle(const Bundle& bundle, const std::string& where);

}  // namespace cpfit::cli
