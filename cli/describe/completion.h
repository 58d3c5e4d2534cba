// Completion of command lines by bash, zsh and fish, from what the commands say of themselves.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "cli/describe/command_text.h"

namespace cpfit::cli {

enum class Shell : std::uint8_t { kBash, kZsh, kFish };
[[nodiscard]] std::optional<Shell> parse_shell(std::string_view name);  // "bash", "zsh", "fish"

/// A script that the shell reads from its folder of completions. Commands, options, the values of those that take only certain
/// ones; elsewhere names of files.
[[nodiscard]] std::string completion(const CommandText& program, Shell shell);

}  // namespace cpfit::cli
