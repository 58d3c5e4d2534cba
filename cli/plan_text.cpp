#include "cli/plan_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/terminal.h"
#include "model/quantity/counted.h"
#include "model/quantity/text.h"

namespace cpfit::cli {

namespace {

Style style_of(Fit fit) { return fit == Fit::kFits ? Style::kGood : fit == Fit::kAtRisk ? Style::kWarn : Style::kBad; }

std::string strategy(const Recipe& recipe) {
  if (recipe.cp == 1) return "-";
  std::string text(name_of(recipe.cp_comm));
  if (recipe.cp_comm == CpComm::kA2aP2p) text += fmt::format(" {}x{}", recipe.a2a_degree, recipe.cp / recipe.a2a_degree);
  if (recipe.cp_comm == CpComm::kDoubleRing) text += fmt::format(" {}x{}", recipe.window, recipe.cp / recipe.window);
  return text;
}

std::string percent_of(Seconds part, Seconds whole) { return percent(part / whole); }

Table candidate_table() {
  return Table({{"cp"},
                {"tp"},
                {"pp"},
                {"dp"},
                {"vpp"},
                {"mbs"},
                {"strategy", false},
                {"recompute", false},
                {"sharding", false},
                {"memory"},
                {"fits", false},
                {"step"},
                {"tok/s/GPU"},
                {"MFU"},
                {"CP exposed"},
                {"status", false}});
}

/// Does the candidate fit only because something else than CP changed against the control?
bool other_policy(const Candidate& candidate) {
  return std::any_of(candidate.reasons.begin(), candidate.reasons.end(),
                     [](const std::string& reason) { return reason.find(kNotAGainOfCp) != std::string::npos; });
}

bool any_other_policy(const PlanResult& result) {
  return std::any_of(result.candidates.begin(), result.candidates.end(), other_policy);
}

/// "zero1", "zero1/8" where groups of 8 ranks hold all states.
std::string states(const Recipe& recipe) {
  const std::string_view kind = name_of(recipe.state_sharding);
  return shard_replicas(recipe) > 1 ? fmt::format("{}/{}", kind, recipe.state_shards) : std::string(kind);
}

void add_row(Table& table, const Candidate& c, Style style = Style::kPlain) {
  const Recipe& r = c.recipe;
  table.row({std::to_string(r.cp), std::to_string(r.tp), std::to_string(r.pp), std::to_string(r.dp), std::to_string(r.vpp),
             std::to_string(r.micro_batch), strategy(r), to_text(r.recompute), states(r), print_bytes(c.memory.device),
             styled(std::string(name_of(c.verdict.fit)), style_of(c.verdict.fit)), print_time(c.time.step()),
             fmt::format("{:.0f}", c.tokens_per_second_per_gpu), percent(c.mfu), percent_of(c.time.exposed_cp, c.time.step()),
             (c.status == CandidateStatus::kOk ? std::string() : std::string(name_of(c.status))) + (other_policy(c) ? " *" : "")},
            style);
}

std::string crossover_text(const Crossover& crossover) {
  const auto tokens = [](std::int64_t count) { return print_tokens(Tokens(count)) + " tokens"; };
  const std::string needed = crossover.needed_at_tokens > 0 ? "CP > 1 is needed to fit from " + tokens(crossover.needed_at_tokens)
                                                            : std::string("No length that was tried needs CP > 1 to fit");
  const std::string faster = crossover.faster_at_tokens > 0
                                 ? "CP > 1 is faster than CP = 1 from " + tokens(crossover.faster_at_tokens)
                                 : std::string("CP > 1 is faster than CP = 1 at no length that was tried");
  return wrapped(fmt::format("{}. {}. Held constant: {}.", needed, faster, crossover.held_constant), 2) + "\n";
}

}  // namespace

std::string time_text(const Candidate& candidate) {
  const TimeBreakdown& time = candidate.time;
  const Seconds step = time.step();
  std::string text = fmt::format("step {} (90 % interval: {} to {})\n", print_time(step), print_time(candidate.step_low),
                                 print_time(candidate.step_high));
  Table table({{"part", false}, {"time"}, {"share"}});
  const std::pair<const char*, Seconds> parts[] = {
      {"compute", time.compute},       {"exposed CP", time.exposed_cp}, {"exposed TP", time.exposed_tp},
      {"exposed PP", time.exposed_pp}, {"exposed DP", time.exposed_dp}, {"pipeline bubble", time.bubble},
      {"launch", time.launch},         {"optimizer", time.optimizer},   {"other", time.other}};
  for (const auto& [name, part] : parts) {
    if (part.value() > 0.0) table.row({name, print_time(part), percent_of(part, step)});
  }
  table.row({"sum", print_time(step), percent(1.0)}, Style::kFaint);
  return text + table.text();
}

std::string memory_text(const Candidate& candidate, const std::vector<StageMemory>& stages) {
  const StageMemory& worst = candidate.memory;
  std::string text = fmt::format("memory {} of {} on stage {} in {} (upper bound {}, {})\n", print_bytes(worst.device),
                                 print_bytes(candidate.verdict.capacity), worst.stage, name_of(worst.phase),
                                 print_bytes(candidate.verdict.upper),
                                 styled(std::string(name_of(candidate.verdict.fit)), style_of(candidate.verdict.fit)));
  Table table({{"component", false}, {"at the peak"}, {"share"}});
  for (int i = 0; i < kComponentCount; ++i) {
    const Bytes bytes = worst.components[static_cast<std::size_t>(i)];
    if (bytes.value() <= 0.0) continue;
    table.row({std::string(name_of(static_cast<Component>(i))), print_bytes(bytes), percent(bytes / worst.device)});
  }
  table.row({"sum", print_bytes(worst.device), percent(1.0)}, Style::kFaint);
  text += table.text();
  if (stages.size() > 1) {
    Table by_stage({{"stage"}, {"resident"}, {"forward peak"}, {"backward peak"}, {"peak"}, {"device"}, {"peak in", false}});
    for (const StageMemory& stage : stages) {
      by_stage.row({std::to_string(stage.stage), print_bytes(stage.resident), print_bytes(stage.forward_peak),
                    print_bytes(stage.backward_peak), print_bytes(stage.peak), print_bytes(stage.device),
                    std::string(name_of(stage.phase))});
    }
    text += by_stage.text();
  } else {
    text += fmt::format("resident {}, forward peak {}, backward peak {}, reserved {}\n", print_bytes(worst.resident),
                        print_bytes(worst.forward_peak), print_bytes(worst.backward_peak), print_bytes(worst.reserved));
  }
  return text;
}

std::string ledger_text(const StageLedger& ledger) {
  Table table({{"component", false}, {"tensor", false}, {"bytes"}, {"formula", false}});
  for (const LedgerEntry& entry : ledger.entries) {
    table.row(
        {std::string(name_of(entry.component)), std::string(entry.tensor), print_bytes(entry.bytes), std::string(entry.formula)});
  }
  table.row({"sum", "", print_bytes(ledger.summary.device)}, Style::kFaint);
  return table.text();
}

std::string links_text(const std::vector<LinkLoad>& links, std::size_t limit) {
  // Ranks do alike, so their links do: one line for neighbours in the list that carry and take the same.
  Table table({{"from", false}, {"to", false}, {"bytes per step"}, {"at full rate"}, {"links alike"}});
  std::size_t rows = 0;
  for (std::size_t begin = 0; begin < links.size() && rows < limit; ++rows) {
    std::size_t end = begin;
    while (end < links.size() && links[end].bytes == links[begin].bytes && links[end].busy == links[begin].busy) ++end;
    table.row({links[begin].from, links[begin].to, print_bytes(links[begin].bytes), print_time(links[begin].busy),
               std::to_string(end - begin)});
    begin = end;
  }
  return table.text();
}

namespace {

std::string ranking_text(const PlanResult& result) {
  std::string text = heading("Best recipes (equal-GPU search, one per set of degrees)");
  Table ranking = candidate_table();
  if (result.has_control) add_row(ranking, result.control);
  for (const Candidate& candidate : result.candidates) {
    if (result.has_control && candidate.recipe == result.control.recipe) continue;
    add_row(ranking, candidate, candidate.status == CandidateStatus::kShip ? Style::kBold : Style::kPlain);
  }
  text += ranking.text();
  if (any_other_policy(result)) {
    text += wrapped(
                "Recipes marked * differ from the control in recompute, micro-batch, state sharding or precision and fit only "
                "because of "
                "it: that is not a gain of CP (reasons in --json).",
                2) +
            "\n";
  }
  return text;
}

/// The shortlist as both fidelities see it.
std::string confirmations_text(const PlanResult& result) {
  if (result.confirmations.empty()) return {};
  std::string text = heading("The shortlist on the timeline (every kernel and transfer simulated)");
  Table table({{"cp"}, {"tp"}, {"pp"}, {"dp"}, {"strategy", false}, {"screen"}, {"timeline"}, {"difference"}, {"CP exposed"}});
  std::string notes, skipped;
  for (const TimelineConfirmation& entry : result.confirmations) {
    const Outcome<Recipe> recipe = parse_recipe(entry.recipe, Recipe{});
    if (!recipe.ok()) continue;
    std::vector<std::string> cells{std::to_string(recipe->cp), std::to_string(recipe->tp), std::to_string(recipe->pp),
                                   std::to_string(recipe->dp), strategy(*recipe),          print_time(entry.screen_step)};
    const std::string name = fmt::format("cp={}, tp={}, pp={}, dp={}", recipe->cp, recipe->tp, recipe->pp, recipe->dp);
    if (entry.simulated()) {
      cells.push_back(print_time(entry.step));
      cells.push_back(signed_percent(entry.step / entry.screen_step - 1.0));
      cells.push_back(percent_of(entry.exposed_cp, entry.step));
      if (!entry.disagreement.empty()) notes += wrapped(fmt::format("{}: {}.", name, entry.disagreement), 2) + "\n";
    } else {
      cells.insert(cells.end(), {"-", "-", "-"});
      skipped += fmt::format("{}{} ({})", skipped.empty() ? "" : "; ", name, entry.skipped);
    }
    table.row(std::move(cells), result.ships && entry.recipe == to_text(result.ship.recipe) ? Style::kBold : Style::kPlain);
  }
  if (!skipped.empty()) notes += wrapped("Not simulated: " + skipped + ".", 2) + "\n";
  return text + table.text() + notes;
}

}  // namespace

std::string plan_text(const PlanResult& result, const std::string& proof) {
  std::string text = heading("Verdict") + wrapped(result.answer, 0) + "\n";
  if (result.ships) {
    text += heading("Ship: " + to_text(result.ship.recipe));
    for (const std::string& reason : result.ship.reasons) text += wrapped("note: " + reason, 2) + "\n";
    if (!proof.empty()) text += wrapped(proof, 2) + "\n";
    text += time_text(result.ship) + "\n" + memory_text(result.ship, {});
    if (!result.links.empty() && result.ship.recipe.world() > 1) {
      text += heading("Busiest links under the shipped recipe") + links_text(result.links.front().second, 6);
    }
  }
  if (!result.neighbours.empty()) {
    text += heading("Why not the neighbours");
    for (const Neighbour& neighbour : result.neighbours) text += wrapped("- " + neighbour.sentence, 2) + "\n";
  }
  if (!result.levers.empty()) {
    text += heading("Other levers, by gain");
    for (const Lever& lever : result.levers)
      text += wrapped(fmt::format("- {}: {}; costs: {}", lever.change, lever.gains, lever.costs), 2) + "\n";
  }
  if (!result.crossover.held_constant.empty())
    text += heading("Where context parallelism starts to pay") + crossover_text(result.crossover);
  if (result.stats.considered == 0) {
    return text +
           wrapped(
               "No set of degrees that [search] and [recipe] allow multiplies to the GPUs of the cluster: allow other "
               "values of tp, cp, pp or dp there, or give the cluster other nodes.",
               2) +
           "\n";
  }
  if (result.has_control || !result.candidates.empty()) text += ranking_text(result) + confirmations_text(result);
  if (!result.sweep.empty()) {
    text += heading("Controlled sweep (tp, pp, dp, recompute fixed; CP and with it the GPUs grow)");
    Table sweep({{"cp"}, {"GPUs"}, {"memory"}, {"fits", false}, {"step"}, {"tok/s/GPU"}, {"CP exposed"}});
    for (const SweepPoint& point : result.sweep) {
      const Candidate& c = point.candidate;
      sweep.row({std::to_string(c.recipe.cp), std::to_string(point.gpus), print_bytes(c.memory.device),
                 styled(std::string(name_of(c.verdict.fit)), style_of(c.verdict.fit)), print_time(c.time.step()),
                 fmt::format("{:.0f}", c.tokens_per_second_per_gpu), percent_of(c.time.exposed_cp, c.time.step())});
    }
    text += sweep.text();
  }
  std::string rejected;
  for (const auto& [rule, count] : result.stats.rejected_by_rule)
    rejected += fmt::format("{}{} {}", rejected.empty() ? "" : ", ", count, rule);
  text +=
      "\n" +
      styled(wrapped(fmt::format("{} considered, {} legal, {} screened in {:.2f} s. Rejected by rule: {}.",
                                 counted(result.stats.considered, "recipe"), result.stats.legal, result.stats.evaluated,
                                 result.stats.seconds,

                                 rejected.empty() ? "none" : rejected) +
                         (result.confirmations.empty() ? "" : fmt::format(" Timeline: {:.2f} s.", result.stats.timeline_seconds)),
                     2),
             Style::kFaint) +
      "\n";
  return text;
}

}  // namespace cpfit::cli
