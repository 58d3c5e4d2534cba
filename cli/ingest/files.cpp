#include "cli/ingest/files.h"

#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string_view>

#include "calibrate/read/csv.h"
#include "calibrate/read/published.h"
#include "calibrate/read/trace_overlap.h"
#include "model/quantity/counted.h"

namespace cpfit::cli {

namespace {

enum class FileKind : std::uint8_t { kLog, kTable, kTrace, kNsight, kSnapshot };

/// By the first bytes, and by the name only where both a log and a table are text.
FileKind kind_of(std::string_view head, const std::string& path) {
  const auto holds = [&](std::string_view part) { return head.find(part) != std::string_view::npos; };
  if (head.starts_with("SQLite format 3")) return FileKind::kNsight;
  if (head.starts_with("\x1f\x8b")) return FileKind::kTrace;
  if (head.size() >= 2 && head[0] == '\x80' && head[1] >= 2 && head[1] <= 5) return FileKind::kSnapshot;
  const std::size_t begin = head.find_first_not_of(" \t\r\n");
  const char first = begin == std::string_view::npos ? ' ' : head[begin];
  if (first == '{' || (first == '[' && (begin + 1 < head.size() &&
                                        (head[begin + 1] == '{' || head[begin + 1] == '\n' || head[begin + 1] == ' ')))) {
    const bool snapshot = holds("\"segments\"") || holds("\"device_traces\"") || holds("\"total_size\"");
    return snapshot && !holds("\"traceEvents\"") ? FileKind::kSnapshot : FileKind::kTrace;
  }
  return std::filesystem::path(path).extension() == ".csv" ? FileKind::kTable : FileKind::kLog;
}

Problems read_one(const std::string& path, FileKind kind, const JobReading& reading, IngestedFiles& into) {
  switch (kind) {
    case FileKind::kLog: {
      Outcome<JobLog> log = read_job_log(path);
      if (!log.ok()) return log.problems();
      into.job.logs.push_back(std::move(log).value());
      return {};
    }
    case FileKind::kTable: {
      Outcome<MeasuredTable> table = read_published(path);
      if (!table.ok()) return table.problems();
      into.tables.push_back(std::move(table).value());
      return {};
    }
    case FileKind::kSnapshot: {
      Outcome<MemorySnapshot> snapshot = read_memory_snapshot(path);
      if (!snapshot.ok()) return snapshot.problems();
      into.job.snapshots.push_back(std::move(snapshot).value());
      return {};
    }
    case FileKind::kTrace: {
      Outcome<KernelTrace> trace = read_kernel_trace(path);
      if (!trace.ok()) return trace.problems();
      into.job.traces.push_back(std::move(trace).value());
      return {};
    }
    case FileKind::kNsight:
      break;
  }
  const Outcome<RecordedTrace> trace = read_trace(path);
  if (!trace.ok()) return trace.problems();
  into.overlap_only.push_back({path, trace->format + " trace"});
  if (reading.trace_steps < 1) return {};
  std::vector<double> exposed;
  for (const TracedDevice& device : trace->devices)
    exposed.push_back(static_cast<double>(overlap_of(device).exposed) * 1e-12 / static_cast<double>(reading.trace_steps));
  into.overlap.push_back(figure_of(
      RunFigure::kExposedSeconds, std::move(exposed),
      fmt::format("{} of {} as {}", counted(trace->devices.size(), "device"), path, counted(reading.trace_steps, "step"))));
  return {};
}

}  // namespace

Outcome<IngestedFiles> read_ingested(const std::vector<std::string>& paths, const JobReading& reading) {
  IngestedFiles files;
  for (const std::string& path : paths) {
    std::error_code failure;
    if (std::filesystem::is_directory(path, failure)) {
      return Problem{"ingest.folder", path, "this is a folder", "name the files in it"};
    }
    errno = 0;
    std::ifstream file(path, std::ios::binary);
    std::array<char, 65536> head{};
    file.read(head.data(), head.size());
    if (!file.is_open() || file.gcount() == 0) {
      return Problem{"ingest.unreadable", path,
                     file.is_open() ? std::string("is empty") : fmt::format("cannot be opened: {}", std::strerror(errno)),
                     "check the path"};
    }
    const FileKind kind = kind_of({head.data(), static_cast<std::size_t>(file.gcount())}, path);
    file.close();
    if (Problems problems = read_one(path, kind, reading, files); !problems.empty()) return problems;
  }
  return files;
}

}  // namespace cpfit::cli
