// Judgement of tensors that another program dumped into a folder of emit.h: what is missing or of another shape is told as
// problems; what is there is judged as our own strategies are.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "kernels/verify/block_run.h"
#include "kernels/verify/judge.h"

namespace cpfit::kernels {

struct CheckRequest {
  std::optional<Accumulation> accumulation;  // of the sums over ranks; nothing: fp32
  std::int32_t cp = 0;                       // the degree it was run at; 0: as emitted
  bool without_lse = false;
};

struct CheckedCase {
  Case verified;  // cp: the degree it was run at
  Judgement judgement;
  /// Failed, but would pass if sums over the ranks were kept in the inputs' type.
  bool passes_when_narrow = false;
};

struct CheckReport {
  std::string fixture_hash;
  std::vector<CheckedCase> cases;
  std::vector<std::string> not_run;  // emitted, without got/
  std::optional<BlockReport> block;  // where block/got is
};

/// fp32 gradients of two layers and a head, normwise.
inline constexpr double kForeignBlockTolerance = 1e-4;

[[nodiscard]] Outcome<CheckReport> check_tensors(const std::string& folder, const CheckRequest& request);

}  // namespace cpfit::kernels
