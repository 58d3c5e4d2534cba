// cpfit runs reproduce: a stored verification repeated in several processes, or a stored run planned again, and compared.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <thread>

#include "cli/exit_code.h"
#include "cli/json.h"
#include "cli/runs/commands.h"
#include "cli/runs/review_text.h"
#include "cli/runs/stored_study.h"
#include "cli/runs/suite_match.h"
#include "cli/terminal.h"
#include "cli/verify/backend.h"
#include "cli/verify/record.h"
#include "db/store/verification_store.h"
#include "sim/plan/plan.h"

namespace cpfit::cli {

namespace {

struct ReproduceArguments : RunsArguments {
  std::string which;
  std::string backend = "mpi";
};

/// A stored case beside the same one now.
struct RepeatedCase {
  std::string name;
  bool passed_then = false, passed_now = false;
  std::vector<FigureChange> errors;  // normwise, that are not the same bit for bit
  std::string trouble;
};

struct Repetition {
  std::vector<RepeatedCase> cases;
  std::vector<std::string> unknown;  // stored cases that this cpfit's suites do not hold
  std::string fixture_then, fixture_now;
  [[nodiscard]] bool same_fixtures() const { return fixture_then == fixture_now; }
  [[nodiscard]] std::int64_t exact() const {
    return std::ranges::count_if(cases,
                                 [](const RepeatedCase& one) { return one.errors.empty() && one.passed_then == one.passed_now; });
  }
  [[nodiscard]] bool agrees() const {
    return unknown.empty() && same_fixtures() &&
           std::ranges::all_of(cases, [](const RepeatedCase& one) { return one.passed_then == one.passed_now; });
  }
};

std::vector<Figure> errors_of(const VerifiedCase& one) {
  std::vector<Figure> errors;
  for (int i = 0; i < kVerifiedTensors; ++i) {
    const TensorError& error = one.errors[static_cast<std::size_t>(i)];
    if (error.judged) errors.push_back({std::string(name_of(static_cast<VerifiedTensor>(i))), error.normwise});
  }
  return errors;
}

/// The cases of a stored verification as the suite makes them, in the stored order.
std::vector<kernels::Case> cases_again(const Verification& stored, Repetition& repetition,
                                       std::vector<const VerifiedCase*>& matched) {
  const std::map<std::string, kernels::Case> known = suite_by_key(stored.suite, filter_of(stored.cases));
  std::vector<kernels::Case> cases;
  for (const VerifiedCase& one : stored.cases) {
    const auto found = known.find(case_key(one));
    if (found == known.end()) {
      repetition.unknown.push_back(case_key(one));
      continue;
    }
    cases.push_back(found->second);
    matched.push_back(&one);
  }
  return cases;
}

Json repetition_json(const Repetition& repetition, std::int64_t id, const std::string& backend) {
  Json differing = Json::array();
  for (const RepeatedCase& one : repetition.cases) {
    if (one.errors.empty() && one.passed_then == one.passed_now) continue;
    differing.push_back({{"case", one.name},
                         {"passed_then", one.passed_then},
                         {"passed_now", one.passed_now},
                         {"errors", moved_json(one.errors)},
                         {"trouble", one.trouble}});
  }
  return {{"verification", id},
          {"backend", backend},
          {"reproduced", repetition.agrees()},
          {"cases", repetition.cases.size()},
          {"bit_for_bit", repetition.exact()},
          {"differing", differing},
          {"unknown_cases", repetition.unknown},
          {"fixture_hash_then", repetition.fixture_then},
          {"fixture_hash_now", repetition.fixture_now}};
}

std::string repetition_text(const Repetition& repetition, std::int64_t id, const std::string& backend) {
  std::string text = fmt::format("Verification {} repeated ({}): {} of {} cases equal bit for bit, fixtures {}\n", id,
                                 backend == "reference" ? "ranks as threads" : "processes of cpfit-bench", repetition.exact(),
                                 repetition.cases.size(), repetition.same_fixtures() ? "the same" : "not the same");
  constexpr std::size_t kMost = 8;
  std::size_t shown = 0;
  for (const RepeatedCase& one : repetition.cases) {
    if (one.errors.empty() && one.passed_then == one.passed_now) continue;
    if (++shown > kMost) continue;
    const std::string verdict = one.passed_then == one.passed_now ? ""
                                : one.passed_now                  ? "failed then, passes now; "
                                                                  : "passed then, fails now; ";
    text += wrapped(fmt::format("  {}: {}{}{}", one.name, verdict, moved_text(one.errors), one.trouble), 4) + "\n";
  }
  if (shown > kMost) text += fmt::format("  and {} more\n", shown - kMost);
  for (const std::string& name : repetition.unknown) text += wrapped("  not in this cpfit's suites: " + name, 4) + "\n";
  return text + (repetition.agrees() ? "Reproduced\n" : "Not reproduced\n");
}

int waive(const ReproduceArguments& arguments, const std::string& reason) {
  if (arguments.json) print_json({{"waived", reason}, {"backend", arguments.backend}});
  fmt::print(stderr, "cpfit: waived: {}\n", reason);
  return kWaived;
}

int reproduce_verification(const ReproduceArguments& arguments, const Store& store, std::int64_t id) {
  const Outcome<Verification> stored = load_verification(store, VerificationId{id});
  if (!stored.ok()) return refuse_input(stored.problems());
  if (stored->suite == "check") {
    return waive(arguments,
                 fmt::format("verification {} judged tensors of {}: only that program makes them again; then cpfit verify check",
                             id, stored->implementation));
  }
  Repetition repetition;
  std::vector<const VerifiedCase*> matched;
  const std::vector<kernels::Case> cases = cases_again(*stored, repetition, matched);
  repetition.fixture_then = stored->fixture_hash;
  repetition.fixture_now = kernels::hash_of_fixtures(cases);
  std::optional<ProgressBar> bar;
  if (!arguments.json) bar.emplace("repeating");
  const auto progress = [&](double share) {
    if (bar) bar->update(share);
  };
  kernels::TruthShelf shelf;
  const int threads = static_cast<int>(std::clamp(std::thread::hardware_concurrency(), 1U, 16U));
  const BackendRun run = arguments.backend == "reference" ? BackendRun{kernels::run_cases(cases, shelf, threads, progress), ""}
                                                          : run_on_processes(cases, arguments.backend, shelf, progress);
  bar.reset();
  if (!run.waived.empty()) return waive(arguments, run.waived);
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const VerifiedCase now = to_record(run.reports[i]);
    repetition.cases.push_back({case_key(*matched[i]), matched[i]->passed, now.passed,
                                changed_figures(errors_of(*matched[i]), errors_of(now)), now.trouble});
  }
  if (arguments.json)
    print_json(repetition_json(repetition, id, arguments.backend));
  else
    write_result(repetition_text(repetition, id, arguments.backend));
  return repetition.agrees() ? kDone : kFailed;
}

/// What a plan says, by name: its recipes, figures and sentences, without what follows the machine's clock.
std::vector<std::string> differing_parts(const PlanResult& then, const PlanResult& now) {
  std::vector<std::string> parts;
  const auto compare = [&](const char* name, bool same) {
    if (!same) parts.emplace_back(name);
  };
  compare("whether a recipe ships", then.ships == now.ships);
  if (then.ships && now.ships) {
    compare("shipped recipe", then.ship.recipe == now.ship.recipe);
    compare("figures of the shipped recipe", figures_of(then.ship) == figures_of(now.ship));
  }
  compare("control",
          then.has_control == now.has_control && (!now.has_control || figures_of(then.control) == figures_of(now.control)));
  compare("answer", then.answer == now.answer);
  compare("neighbours", then.neighbours == now.neighbours);
  compare("levers", then.levers == now.levers);
  compare("front", then.front == now.front);
  compare("controlled sweep", then.sweep == now.sweep);
  compare("timeline", then.confirmations == now.confirmations);
  compare("counts of the search", then.stats.considered == now.stats.considered && then.stats.legal == now.stats.legal &&
                                      then.stats.evaluated == now.stats.evaluated &&
                                      then.stats.rejected_by_rule == now.stats.rejected_by_rule);
  return parts;
}

int reproduce_run(const ReproduceArguments& arguments, const Store& store, const Reference& reference) {
  const Outcome<StoredStudy> study = stored_study(store, reference);
  if (!study.ok()) return refuse_input(study.problems());
  if (!study->scenario) return refuse_input(study->scenario_trouble);
  if (study->status != "done")
    return refuse_input(
        {{"runs.unfinished", study->label, "the run has no verdict to reproduce", "finish it: cpfit plan with its scenario"}});
  if (study->calibrated && !study->calibration) {
    return waive(arguments, fmt::format("the calibration '{}' ({}) of {} is not in {}", study->calibration_name,
                                        study->calibration_id.substr(0, 12), study->label, store.path()));
  }
  const Outcome<RateSet> rates = rates_of(study->calibration ? &*study->calibration : nullptr, *study->scenario);
  if (!rates.ok()) return refuse_input(rates.problems());
  const PlanResult& then = *study->plan;
  PlanOptions options;
  options.top = std::max<std::size_t>(1, then.candidates.size());
  options.timeline = !then.confirmations.empty();
  options.crossover = !then.crossover.held_constant.empty();
  const Outcome<PlanResult> now = plan(*study->scenario, *rates, options);
  if (!now.ok()) return refuse_input(now.problems());
  const std::vector<std::string> parts = differing_parts(then, *now);
  const std::vector<FigureChange> moved =
      then.ships && now->ships ? changed_figures(figures_of(then.ship), figures_of(now->ship)) : std::vector<FigureChange>{};
  if (arguments.json) {
    print_json({{"run", reference.number},
                {"reproduced", parts.empty()},
                {"parts_that_differ", parts},
                {"ship_then", then.ships ? Json(to_complete_text(then.ship.recipe)) : Json(nullptr)},
                {"ship_now", now->ships ? Json(to_complete_text(now->ship.recipe)) : Json(nullptr)},
                {"figures", moved_json(moved)}});
  } else {
    std::string text = parts.empty() ? fmt::format("{} planned again: the same, bit for bit\n", study->label)
                                     : fmt::format("{} planned again, not the same:\n", study->label);
    for (const std::string& part : parts) text += "  " + part + "\n";
    if (!moved.empty()) text += wrapped("  " + moved_text(moved), 4) + "\n";
    if (!parts.empty())
      text += fmt::format("What changed since: cpfit runs requalify {} --db {}\n", reference.number, arguments.database);
    write_result(text);
  }
  return parts.empty() ? kDone : kFailed;
}

int run_reproduce(const ReproduceArguments& arguments) {
  const Outcome<Reference> reference = parse_reference(arguments.which);
  if (!reference.ok()) return refuse_input(reference.problems());
  const Store store = open_store(arguments.database, {.access = StoreAccess::kRead});
  if (reference->kind == Reference::Kind::kVerification) return reproduce_verification(arguments, store, reference->number);
  if (reference->kind == Reference::Kind::kBundle) {
    return refuse_input({{"runs.reference", name_of(*reference), "a bundle is no search that could be repeated",
                          "its figures: cpfit runs requalify " + arguments.which}});
  }
  return reproduce_run(arguments, store, *reference);
}

}  // namespace

void add_runs_reproduce(CLI::App& runs, int& exit_code) {
  auto arguments = std::make_shared<ReproduceArguments>();
  CLI::App* command =
      runs.add_subcommand("reproduce", "Repeat a stored verification in several processes, or a run, and compare");
  command->add_option("which", arguments->which, "verification:2, or the number of a run")->required();
  command
      ->add_option("--backend", arguments->backend,
                   "Where a verification is repeated. mpi: processes of cpfit-bench; reference: ranks as threads; cuda: GPUs")
      ->capture_default_str()
      ->check(CLI::IsMember({"mpi", "reference", "cuda"}));
  command->footer(
      "Exit codes: 0 reproduced, 1 not the same, 2 nothing of that name, 4 waived (no MPI here, another program's tensors).");
  add_runs_options(*command, *arguments);
  command->callback([arguments, &exit_code] { exit_code = run_reproduce(*arguments); });
}

}  // namespace cpfit::cli
