// One case of the equivalence suite: a method, a mask, a cut over cp ranks, a number type, head counts, and the seed of its
// numbers. It is all that a rank needs to repeat the case, so it is what `cpfit` hands to the processes of `cpfit-bench` (as
// JSON, one object).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/core/array.h"
#include "kernels/core/cut.h"
#include "kernels/strategy/strategy.h"
#include "model/quantity/problem.h"

namespace cpfit::kernels {

/// Real and stored tokens of one document, in storage order.
struct DocumentLength {
  std::int64_t real = 0;
  std::int64_t padded = 0;
  friend bool operator==(const DocumentLength&, const DocumentLength&) = default;
};

struct Case {
  std::string name;    // unique in a suite: "te_p2p/causal/cp4/bf16"
  std::string method;  // a name of methods(), or of what another program ran
  std::string shape;   // in words, as printed: "698 real of 704"
  attention::MaskShape mask = attention::MaskShape::kCausal;
  std::int64_t window = 0;
  std::vector<DocumentLength> documents;  // kDocuments: at least one; else empty
  std::int64_t query_tokens = 0;          // stored; with documents the sum of their padded lengths
  std::int64_t key_tokens = 0;            // equal to query_tokens but for cross lengths
  attention::Layout layout = attention::Layout::kZigzag;
  bool per_document = false;
  std::int32_t cp = 1;
  std::int32_t inner = 0;  // ranks that exchange heads (all-to-all with ring) or form an inner ring; 0: as methods() says
  Number number = Number::kFp64;
  Heads heads;
  std::uint64_t seed = 1;
  Fault fault = Fault::kNone;
};

/// "full", "causal", "window", "documents".
[[nodiscard]] std::string_view name_of(attention::MaskShape mask);
/// "zigzag", "contiguous", "striped".
[[nodiscard]] std::string_view name_of(attention::Layout layout);
/// "none", "seam_off_by_one", ...
[[nodiscard]] std::string_view name_of(Fault fault);
/// Every fault but kNone, in the order of the enumeration.
[[nodiscard]] const std::vector<Fault>& planted_faults();
/// What went wrong in the place where it was really made, one line for a person.
[[nodiscard]] std::string_view meaning_of(Fault fault);

[[nodiscard]] Mask mask_of(const Case& verified);
[[nodiscard]] Layer layer_of(const Case& verified);
/// The named method with this case's inner degree and fault. Problem "case.method" with the nearest name for an unknown one.
[[nodiscard]] Outcome<Method> method_of(const Case& verified);

/// One JSON object, one line.
[[nodiscard]] std::string case_json(const Case& verified);
/// Reads what case_json writes; problems name the key.
[[nodiscard]] Outcome<Case> parse_case(std::string_view json);
/// One case a line; blank lines are passed over.
[[nodiscard]] Outcome<std::vector<Case>> parse_cases(std::string_view lines);

}  // namespace cpfit::kernels
