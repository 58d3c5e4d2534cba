// ask oom: a pasted out-of-memory message of PyTorch's caching allocator, read into figures; with a scenario and a recipe also
// the most likely tensor or cause, the cheapest change and what it should come to.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/record/candidate.h"
#include "sim/plan/workbench.h"

namespace cpfit::ask {

/// What the message states; the wording changed over PyTorch's versions, so every figure but the first may be missing.
struct OomMessage {
  Bytes tried;                                                 // of the allocation that failed
  Bytes tried_resolution;                                      // half of the last printed digit: how far `tried` may be off
  std::optional<Bytes> capacity, free;                         // of the device
  std::optional<Bytes> in_use;                                 // by this process
  std::optional<Bytes> allocated;                              // in live tensors
  std::optional<Bytes> reserved;                               // by the allocator, live and cached
  [[nodiscard]] std::optional<Bytes> cached() const;           // reserved, not allocated
  [[nodiscard]] std::optional<Bytes> outside() const;          // of this process beyond the allocator: context, NCCL
  [[nodiscard]] std::optional<Bytes> other_processes() const;  // capacity - free - in use
};

/// Problems: "ask.no_oom" (nothing was tried to be allocated), "quantity.*".
[[nodiscard]] Outcome<OomMessage> parse_oom(std::string_view text);

enum class OomCause : std::uint8_t {
  kOtherProcess,   // somebody else holds what is missing
  kFragmentation,  // it is there, in pieces
  kOutside,        // context and communicators take more than predicted
  kRecipe,         // the recipe needs more than the device has
  kUnexplained     // more live tensors than the ledger knows
};
[[nodiscard]] std::string_view name_of(OomCause cause);

/// A tensor of the step whose one allocation has the size that failed.
struct TensorMatch {
  std::string tensor, formula;
  Bytes bytes;
};

struct OomDiagnosis {
  OomCause cause = OomCause::kRecipe;
  std::string sentence;                // the cause with its figures
  std::vector<TensorMatch> tensors;    // nearest first; empty: none has this size, or no recipe was said
  std::string where;                   // the moment of the step that the live bytes point to
  std::optional<Candidate> predicted;  // the recipe that failed
  std::optional<Candidate> change;     // fewest keys changed, then fastest, among recipes that fit
  std::vector<std::string> changed;    // its keys
  std::string repair;                  // what to do
  std::string expected;                // what it should come to
};

/// From the message alone.
[[nodiscard]] OomDiagnosis diagnose(const OomMessage& message);
/// With what ran. Problems: the recipe is not legal on the scenario.
[[nodiscard]] Outcome<OomDiagnosis> diagnose(const OomMessage& message, Workbench& bench, const Recipe& recipe);

/// Every tensor that a step allocates in one piece, per rank of the recipe's fullest stage.
[[nodiscard]] std::vector<TensorMatch> single_allocations(const Architecture& model, const Training& training,
                                                          const Recipe& recipe);

}  // namespace cpfit::ask
