// What a case is compared with: the fp64 truth of its real tokens, and the error that the unsharded kernel makes in the case's
// number type. Both belong to the sequence without its padding, so they are found once for all cuts, degrees and paddings of it.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "kernels/verify/case.h"
#include "kernels/verify/rank_run.h"

namespace cpfit::kernels {

enum class TensorName : std::uint8_t { kOut, kLse, kDq, kDk, kDv };
inline constexpr int kTensorCount = 5;
[[nodiscard]] const char* name_of(TensorName tensor);
[[nodiscard]] const std::vector<double>& tensor_of(const AttentionTensors& tensors, TensorName tensor);
/// Numbers whose norm is one row's: a head of a token; lse: all heads of a token.
[[nodiscard]] std::int64_t row_elements(const Heads& heads, TensorName tensor);

/// normwise: |x - truth| over |truth|, Euclidean, over the judged rows. largest: the largest |x_i - truth_i| over the norm of its
/// row, of the root mean square row where that is larger (a row that is nearly 0 is a difference of large numbers). Infinite
/// where a number is not finite.
struct ErrorFigures {
  double normwise = 0;
  double largest = 0;
};
/// `judged`: by row of `row` numbers; rows that are not judged are passed over.
[[nodiscard]] ErrorFigures errors_of(const std::vector<double>& x, const std::vector<double>& truth, std::int64_t row,
                                     const std::vector<std::uint8_t>& judged);

/// Rows of a tensor that hold a real token which attends to something (of keys: a real token). truth_lse: of the whole case.
[[nodiscard]] std::vector<std::uint8_t> judged_rows(const Case& verified, TensorName tensor,
                                                    const std::vector<double>& truth_lse);

/// Truth in storage order of the case, padding included: there out is 0, lse -inf, gradients 0.
[[nodiscard]] AttentionTensors truth_of(const Case& verified);
/// One unsharded kernel, forward and backward, in the case's number type; in storage order of the case.
[[nodiscard]] AttentionTensors unsharded_kernel(const Case& verified, Operators& operators);

/// The same sequence without padding on one rank.
[[nodiscard]] Case without_padding(const Case& verified);
/// Rows of `compact` (tensors of without_padding(verified)) put where the case stores its real tokens.
[[nodiscard]] AttentionTensors with_padding(const Case& verified, const AttentionTensors& compact);

/// Names what the truth and the kernel's error depend on: the sequence without padding, heads, seed, number type.
[[nodiscard]] std::string sequence_key(const Case& verified);

/// Errors of `compact`, results of without_padding(verified), by tensor.
[[nodiscard]] std::array<ErrorFigures, kTensorCount> errors_by_tensor(const Case& verified, const AttentionTensors& compact,
                                                                      const AttentionTensors& compact_truth);

/// What cases of one sequence share. Made when first asked for; threads that ask meanwhile wait for it.
class TruthShelf {
 public:
  struct Entry {
    AttentionTensors truth;  // of without_padding
    std::array<ErrorFigures, kTensorCount> kernel;
  };
  [[nodiscard]] std::shared_ptr<const Entry> of(const Case& verified);

 private:
  struct Place {
    std::once_flag made;
    std::shared_ptr<const Entry> entry;
  };
  std::mutex lock_;
  std::map<std::string, AttentionTensors> truths_;  // by sequence and significand
  std::map<std::string, std::shared_ptr<Place>> places_;
};

}  // namespace cpfit::kernels
