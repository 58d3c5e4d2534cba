#include "gui/results/result_book.h"

#include <QFileInfo>

#include "gui/look/figures.h"

namespace cpfit::gui {

ResultBook::ResultBook(StudyDocument& document, LiveEstimate& live, Jobs& jobs, OpenedDatabase& database, Selection& selection,
                       QObject* parent)
    : QObject(parent),
      document_(document),
      live_(live),
      jobs_(jobs),
      database_(database),
      selection_(selection),
      speed_(field_named("step")) {
  refresh_places();
  connect(&live_, &LiveEstimate::search_changed, this, [this] {
    if (!places_[place_].run && !places_[place_].sweep) make_set();
  });
  connect(&database_, &OpenedDatabase::content_changed, this, [this] {
    refresh_places();
    if (places_[place_].run || !set_) make_set();
  });
  connect(&database_, &OpenedDatabase::run_changed, this, [this] {
    if (database_.run()) {
      for (std::size_t i = 0; i < places_.size(); ++i) {
        if (places_[i].run != database_.run()->summary.run) continue;
        place_ = i;
        emit places_changed();
      }
    }
    make_set();
  });
}

std::size_t ResultBook::memory_field() { return field_named("memory"); }

void ResultBook::refresh_places() {
  const std::int64_t kept = places_.empty() || !places_[place_].run ? -1 : static_cast<std::int64_t>(*places_[place_].run);
  const bool kept_sweep = !places_.empty() && places_[place_].sweep;
  places_ = {{tr("Search of this study"), std::nullopt, false}};
  if (sweep_) places_.push_back({sweep_name_, std::nullopt, true});
  place_ = kept_sweep ? 1 : 0;
  if (database_.content()) {
    const QString file = QFileInfo(database_.content()->path).fileName();
    for (const RunSummary& run : database_.content()->runs) {
      if (kept == static_cast<std::int64_t>(run.run)) place_ = places_.size();
      places_.push_back({tr("Run %1 of %2: %3, %4 recipes")
                             .arg(static_cast<qint64>(run.run))
                             .arg(file, text_of(run.scenario_name), count_text(run.stored_candidates)),
                         run.run, false});
    }
  }
  emit places_changed();
}

void ResultBook::show_sweep(std::shared_ptr<const SearchAnswer> answer, const QString& name, const QString& command) {
  const bool first = !sweep_ || sweep_name_ != name;
  sweep_ = std::move(answer);
  sweep_name_ = name;
  sweep_command_ = command;
  if (first) {
    refresh_places();
    place_ = 1;
    emit places_changed();
  }
  if (places_[place_].sweep) make_set();
}

void ResultBook::go_to(std::size_t place) {
  if (place >= places_.size() || place == place_) return;
  place_ = place;
  emit places_changed();
  const std::optional<RunId> run = places_[place].run;
  if (run && !(database_.run() && database_.run()->summary.run == *run)) {
    show(nullptr);
    database_.load_run(*run);
  } else {
    make_set();
  }
}

void ResultBook::make_set() {
  const std::optional<RunId> run = places_[place_].run;
  const bool sweep = places_[place_].sweep;
  const std::shared_ptr<const SearchAnswer> search = sweep ? sweep_ : live_.search();
  const std::shared_ptr<const StoredRun> stored = database_.run();
  if (run ? !stored || stored->summary.run != *run : !search) {
    jobs_.stop_channel(QStringLiteral("results"));
    show(nullptr);
    return;
  }
  const QString name = places_[place_].name;
  const QString command =
      run     ? QStringLiteral("cpfit runs show %1 --db \"%2\"").arg(static_cast<qint64>(*run)).arg(stored->database)
      : sweep ? sweep_command_
              : QStringLiteral("cpfit plan \"%1\" --top 1000%2").arg(document_.path(), calibration_option(document_.design()));
  jobs_.start(
      QStringLiteral("results"), tr("Lay out %1").arg(name),
      [run, search, stored, name, command](const std::atomic<bool>&) -> std::any {
        if (!run) return result_set(name, command, search->scenario, search->evaluated, search->plan);
        return result_set(name, command, stored->scenario, stored->candidates, stored->plan);
      },
      [this](const std::any& result) {
        show(std::any_cast<std::shared_ptr<const ResultSet>>(result));
        return tr("%1 recipes").arg(count_text(static_cast<std::int64_t>(set_->size())));
      });
}

void ResultBook::show(std::shared_ptr<const ResultSet> set) {
  // What was chosen is found again by its recipe.
  std::optional<Recipe> a, b;
  if (const auto row = chosen()) a = set_->candidates[*row].recipe;
  if (const auto row = other()) b = set_->candidates[*row].recipe;
  set_ = std::move(set);
  const auto again = [this](const std::optional<Recipe>& recipe) -> std::optional<std::int64_t> {
    if (!recipe || !set_) return std::nullopt;
    const auto found = std::ranges::find(set_->candidates, *recipe, &Candidate::recipe);
    if (found == set_->candidates.end()) return std::nullopt;
    return found - set_->candidates.begin();
  };
  selection_.change(this, [&](Selected& selected) {
    selected.run_a = again(a);
    selected.run_b = again(b);
  });
  rows_ = {};
  if (set_) rows_ = filtered(*set_, filter_, memory_field(), speed_);
  emit set_changed();
  emit rows_changed();
}

void ResultBook::refilter() {
  if (set_) rows_ = filtered(*set_, filter_, memory_field(), speed_);
  emit rows_changed();
}

void ResultBook::set_filter(const ResultFilter& filter) {
  if (filter == filter_) return;
  filter_ = filter;
  refilter();
}

void ResultBook::set_kept_filters(std::vector<ResultFilter> kept) {
  kept_ = std::move(kept);
  emit kept_changed();
}

void ResultBook::keep_filter() {
  ResultFilter filter = filter_;
  for (FilterTerm& term : filter.terms) term.brushed = false;
  std::erase(kept_, filter);
  kept_.insert(kept_.begin(), std::move(filter));
  emit kept_changed();
}

void ResultBook::forget_filter(std::size_t number) {
  if (number >= kept_.size()) return;
  kept_.erase(kept_.begin() + static_cast<std::ptrdiff_t>(number));
  emit kept_changed();
}

void ResultBook::set_speed_field(std::size_t field) {
  if (field == speed_) return;
  speed_ = field;
  refilter();
}

std::optional<std::uint32_t> ResultBook::chosen() const {
  const std::optional<std::int64_t>& run = selection_.now().run_a;
  if (!set_ || !run || *run < 0 || static_cast<std::size_t>(*run) >= set_->size()) return std::nullopt;
  return static_cast<std::uint32_t>(*run);
}

std::optional<std::uint32_t> ResultBook::other() const {
  const std::optional<std::int64_t>& run = selection_.now().run_b;
  if (!set_ || !run || *run < 0 || static_cast<std::size_t>(*run) >= set_->size()) return std::nullopt;
  return static_cast<std::uint32_t>(*run);
}

void ResultBook::choose(std::uint32_t row, const QObject* origin) {
  selection_.change(origin, [row](Selected& selected) { selected.run_a = row; });
}

void ResultBook::choose_other(std::uint32_t row, const QObject* origin) {
  selection_.change(origin, [row](Selected& selected) {
    selected.run_b = selected.run_b == std::optional<std::int64_t>(row) ? std::nullopt : std::optional<std::int64_t>(row);
  });
}

void ResultBook::take(std::uint32_t row) {
  if (!set_ || row >= set_->size() || !document_.is_open()) return;
  Design design = document_.design();
  if (!same_question(*design.scenario, *set_->scenario)) design.scenario = set_->scenario;
  design.recipe = set_->candidates[row].recipe;
  document_.set_design(design, tr("Recipe %1 of the results").arg(text_of(to_text(design.recipe))));
}

QString ResultBook::row_text(std::uint32_t row) const {
  if (!set_ || row >= set_->size()) return {};
  const Candidate& c = set_->candidates[row];
  QString text = tr("%1\n%2: %3\nstep %4, %5 tokens/s per GPU, %6 of %7, CP exposed %8, MFU %9")
                     .arg(text_of(to_text(c.recipe)), name_of(set_->verdicts[row]), reason_of(*set_, row),
                          time_text(c.time.step()), three_digits(c.tokens_per_second_per_gpu), bytes_text(c.memory.device),
                          bytes_text(c.verdict.capacity), share_text(exposed_cp_share(c)))
                     .arg(share_text(c.mfu));
  const std::vector<double>& x = set_->columns[memory_field()].values;
  const std::vector<double>& y = set_->columns[speed_].values;
  const std::uint32_t by = dominator_of(row, rows_.front, x, Better::kLess, y, result_fields()[speed_].better);
  if (by != row && c.verdict.fit == Fit::kFits) {
    const Candidate& d = set_->candidates[by];
    text += QLatin1Char('\n') + tr("beaten by %1: %2 and %3")
                                    .arg(text_of(to_text(d.recipe)), signed_time(d.time.step() - c.time.step()),
                                         signed_bytes(d.memory.device - c.memory.device));
  }
  return text;
}

}  // namespace cpfit::gui
