// cpfit calibrate suggest: which probes would make the shortlist's interval smaller, and how long they take.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>

#include "cli/calibrate/commands.h"
#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/study.h"
#include "cli/terminal.h"
#include "model/quantity/text.h"
#include "sim/plan/plan.h"
#include "sim/plan/uncertainty.h"
#include "sim/screen/composition.h"

namespace cpfit::cli {

namespace {

struct SuggestArguments {
  std::string scenario, calibration, database;
  std::size_t top = 5;
  bool json = false;
};

/// What a fitted curve of one's own machine misses by: the kernel tables' median hold-out error of 3 %, as a standard deviation.
constexpr double kMeasuredSigma = 1.4826 * 0.03;

/// How a probe is started for this cluster, and what it takes. Minutes: points of the probe's plan on a GPU, each at most a
/// second to settle (docs/calibrate.md).
struct ProbeRun {
  std::string command;
  double minutes = 0;
};
ProbeRun run_of(ProbeKind probe, std::int64_t ranks) {
  static const std::map<ProbeKind, double> kMinutes = {
      {ProbeKind::kAttention, 12}, {ProbeKind::kGemm, 4},        {ProbeKind::kMemory, 1}, {ProbeKind::kLaunch, 0.2},
      {ProbeKind::kMessages, 2},   {ProbeKind::kCollectives, 6}, {ProbeKind::kOverlap, 2}};
  const double minutes = kMinutes.at(probe);
  const bool together = probe == ProbeKind::kMessages || probe == ProbeKind::kCollectives || probe == ProbeKind::kOverlap;
  const std::string bench =
      fmt::format("cpfit-bench --backend cuda --probe {} --budget {:g} --out {}.json", name_of(probe), minutes, name_of(probe));
  return {together ? fmt::format("mpirun -n {} {}", ranks, bench) : bench, minutes};
}

/// What one probe would tell about, over the shortlist.
struct Suggestion {
  ProbeKind probe = ProbeKind::kGemm;
  double before = 0, after = 0;  // sigma of the step, mean over the shortlist
  std::vector<const UncertainSurface*> surfaces;
};

std::vector<Suggestion> suggestions_of(const std::vector<StepUncertainty>& steps) {
  std::map<ProbeKind, Suggestion> by_probe;
  for (const StepUncertainty& step : steps) {
    for (const UncertainSurface& surface : step.surfaces) {
      Suggestion& one = by_probe[surface.probe];
      one.probe = surface.probe;
      const auto known =
          std::find_if(one.surfaces.begin(), one.surfaces.end(), [&](const auto* s) { return s->surface == surface.surface; });
      if (known == one.surfaces.end())
        one.surfaces.push_back(&surface);
      else if ((*known)->variance < surface.variance)
        *known = &surface;
    }
  }
  std::vector<Suggestion> all;
  for (auto& [probe, one] : by_probe) {
    for (const StepUncertainty& step : steps) {
      double variance = step.sigma() * step.sigma();
      one.before += step.sigma() / static_cast<double>(steps.size());
      for (const UncertainSurface& surface : step.surfaces) {
        if (surface.probe != probe) continue;
        const double then = std::min(surface.sigma, kMeasuredSigma) * surface.sensitivity;
        variance += then * then - surface.variance;
      }
      one.after += std::sqrt(std::max(0.0, variance)) / static_cast<double>(steps.size());
    }
    std::stable_sort(one.surfaces.begin(), one.surfaces.end(),
                     [](const auto* a, const auto* b) { return a->variance > b->variance; });
    all.push_back(one);
  }
  // What shrinks the interval most for its minutes stands first; what shrinks it by less than a thousandth is no suggestion.
  std::erase_if(all, [](const Suggestion& one) { return one.before - one.after < 1e-3; });
  std::stable_sort(all.begin(), all.end(),
                   [](const Suggestion& a, const Suggestion& b) { return a.before - a.after > b.before - b.after; });
  return all;
}

std::string_view evidence_text(Evidence evidence) {
  return evidence == Evidence::kMeasured ? "measured" : evidence == Evidence::kFitted ? "fitted" : "assumed";
}

int run_suggest(const SuggestArguments& arguments) {
  std::optional<Study> study = load_study(arguments.scenario, arguments.calibration, arguments.database);
  if (!study) return kBadInput;
  PlanOptions options;
  options.top = arguments.top;
  options.crossover = false;
  options.timeline = false;
  std::optional<ProgressBar> bar;
  if (!arguments.json) {
    bar.emplace("screening");
    options.controls.progress = [&](double share) { bar->update(share); };
  }
  Outcome<PlanResult> planned = plan(study->scenario, study->rates, options);
  bar.reset();
  Outcome<Workbench> bench = Workbench::build(study->scenario, study->rates);
  if (!planned.ok() || !bench.ok()) {
    print_problems(planned.ok() ? bench.problems() : planned.problems());
    return kBadInput;
  }
  std::vector<std::string> shortlist;
  std::vector<StepUncertainty> steps;
  for (const Candidate& candidate : planned.value().candidates) {
    if (steps.size() >= arguments.top) break;
    Outcome<StepUncertainty> step = step_uncertainty(bench.value(), candidate.recipe);
    if (!step.ok()) continue;
    shortlist.push_back(to_text(candidate.recipe));
    steps.push_back(std::move(step).value());
  }
  if (steps.empty()) {
    fmt::print(stderr, "cpfit: no recipe fits: there is no shortlist whose interval could be made smaller\n");
    return kNothingFits;
  }
  const std::vector<Suggestion> suggestions = suggestions_of(steps);
  const std::int64_t ranks = std::min<std::int64_t>(study->scenario.cluster.gpus(), 2 * study->scenario.cluster.gpus_per_node);

  Json list = Json::array();
  Table table({{"probe", false}, {"minutes"}, {"step now"}, {"then"}, {"tells about", false}});
  std::string commands;
  for (const Suggestion& one : suggestions) {
    const ProbeRun run = run_of(one.probe, ranks);
    Json surfaces = Json::array();
    std::string about;
    for (const UncertainSurface* surface : one.surfaces) {
      if (surface->variance < 1e-6) continue;
      surfaces.push_back({{"surface", surface->surface},
                          {"sigma", surface->sigma},
                          {"sensitivity", surface->sensitivity},
                          {"variance", surface->variance},
                          {"evidence", std::string(evidence_text(surface->evidence))},
                          {"outside_range", surface->outside}});
      about +=
          fmt::format("{}{} (±{}, {}{})", about.empty() ? "" : "; ", surface->surface, percent(kNinetyPercent * surface->sigma),
                      evidence_text(surface->evidence), surface->outside.empty() ? "" : ", outside: " + surface->outside.front());
    }
    list.push_back({{"probe", std::string(name_of(one.probe))},
                    {"command", run.command},
                    {"minutes", run.minutes},
                    {"step_interval_now", kNinetyPercent * one.before},
                    {"step_interval_then", kNinetyPercent * one.after},
                    {"surfaces", surfaces}});
    table.row({std::string(name_of(one.probe)), fmt::format("{:g}", run.minutes), "±" + percent(kNinetyPercent * one.before),
               "±" + percent(kNinetyPercent * one.after), about});
    commands += "  " + run.command + "\n";
  }
  const double composition = kNinetyPercent * steps.front().composition;
  if (arguments.json) {
    print_json({{"shortlist", shortlist},
                {"composition_interval", composition},
                {"suggestions", list},
                {"calibration", calibration_json(study->calibration)}});
    return kDone;
  }
  std::string text = fmt::format(
      "Step time of the {} best recipes, 90 % interval: ±{} of it, ±{} of that from putting the parts together, which no "
      "probe changes.\n\n",
      steps.size(), percent(kNinetyPercent * steps.front().sigma()), percent(composition));
  text = wrapped(text, 0);
  if (suggestions.empty())
    text += "No probe would make it smaller by a tenth of a percent.\n";
  else
    text += table.text() + "\n" + commands +
            fmt::format("  cpfit calibrate fit *.json --name {} --db calibrations.db\n", study->scenario.cluster.name);
  write_result(text + calibration_text(study->calibration));
  return kDone;
}

}  // namespace

void add_calibrate_suggest(CLI::App& command, int& exit_code) {
  auto arguments = std::make_shared<SuggestArguments>();
  CLI::App* suggest = command.add_subcommand("suggest", "The probes that would make a scenario's interval smaller, with minutes");
  suggest->add_option("scenario", arguments->scenario, "Scenario file")->required();
  suggest->add_option("--calibration", arguments->calibration, "Rates that are known already, as for plan")->check(file_name());
  suggest->add_option("--db", arguments->database, "SQLite file with calibrations")->check(file_name());
  suggest->add_option("--top", arguments->top, "Recipes of the shortlist")->capture_default_str()->check(CLI::Range(1, 100));
  suggest->add_flag("--json", arguments->json, "Print one JSON object");
  suggest->callback([arguments, &exit_code] { exit_code = run_suggest(*arguments); });
}

}  // namespace cpfit::cli
