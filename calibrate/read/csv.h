// A table of comma-separated values (RFC 4180: quoted cells may hold commas, quotes doubled, and line breaks), read whole,
// addressed by the names of its header and by the line a record starts on. Published measurements come in this form.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "model/quantity/problem.h"

namespace cpfit {

class CsvTable;

/// One record. Valid while its table lives.
class CsvRow {
 public:
  CsvRow(const CsvTable& table, std::size_t index) : table_(&table), index_(index) {}
  /// Line of the file on which the record starts; the header is line 1.
  [[nodiscard]] std::int64_t line() const;
  /// The cell without surrounding blanks; empty when the cell is blank or the table has no such column.
  [[nodiscard]] std::string_view text(std::string_view column) const;
  [[nodiscard]] bool blank(std::string_view column) const { return text(column).empty(); }
  /// The cell as a number; nothing when it is blank or not exactly one number (no unit, no thousands separator).
  [[nodiscard]] std::optional<double> number(std::string_view column) const;
  [[nodiscard]] std::optional<std::int64_t> integer(std::string_view column) const;

 private:
  const CsvTable* table_;
  std::size_t index_;
};

class CsvTable {
 public:
  /// Problems: "csv.empty", "csv.duplicate_column", "csv.open_quote", "csv.text_after_quote", "csv.cell_count", each with
  /// file:line.
  [[nodiscard]] static Outcome<CsvTable> parse(std::string_view text, const std::string& path);
  /// Reads a file; an unreadable one is the problem "csv.unreadable" (a person named it).
  [[nodiscard]] static Outcome<CsvTable> load(const std::string& path);

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] const std::vector<std::string>& columns() const { return columns_; }
  [[nodiscard]] bool has(std::string_view column) const { return index_of(column).has_value(); }
  [[nodiscard]] bool has_all(const std::vector<std::string_view>& columns) const;
  [[nodiscard]] std::size_t size() const { return lines_.size(); }
  [[nodiscard]] CsvRow row(std::size_t index) const { return {*this, index}; }

 private:
  friend class CsvRow;
  [[nodiscard]] std::optional<std::size_t> index_of(std::string_view column) const;

  std::string path_;
  std::vector<std::string> columns_;
  std::unordered_map<std::string, std::size_t> position_;
  std::vector<std::string> cells_;  // (rows, columns), row by row
  std::vector<std::int64_t> lines_;
};

/// Reads "1.5e12", "-3", "0.42": the whole text must be one number.
[[nodiscard]] std::optional<double> to_number(std::string_view text);

}  // namespace cpfit
