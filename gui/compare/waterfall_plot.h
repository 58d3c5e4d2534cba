// A waterfall: from one total to another part by part, one row each. Up and down walk the rows; what a row says is announced.
#pragma once

#include <QWidget>
#include <functional>
#include <vector>

#include "gui/compare/comparison.h"

namespace cpfit::gui {

enum class WaterfallUnit : std::uint8_t { kTime, kMemory };

/// Where the axis of a waterfall begins and ends: at zero, or, where the differences would be slivers, close below the lowest
/// level. Whole units; equal to zero only when it begins there.
struct WaterfallAxis {
  std::int64_t low = 0, high = 1;
  [[nodiscard]] bool is_cut() const { return low > 0; }
};
[[nodiscard]] WaterfallAxis waterfall_axis(const std::vector<WaterfallRow>& rows);

class WaterfallPlot : public QWidget {
  Q_OBJECT
 public:
  WaterfallPlot(WaterfallUnit unit, QWidget* parent = nullptr);
  void show_rows(std::vector<WaterfallRow> rows);
  [[nodiscard]] const std::vector<WaterfallRow>& rows() const { return rows_; }
  [[nodiscard]] int current() const { return current_; }
  [[nodiscard]] QString row_text(const WaterfallRow& row) const;
  [[nodiscard]] QSize minimumSizeHint() const override;
  [[nodiscard]] QSize sizeHint() const override;

 protected:
  void paintEvent(QPaintEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;
  bool event(QEvent* event) override;

 private:
  [[nodiscard]] double row_height() const;
  [[nodiscard]] int row_at(double y) const;
  [[nodiscard]] QString value_text(std::int64_t value) const;
  [[nodiscard]] QString change_text(std::int64_t value) const;
  void go_to(int row);
  WaterfallUnit unit_;
  std::vector<WaterfallRow> rows_;
  int current_ = -1;
};

}  // namespace cpfit::gui
