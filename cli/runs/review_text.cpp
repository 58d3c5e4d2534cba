#include "cli/runs/review_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "cli/terminal.h"
#include "model/quantity/counted.h"
#include "model/quantity/text.h"

namespace cpfit::cli {

namespace {

constexpr std::string_view kFigureUnits[] = {"_bytes", "_seconds", "_share"};  // at the end of figures' names

std::string printed_figure(const std::string& name, double value) {
  if (name.ends_with("_bytes")) return print_bytes(Bytes(value));
  if (name.ends_with("_seconds")) return print_time(Seconds(value));
  if (name.ends_with("_share")) return percent(value);
  return value >= 1000 ? fmt::format("{:.0f}", value) : fmt::format("{:.4g}", value);
}

std::string in_full(const std::string& name, double value) {
  if (name.ends_with("_bytes")) return fmt::format("{:.0f} B", value);
  if (name.ends_with("_seconds")) return fmt::format("{:.9g} s", value);
  return name.ends_with("_share") ? fmt::format("{:.9g} %", value * 100) : fmt::format("{:.9g}", value);
}

std::string relative_text(const FigureChange& change) {
  const double relative = change.relative();
  if (!std::isfinite(relative)) return "from 0 to " + printed_figure(change.name, change.after);
  if (std::abs(relative) >= 5e-4) return signed_percent(relative);
  return fmt::format("{}{:.1e}", relative < 0 ? "-" : "+", std::abs(relative));  // a share
}

}  // namespace

std::pair<std::string, std::string> printed_pair(const FigureChange& change) {
  std::pair<std::string, std::string> both{printed_figure(change.name, change.before), printed_figure(change.name, change.after)};
  if (both.first != both.second || change.before == change.after) return both;
  return {in_full(change.name, change.before), in_full(change.name, change.after)};
}

std::string figure_label(const std::string& name) {
  for (const std::string_view unit : kFigureUnits) {
    if (name.ends_with(unit)) return name.substr(0, name.size() - unit.size());
  }
  return name;
}

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
    text += fmt::format("{} predicted again: equal bit for bit\n", counted(review.figures, "figure"));
  } else {
    text += fmt::format("{} predicted again:\n", counted(review.figures, "figure"));
    for (const MovedRecipe& moved : review.moved) {
      const std::string fit =
          moved.fits_before == moved.fits_now ? "" : fmt::format("{} is {} now; ", moved.fits_before, moved.fits_now);
      text += wrapped(fmt::format("  {}: {}{}", moved.role, fit, moved_text(moved.figures)), 4) + "\n";
    }
    for (const std::string& part : review.differs) text += fmt::format("  {}: not the same\n", part);
  }
  for (const std::string& change : review.changed) text += wrapped("changed since: " + change, 2) + "\n";
  if (review.cases > 0)
    text += fmt::format("{} of {} of the attention known here, with these fixtures\n", review.known_cases,
                        counted(review.cases, "case"));
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
