#include "gui/study/live_estimate.h"

#include <fmt/format.h>

#include <algorithm>

#include "gui/look/figures.h"
#include "gui/study/recipe_values.h"

namespace cpfit::gui {

namespace {

constexpr int kQuietMs = 30;
constexpr int kPauseMs = 150;
/// Activities up to which a step is simulated without being asked: about half a second.
constexpr std::int64_t kSimulatedUnasked = 600'000;
/// Activities of about 150 bytes each: 2.5 GB.
constexpr std::int64_t kLargestProgram = 16'000'000;
constexpr std::int64_t kShortest = 4096, kLongest = std::int64_t{1} << 20;

[[noreturn]] void refuse(const Problems& problems) { throw Error(to_text(problems.front())); }

Workbench bench_of(const Design& design, const RateSet& rates) {
  Outcome<Workbench> bench = Workbench::build(*design.scenario, rates);
  if (!bench.ok()) refuse(bench.problems());
  return std::move(bench).value();
}

}  // namespace

std::shared_ptr<const SimulatedStep> simulate(const Design& design, std::shared_ptr<const RateSet> rates,
                                              const std::atomic<bool>& stop) {
  Workbench bench = bench_of(design, *rates);
  auto simulated = std::make_shared<SimulatedStep>();
  simulated->design = design;
  const Training& training = design.training();
  if (const Problems broken = explain_violations(bench.legality(training, design.recipe)); !broken.empty()) refuse(broken);
  bench.prepare(design.recipe);
  const std::int64_t size = schedule::estimated_activities(bench.context(training), design.recipe, {});
  if (size > kLargestProgram) {
    throw Error(
        fmt::format("the step would have about {} million activities, more than {} million; a smaller global batch has "
                    "fewer micro-batches, which are all alike",
                    size / 1'000'000, kLargestProgram / 1'000'000));
  }
  Outcome<StepTimeline> ran = step_timeline(bench, training, design.recipe, {.stop = &stop});
  if (!ran.ok()) refuse(ran.problems());
  simulated->now = std::move(ran).value();
  simulated->rates = std::move(rates);
  return simulated;
}

LiveEstimate::LiveEstimate(StudyDocument& document, Jobs& jobs, std::shared_ptr<const RateSet> rates, QObject* parent)
    : QObject(parent), document_(document), jobs_(jobs), defaults_(std::move(rates)), rates_(defaults_), estimator_(defaults_) {
  for (QTimer* timer : {&quiet_, &pause_}) timer->setSingleShot(true);
  idle_.setInterval(0);
  connect(&idle_, &QTimer::timeout, this, &LiveEstimate::vary_next);
  quiet_.setInterval(kQuietMs);
  pause_.setInterval(kPauseMs);
  connect(&quiet_, &QTimer::timeout, this, [this] {
    if (!estimate_.legal()) return;
    const Outcome<Workbench*> bench = estimator_.bench(estimate_.design);
    const std::int64_t size =
        schedule::estimated_activities((*bench)->context(estimate_.design.training()), estimate_.design.recipe, {});
    if (size <= kSimulatedUnasked) {
      simulate_now();
    } else {
      simulation_trouble_ = tr("A step of about %1 activities takes a while: press Ctrl+R to simulate it.").arg(count_text(size));
      emit simulation_changed();
    }
  });
  connect(&pause_, &QTimer::timeout, this, [this] {
    start_search();
    start_sweep();
    start_levers();
  });
  connect(&document_, &StudyDocument::opened_changed, this, [this] {
    simulation_.reset();
    what_if_.reset();
    search_.reset();
    sweep_.reset();
    control_.reset();
    levers_.clear();
    all_levers_.clear();
    variations_.clear();
    for (const char* channel : {"simulate", "picture", "search", "sweep", "levers"}) jobs_.stop_channel(QLatin1String(channel));
    if (!document_.is_open()) {
      quiet_.stop();
      pause_.stop();
      estimate_ = {};
      emit estimate_changed();
    }
    emit search_changed();
    emit sweep_changed();
    emit levers_changed();
    emit simulation_changed();
  });
  connect(&jobs_, &Jobs::ended, this, [this](const QString& channel, JobState state, const QString& sentence) {
    if (channel != QLatin1String("simulate") || state == JobState::kDone) return;
    simulation_trouble_ = state == JobState::kFailed ? sentence : QString();
    emit simulation_changed();
  });
  connect(&document_, &StudyDocument::design_changed, this, &LiveEstimate::react);
  connect(&document_, &StudyDocument::locks_changed, this, [this] {
    levers_ = levers_within(all_levers_, document_.locks());
    emit levers_changed();
  });
  connect(&document_, &StudyDocument::derived_changed, this, [this] {
    if (document_.is_open()) refresh();  // what a value along a row does depends on what follows
  });
}

void LiveEstimate::refresh() {
  const bool comparable = search_ && document_.is_open() && search_->rates == rates_ &&
                          same_question(*search_->scenario, *document_.design().scenario);
  control_ = comparable && search_->plan.has_control ? std::optional(search_->plan.control) : std::nullopt;
  estimate_ = estimator_.estimate(document_.design(), control_);
  emit estimate_changed();
  to_vary_.clear();
  for (const Parameter& parameter : parameters()) {
    if (parameter.strip) to_vary_.emplace_back(parameter.key);
  }
  std::ranges::reverse(to_vary_);
  idle_.start();
}

void LiveEstimate::take_rates() {
  const Design& design = document_.design();
  if (rates_of_.scenario && design.calibration == rates_of_.calibration &&
      (design.scenario == rates_of_.scenario || same_hardware(design.scenario->cluster, rates_of_.scenario->cluster)))
    return;
  const bool defaults_hold = design.calibration == nullptr && rates_ == defaults_;
  rates_of_ = design;
  use_.reset();
  calibration_trouble_.clear();
  if (defaults_hold) return;
  rates_ = defaults_;
  if (design.calibration != nullptr) {
    Outcome<CalibratedRates> calibrated = calibrated_rates(design.calibration->calibration, *design.scenario);
    if (calibrated.ok()) {
      CalibratedRates taken = std::move(calibrated).value();
      use_ = std::move(taken.use);
      rates_ = std::make_shared<const RateSet>(std::move(taken.rates));
    } else {
      calibration_trouble_ = sentence_of(calibrated.problems().front());
    }
  }
  estimator_.set_rates(rates_);
}

void LiveEstimate::set_what_if(std::shared_ptr<const SimulatedStep> step, const QString& words) {
  if (step == what_if_) return;
  what_if_ = std::move(step);
  what_if_words_ = words;
  emit what_if_changed();
}

void LiveEstimate::react() {
  if (!document_.is_open()) return;
  what_if_.reset();
  take_rates();
  simulation_trouble_.clear();
  jobs_.stop_channel(QStringLiteral("simulate"));
  refresh();
  if (!estimate_.legal()) emit simulation_changed();
  quiet_.start();
  pause_.start();
}

const std::vector<Variation>& LiveEstimate::variations(const std::string& key) const {
  static const std::vector<Variation> kNone;
  const auto found = variations_.find(key);
  return found == variations_.end() ? kNone : found->second;
}

void LiveEstimate::vary_next() {
  if (to_vary_.empty() || !document_.is_open()) {
    idle_.stop();
    return;
  }
  const std::string key = std::move(to_vary_.back());
  to_vary_.pop_back();
  variations_[key] = estimator_.vary(document_.design(), key, document_.derived());
  emit variations_changed(text_of(key));
  if (to_vary_.empty()) {
    idle_.stop();
    emit all_variations_changed();
  }
}

bool LiveEstimate::simulation_is_current() const { return simulation_ && same_design(simulation_->design, document_.design()); }
bool LiveEstimate::levers_are_current() const { return same_design(levers_of_, document_.design()); }

const std::optional<Candidate>& LiveEstimate::best() {
  const Locks& locks = document_.locks();
  std::string held = locks_text(locks, document_.design().recipe);
  if (best_.search == search_ && best_.locks == held) return best_.candidate;
  best_ = {search_, std::move(held), std::nullopt};
  if (search_ && locks.empty() && search_->plan.ships) best_.candidate = search_->plan.ship;
  if (search_ && !locks.empty())
    best_.candidate = ship_within(search_->evaluated, search_->scenario->requirements, locks, document_.design().recipe);
  return best_.candidate;
}

bool LiveEstimate::is_busy() const {
  if (quiet_.isActive() || pause_.isActive() || idle_.isActive()) return true;
  for (const char* channel :
       {"simulate", "picture", "search", "sweep", "levers", "database", "candidates", "results", "points", "refit", "twin"}) {
    if (jobs_.is_running(QLatin1String(channel))) return true;
  }
  return false;
}

void LiveEstimate::simulate_now() {
  if (!estimate_.legal()) return;
  const Design design = document_.design();
  jobs_.start(
      QStringLiteral("simulate"), tr("Simulate the step"),
      [design, rates = rates_](const std::atomic<bool>& stop) -> std::any { return simulate(design, rates, stop); },
      [this](const std::any& result) {
        simulation_ = std::any_cast<std::shared_ptr<const SimulatedStep>>(result);
        simulation_trouble_.clear();
        emit simulation_changed();
        return tr("step %1 on the timeline").arg(time_text(simulation_->now.candidate.time.step()));
      });
}

void LiveEstimate::start_search() {
  const Design design = document_.design();
  if (search_ && search_->rates == rates_ && same_question(*search_->scenario, *design.scenario)) return;
  const bool fresh = search_ == nullptr;
  jobs_.start(
      QStringLiteral("search"), tr("Search every recipe of the question"),
      [design, rates = rates_](const std::atomic<bool>& stop) -> std::any {
        PlanOptions options;
        options.crossover = false;
        options.timeline = false;
        options.controls.stop = &stop;
        auto answer = std::make_shared<SearchAnswer>();
        options.controls.sink = [&answer](const std::vector<Candidate>& batch) {
          answer->evaluated.insert(answer->evaluated.end(), batch.begin(), batch.end());
        };
        Outcome<PlanResult> planned = plan(*design.scenario, *rates, options);
        if (!planned.ok()) refuse(planned.problems());
        answer->scenario = design.scenario;
        answer->rates = rates;
        answer->plan = std::move(planned).value();
        return std::shared_ptr<const SearchAnswer>(std::move(answer));
      },
      [this, fresh](const std::any& result) {
        search_ = std::any_cast<std::shared_ptr<const SearchAnswer>>(result);
        const PlanResult& plan = search_->plan;
        if (fresh && plan.ships) document_.start_from(plan.ship.recipe);
        refresh();
        emit search_changed();
        return tr("%1 of %2 recipes are legal; %3")
            .arg(count_text(plan.stats.legal), count_text(plan.stats.considered),
                 plan.ships ? tr("one ships: %1").arg(text_of(to_text(plan.ship.recipe))) : tr("none ships"));
      });
}

void LiveEstimate::start_sweep() {
  const Design design = document_.design();
  // CP does not matter: the sweep goes over it.
  if (sweep_) {
    Recipe a = sweep_->base, b = design.recipe;
    a.cp = b.cp = 1;
    if (a == b && sweep_->rates == rates_ && search_ && same_question(*search_->scenario, *design.scenario) &&
        sweep_->sequence == design.training().sequence.count())
      return;
  }
  jobs_.start(
      QStringLiteral("sweep"), tr("Sweep the sequence length"),
      [design, rates = rates_](const std::atomic<bool>&) -> std::any {
        auto sweep = std::make_shared<Sweep>();
        sweep->base = design.recipe;
        sweep->rates = rates;
        sweep->sequence = design.training().sequence.count();
        sweep->cps = {1, 2, 4, 8, 16, 32};
        if (std::ranges::find(sweep->cps, design.recipe.cp) == sweep->cps.end()) {
          sweep->cps.push_back(design.recipe.cp);
          std::ranges::sort(sweep->cps);
        }
        sweep->lengths = length_ladder(kShortest, std::max(kLongest, sweep->sequence), kShortest, 2);
        if (std::ranges::find(sweep->lengths, sweep->sequence) == sweep->lengths.end()) {
          sweep->lengths.push_back(sweep->sequence);
          std::ranges::sort(sweep->lengths);
        }
        Scenario scenario = *design.scenario;
        scenario.base = design.recipe;
        sweep->points = controlled_sweep(scenario, *rates, design.recipe, sweep->cps, sweep->lengths);
        return std::shared_ptr<const Sweep>(std::move(sweep));
      },
      [this](const std::any& result) {
        sweep_ = std::any_cast<std::shared_ptr<const Sweep>>(result);
        emit sweep_changed();
        return tr("%1 points").arg(sweep_->points.size());
      });
}

void LiveEstimate::start_levers() {
  if (!estimate_.legal()) {
    levers_.clear();
    all_levers_.clear();
    emit levers_changed();
    return;
  }
  const Design design = document_.design();
  if (same_design(levers_of_, design)) return;
  const Candidate candidate = *estimate_.candidate;
  jobs_.start(
      QStringLiteral("levers"), tr("Look for other levers"),
      [design, candidate, rates = rates_](const std::atomic<bool>&) -> std::any {
        Workbench bench = bench_of(design, *rates);
        return rank_levers(bench, design.training(), candidate);
      },
      [this, design](const std::any& result) {
        all_levers_ = std::any_cast<std::vector<Lever>>(result);
        levers_ = levers_within(all_levers_, document_.locks());
        levers_of_ = design;
        emit levers_changed();
        return tr("%1 changes").arg(levers_.size());
      });
}

}  // namespace cpfit::gui
