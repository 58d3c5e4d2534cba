// How tables of figures look in every view: whole rows chosen one at a time, nothing edited, no grid.
#pragma once

class QTableView;

namespace cpfit::gui {

void make_quiet(QTableView* table);

}  // namespace cpfit::gui
