#include "cli/describe/completion.h"

#include <fmt/format.h>

#include <algorithm>

namespace cpfit::cli {

namespace {

std::string joined(const std::vector<std::string>& words, std::string_view between = " ") {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? std::string() : std::string(between)) + word;
  return text;
}

/// What is said in a list beside a word: the first clause, without what shells would read as their own.
std::string short_text(const std::string& description) {
  std::size_t end = description.find('\n');
  for (const char* clause_ends : {". ", ": ", "; ", " ("}) end = std::min(end, description.find(clause_ends));
  std::string text = description.substr(0, end);
  std::erase_if(text, [](char letter) { return std::string_view("'\"[]:`$\\").find(letter) != std::string_view::npos; });
  return text;
}

/// Whether names of files are worth offering as its value.
bool takes_text(const OptionText& option) {
  return !option.value.starts_with("INT") && !option.value.starts_with("UINT") && !option.value.starts_with("FLOAT");
}

std::vector<std::string> names_of(const std::vector<CommandText>& commands) {
  std::vector<std::string> names;
  names.reserve(commands.size());
  for (const CommandText& command : commands) names.push_back(command.path.back());
  return names;
}

std::vector<std::string> choices_of_positionals(const CommandText& command) {
  std::vector<std::string> choices;
  for (const OptionText& positional : command.positionals)
    choices.insert(choices.end(), positional.choices.begin(), positional.choices.end());
  return choices;
}

std::string bash(const CommandText& program) {
  std::string known, values, switches, offers;
  for (const CommandText* command : all_commands(program)) {
    const std::string name = command->name();
    if (command != &program) known += (known.empty() ? "" : "|") + fmt::format("'{}'", name);
    std::vector<std::string> options;
    for (const OptionText& option : command->options) {
      for (const std::string& word : option.names) {
        options.push_back(word);
        if (option.value.empty()) continue;
        const std::string offer = !option.choices.empty() ? fmt::format("words='{}'", joined(option.choices))
                                                          : std::string(takes_text(option) ? "files=yes" : "return");
        values += fmt::format("    '{} {}') {} ;;\n", name, word, offer);
      }
    }
    switches += fmt::format("    '{}') words='{}' ;;\n", name, joined(options));
    std::vector<std::string> offered = names_of(command->commands);
    for (const std::string& choice : choices_of_positionals(*command)) offered.push_back(choice);
    offers += offered.empty() ? fmt::format("    '{}') files=yes ;;\n", name)
                              : fmt::format("    '{}') words='{}' ;;\n", name, joined(offered));
  }
  return fmt::format(
      R"(# bash completion of {0}; written by `{0} completion bash`.
_{0}() {{
  local current=${{COMP_WORDS[COMP_CWORD]}} path={0} words='' files='' i
  COMPREPLY=()
  for ((i = 1; i < COMP_CWORD; i++)); do
    case "$path ${{COMP_WORDS[i]}}" in
    {1}) path="$path ${{COMP_WORDS[i]}}" ;;
    esac
  done
  case "$path ${{COMP_WORDS[COMP_CWORD - 1]}}" in
{2}  esac
  if [[ -z $words$files && $current == -* ]]; then
    case "$path" in
{3}    esac
  elif [[ -z $words$files ]]; then
    case "$path" in
{4}    esac
  fi
  if [[ -n $words ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
  else
    compopt -o filenames 2>/dev/null
    mapfile -t COMPREPLY < <(compgen -f -- "$current")
  fi
}}
complete -F _{0} {0}
)",
      program.path.front(), known, values, switches, offers);
}

std::string function_name(const CommandText& command) { return "_" + joined(command.path, "_"); }

/// A command is a function: its options and positionals, or its options and the commands below it.
std::string zsh_function(const CommandText& command) {
  std::string specifications;
  const auto values = [](const OptionText& option) {
    if (option.value.empty()) return std::string();
    const std::string label = short_text(option.value);
    if (!option.choices.empty()) return fmt::format(":{}:({})", label, joined(option.choices));
    return fmt::format(":{}:{}", label, takes_text(option) ? "_files" : " ");
  };
  for (const OptionText& option : command.options) {
    for (const std::string& name : option.names) {
      specifications +=
          fmt::format(" \\\n    '{}{}[{}]{}'", option.repeats ? "*" : "", name, short_text(option.description), values(option));
    }
  }
  if (command.commands.empty()) {
    for (const OptionText& positional : command.positionals) {
      const std::string action = positional.choices.empty() ? "_files" : "(" + joined(positional.choices) + ")";
      specifications += fmt::format(" \\\n    '{}:{}:{}'", positional.repeats ? "*" : "", positional.names.front(), action);
    }
    return fmt::format("{}() {{\n  _arguments -s{}\n}}\n\n", function_name(command), specifications);
  }
  std::string list, cases;
  for (const CommandText& below : command.commands) {
    list += fmt::format(" {}\\:\"{}\"", below.path.back(), short_text(below.description));
    cases += fmt::format("        {}) {} ;;\n", below.path.back(), function_name(below));
  }
  return fmt::format(
      "{}() {{\n  local line state\n  _arguments -C{} \\\n    '1:command:(({}))' \\\n    '*::argument:->below'\n"
      "  case $state in\n    below)\n      case $line[1] in\n{}      esac ;;\n  esac\n}}\n\n",
      function_name(command), specifications, list, cases);
}

std::string zsh(const CommandText& program) {
  const std::string name = program.path.front();
  std::string script = fmt::format("#compdef {0}\n# zsh completion of {0}; written by `{0} completion zsh`.\n\n", name);
  const std::vector<const CommandText*> commands = all_commands(program);
  // Those below first: a function is known before it is named.
  for (auto command = commands.rbegin(); command != commands.rend(); ++command) script += zsh_function(**command);
  return script + fmt::format("_{0} \"$@\"\n", name);
}

/// fish asks a condition of each offer: at which command the line has come.
std::string fish(const CommandText& program) {
  const std::string name = program.path.front();
  std::string script = fmt::format("# fish completion of {0}; written by `{0} completion fish`.\n", name);
  for (const CommandText* command : all_commands(program)) {
    std::string at;
    for (std::size_t i = 1; i < command->path.size(); ++i)
      at += fmt::format("{}__fish_seen_subcommand_from {}", i == 1 ? "" : "; and ", command->path[i]);
    if (!command->commands.empty()) {
      at += fmt::format("{}not __fish_seen_subcommand_from {}", at.empty() ? "" : "; and ", joined(names_of(command->commands)));
    }
    const std::string head = fmt::format("complete -c {} -n '{}'", name, at);
    for (const CommandText& below : command->commands)
      script += fmt::format("{} -f -a {} -d '{}'\n", head, below.path.back(), short_text(below.description));
    for (const OptionText& positional : command->positionals) {
      if (!positional.choices.empty())
        script += fmt::format("{} -f -a '{}' -d '{}'\n", head, joined(positional.choices), short_text(positional.description));
    }
    for (const OptionText& option : command->options) {
      std::string line = head;
      for (const std::string& word : option.names)
        line += word.starts_with("--") ? " -l " + word.substr(2) : " -s " + word.substr(1);
      if (!option.choices.empty()) {
        line += fmt::format(" -x -a '{}'", joined(option.choices));
      } else if (!option.value.empty()) {
        line += takes_text(option) ? " -r" : " -x";
      }
      script += fmt::format("{} -d '{}'\n", line, short_text(option.description));
    }
  }
  return script;
}

}  // namespace

std::optional<Shell> parse_shell(std::string_view name) {
  if (name == "bash") return Shell::kBash;
  if (name == "zsh") return Shell::kZsh;
  if (name == "fish") return Shell::kFish;
  return std::nullopt;
}

std::string completion(const CommandText& program, Shell shell) {
  switch (shell) {
    case Shell::kBash:
      return bash(program);
    case Shell::kZsh:
      return zsh(program);
    case Shell::kFish:
      return fish(program);
  }
  return {};
}

}  // namespace cpfit::cli
