// cpfit ask oom: what an out-of-memory message comes from.
#include <fmt/format.h>

#include <cmath>
#include <iostream>
#include <iterator>

#include "cli/ask/questions.h"
#include "cli/exit_code.h"
#include "cli/json.h"
#include "cli/terminal.h"
#include "model/launch/launch.h"
#include "model/quantity/text.h"
#include "model/quantity/text_file.h"
#include "sim/ask/oom.h"

namespace cpfit::cli {

namespace {

/// The recipe that a job's arguments say, on the scenario's GPUs where they do not state their number.
std::optional<std::string> recipe_of_job(const AskArguments& arguments) {
  const Outcome<LaunchFormat> format = parse_launch_format(arguments.format);
  if (!format.ok()) {
    print_problems(format.problems());
    return std::nullopt;
  }
  const Outcome<Scenario> scenario = load_scenario(arguments.scenario);
  if (!scenario.ok()) {
    print_problems(scenario.problems());
    return std::nullopt;
  }
  const Outcome<std::string> text = read_text_file(arguments.job, kMostWrittenBytes, "ask.file");
  if (!text.ok()) {
    print_problems(text.problems());
    return std::nullopt;
  }
  Outcome<LaunchReading> reading = read_launch(*format, *text, std::nullopt, scenario->model.layers);
  if (!reading.ok() && reading.problems().front().code == "launch.world_unknown")
    reading = read_launch(*format, *text, scenario->cluster.gpus(), scenario->model.layers);
  if (!reading.ok()) {
    print_argument_problems(arguments.job, reading.problems());
    return std::nullopt;
  }
  Recipe recipe = reading->recipe;
  if (starts(*format, scenario->base.framework)) recipe.framework = scenario->base.framework;
  return to_complete_text(recipe);
}

Json amount_json(const std::optional<Bytes>& amount) { return amount ? Json(std::llround(amount->value())) : Json(nullptr); }

}  // namespace

int ask_oom(const AskArguments& arguments) {
  std::string pasted = arguments.message;
  if (pasted == "-") pasted.assign(std::istreambuf_iterator<char>(std::cin), std::istreambuf_iterator<char>());
  const Outcome<ask::OomMessage> message = ask::parse_oom(pasted);
  if (!message.ok()) {
    print_problems(message.problems());
    return kBadInput;
  }
  ask::OomDiagnosis diagnosis = ask::diagnose(*message);
  std::optional<CalibrationUse> calibration;
  if (!arguments.scenario.empty()) {
    AskArguments known_job = arguments;
    if (!arguments.job.empty()) {
      const std::optional<std::string> recipe = recipe_of_job(arguments);
      if (!recipe) return kBadInput;
      known_job.recipe = *recipe;
    }
    const std::unique_ptr<Asked> asked = ask_about(known_job);
    if (!asked) return kBadInput;
    Outcome<ask::OomDiagnosis> known = ask::diagnose(*message, *asked->bench, asked->study.scenario.base);
    if (!known.ok()) {
      print_argument_problems("--recipe", known.problems());
      return kBadInput;
    }
    diagnosis = std::move(known).value();
    warn_of(*asked, diagnosis.predicted);
    warn_of(*asked, diagnosis.change);
    calibration = asked->study.calibration;
  }
  if (arguments.json) {
    Json tensors = Json::array();
    for (const ask::TensorMatch& match : diagnosis.tensors)
      tensors.push_back({{"tensor", match.tensor}, {"formula", match.formula}, {"bytes", std::llround(match.bytes.value())}});
    print_json({{"answer", diagnosis.sentence},
                {"cause", name_of(diagnosis.cause)},
                {"message",
                 {{"tried_bytes", std::llround(message->tried.value())},
                  {"capacity_bytes", amount_json(message->capacity)},
                  {"free_bytes", amount_json(message->free)},
                  {"allocated_bytes", amount_json(message->allocated)},
                  {"cached_bytes", amount_json(message->cached())},
                  {"outside_bytes", amount_json(message->outside())},
                  {"other_processes_bytes", amount_json(message->other_processes())}}},
                {"tensors", tensors},
                {"where", diagnosis.where},
                {"repair", diagnosis.repair},
                {"expected", diagnosis.expected},
                {"changed_keys", diagnosis.changed},
                {"predicted", candidate_or_null(diagnosis.predicted)},
                {"change", candidate_or_null(diagnosis.change)},
                {"calibration", calibration_json(calibration)}});
    return kDone;
  }
  std::string text = wrapped(fmt::format("Most likely: {}.", diagnosis.sentence), 2) + "\n";
  for (const ask::TensorMatch& match : diagnosis.tensors)
    text += wrapped(fmt::format("{} is the size of {} ({} = {})", print_bytes(message->tried), match.tensor, match.formula,
                                print_bytes(match.bytes)),
                    2) +
            "\n";
  if (!diagnosis.where.empty()) text += wrapped(diagnosis.where, 2) + "\n";
  text += wrapped(fmt::format("Do: {}.", diagnosis.repair), 2) + "\n";
  if (!diagnosis.expected.empty()) text += wrapped(fmt::format("Expected: {}.", diagnosis.expected), 2) + "\n";
  write_result(text + calibration_text(calibration));
  return kDone;
}

}  // namespace cpfit::cli
