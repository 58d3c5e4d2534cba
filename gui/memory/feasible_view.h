// Which CP degrees both fit and hide, by sequence length; where none does, the other levers, each a click.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "gui/study/live_estimate.h"
#include "gui/view/study_view.h"

class QLabel;
class QTableWidget;

namespace cpfit::gui {

class FeasibleGrid;

class FeasibleView : public StudyView {
  Q_OBJECT
 public:
  FeasibleView(StudyDocument& document, LiveEstimate& live, QWidget* parent = nullptr);
  [[nodiscard]] QString summary() const override;
  [[nodiscard]] QString csv() const override;
  [[nodiscard]] QString command() const override;
  [[nodiscard]] FeasibleGrid* grid() const { return grid_; }
  [[nodiscard]] QTableWidget* levers() const { return levers_; }

 signals:
  void said(const QString& sentence);

 private:
  void refresh();
  void refresh_levers();
  using Changes = std::vector<std::pair<std::string, std::string>>;  // parameter and value, applied in order as one edit
  void take(const Changes& changes, const QString& what);
  void take_cell(std::int32_t cp, std::int64_t sequence);
  void take_lever(int row);
  StudyDocument& document_;
  LiveEstimate& live_;
  QLabel* headline_;
  FeasibleGrid* grid_;
  QLabel* pointed_;
  QLabel* levers_title_;
  QTableWidget* levers_;
};

}  // namespace cpfit::gui
