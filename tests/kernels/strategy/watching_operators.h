// Operators that note which attention kernels are launched, and how many pairs each computes, and pass everything on.
#pragma once

#include <vector>

#include "kernels/core/operators.h"

namespace cpfit::kernels {

struct LaunchedKernel {
  std::int64_t q_len = 0, kv_len = 0, pairs = 0;
  attention::BlockKind kind = attention::BlockKind::kMixed;
};

class WatchingOperators final : public Operators {
 public:
  explicit WatchingOperators(Operators& inner) : inner_(inner) {}

  std::vector<LaunchedKernel> forwards, backwards;

  [[nodiscard]] Number sum_number() const override { return inner_.sum_number(); }
  Array allocate(Number number, std::int64_t rows, std::int64_t row_elements) override {
    return inner_.allocate(number, rows, row_elements);
  }
  Array upload(Number number, std::int64_t rows, std::int64_t row_elements, std::span<const double> values) override {
    return inner_.upload(number, rows, row_elements, values);
  }
  Array upload_int(std::int64_t rows, std::int64_t row_elements, std::span<const std::int32_t> values) override {
    return inner_.upload_int(rows, row_elements, values);
  }
  std::vector<double> download(const View& view) override { return inner_.download(view); }
  void copy(const View& from, const View& to) override { inner_.copy(from, to); }
  void fill(const View& to, double value) override { inner_.fill(to, value); }
  void gather_rows(const View& from, const View& index, const View& to) override { inner_.gather_rows(from, index, to); }
  void pack_columns(const View& from, std::int64_t begin, const View& to) override { inner_.pack_columns(from, begin, to); }
  void unpack_columns(const View& from, const View& to, std::int64_t begin) override { inner_.unpack_columns(from, to, begin); }
  void forward(const Heads& heads, const BlockMask& mask, const View& q, const View& k, const View& v, const View& out,
               const View& lse) override {
    forwards.push_back({q.rows, k.rows, pairs_of(mask), mask.kind});
    inner_.forward(heads, mask, q, k, v, out, lse);
  }
  void row_delta(const Heads& heads, const View& out, const View& dout, const View& delta) override {
    inner_.row_delta(heads, out, dout, delta);
  }
  void backward(const Heads& heads, const BlockMask& mask, const View& q, const View& k, const View& v, const View& dout,
                const View& lse, const View& delta, const View& dq, const View& dk, const View& dv) override {
    backwards.push_back({q.rows, k.rows, pairs_of(mask), mask.kind});
    inner_.backward(heads, mask, q, k, v, dout, lse, delta, dq, dk, dv);
  }
  void merge(const Heads& heads, MergeForm form, const View& part, const View& part_lse, const View& sum,
             const View& sum_lse) override {
    inner_.merge(heads, form, part, part_lse, sum, sum_lse);
  }
  void merge_lse(MergeForm form, const View& part_lse, const View& sum_lse) override {
    inner_.merge_lse(form, part_lse, sum_lse);
  }
  void add_weighted(const Heads& heads, const View& part, const View& part_lse, const View& total_lse, const View& sum) override {
    inner_.add_weighted(heads, part, part_lse, total_lse, sum);
  }
  void add(const View& part, const View& sum) override { inner_.add(part, sum); }
  void finish() override { inner_.finish(); }

 private:
  /// What the arrays say, whatever the kind: one by one.
  std::int64_t pairs_of(const BlockMask& mask) {
    const std::vector<double> ranges = inner_.download(mask.query_range);
    const std::vector<double> positions = inner_.download(mask.key_position);
    std::int64_t pairs = 0;
    for (std::size_t i = 0; i + 1 < ranges.size(); i += 2) {
      for (const double position : positions) pairs += position >= ranges[i] && position < ranges[i + 1] ? 1 : 0;
    }
    return pairs;
  }

  Operators& inner_;
};

}  // namespace cpfit::kernels
