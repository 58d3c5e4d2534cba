#include "db/store/run_row.h"

#include "db/store/connection.h"

namespace cpfit {

bool is_abandoned(const WriterProcess& writer, std::int64_t silent_seconds) {
  switch (life_of(writer)) {
    case WriterLife::kAlive:
      return false;
    case WriterLife::kDead:
      return true;
    case WriterLife::kUnknown:
      break;
  }
  return silent_seconds > kWriterSilence.count();
}

bool read_abandoned(RowReader& row) {
  WriterProcess writer;
  writer.host = row.text();
  writer.process = row.integer();
  writer.start_ticks = row.integer();
  return is_abandoned(writer, row.integer());
}

OwnedRun::OwnedRun(const Store::Connection& connection, RunId run, std::string_view assignments)
    : update_(connection.database, "UPDATE run SET " + std::string(assignments) +
                                       " WHERE id = ? AND status = 'running' AND writer_host = ? AND writer_process = ? AND "
                                       "writer_start_ticks = ?"),
      run_(run),
      writer_(this_process()),
      path_(connection.path) {}

void OwnedRun::update() {
  Binder binder(update_);
  binder.integer(static_cast<std::int64_t>(run_)).text(writer_.host).integer(writer_.process).integer(writer_.start_ticks);
  const int changed = update_.exec();
  update_.reset();
  if (changed == 1) return;
  throw Error("run " + std::to_string(static_cast<std::int64_t>(run_)) + " in '" + path_ +
              "' is no longer written by this process: it was finished, deleted or taken over by another one. Start it again");
}

}  // namespace cpfit
