// Blocks of attention on which the CUDA kernels are tried, on the emulator and on a GPU: lengths, heads and masks at which
// kernels go wrong, and the judgement by the truth in fp64.
#pragma once

#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include "kernels/core/operators.h"

namespace cpfit::kernels::block_case {

struct Block {
  std::string name;
  Number number = Number::kBf16;
  Heads heads;
  attention::BlockKind kind = attention::BlockKind::kFull;
  std::int64_t queries = 0;
  std::int64_t keys = 0;
  std::vector<attention::KeyRange> ranges;  // kMixed
  std::vector<std::int32_t> positions;      // kMixed
  bool wide = true;                         // results in the type of sums, else in `number`
};
[[nodiscard]] std::vector<Block> blocks();
/// What a list of tests prints beside the name of one.
inline void PrintTo(const Block& block, std::ostream* out) { *out << block.name; }

/// Multiples of 2^-7 in [-2, 2), exact in every type.
struct Inputs {
  std::vector<double> q, k, v, dout;
};
[[nodiscard]] Inputs inputs_of(const Block& block);

/// In the order of operators.h.
struct Tensors {
  std::vector<double> out, lse, delta, dq, dk, dv;
  std::string failure;  // of the emulator
};
/// The block's mask is handed over by its kind, with the arrays that are always valid.
[[nodiscard]] Tensors run_block(Operators& on, const Block& block);
/// By make_cpu_operators(sum): kFp64 is the truth, kFp32 what another kernel of the same type makes of it.
[[nodiscard]] Tensors on_cpu(const Block& block, Number sum);

/// GoogleTest expectations: errors against the truth at most `multiple` times those of the CPU's kernel of the same type.
void expect_agreement(const Block& block, const Tensors& got, double multiple = 1.25);
[[nodiscard]] bool same_bits(const std::vector<double>& a, const std::vector<double>& b);

}  // namespace cpfit::kernels::block_case
