// Runs cases with ranks as threads of this process, several cases at a time, and judges them; or judges what other processes
// left.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "kernels/verify/judge.h"
#include "kernels/verify/suite.h"

namespace cpfit::kernels {

struct CaseReport {
  Case verified;
  Judgement judgement;
  bool pad_checked = false;
  bool pad_invariant = true;
  [[nodiscard]] bool passed() const { return pad_invariant && judgement.passed(); }
};

/// Results in storage order, ranks as threads. Throws Error when a rank failed.
[[nodiscard]] AttentionTensors run_in_process(const Case& verified);

using KernelErrors = std::array<ErrorFigures, kTensorCount>;
/// `twin`: results of padded_twin(verified), null where it was not run. `kernel`: errors of the unsharded kernel that the case is
/// compared with; null: the CPU's.
[[nodiscard]] CaseReport judge_case(const Case& verified, const AttentionTensors& whole, const AttentionTensors* twin,
                                    TruthShelf& shelf, const KernelErrors* kernel = nullptr);

/// A case that gave no results.
[[nodiscard]] CaseReport failed_case(const Case& verified, const std::string& trouble);

/// Both in one; what is thrown becomes the judgement's trouble.
[[nodiscard]] CaseReport run_case(const Case& verified, TruthShelf& shelf);

/// All of them over `threads` threads, in order. `progress` gets the share that is done, one call at a time.
[[nodiscard]] std::vector<CaseReport> run_cases(const std::vector<Case>& cases, TruthShelf& shelf, int threads,
                                                const std::function<void(double)>& progress);

}  // namespace cpfit::kernels
