// One block of attention, forward and backward, by the kernels' own text on the emulator.
#pragma once

#include "../block_case.h"

namespace cpfit::kernels::emulated {

using block_case::Block;
using block_case::Inputs;
using block_case::inputs_of;
using block_case::Tensors;

/// `reversed`: blocks, warps and lanes from the last to the first. By the kernels that the launchers would choose.
[[nodiscard]] Tensors on_emulator(const Block& block, bool reversed);

}  // namespace cpfit::kernels::emulated
