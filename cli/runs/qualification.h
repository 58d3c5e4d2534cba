// Whether a stored recipe still holds: what of its inputs changed since, its recipes evaluated again as things are now, and the
// verdict beside the one that was stored.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/runs/bundle_review.h"
#include "cli/runs/changes.h"
#include "cli/runs/stored_study.h"

namespace cpfit::cli {

enum class Standing : std::uint8_t {
  kCurrent,     // nothing that can change a figure of it has changed
  kHolds,       // stale: something changed, and the verdict holds all the same
  kBroken,      // stale, and the verdict no longer holds
  kUnknown,     // stale, and it cannot be evaluated again
  kUnfinished,  // a run without a verdict
};
[[nodiscard]] std::string_view name_of(Standing standing);  // "current", "holds", "broken", "unknown", "unfinished"

struct Qualification {
  std::string label;
  Standing standing = Standing::kCurrent;
  std::vector<InputChange> changes;
  std::vector<MovedRecipe> rerun;     // every recipe that was evaluated again; figures: those that moved
  std::vector<std::string> broken;    // why the verdict does not hold, or why it cannot be told
  std::vector<std::string> warnings;  // of the calibration: other software, other group shapes
  std::string verdict;                // what was stored, a sentence
};

/// `store`: where calibrations and inputs are looked up. The scenario is taken as its file is now, where that is still there.
[[nodiscard]] Qualification requalify(const StoredStudy& study, const Store& store);

}  // namespace cpfit::cli
