#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "calibrate/probe/backend.h"
#include "calibrate/probe/probe.h"
#include "kernels/verify/case.h"
#include "kernels/verify/rank_run.h"

namespace cpfit::probe {

namespace {

using kernels::AttentionTensors;
using kernels::Case;

std::string text_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  if (!file) throw Error(fmt::format("the cases in '{}' cannot be read", path));
  return std::move(text).str();
}

std::vector<Case> cases_of(const std::string& path, std::int32_t ranks) {
  const Outcome<std::vector<Case>> cases = kernels::parse_cases(text_of(path));
  if (!cases.ok()) throw Error(fmt::format("{}: {}", path, to_text(cases.problems().front())));
  for (const Case& one : *cases) {
    if (one.cp != ranks) throw Error(fmt::format("{}: '{}' needs {} ranks, there are {}", path, one.name, one.cp, ranks));
    const Outcome<kernels::Method> method = kernels::method_of(one);
    if (!method.ok()) throw Error(fmt::format("{}: {}", path, to_text(method.problems().front())));
    const std::string reason = kernels::why_not(*method, kernels::layer_of(one), ranks);
    if (!reason.empty()) throw Error(fmt::format("{}: '{}' cannot run: {}", path, one.name, reason));
  }
  return *cases;
}

constexpr std::vector<double> AttentionTensors::* kTensors[] = {
    &AttentionTensors::out, &AttentionTensors::lse, &AttentionTensors::dq, &AttentionTensors::dk, &AttentionTensors::dv};

kernels::View view_of(std::vector<double>& values) {
  return {values.data(), kernels::Number::kFp64, static_cast<std::int64_t>(values.size()), 1};
}

/// Rank 0 writes everybody's tensors; all ranks have shards of one size.
void gather(const std::string& folder, std::int64_t index, AttentionTensors& own, kernels::Transport& transport) {
  if (transport.rank() != 0) {
    std::vector<kernels::Message> batch;
    for (const auto tensor : kTensors) batch.push_back(kernels::send_to(0, view_of(own.*tensor)));
    transport.wait(transport.start(batch));
    return;
  }
  kernels::write_rank(folder, index, 0, own);
  for (std::int32_t rank = 1; rank < transport.size(); ++rank) {
    AttentionTensors theirs = own;
    std::vector<kernels::Message> batch;
    for (const auto tensor : kTensors) batch.push_back(kernels::receive_from(rank, view_of(theirs.*tensor)));
    transport.wait(transport.start(batch));
    kernels::write_rank(folder, index, rank, theirs);
  }
}

}  // namespace

void verify_case(const BenchOptions& options, kernels::Transport& transport, ProgressLines& progress) {
  const std::vector<Case> cases = cases_of(options.job, transport.size());
  if (transport.rank() == 0) std::filesystem::create_directories(options.results);
  progress.begin(static_cast<std::int64_t>(cases.size()));
  const auto backend = make_backend(options.backend, transport, options.timeout);
  std::int64_t index = 0;
  for (const Case& one : cases) {
    const kernels::Number sum = one.number == kernels::Number::kFp64 ? kernels::Number::kFp64 : kernels::Number::kFp32;
    AttentionTensors tensors = kernels::run_rank(one, backend->operators(sum), backend->transport(sum));
    gather(options.results, index++, tensors, transport);
    progress.step();
  }
}

}  // namespace cpfit::probe
