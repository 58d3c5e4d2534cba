// A plan as people read it: the answer, the shipped recipe with its memory and time, the neighbours, the crossover, the ranking.
#pragma once

#include <string>

#include "model/record/detail.h"
#include "model/record/run.h"

namespace cpfit::cli {

/// `proof`: one line on the shipped recipe's attention (proof.h); empty: nothing is said of it.
[[nodiscard]] std::string plan_text(const PlanResult& result, const std::string& proof);
[[nodiscard]] std::string memory_text(const Candidate& candidate, const std::vector<StageMemory>& stages);
[[nodiscard]] std::string time_text(const Candidate& candidate);
[[nodiscard]] std::string ledger_text(const StageLedger& ledger);
[[nodiscard]] std::string links_text(const std::vector<LinkLoad>& links, std::size_t limit);

}  // namespace cpfit::cli
