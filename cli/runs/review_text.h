// What a review of a bundle found, for people and for scripts.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "cli/json.h"
#include "cli/runs/bundle_review.h"

namespace cpfit::cli {

[[nodiscard]] std::string review_text(const BundleReview& review);
[[nodiscard]] Json review_json(const BundleReview& review);

/// A figure with its unit: "61.3 GiB", "1.284 s", "37.0 %". Two values that would print alike are printed in full.
[[nodiscard]] std::pair<std::string, std::string> printed_pair(const FigureChange& change);
/// The name without the unit that the value then has: "memory.peak" of "memory.peak_bytes".
[[nodiscard]] std::string figure_label(const std::string& name);

/// "step_seconds +3.1 %, time.compute_seconds +2.0 % and 12 more", those that moved most first; "" for none.
[[nodiscard]] std::string moved_text(std::vector<FigureChange> figures, std::size_t most = 3);
[[nodiscard]] Json moved_json(const std::vector<FigureChange>& figures);

}  // namespace cpfit::cli
