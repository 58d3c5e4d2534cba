// The recipe panel: a row per parameter in groups, the equation of the world size, the guard of equal comparison.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "gui/study/live_estimate.h"
#include "gui/study/selection.h"
#include "gui/view/study_view.h"

class QLabel;
class QScrollArea;

namespace cpfit::gui {

class RecipeRow;

class RecipePanel : public StudyView {
  Q_OBJECT
 public:
  RecipePanel(StudyDocument& document, LiveEstimate& live, Selection& selection, QWidget* parent = nullptr);
  [[nodiscard]] QString summary() const override;
  [[nodiscard]] QString csv() const override;
  [[nodiscard]] QString command() const override;
  void paint_on(QPainter& painter) override;
  [[nodiscard]] RecipeRow* row(const std::string& key) const;
  /// Scrolls to a row and puts the focus on its box.
  void go_to(const std::string& key);

 signals:
  void said(const QString& sentence);

 private:
  void build();
  void refresh();
  [[nodiscard]] bool has_row(const std::string& key) const;
  void enter(const std::string& key, const QString& value, int gesture);
  StudyDocument& document_;
  LiveEstimate& live_;
  Selection& selection_;
  QScrollArea* scroll_;
  QWidget* content_;
  QLabel* equation_;
  QLabel* guard_;
  std::map<std::string, RecipeRow*> rows_;
  std::map<std::string, QString> unread_;  // what was typed and could not be read, by row
};

}  // namespace cpfit::gui
