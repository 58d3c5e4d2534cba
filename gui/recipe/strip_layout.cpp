#include "gui/recipe/strip_layout.h"

#include <QObject>
#include <algorithm>
#include <cmath>

#include "gui/look/figures.h"

namespace cpfit::gui {

namespace {

/// Beyond this ratio of the slowest to the fastest step heights are logarithmic: else all but one would be stubs.
constexpr double kWideSpread = 20.0;

}  // namespace

std::vector<StripColumn> strip_columns(const QRectF& area, const std::vector<Variation>& variations) {
  std::vector<StripColumn> columns;
  double slowest = 0.0, fastest = 0.0;
  for (const Variation& v : variations) {
    if (!v.legal) continue;
    slowest = std::max(slowest, v.step.value());
    fastest = fastest == 0.0 ? v.step.value() : std::min(fastest, v.step.value());
  }
  const bool wide = fastest > 0.0 && slowest > kWideSpread * fastest;
  const double slot = variations.empty() ? 0.0 : std::min(area.width() / static_cast<double>(variations.size()), 22.0);
  const double least = area.height() / 6.0;
  const double gap = slot > 6.0 ? 2.0 : 1.0;
  for (std::size_t i = 0; i < variations.size(); ++i) {
    StripColumn column;
    column.place = QRectF(area.left() + slot * static_cast<double>(i), area.top(), slot, area.height());
    const double share = !variations[i].legal || slowest <= 0.0 ? 0.0
                         : wide ? 1.0 - std::log(slowest / variations[i].step.value()) / std::log(slowest / fastest)
                                : variations[i].step.value() / slowest;
    const double height = std::max(least, area.height() * share);
    column.bar = QRectF(column.place.left() + gap, area.bottom() - height, slot - 2 * gap, height);
    columns.push_back(column);
  }
  return columns;
}

std::optional<std::size_t> column_at(const std::vector<StripColumn>& columns, double x) {
  if (columns.empty()) return std::nullopt;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    if (x < columns[i].place.right()) return i;
  }
  return columns.size() - 1;
}

std::optional<std::size_t> legal_step(const std::vector<Variation>& variations, int steps) {
  const auto current = std::ranges::find_if(variations, &Variation::current);
  if (current == variations.end()) return std::nullopt;
  std::optional<std::size_t> found;
  const int direction = steps > 0 ? 1 : -1;
  int left = std::abs(steps);
  for (auto at = static_cast<std::ptrdiff_t>(current - variations.begin()) + direction;
       left > 0 && at >= 0 && at < static_cast<std::ptrdiff_t>(variations.size()); at += direction) {
    if (!variations[static_cast<std::size_t>(at)].legal) continue;
    found = static_cast<std::size_t>(at);
    --left;
  }
  return found;
}

std::optional<std::size_t> nearest_legal_column(const std::vector<Variation>& variations, std::size_t aimed) {
  std::optional<std::size_t> best;
  const auto distance = [aimed](std::size_t i) { return i > aimed ? i - aimed : aimed - i; };
  for (std::size_t i = 0; i < variations.size(); ++i) {
    if (variations[i].legal && (!best || distance(i) < distance(*best))) best = i;
  }
  return best;
}

QString variation_text(const QString& label, const Variation& variation, const std::optional<Variation>& current) {
  const QString head = label + QLatin1Char(' ') + text_of(variation.value) + QStringLiteral(": ");
  if (!variation.legal) return head + QObject::tr("not legal: %1").arg(text_of(variation.rule));
  const QString fit = variation.fit == Fit::kFits     ? QObject::tr("fits")
                      : variation.fit == Fit::kAtRisk ? QObject::tr("at risk")
                                                      : QObject::tr("does not fit");
  QString text = head + QObject::tr("%1, %2; step %3").arg(fit, bytes_text(variation.device), time_text(variation.step));
  if (current && current->legal && !variation.current && current->step.value() > 0.0)
    text += QStringLiteral(" (%1)").arg(signed_share(variation.step / current->step - 1.0));
  return text;
}

}  // namespace cpfit::gui
