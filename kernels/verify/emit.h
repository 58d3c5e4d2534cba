// Tensors for anybody's implementation: deterministic inputs, output gradients, weights of the two-layer block, and what must
// come out, as .npy files (npy.h) with the SHA-256 of each in manifest.json, and a text that says what to run and how to hand
// back the results. A folder holds several cases:
//   manifest.json, README.txt
//   CASE/q.npy k.npy v.npy dout.npy        [tokens][heads][dim], in storage order, in the case's number type
//   CASE/shard_rows.npy                    [cp][tokens / cp]: the storage row of each local token of each rank
//   CASE/cu_seqlens.npy cu_seqlens_padded.npy   documents: real lengths summed, and where each is stored
//   CASE/expected/out.npy lse.npy dq.npy dk.npy dv.npy   fp64
//   CASE/got/...                           the same names, by whoever ran it
//   block/weights/*.npy ids.npy labels.npy positions.npy, block/expected/loss.npy grad.*.npy, block/got/...
#pragma once

#include <string>
#include <vector>

#include "kernels/verify/case.h"

namespace cpfit::kernels {

struct EmitRequest {
  std::vector<attention::MaskShape> masks;  // empty: all four
  std::int64_t length = 698;                // real tokens
  std::int64_t window = 128;
  std::int32_t cp = 4;
  Heads heads{8, 2, 64, 64, 0.125};
  Number number = Number::kBf16;
  std::uint64_t seed = 1;
};

/// The cases of a request: causal, full, window (length rounded up to 2 * cp), documents (of 1 token, of 2 * cp - 1, an empty one
/// and others, each padded to 2 * cp), and padded_tail: one document of `length` tokens, padded. Their `name` is the folder's.
[[nodiscard]] std::vector<Case> emitted_cases(const EmitRequest& request);

/// Writes the folder, which is made when absent. Returns what it holds, "causal: 704 tokens, ...", one line a case. Throws Error
/// when a file cannot be written.
std::vector<std::string> emit_tensors(const std::string& folder, const EmitRequest& request, const std::string& tool_version);

/// "key <= query" and so on: the mask in words, for a person who has to build it.
[[nodiscard]] std::string mask_in_words(const Case& verified);

}  // namespace cpfit::kernels
