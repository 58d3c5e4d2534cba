// Fills in what a shown candidate says beyond its summary (model/record/detail.h).
#pragma once

#include "model/record/detail.h"
#include "sim/plan/workbench.h"

namespace cpfit {

[[nodiscard]] CandidateDetail detail_of(Workbench& bench, const Training& training, const Candidate& candidate);

/// The ledger of one stage of a candidate, tensor by tensor.
[[nodiscard]] StageLedger ledger_of(Workbench& bench, const Training& training, const Candidate& candidate, std::int32_t stage);

}  // namespace cpfit
