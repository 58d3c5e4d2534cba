// A candidate as a row of table `candidate`, and the memory of a stage as the columns it shares with table `ledger`: the lists of
// columns, and writing and reading in exactly that order. Private to db.
#pragma once

#include <string>
#include <string_view>

#include "db/store/binding.h"
#include "model/record/candidate.h"

namespace cpfit {

/// "memory_stage, memory_cp_rank, ... context_bytes"
[[nodiscard]] std::string stage_memory_columns();
inline constexpr int kStageMemoryColumnCount = 12 + kComponentCount;
void bind_stage_memory(Binder& binder, const StageMemory& memory);
[[nodiscard]] StageMemory read_stage_memory(RowReader& row);

/// Writes candidates of one run; one per connection at a time is enough, it keeps its statements prepared.
class CandidateWriter {
 public:
  CandidateWriter(SQLite::Database& database, std::int64_t run);
  /// `origin`: the literal "search" or "result" (db/schema/steps.cpp). Returns the id of the row. Throws SQLite::Exception.
  std::int64_t write(const Candidate& candidate, std::string_view origin);

 private:
  SQLite::Database& database_;
  std::int64_t run_;
  SQLite::Statement insert_;
  SQLite::Statement insert_reason_;
};

/// "id, recipe, status, ..." as read_candidate expects them; all from table `candidate`.
[[nodiscard]] std::string candidate_columns();
/// Without its reasons, which are rows of their own; `id` is the row's. Throws Error when this cpfit cannot read the row.
[[nodiscard]] Candidate read_candidate(RowReader& row, std::int64_t& id);

}  // namespace cpfit
