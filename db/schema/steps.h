// The steps that build the schema of a cpfit database, numbered from 1. A released step never changes: a new need is a new
// step, and a database of any older version is brought up by the steps it lacks. SQL: snake_case singular tables, STRICT,
// units in column names; REAL columns hold a model's doubles unrounded.
#pragma once

#include <cstdint>
#include <span>

namespace cpfit {

struct SchemaStep {
  std::int32_t version;  // what PRAGMA user_version says after it; consecutive from 1
  const char* sql;       // statements, run in one transaction
};

[[nodiscard]] std::span<const SchemaStep> schema_steps();

/// "cpft" in ASCII: PRAGMA application_id of every cpfit database, by which others' SQLite files are told from ours.
inline constexpr std::int32_t kApplicationId = 0x63706674;

}  // namespace cpfit
