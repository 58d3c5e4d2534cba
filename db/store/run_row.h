// The life of a row of table `run`: who writes it, and in which state it is. Private to db.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "db/store/binding.h"
#include "db/store/run_store.h"
#include "db/store/writer_process.h"

namespace cpfit {

/// Whether a run with status `running` is no longer being written: its writer is dead, or silent and out of sight.
/// `silent_seconds`: since its last batch.
[[nodiscard]] bool is_abandoned(const WriterProcess& writer, std::int64_t silent_seconds);

/// "writer_host, writer_process, writer_start_ticks, unixepoch() - last_batch_unix_seconds", and reading of these four.
inline constexpr std::string_view kWriterColumns =
    "writer_host, writer_process, writer_start_ticks, unixepoch() - last_batch_unix_seconds";
[[nodiscard]] bool read_abandoned(RowReader& row);

/// Sets `assignments` (SQL) of a run that is `running` under this process. Throws Error when it is not.
class OwnedRun {
 public:
  OwnedRun(const Store::Connection& connection, RunId run, std::string_view assignments);
  void update();

 private:
  SQLite::Statement update_;
  RunId run_;
  WriterProcess writer_;
  std::string path_;
};

}  // namespace cpfit
