// Where the columns of a sensitivity strip stand and which one a key or a click means: pure.
#pragma once

#include <QRectF>
#include <optional>
#include <vector>

#include "gui/study/estimate.h"

namespace cpfit::gui {

struct StripColumn {
  QRectF place;  // the whole slot, for clicks
  QRectF bar;    // what is drawn: height by step time
};

/// One column per variation over `area`; bars stand on its bottom, the slowest legal one is as high as the area, none lower than
/// a sixth of it; where they differ more than twentyfold, heights are logarithmic. Illegal ones get a bar of that least height.
[[nodiscard]] std::vector<StripColumn> strip_columns(const QRectF& area, const std::vector<Variation>& variations);

/// The column at x; of a drag beyond the ends the outermost.
[[nodiscard]] std::optional<std::size_t> column_at(const std::vector<StripColumn>& columns, double x);

/// The legal value `steps` legal values away from the current one; the outermost when there are fewer.
[[nodiscard]] std::optional<std::size_t> legal_step(const std::vector<Variation>& variations, int steps);
/// The legal column nearest to one a person aimed at.
[[nodiscard]] std::optional<std::size_t> nearest_legal_column(const std::vector<Variation>& variations, std::size_t aimed);

/// "CP 8: fits, 54.2 GiB; step 65.8 s (−4.9 %)" or the rule that forbids it.
[[nodiscard]] QString variation_text(const QString& label, const Variation& variation, const std::optional<Variation>& current);

}  // namespace cpfit::gui
