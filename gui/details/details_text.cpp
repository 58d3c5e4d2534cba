#include "gui/details/details_text.h"

#include <array>
#include <utility>

#include "gui/look/figures.h"
#include "gui/memory/memory_tree.h"

namespace cpfit::gui {

namespace {

QString tr(const char* text) { return QObject::tr(text); }
QString cell(const QString& text, bool right) {
  return QStringLiteral("<td style='padding-right:18px' align='%1'>%2</td>")
      .arg(right ? QStringLiteral("right") : QStringLiteral("left"), text);
}
QString head(const QString& text, bool right) {
  return QStringLiteral("<th style='padding-right:18px' align='%1'>%2</th>")
      .arg(right ? QStringLiteral("right") : QStringLiteral("left"), text);
}

using Parts = std::array<std::pair<const char*, Seconds>, 9>;
Parts parts_of(const TimeBreakdown& t) {
  return {{{"compute", t.compute},
           {"exposed CP", t.exposed_cp},
           {"exposed TP", t.exposed_tp},
           {"exposed PP", t.exposed_pp},
           {"exposed DP", t.exposed_dp},
           {"bubble", t.bubble},
           {"launch", t.launch},
           {"optimizer", t.optimizer},
           {"other", t.other}}};
}

}  // namespace

QString time_table(const Candidate& screen, const Candidate* timeline) {
  const Candidate& shown = timeline != nullptr ? *timeline : screen;
  const Parts now = parts_of(shown.time), closed = parts_of(screen.time);
  QString rows = QStringLiteral("<tr>") + head(tr("part of the step"), false) + head(tr("time"), true) + head(tr("share"), true) +
                 (timeline != nullptr ? head(tr("closed form"), true) : QString()) + QStringLiteral("</tr>");
  for (std::size_t i = 0; i < now.size(); ++i) {
    if (now[i].second.value() <= 0.0 && closed[i].second.value() <= 0.0) continue;
    rows += QStringLiteral("<tr>") + cell(tr(now[i].first), false) + cell(time_text(now[i].second), true) +
            cell(share_text(now[i].second / shown.time.step()).toHtmlEscaped(), true) +
            (timeline != nullptr ? cell(time_text(closed[i].second), true) : QString()) + QStringLiteral("</tr>");
  }
  rows += QStringLiteral("<tr>") + cell(QStringLiteral("<b>%1</b>").arg(tr("step")), false) +
          cell(QStringLiteral("<b>%1</b>").arg(time_text(shown.time.step())), true) + cell(QStringLiteral("100 %"), true) +
          (timeline != nullptr ? cell(time_text(screen.time.step()), true) : QString()) + QStringLiteral("</tr>");
  return QStringLiteral("<table cellspacing='0' cellpadding='2'>%1</table>").arg(rows);
}

QString tensor_text(const StageLedger& ledger, const SelectedTensor& tensor) {
  Bytes component;
  for (const LedgerEntry& entry : ledger.entries) {
    if (title_of(entry.component) != tensor.component) continue;
    component += entry.bytes;
    if (text_of(entry.tensor) != tensor.tensor) continue;
    return QStringLiteral("<p><b>%1</b></p><p>%2 = %3</p><p>%4</p>")
        .arg(tr("Stage %1: %2 holds %3 at the peak.")
                 .arg(tensor.stage)
                 .arg(tensor.tensor.toHtmlEscaped(), bytes_text(entry.bytes)),
             tensor.tensor.toHtmlEscaped(), text_of(entry.formula).toHtmlEscaped(),
             tr("Source: %1").arg(text_of(entry.source).toHtmlEscaped()));
  }
  const double share = ledger.summary.device.value() > 0.0 ? component / ledger.summary.device : 0.0;
  return QStringLiteral("<p><b>%1</b></p>")
      .arg(tr("Stage %1: %2 hold %3 at the peak, %4 of the stage.")
               .arg(tensor.stage)
               .arg(tensor.component.toHtmlEscaped(), bytes_text(component), share_text(share).toHtmlEscaped()));
}

QString link_text(const SimulatedStep& step, const SelectedLink& link) {
  for (const LinkLoad& load : step.now.links) {
    if (text_of(load.from) != link.from || text_of(load.to) != link.to) continue;
    return QStringLiteral("<p><b>%1</b></p>")
        .arg(tr("%1 → %2 carries %3 per step and is busy for %4, %5 of it.")
                 .arg(link.from.toHtmlEscaped(), link.to.toHtmlEscaped(), bytes_text(load.bytes), time_text(load.busy),
                      share_text(load.busy / step.now.candidate.time.step()).toHtmlEscaped()));
  }
  return QStringLiteral("<p><b>%1</b></p>")
      .arg(tr("%1 → %2 carries nothing of the simulated ranks.").arg(link.from.toHtmlEscaped(), link.to.toHtmlEscaped()));
}

QString ring_arithmetic(const Estimate& estimate) {
  if (!estimate.legal() || estimate.design.recipe.cp == 1) return {};
  const Candidate& c = *estimate.candidate;
  const Recipe& r = estimate.design.recipe;
  const Architecture& m = estimate.design.scenario->model;
  const std::int64_t tokens = estimate.design.training().sequence.count() / r.cp;
  QString text =
      tr("One hop of the exchange takes %1 in forward; the attention step it must hide behind takes %2: it is %3.")
          .arg(time_text(c.cp.forward_message), time_text(c.cp.forward_step_compute),
               c.cp.forward_message <= c.cp.forward_step_compute ? tr("hidden") : tr("longer, and the rest is exposed"));
  text +=
      QLatin1Char(' ') + tr("A ring step hides while tokens per rank s/cp ≥ 2 (h_kv/h_q) F/B: here s/cp = %1, h_kv/h_q = %2/%3.")
                             .arg(count_text(tokens))
                             .arg(m.kv_heads)
                             .arg(m.heads);
  if (c.cp.crosses_node) text += QLatin1Char(' ') + tr("The ring leaves the node, so that B is the network's.");
  return text;
}

QString details_html(const DetailsInput& input) {
  if (!input.estimate.legal()) {
    if (input.estimate.problems.empty()) return QStringLiteral("<p>%1</p>").arg(tr("Open a study to see its details."));
    QString html = QStringLiteral("<p><b>%1</b></p><ul>").arg(tr("The recipe is not legal."));
    for (const Problem& problem : input.estimate.problems)
      html += QStringLiteral("<li>%1</li>").arg(sentence_of(problem).toHtmlEscaped());
    return html + QStringLiteral("</ul>");
  }
  QString html;
  if (!input.span.isEmpty()) html += QStringLiteral("<p><b>%1</b></p>").arg(input.span.toHtmlEscaped());
  if (!input.result.isEmpty()) {
    const QString first = input.result.section(QLatin1Char('\n'), 0, 0), rest = input.result.section(QLatin1Char('\n'), 1);
    html += QStringLiteral("<p>%1 <b>%2</b><br>%3</p>")
                .arg(tr("Result chosen:"), first.toHtmlEscaped(),
                     rest.toHtmlEscaped().replace(QLatin1Char('\n'), QStringLiteral("<br>")));
  }
  if (input.selected.tensor && input.ledger != nullptr) html += tensor_text(*input.ledger, *input.selected.tensor);
  if (input.selected.link && input.step != nullptr) html += link_text(*input.step, *input.selected.link);
  const Candidate& screen = *input.estimate.candidate;
  const Candidate* timeline = input.step != nullptr ? &input.step->now.candidate : nullptr;
  const Candidate& shown = timeline != nullptr ? *timeline : screen;
  html +=
      QStringLiteral("<p>%1</p>")
          .arg(tr("<b>%1</b> takes %2 per step, %3 tokens/s per GPU; 90 % interval of the closed form %4 to %5.")
                   .arg(text_of(to_text(input.estimate.design.recipe)).toHtmlEscaped(), time_text(shown.time.step()),
                        three_digits(shown.tokens_per_second_per_gpu), time_text(screen.step_low), time_text(screen.step_high)));
  html += time_table(screen, timeline);
  if (input.step != nullptr) {
    if (const std::string differs = disagreement(input.step->now, kAgreement); !differs.empty())
      html += QStringLiteral("<p>%1</p>").arg(text_of(differs).toHtmlEscaped());
  }
  if (input.why) {
    const QString ring = ring_arithmetic(input.estimate);
    if (!ring.isEmpty()) html += QStringLiteral("<p>%1</p>").arg(ring.toHtmlEscaped());
    html += QStringLiteral("<p>%1</p>")
                .arg(tr("Step = compute + exposed + bubble + launch + optimizer + other, on the rank that ends last. MFU %1 "
                        "counts attention causal half and the head, HFU %2 adds what is recomputed.")
                         .arg(share_text(shown.mfu).toHtmlEscaped(), share_text(shown.hfu).toHtmlEscaped()));
    html += QStringLiteral("<p>%1</p>")
                .arg(tr("◐ Rates are fitted surfaces with a residual of %1 for this step%2.")
                         .arg(share_text(static_cast<double>(screen.relative_sigma)).toHtmlEscaped(),
                              screen.in_range ? QString() : tr(", outside the measured range for some operators")));
  }
  return html;
}

}  // namespace cpfit::gui
