#include "gui/memory/sweep_figures.h"

#include <algorithm>
#include <map>

#include "gui/look/figures.h"
#include "gui/study/simulator.h"
#include "model/recipe/recipe.h"

namespace cpfit::gui {

namespace {

QString tr(const char* text) { return QObject::tr(text); }

QString degrees(const std::vector<std::int32_t>& values) {
  QStringList texts;
  for (const std::int32_t value : values) texts.append(QString::number(value));
  return texts.join(QStringLiteral(", "));
}

template <class Accept>
std::int64_t shortest_against_control(const Sweep& sweep, Accept accept) {
  std::map<std::int64_t, const Candidate*> control;
  for (const SweepPointOrReason* point : points_of(sweep, 1)) control[point->sequence] = &*point->candidate;
  std::int64_t shortest = 0;
  for (const SweepPointOrReason& point : sweep.points) {
    const auto at = control.find(point.sequence);
    if (point.cp == 1 || !point.candidate || at == control.end() || !accept(*at->second, *point.candidate)) continue;
    if (shortest == 0 || point.sequence < shortest) shortest = point.sequence;
  }
  return shortest;
}

}  // namespace

const SweepPointOrReason* point_of(const Sweep& sweep, std::int32_t cp, std::int64_t sequence) {
  const auto found =
      std::ranges::find_if(sweep.points, [&](const SweepPointOrReason& p) { return p.cp == cp && p.sequence == sequence; });
  return found == sweep.points.end() ? nullptr : &*found;
}

std::vector<const SweepPointOrReason*> points_of(const Sweep& sweep, std::int32_t cp) {
  std::vector<const SweepPointOrReason*> points;
  for (const SweepPointOrReason& point : sweep.points) {
    if (point.cp == cp && point.candidate) points.push_back(&point);
  }
  return points;
}

std::int64_t needed_at(const Sweep& sweep) {
  return shortest_against_control(sweep, [](const Candidate& control, const Candidate& c) {
    return control.verdict.fit != Fit::kFits && c.verdict.fit == Fit::kFits;
  });
}

std::int64_t faster_at(const Sweep& sweep) {
  return shortest_against_control(sweep, [](const Candidate& control, const Candidate& c) {
    return c.tokens_per_second_per_gpu > control.tokens_per_second_per_gpu;
  });
}

CellState state_of(const SweepPointOrReason& point, const Requirements& requirements) {
  if (!point.candidate) return CellState::kIllegal;
  if (point.candidate->verdict.fit == Fit::kOom) return CellState::kTooMuch;
  if (point.candidate->verdict.fit == Fit::kAtRisk) return CellState::kAtRisk;
  return exposed_cp_share(*point.candidate) > requirements.exposed_budget_share ? CellState::kExposed : CellState::kFeasible;
}

QString name_of(CellState state) {
  switch (state) {
    case CellState::kFeasible:
      return tr("fits and hides");
    case CellState::kExposed:
      return tr("fits, exchange exposed");
    case CellState::kAtRisk:
      return tr("at risk");
    case CellState::kTooMuch:
      return tr("does not fit");
    case CellState::kIllegal:
      break;
  }
  return tr("not legal");
}

LengthAnswer answer_at(const Sweep& sweep, std::int64_t sequence, const Requirements& requirements) {
  LengthAnswer answer;
  answer.sequence = sequence;
  for (const std::int32_t cp : sweep.cps) {
    const SweepPointOrReason* point = point_of(sweep, cp, sequence);
    if (point == nullptr || !point->candidate) continue;
    const bool fits = point->candidate->verdict.fit == Fit::kFits;
    const bool hides = exposed_cp_share(*point->candidate) <= requirements.exposed_budget_share;
    if (fits) answer.fit.push_back(cp);
    if (hides) answer.hide.push_back(cp);
    if (fits && hides) answer.feasible.push_back(cp);
  }
  return answer;
}

QString sentence_of(const LengthAnswer& answer) {
  const QString head = tr("At %1 tokens: ").arg(tokens_text(answer.sequence));
  if (answer.fit.empty() && answer.hide.empty()) return head + tr("no degree shown is legal and fits.");
  if (answer.fit.empty()) return head + tr("no degree shown fits; another lever is needed.");
  if (!answer.feasible.empty()) {
    const QString list = answer.feasible.size() == 1 ? tr("only CP %1 does both").arg(degrees(answer.feasible))
                                                     : tr("CP %1 do both").arg(degrees(answer.feasible));
    return head +
           tr("memory fits at CP %1, the exchange hides at CP %2: %3.").arg(degrees(answer.fit), degrees(answer.hide), list);
  }
  return head +
         tr("memory fits at CP %1, but the exchange hides only at CP %2: no degree does both, so CP alone is no answer here.")
             .arg(degrees(answer.fit), answer.hide.empty() ? tr("none") : degrees(answer.hide));
}

QString held_text(const Sweep& sweep) {
  const Recipe& r = sweep.base;
  return tr("TP %1, PP %2, DP %3, recompute %4, micro-batch %5, %6 held; GPUs grow with CP")
      .arg(r.tp)
      .arg(r.pp)
      .arg(r.dp)
      .arg(text_of(to_text(r.recompute)))
      .arg(r.micro_batch)
      .arg(text_of(cpfit::name_of(r.cp_comm)));
}

}  // namespace cpfit::gui
