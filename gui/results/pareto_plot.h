// Speed against peak memory, a mark per recipe: the front as steps, what ships and the control named, what does not fit apart.
// A click chooses, a double click takes the recipe; a drag keeps what lies inside; Ctrl+wheel or W S zoom, Home fits; left and
// right walk along the front.
#pragma once

#include <QWidget>
#include <optional>

#include "gui/results/result_book.h"

class QCustomPlot;
class QMouseEvent;

namespace cpfit::gui {

class ParetoPlot : public QWidget {
  Q_OBJECT
 public:
  ParetoPlot(ResultBook& book, Selection& selection, QWidget* parent = nullptr);
  [[nodiscard]] QCustomPlot* plot() const { return plot_; }
  /// The row whose mark is nearest to a place in the plot, within reach of a pointer.
  [[nodiscard]] std::optional<std::uint32_t> row_at(const QPointF& at) const;
  void fit();

 protected:
  void changeEvent(QEvent* event) override;
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  void redraw();
  void draw_marks();
  void draw_front();
  void draw_named(std::uint32_t row, const QString& name, const QColor& color, int shape);
  void draw_choice();
  void keep_inside(const QRect& area);
  void walk(int by);
  [[nodiscard]] QPointF place_of_row(std::uint32_t row) const;
  ResultBook& book_;
  Selection& selection_;
  QCustomPlot* plot_;
  bool fitted_ = false;
  std::shared_ptr<const ResultSet> drawn_;
};

}  // namespace cpfit::gui
