// Parallel coordinates: an axis per field that varies, a line per recipe, coloured by a result. Drag along an axis keeps what
// passes there, several axes combine; a click on an axis takes its brush away; drag a title to reorder, double-click it to flip;
// L or the menu of an axis makes it logarithmic.
#pragma once

#include <QStringList>
#include <QWidget>
#include <memory>
#include <optional>
#include <vector>

#include "gui/results/parallel_axes.h"
#include "gui/results/result_book.h"

class QMenu;

namespace cpfit::gui {

class ParallelPlot : public QWidget {
  Q_OBJECT
 public:
  ParallelPlot(ResultBook& book, Selection& selection, QWidget* parent = nullptr);
  [[nodiscard]] QSize minimumSizeHint() const override { return {260, 150}; }
  [[nodiscard]] QSize sizeHint() const override { return {620, 280}; }
  [[nodiscard]] const std::vector<ParallelAxis>& axes() const { return axes_; }
  /// Where an axis stands, in the widget.
  [[nodiscard]] double axis_x(std::size_t index) const;
  [[nodiscard]] double place_y(double place) const;
  [[nodiscard]] std::size_t color_field() const { return color_; }
  void set_color_field(std::size_t field);
  /// The fields that have an axis where they vary: those the table shows.
  void set_fields(std::vector<std::size_t> fields);
  [[nodiscard]] std::size_t focused_axis() const { return focus_; }
  /// Fields whose axis is logarithmic where it can be, by key; stay through every new search.
  [[nodiscard]] QStringList logarithmic_fields() const;
  void set_logarithmic_fields(const QStringList& keys);
  /// What can be done with an axis.
  [[nodiscard]] std::unique_ptr<QMenu> menu_of(std::size_t axis);

 signals:
  void said(const QString& sentence);

 protected:
  void paintEvent(QPaintEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;
  void mouseMoveEvent(QMouseEvent* event) override;
  void mouseReleaseEvent(QMouseEvent* event) override;
  void mouseDoubleClickEvent(QMouseEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;
  void contextMenuEvent(QContextMenuEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;
  void changeEvent(QEvent* event) override;
  bool event(QEvent* event) override;

 private:
  void lay_out();
  void refold();
  void brush(std::size_t axis, double from, double to);
  void announce_axis();
  void flip(std::size_t axis);
  void toggle_logarithmic(std::size_t axis);
  void keep_all(std::size_t axis);
  [[nodiscard]] QRectF plot_area() const;
  [[nodiscard]] double axis_distance() const;  // pixels
  void measure_titles();                       // whenever the axes, the width or the font are others
  [[nodiscard]] QFont title_font() const;
  [[nodiscard]] double share_at(double y) const;
  [[nodiscard]] std::optional<std::size_t> axis_at(double x) const;
  void paint_lines(QPainter& painter) const;
  void paint_axes(QPainter& painter) const;
  void paint_axis(QPainter& painter, std::size_t index) const;
  void paint_chosen(QPainter& painter, std::uint32_t row, const QColor& color, Qt::PenStyle style) const;
  void paint_foot(QPainter& painter) const;

  ResultBook& book_;
  Selection& selection_;
  std::vector<ParallelAxis> axes_;
  std::vector<std::size_t> ranks_;  // fields in the order a person put them; others follow
  std::vector<std::size_t> flipped_, logarithmic_, fields_;
  std::vector<std::vector<LineBundle>> behind_, front_;  // (axes - 1)
  std::size_t color_;
  std::size_t focus_ = 0;
  bool was_brushed_ = false;
  bool titles_take_turns_ = false;  // too wide for the distance of two axes, they stand on two lines in turn
  enum class Drag { kNone, kBrush, kTitle } drag_ = Drag::kNone;
  std::size_t dragged_ = 0;
  QPointF pressed_, now_;
};

}  // namespace cpfit::gui
