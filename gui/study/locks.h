// Choices that a person holds: the program may look for alternatives in all others. No widget.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "gui/study/design.h"
#include "model/quantity/problem.h"
#include "model/record/candidate.h"
#include "model/record/run.h"

namespace cpfit::gui {

using Locks = std::set<std::string, std::less<>>;  // keys of parameters

/// Every choice of the recipe. What is asked (model, cluster, sequence, batch) is never searched.
[[nodiscard]] bool is_lockable(std::string_view key);

/// "CP is locked at 4", code gui.locked; the repair says where to unlock it.
[[nodiscard]] Problem locked_problem(std::string_view key, const Recipe& recipe);
/// The first locked choice that `to` has otherwise; empty: all are kept.
[[nodiscard]] Problems broken_locks(const Locks& locks, const Recipe& from, const Recipe& to);
/// `to` with the locked choices of `from`.
[[nodiscard]] Recipe with_locked(const Recipe& to, const Locks& locks, const Recipe& from);

/// Which degree follows so that all GPUs are used: `wished` unless it is locked, else the first that is not, of dp, cp, tp, pp;
/// empty where all four are.
[[nodiscard]] std::string derived_within(const Locks& locks, const std::string& wished);

/// The recipe that ships of those that keep what is locked in `now`: the search's own rule on fewer candidates. None: none does.
[[nodiscard]] std::optional<Candidate> ship_within(const std::vector<Candidate>& evaluated, const Requirements& requirements,
                                                   const Locks& locks, const Recipe& now);

/// Without the levers that turn a locked choice.
[[nodiscard]] std::vector<Lever> levers_within(const std::vector<Lever>& levers, const Locks& locks);

/// "CP 4, TP 2": what is held, for sentences.
[[nodiscard]] std::string locks_text(const Locks& locks, const Recipe& recipe);

}  // namespace cpfit::gui
