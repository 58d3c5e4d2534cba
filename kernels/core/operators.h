// What one rank can compute: the operators from which every context-parallel strategy is written. The CPU (reference/) and the
// GPU (cuda/) implement them, so one text of each strategy serves the truth, MPI processes and NCCL ranks alike. Shapes:
//   q    [s_q ][h_q  * d_qk]     h_q  query heads                       element order in a row: head, then dim
//   k    [s_kv][h_kv * d_qk]     h_kv key/value heads; query head h reads key head h / (h_q / h_kv)
//   v    [s_kv][h_kv * d_v ]
//   out  [s_q ][h_q  * d_v ]
//   lse  [s_q ][h_q]             natural log of the sum of exp(scale * score); -inf: the row attended to nothing, its out is 0.
//                                fp64 when the operators compute in fp64, else fp32
//   delta[s_q ][h_q]             rowsum(dout * out), same type as lse
// Order: the calls of one object take effect in the order made (on a GPU: one stream; a call returns before it is done). Errors
// of the world throw cpfit::Error with the operator's name; shapes that do not match stop the program (our own mistake). Source
// of the formulas: cp_model.md A.4, E.1, E.2.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/core/array.h"
#include "model/attention/mask.h"
#include "model/attention/visible.h"

namespace cpfit::kernels {

struct Heads {
  std::int32_t q = 1;
  std::int32_t kv = 1;  // divides q
  std::int32_t qk_dim = 64;
  std::int32_t v_dim = 64;
  double scale = 0.125;  // multiplies every score, as the frameworks do: 1 / sqrt(qk_dim) unless a model says otherwise

  /// Elements of a row.
  [[nodiscard]] constexpr std::int64_t q_columns() const { return std::int64_t{q} * qk_dim; }
  [[nodiscard]] constexpr std::int64_t k_columns() const { return std::int64_t{kv} * qk_dim; }
  [[nodiscard]] constexpr std::int64_t v_columns() const { return std::int64_t{kv} * v_dim; }
  [[nodiscard]] constexpr std::int64_t out_columns() const { return std::int64_t{q} * v_dim; }
};

/// Which scores of a block count. kFull: all; kCausal: local key <= local query + (s_kv - s_q), bottom-right aligned; kMixed: key
/// row j counts for query row i iff query_range[i] contains key_position[j]. The arrays are always valid, so an implementation
/// may treat every block as kMixed; kEmpty is never handed over.
struct BlockMask {
  attention::BlockKind kind = attention::BlockKind::kMixed;
  View query_range;   // int32 [s_q][2]: begin, end (attention::KeyRange)
  View key_position;  // int32 [s_kv][1]
};

/// How partial results are merged; the second exists so that the suite can prove that it is caught.
enum class MergeForm : std::uint8_t { kStable, kThroughExp };

class Operators {
 public:
  Operators() = default;
  Operators(const Operators&) = delete;
  Operators& operator=(const Operators&) = delete;
  virtual ~Operators() = default;

  /// The type that lse and delta have, and in which a mode called "fp32 accumulation" keeps its sums: fp64 or fp32.
  [[nodiscard]] virtual Number sum_number() const = 0;

  // --- memory. allocate: zero-filled. upload rounds each value to `number` (nearest even). download waits for what was called.
  virtual Array allocate(Number number, std::int64_t rows, std::int64_t row_elements) = 0;
  virtual Array upload(Number number, std::int64_t rows, std::int64_t row_elements, std::span<const double> values) = 0;
  virtual Array upload_int(std::int64_t rows, std::int64_t row_elements, std::span<const std::int32_t> values) = 0;
  virtual std::vector<double> download(const View& view) = 0;
  virtual void copy(const View& from, const View& to) = 0;  // same elements; converts between number types
  virtual void fill(const View& to, double value) = 0;
  /// to[i] = from[index[i]] by rows; an index of -1 gives a row of zeros. index: int32 [to.rows][1].
  virtual void gather_rows(const View& from, const View& index, const View& to) = 0;
  /// Head exchange of an all-to-all: columns [begin, begin + count) of every row of `from`, packed into `to` [rows][count]; and
  /// back.
  virtual void pack_columns(const View& from, std::int64_t begin, const View& to) = 0;
  virtual void unpack_columns(const View& from, const View& to, std::int64_t begin) = 0;

  // --- attention of one block
  /// out and lse of this block alone. out's type may be the inputs' or sum_number().
  virtual void forward(const Heads& heads, const BlockMask& mask, const View& q, const View& k, const View& v, const View& out,
                       const View& lse) = 0;
  /// delta of the final out.
  virtual void row_delta(const Heads& heads, const View& out, const View& dout, const View& delta) = 0;
  /// Gradients of this block alone from the FINAL lse and delta; dq, dk, dv are overwritten, their type the inputs' or
  /// sum_number().
  virtual void backward(const Heads& heads, const BlockMask& mask, const View& q, const View& k, const View& v, const View& dout,
                        const View& lse, const View& delta, const View& dq, const View& dk, const View& dv) = 0;

  // --- sums. Every result is rounded to the target's type once per call.
  /// (sum, sum_lse) becomes the merge of itself and (part, part_lse), attention::merge_weights. `heads.v_dim` columns per weight.
  /// What has weight 0 contributes 0 whatever it holds, NaN too (attention::weighted); so does add_weighted.
  virtual void merge(const Heads& heads, MergeForm form, const View& part, const View& part_lse, const View& sum,
                     const View& sum_lse) = 0;
  /// sum_lse alone (TransformerEngine corrects outputs after all steps).
  virtual void merge_lse(MergeForm form, const View& part_lse, const View& sum_lse) = 0;
  /// sum += part * exp(part_lse - total_lse) by row and head, weight 0 for rows that attended to nothing.
  virtual void add_weighted(const Heads& heads, const View& part, const View& part_lse, const View& total_lse,
                            const View& sum) = 0;
  virtual void add(const View& part, const View& sum) = 0;

  /// Waits until everything called so far has taken effect.
  virtual void finish() = 0;
};

}  // namespace cpfit::kernels
