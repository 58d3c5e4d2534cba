// Hatches: what says the same as a colour to eyes that do not tell the colours apart. Exposed communication "//" dense, recompute
// "\\", idle dotted, an edited what-if dashed outline.
#pragma once

#include <QRectF>

class QColor;
class QPainter;

namespace cpfit::gui {

enum class Hatch { kNone, kExposed, kRecompute, kIdle, kRisk };

/// Whether the hatch inks the device pixel (x, y); for pictures written pixel by pixel. kRisk: wide "//".
[[nodiscard]] bool inks(Hatch hatch, int x, int y);

/// The same hatch as lines inside `area`, sharp at every scale and in PDF and SVG. Phases are those of the painter's origin, so
/// that neighbours join.
void paint_hatch(QPainter& painter, const QRectF& area, Hatch hatch, const QColor& ink);

/// Dashed frame of an edited what-if.
void paint_edited_frame(QPainter& painter, const QRectF& area, const QColor& ink);

}  // namespace cpfit::gui
