// What --json prints: one object with schema_version, SI numbers, the unit in the key (DESIGN section 5).
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <optional>

#include "model/record/detail.h"
#include "model/record/run.h"
#include "model/record/validation.h"

namespace cpfit::cli {

inline constexpr int kSchemaVersion = 1;
using Json = nlohmann::ordered_json;

/// What is said of a candidate's proof, given its recipe: `proof` and `proof_of`. Without one nothing is proved.
using ProofSource = std::function<std::pair<std::string, Json>(const Recipe&)>;

/// The recipe with every key, so that --recipe reads it back over any scenario. `detail` adds memory.stages, shard, links and
/// sources.
[[nodiscard]] Json to_json(const Candidate& candidate, const CandidateDetail* detail = nullptr);
/// The parts, which add up exactly to step_seconds.
[[nodiscard]] Json time_json(const TimeBreakdown& time);
[[nodiscard]] Json to_json(const StageMemory& memory, const MemoryVerdict* verdict);
[[nodiscard]] Json to_json(const StageLedger& ledger);
[[nodiscard]] Json to_json(const std::vector<LinkLoad>& links);
[[nodiscard]] Json to_json(const ValidationResult& result);
/// A measured training run as it was understood: model, batch, GPUs, the recipe taken, and the parts of its predicted step.
[[nodiscard]] Json to_json(const MeasuredRun& run, const Candidate& taken);
/// Details of a candidate of a plan; none where they are not known (of a run that was read from a database).
using DetailSource = std::function<std::optional<CandidateDetail>(const Candidate&)>;
/// `run` is the id in the database; without one the key is null.
[[nodiscard]] Json to_json(const PlanResult& result, std::optional<std::int64_t> run, const DetailSource& detail_of,
                           const ProofSource& proof_of = nullptr);

/// Prints the object with schema_version first.
void print_json(Json body);

}  // namespace cpfit::cli
