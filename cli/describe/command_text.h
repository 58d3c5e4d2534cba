// What the commands say of themselves, as values: read from the same tree that parses arguments and prints --help, so that the
// manual page and the shells' completion cannot say something else.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace cpfit::cli {

struct OptionText {
  std::vector<std::string> names;    // "-h", "--help"; of a positional its one bare name
  std::string value;                 // what follows: "TEXT", "FILE", "INT in [2 - 64]"; empty: a switch
  std::vector<std::string> choices;  // where only these values are taken
  std::string description;
  std::string standard;  // value when absent; empty: none is said
  bool required = false;
  bool repeats = false;  // takes several values
};

struct CommandText {
  std::vector<std::string> path;  // "cpfit", "runs", "list"
  std::string description;        // one paragraph or several lines
  std::string footer;
  std::vector<OptionText> options, positionals;
  std::vector<CommandText> commands;
  bool needs_command = false;

  [[nodiscard]] std::string name() const;  // "cpfit runs list"
};

/// Of `app` and all below it, in the order of --help. Options that --help hides are left out.
[[nodiscard]] CommandText describe(const CLI::App& app);

/// `command` and all below it, parents first.
[[nodiscard]] std::vector<const CommandText*> all_commands(const CommandText& command);

}  // namespace cpfit::cli
