// cpfit runs requalify: which stored recipes are stale, what changed, and whether their verdicts still hold.
#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "cli/exit_code.h"
#include "cli/json.h"
#include "cli/runs/commands.h"
#include "cli/runs/qualification.h"
#include "cli/runs/review_text.h"
#include "cli/terminal.h"
#include "db/query/runs.h"
#include "db/store/bundle_store.h"

namespace cpfit::cli {

namespace {

struct RequalifyArguments : RunsArguments {
  std::vector<std::string> which;
};

/// Everything stored, oldest first, where nothing was named.
Outcome<std::vector<Reference>> references(const RequalifyArguments& arguments, const Store& store) {
  std::vector<Reference> found;
  for (const std::string& word : arguments.which) {
    const Outcome<Reference> reference = parse_reference(word);
    if (!reference.ok()) return reference.problems();
    found.push_back(*reference);
  }
  if (!found.empty()) return found;
  for (const RunSummary& run : list_runs(store)) found.push_back({Reference::Kind::kRun, static_cast<std::int64_t>(run.run), ""});
  std::ranges::reverse(found);
  std::vector<BundleListing> bundles = list_bundles(store);
  std::ranges::reverse(bundles);
  for (const BundleListing& bundle : bundles) found.push_back({Reference::Kind::kBundle, 0, bundle.sha256});
  return found;
}

std::string standing_text(const Qualification& one) {
  switch (one.standing) {
    case Standing::kCurrent:
      return styled("current", Style::kGood);
    case Standing::kHolds:
      return styled("stale; its verdict still holds", Style::kWarn);
    case Standing::kBroken:
      return styled("stale; its verdict no longer holds", Style::kBad);
    case Standing::kUnknown:
      return styled("it cannot be evaluated again", Style::kBad);
    case Standing::kUnfinished:
      break;
  }
  return "not finished: there is no verdict to hold";
}

std::string qualification_text(const Qualification& one) {
  std::string text = fmt::format("{}: {}\n", styled(one.label, Style::kBold), standing_text(one));
  for (const InputChange& change : one.changes) text += wrapped("  " + change_text(change), 6) + "\n";
  for (const MovedRecipe& moved : one.rerun) {
    const std::string what = moved.figures.empty() ? "no figure moved" : moved_text(moved.figures);
    text += wrapped(fmt::format("  {}: {}{}", moved.role,
                                moved.fits_before == moved.fits_now ? "" : moved.fits_before + " is " + moved.fits_now + " now; ",
                                what),
                    6) +
            "\n";
  }
  for (const std::string& sentence : one.broken) text += wrapped("  " + sentence, 6) + "\n";
  for (const std::string& warning : one.warnings) text += wrapped("  note: " + warning, 6) + "\n";
  return text;
}

Json qualification_json(const Qualification& one) {
  Json rerun = Json::array();
  for (const MovedRecipe& moved : one.rerun) {
    rerun.push_back({{"role", moved.role},
                     {"recipe", moved.recipe},
                     {"fits_before", moved.fits_before},
                     {"fits_now", moved.fits_now},
                     {"figures", moved_json(moved.figures)}});
  }
  return {{"label", one.label},
          {"standing", name_of(one.standing)},
          {"stale", one.standing != Standing::kCurrent && one.standing != Standing::kUnfinished},
          {"changes", changes_json(one.changes)},
          {"rerun", rerun},
          {"broken", one.broken},
          {"warnings", one.warnings},
          {"verdict", one.verdict}};
}

int run_requalify(const RequalifyArguments& arguments) {
  const Store store = open_store(arguments.database, {.access = StoreAccess::kRead});
  const Outcome<std::vector<Reference>> which = references(arguments, store);
  if (!which.ok()) return refuse_input(which.problems());
  std::vector<Qualification> found;
  for (const Reference& reference : *which) {
    const Outcome<StoredStudy> study = stored_study(store, reference);
    if (study.ok()) {
      found.push_back(requalify(*study, store));
      continue;
    }
    if (!arguments.which.empty()) return refuse_input(study.problems());
    Qualification unreadable;  // one damaged bundle does not hide what the others say
    unreadable.label = name_of(reference);
    unreadable.standing = Standing::kUnknown;
    for (const Problem& problem : study.problems()) unreadable.broken.push_back(to_text(problem));
    found.push_back(std::move(unreadable));
  }
  const auto count = [&](Standing standing) { return std::ranges::count(found, standing, &Qualification::standing); };
  const bool all_hold = count(Standing::kBroken) == 0 && count(Standing::kUnknown) == 0;
  if (arguments.json) {
    Json rows = Json::array();
    for (const Qualification& one : found) rows.push_back(qualification_json(one));
    print_json({{"database", arguments.database},
                {"all_hold", all_hold},
                {"current", count(Standing::kCurrent)},
                {"stale", count(Standing::kHolds) + count(Standing::kBroken) + count(Standing::kUnknown)},
                {"broken", count(Standing::kBroken) + count(Standing::kUnknown)},
                {"studies", rows}});
    return all_hold ? kDone : kFailed;
  }
  std::string text;
  for (const Qualification& one : found) text += qualification_text(one);
  if (found.empty())
    text = fmt::format("{} holds neither runs nor bundles\n", arguments.database);
  else
    text += fmt::format("{} current, {} stale that hold, {} that do not hold\n", count(Standing::kCurrent),
                        count(Standing::kHolds), count(Standing::kBroken) + count(Standing::kUnknown));
  write_result(text);
  return all_hold ? kDone : kFailed;
}

}  // namespace

void add_runs_requalify(CLI::App& runs, int& exit_code) {
  auto arguments = std::make_shared<RequalifyArguments>();
  CLI::App* command =
      runs.add_subcommand("requalify", "Which stored recipes are stale after a change, and whether they still hold");
  command->add_option("which", arguments->which, "Runs and bundles, e.g. 7 bundle:3f2a (default: all)");
  command->footer(
      "Exit codes: 0 all are current or still hold, 1 a verdict no longer holds or cannot be evaluated again, 2 nothing of that "
      "name.");
  add_runs_options(*command, *arguments);
  command->callback([arguments, &exit_code] { exit_code = run_requalify(*arguments); });
}

}  // namespace cpfit::cli
