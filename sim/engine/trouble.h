// What can be wrong with a program that a person's scenario led to, in that person's words. Private to the engine.
#pragma once

#include <span>

#include "model/quantity/problem.h"
#include "sim/engine/program.h"

namespace cpfit::engine {

/// "engine.no_rate", one Problem per resource: activities with an amount whose cap is zero, or that draw on a resource of
/// capacity zero. Names the first such activity and counts the others. Empty when every activity can move.
[[nodiscard]] Problems without_rate(const Program& program);

/// "engine.cycle": why nothing can happen although activities are left. `done`: (activities) nonzero for those that have ended.
/// The cycle is found by following, from the unfinished activity of lowest id, the unfinished one of lowest id that each waits
/// for.
[[nodiscard]] Problem waits_in_cycle(const Program& program, std::span<const std::uint8_t> done);

/// "engine.no_period": a section that stands for more copies than it holds never reached the same state twice.
[[nodiscard]] Problem without_period(const Program& program, const Section& section);

/// "engine.too_long": the clock's end (26 days) was reached. Names the first activity that was running.
[[nodiscard]] Problem too_long(const Program& program, std::span<const Picoseconds> start, std::span<const Picoseconds> end);

/// Aborts with the value: a program that breaks its own rules is our mistake.
[[noreturn]] void mistake(const char* what, long long value);

}  // namespace cpfit::engine
