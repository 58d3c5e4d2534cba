// Packed documents over cp ranks: where each token of a rank comes from, how many of a rank's tokens are real, and what
// lengths must be padded to. Per document (TransformerEngine THD, PyTorch's rank-major balancer): each document is cut zigzag on
// its own and a rank gets its two chunks of every document. Source: cp_model.md A.7, A.8, E.4, E.5.
#pragma once

#include <cstdint>

#include "model/attention/mask.h"

namespace cpfit::attention {

/// Shard of one document's storage, zigzag, positions relative to its start.
CPFIT_HD constexpr Shard shard_of(const Document& document, std::int32_t cp) { return {Layout::kZigzag, document.padded, cp}; }

/// A packed sequence cut document by document. Every padded length divides by 2*cp (by 1 when cp is 1).
struct PackedShard {
  const Document* documents = nullptr;  // in storage order, without gaps
  std::int32_t document_count = 0;
  std::int32_t cp = 1;

  CPFIT_HD constexpr std::int64_t tokens_per_rank() const {
    if (document_count == 0) return 0;
    const Document& last = documents[document_count - 1];
    return (last.start + last.padded) / cp;
  }
  /// Storage position of local token j of rank r: the row of a packed frequency table. -1 when there is no such token.
  CPFIT_HD constexpr std::int64_t global_of(std::int32_t r, std::int64_t j) const {
    for (std::int32_t i = 0; i < document_count; ++i) {
      const std::int64_t own = documents[i].padded / cp;
      if (j < own) return documents[i].start + shard_of(documents[i], cp).global_of(r, j);
      j -= own;
    }
    return -1;
  }
  /// Position id of local token j: restarts at every document.
  CPFIT_HD constexpr std::int64_t position_of(std::int32_t r, std::int64_t j) const {
    for (std::int32_t i = 0; i < document_count; ++i) {
      const std::int64_t own = documents[i].padded / cp;
      if (j < own) return shard_of(documents[i], cp).global_of(r, j);
      j -= own;
    }
    return -1;
  }
  CPFIT_HD constexpr std::int32_t owner_of(std::int64_t t) const {
    const Document& document = at(t);
    return shard_of(document, cp).owner_of(t - document.start);
  }
  CPFIT_HD constexpr std::int64_t local_of(std::int64_t t) const {
    const Document& document = at(t);
    return document.start / cp + shard_of(document, cp).local_of(t - document.start);
  }
  /// The document that stores position t, 0 <= t < cp * tokens_per_rank().
  CPFIT_HD constexpr const Document& at(std::int64_t t) const {
    std::int32_t i = 0;
    while (i + 1 < document_count && t >= documents[i + 1].start) ++i;  // an empty document shares its start with the next
    return documents[i];
  }
};

/// Valid tokens of rank `rank` in a document of `real` tokens padded to `padded`: clamp(n - r c, 0, c) +
/// clamp(n - (2cp-1-r) c, 0, c) with c = padded / (2 cp).
CPFIT_HD constexpr std::int64_t valid_tokens(std::int64_t real, std::int64_t padded, std::int32_t cp, std::int32_t rank) {
  if (cp == 1) return real;
  const std::int64_t c = padded / (std::int64_t{2} * cp);
  return clamp(real - rank * c, 0, c) + clamp(real - (2 * cp - 1 - rank) * c, 0, c);
}

/// Real tokens of one rank over all documents.
CPFIT_HD constexpr std::int64_t valid_tokens(const PackedShard& packed, std::int32_t rank) {
  std::int64_t valid = 0;
  for (std::int32_t i = 0; i < packed.document_count; ++i) {
    valid += valid_tokens(packed.documents[i].real, packed.documents[i].padded, packed.cp, rank);
  }
  return valid;
}

/// Greatest common divisor and least common multiple of positive numbers.
CPFIT_HD constexpr std::int64_t gcd_of(std::int64_t a, std::int64_t b) {
  while (b != 0) {
    const std::int64_t rest = a % b;
    a = b;
    b = rest;
  }
  return a;
}
CPFIT_HD constexpr std::int64_t lcm_of(std::int64_t a, std::int64_t b) { return a / gcd_of(a, b) * b; }

/// What a sequence length must be a multiple of.
struct PaddingRule {
  std::int64_t chunks_per_rank = 2;  // 2: zigzag; 1: contiguous, striped; 128: flex attention's block
  bool tp_multiplies = false;        // torchtitan: s % (2 cp tp)
  bool sequence_parallel = false;    // the s/cp tokens of a rank are spread over tp
};
/// cp = 1 needs no chunks; sequence parallelism needs cp * tp to divide s as well.
CPFIT_HD constexpr std::int64_t sequence_multiple(std::int64_t cp, std::int64_t tp, const PaddingRule& rule) {
  std::int64_t multiple = cp > 1 ? rule.chunks_per_rank * cp : 1;
  if (rule.tp_multiplies) multiple *= tp;
  if (rule.sequence_parallel && tp > 1) multiple = lcm_of(multiple, cp * tp);
  return multiple;
}

/// Places documents one after another: fills `start` and pads each real length to `multiple`. Returns the packed length.
CPFIT_HD constexpr std::int64_t place_documents(Document* documents, std::int32_t count, std::int64_t multiple) {
  std::int64_t start = 0;
  for (std::int32_t i = 0; i < count; ++i) {
    documents[i].start = start;
    documents[i].padded = round_up(documents[i].real, multiple);
    start += documents[i].padded;
  }
  return start;
}

}  // namespace cpfit::attention
