// QCustomPlot in our tokens and units.
#pragma once

#include <QString>
#include <cstdint>
#include <vector>

class QCPAxis;
class QCustomPlot;
class QPainter;

namespace cpfit::gui {

/// Colours and fonts of the plot's palette: again after every change of theme or scale.
void dress(QCustomPlot& plot);

/// A logarithmic axis over token counts: ticks at powers of two, "128k".
void show_tokens(QCPAxis& axis, std::int64_t shortest, std::int64_t longest);

/// An axis over figures from `low` to `high` with a rim of that share on either side: logarithmic, with ticks at 1, 2 and 5,
/// where they span a decade, else linear from zero at least.
void show_span(QCPAxis& axis, double low, double high, double rim);

/// The plot as vectors on any painter, where it stands in its parent.
void paint_plot(QCustomPlot& plot, QPainter& painter);

}  // namespace cpfit::gui
