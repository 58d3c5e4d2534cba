// The results of a study in one place: which set is looked at, what passes the filter, in which terms the front is drawn. Views
// follow its signals; none keeps its own copy.
#pragma once

#include <QObject>
#include <memory>
#include <optional>
#include <vector>

#include "gui/results/result_filter.h"
#include "gui/study/live_estimate.h"
#include "gui/study/opened_database.h"
#include "gui/study/selection.h"

namespace cpfit::gui {

class ResultBook : public QObject {
  Q_OBJECT
 public:
  ResultBook(StudyDocument& document, LiveEstimate& live, Jobs& jobs, OpenedDatabase& database, Selection& selection,
             QObject* parent = nullptr);

  /// Where results can come from: the live search, a sweep that was started here, then the runs of the open database.
  struct Place {
    QString name;
    std::optional<RunId> run;  // of the database
    bool sweep = false;        // neither: the live search
  };
  [[nodiscard]] const std::vector<Place>& places() const { return places_; }
  [[nodiscard]] std::size_t place() const { return place_; }
  /// A run that is not read yet is read first.
  void go_to(std::size_t place);

  /// What a sweep found so far, in a place of its own which is looked at from the first rows on. `command`: prints the same; may
  /// be empty.
  void show_sweep(std::shared_ptr<const SearchAnswer> answer, const QString& name, const QString& command);

  /// Null until something was found.
  [[nodiscard]] const std::shared_ptr<const ResultSet>& set() const { return set_; }
  [[nodiscard]] bool is_empty() const { return !set_ || set_->size() == 0; }
  [[nodiscard]] const ResultFilter& filter() const { return filter_; }
  [[nodiscard]] const FilteredRows& rows() const { return rows_; }
  void set_filter(const ResultFilter& filter);
  /// Filters that a person keeps, for every study; newest first.
  [[nodiscard]] const std::vector<ResultFilter>& kept_filters() const { return kept_; }
  void set_kept_filters(std::vector<ResultFilter> kept);
  /// The filter as it is now; once.
  void keep_filter();
  void forget_filter(std::size_t number);
  /// Field of the front beside memory: "step" or "tokens".
  [[nodiscard]] std::size_t speed_field() const { return speed_; }
  [[nodiscard]] static std::size_t memory_field();
  void set_speed_field(std::size_t field);

  /// What is chosen: the selection's run A where it is a row of the set.
  [[nodiscard]] std::optional<std::uint32_t> chosen() const;
  [[nodiscard]] std::optional<std::uint32_t> other() const;  // run B
  void choose(std::uint32_t row, const QObject* origin);
  void choose_other(std::uint32_t row, const QObject* origin);
  /// Makes the row's recipe the study's, as one undo step; of another question its scenario as well.
  void take(std::uint32_t row);
  /// Several fields of one row as a tooltip: recipe, figures, verdict.
  [[nodiscard]] QString row_text(std::uint32_t row) const;

 signals:
  void places_changed();
  void kept_changed();
  void set_changed();
  void rows_changed();

 private:
  void refresh_places();
  void make_set();
  void show(std::shared_ptr<const ResultSet> set);
  void refilter();
  StudyDocument& document_;
  LiveEstimate& live_;
  Jobs& jobs_;
  OpenedDatabase& database_;
  Selection& selection_;
  std::vector<Place> places_;
  std::size_t place_ = 0;
  std::shared_ptr<const SearchAnswer> sweep_;
  QString sweep_name_, sweep_command_;
  std::shared_ptr<const ResultSet> set_;
  ResultFilter filter_;
  std::vector<ResultFilter> kept_;
  FilteredRows rows_;
  std::size_t speed_;
};

}  // namespace cpfit::gui
