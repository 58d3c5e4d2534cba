// A verification: attention of some implementation compared with the unsharded truth, case by case, and the planted faults that
// it caught. Made from what kernels/verify judged, stored by db, shown by cli; what passed is a proof that a plan can name.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace cpfit {

enum class VerifiedTensor : std::uint8_t { kOut, kLse, kDq, kDk, kDv };
inline constexpr int kVerifiedTensors = 5;
[[nodiscard]] std::string_view name_of(VerifiedTensor tensor);  // "out", "lse", "dq", "dk", "dv"

/// Errors against the fp64 truth; infinite where a number is none. normwise: |x - truth| / |truth| over the tensor. largest: the
/// largest difference of one number over the norm of its row (of the mean row where that is longer).
struct TensorError {
  double normwise = 0, largest = 0;
  double kernel_normwise = 0, kernel_largest = 0;  // of the unsharded kernel in the same number type
  double normwise_limit = 0, largest_limit = 0;
  bool judged = true;  // false: the implementation does not give this tensor
  [[nodiscard]] bool passed() const { return !judged || (normwise <= normwise_limit && largest <= largest_limit); }
  friend bool operator==(const TensorError&, const TensorError&) = default;
};

struct VerifiedCase {
  std::string method, mask, shape, layout, dtype;  // "te_p2p", "documents", "698 real of 704", "zigzag per document", "bf16"
  std::int32_t cp = 1;
  std::int32_t inner = 0;   // ranks of the inner group, where it is not the method's own
  std::int64_t length = 0;  // stored query tokens
  bool passed = false;
  std::array<TensorError, kVerifiedTensors> errors;
  bool pad_checked = false;
  bool pad_invariant = true;  // masked padding changed no real number
  bool covered = true;        // every token is on one rank, once
  double occupancy = 1.0;     // real tokens per stored token, of the rank that has the fewest
  std::string trouble;        // why it failed beyond the errors, a sentence; empty when nothing is wrong
  friend bool operator==(const VerifiedCase&, const VerifiedCase&) = default;
};

/// A planted fault: caught when the case it was planted in failed and passes without it.
struct VerifiedControl {
  std::string name;        // "kv_of_step_zero"
  std::string meaning;     // in words
  std::string planted_in;  // the case
  bool caught = false;
  std::string tensor;             // where it shows most: "dk", "layer1.query"
  double error = 0;               // there, normwise
  double limit = 0;               // what would have passed
  double loss_truth = 0;          // of the two-layer block, per valid token,
  double loss_faulty = 0;         // and the same with the fault
  std::string gradient;           // of the block: the parameter whose gradient is worst
  double gradient_error = 0;      // normwise
  bool loss_looks_alike = false;  // the loss within a hundredth, a gradient wrong
  std::string trouble;            // what else gave it away, or why it does not count as caught
  friend bool operator==(const VerifiedControl&, const VerifiedControl&) = default;
};

/// The two-layer block over the ranks, against the unsharded model, in fp64.
struct VerifiedBlock {
  std::string method, shape;
  std::int32_t cp = 1;
  bool passed = false;
  double loss_truth = 0, loss = 0;  // per valid token
  std::string parameter;            // whose gradient is worst
  double error = 0, limit = 0;      // of it, normwise
  std::string trouble;
  friend bool operator==(const VerifiedBlock&, const VerifiedBlock&) = default;
};

/// Combinations that a method cannot serve, with its own reason.
struct LeftOutCases {
  std::string reason;
  std::int64_t count = 0;
  friend bool operator==(const LeftOutCases&, const LeftOutCases&) = default;
};

struct Verification {
  std::string suite;                   // "quick", "full", "check"
  std::string backend;                 // "reference", "mpi", "cuda"; of a check the folder
  std::string implementation;          // "cpfit", or the framework's name
  std::string implementation_version;  // of it
  std::string tool_version;            // the cpfit that judged
  std::string fixture_hash;            // SHA-256 of the inputs
  double seconds = 0;
  std::vector<VerifiedCase> cases;
  std::vector<VerifiedBlock> blocks;
  std::vector<VerifiedControl> controls;  // none where another implementation was judged
  std::vector<LeftOutCases> left_out;
  [[nodiscard]] bool all_caught() const {
    for (const VerifiedControl& control : controls) {
      if (!control.caught) return false;
    }
    return true;
  }
  [[nodiscard]] bool passed() const {
    for (const VerifiedCase& one : cases) {
      if (!one.passed) return false;
    }
    for (const VerifiedBlock& block : blocks) {
      if (!block.passed) return false;
    }
    return (!cases.empty() || !blocks.empty()) && all_caught();
  }
  friend bool operator==(const Verification&, const Verification&) = default;
};

/// That one method under one mask and number type agreed with the truth the last time it was verified, at these degrees.
struct AttentionProof {
  std::string implementation, implementation_version, backend;
  std::string method, mask, layout, dtype;
  std::vector<std::int32_t> cp;  // ascending
  std::string fixture_hash;      // of the youngest verification that took part
  std::int64_t unix_seconds = 0;
  friend bool operator==(const AttentionProof&, const AttentionProof&) = default;
};

}  // namespace cpfit
