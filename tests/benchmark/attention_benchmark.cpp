// Attention of one block on the CPU beside matrix products of the same FLOPs through the same BLAS, in turn within one run:
// forward 2 products and 2 (d_qk + d_v) FLOP per pair and head, backward 5 products and 6 d_qk + 4 d_v (cp_model.md A.4).
// `times_gemm` is the time of attention over theirs. One thread. Figures are printed, never asserted.
#include <benchmark/benchmark.h>
#include <cblas.h>

#include <cmath>
#include <ctime>
#include <vector>

#include "kernels/reference/cpu_operators.h"
#include "kernels/reference/fixture_numbers.h"

namespace {

using namespace cpfit::kernels;
using cpfit::attention::BlockKind;

constexpr std::int64_t kTokens = 2048;
constexpr std::int32_t kDim = 128;
constexpr Heads kHeads{2, 1, kDim, kDim, 0.08838834764831845};

double seconds_since(std::clock_t before) { return static_cast<double>(std::clock() - before) / CLOCKS_PER_SEC; }

void product(bool transposed, int m, int n, int k, const float* a, const float* b, float* c) {
  cblas_sgemm(CblasRowMajor, CblasNoTrans, transposed ? CblasTrans : CblasNoTrans, m, n, k, 1, a, k, b, transposed ? k : n, 0, c,
              n);
}
void product(bool transposed, int m, int n, int k, const double* a, const double* b, double* c) {
  cblas_dgemm(CblasRowMajor, CblasNoTrans, transposed ? CblasTrans : CblasNoTrans, m, n, k, 1, a, k, b, transposed ? k : n, 0, c,
              n);
}

/// Seconds of `wide` products [s][d] x [s][d]^T and `narrow` products [s][s] x [s][d], for every head.
template <class Real>
double seconds_of_products(int wide, int narrow) {
  constexpr int s = static_cast<int>(kTokens);
  static std::vector<Real> rows(static_cast<std::size_t>(s * kDim), Real(1)), more = rows, result = rows;
  static std::vector<Real> square(static_cast<std::size_t>(s) * s);
  const std::clock_t before = std::clock();
  for (int i = 0; i < wide * kHeads.q; ++i) product(true, s, s, kDim, rows.data(), more.data(), square.data());
  for (int i = 0; i < narrow * kHeads.q; ++i) product(false, s, kDim, s, square.data(), rows.data(), result.data());
  return seconds_since(before);
}

template <class Real>
void attention(benchmark::State& state, Number number, BlockKind kind, bool backward) {
  const Number sum = sizeof(Real) == 8 ? Number::kFp64 : Number::kFp32;
  const auto operators = make_cpu_operators(sum);
  std::vector<std::int32_t> ranges, positions;
  for (std::int32_t i = 0; i < kTokens; ++i) {
    ranges.insert(ranges.end(), {0, kind == BlockKind::kFull ? static_cast<std::int32_t>(kTokens) : i + 1});
    positions.push_back(i);
  }
  const Array range_array = operators->upload_int(kTokens, 2, ranges),
              position_array = operators->upload_int(kTokens, 1, positions);
  const BlockMask mask{kind, range_array, position_array};
  const auto upload = [&](std::uint32_t seed, std::int32_t heads) {
    return operators->upload(number, kTokens, heads * kDim, grid_numbers(seed, kTokens * heads * kDim));
  };
  const Array q = upload(1, kHeads.q), k = upload(2, kHeads.kv), v = upload(3, kHeads.kv), dout = upload(4, kHeads.q);
  const auto like = [&](const Array& array) {
    return operators->allocate(array.view().number, array.view().rows, array.view().row_elements);
  };
  const Array out = like(q), dq = like(q), dk = like(k), dv = like(v);
  const Array lse = operators->allocate(sum, kTokens, kHeads.q), delta = operators->allocate(sum, kTokens, kHeads.q);
  operators->forward(kHeads, mask, q, k, v, out, lse);
  operators->row_delta(kHeads, out, dout, delta);

  double ours = 0, products = 0;
  for (auto _ : state) {
    const std::clock_t before = std::clock();
    if (backward) {
      operators->backward(kHeads, mask, q, k, v, dout, lse, delta, dq, dk, dv);
    } else {
      operators->forward(kHeads, mask, q, k, v, out, lse);
    }
    const double seconds = seconds_since(before);
    state.SetIterationTime(seconds);
    ours += seconds;
    products += seconds_of_products<Real>(backward ? 2 : 1, backward ? 3 : 1);
  }
  const double s = static_cast<double>(kTokens);
  const double share = kind == BlockKind::kFull ? 1 : (s + 1) / (2 * s);  // of the square that is attended
  const double flops = share * s * s * kHeads.q * kDim * (backward ? 10 : 4) * static_cast<double>(state.iterations());
  state.counters["gflop_per_second"] = flops / ours * 1e-9;
  state.counters["gemm_gflop_per_second"] = flops / (share * products) * 1e-9;
  state.counters["times_gemm"] = ours / (share * products);
}

void attend(benchmark::State& state, Number number, BlockKind kind) {
  number == Number::kFp64 ? attention<double>(state, number, kind, false) : attention<float>(state, number, kind, false);
}
void differentiate(benchmark::State& state, Number number, BlockKind kind) {
  number == Number::kFp64 ? attention<double>(state, number, kind, true) : attention<float>(state, number, kind, true);
}

#define CPFIT_ATTENTION(name, number, kind)                                                                         \
  BENCHMARK_CAPTURE(attend, name, Number::number, BlockKind::kind)->UseManualTime()->Unit(benchmark::kMillisecond); \
  BENCHMARK_CAPTURE(differentiate, name, Number::number, BlockKind::kind)->UseManualTime()->Unit(benchmark::kMillisecond)
CPFIT_ATTENTION(fp32_dense, kFp32, kFull);
CPFIT_ATTENTION(fp32_causal, kFp32, kCausal);
CPFIT_ATTENTION(fp32_causal_by_ranges, kFp32, kMixed);
CPFIT_ATTENTION(bf16_dense, kBf16, kFull);
CPFIT_ATTENTION(bf16_causal, kBf16, kCausal);
CPFIT_ATTENTION(fp16_causal, kFp16, kCausal);
CPFIT_ATTENTION(fp64_dense, kFp64, kFull);
CPFIT_ATTENTION(fp64_causal, kFp64, kCausal);

}  // namespace
