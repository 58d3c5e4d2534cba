// One block of attention, forward and backward, by the kernels' own text on the emulator, and by the CPU operators in fp64 from
// the same rounded inputs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/core/operators.h"

namespace cpfit::kernels::emulated {

struct Block {
  std::string name;
  Number number = Number::kBf16;
  Heads heads;
  attention::BlockKind kind = attention::BlockKind::kFull;
  std::int64_t queries = 0;
  std::int64_t keys = 0;
  std::vector<attention::KeyRange> ranges;  // kMixed
  std::vector<std::int32_t> positions;      // kMixed
  bool wide = true;                         // results in fp32, else in `number`
};

/// In the order of operators.h; rows of padding beyond the block are not there.
struct Tensors {
  std::vector<double> out, lse, delta, dq, dk, dv;
  std::string failure;  // of the emulator
};

/// `reversed`: blocks, warps and lanes from the last to the first. By the kernels that the launchers would choose.
[[nodiscard]] Tensors on_emulator(const Block& block, bool reversed);
/// By make_cpu_operators(sum): kFp64 is the truth, kFp32 what another kernel of the same type makes of it.
[[nodiscard]] Tensors on_cpu(const Block& block, Number sum);

}  // namespace cpfit::kernels::emulated
