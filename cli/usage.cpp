#include "cli/usage.h"

#include <fmt/format.h>

#include <vector>

#include "model/quantity/problem.h"

namespace cpfit::cli {

namespace {

/// The command that the words before the mistake named: cpfit itself, "plan", "runs show" ...
const CLI::App* command_reached(const CLI::App& app) {
  const CLI::App* reached = &app;
  while (!reached->get_subcommands().empty()) reached = reached->get_subcommands().front();
  return reached;
}

std::string full_name(const CLI::App* command) {
  std::string name = command->get_name();
  for (const CLI::App* parent = command->get_parent(); parent != nullptr; parent = parent->get_parent())
    name = parent->get_name() + " " + name;
  return name;
}

std::vector<std::string> subcommand_names(const CLI::App* command) {
  std::vector<std::string> names;
  for (const CLI::App* sub : command->get_subcommands(nullptr)) names.push_back(sub->get_name());
  return names;
}

std::vector<std::string> option_names(const CLI::App* command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command->get_options()) names.push_back(option->get_name());
  return names;
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

}  // namespace

std::string usage_message(const CLI::App& app, const CLI::ParseError& error) {
  const CLI::App* command = command_reached(app);
  const std::string name = full_name(command);
  const std::vector<std::string> left = command->remaining();
  const std::vector<std::string> commands = subcommand_names(command);
  const bool option = !left.empty() && left.front().starts_with("-");
  const bool command_missing = left.empty() && command->get_require_subcommand_min() > 0;
  if (!commands.empty() && !option && (command_missing || !left.empty())) {
    if (left.empty()) return fmt::format("{}: a command is missing\n       it is one of {}\n", name, joined(commands));
    const std::string near = nearest_name(left.front(), commands);
    return fmt::format("{}: there is no command '{}'\n       {}\n", name, left.front(),
                       near.empty() ? "it is one of " + joined(commands) : "did you mean '" + near + "'?");
  }
  std::string repair = fmt::format("see {} --help", name);
  if (option) {
    const std::string near = nearest_name(left.front(), option_names(command));
    if (!near.empty()) repair = fmt::format("did you mean '{}'? All options: {} --help", near, name);
  }
  return fmt::format("{}: {}\n       {}\n", name, error.what(), repair);
}

}  // namespace cpfit::cli
