#include "db/schema/migrate.h"

#include <SQLiteCpp/SQLiteCpp.h>

#include <string>

namespace cpfit {

namespace {

std::int32_t pragma(const SQLite::Database& database, const char* name) {
  SQLite::Statement read(database, std::string("PRAGMA ") + name);
  read.executeStep();
  return read.getColumn(0).getInt();
}

}  // namespace

RecognisedDatabase recognise(SQLite::Database& database) {
  const SQLite::Transaction one_state(database);
  const std::int32_t application = pragma(database, "application_id");
  const std::int32_t version = pragma(database, "user_version");
  if (application == kApplicationId) return {DatabaseKind::kOurs, version};
  SQLite::Statement objects(database, "SELECT count(*) FROM sqlite_schema");
  objects.executeStep();
  const bool empty = application == 0 && version == 0 && objects.getColumn(0).getInt() == 0;
  return {empty ? DatabaseKind::kEmpty : DatabaseKind::kForeign, version};
}

void migrate(SQLite::Database& database, std::span<const SchemaStep> steps) {
  for (const SchemaStep& step : steps) {
    if (pragma(database, "user_version") >= step.version) continue;
    SQLite::Transaction transaction(database, SQLite::TransactionBehavior::IMMEDIATE);
    if (pragma(database, "user_version") >= step.version) continue;  // another process was faster
    database.exec(step.sql);
    database.exec("PRAGMA application_id = " + std::to_string(kApplicationId));
    database.exec("PRAGMA user_version = " + std::to_string(step.version));
    transaction.commit();
  }
}

}  // namespace cpfit
