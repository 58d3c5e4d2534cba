// What a review of a bundle found, for people and for scripts.
#pragma once

#include <string>
#include <vector>

#include "cli/json.h"
#include "cli/runs/bundle_review.h"

namespace cpfit::cli {

[[nodiscard]] std::string review_text(const BundleReview& review);
[[nodiscard]] Json review_json(const BundleReview& review);

/// "step_seconds +3.1 %, time.compute_seconds +2.0 % and 12 more", those that moved most first; "" for none.
[[nodiscard]] std::string moved_text(std::vector<FigureChange> figures, std::size_t most = 3);
[[nodiscard]] Json moved_json(const std::vector<FigureChange>& figures);

}  // namespace cpfit::cli
