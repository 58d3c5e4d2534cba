#include "cli/runs/review_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "cli/terminal.h"

namespace cpfit::cli {

namespace {

std::string relative_text(const FigureChange& change) {
  const double relative = change.relative();
  if (!std::isfinite(relative)) return fmt::format("from 0 to {:.4g}", change.after);
  if (std::abs(relative) >= 5e-4) return signed_percent(relative);
  return fmt::format("{}{:.1e}", relative < 0 ? "-" : "+", std::abs(relative));  // a share
}

}  // namespace

std::string moved_text(std::vector<FigureChange> figures, std::size_t most) {
  if (figures.empty()) return "";
  std::ranges::stable_sort(figures, [](const FigureChange& a, const FigureChange& b) {
    // The step and the memory are what people ask for; the rest by how much it moved.
    const auto asked = [](const FigureChange& change) {
      return change.name == "step_seconds" || change.name == "memory.device_bytes";
    };
    if (asked(a) != asked(b)) return asked(a);
    return std::abs(a.relative()) > std::abs(b.relative());
  });
  std::string text;
  for (std::size_t i = 0; i < std::min(most, figures.size()); ++i)
    text += fmt::format("{}{} {}", i == 0 ? "" : ", ", figures[i].name, relative_text(figures[i]));
  if (figures.size() > most) text += fmt::format(" and {} more", figures.size() - most);
  return text;
}

Json moved_json(const std::vector<FigureChange>& figures) {
  Json rows = Json::array();
  for (const FigureChange& change : figures) {
    const double relative = change.relative();
    rows.push_back({{"figure", change.name},
                    {"before", change.before},
                    {"now", change.after},
                    {"relative", std::isfinite(relative) ? Json(relative) : Json(nullptr)}});
  }
  return rows;
}

std::string review_text(const BundleReview& review) {
  std::string text;
  if (review.moved.empty() && review.differs.empty()) {
    text += fmt::format("{} figures were predicted again: equal bit for bit\n", review.figures);
  } else {
    text += fmt::format("{} figures were predicted again:\n", review.figures);
    for (const MovedRecipe& moved : review.moved) {
      const std::string fit =
          moved.fits_before == moved.fits_now ? "" : fmt::format("{} is {} now; ", moved.fits_before, moved.fits_now);
      text += wrapped(fmt::format("  {}: {}{}", moved.role, fit, moved_text(moved.figures)), 4) + "\n";
    }
    for (const std::string& part : review.differs) text += fmt::format("  {}: not the same\n", part);
  }
  for (const std::string& change : review.changed) text += wrapped("changed since: " + change, 2) + "\n";
  if (review.cases > 0)
    text +=
        fmt::format("{} of {} cases of the attention are known here, with these fixtures\n", review.known_cases, review.cases);
  for (const std::string& note : review.notes) text += wrapped("note: " + note, 2) + "\n";
  return text;
}

Json review_json(const BundleReview& review) {
  Json moved = Json::array();
  for (const MovedRecipe& one : review.moved) {
    moved.push_back({{"role", one.role},
                     {"recipe", one.recipe},
                     {"fits_before", one.fits_before},
                     {"fits_now", one.fits_now},
                     {"figures", moved_json(one.figures)}});
  }
  return {{"same_tool", review.same_tool},
          {"changed", review.changed},
          {"figures", review.figures},
          {"equal_bit_for_bit", review.moved.empty() && review.differs.empty()},
          {"moved", moved},
          {"parts_that_differ", review.differs},
          {"cases", review.cases},
          {"known_cases", review.known_cases},
          {"notes", review.notes}};
}

}  // namespace cpfit::cli
