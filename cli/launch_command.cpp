// cpfit launch: a recipe as the arguments of a real training job, and back.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <memory>

#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/json.h"
#include "cli/launch_against.h"
#include "cli/study.h"
#include "cli/terminal.h"
#include "cli/write_file.h"
#include "db/query/runs.h"
#include "model/cluster/device_order.h"
#include "model/launch/launch.h"
#include "model/quantity/text_file.h"
#include "model/recipe/legality.h"

namespace cpfit::cli {

namespace {

struct LaunchArguments {
  std::string scenario, read, out, format, database = "cpfit.sqlite";
  std::optional<std::string> recipe;
  std::int64_t run = 0, gpus = 0, layers = 0;
  bool json = false;
};

std::optional<Scenario> launch_scenario(Outcome<Scenario> loaded) {
  if (loaded.ok()) return std::move(loaded).value();
  print_problems(loaded.problems());
  return std::nullopt;
}

/// What the recipe breaks on this scenario's cluster; its case, for the figures of the cluster.
Problems launch_violations(const Scenario& scenario, const Recipe& recipe, LaunchCase& what) {
  const Outcome<RuleSet> rules = find_framework(recipe.framework);
  if (!rules.ok()) return rules.problems();
  LegalityCase legal = legality_case(scenario, *rules, recipe);
  legal.search_limits = false;
  what.recipe = recipe;
  what.training = scenario.training;
  what.layers = scenario.model.layers;
  what.gpus_per_node = scenario.cluster.gpus_per_node;
  what.generation = scenario.cluster.gpu.generation;
  for (const std::vector<std::int32_t>& order : scenario.cluster.device_orders)
    what.device_orders.push_back(device_order_text(order));
  what.devices_variable = devices_variable(scenario.cluster);
  return explain_violations(legal);
}

std::string script_of(const Launch& launch, const LaunchArguments& arguments) {
  return arguments.out.empty() ? to_text(launch) : to_annotated_text(launch);
}

void save_launch(const std::string& text, const std::string& path) {
  write_file(path, [&](std::ostream& file) { file << text; });
}

std::string setting_text(const LaunchVariable& row) {
  if (!row.by_node.empty()) return fmt::format("{}={} in turns", row.name, fmt::join(row.by_node, " and "));
  return row.name + (row.value.empty() ? " unset" : "=" + row.value);
}

void print_launch(const Launch& launch, const Recipe& recipe, const LaunchArguments& arguments) {
  std::string out = arguments.out.empty() ? to_text(launch) : fmt::format("written to {}\n", arguments.out);
  const bool planned = arguments.run != 0 || !arguments.recipe;
  out += heading(planned ? "Recipe: what plan ships" : "Recipe") + to_text(recipe) + "\n";
  out += heading("Why");
  for (const LaunchVariable& row : launch.environment)
    out += wrapped(fmt::format("{}: {}", setting_text(row), row.reason), 2) + "\n";
  for (const LaunchArgument& row : launch.arguments)
    out += wrapped(fmt::format("{}: {}", fmt::join(words_of(row), " "), row.reason), 2) + "\n";
  for (const bool elsewhere : {true, false}) {
    std::string rows;
    for (const Unexpressed& row : launch.unexpressed) {
      if (row.elsewhere != elsewhere) continue;
      const std::string choice = row.recipe_key == "training" ? row.value : fmt::format("{}={}", row.recipe_key, row.value);
      rows += wrapped(fmt::format("{}: {}", choice, row.reason), 2) + "\n";
    }
    if (!rows.empty())
      out += heading(elsewhere ? "To be set outside these arguments" : "Not written, without effect here") + rows;
  }
  out +=
      "\n" + wrapped(fmt::format("Names as in {}. The model's own arguments are yours.", names_read_in(launch.format)), 2) + "\n";
  write_result(out);
}

Json launch_json(const Launch& launch) {
  Json rows = Json::array(), environment = Json::array(), missing = Json::array();
  for (const LaunchArgument& row : launch.arguments)
    rows.push_back({{"name", row.name},
                    {"values", row.values},
                    {"recipe_key", row.recipe_key},
                    {"of_launcher", row.of_launcher},
                    {"reason", row.reason}});
  for (const LaunchVariable& row : launch.environment)
    environment.push_back({{"name", row.name},
                           {"value", row.value.empty() ? Json(nullptr) : Json(row.value)},
                           {"by_node", row.by_node},
                           {"reason", row.reason}});
  for (const Unexpressed& row : launch.unexpressed)
    missing.push_back(
        {{"recipe_key", row.recipe_key}, {"value", row.value}, {"reason", row.reason}, {"set_elsewhere", row.elsewhere}});
  return {{"format", name_of(launch.format)},
          {"names_read_in", names_read_in(launch.format)},
          {"gpus", launch.world},
          {"arguments", rows},
          {"environment", environment},
          {"unexpressed", missing},
          {"text", to_text(launch)}};
}

/// What a stored run ships, over the scenario it stored.
std::optional<std::pair<Scenario, Recipe>> shipped(const LaunchArguments& arguments, int& exit_code) {
  exit_code = kBadInput;
  const Store store = open_store(arguments.database, {.access = StoreAccess::kRead});
  const Outcome<PlanResult> result = load_run(store, RunId{arguments.run});
  if (!result.ok()) {
    print_problems(result.problems());
    return std::nullopt;
  }
  if (!result->ships) {
    print_problems({{"launch.nothing_ships", arguments.database, fmt::format("run {} ships no recipe", arguments.run),
                     "look at it with cpfit runs show, or name a scenario and --recipe"}});
    exit_code = kNothingFits;
    return std::nullopt;
  }
  std::optional<Scenario> scenario =
      launch_scenario(read_scenario(result->provenance.scenario_text, result->provenance.scenario_path));
  if (!scenario) return std::nullopt;
  return std::pair(std::move(*scenario), result->ship.recipe);
}

int write_job(const LaunchArguments& arguments, LaunchFormat format) {
  std::optional<Scenario> scenario;
  Recipe recipe;
  if (arguments.run != 0) {
    int exit_code = kDone;
    std::optional<std::pair<Scenario, Recipe>> stored = shipped(arguments, exit_code);
    if (!stored) return exit_code;
    scenario = std::move(stored->first);
    recipe = stored->second;
  } else {
    std::optional<Study> study = load_study(arguments.scenario);
    if (!study) return kBadInput;
    recipe = study->scenario.base;
    if (!arguments.recipe) {
      const std::optional<ChosenRecipe> chosen = choose_recipe(std::nullopt, *study);
      if (!chosen) return kBadInput;
      if (!chosen->fits) {
        print_problems({{"launch.nothing_ships", arguments.scenario, "no recipe fits, so there is none to launch",
                         "ask cpfit plan why, or name one with --recipe"}});
        return kNothingFits;
      }
      recipe = chosen->recipe;
    }
    scenario = std::move(study->scenario);
  }
  const Outcome<Recipe> parsed =
      arguments.recipe ? parse_recipe_on(*arguments.recipe, recipe, scenario->cluster.gpus()) : Outcome<Recipe>(recipe);
  if (!parsed.ok()) {
    print_argument_problems("--recipe", parsed.problems());
    return kBadInput;
  }
  LaunchCase what;
  if (const Problems problems = launch_violations(*scenario, *parsed, what); !problems.empty()) {
    print_argument_problems("--recipe", problems);
    return kBadInput;
  }
  const Outcome<Launch> launch = write_launch(format, what);
  if (!launch.ok()) {
    print_argument_problems("--recipe", launch.problems());
    return kBadInput;
  }
  save_launch(script_of(*launch, arguments), arguments.out);
  if (arguments.json) {
    Json body = launch_json(*launch);
    body["recipe"] = to_complete_text(*parsed);
    body["out"] = arguments.out.empty() ? Json(nullptr) : Json(arguments.out);
    print_json(std::move(body));
  } else {
    print_launch(*launch, *parsed, arguments);
  }
  return kDone;
}

Outcome<LaunchReading> read_with(const LaunchArguments& arguments, LaunchFormat format, const std::string& text,
                                 const std::optional<Scenario>& scenario) {
  const std::int64_t layers = arguments.layers > 0 || !scenario ? arguments.layers : scenario->model.layers;
  const std::optional<std::int64_t> gpus = arguments.gpus > 0 ? std::optional(arguments.gpus) : std::nullopt;
  Outcome<LaunchReading> reading = read_launch(format, text, gpus, layers);
  if (reading.ok() || gpus || !scenario || reading.problems().front().code != "launch.world_unknown") return reading;
  return read_launch(format, text, scenario->cluster.gpus(), layers);  // the job of this scenario uses all its GPUs
}

Json model_json(const LaunchedModel& model) {
  Json json = Json::object();
  const auto add = [&](const char* key, const auto& value) {
    if (value) json[key] = *value;
  };
  add("layers", model.layers);
  add("hidden", model.hidden);
  add("ffn_hidden", model.ffn_hidden);
  add("heads", model.heads);
  add("kv_heads", model.kv_heads);
  add("head_dim", model.head_dim);
  add("vocab", model.vocab);
  add("parameters", model.parameters);
  return json;
}

Json notes_json(const Problems& notes) {
  Json rows = Json::array();
  for (const Problem& note : notes)
    rows.push_back({{"code", note.code}, {"where", note.where}, {"message", note.message}, {"repair", note.repair}});
  return rows;
}

int read_job(const LaunchArguments& arguments, LaunchFormat format) {
  std::optional<Scenario> scenario;
  if (!arguments.scenario.empty()) {
    scenario = launch_scenario(load_scenario(arguments.scenario));
    if (!scenario) return kBadInput;
  }
  const Outcome<std::string> text = read_text_file(arguments.read, kMostWrittenBytes, "launch.file");
  if (!text.ok()) {
    print_problems(text.problems());
    return kBadInput;
  }
  Outcome<LaunchReading> outcome = read_with(arguments, format, *text, scenario);
  if (!outcome.ok()) {
    print_argument_problems(arguments.read, outcome.problems());
    return kBadInput;
  }
  LaunchReading reading = std::move(outcome).value();
  Recipe base;
  if (scenario) {
    base = scenario->base;
    if (starts(format, base.framework)) reading.recipe.framework = base.framework;
    if (format == LaunchFormat::kDeepspeed) reading.recipe.recompute = base.recompute;  // no key of the file holds it
    for (Problem& note : against_scenario(format, reading, *scenario)) reading.notes.push_back(std::move(note));
    LaunchCase what;
    if (const Problems problems = launch_violations(*scenario, reading.recipe, what); !problems.empty()) {
      print_argument_problems(arguments.read, problems);
      return kBadInput;
    }
  }
  if (!reading.notes.empty()) print_problems(reading.notes);
  if (arguments.json) {
    print_json({{"format", name_of(format)},
                {"recipe", to_complete_text(reading.recipe)},
                {"sequence_tokens", reading.sequence ? Json(reading.sequence->count()) : Json(nullptr)},
                {"global_batch", reading.global_batch ? Json(*reading.global_batch) : Json(nullptr)},
                {"gpus", reading.recipe.world()},
                {"model", model_json(reading.model)},
                {"visible_devices", reading.device_orders},
                {"passed_over", reading.passed_over},
                {"notes", notes_json(reading.notes)}});
    return kDone;
  }
  std::string out = to_text(reading.recipe, base) + "\n";
  if (reading.sequence) out += fmt::format("sequence {} tokens\n", reading.sequence->count());
  if (reading.global_batch) out += fmt::format("global batch {}\n", *reading.global_batch);
  if (!reading.passed_over.empty())
    out += wrapped(fmt::format("Says nothing of a recipe: {}", fmt::join(reading.passed_over, ", ")), 2) + "\n";
  write_result(out);
  return kDone;
}

int run_launch(const LaunchArguments& arguments) {
  const Outcome<LaunchFormat> format = parse_launch_format(arguments.format);
  if (!format.ok()) {
    print_problems(format.problems());
    return kBadInput;
  }
  if (!arguments.read.empty()) return read_job(arguments, *format);
  if (arguments.run == 0 && arguments.scenario.empty()) {
    print_problems({{"launch.nothing", "", "neither a scenario, nor a stored run, nor a file to read",
                     "name SCENARIO (and a recipe of your own by --recipe), or --run N, or --read FILE"}});
    return kBadInput;
  }
  return write_job(arguments, *format);
}

}  // namespace

void add_launch(CLI::App& app, int& exit_code) {
  auto arguments = std::make_shared<LaunchArguments>();
  CLI::App* command = app.add_subcommand("launch", "Arguments of the real training job for a recipe, and back");
  CLI::Option* scenario = command->add_option("scenario", arguments->scenario, "Scenario file");
  command->add_option("--format", arguments->format, "megatron, bridge, torchtitan or deepspeed")->required();
  command->add_option(
      "--recipe", arguments->recipe,
      "Recipe to launch, e.g. \"tp=2,cp=4,pp=1,dp=1\"; missing keys take the scenario's values (default: what plan ships)");
  CLI::Option* run = command->add_option("--run", arguments->run, "Number of a stored run: what it ships is launched")
                         ->excludes(scenario)
                         ->check(CLI::PositiveNumber);
  command->add_option("--db", arguments->database, "SQLite file of the run")->capture_default_str()->needs(run);
  CLI::Option* out =
      command->add_option("--out", arguments->out, "File for the script or configuration, with the reasons as comments")
          ->check(file_name());
  CLI::Option* read = command->add_option("--read", arguments->read, "Script, argument list or configuration to read back")
                          ->excludes(run)
                          ->excludes(out)
                          ->check(file_name());
  command
      ->add_option("--gpus", arguments->gpus, "Processes of the job, where the text does not say (default: the scenario's GPUs)")
      ->needs(read)
      ->check(CLI::Range(1, 1 << 24));
  command->add_option("--layers", arguments->layers, "Layers of the model, where the text counts them per stage")
      ->needs(read)
      ->check(CLI::Range(1, 1 << 20));
  command->add_flag("--json", arguments->json, "Print one JSON object");
  command->callback([arguments, &exit_code] { exit_code = run_launch(*arguments); });
}

}  // namespace cpfit::cli
