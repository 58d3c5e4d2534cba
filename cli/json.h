// What --json prints: one object with schema_version, SI numbers, the unit in the key (DESIGN section 5).
#pragma once

#include <nlohmann/json.hpp>
#include <optional>

#include "model/record/detail.h"
#include "model/record/run.h"
#include "model/record/validation.h"

namespace cpfit::cli {

inline constexpr int kSchemaVersion = 1;
using Json = nlohmann::ordered_json;

/// `detail` adds memory.stages, shard, links and sources.
[[nodiscard]] Json to_json(const Candidate& candidate, const CandidateDetail* detail = nullptr);
[[nodiscard]] Json to_json(const StageMemory& memory, const MemoryVerdict* verdict);
[[nodiscard]] Json to_json(const StageLedger& ledger);
[[nodiscard]] Json to_json(const std::vector<LinkLoad>& links);
[[nodiscard]] Json to_json(const ValidationResult& result);
/// `run` is the id in the database; without one the key is null.
[[nodiscard]] Json to_json(const PlanResult& result, std::optional<std::int64_t> run, const CandidateDetail* ship_detail);

/// Prints the object with schema_version first.
void print_json(Json body);

}  // namespace cpfit::cli
