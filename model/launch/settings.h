// Names and values as a script or a configuration file holds them, whatever its syntax. Private to model/launch.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/launch/launch.h"

namespace cpfit::launch {

struct Setting {
  std::string name;
  std::vector<std::string> values;
  std::string where;  // "line 3"
};

struct Settings {
  std::vector<Setting> options;                  // a later one of the same name wins
  std::map<std::string, std::string> variables;  // assigned in the script, exported or not
};

/// Words of shell text: comments, quotes, continuation lines, arrays; NAME=VALUE assigns, $NAME and ${NAME:-default} are
/// replaced by what was assigned. "--name value...", "--name=value" and "group.name=value" become options.
[[nodiscard]] Settings read_words(std::string_view text);
/// Mappings by indentation, with lists in brackets or dashes: "a:\n  b: 1" is "a.b" = 1. The subset configurations use.
[[nodiscard]] Outcome<Settings> read_yaml(std::string_view text);
/// Tables and objects: leaves as "a.b".
[[nodiscard]] Outcome<Settings> read_toml(std::string_view text);
[[nodiscard]] Outcome<Settings> read_json(std::string_view text);

}  // namespace cpfit::launch
