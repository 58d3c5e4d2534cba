// What a rank computes with, by the name given to --backend.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "kernels/core/operators.h"

namespace cpfit::probe {

/// Those that this program was built with.
[[nodiscard]] std::vector<std::string> backends();
/// Operators that keep their sums in `sum`. Throws Error for a backend that is not in backends().
[[nodiscard]] std::unique_ptr<kernels::Operators> make_operators(const std::string& backend, kernels::Number sum);

}  // namespace cpfit::probe
