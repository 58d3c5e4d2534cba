// The two-layer block (block.h) over the ranks of a context-parallel group, against the unsharded model: labels are shifted
// before the sequence is cut, losses and gradients are summed over the ranks and divided once by the valid tokens of all of them.
// Packed documents with padding, and one rank whose labels are all masked (a prompt), so that nobody may divide by its own count.
#pragma once

#include <string>
#include <vector>

#include "kernels/verify/block.h"
#include "kernels/verify/truth_of_case.h"

namespace cpfit::kernels {

/// fp64, two layers: what gradients by parameter may differ by, normwise and largest over row norm.
inline constexpr double kBlockTolerance = 1e-11;

/// Mean over the valid tokens, and its gradient by parameter.
struct BlockResult {
  double loss = 0;
  Parameters gradients;
};

struct ParameterError {
  std::string name;
  ErrorFigures error;
};

struct BlockReport {
  Case verified;
  double loss_truth = 0;
  double loss = 0;
  std::vector<ParameterError> errors;  // by parameter, in order
  double tolerance = kBlockTolerance;
  std::string trouble;  // a rank that failed; empty when none did
  [[nodiscard]] bool passed() const;
  [[nodiscard]] const ParameterError& worst() const;
};

/// Heads, number type and lengths of a block's attention: packed documents, padded, cut one by one over `cp` ranks.
[[nodiscard]] Case block_case(const std::string& method, std::int32_t cp, Fault fault);

/// The weights that the suite and emitted folders use.
[[nodiscard]] Parameters suite_parameters(const BlockSize& size);

/// The whole sequence's tokens in storage order; labels of rank cp - 1 are all masked.
[[nodiscard]] BlockTokens block_tokens(const Case& verified, const BlockSize& size);

[[nodiscard]] BlockResult unsharded_block(const Case& verified, const BlockSize& size, const Parameters& parameters);
/// Ranks as threads. The fault of the case is planted, whether it belongs to attention or to the block.
[[nodiscard]] BlockResult sharded_block(const Case& verified, const BlockSize& size, const Parameters& parameters);

/// Every method at cp 2 and 4 that can serve it.
[[nodiscard]] std::vector<Case> block_cases();
[[nodiscard]] BlockReport run_block(const Case& verified);

}  // namespace cpfit::kernels
