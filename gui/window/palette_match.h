// Which commands a few typed letters mean, best first: pure.
#pragma once

#include <QString>
#include <QStringList>
#include <vector>

namespace cpfit::gui {

/// How well `typed` matches `text`, 0 when it does not. Letters must occur in order, case and accents apart; those that begin a
/// word and those that follow each other count more; of equals the shorter text wins.
[[nodiscard]] int match_score(const QString& typed, const QString& text);

/// Indices of the texts that match, best first; all in their own order when nothing is typed.
[[nodiscard]] std::vector<int> best_matches(const QString& typed, const QStringList& texts);

}  // namespace cpfit::gui
