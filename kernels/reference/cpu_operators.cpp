#include "kernels/reference/cpu_operators.h"

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <new>
#include <vector>

#include "kernels/core/require.h"
#include "kernels/reference/block_attention.h"
#include "kernels/reference/numbers.h"
#include "model/attention/merge.h"

namespace cpfit::kernels {

namespace {

constexpr std::int64_t kChunk = 4096;  // elements that an element-wise operator has in flight

void require_shape(const View& view, std::int64_t rows, std::int64_t row_elements, const char* what) {
  require(view.rows == rows && view.row_elements == row_elements, "{}: {} x {}, {} x {} expected", what, view.rows,
          view.row_elements, rows, row_elements);
}

/// A tensor as Real: the view's own memory when it has that type, else a widened copy.
template <class Real>
class WideTensor {
 public:
  explicit WideTensor(const View& view) {
    if (view.number == number_of<Real>()) {
      data_ = static_cast<const Real*>(view.data);
      return;
    }
    copy_.resize(static_cast<std::size_t>(view.elements()));
    read_numbers(view, 0, view.elements(), copy_.data());
    data_ = copy_.data();
  }
  [[nodiscard]] const Real* data() const { return data_; }

 private:
  std::vector<Real> copy_;
  const Real* data_ = nullptr;
};

/// Where a result is computed as Real: in place when the target has that type, else aside, and rounded once by `store`.
template <class Real>
class WideResult {
 public:
  explicit WideResult(const View& view) : view_(view) {
    if (view.number == number_of<Real>()) {
      data_ = static_cast<Real*>(view.data);
    } else {
      aside_.resize(static_cast<std::size_t>(view.elements()));
      data_ = aside_.data();
    }
  }
  [[nodiscard]] Real* data() const { return data_; }
  void store() const {
    if (!aside_.empty()) write_numbers(data_, view_.elements(), view_, 0);
  }

 private:
  View view_;
  std::vector<Real> aside_;
  Real* data_ = nullptr;
};

template <class Real>
class CpuOperators final : public Operators {
 public:
  explicit CpuOperators(std::function<void()> between_tiles) : between_tiles_(std::move(between_tiles)) { use_one_blas_thread(); }

  [[nodiscard]] Number sum_number() const override { return number_of<Real>(); }

  Array allocate(Number number, std::int64_t rows, std::int64_t row_elements) override {
    const auto bytes = static_cast<std::size_t>(std::max<std::int64_t>(rows * row_elements * bytes_of(number), 1));
    std::shared_ptr<void> storage(std::calloc(bytes, 1), std::free);
    if (storage == nullptr) throw std::bad_alloc();
    return {std::move(storage), number, rows, row_elements};
  }

  Array upload(Number number, std::int64_t rows, std::int64_t row_elements, std::span<const double> values) override {
    const Array array = allocate(number, rows, row_elements);
    const View view = array;
    require(static_cast<std::int64_t>(values.size()) == view.elements(), "upload: {} values for {} x {}", values.size(), rows,
            row_elements);
    write_numbers(values.data(), view.elements(), view, 0);
    return array;
  }

  Array upload_int(std::int64_t rows, std::int64_t row_elements, std::span<const std::int32_t> values) override {
    const Array array = allocate(Number::kInt32, rows, row_elements);
    const View view = array;
    require(static_cast<std::int64_t>(values.size()) == view.elements(), "upload_int: {} values for {} x {}", values.size(), rows,
            row_elements);
    std::copy(values.begin(), values.end(), static_cast<std::int32_t*>(view.data));
    return array;
  }

  std::vector<double> download(const View& view) override {
    std::vector<double> values(static_cast<std::size_t>(view.elements()));
    read_numbers(view, 0, view.elements(), values.data());
    return values;
  }

  void copy(const View& from, const View& to) override {
    require(from.elements() == to.elements(), "copy: {} elements to {}", from.elements(), to.elements());
    if (from.number == to.number) {
      if (from.data != to.data && from.elements() > 0) std::memcpy(to.data, from.data, static_cast<std::size_t>(from.bytes()));
      return;
    }
    double chunk[kChunk];
    for (std::int64_t first = 0; first < from.elements(); first += kChunk) {
      const std::int64_t count = std::min(kChunk, from.elements() - first);
      read_numbers(from, first, count, chunk);
      write_numbers(chunk, count, to, first);
    }
  }

  void fill(const View& to, double value) override {
    const std::vector<double> row(static_cast<std::size_t>(to.row_elements), value);
    for (std::int64_t i = 0; i < to.rows; ++i) write_numbers(row.data(), to.row_elements, to, i * to.row_elements);
  }

  void gather_rows(const View& from, const View& index, const View& to) override {
    require(index.number == Number::kInt32 && index.elements() == to.rows, "gather_rows: {} {} for {} rows", index.elements(),
            name_of(index.number), to.rows);
    require(from.number == to.number && from.row_elements == to.row_elements, "gather_rows: {} x {} from {} x {}",
            to.row_elements, name_of(to.number), from.row_elements, name_of(from.number));
    const auto* rows = static_cast<const std::int32_t*>(index.data);
    const auto bytes = static_cast<std::size_t>(to.row_elements * bytes_of(to.number));
    for (std::int64_t i = 0; i < to.rows; ++i) {
      require(rows[i] >= -1 && rows[i] < from.rows, "gather_rows: row {} of {}", rows[i], from.rows);
      if (rows[i] < 0) {
        std::memset(to.slice(i, 1).data, 0, bytes);
      } else {
        std::memcpy(to.slice(i, 1).data, from.slice(rows[i], 1).data, bytes);
      }
    }
  }

  void pack_columns(const View& from, std::int64_t begin, const View& to) override {
    copy_columns(from, begin, to, 0, to.row_elements, "pack_columns");
  }
  void unpack_columns(const View& from, const View& to, std::int64_t begin) override {
    copy_columns(from, 0, to, begin, from.row_elements, "unpack_columns");
  }

  void forward(const Heads& heads, const BlockMask& mask, const View& q, const View& k, const View& v, const View& out,
               const View& lse) override {
    require_inputs(heads, q, k, v, "forward");
    require_shape(out, q.rows, heads.out_columns(), "forward, out");
    require_row_values(lse, q.rows, heads.q, "forward, lse");
    const WideTensor<Real> wide_q(q), wide_k(k), wide_v(v);
    const WideResult<Real> wide_out(out);
    attend_block<Real>({heads, mask, q.rows, k.rows, wide_q.data(), wide_k.data(), wide_v.data(), q.number, tile_call()},
                       wide_out.data(), row_values(lse));
    wide_out.store();
  }

  void row_delta(const Heads& heads, const View& out, const View& dout, const View& delta) override {
    require_shape(out, delta.rows, heads.out_columns(), "row_delta, out");
    require_shape(dout, delta.rows, heads.out_columns(), "row_delta, dout");
    require_row_values(delta, delta.rows, heads.q, "row_delta, delta");
    const WideTensor<Real> wide_out(out), wide_dout(dout);
    Real* to = row_values(delta);
    for (std::int64_t i = 0; i < delta.elements(); ++i) {
      Real sum = 0;
      for (std::int64_t d = i * heads.v_dim; d < (i + 1) * heads.v_dim; ++d) sum += wide_out.data()[d] * wide_dout.data()[d];
      to[i] = sum;
    }
  }

  void backward(const Heads& heads, const BlockMask& mask, const View& q, const View& k, const View& v, const View& dout,
                const View& lse, const View& delta, const View& dq, const View& dk, const View& dv) override {
    require_inputs(heads, q, k, v, "backward");
    require_shape(dout, q.rows, heads.out_columns(), "backward, dout");
    require_row_values(lse, q.rows, heads.q, "backward, lse");
    require_row_values(delta, q.rows, heads.q, "backward, delta");
    require_shape(dq, q.rows, q.row_elements, "backward, dq");
    require_shape(dk, k.rows, k.row_elements, "backward, dk");
    require_shape(dv, v.rows, v.row_elements, "backward, dv");
    const WideTensor<Real> wide_q(q), wide_k(k), wide_v(v), wide_dout(dout);
    const WideResult<Real> wide_dq(dq), wide_dk(dk), wide_dv(dv);
    differentiate_block<Real>({heads, mask, q.rows, k.rows, wide_q.data(), wide_k.data(), wide_v.data(), q.number, tile_call()},
                              wide_dout.data(), row_values(lse), row_values(delta), wide_dq.data(), wide_dk.data(),
                              wide_dv.data());
    wide_dq.store();
    wide_dk.store();
    wide_dv.store();
  }

  void merge(const Heads& heads, MergeForm form, const View& part, const View& part_lse, const View& sum,
             const View& sum_lse) override {
    require_row_values(part_lse, sum.rows, heads.q, "merge, part_lse");
    require_row_values(sum_lse, sum.rows, heads.q, "merge, sum_lse");
    Real* total = row_values(sum_lse);
    const Real* other = row_values(part_lse);
    combine(heads, part, sum, "merge", [&](std::int64_t i) {
      const attention::MergeWeights<Real> weights = merged(form, total[i], other[i]);
      total[i] = weights.lse;
      return std::pair(weights.first, weights.second);
    });
  }

  void merge_lse(MergeForm form, const View& part_lse, const View& sum_lse) override {
    require_row_values(sum_lse, sum_lse.rows, sum_lse.row_elements, "merge_lse, sum_lse");
    require_row_values(part_lse, sum_lse.rows, sum_lse.row_elements, "merge_lse, part_lse");
    for (std::int64_t i = 0; i < sum_lse.elements(); ++i) {
      row_values(sum_lse)[i] = merged(form, row_values(sum_lse)[i], row_values(part_lse)[i]).lse;
    }
  }

  void add_weighted(const Heads& heads, const View& part, const View& part_lse, const View& total_lse, const View& sum) override {
    require_row_values(part_lse, sum.rows, heads.q, "add_weighted, part_lse");
    require_row_values(total_lse, sum.rows, heads.q, "add_weighted, total_lse");
    combine(heads, part, sum, "add_weighted", [&](std::int64_t i) {
      return std::pair(Real(1), attention::part_weight(row_values(part_lse)[i], row_values(total_lse)[i]));
    });
  }

  void add(const View& part, const View& sum) override {
    require_shape(part, sum.rows, sum.row_elements, "add");
    Real a[kChunk], b[kChunk];
    for (std::int64_t first = 0; first < sum.elements(); first += kChunk) {
      const std::int64_t count = std::min(kChunk, sum.elements() - first);
      read_numbers(part, first, count, a);
      read_numbers(sum, first, count, b);
      for (std::int64_t i = 0; i < count; ++i) b[i] += a[i];
      write_numbers(b, count, sum, first);
    }
  }

  void finish() override {}

 private:
  static void require_inputs(const Heads& heads, const View& q, const View& k, const View& v, const char* operation) {
    require(heads.kv > 0 && heads.q % heads.kv == 0, "{}: {} query heads over {} key heads", operation, heads.q, heads.kv);
    require_shape(q, q.rows, heads.q_columns(), operation);
    require_shape(k, k.rows, heads.k_columns(), operation);
    require_shape(v, k.rows, heads.v_columns(), operation);
  }
  static void require_row_values(const View& view, std::int64_t rows, std::int64_t heads, const char* what) {
    require_shape(view, rows, heads, what);
    require(view.number == number_of<Real>(), "{}: {}, {} expected", what, name_of(view.number), name_of(number_of<Real>()));
  }
  [[nodiscard]] const std::function<void()>* tile_call() const { return between_tiles_ ? &between_tiles_ : nullptr; }
  static Real* row_values(const View& view) { return static_cast<Real*>(view.data); }

  static attention::MergeWeights<Real> merged(MergeForm form, Real lse_1, Real lse_2) {
    return form == MergeForm::kStable ? attention::merge_weights(lse_1, lse_2)
                                      : attention::merge_weights_through_exp(lse_1, lse_2);
  }

  /// sum = first * sum + second * part; weights(i) gives both for element i of [rows][heads].
  template <class Weights>
  static void combine(const Heads& heads, const View& part, const View& sum, const char* operation, const Weights& weights) {
    require_shape(sum, sum.rows, heads.out_columns(), operation);
    require_shape(part, sum.rows, sum.row_elements, operation);
    std::vector<Real> a(static_cast<std::size_t>(sum.row_elements)), b(a.size());
    for (std::int64_t row = 0; row < sum.rows; ++row) {
      read_numbers(part, row * sum.row_elements, sum.row_elements, a.data());
      read_numbers(sum, row * sum.row_elements, sum.row_elements, b.data());
      for (std::int32_t head = 0; head < heads.q; ++head) {
        const auto [first, second] = weights(row * heads.q + head);
        Real* to = b.data() + std::int64_t{head} * heads.v_dim;
        const Real* from = a.data() + std::int64_t{head} * heads.v_dim;
        for (std::int32_t d = 0; d < heads.v_dim; ++d) {
          to[d] = attention::weighted(first, to[d]) + attention::weighted(second, from[d]);
        }
      }
      write_numbers(b.data(), sum.row_elements, sum, row * sum.row_elements);
    }
  }

  static void copy_columns(const View& from, std::int64_t from_begin, const View& to, std::int64_t to_begin, std::int64_t count,
                           const char* operation) {
    require(from.rows == to.rows && from.number == to.number && from_begin + count <= from.row_elements &&
                to_begin + count <= to.row_elements,
            "{}: columns {} + {} of {} x {} to {} + {} of {} x {}", operation, from_begin, count, from.rows, from.row_elements,
            to_begin, count, to.rows, to.row_elements);
    const std::int64_t width = bytes_of(from.number);
    for (std::int64_t i = 0; i < from.rows; ++i) {
      std::memcpy(static_cast<std::byte*>(to.slice(i, 1).data) + to_begin * width,
                  static_cast<const std::byte*>(from.slice(i, 1).data) + from_begin * width,
                  static_cast<std::size_t>(count * width));
    }
  }

  std::function<void()> between_tiles_;
};

}  // namespace

std::unique_ptr<Operators> make_cpu_operators(Number sum, std::function<void()> between_tiles) {
  require(sum == Number::kFp64 || sum == Number::kFp32, "make_cpu_operators: sums in {}", name_of(sum));
  if (sum == Number::kFp64) return std::make_unique<CpuOperators<double>>(std::move(between_tiles));
  return std::make_unique<CpuOperators<float>>(std::move(between_tiles));
}

}  // namespace cpfit::kernels
