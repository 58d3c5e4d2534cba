#include "gui/results/result_set.h"

#include <QCoreApplication>
#include <QLocale>
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "gui/look/figures.h"
#include "model/quantity/percent.h"

namespace cpfit::gui {

namespace {

using enum FieldGroup;
constexpr double kPercent = 100.0;

constexpr std::array kFields = {
    ResultField{"verdict", "Verdict", "", kVerdict, true, true, Better::kLess, "ship, control, or why a recipe was not chosen"},
    ResultField{"cp", "CP", "", kRecipe, false, true, Better::kNeither, "GPUs that share one sequence"},
    ResultField{"tp", "TP", "", kRecipe, false, true, Better::kNeither, "GPUs that share each layer's matrices"},
    ResultField{"pp", "PP", "", kRecipe, false, true, Better::kNeither, "stages of layers"},
    ResultField{"dp", "DP", "", kRecipe, false, true, Better::kNeither, "replicas with their own sequences"},
    ResultField{"cp_comm", "Exchange", "", kRecipe, true, true, Better::kNeither,
                "how ranks of a context group meet each other's keys and values"},
    ResultField{"a2a_degree", "Inner a2a", "", kRecipe, false, false, Better::kNeither, "ranks of the inner head exchange"},
    ResultField{"shard_layout", "Sharding", "", kRecipe, true, false, Better::kNeither, "how a sequence is cut over CP"},
    ResultField{"recompute", "Recompute", "", kRecipe, true, true, Better::kNeither,
                "activations that are computed again instead of kept"},
    ResultField{"micro_batch", "Micro-batch", "", kRecipe, false, true, Better::kNeither,
                "sequences per micro-batch and replica"},
    ResultField{"vpp", "Chunks", "", kRecipe, false, false, Better::kNeither, "model chunks on each stage"},
    ResultField{"state_sharding", "State", "", kRecipe, true, false, Better::kNeither,
                "how the training state is shared, / by how many ranks where not by all"},
    ResultField{"precision", "Precision", "", kRecipe, true, false, Better::kNeither, "number format of matrix products"},
    ResultField{"step", "Step", "s", kResult, false, true, Better::kLess, "time of one optimizer step"},
    ResultField{"step_high", "Step, upper", "s", kResult, false, false, Better::kLess, "upper end of the 90 % interval"},
    ResultField{"tokens", "Tokens", "1/s/GPU", kResult, false, true, Better::kMore, "tokens per second and GPU"},
    ResultField{"memory", "Memory", "GiB", kResult, false, true, Better::kLess, "peak of the worst stage, all a device holds"},
    ResultField{"margin", "Free", "GiB", kResult, false, false, Better::kMore, "capacity minus the upper bound"},
    ResultField{"exposed", "Exposed CP", "%", kResult, false, true, Better::kLess, "CP exchange that nothing hides, of the step"},
    ResultField{"exposed_all", "Exposed", "%", kResult, false, false, Better::kLess,
                "all exchanges that nothing hides, of the step"},
    ResultField{"bubble", "Bubble", "%", kResult, false, false, Better::kLess, "pipeline bubble, of the step"},
    ResultField{"mfu", "MFU", "%", kResult, false, true, Better::kMore, "model FLOPs utilisation, attention causal half"},
    ResultField{"hfu", "HFU", "%", kResult, false, false, Better::kMore, "with what is recomputed"},
    ResultField{"sigma", "Uncertainty", "%", kResult, false, false, Better::kLess, "one standard deviation of the step time"},
};

/// "zero3", "zero3 / 8" where groups of 8 ranks hold all states.
QString states_of(const Recipe& recipe) {
  const QString kind = text_of(name_of(recipe.state_sharding));
  return shard_replicas(recipe) > 1 ? QStringLiteral("%1 / %2").arg(kind).arg(recipe.state_shards) : kind;
}

/// Figures of one candidate in the order of kFields; words through `word`.
template <class Word>
std::array<double, kFields.size()> figures(const Candidate& c, RowVerdict verdict, Word word) {
  const Recipe& r = c.recipe;
  const double step = c.time.step().value();
  const auto share = [step](Seconds part) { return step > 0.0 ? part.value() / step * kPercent : 0.0; };
  const Seconds exposed = c.time.exposed_cp + c.time.exposed_tp + c.time.exposed_pp + c.time.exposed_dp;
  return {static_cast<double>(verdict),
          static_cast<double>(r.cp),
          static_cast<double>(r.tp),
          static_cast<double>(r.pp),
          static_cast<double>(r.dp),
          word(5, text_of(r.cp > 1 ? name_of(r.cp_comm) : std::string_view("none"))),
          r.cp > 1 ? static_cast<double>(a2a_ranks(r)) : 1.0,
          word(7, text_of(r.cp > 1 ? name_of(r.shard_layout) : std::string_view("none"))),
          word(8, text_of(to_text(r.recompute))),
          static_cast<double>(r.micro_batch),
          static_cast<double>(r.vpp),
          word(11, states_of(r)),
          word(12, text_of(name_of(r.precision))),
          step,
          c.step_high.value(),
          c.tokens_per_second_per_gpu,
          c.memory.device.value() / kGiB,
          c.verdict.margin.value() / kGiB,
          share(c.time.exposed_cp),
          share(exposed),
          share(c.time.bubble),
          c.mfu * kPercent,
          c.hfu * kPercent,
          static_cast<double>(c.relative_sigma) * kPercent};
}

RowVerdict verdict_of(const Candidate& candidate, const Requirements& requirements) {
  const Verdict verdict = judge_candidate(candidate, requirements);
  if (verdict.feasible()) return RowVerdict::kOk;
  if (verdict.rule == "memory") return candidate.verdict.fit == Fit::kOom ? RowVerdict::kTooMuch : RowVerdict::kAtRisk;
  return verdict.rule == "exposed_cp" ? RowVerdict::kExposed : RowVerdict::kSlow;
}

/// Words in a person's order: sorted by text, numbers in them by size ("block-2" before "block-10").
void sort_words(ResultColumn& column) {
  QStringList sorted = column.vocabulary;
  const auto number_in = [](const QString& word) { return word.section(QLatin1Char('-'), 1).toInt(); };
  std::ranges::sort(sorted, [&](const QString& a, const QString& b) {
    const QString sa = a.section(QLatin1Char('-'), 0, 0), sb = b.section(QLatin1Char('-'), 0, 0);
    return sa != sb ? sa < sb : number_in(a) < number_in(b);
  });
  // "none" stands first: it is the least of everything.
  if (const qsizetype none = sorted.indexOf(QStringLiteral("none")); none > 0) sorted.move(none, 0);
  std::vector<double> place(static_cast<std::size_t>(sorted.size()));
  for (qsizetype i = 0; i < column.vocabulary.size(); ++i)
    place[static_cast<std::size_t>(i)] = static_cast<double>(sorted.indexOf(column.vocabulary[i]));
  for (double& value : column.values) value = place[static_cast<std::size_t>(value)];
  column.vocabulary = sorted;
}

}  // namespace

std::span<const ResultField> result_fields() { return kFields; }

std::size_t field_named(std::string_view key) {
  std::size_t begins = kNoField;
  bool several = false;
  for (std::size_t i = 0; i < kFields.size(); ++i) {
    if (kFields[i].key == key) return i;
    if (key.empty() || !kFields[i].key.starts_with(key)) continue;
    several = begins != kNoField;
    begins = i;
  }
  return several ? kNoField : begins;
}

QString name_of(RowVerdict verdict) {
  static constexpr std::array kNames = {"ship", "control", "ok", "exposed", "slow", "at risk", "does not fit"};
  return QLatin1String(kNames[static_cast<std::size_t>(verdict)]);
}

std::shared_ptr<const ResultSet> result_set(QString name, QString command, std::shared_ptr<const Scenario> scenario,
                                            std::vector<Candidate> candidates, const PlanResult& plan) {
  auto set = std::make_shared<ResultSet>();
  set->name = std::move(name);
  set->command = std::move(command);
  set->scenario = std::move(scenario);
  set->candidates = std::move(candidates);
  set->stats = plan.stats;
  const std::size_t rows = set->candidates.size();
  set->verdicts.reserve(rows);
  set->columns.resize(kFields.size());
  for (ResultColumn& column : set->columns) column.values.reserve(rows);
  std::array<std::map<QString, std::size_t>, kFields.size()> words;
  const auto word = [&](std::size_t field, const QString& text) {
    const auto [at, added] = words[field].try_emplace(text, words[field].size());
    if (added) set->columns[field].vocabulary.append(text);
    return static_cast<double>(at->second);
  };
  for (std::size_t row = 0; row < rows; ++row) {
    const Candidate& candidate = set->candidates[row];
    RowVerdict verdict = verdict_of(candidate, set->scenario->requirements);
    if (plan.has_control && !set->control && candidate.recipe == plan.control.recipe) {
      verdict = RowVerdict::kControl;
      set->control = static_cast<std::uint32_t>(row);
    }
    if (plan.ships && !set->ship && candidate.recipe == plan.ship.recipe) {
      verdict = RowVerdict::kShip;
      set->ship = static_cast<std::uint32_t>(row);
    }
    set->verdicts.push_back(verdict);
    const auto all = figures(candidate, verdict, word);
    for (std::size_t field = 0; field < kFields.size(); ++field) set->columns[field].values.push_back(all[field]);
  }
  for (std::size_t field = 0; field < kFields.size(); ++field) {
    ResultColumn& column = set->columns[field];
    if (kFields[field].key == "verdict") {
      for (int v = 0; v <= static_cast<int>(RowVerdict::kTooMuch); ++v)
        column.vocabulary.append(name_of(static_cast<RowVerdict>(v)));
    } else if (kFields[field].word) {
      sort_words(column);
    }
    column.low = std::numeric_limits<double>::infinity();
    column.high = -column.low;
    for (const double value : column.values) {
      if (std::isnan(value)) continue;
      column.low = std::min(column.low, value);
      column.high = std::max(column.high, value);
    }
  }
  return set;
}

QString policy_of(const ResultSet& set, std::uint32_t row) {
  if (!set.control || row == *set.control) return {};
  const Candidate& control = set.candidates[*set.control];
  const Candidate& candidate = set.candidates[row];
  if (control.verdict.fit == Fit::kFits || candidate.verdict.fit != Fit::kFits) return {};
  QStringList fields;
  for (const std::string& field : differences(candidate.recipe, control.recipe)) {
    if (is_policy_field(field)) fields.append(text_of(field));
  }
  return fields.join(QStringLiteral(", "));
}

QString reason_of(const ResultSet& set, std::uint32_t row) {
  const Candidate& candidate = set.candidates[row];
  QString text;
  switch (set.verdicts[row]) {
    case RowVerdict::kShip:
      text = QCoreApplication::translate("Results", "the smallest CP degree that fits, hides and keeps pace");
      break;
    case RowVerdict::kControl:
      text = QCoreApplication::translate("Results", "the best recipe without CP, to compare with");
      if (candidate.verdict.fit != Fit::kFits)
        text += QStringLiteral("; ") + text_of(judge_candidate(candidate, set.scenario->requirements).sentence);
      break;
    case RowVerdict::kOk:
      text = QCoreApplication::translate("Results", "fits and hides; the one that ships was preferred");
      if (!set.ship) text = QCoreApplication::translate("Results", "fits and hides");
      break;
    default:
      text = text_of(judge_candidate(candidate, set.scenario->requirements).sentence);
  }
  if (const QString policy = policy_of(set, row); !policy.isEmpty()) {
    text += QStringLiteral("; ") +
            QCoreApplication::translate("Results", "%1 differs from the control's, not a gain of CP alone").arg(policy);
  }
  return text;
}

QString figure_text(const ResultColumn& column, const ResultField& field, double value) {
  if (std::isnan(value)) return QStringLiteral("–");
  if (field.word) {
    const auto at = static_cast<qsizetype>(value);
    return at >= 0 && at < column.vocabulary.size() ? column.vocabulary[at] : QStringLiteral("–");
  }
  if (field.group == FieldGroup::kRecipe) return QString::number(value, 'f', 0);
  // One number of decimals for the whole column, so that its points stand below each other: three digits of the least figure.
  if (field.unit == "%" && is_tiny_share(value / kPercent)) return QStringLiteral("< 0.1");
  const double least = std::abs(column.low), most = std::abs(column.high);
  const int decimals = least >= 100.0 ? 0 : least >= 10.0 ? 1 : most < 1.0 ? 3 : 2;
  const QString text = QLocale(QLocale::English).toString(value, 'f', decimals);
  return text.startsWith(QLatin1Char('-')) ? QChar(0x2212) + text.mid(1) : text;
}

QString full_figure_text(const ResultColumn& column, const ResultField& field, double value) {
  if (field.word || std::isnan(value)) return figure_text(column, field, value);
  const QString number = QString::number(value, 'g', 9);
  return field.unit.empty() ? number : number + QLatin1Char(' ') + text_of(field.unit);
}

QString header_text(const ResultField& field) {
  return field.unit.empty() ? text_of(field.label) : text_of(field.label) + QStringLiteral(", ") + text_of(field.unit);
}

}  // namespace cpfit::gui
