// Nsight Systems' SQLite export: kernels and copies, row by row. Tables appear only when something was recorded and columns
// change between releases, so both are looked up first.
#include <SQLiteCpp/SQLiteCpp.h>
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "calibrate/read/trace_sources.h"

namespace cpfit::trace {

namespace {

bool has_column(SQLite::Database& database, const std::string& table, const std::string& column) {
  SQLite::Statement query(database, "SELECT 1 FROM pragma_table_info(?) WHERE name = ?");
  query.bind(1, table);
  query.bind(2, column);
  return query.executeStep();
}

/// Adds start, end, device, stream, name of every row; times in the export are nanoseconds.
void add_rows(SQLite::Statement& rows, std::optional<std::int64_t>& origin, Devices& devices, RecordedTrace& trace,
              bool kernels) {
  while (rows.executeStep()) {
    const std::int64_t start = rows.getColumn(0).getInt64();
    const std::int64_t end = rows.getColumn(1).getInt64();
    if (!origin) origin = start;
    const DeviceWork work = !kernels                                      ? DeviceWork::kCopy
                            : communicates(rows.getColumn(4).getString()) ? DeviceWork::kCommunication
                                                                          : DeviceWork::kCompute;
    devices.add(rows.getColumn(2).getString(), rows.getColumn(3).getString(), (start - *origin) * 1000, (end - *origin) * 1000,
                work);
    ++trace.events;
  }
}

}  // namespace

Outcome<RecordedTrace> read_nsys(const std::string& path) {
  try {
    SQLite::Database database(path, SQLite::OPEN_READONLY);
    RecordedTrace trace;
    trace.path = path;
    trace.format = "Nsight Systems";
    const std::string kernel = "CUPTI_ACTIVITY_KIND_KERNEL";
    for (const char* column : {"start", "end", "deviceId", "streamId", "demangledName"}) {
      if (has_column(database, kernel, column)) continue;
      const bool table = database.tableExists(kernel);
      return Problem{"trace.table", path,
                     table ? fmt::format("its table {} has no column {}", kernel, column)
                           : fmt::format("is a database without the table {}", kernel),
                     "export a recording of GPU work: nsys export --type sqlite RECORDING.nsys-rep"};
    }
    std::optional<std::int64_t> origin;
    Devices devices(trace);
    SQLite::Statement kernels(database,
                              "SELECT k.start, k.end, k.deviceId, k.streamId, s.value FROM CUPTI_ACTIVITY_KIND_KERNEL k "
                              "JOIN StringIds s ON s.id = k.demangledName ORDER BY k.start");
    add_rows(kernels, origin, devices, trace, true);
    for (const char* table : {"CUPTI_ACTIVITY_KIND_MEMCPY", "CUPTI_ACTIVITY_KIND_MEMSET"}) {
      if (!database.tableExists(table)) continue;
      SQLite::Statement copies(database, fmt::format("SELECT start, end, deviceId, streamId FROM {} ORDER BY start", table));
      add_rows(copies, origin, devices, trace, false);
    }
    if (trace.devices.empty()) {
      return Problem{"trace.no_events", path, "holds no work of a GPU", "record with --trace=cuda,nvtx"};
    }
    return trace;
  } catch (const SQLite::Exception& error) {
    return Problem{"trace.unreadable", path, fmt::format("is a database that cannot be read: {}", error.what()),
                   "export it again: nsys export --type sqlite RECORDING.nsys-rep"};
  }
}

}  // namespace cpfit::trace
