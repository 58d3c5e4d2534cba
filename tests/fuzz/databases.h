// SQLite files for the targets that read one, and hostile changes to them.
#pragma once

#include <string>
#include <string_view>

namespace cpfit::fuzz {

/// A file in memory (where the system has such a folder), removed when the value dies.
class TemporaryFile {
 public:
  explicit TemporaryFile(std::string_view content);
  ~TemporaryFile();
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

/// A whole result database: two runs of that scenario, a validation, a timeline, a verification, a calibration.
[[nodiscard]] std::string database_of(const std::string& scenario_text);
/// Of a scenario that cannot be read. Made once.
[[nodiscard]] const std::string& result_database();
/// An export of Nsight Systems with a few kernels, copies and marks. Made once.
[[nodiscard]] const std::string& nsys_database();

/// `bytes` itself where it is a database; else `from` with patches: each takes six bytes, a place (3), how many bytes more of the
/// same (1), what to write (1), and whether to cut the file there (1: below 4).
[[nodiscard]] std::string changed_database(const std::string& from, std::string_view bytes);

/// A database whose schema lost its rules (types, NOT NULL): every cell may hold anything.
[[nodiscard]] std::string loosened(const std::string& bytes);

/// `from` with other values in up to 16 cells: per change a column, a value and a row, chosen by the bytes.
[[nodiscard]] std::string with_changed_cells(const std::string& from, std::string_view bytes);

}  // namespace cpfit::fuzz
