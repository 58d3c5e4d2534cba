// The equivalence suite on one GPU: ranks as threads, each with its own stream, their shards in the same memory. Every strategy's
// text is the one that the CPU runs; here its operators are the device's.
#include <gtest/gtest.h>

#include <chrono>
#include <vector>

#include "kernels/transport/in_process.h"
#include "kernels/verify/suite_run.h"
#include "on_gpu.h"

namespace cpfit::kernels {
namespace {

AttentionTensors run_on_gpu(const Case& verified) {
  std::vector<AttentionTensors> ranks(static_cast<std::size_t>(verified.cp));
  run_ranks(verified.cp, std::chrono::seconds(60), [&](InProcessTransport& transport) {
    const auto operators = make_cuda_operators(0, verified.number == Number::kFp64 ? Number::kFp64 : Number::kFp32);
    transport.reach_memory_with(memory_access_of(*operators));
    ranks[static_cast<std::size_t>(transport.rank())] = run_rank(verified, *operators, transport);
  });
  return unshard(verified, ranks);
}

/// The unsharded kernel of the device, which 16-bit results may exceed by a factor (judge.h).
KernelErrors kernel_errors_of(const Case& verified, TruthShelf& shelf) {
  const auto operators = make_cuda_operators(0, verified.number == Number::kFp64 ? Number::kFp64 : Number::kFp32);
  const Case compact = without_padding(verified);
  return errors_by_tensor(verified, unsharded_kernel(compact, *operators), shelf.of(verified)->truth);
}

TEST(GpuRanks, EveryStrategyAgreesWithTheTruth) {
  CPFIT_NEEDS_GPU();
  TruthShelf shelf;
  const SuiteCases suite = suite_cases(SuiteSize::kQuick, {});
  ASSERT_GT(suite.cases.size(), 50U);
  for (const Case& verified : suite.cases) {
    const KernelErrors kernel = kernel_errors_of(verified, shelf);
    const CaseReport report = judge_case(verified, run_on_gpu(verified), nullptr, shelf, &kernel);
    EXPECT_TRUE(report.passed()) << verified.name << ": " << report.judgement.trouble << " worst "
                                 << name_of(report.judgement.worst());
  }
}

}  // namespace
}  // namespace cpfit::kernels
