#include "cli/describe/command_text.h"

#include <CLI/CLI.hpp>

namespace cpfit::cli {

namespace {

/// "TEXT:{json,csv}" takes two values and no other.
std::vector<std::string> choices_in(const std::string& type) {
  const std::size_t open = type.find('{'), close = type.rfind('}');
  std::vector<std::string> choices;
  if (open == std::string::npos || close == std::string::npos || close < open) return choices;
  std::string word;
  for (const char letter : type.substr(open + 1, close - open - 1)) {
    if (letter == ',') {
      choices.push_back(std::exchange(word, {}));
    } else {
      word += letter;
    }
  }
  choices.push_back(word);
  return choices;
}

OptionText describe(const CLI::Option& option) {
  OptionText text;
  if (option.get_positional()) text.names.push_back(option.get_name(true));
  for (const std::string& name : option.get_snames()) text.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) text.names.push_back("--" + name);
  if (option.get_expected_max() > 0 && option.get_type_size_max() > 0) {
    text.value = option.get_type_name();
    text.choices = choices_in(text.value);
    // The type's own word stands before what a check adds: "TEXT:FILE".
    if (const std::size_t colon = text.value.rfind(':'); colon != std::string::npos && text.choices.empty())
      text.value = text.value.substr(colon + 1);
    if (!text.choices.empty()) text.value = "CHOICE";
  }
  text.description = option.get_description();
  text.standard = option.get_default_str();
  text.required = option.get_required();
  text.repeats = option.get_expected_max() > 1;
  return text;
}

CommandText describe_below(const CLI::App& app, std::vector<std::string> path) {
  CommandText text;
  path.push_back(app.get_name());
  text.path = std::move(path);
  text.description = app.get_description();
  text.footer = app.get_footer();
  text.needs_command = app.get_require_subcommand_min() > 0;
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_group().empty()) continue;
    (option->get_positional() ? text.positionals : text.options).push_back(describe(*option));
  }
  for (const CLI::App* command : app.get_subcommands(nullptr)) {
    if (!command->get_group().empty()) text.commands.push_back(describe_below(*command, text.path));
  }
  return text;
}

void collect(const CommandText& command, std::vector<const CommandText*>& all) {
  all.push_back(&command);
  for (const CommandText& below : command.commands) collect(below, all);
}

}  // namespace

std::string CommandText::name() const {
  std::string text;
  for (const std::string& word : path) text += (text.empty() ? "" : " ") + word;
  return text;
}

CommandText describe(const CLI::App& app) { return describe_below(app, {}); }

std::vector<const CommandText*> all_commands(const CommandText& command) {
  std::vector<const CommandText*> all;
  collect(command, all);
  return all;
}

}  // namespace cpfit::cli
