// Choosing a search and starting it: which values of every axis, where it is stored, how many recipes and how long, progress,
// stop, and going on with an interrupted one. Closing it stops nothing.
#pragma once

#include <QDialog>
#include <QTimer>
#include <map>
#include <memory>
#include <vector>

#include "gui/results/recipe_sweep.h"
#include "gui/results/sweep_space.h"
#include "gui/study/opened_database.h"

class QCheckBox;
class QGridLayout;
class QLabel;
class QLineEdit;
class QProgressBar;
class QPushButton;
class QToolButton;

namespace cpfit::gui {

class SweepDialog : public QDialog {
  Q_OBJECT
 public:
  SweepDialog(StudyDocument& document, LiveEstimate& live, Jobs& jobs, OpenedDatabase& database, RecipeSweep& sweep,
              QWidget* parent = nullptr);

  /// The axes of the open study again, unless a search of it runs.
  void begin();
  [[nodiscard]] const std::vector<SweepAxis>& axes() const { return axes_; }
  /// The button of a value; "" is the one for all legal values. Null when there is none.
  [[nodiscard]] QToolButton* value_button(const std::string& axis, const std::string& value) const;
  [[nodiscard]] QLineEdit* database_field() const { return file_; }
  [[nodiscard]] QCheckBox* closer() const { return closer_; }
  [[nodiscard]] QPushButton* start_button() const { return start_; }
  [[nodiscard]] QPushButton* stop_button() const { return stop_; }
  [[nodiscard]] QLabel* estimate() const { return estimate_; }
  [[nodiscard]] QLabel* sentence() const { return sentence_; }
  /// Whether the estimate is of what is chosen now.
  [[nodiscard]] bool is_estimated() const { return estimated_; }

 protected:
  void changeEvent(QEvent* event) override;

 private:
  void build_axes();
  void show_axes();
  /// As they are searched: chosen here, locked choices held.
  [[nodiscard]] std::vector<SweepAxis> searched_axes() const;
  void press(std::size_t axis, const std::string& value);
  void ask();
  void count();
  void start();
  void refresh();
  [[nodiscard]] SweepRequest request() const;
  [[nodiscard]] QString time_sentence(std::int64_t legal) const;
  StudyDocument& document_;
  LiveEstimate& live_;
  Jobs& jobs_;
  OpenedDatabase& database_;
  RecipeSweep& sweep_;
  std::vector<SweepAxis> axes_;
  std::shared_ptr<const Scenario> of_;     // the scenario that axes_ belong to
  std::shared_ptr<const Scenario> asked_;  // what would be searched; null: it cannot be
  QString trouble_, count_text_, resume_text_;
  bool estimated_ = false, resumes_ = false, any_legal_ = false;
  QTimer quiet_;
  QLabel* question_;
  QLabel* locked_;
  QWidget* table_;
  std::map<std::pair<std::string, std::string>, QToolButton*> buttons_;
  QLineEdit* file_;
  QCheckBox* closer_;
  QLabel* estimate_;
  QLabel* sentence_;
  QProgressBar* bar_;
  QPushButton* start_;
  QPushButton* stop_;
};

}  // namespace cpfit::gui
