// Published measurements as cpfit's own values: a row of a table of ../shared/published becomes a MeasuredRun (a training step),
// a MeasuredKernel (one operator or collective) or a SkippedRow with the reason. A table is recognised by its columns. What
// differs between sources enters as a physical input with a name (rule set, attention kernel's era, overlap flags, cluster,
// stall of that software), never as a factor.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "model/quantity/problem.h"
#include "model/record/validation.h"

namespace cpfit {

/// Reads a table. Every data line ends in exactly one of runs, kernels, skipped. Problems: the file cannot be read, malformed
/// CSV, columns of no known table (the message names the nearest).
[[nodiscard]] Outcome<MeasuredTable> read_published(const std::string& path);

/// The same from text; `path` is used in messages.
[[nodiscard]] Outcome<MeasuredTable> read_published_text(std::string_view text, const std::string& path);

/// The families of tables that read_published recognises, in the order in which they are tried.
[[nodiscard]] std::vector<std::string> published_families();

}  // namespace cpfit
