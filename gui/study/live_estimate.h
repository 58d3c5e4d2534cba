// The consequence of every edit: closed form at once, the timeline behind it, and what a search knows of the question. Jobs are
// numbered and the newest wins; a result that came too late is dropped; the last one stays visible meanwhile.
#pragma once

#include <QObject>
#include <QString>
#include <QTimer>
#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gui/study/estimate.h"
#include "gui/study/jobs.h"
#include "gui/study/simulator.h"
#include "gui/study/study_document.h"

namespace cpfit::gui {

/// One step on the timeline. Immutable, shared between views.
struct SimulatedStep {
  Design design;
  std::shared_ptr<const RateSet> rates;  // that it was simulated with
  StepTimeline now;
};

/// What the equal-GPU search says of the question; belongs to a scenario with its training, not to a recipe.
struct SearchAnswer {
  std::shared_ptr<const Scenario> scenario;
  std::shared_ptr<const RateSet> rates;
  PlanResult plan;
  std::vector<Candidate> evaluated;  // every legal recipe, as the search went
};

struct Sweep {
  Recipe base;
  std::shared_ptr<const RateSet> rates;
  std::int64_t sequence = 0;  // of the design it was made for
  std::vector<std::int32_t> cps;
  std::vector<std::int64_t> lengths;
  std::vector<SweepPointOrReason> points;  // (cps, lengths)
};

class LiveEstimate : public QObject {
  Q_OBJECT
 public:
  LiveEstimate(StudyDocument& document, Jobs& jobs, std::shared_ptr<const RateSet> rates, QObject* parent = nullptr);

  [[nodiscard]] const Estimate& now() const { return estimate_; }
  [[nodiscard]] Estimator& estimator() { return estimator_; }
  /// What everything above and below rests on: the defaults, or the chosen calibration's rows over them.
  [[nodiscard]] const std::shared_ptr<const RateSet>& rates() const { return rates_; }
  /// None: the defaults. Its warnings belong beside every figure.
  [[nodiscard]] const std::optional<CalibrationUse>& calibration() const { return use_; }
  /// Why the chosen calibration does not hold for this cluster, so that the defaults do; empty: nothing is wrong.
  [[nodiscard]] const QString& calibration_trouble() const { return calibration_trouble_; }
  /// What the values along a parameter would do; computed while the window is idle, empty until then.
  [[nodiscard]] const std::vector<Variation>& variations(const std::string& key) const;

  /// Null before the first; of an older design while one runs: simulation_is_current().
  [[nodiscard]] const std::shared_ptr<const SimulatedStep>& simulation() const { return simulation_; }
  [[nodiscard]] bool simulation_is_current() const;
  [[nodiscard]] const QString& simulation_trouble() const { return simulation_trouble_; }
  [[nodiscard]] const std::shared_ptr<const SearchAnswer>& search() const { return search_; }
  [[nodiscard]] const std::shared_ptr<const Sweep>& sweep() const { return sweep_; }
  /// Single changes that free memory or hide more, by gain; empty until computed.
  [[nodiscard]] const std::vector<Lever>& levers() const { return levers_; }  // none that turns a locked choice
  /// The recipe that ships by the search's rule among those that keep what is locked; without locks the search's own.
  [[nodiscard]] const std::optional<Candidate>& best();
  [[nodiscard]] bool levers_are_current() const;

  /// The step of this design with something about its cluster changed, as a try that the study does not take over; null: none is
  /// tried. Another design ends it.
  [[nodiscard]] const std::shared_ptr<const SimulatedStep>& what_if() const { return what_if_; }
  [[nodiscard]] const QString& what_if_words() const { return what_if_words_; }  // "2 edited links"
  void set_what_if(std::shared_ptr<const SimulatedStep> step, const QString& words);

  void simulate_now();
  /// Whether anything still runs for the current design.
  [[nodiscard]] bool is_busy() const;

 signals:
  void estimate_changed();    // closed form, at once
  void simulation_changed();  // a new one, a stop, a failure
  void variations_changed(const QString& key);
  void all_variations_changed();  // after the last of them
  void search_changed();
  void sweep_changed();
  void levers_changed();
  void what_if_changed();

 private:
  void react();
  void take_rates();
  void refresh();
  void vary_next();
  void start_search();
  void start_sweep();
  void start_levers();
  [[nodiscard]] const std::optional<Candidate>& control() const { return control_; }

  StudyDocument& document_;
  Jobs& jobs_;
  std::shared_ptr<const RateSet> defaults_, rates_;
  Design rates_of_;  // whose calibration and cluster rates_ are of
  std::optional<CalibrationUse> use_;
  QString calibration_trouble_;
  Estimator estimator_;
  Estimate estimate_;
  std::map<std::string, std::vector<Variation>> variations_;
  std::vector<std::string> to_vary_;  // parameters whose variations are old, last first
  QTimer idle_;
  QTimer quiet_, pause_;  // 30 ms of quiet start the simulation, 150 ms what concerns the question
  std::shared_ptr<const SimulatedStep> simulation_;
  QString simulation_trouble_;
  std::shared_ptr<const SimulatedStep> what_if_;
  QString what_if_words_;
  std::shared_ptr<const SearchAnswer> search_;
  std::shared_ptr<const Sweep> sweep_;
  std::optional<Candidate> control_;
  struct {
    std::shared_ptr<const SearchAnswer> search;
    std::string locks;
    std::optional<Candidate> candidate;
  } best_;  // what best() found last, and of what
  std::vector<Lever> levers_, all_levers_;
  Design levers_of_;
};

/// Simulates a legal design; the body of the job. Throws Error with a sentence where it cannot.
[[nodiscard]] std::shared_ptr<const SimulatedStep> simulate(const Design& design, std::shared_ptr<const RateSet> rates,
                                                            const std::atomic<bool>& stop);

}  // namespace cpfit::gui
