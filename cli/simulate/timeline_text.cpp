#include "cli/simulate/timeline_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "cli/terminal.h"
#include "model/quantity/counted.h"
#include "model/quantity/text.h"
#include "sim/plan/timeline_summary.h"
#include "sim/timeline/lanes.h"

namespace cpfit::cli {

namespace {

constexpr std::size_t kPathParts = 8;
constexpr std::size_t kLinks = 8;

std::string time_of(engine::Picoseconds time) { return time == 0 ? "-" : print_time(engine::to_seconds(time)); }

/// "-" for what is no part of `whole`: both fidelities round kernels to picoseconds in their own places.
std::string signed_time(Seconds time, Seconds whole) {
  if (std::abs(time / whole) < 1e-7) return "-";
  return (time.value() < 0.0 ? "-" : "+") + print_time(Seconds(std::abs(time.value())));
}

std::string upper(std::string_view word) {
  std::string text(word);
  for (char& letter : text) letter = static_cast<char>(letter >= 'a' && letter <= 'z' ? letter - 'a' + 'A' : letter);
  return text;
}

std::string axis_name(engine::TrafficAxis axis) {
  return axis == engine::TrafficAxis::kForeign ? "other job" : upper(timeline::name_of(axis));
}

struct Compared {
  const char* title;  // of the other run's column
  const TimeBreakdown& other;
  const TimeBreakdown& now;
};

std::string parts_text(const Compared& compared, bool other_first) {
  const TimeBreakdown &a = compared.now, &b = compared.other;
  std::vector<Table::Column> columns{{"part", false}};
  if (other_first) columns.push_back({compared.title});
  columns.push_back({other_first ? "disturbed" : "timeline"});
  columns.push_back({"share"});
  if (!other_first) columns.push_back({compared.title});
  columns.push_back({"difference"});
  Table table(columns);
  struct Part {
    const char* name;
    Seconds now, other;
  };
  const Part parts[] = {{"compute", a.compute, b.compute},
                        {"exposed CP", a.exposed_cp, b.exposed_cp},
                        {"exposed TP", a.exposed_tp, b.exposed_tp},
                        {"exposed PP", a.exposed_pp, b.exposed_pp},
                        {"exposed DP", a.exposed_dp, b.exposed_dp},
                        {"pipeline bubble", a.bubble, b.bubble},
                        {"launch", a.launch, b.launch},
                        {"optimizer", a.optimizer, b.optimizer},
                        {"other", a.other, b.other}};
  const auto row = [&](const char* name, Seconds now, Seconds other, Style style) {
    std::vector<std::string> cells{name};
    const auto cell = [](Seconds time) { return time.value() == 0.0 ? std::string("-") : print_time(time); };
    if (other_first) cells.push_back(cell(other));
    cells.push_back(cell(now));
    cells.push_back(percent(now / a.step()));
    if (!other_first) cells.push_back(cell(other));
    cells.push_back(signed_time(now - other, a.step()));
    table.row(std::move(cells), style);
  };
  for (const Part& part : parts) {
    if (part.now.value() != 0.0 || part.other.value() != 0.0) row(part.name, part.now, part.other, Style::kPlain);
  }
  row("sum", a.step(), b.step(), Style::kFaint);
  return table.text();
}

std::string change(Seconds now, Seconds other) { return signed_percent(now / other - 1.0); }

std::string head_text(const SimulatedStep& step) {
  const Candidate& candidate = step.now.candidate;
  const Seconds now = candidate.time.step();
  std::string text;
  if (step.quiet) {
    const Seconds quiet = step.quiet->candidate.time.step();
    text += fmt::format("step {} disturbed, {} undisturbed ({}), on the timeline\n", print_time(now), print_time(quiet),
                        change(now, quiet));
    for (const std::string& disturbance : step.disturbances) text += styled(wrapped("  " + disturbance, 4), Style::kWarn) + "\n";
    text += parts_text({"quiet", step.quiet->candidate.time, candidate.time}, true);
    if (step.quiet->answer.rank != step.now.answer.rank) {
      const auto rank = [&](std::int32_t index) { return step.places[static_cast<std::size_t>(index)].rank; };
      text += wrapped(fmt::format("Parts are those of the rank that ends last: rank {} disturbed, rank {} before.",
                                  rank(step.now.answer.rank), rank(step.quiet->answer.rank)),
                      2) +
              "\n";
    }
  } else {
    const Seconds screened = step.now.screened.time.step();
    text +=
        fmt::format("step {} on the timeline, {} on the screen ({}); 90 % interval: {} to {}\n", print_time(now),
                    print_time(screened), change(now, screened), print_time(candidate.step_low), print_time(candidate.step_high));
    text += parts_text({"screen", step.now.screened.time, candidate.time}, false);
    if (const std::string why = disagreement(step.now, kAgreement); !why.empty())
      text += styled(wrapped("note: " + why + ".", 2), Style::kWarn) + "\n";
  }
  for (const std::string& note : step.notes) text += wrapped("note: " + note, 2) + "\n";
  return text;
}

std::string communication_text(const SimulatedStep& step) {
  const timeline::StepAnswer& answer = step.now.answer;
  const timeline::RankAnswer& rank = answer.ranks[static_cast<std::size_t>(answer.rank)];
  if (rank.rows.empty()) return {};
  const timeline::RankPlace& place = step.places[static_cast<std::size_t>(answer.rank)];
  std::string text =
      heading(fmt::format("Communication of rank {} (node {}, stage {}), which ends last", place.rank, place.node, place.stage));
  Table table({{"axis", false},
               {"pass", false},
               {"count"},
               {"moved"},
               {"busy"},
               {"hidden"},
               {"exposed"},
               {"= running"},
               {"+ waiting"},
               {"+ slowed"}});
  for (const timeline::ExposureRow& row : by_axis_and_pass(rank)) {
    table.row({axis_name(row.axis), std::string(name_of(static_cast<SpanPass>(row.pass))), std::to_string(row.transfers),
               print_bytes(Bytes(std::max(row.bytes_sent, row.bytes_received))), time_of(row.busy), time_of(row.hidden),
               time_of(row.exposed()), time_of(row.running), time_of(row.waiting), time_of(row.stretch)});
  }
  text += table.text() + wrapped("Exposed: this rank waited while one ran, waited for the peer, or its kernels were slowed.", 2) +
          "\n";
  if (answer.ranks.size() < 2) return text;
  const auto name = [&](std::int32_t index) { return step.places[static_cast<std::size_t>(index)].rank; };
  std::string spans;
  for (const AxisSpan& span : axis_spans(answer)) {
    spans += spans.empty() ? "" : "; ";
    if (span.most == span.least)
      spans += fmt::format("{} {}", axis_name(span.axis), print_time(span.most));
    else
      spans += fmt::format("{} {} (rank {}) to {} (rank {})", axis_name(span.axis), print_time(span.least), name(span.least_rank),
                           print_time(span.most), name(span.most_rank));
  }
  return text + wrapped(fmt::format("Exposed on the {} simulated ranks: {}.", answer.ranks.size(), spans), 2) + "\n";
}

std::string path_text(const SimulatedStep& step) {
  const timeline::History history = step.now.history();
  const std::vector<PathPart> parts = path_parts(history, timeline::critical_path(history));
  const Seconds whole = step.now.candidate.time.step();
  std::string text = heading("Critical path: each of these began when the one before it ended");
  Table table({{"kind", false}, {"links"}, {"time"}, {"share"}, {"of it slowed"}});
  Seconds rest;
  std::int64_t rest_links = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const PathPart& part = parts[i];
    if (i >= kPathParts) {
      rest += part.time;
      rest_links += part.links;
      continue;
    }
    table.row({part.name, std::to_string(part.links), print_time(part.time), percent(part.time / whole),
               part.stretch.value() == 0.0 ? "-" : print_time(part.stretch)});
  }
  if (rest_links > 0)
    table.row({counted(parts.size() - kPathParts, "other kind"), std::to_string(rest_links), print_time(rest),
               percent(rest / whole), ""},
              Style::kFaint);
  return text + table.text() + wrapped(path_sentence(parts), 2) + "\n";
}

std::string busiest_text(const SimulatedStep& step) {
  const std::vector<LinkLoad>& links = step.now.links;
  if (links.empty()) return {};
  const Seconds whole = step.now.candidate.time.step();
  Table table({{"from", false}, {"to", false}, {"bytes"}, {"busy"}, {"of the step"}, {"alike"}});
  std::size_t rows = 0;
  for (std::size_t begin = 0; begin < links.size() && rows < kLinks; ++rows) {
    std::size_t end = begin;
    while (end < links.size() && print_bytes(links[end].bytes) == print_bytes(links[begin].bytes) &&
           print_time(links[end].busy) == print_time(links[begin].busy))
      ++end;
    table.row({links[begin].from, links[begin].to, print_bytes(links[begin].bytes), print_time(links[begin].busy),
               percent(links[begin].busy / whole), std::to_string(end - begin)});
    begin = end;
  }
  return heading("Busiest of " + counted(links.size(), "link")) + table.text();
}

/// Only a pipeline has phases worth telling apart.
std::string phases_text(const SimulatedStep& step) {
  if (step.now.candidate.recipe.pp <= 1) return {};
  const StepPhases phases = step_phases(step.now.history());
  return wrapped(
             fmt::format(
                 "The pipeline fills for {} (warm-up), all stages work for {}, it drains for {}; gradients and optimizer {}.",
                 print_time(phases.filling), print_time(phases.steady), print_time(phases.draining), print_time(phases.update)),
             2) +
         "\n";
}

std::string alive_text(const StagePeak& peak) {
  constexpr std::size_t kParts = 3;
  std::string text = fmt::format("Alive then on stage {}:", peak.stage);
  for (std::size_t i = 0; i < std::min(kParts, peak.parts.size()); ++i) {
    const StagePeak::Part& part = peak.parts[i];
    text += fmt::format("{} {} {}", i == 0 ? "" : ",", print_bytes(part.bytes), part.name);
    if (part.tensors <= part.micro_batches) continue;
    text += fmt::format(" ({} in {})", counted(part.tensors, "layer"), counted(part.micro_batches, "micro-batch"));
  }
  return wrapped(text + ".", 2) + "\n";
}

std::string memory_text(const SimulatedStep& step) {
  if (step.memory.tracks.empty()) return {};
  Table table({{"stage"}, {"rank"}, {"allocated peak"}, {"at"}, {"resident"}, {"comes and goes"}});
  std::string alive;
  for (const StagePeak& peak : stage_peaks(step.memory, step.now.step->ranks)) {
    table.row({std::to_string(peak.stage), std::to_string(step.places[static_cast<std::size_t>(peak.rank)].rank),
               print_bytes(peak.peak), print_time(peak.time), print_bytes(peak.resident),
               print_bytes(peak.peak - peak.resident)});
    if (!peak.parts.empty()) alive += alive_text(peak);
  }
  return heading("Memory over time: the highest peak of each stage") + table.text() + alive;
}

std::string shifts_text(const SimulatedStep& step) {
  if (!step.quiet) return {};
  const std::vector<LinkShift> shifts = link_shifts(step.quiet->links, step.now.links);
  if (shifts.empty()) return {};
  Table table({{"from", false}, {"to", false}, {"busy, quiet"}, {"disturbed"}, {"difference"}, {"bytes, quiet"}, {"disturbed"}});
  for (std::size_t i = 0; i < shifts.size() && i < kLinks; ++i) {
    const LinkShift& shift = shifts[i];
    table.row({shift.from, shift.to, print_time(shift.before.busy), print_time(shift.after.busy),
               signed_time(shift.after.busy - shift.before.busy, step.now.candidate.time.step()), print_bytes(shift.before.bytes),
               print_bytes(shift.after.bytes)});
  }
  return heading(fmt::format("Links whose busy time changed most, of {}", shifts.size())) + table.text();
}

}  // namespace

std::string timeline_text(const SimulatedStep& step) {
  const std::string first =
      step.first ? wrapped(first_step_sentence(*step.first, step.now.candidate.time), 2) + "\n" : std::string();
  return head_text(step) + phases_text(step) + first + communication_text(step) + path_text(step) + busiest_text(step) +
         shifts_text(step) + memory_text(step);
}

}  // namespace cpfit::cli
