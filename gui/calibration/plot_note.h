// A sentence in the middle of a plot that has nothing to draw.
#pragma once

#include <QString>

class QCustomPlot;

namespace cpfit::gui {

/// In lines of about 70 characters: a plot's text does not wrap by itself.
void note_in(QCustomPlot& plot, const QString& sentence);

}  // namespace cpfit::gui
