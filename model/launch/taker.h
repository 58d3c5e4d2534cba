// Settings read back into a recipe, one by one. Private to model/launch.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "model/launch/settings.h"

namespace cpfit::launch {

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

/// What the arguments say of the model, in Megatron's names.
[[nodiscard]] LaunchedModel launched_model(Taker& taker);
/// Processes of the job by the launcher's own arguments (torchrun, deepspeed); none when it is not there.
[[nodiscard]] std::optional<std::int64_t> launched_world(Taker& taker);
/// Says that states lie elsewhere than a recipe can say.
void note_offload(LaunchReading& reading, const std::string& name);
/// dp = world / (tp*cp*pp), or a problem.
void resolve_dp(Recipe& recipe, std::optional<std::int64_t> stated, std::optional<std::int64_t> gpus, Taker& taker);

}  // namespace cpfit::launch
