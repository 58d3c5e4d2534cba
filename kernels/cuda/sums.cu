#include "kernels/cuda/sums.cuh"

#include "kernels/cuda/cuda_call.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/with_numbers.cuh"

namespace cpfit::kernels::cuda {

namespace {

unsigned blocks_of(std::int64_t items, int per_block) { return static_cast<unsigned>((items + per_block - 1) / per_block); }

bool aligned(const View& view, std::int64_t width) {
  return reinterpret_cast<std::uintptr_t>(view.data) % static_cast<std::uintptr_t>(width * bytes_of(view.number)) == 0;
}
/// Calls run.template operator()<kWidth>(): four numbers at once where rows of `columns` and both places allow it.
template <class Run>
void with_width(std::int64_t columns, const View& part, const View& sum, const Run& run) {
  if (columns % 4 == 0 && aligned(part, 4) && aligned(sum, 4)) return run.template operator()<4>();
  run.template operator()<1>();
}

template <class Real>
Real* row_values(const View& view) {
  return static_cast<Real*>(view.data);
}

}  // namespace

void launch_merge(const Target& target, const Heads& heads, MergeForm form, const View& part, const View& part_lse,
                  const View& sum, const View& sum_lse) {
  const std::int64_t count = sum.rows * heads.q;
  if (count == 0) return;
  with_pair(part.number, sum.number, "merge", [&]<class Part, class Sum, class Real>() {
    with_width(heads.v_dim, part, sum, [&]<int kWidth>() {
      device::merge_kernel<Part, Sum, Real, kWidth>
          <<<blocks_of(count, device::kHeadRows), device::kSumThreads, device::kWeightBytes<Real>, target.stream>>>(
              form, static_cast<const Part*>(part.data), row_values<Real>(part_lse), static_cast<Sum*>(sum.data),
              row_values<Real>(sum_lse), count, heads.v_dim / kWidth);
    });
  });
  check_launch("merge");
}

void launch_add_weighted(const Target& target, const Heads& heads, const View& part, const View& part_lse, const View& total_lse,
                         const View& sum) {
  const std::int64_t count = sum.rows * heads.q;
  if (count == 0) return;
  with_pair(part.number, sum.number, "add_weighted", [&]<class Part, class Sum, class Real>() {
    with_width(heads.v_dim, part, sum, [&]<int kWidth>() {
      device::add_weighted_kernel<Part, Sum, Real, kWidth>
          <<<blocks_of(count, device::kHeadRows), device::kSumThreads, device::kWeightBytes<Real>, target.stream>>>(
              static_cast<const Part*>(part.data), row_values<Real>(part_lse), row_values<Real>(total_lse),
              static_cast<Sum*>(sum.data), count, heads.v_dim / kWidth);
    });
  });
  check_launch("add_weighted");
}

void launch_add(const Target& target, const View& part, const View& sum) {
  if (sum.elements() == 0) return;
  with_pair(part.number, sum.number, "add", [&]<class Part, class Sum, class Real>() {
    with_width(sum.elements(), part, sum, [&]<int kWidth>() {
      const std::int64_t packs = sum.elements() / kWidth;
      device::add_kernel<Part, Sum, Real, kWidth>
          <<<blocks_of(packs, device::kSumThreads), device::kSumThreads, 0, target.stream>>>(static_cast<const Part*>(part.data),
                                                                                             static_cast<Sum*>(sum.data), packs);
    });
  });
  check_launch("add");
}

void launch_merge_lse(const Target& target, MergeForm form, const View& part_lse, const View& sum_lse) {
  const std::int64_t count = sum_lse.elements();
  if (count == 0) return;
  const unsigned blocks = blocks_of(count, device::kSumThreads);
  if (sum_lse.number == Number::kFp64) {
    device::merge_lse_kernel<double><<<blocks, device::kSumThreads, 0, target.stream>>>(form, row_values<double>(part_lse),
                                                                                        row_values<double>(sum_lse), count);
  } else {
    device::merge_lse_kernel<float>
        <<<blocks, device::kSumThreads, 0, target.stream>>>(form, row_values<float>(part_lse), row_values<float>(sum_lse), count);
  }
  check_launch("merge_lse");
}

void launch_row_delta(const Target& target, const Heads& heads, const View& out, const View& dout, const View& delta) {
  const std::int64_t count = delta.elements();
  if (count == 0) return;
  // The pairs of sums are the pairs here too: dout in the inputs' type, out in that or in the type of sums.
  with_pair(dout.number, out.number, "row_delta", [&]<class Dout, class Out, class Real>() {
    device::row_delta_kernel<Out, Dout, Real>
        <<<blocks_of(count, device::kSumThreads / 32), device::kSumThreads, 0, target.stream>>>(
            static_cast<const Out*>(out.data), static_cast<const Dout*>(dout.data), row_values<Real>(delta), count, heads.v_dim);
  });
  check_launch("row_delta");
}

}  // namespace cpfit::kernels::cuda
