#include "gui/study/selection.h"

namespace cpfit::gui {

void Selection::set(const Selected& selected, const QObject* origin) {
  if (selected == now_) return;
  const Selected before = now_;
  now_ = selected;
  emit changed(before, origin);
}

bool Selection::clear_step(const QObject* origin) {
  if (now_ == Selected{}) return false;
  if (now_.focus) {
    change(origin, [](Selected& s) { s.focus.reset(); });
  } else {
    set({}, origin);
  }
  return true;
}

}  // namespace cpfit::gui
