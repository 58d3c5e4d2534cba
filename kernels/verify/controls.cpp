#include "kernels/verify/controls.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <thread>

namespace cpfit::kernels {

namespace {

void judge_in_attention(const Case& planted, TruthShelf& shelf, ControlReport& report) {
  Case sound = planted;
  sound.fault = Fault::kNone;
  const CaseReport clean = run_case(sound, shelf);
  const CaseReport faulty = run_case(planted, shelf);
  report.planted_in = planted;
  const TensorName worst = faulty.judgement.worst();
  const JudgedTensor& tensor = faulty.judgement.tensors[static_cast<std::size_t>(worst)];
  report.place = name_of(worst);
  report.error = tensor.error.normwise;
  report.limit = tensor.limit.normwise;
  report.trouble = faulty.judgement.trouble;
  report.caught = clean.passed() && !faulty.passed();
  if (!clean.passed()) report.trouble = "the case fails without the fault too, so it proves nothing";
}

void judge_in_block(const Case& planted, ControlReport& report) {
  Case sound = planted;
  sound.fault = Fault::kNone;
  const bool clean = run_block(sound).passed();
  report.planted_in = planted;
  report.limit = kBlockTolerance;
  if (!report.block.errors.empty()) {
    report.place = report.block.worst().name;
    report.error = report.block.worst().error.normwise;
  }
  report.trouble = clean ? report.block.trouble : "the block fails without the fault too, so it proves nothing";
  report.caught = clean && !report.block.passed();
}

ControlReport run_control(Fault fault, TruthShelf& shelf) {
  constexpr std::int32_t kDegree = 4;
  ControlReport report;
  report.fault = fault;
  const bool gathers = fault == Fault::kDkvOneHopShort;  // belongs to the order with a homecoming hop
  const Case block = block_case(gathers ? "fp32_ring" : "te_p2p", kDegree, fault);
  report.block = run_block(block);
  const std::vector<Case> in_attention = control_cases();
  const auto found = std::ranges::find(in_attention, fault, &Case::fault);
  if (found != in_attention.end())
    judge_in_attention(*found, shelf, report);
  else
    judge_in_block(block, report);
  return report;
}

}  // namespace

bool ControlReport::loss_looks_alike() const {
  constexpr double kAlike = 0.01;
  return !block.errors.empty() && std::abs(block.loss - block.loss_truth) <= kAlike * std::abs(block.loss_truth) &&
         block.worst().error.normwise > kBlockTolerance;
}

std::vector<ControlReport> run_controls(TruthShelf& shelf, int threads) {
  const std::vector<Fault>& faults = planted_faults();
  std::vector<ControlReport> reports(faults.size());
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    for (std::size_t i = next++; i < faults.size(); i = next++) reports[i] = run_control(faults[i], shelf);
  };
  std::vector<std::jthread> workers;
  for (int i = 1; i < threads; ++i) workers.emplace_back(work);
  work();
  workers.clear();
  return reports;
}

}  // namespace cpfit::kernels
