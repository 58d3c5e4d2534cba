// The numbers that a case is run with: q, k, v and the gradient of the output, made from the seed alone, the same on every
// machine. A token's numbers follow from its document and its place in it, never from where it is stored, so padding a sequence
// otherwise changes nothing about its real tokens. Padded tokens hold large numbers of their own: whoever lets one in will be
// seen.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/verify/case.h"

namespace cpfit::kernels {

/// Rows in storage order; shapes as in kernels/core/operators.h. Every number is exact in the case's number type: fp64 and fp32
/// share one fixture of 24-bit significands, bf16 and fp16 one of 8-bit significands, so that one truth serves each pair.
struct Fixture {
  std::vector<double> q, k, v, dout;
};

[[nodiscard]] Fixture fixture_of(const Case& verified);

/// SHA-256 over the bytes of q, k, v and dout, in this order, as little-endian doubles.
[[nodiscard]] std::string fixture_hash(const Case& verified);

/// Where each stored token comes from: document and place in it; document -1 is padding. Without documents one document is the
/// whole.
struct TokenOrigin {
  std::int32_t document = 0;
  std::int64_t place = 0;
};
[[nodiscard]] std::vector<TokenOrigin> token_origins(const Case& verified, std::int64_t tokens);

}  // namespace cpfit::kernels
