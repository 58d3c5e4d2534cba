#include "gui/recipe/verdict_text.h"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <string_view>

#include "gui/look/figures.h"
#include "model/quantity/percent.h"

namespace cpfit::gui {

namespace {

QString tr(const char* text) { return QObject::tr(text); }

VerdictCell::Tone tone_of(Fit fit) {
  switch (fit) {
    case Fit::kFits:
      return VerdictCell::Tone::kGood;
    case Fit::kAtRisk:
      return VerdictCell::Tone::kWarn;
    case Fit::kOom:
      break;
  }
  return VerdictCell::Tone::kBad;
}

/// The weakest of the sources a figure rests on, of those named; all of them when none is named.
void mark_source(VerdictCell& cell, const Estimate& estimate, std::initializer_list<std::string_view> of) {
  bool assumed = false, fitted = false;
  QStringList all;
  for (const auto& [what, evidence] : estimate.sources) {
    if (of.size() > 0 && std::ranges::find(of, what) == of.end()) continue;
    assumed = assumed || evidence == "assumed";
    fitted = fitted || evidence == "fitted";
    all.append(text_of(what).replace(QLatin1Char('_'), QLatin1Char(' ')) + QLatin1Char(' ') + text_of(evidence));
  }
  cell.mark = assumed ? QStringLiteral("○") : fitted ? QStringLiteral("◐") : QStringLiteral("●");
  cell.source = assumed ? tr("assumed") : fitted ? tr("fitted") : tr("measured");
  if (!all.isEmpty())
    cell.tip += (cell.tip.isEmpty() ? QString() : QStringLiteral(" ")) + tr("Sources: %1.").arg(all.join(QStringLiteral(", ")));
}

/// "59.2 of 79.2 GiB": one unit for both.
QString of_capacity(Bytes used, Bytes capacity) {
  return tr("%1 of %2 GiB").arg(three_digits(used.value() / kGiB), three_digits(capacity.value() / kGiB));
}

}  // namespace

QString limit_of(const TimeBreakdown& time) {
  const std::array<std::pair<Seconds, const char*>, 8> parts = {{{time.exposed_cp, "exposed CP"},
                                                                 {time.exposed_tp, "exposed TP"},
                                                                 {time.exposed_pp, "exposed PP"},
                                                                 {time.exposed_dp, "exposed DP"},
                                                                 {time.bubble, "pipeline bubble"},
                                                                 {time.launch, "kernel launches"},
                                                                 {time.optimizer, "optimizer"},
                                                                 {time.other, "other"}}};
  const auto worst = std::ranges::max_element(parts, {}, [](const auto& part) { return part.first; });
  const double share = worst->first / time.step();
  // Below a twentieth nothing is lost to anything but the work itself.
  constexpr double kWorthNaming = 0.05;
  if (share < kWorthNaming) return tr("compute, %1 of the step").arg(share_text(time.compute / time.step()));
  return tr("%1, %2 of the step").arg(tr(worst->second), share_text(share));
}

std::optional<double> hidden_share(const CpExposure& cp, const TimeBreakdown& time, const Recipe& recipe) {
  if (recipe.cp == 1 || recipe.cp_comm != CpComm::kP2p) return std::nullopt;
  const double sent = (recipe.cp - 1) * (cp.forward_message + cp.backward_message).value();
  const double exposed = (cp.forward_exposed + cp.backward_exposed).value();
  // Exposed time that no layer's ring accounts for: waiting for peers, slowed kernels.
  if (sent <= 0.0 || (exposed <= 0.0 && time.exposed_cp.value() > 0.0)) return std::nullopt;
  return std::clamp(1.0 - exposed / sent, 0.0, 1.0);
}

Shown shown_candidate(const LiveEstimate& live) {
  if (!live.now().legal()) return {};
  if (live.what_if()) return {&live.what_if()->now.candidate, true, live.what_if_words()};
  if (live.simulation_is_current()) return {&live.simulation()->now.candidate, true, {}};
  return {&*live.now().candidate, false, {}};
}

std::vector<VerdictCell> verdict_cells(const Estimate& estimate, const Shown& shown, const std::optional<Baseline>& baseline) {
  if (shown.candidate == nullptr) return {};
  const Candidate& c = *shown.candidate;
  const Candidate* base = baseline ? &baseline->candidate : nullptr;
  using Tone = VerdictCell::Tone;
  std::vector<VerdictCell> cells;

  const auto cell = [](const char* id, const QString& caption, const QString& value, const QString& note = {}) {
    VerdictCell made;
    made.id = QLatin1String(id);
    made.caption = caption;
    made.value = value;
    made.note = note;
    return made;
  };
  VerdictCell memory = cell("memory", tr("Memory, worst stage"), of_capacity(c.memory.device, c.verdict.capacity));
  memory.tone = tone_of(c.verdict.fit);
  memory.note = estimate.design.recipe.pp > 1 ? tr("stage %1, in %2").arg(c.memory.stage).arg(text_of(name_of(c.memory.phase)))
                                              : tr("peak in %1").arg(text_of(name_of(c.memory.phase)));
  memory.tip = tr("Estimate %1, upper bound %2, of %3 a process can use. Source: the ledger's formulas (fitted allocator slack).")
                   .arg(bytes_text(c.memory.device), bytes_text(c.verdict.upper), bytes_text(c.verdict.capacity));
  VerdictCell step = cell("step", tr("Step time"), time_text(c.time.step()));
  step.note = !shown.edited.isEmpty() ? tr("with %1").arg(shown.edited)
              : shown.from_timeline   ? tr("on the timeline")
                                      : tr("%1 to %2").arg(time_text(c.step_low), time_text(c.step_high));
  step.tip = tr("%1 tokens/s per GPU. 90 % interval: %2 to %3. Rates: %4.")
                 .arg(three_digits(c.tokens_per_second_per_gpu), time_text(c.step_low), time_text(c.step_high),
                      c.in_range ? tr("fitted, inside the measured range") : tr("fitted, outside the measured range"));
  VerdictCell ring = cell("ring", tr("CP exchange"), {});
  if (estimate.design.recipe.cp == 1) {
    ring.value = tr("none");
    ring.note = tr("CP 1: nothing to exchange");
  } else {
    const double share = c.time.exposed_cp / c.time.step();
    if (const std::optional<double> hidden = hidden_share(c.cp, c.time, c.recipe)) {
      ring.value = tr("%1 hidden").arg(share_text(*hidden));
      ring.note = tr("%1 exposed").arg(time_text(c.time.exposed_cp));
    } else {
      ring.value = tr("%1 exposed").arg(time_text(c.time.exposed_cp));
      ring.note = tr("%1 of the step").arg(share_text(share));
    }
    ring.tone = share > estimate.design.scenario->requirements.exposed_budget_share ? Tone::kWarn : Tone::kGood;
    ring.tip = tr("Exposed for %1 of the step, budget %2. %3 sent per layer and rank.")
                   .arg(share_text(share), text_of(given_share_text(estimate.design.scenario->requirements.exposed_budget_share)),
                        bytes_text(c.cp.bytes_sent_per_layer)) +
               (c.cp.crosses_node ? tr(" The ring leaves the node.") : QString());
  }
  VerdictCell mfu =
      cell("mfu", tr("MFU"), share_text(c.mfu), tr("%1 tok/s per GPU").arg(three_digits(c.tokens_per_second_per_gpu)));
  mfu.tip =
      tr("Model FLOPs utilisation: attention counted causal half, head counted, dense peak. HFU %1.").arg(share_text(c.hfu));
  VerdictCell limit = cell("limit", tr("Limited by"), limit_of(c.time).section(QStringLiteral(", "), 0, 0),
                           limit_of(c.time).section(QStringLiteral(", "), 1));
  memory.mark = QStringLiteral("◐");
  memory.source = tr("fitted");
  for (VerdictCell* timed : {&step, &mfu, &limit}) mark_source(*timed, estimate, {});
  if (estimate.design.recipe.cp > 1) mark_source(ring, estimate, {"attention", "cp_links"});
  if (!shown.edited.isEmpty()) {
    for (VerdictCell* timed : {&step, &ring, &mfu, &limit}) {
      timed->mark = QStringLiteral("✎");
      timed->source = tr("with %1").arg(shown.edited);
    }
  }
  if (base != nullptr) {
    const Bytes bytes = c.memory.device - base->memory.device;
    const Seconds time = c.time.step() - base->time.step();
    memory.delta = signed_bytes(bytes);
    memory.better = bytes.value() <= 0.0;
    step.delta = signed_time(time);
    step.better = time.value() <= 0.0;
    mfu.delta = signed_share(c.mfu - base->mfu);
    mfu.better = c.mfu >= base->mfu;
    ring.delta = signed_time(c.time.exposed_cp - base->time.exposed_cp);
    ring.better = c.time.exposed_cp <= base->time.exposed_cp;
  }
  cells = {memory, step, ring, mfu, limit};
  return cells;
}

std::optional<Lever> smallest_enough(const std::vector<Lever>& levers) {
  std::optional<Lever> found;
  for (const Lever& lever : levers) {
    if (lever.gain < 1.0 || (found && lever.gain >= found->gain)) continue;
    if (lever.differs.size() == 1 && (lever.differs.front() == "cluster" || lever.differs.front() == "sequence_length")) continue;
    found = lever;
  }
  return found;
}

QString verdict_headline(const Estimate& estimate, const std::optional<Lever>& smallest_change) {
  if (!estimate.legal()) {
    if (estimate.problems.empty()) return {};
    QString text = text_of(estimate.problems.front().message);
    if (estimate.problems.size() > 1) text += tr(" (and %1 more)").arg(estimate.problems.size() - 1);
    return text;
  }
  const Candidate& c = *estimate.candidate;
  const QString place = estimate.design.recipe.pp > 1 ? tr("stage %1").arg(c.memory.stage) : tr("a GPU");
  QString text;
  switch (c.verdict.fit) {
    case Fit::kFits:
      text = tr("%1 stay free beyond the upper bound.").arg(bytes_text(c.verdict.margin));
      break;
    case Fit::kAtRisk:
      text = tr("The upper bound leaves %1, less than the margin asked for.").arg(bytes_text(c.verdict.margin));
      break;
    case Fit::kOom:
      text = tr("%1 needs %2, the device has %3.").arg(place, bytes_text(c.memory.device), bytes_text(c.verdict.capacity));
      text[0] = text[0].toUpper();
      break;
  }
  if (c.verdict.fit != Fit::kFits && smallest_change)
    text += tr(" Smallest change that fits: %1 (%2).").arg(text_of(smallest_change->change), text_of(smallest_change->costs));
  if (!estimate.not_of_cp.empty()) text += tr(" It %1.").arg(text_of(estimate.not_of_cp));
  return text;
}

QString verdict_line(const Estimate& estimate, const Shown& shown, const std::optional<Baseline>& baseline) {
  QStringList parts = {text_of(to_text(estimate.design.recipe))};
  for (const VerdictCell& cell : verdict_cells(estimate, shown, baseline)) {
    QString part = cell.caption + QStringLiteral(": ") + cell.value;
    if (!cell.note.isEmpty()) part += QStringLiteral(" (") + cell.note + QLatin1Char(')');
    if (!cell.delta.isEmpty()) part += tr(", %1 against the baseline").arg(cell.delta);
    if (!cell.source.isEmpty()) part += QStringLiteral(" [%1]").arg(cell.source);
    parts.append(part);
  }
  if (!estimate.legal()) parts.append(verdict_headline(estimate, std::nullopt));
  return parts.join(QStringLiteral("; "));
}

}  // namespace cpfit::gui
