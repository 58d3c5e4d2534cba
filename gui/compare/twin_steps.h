// The steps of two recipes one under the other on one time axis: both begin at its left, zoom and pan move both, and a stretch
// dragged in one is summed in both. Simulated beside the window when they are looked at; what was simulated once is kept.
#pragma once

#include <QWidget>
#include <array>
#include <memory>
#include <optional>

#include "gui/compare/comparison.h"
#include "gui/compare/twin_sums.h"
#include "gui/study/live_estimate.h"

class QLabel;
class QTableWidget;

namespace cpfit::gui {

class TimelineView;
struct StepPicture;

class TwinSteps : public QWidget {
  Q_OBJECT
 public:
  TwinSteps(LiveEstimate& live, Jobs& jobs, QWidget* parent = nullptr);
  /// Whose steps; none: there is nothing to compare, `why` says why.
  void show_sides(std::optional<ComparedSide> a, std::optional<ComparedSide> b, const QString& why);
  [[nodiscard]] TimelineView* timeline(int side) const { return sides_[static_cast<std::size_t>(side)].view; }
  [[nodiscard]] QTableWidget* sums() const { return table_; }
  [[nodiscard]] bool is_complete() const;  // both steps are there, and of these sides
  /// The rows of the table; empty while a step is missing.
  [[nodiscard]] std::vector<TwinRow> rows() const;
  [[nodiscard]] QString sentence() const;
  [[nodiscard]] QString csv() const;

 signals:
  void changed();

 protected:
  void showEvent(QShowEvent* event) override;

 private:
  /// A simulated step, and of what.
  struct Drawn {
    Design design;
    std::shared_ptr<const RateSet> rates;
    std::shared_ptr<const StepPicture> picture;
    QString trouble;
    [[nodiscard]] bool is_of(const Design& other, const std::shared_ptr<const RateSet>& other_rates) const;
  };
  struct Side {
    QLabel* title = nullptr;
    TimelineView* view = nullptr;
    std::optional<ComparedSide> of;
    std::shared_ptr<const Drawn> drawn, shown;
  };
  void ask();
  void take(const std::array<std::shared_ptr<const Drawn>, 2>& drawn);
  void draw();
  void refresh_sums();
  [[nodiscard]] static std::shared_ptr<const Drawn> drawn_of(const Design& design, const std::shared_ptr<const RateSet>& rates,
                                                             const std::atomic<bool>& stop);
  [[nodiscard]] std::int32_t rank_of(std::size_t side) const;
  LiveEstimate& live_;
  Jobs& jobs_;
  std::array<Side, 2> sides_;
  QTableWidget* table_;
  QLabel* sentence_;
  QString why_;
  std::size_t dragged_ = 0;  // in which of the two the stretch was chosen
  bool linking_ = false, asked_ = false;
};

}  // namespace cpfit::gui
