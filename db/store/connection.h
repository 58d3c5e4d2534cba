// Inside of a store: SQLite's connection and the translation of its exceptions. Private to db.
#pragma once

#include <SQLiteCpp/SQLiteCpp.h>

#include <chrono>
#include <string>
#include <utility>

#include "db/store/store.h"
#include "db/store/trouble.h"

namespace cpfit {

struct Store::Connection {
  std::string path;
  std::chrono::milliseconds patience;
  SQLite::Database database;
};

/// Runs `work`; what SQLite throws becomes an Error (an InputError where the path is at fault) that says what was being done
/// ("store candidates in").
template <class Work>
decltype(auto) guarded(const Store::Connection& connection, const std::string& doing, Work&& work) {
  try {
    return std::forward<Work>(work)();
  } catch (const SQLite::Exception& exception) {
    throw_trouble("cannot " + doing + " '" + connection.path + "'", explain(exception, connection.path, connection.patience));
  }
}

/// While it lives, the connection reads one state of the file, whatever other processes write meanwhile.
class ReadSnapshot {
 public:
  explicit ReadSnapshot(Store::Connection& connection) : database_(connection.database) { database_.exec("BEGIN"); }
  ~ReadSnapshot() { (void)database_.tryExec("ROLLBACK"); }
  ReadSnapshot(const ReadSnapshot&) = delete;
  ReadSnapshot& operator=(const ReadSnapshot&) = delete;

 private:
  SQLite::Database& database_;
};

}  // namespace cpfit
