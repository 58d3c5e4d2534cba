#include "gui/view/study_view.h"

#include <QPainter>

namespace cpfit::gui {

void StudyView::paint_on(QPainter& painter) { render(&painter, {}, {}, DrawWindowBackground | DrawChildren); }

}  // namespace cpfit::gui
