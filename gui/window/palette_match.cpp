#include "gui/window/palette_match.h"

#include <algorithm>

namespace cpfit::gui {

int match_score(const QString& typed, const QString& text) {
  const QString needle = typed.simplified().toCaseFolded(), hay = text.toCaseFolded();
  if (needle.isEmpty()) return 1;
  int score = 0, run = 0;
  qsizetype at = 0;
  for (const QChar letter : needle) {
    if (letter == QLatin1Char(' ')) {
      run = 0;
      continue;
    }
    // The beginning of a word is preferred to the next occurrence, unless letters already follow each other.
    qsizetype found = -1;
    if (run > 0 && at < hay.size() && hay[at] == letter) {
      found = at;
    } else {
      for (qsizetype i = at; i < hay.size() && found < 0; ++i) {
        if (hay[i] == letter && (i == 0 || !hay[i - 1].isLetterOrNumber())) found = i;
      }
      if (found < 0) found = hay.indexOf(letter, at);
    }
    if (found < 0) return 0;
    const bool begins = found == 0 || !hay[found - 1].isLetterOrNumber();
    run = found == at && at > 0 ? run + 1 : 1;
    score += 10 + (begins ? 15 : 0) + (run > 1 ? 8 : 0);
    at = found + 1;
  }
  return std::max(1, score * 100 - static_cast<int>(std::min<qsizetype>(99, hay.size())));
}

std::vector<int> best_matches(const QString& typed, const QStringList& texts) {
  std::vector<std::pair<int, int>> scored;
  for (int i = 0; i < texts.size(); ++i) {
    if (const int score = match_score(typed, texts[i]); score > 0) scored.emplace_back(-score, i);
  }
  if (!typed.simplified().isEmpty()) std::ranges::sort(scored);
  std::vector<int> order;
  for (const auto& [score, index] : scored) order.push_back(index);
  return order;
}

}  // namespace cpfit::gui
