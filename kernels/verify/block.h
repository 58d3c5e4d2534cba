// A two-layer transformer in fp64: embedding, twice (RMSNorm, QKV, RoPE by position, attention, output projection, RMSNorm,
// SwiGLU), RMSNorm, head, cross-entropy. Forward, and backward by hand. One text serves the unsharded model and each rank of a
// sharded one: they differ in which tokens they hold and in who attends. Attention alone cannot show a label shifted on the wrong
// side of a seam or a gradient normalised twice; the gradients of this model's parameters do.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/core/operators.h"
#include "kernels/verify/block_math.h"

namespace cpfit::kernels {

struct BlockSize {
  Heads heads{4, 2, 8, 8, 0.35355339059327373};  // scale 1 / sqrt(8)
  std::int32_t hidden = 24;
  std::int32_t ffn = 40;
  std::int32_t vocabulary = 31;
  std::int32_t layers = 2;
};

struct Parameter {
  std::string name;  // "embedding", "layer0.query", ... "head"
  DenseMatrix matrix;
};
using Parameters = std::vector<Parameter>;

/// Deterministic, of the size that keeps activations near 1.
[[nodiscard]] Parameters block_parameters(const BlockSize& size, std::uint32_t seed);
/// The same names and shapes, all zero.
[[nodiscard]] Parameters zeros_like(const Parameters& parameters);

/// What one rank (or the one process of the unsharded model) holds of a sequence; one entry a token.
struct BlockTokens {
  std::vector<std::int32_t> ids, labels /* -1: no loss here */, positions;
};

struct AttentionGradients {
  DenseMatrix dq, dk, dv;
};

/// Who attends in a block; keeps what its backward needs, by layer.
class BlockAttention {
 public:
  BlockAttention() = default;
  BlockAttention(const BlockAttention&) = delete;
  BlockAttention& operator=(const BlockAttention&) = delete;
  virtual ~BlockAttention() = default;
  virtual DenseMatrix forward(std::int32_t layer, const DenseMatrix& q, const DenseMatrix& k, const DenseMatrix& v) = 0;
  virtual AttentionGradients backward(std::int32_t layer, const DenseMatrix& dout) = 0;
};

/// Of this rank's tokens alone, not normalised: sum of losses, tokens that have one, gradient of the sum by parameter.
struct BlockSums {
  double loss = 0;
  std::int64_t valid = 0;
  Parameters gradients;
};

[[nodiscard]] BlockSums block_forward_backward(const BlockSize& size, const Parameters& parameters, const BlockTokens& tokens,
                                               BlockAttention& attention);

}  // namespace cpfit::kernels
