// Recognises a database by what SQLite itself keeps of it (PRAGMA application_id, PRAGMA user_version), and brings an empty or
// older one up to the newest schema. Knows nothing of paths and messages: db/store speaks of those.
#pragma once

#include <cstdint>
#include <span>

#include "db/schema/steps.h"

namespace SQLite {
class Database;
}

namespace cpfit {

enum class DatabaseKind : std::uint8_t { kEmpty, kOurs, kForeign };

struct RecognisedDatabase {
  DatabaseKind kind = DatabaseKind::kEmpty;
  std::int32_t version = 0;  // of a database of ours
};

/// Reads only, and one state of the file: another process may be making the schema at this moment. Throws SQLite::Exception (not
/// a database, damaged, locked).
[[nodiscard]] RecognisedDatabase recognise(SQLite::Database& database);

/// Runs the steps that the database lacks, each whole or not at all; safe against other processes that do the same at the same
/// time. Requires an empty database or one of ours. Throws SQLite::Exception.
void migrate(SQLite::Database& database, std::span<const SchemaStep> steps);

}  // namespace cpfit
