// The compare dock: two recipes, every input in which they differ, and the way from one's step time and memory to the other's.
// What is no equal comparison is refused with its reason until a person asks for it all the same, and stays marked then.
#pragma once

#include <optional>

#include "gui/compare/comparison.h"
#include "gui/results/result_book.h"
#include "gui/view/study_view.h"

class QComboBox;
class QLabel;
class QPushButton;
class QTableWidget;
class QTabWidget;

namespace cpfit::gui {

class TwinSteps;
class WaterfallPlot;

/// Whom a side can be.
enum class CompareSource : std::uint8_t { kAutomatic, kBaseline, kCurrent, kControl, kShip, kRowA, kRowB };

class CompareView : public StudyView {
  Q_OBJECT
 public:
  /// `book`: whose chosen rows can be sides.
  CompareView(StudyDocument& document, LiveEstimate& live, Jobs& jobs, ResultBook& book, Selection& selection,
              QWidget* parent = nullptr);
  [[nodiscard]] QString summary() const override;
  [[nodiscard]] QString csv() const override;
  [[nodiscard]] QString command() const override;
  [[nodiscard]] QComboBox* side_a() const { return a_; }
  [[nodiscard]] QComboBox* side_b() const { return b_; }
  [[nodiscard]] QTableWidget* inputs() const { return inputs_; }
  [[nodiscard]] WaterfallPlot* time() const { return time_; }
  [[nodiscard]] WaterfallPlot* memory() const { return memory_; }
  [[nodiscard]] QPushButton* all_the_same() const { return insist_; }
  [[nodiscard]] QTabWidget* tabs() const { return tabs_; }  // what the difference is made of; the two steps
  [[nodiscard]] TwinSteps* twin() const { return twin_; }
  [[nodiscard]] bool is_refused() const { return refused_; }

 private:
  void refresh();
  void show_inputs(const std::vector<InputDifference>& found);
  [[nodiscard]] std::optional<ComparedSide> side(CompareSource source) const;
  [[nodiscard]] std::pair<std::optional<ComparedSide>, std::optional<ComparedSide>> sides() const;
  [[nodiscard]] QString missing_text(CompareSource source) const;
  StudyDocument& document_;
  LiveEstimate& live_;
  ResultBook& book_;
  Selection& selection_;
  QComboBox* a_;
  QComboBox* b_;
  QLabel* headline_;
  QLabel* refusal_;
  QPushButton* insist_;
  QTableWidget* inputs_;
  QLabel* inputs_title_;
  QTabWidget* tabs_;
  TwinSteps* twin_;
  QWidget* pictures_;
  WaterfallPlot* time_;
  WaterfallPlot* memory_;
  bool refused_ = false;
  std::optional<std::pair<Recipe, Recipe>> insisted_;  // the two that a person wants compared all the same
};

}  // namespace cpfit::gui
