// A recipe written as arguments, each with its reason; what cannot be written is refused or listed. Private to model/launch.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/launch/launch.h"

namespace cpfit::launch {

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
/// Refuses groups of states that do not divide the data ranks.
[[nodiscard]] bool check_state_shards(Writer& writer, const Recipe& recipe);
/// --nnodes and --nproc-per-node of torchrun, and where its nodes meet.
void add_torchrun(Writer& writer, const LaunchCase& what);
[[nodiscard]] Outcome<Launch> finish(Writer writer, const LaunchCase& what);

}  // namespace cpfit::launch
