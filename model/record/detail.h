// What a shown candidate says beyond its summary: memory of every stage, what a rank holds of a sequence, links, and where the
// figures come from. Computed on demand: a search of 100,000 recipes does not carry it.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "model/memory/ledger.h"
#include "model/record/run.h"

namespace cpfit {

/// One CP rank's share of a sequence under the recipe (rank cp-1, the one with the most work or memory).
struct ShardFigures {
  std::int64_t tokens_per_rank = 0;
  double heads = 0, kv_heads = 0;           // on this rank while attention runs
  double occupancy = 1.0;                   // real tokens per stored token
  std::vector<std::int64_t> q_len, kv_len;  // kernel rectangle per ring step
};

struct CandidateDetail {
  std::vector<StageMemory> stages;      // (pp)
  std::vector<MemoryVerdict> verdicts;  // (pp), of each stage
  ShardFigures shard;
  std::vector<LinkLoad> links;
  std::vector<std::pair<std::string, std::string>> sources;  // "gemm" -> "fitted"
};

}  // namespace cpfit
