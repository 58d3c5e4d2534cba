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

/// Takes settings one by one; what nobody took is passed over. Mistakes are kept.
class Taker {
 public:
  explicit Taker(const Settings& settings);
  [[nodiscard]] const Setting* take(const std::string& name);
  /// A positive whole number; `otherwise` when not named. A mistake is a problem.
  [[nodiscard]] std::int64_t number(const std::string& name, std::int64_t otherwise);
  [[nodiscard]] std::optional<std::int64_t> number(const std::string& name);
  /// A switch, or true and false.
  [[nodiscard]] bool flag(const std::string& name, bool otherwise = false);
  [[nodiscard]] std::string word(const std::string& name, const std::string& otherwise = "");
  [[nodiscard]] std::vector<std::int64_t> numbers(const std::string& name);
  [[nodiscard]] bool has(const std::string& name) const;
  [[nodiscard]] std::optional<std::string> variable(const std::string& name) const;
  void problem(const std::string& code, const std::string& where, const std::string& message, const std::string& repair);
  [[nodiscard]] std::vector<std::string> rest() const;
  Problems problems;

 private:
  const Settings& settings_;
  std::map<std::string, const Setting*> last_;
  std::map<std::string, bool> taken_;
};

/// Processes of the job by the launcher's own arguments (torchrun, deepspeed); none when it is not there.
[[nodiscard]] std::optional<std::int64_t> launched_world(Taker& taker);
/// dp = world / (tp*cp*pp), or a problem.
void resolve_dp(Recipe& recipe, std::optional<std::int64_t> stated, std::optional<std::int64_t> gpus, Taker& taker);

struct Writer {
  Launch launch;
  Problems problems;
  void add(const std::string& name, std::vector<std::string> values, const std::string& key, const std::string& reason);
  void number(const std::string& name, std::int64_t value, const std::string& key, const std::string& reason);
  /// The framework cannot follow this choice: the recipe is refused.
  void cannot(const std::string& key, const std::string& value, const std::string& reason, const std::string& repair);
  /// To be set outside the arguments.
  void elsewhere(const std::string& key, const std::string& value, const std::string& reason);
  /// Differs from the default, and nothing depends on it.
  void without_effect(const std::string& key, const std::string& value, const std::string& reason);
  void refuse(const std::string& code, const std::string& where, const std::string& message, const std::string& repair);
};
/// Lists values that differ from the default and that nothing of the job depends on: they do not come back. Refuses interleaving
/// on one stage.
void list_without_effect(Writer& writer, const Recipe& recipe, ShardLayout shards_as);
/// Lists what the training asks for that no argument here holds: packed documents, another mask or optimizer.
void list_training(Writer& writer, const Training& training);
/// Refuses a rule set of another framework; false then.
[[nodiscard]] bool check_framework(Writer& writer, const Recipe& recipe);
/// --nnodes and --nproc-per-node of torchrun.
void add_torchrun(Writer& writer, const LaunchCase& what);
[[nodiscard]] Outcome<Launch> finish(Writer writer, const LaunchCase& what);

/// With the names of Megatron-LM; write_bridge renames them.
[[nodiscard]] Outcome<Launch> write_megatron(const LaunchCase& what, LaunchFormat as = LaunchFormat::kMegatron);
[[nodiscard]] Outcome<LaunchReading> read_megatron(const Settings& settings, std::optional<std::int64_t> gpus, LaunchFormat as);
[[nodiscard]] Outcome<Launch> write_bridge(const LaunchCase& what);
[[nodiscard]] Outcome<LaunchReading> read_bridge(const Settings& settings, std::optional<std::int64_t> gpus);
[[nodiscard]] Outcome<Launch> write_torchtitan(const LaunchCase& what);
[[nodiscard]] Outcome<LaunchReading> read_torchtitan(const Settings& settings, std::optional<std::int64_t> gpus,
                                                     std::int64_t layers);
[[nodiscard]] Outcome<Launch> write_deepspeed(const LaunchCase& what);
[[nodiscard]] Outcome<LaunchReading> read_deepspeed(const Settings& settings, std::optional<std::int64_t> gpus);

}  // namespace cpfit::launch
