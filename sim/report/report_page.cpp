#include "sim/report/report_page.h"

#include <fmt/format.h>

#include <algorithm>

#include "model/quantity/percent.h"
#include "model/quantity/text.h"
#include "sim/report/charts.h"

namespace cpfit::report {

namespace {

// Two themes by the reader's own choice; the colours are Okabe and Ito's, told apart without red or green.
constexpr const char* kHead = R"(<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<style>
:root{--back:#fff;--text:#1c2430;--faint:#5b6675;--line:#dde2e8;--panel:#f5f7f9;--good:#11734b;--warn:#8a5a00;--bad:#a4262c}
@media(prefers-color-scheme:dark){:root{--back:#14181d;--text:#e6eaef;--faint:#9aa6b4;--line:#2e3640;--panel:#1c2229;--good:#5fd39f;--warn:#f0b94c;--bad:#ff8a8a}}
body{font:15px/1.5 system-ui,sans-serif;background:var(--back);color:var(--text);max-width:1100px;margin:2rem auto;padding:0 1rem}
h1{font-size:1.5rem;margin-bottom:.2rem}h2{font-size:1.15rem;margin:2.2rem 0 .6rem;border-bottom:1px solid var(--line);padding-bottom:.2rem}
.answer{font-size:1.08rem;background:var(--panel);border-left:4px solid var(--good);padding:.8rem 1rem;margin:1rem 0}
.answer.none{border-color:var(--bad)}.faint,figcaption{color:var(--faint)}
code{font:13px/1.4 ui-monospace,monospace;background:var(--panel);padding:.1rem .3rem;overflow-wrap:anywhere}
table{border-collapse:collapse;margin:.6rem 0;font-variant-numeric:tabular-nums;font-size:.92rem}
th,td{white-space:nowrap;padding:.25rem .6rem;border-bottom:1px solid var(--line);text-align:right}th:first-child,td:first-child{text-align:left}
td.words,th.words{text-align:left}tr.ship{font-weight:600}
.fits{color:var(--good)}.at_risk{color:var(--warn)}.oom{color:var(--bad)}
figure{margin:1rem 0}svg{max-width:min(100%,960px);height:auto}details{margin:.4rem 0}.scroll{overflow-x:auto}
.label{font-size:12px;fill:var(--text)}.grid{stroke:var(--line)}.level{stroke:var(--bad);stroke-dasharray:6 4}.here{stroke:var(--faint);stroke-dasharray:2 3}
.curve{fill:none;stroke-width:2}.idle{fill:var(--panel)}.hatch{fill:var(--text)}
.c0{fill:#0072b2}.c1{fill:#e69f00}.c2{fill:#009e73}.c3{fill:#cc79a7}.c4{fill:#56b4e9}.c5{fill:#d55e00}.c6{fill:#b8a800}.c7{fill:#7b6fd0}.c8{fill:#8c8c8c}.c9{fill:#7f4f24}.c10{fill:#00a6a6}.c11{fill:#a04668}.c12{fill:#5a7d2a}
.s0{stroke:#0072b2}.s1{stroke:#e69f00}.s2{stroke:#009e73}.s3{stroke:#cc79a7}.s4{stroke:#56b4e9}.s5{stroke:#d55e00}.s6{stroke:#b8a800}.s7{stroke:#7b6fd0}.s8{stroke:#8c8c8c}.s9{stroke:#7f4f24}
</style>
)";

std::string paragraph(const std::string& text, const char* css = "") {
  return fmt::format("<p{}>{}</p>\n", *css != 0 ? fmt::format(" class=\"{}\"", css) : "", escaped(text));
}
std::string titled(const std::string& title) { return "<h2>" + escaped(title) + "</h2>\n"; }
std::string code(const std::string& text) { return "<code>" + escaped(text) + "</code>"; }
std::string figure(const std::string& svg, const std::string& caption) {
  if (svg.empty()) return {};
  return "<figure>\n" + svg + "<figcaption>" + escaped(caption) + "</figcaption></figure>\n";
}

/// Cells that are words are marked so by a leading tab.
class HtmlTable {
 public:
  explicit HtmlTable(const std::vector<std::string>& head) {
    text_ = "<div class=\"scroll\"><table><thead><tr>" + cells(head, "th") + "</tr></thead><tbody>\n";
  }
  void row(const std::vector<std::string>& values, const char* css = "") {
    text_ += fmt::format("<tr{}>{}</tr>\n", *css != 0 ? fmt::format(" class=\"{}\"", css) : "", cells(values, "td"));
  }
  [[nodiscard]] std::string text() const { return text_ + "</tbody></table></div>\n"; }

 private:
  static std::string cells(const std::vector<std::string>& values, const char* tag) {
    std::string out;
    for (const std::string& value : values) {
      const bool words = !value.empty() && value[0] == '\t';
      out += fmt::format("<{0}{1}>{2}</{0}>", tag, words ? " class=\"words\"" : "", escaped(words ? value.substr(1) : value));
    }
    return out;
  }
  std::string text_;
};

double gibibytes(Bytes bytes) { return bytes.value() / (1024.0 * 1024.0 * 1024.0); }

const Candidate* shown_candidate(const PlanResult& plan) {
  if (plan.ships) return &plan.ship;
  return plan.candidates.empty() ? nullptr : &plan.candidates.front();
}

std::string head_text(const ReportContent& content) {
  const Scenario& scenario = *content.scenario;
  const std::string name = content.plan.provenance.scenario_name;
  const std::string subject =
      fmt::format("{} at {} tokens on {} x {}", scenario.model.name, print_tokens(scenario.training.sequence),
                  scenario.cluster.gpus(), scenario.cluster.gpu.name);
  std::string out = kHead;
  out += "<title>" + escaped((name.empty() ? subject : name) + " - cpfit") + "</title></head><body>\n" + shared_definitions();
  out += "<h1>" + escaped(name.empty() ? subject : name) + "</h1>\n" + paragraph(subject, "faint");
  out += fmt::format("<p class=\"answer{}\">{}</p>\n", content.plan.ships ? "" : " none", escaped(content.plan.answer));
  return out;
}

std::vector<std::string> candidate_cells(const std::string& role, const Candidate& c) {
  return {"\t" + role,
          std::to_string(c.recipe.cp),
          std::to_string(c.recipe.tp),
          std::to_string(c.recipe.pp),
          std::to_string(c.recipe.dp),
          "\t" + (c.recipe.cp > 1 ? std::string(name_of(c.recipe.cp_comm)) : std::string("-")),
          "\t" + to_text(c.recipe.recompute),
          print_bytes(c.memory.device),
          "\t" + std::string(name_of(c.verdict.fit)),
          print_time(c.time.step()),
          fmt::format("{} to {}", print_time(c.step_low), print_time(c.step_high)),
          fmt::format("{:.0f}", c.tokens_per_second_per_gpu),
          percent(c.mfu),
          percent(c.time.exposed_cp / c.time.step())};
}

std::string recipes_text(const ReportContent& content) {
  const PlanResult& plan = content.plan;
  std::string out = titled("The recipe and what it is compared with");
  if (plan.ships) out += "<p>" + code(to_text(plan.ship.recipe)) + "</p>\n";
  if (plan.ships && !content.proof.empty()) out += paragraph(content.proof);
  HtmlTable table({"\trole", "cp", "tp", "pp", "dp", "\texchange", "\trecompute", "memory", "\tfits", "step", "90 % interval",
                   "tokens/s/GPU", "MFU", "CP exposed"});
  if (plan.ships) table.row(candidate_cells("ship", plan.ship), "ship");
  if (plan.has_control) table.row(candidate_cells("control, cp = 1", plan.control));
  for (const Candidate& candidate : plan.candidates) {
    const bool told =
        (plan.ships && candidate.recipe == plan.ship.recipe) || (plan.has_control && candidate.recipe == plan.control.recipe);
    if (!told) table.row(candidate_cells(std::string(name_of(candidate.status)), candidate));
  }
  out += table.text();
  if (plan.ships)
    for (const std::string& reason : plan.ship.reasons) out += paragraph(reason, "faint");
  return out;
}

PartsChart::Row memory_row(const std::string& name, const Candidate& candidate) {
  PartsChart::Row row{name, print_bytes(candidate.memory.device), {}};
  for (int i = 0; i < kComponentCount; ++i)
    row.parts.emplace_back(name_of(static_cast<Component>(i)),
                           gibibytes(candidate.memory.components[static_cast<std::size_t>(i)]));
  return row;
}

std::string memory_section(const ReportContent& content) {
  const PlanResult& plan = content.plan;
  const Candidate* shown = shown_candidate(plan);
  if (shown == nullptr) return {};
  PartsChart chart;
  chart.title = "Memory of the worst stage by component";
  chart.rows.push_back(memory_row(plan.ships ? "ship" : "nearest", *shown));
  if (plan.has_control) chart.rows.push_back(memory_row("control", plan.control));
  chart.limit = gibibytes(shown->verdict.capacity);
  chart.limit_name = "device, " + print_bytes(shown->verdict.capacity);
  std::string out = titled("Memory");
  out += figure(svg_of(chart), fmt::format("At the peak of stage {} in {}; upper bound {}.", shown->memory.stage,
                                           name_of(shown->memory.phase), print_bytes(shown->verdict.upper)));
  HtmlTable table({"\tcomponent", "bytes", "share"});
  for (int i = 0; i < kComponentCount; ++i) {
    const Bytes bytes = shown->memory.components[static_cast<std::size_t>(i)];
    if (bytes.value() > 0)
      table.row(
          {"\t" + std::string(name_of(static_cast<Component>(i))), print_bytes(bytes), percent(bytes / shown->memory.device)});
  }
  return out + "<details><summary>Figures</summary>" + table.text() +
         paragraph(fmt::format("Resident {}, forward peak {}, backward peak {}, reserved {}.",
                               print_bytes(shown->memory.resident), print_bytes(shown->memory.forward_peak),
                               print_bytes(shown->memory.backward_peak), print_bytes(shown->memory.reserved))) +
         "</details>\n";
}

std::string lengths_section(const ReportContent& content) {
  if (content.sweep.empty()) return {};
  const Candidate* shown = shown_candidate(content.plan);
  LineChart memory, rate;
  memory.title = "Memory of the worst rank by sequence length, one line a CP degree";
  memory.unit = "GiB";
  rate.title = "Tokens per second and GPU by sequence length, one line a CP degree";
  rate.unit = "tokens/s/GPU";
  memory.here = rate.here = static_cast<double>(content.scenario->training.sequence.count());
  if (shown != nullptr) memory.levels.push_back({"device", gibibytes(shown->verdict.capacity)});
  HtmlTable table({"cp", "tokens", "GPUs", "memory", "\tfits", "tokens/s/GPU"});
  std::int32_t degree = 0;
  for (const SweepPointOrReason& point : content.sweep) {
    if (point.cp != degree) {
      degree = point.cp;
      memory.lines.push_back({fmt::format("cp {}", degree), {}});
      rate.lines.push_back({fmt::format("cp {}", degree), {}});
    }
    if (!point.candidate) continue;
    const Candidate& c = *point.candidate;
    const double tokens = static_cast<double>(point.sequence);
    memory.lines.back().points.emplace_back(tokens, gibibytes(c.memory.device));
    rate.lines.back().points.emplace_back(tokens, c.tokens_per_second_per_gpu);
    table.row({std::to_string(point.cp), print_tokens(Tokens(point.sequence)), std::to_string(point.gpus),
               print_bytes(c.memory.device), "\t" + std::string(name_of(c.verdict.fit)),
               fmt::format("{:.0f}", c.tokens_per_second_per_gpu)});
  }
  std::string out = titled("Along the sequence length");
  out += figure(svg_of(memory), "tp, pp, dp and recompute as shipped; CP grows and with it the GPUs. cp 1 is the control.");
  out += figure(svg_of(rate), "The same recipes' throughput.");
  const Crossover& crossover = content.plan.crossover;
  if (!crossover.held_constant.empty()) {
    const auto from = [](std::int64_t tokens) {
      return tokens > 0 ? "from " + print_tokens(Tokens(tokens)) + " tokens" : std::string("at no length tried");
    };
    out += paragraph(fmt::format("At equal GPUs CP > 1 is needed to fit {} and faster than cp = 1 {}. Held constant: {}.",
                                 from(crossover.needed_at_tokens), from(crossover.faster_at_tokens), crossover.held_constant));
  }
  return out + "<details><summary>Figures</summary>" + table.text() + "</details>\n";
}

PartsChart::Row time_row(const std::string& name, const TimeBreakdown& time) {
  return {name,
          print_time(time.step()),
          {{"compute", time.compute.value()},
           {"exposed CP", time.exposed_cp.value()},
           {"exposed TP", time.exposed_tp.value()},
           {"exposed PP", time.exposed_pp.value()},
           {"exposed DP", time.exposed_dp.value()},
           {"bubble", time.bubble.value()},
           {"launch", time.launch.value()},
           {"optimizer", time.optimizer.value()},
           {"other", time.other.value()}}};
}

/// The spans of one layer, forward, of the first micro-batch: [begin, end) of what the compute lane did of it.
std::pair<std::int64_t, std::int64_t> one_layer(const std::vector<SpanLane>& lanes) {
  std::int16_t last = 0;
  for (const SpanLane& lane : lanes)
    for (const LaneSpan& span : lane.spans) last = std::max(last, span.layer);
  const std::int16_t middle = last / 2;
  std::int64_t begin = 0, end = 0;
  for (const SpanLane& lane : lanes) {
    for (const LaneSpan& span : lane.spans) {
      const bool computes = span.kind == SpanKind::kAttention || span.kind == SpanKind::kCompute;
      if (span.layer != middle || span.micro_batch != 0 || span.pass != SpanPass::kForward || !computes) continue;
      begin = end == 0 ? span.start : std::min(begin, span.start);
      end = std::max(end, span.end);
    }
  }
  return {begin, end};
}

std::string step_section(const ReportContent& content) {
  const PlanResult& plan = content.plan;
  const Candidate* shown = shown_candidate(plan);
  if (shown == nullptr) return {};
  PartsChart chart;
  chart.title = "Where a step's time goes on the rank that ends last";
  chart.rows.push_back(time_row(plan.ships ? "ship" : "nearest", shown->time));
  if (plan.has_control) chart.rows.push_back(time_row("control", plan.control.time));
  std::string out = titled("The step");
  out +=
      figure(svg_of(chart), "The parts add up to the step. Exposed communication is time in which the rank could not compute.");
  for (const TimelineConfirmation& entry : plan.confirmations) {
    if (!plan.ships || entry.recipe != to_text(plan.ship.recipe)) continue;
    if (entry.simulated())
      out += paragraph(fmt::format("Every kernel and transfer simulated: {} ({} against the closed form). {}",
                                   print_time(entry.step), signed_percent(entry.step / entry.screen_step - 1.0),
                                   entry.disagreement));
  }
  if (content.lanes.empty())
    return out + (content.no_lanes.empty() ? "" : paragraph("No timeline: " + content.no_lanes, "faint"));
  std::vector<const SpanLane*> lanes;
  for (const SpanLane& lane : content.lanes)
    if (!lane.spans.empty()) lanes.push_back(&lane);
  out += figure(svg_of(lanes, 0, content.step, "Timeline of the whole step, one row a stream"),
                fmt::format("Streams of rank {} over the whole step; a column is filled as far as its stream was busy.",
                            lanes.front()->rank));
  const auto [begin, end] = one_layer(content.lanes);
  if (end > begin)
    out += figure(svg_of(lanes, begin, end, "Timeline of one layer's forward pass"),
                  "One layer in the middle, forward, first micro-batch.");
  return out;
}

std::string links_section(const PlanResult& plan) {
  if (plan.links.empty() || plan.links.front().second.empty()) return {};
  HtmlTable table({"\tfrom", "\tto", "bytes a step", "busy"});
  std::size_t rows = 0;
  for (const LinkLoad& link : plan.links.front().second) {
    if (++rows > 12) break;
    table.row({"\t" + link.from, "\t" + link.to, print_bytes(link.bytes), print_time(link.busy)});
  }
  return titled("Busiest links") + table.text();
}

std::string reasons_section(const PlanResult& plan) {
  std::string out;
  if (!plan.neighbours.empty()) {
    out += titled("Why not the neighbours") + "<ul>\n";
    for (const Neighbour& neighbour : plan.neighbours) out += "<li>" + escaped(neighbour.sentence) + "</li>\n";
    out += "</ul>\n";
  }
  if (!plan.levers.empty()) {
    out += titled("Other levers, by gain") + "<ul>\n";
    for (const Lever& lever : plan.levers)
      out += "<li>" + code(lever.change) + " " + escaped(lever.gains + "; costs: " + lever.costs) + "</li>\n";
    out += "</ul>\n";
  }
  return out;
}

std::string provenance_section(const ReportContent& content) {
  const Provenance& from = content.plan.provenance;
  std::string out = titled("Where the figures come from");
  out += paragraph(fmt::format("cpfit {}; rules {}; rates {}. {} recipes considered, {} legal, {} evaluated.", from.tool_version,
                               from.rule_set, from.rates_version, content.plan.stats.considered, content.plan.stats.legal,
                               content.plan.stats.evaluated));
  if (!content.rates.empty()) out += paragraph(content.rates);
  for (const std::string& warning : content.beware) out += paragraph(fmt::format("Beware: {}.", warning));
  for (const std::string& command : content.commands) out += "<p>" + code(command) + "</p>\n";
  HtmlTable hashes({"\tinput", "\tSHA-256"});
  for (const auto& [name, hash] : from.input_hashes) hashes.row({"\t" + name, "\t" + hash});
  out += "<details><summary>Inputs</summary>" + hashes.text() + "</details>\n";
  out += "<details><summary>Scenario</summary><pre>" + escaped(from.scenario_text) + "</pre></details>\n";
  return out;
}

}  // namespace

std::string report_page(const ReportContent& content) {
  return head_text(content) + recipes_text(content) + memory_section(content) + lengths_section(content) + step_section(content) +
         links_section(content.plan) + reasons_section(content.plan) + provenance_section(content) + "</body></html>\n";
}

}  // namespace cpfit::report
