#include "model/quantity/problem.h"

#include <algorithm>
#include <numeric>

namespace cpfit {

std::string to_text(const Problem& problem) {
  std::string text;
  if (!problem.where.empty()) text += problem.where + ": ";
  text += problem.message;
  if (!problem.repair.empty()) text += " — " + problem.repair;
  return text;
}

namespace {

std::string lower_case(std::string text) {
  for (char& c : text) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return text;
}

/// Letters to insert, delete, replace or swap with their neighbour (optimal string alignment), O(n*m) with three rows.
std::size_t edit_distance(const std::string& a, const std::string& b) {
  std::vector<std::size_t> before(b.size() + 1), above(b.size() + 1), row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    before.swap(above);
    above.swap(row);
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({row[j - 1] + 1, above[j] + 1, above[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) row[j] = std::min(row[j], before[j - 2] + 1);
    }
  }
  return row[b.size()];
}

}  // namespace

std::string nearest_name(const std::string& word, const std::vector<std::string>& candidates) {
  const std::string wanted = lower_case(word);
  std::string best;
  std::size_t best_distance = (wanted.size() + 2) / 3 + 1;  // a third of the letters, rounded up, may be wrong
  for (const std::string& candidate : candidates) {
    const std::size_t distance = edit_distance(wanted, lower_case(candidate));
    if (distance < best_distance && distance < std::max(wanted.size(), candidate.size())) {
      best_distance = distance;
      best = candidate;
    }
  }
  if (!best.empty() || wanted.size() < 3) return best;
  // "h100" is far from "h100-sxm-80gb" in letters, yet plainly meant: the shortest name that contains the word.
  for (const std::string& candidate : candidates) {
    const bool contains = lower_case(candidate).find(wanted) != std::string::npos;
    if (contains && (best.empty() || candidate.size() < best.size())) best = candidate;
  }
  return best;
}

}  // namespace cpfit
