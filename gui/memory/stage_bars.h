// One bar per pipeline stage, stacked by component, against the device's capacity and the margin kept free. Click or arrow keys
// choose a stage.
#pragma once

#include <QWidget>
#include <array>
#include <vector>

#include "model/memory/ledger.h"

namespace cpfit::gui {

struct StageBar {
  std::int32_t stage = 0;
  std::array<Bytes, kComponentCount> components{};
  Bytes total;
  Fit fit = Fit::kFits;
};

class StageBars : public QWidget {
  Q_OBJECT
 public:
  explicit StageBars(QWidget* parent = nullptr);
  void show_stages(std::vector<StageBar> bars, Bytes capacity, double margin_share, std::int32_t chosen);
  [[nodiscard]] std::int32_t chosen() const { return chosen_; }
  void choose(std::int32_t stage);
  [[nodiscard]] QSize sizeHint() const override;
  [[nodiscard]] QSize minimumSizeHint() const override;

 signals:
  void stage_chosen(std::int32_t stage);
  void component_clicked(std::int32_t stage, int component);

 protected:
  void paintEvent(QPaintEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;
  bool event(QEvent* event) override;

 private:
  struct Hit {
    std::int32_t stage = -1;
    int component = -1;
  };
  [[nodiscard]] QRectF bar_area(std::size_t index) const;
  [[nodiscard]] double scale() const;
  [[nodiscard]] Hit hit(const QPointF& at) const;
  std::vector<StageBar> bars_;
  Bytes capacity_;
  double margin_share_ = 0;
  std::int32_t chosen_ = 0;
};

}  // namespace cpfit::gui
