// cpfit runs import: a bundle verified, then stored.
#include <fmt/format.h>

#include <memory>

#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/json.h"
#include "cli/runs/bundle_review.h"
#include "cli/runs/commands.h"
#include "cli/runs/review_text.h"
#include "cli/terminal.h"
#include "db/store/bundle_store.h"
#include "model/quantity/counted.h"
#include "model/quantity/text_file.h"

namespace cpfit::cli {

namespace {

struct ImportArguments : RunsArguments {
  std::string file;
};

int run_import(const ImportArguments& arguments) {
  const Outcome<std::string> text =
      read_text_file(arguments.file, kMostTableBytes, "bundle.unreadable");  // a million ranks are 50 MB
  if (!text.ok()) return refuse_input(text.problems());
  const Outcome<Bundle> bundle = parse_bundle(*text, arguments.file);
  if (!bundle.ok()) return refuse_input(bundle.problems());
  const BundleReview review = review_bundle(*bundle, arguments.file);
  if (!review.refused.empty()) return refuse_input(review.refused);
  const BundledRecipe& ship = bundle->predicted;
  const std::string id = bundle_id(*text);
  Store store = open_store(arguments.database);
  const bool fresh = save_bundle(store,
                                 {id, bundle->scenario_name, ship.recipe, bundle->tool_version, bundle->rates_version, ship.gpus,
                                  figure_named(ship.figures, "step_seconds"), 0},
                                 *text);
  if (arguments.json) {
    Json json = review_json(review);
    json["bundle"] = id;
    json["recipe"] = ship.recipe;
    json["ranks"] = bundle->mesh.size();
    json["stored"] = fresh;
    print_json(json);
  } else {
    std::string out = fmt::format("Bundle {} of {}: {}\n", id.substr(0, 12), bundle->scenario_name,
                                  fresh ? "verified and stored" : "verified; it was stored before");
    out += wrapped(ship.sentence, 2) + "\n";
    out += fmt::format("{} where the recipe puts them\n", counted(bundle->mesh.size(), "rank")) + review_text(review);
    out += wrapped(bundle->equivalence.sentence, 2) + "\n";
    write_result(out);
  }
  return kDone;
}

}  // namespace

void add_runs_import(CLI::App& runs, int& exit_code) {
  auto arguments = std::make_shared<ImportArguments>();
  CLI::App* command = runs.add_subcommand("import", "Verify a bundle of `runs export`, figure by figure, and store it");
  command->add_option("file", arguments->file, "Bundle")->required()->check(file_name());
  add_runs_options(*command, *arguments);
  command->callback([arguments, &exit_code] { exit_code = run_import(*arguments); });
}

}  // namespace cpfit::cli
