// One rank that is its own neighbour: every message of a batch goes to itself, the i-th send into the i-th receive, whatever
// their peers. What it computes is no attention; it is for timing a rank's part of a ring on one GPU.
#pragma once

#include <memory>

#include "kernels/core/transport.h"

namespace cpfit::kernels {

/// A transport of `size` ranks whose rank is 0. Copies with the operators, in their order. Borrows them.
[[nodiscard]] std::unique_ptr<Transport> make_loopback(Operators& operators, std::int32_t size);

}  // namespace cpfit::kernels
