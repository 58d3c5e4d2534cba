#include "kernels/verify/suite_run.h"

#include <algorithm>
#include <atomic>
#include <limits>
#include <mutex>
#include <thread>

#include "kernels/core/require.h"
#include "kernels/reference/cpu_operators.h"
#include "kernels/transport/in_process.h"

namespace cpfit::kernels {

namespace {

constexpr std::chrono::milliseconds kRankTimeout{120'000};

Accumulation accumulation_of(const Case& verified) {
  const Outcome<Method> method = method_of(verified);
  require(method.ok(), "a case of the unknown method '{}' was to be judged", verified.method);
  return method->accumulation;
}

}  // namespace

CaseReport failed_case(const Case& verified, const std::string& trouble) {
  CaseReport report;
  report.verified = verified;
  report.judgement.trouble = trouble;
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  for (JudgedTensor& tensor : report.judgement.tensors) {
    tensor.error = {kInfinity, kInfinity};
    tensor.judged = false;
  }
  return report;
}

AttentionTensors run_in_process(const Case& verified) {
  std::vector<AttentionTensors> ranks(static_cast<std::size_t>(verified.cp));
  const Number sum = verified.number == Number::kFp64 ? Number::kFp64 : Number::kFp32;
  run_ranks(verified.cp, kRankTimeout, [&](InProcessTransport& transport) {
    const std::unique_ptr<Operators> operators = make_cpu_operators(sum);
    ranks[static_cast<std::size_t>(transport.rank())] = run_rank(verified, *operators, transport);
  });
  return unshard(verified, ranks);
}

CaseReport judge_case(const Case& verified, const AttentionTensors& whole, const AttentionTensors* twin, TruthShelf& shelf,
                      const KernelErrors* kernel) {
  const std::shared_ptr<const TruthShelf::Entry> entry = shelf.of(verified);
  CaseReport report;
  report.verified = verified;
  const AttentionTensors truth = with_padding(verified, entry->truth);
  report.judgement = judge(verified, accumulation_of(verified), whole, truth, kernel != nullptr ? *kernel : entry->kernel);
  if (twin == nullptr) return report;
  const Case padded = padded_twin(verified);
  report.pad_checked = true;
  const AttentionTensors twin_truth = with_padding(padded, entry->truth);
  report.pad_invariant = padding_changes_nothing(verified, whole, truth, padded, *twin, twin_truth);
  return report;
}

CaseReport run_case(const Case& verified, TruthShelf& shelf) {
  try {
    const AttentionTensors whole = run_in_process(verified);
    if (!has_padded_twin(verified)) return judge_case(verified, whole, nullptr, shelf);
    const AttentionTensors twin = run_in_process(padded_twin(verified));
    return judge_case(verified, whole, &twin, shelf);
  } catch (const Error& error) {
    return failed_case(verified, error.what());
  }
}

std::vector<CaseReport> run_cases(const std::vector<Case>& cases, TruthShelf& shelf, int threads,
                                  const std::function<void(double)>& progress) {
  std::vector<CaseReport> reports(cases.size());
  std::atomic<std::size_t> next{0};
  std::size_t done = 0;
  std::mutex lock;
  const auto work = [&] {
    for (std::size_t i = next++; i < cases.size(); i = next++) {
      reports[i] = run_case(cases[i], shelf);
      const std::lock_guard guard(lock);
      ++done;
      if (progress) progress(static_cast<double>(done) / static_cast<double>(cases.size()));
    }
  };
  std::vector<std::jthread> workers;
  for (int i = 1; i < threads; ++i) workers.emplace_back(work);
  work();
  workers.clear();
  return reports;
}

}  // namespace cpfit::kernels
