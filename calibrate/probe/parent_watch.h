// A rank must not outlive its launcher: when mpirun is killed it cannot take its ranks along.
#pragma once

#include <thread>

namespace cpfit::probe {

/// Looks twice a second, on a thread of its own; ends this process when its parent is another than at the start.
[[nodiscard]] std::jthread end_with_parent();

}  // namespace cpfit::probe
