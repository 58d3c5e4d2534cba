#include "gui/calibration/plot_note.h"

#include <qcustomplot.h>

#include "gui/look/color_tokens.h"

namespace cpfit::gui {

namespace {

QString in_lines(const QString& text, int length) {
  QString lines;
  int used = 0;
  for (const QString& word : text.split(QLatin1Char(' '))) {
    if (used > 0 && used + word.size() > length) {
      lines += QLatin1Char('\n');
      used = 0;
    } else if (used > 0) {
      lines += QLatin1Char(' ');
    }
    lines += word;
    used += static_cast<int>(word.size()) + 1;
  }
  return lines;
}

}  // namespace

void note_in(QCustomPlot& plot, const QString& sentence) {
  auto* item = new QCPItemText(&plot);
  item->position->setType(QCPItemPosition::ptAxisRectRatio);
  item->position->setCoords(0.5, 0.5);
  item->setText(in_lines(sentence, 70));
  item->setColor(tokens_for(plot.palette()).muted);
  item->setFont(plot.font());
}

}  // namespace cpfit::gui
