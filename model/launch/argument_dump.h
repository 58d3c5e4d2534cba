// The block of arguments that Megatron-LM prints when a job starts, as the arguments that would start it again: read_launch then
// reads a recipe from it. The block names what argparse stores (dest), after validate_args filled in what was not given;
// a switch is True or False, and some names differ from their option (fp8 of --fp8-format, overlap_p2p_comm of
// --no-overlap-p2p-communication). Read in megatron/training/arguments.py (307dcf3, 000c4ac).
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace cpfit {

using ArgumentDump = std::vector<std::pair<std::string, std::string>>;  // name, value as printed

/// Arguments of the recipe only. For read_launch(LaunchFormat::kMegatron, text, world_size of the block).
[[nodiscard]] std::string launch_text_of(const ArgumentDump& dump);

/// The value of a name; empty when it is not there or None.
[[nodiscard]] std::string value_in(const ArgumentDump& dump, const std::string& name);

}  // namespace cpfit
