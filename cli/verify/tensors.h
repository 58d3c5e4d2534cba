// `cpfit verify emit DIR` and `cpfit verify check DIR`: tensors for, and judgement of, any framework's own run.
#pragma once

#include <CLI/CLI.hpp>

namespace cpfit::cli {

/// Adds both below `verify`.
void add_verify_tensors(CLI::App& verify, int& exit_code);

}  // namespace cpfit::cli
