#include "calibrate/read/csv.h"
#include "model/quantity/text_file.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <utility>

namespace cpfit {
namespace {

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlank = " \t";
  const auto first = text.find_first_not_of(kBlank);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlank) - first + 1);
}

/// Splits text into records of cells; a record knows the line it starts on.
class Splitter {
 public:
  Splitter(std::string_view text, const std::string& path) : text_(text), path_(path) {}

  [[nodiscard]] bool done() const { return at_ >= text_.size(); }
  [[nodiscard]] std::int64_t line() const { return line_; }

  /// The next record, or the problem that stops the reading.
  Outcome<std::vector<std::string>> record() {
    std::vector<std::string> cells;
    while (true) {
      auto next = cell();
      if (!next) return next.problems();
      cells.push_back(std::move(next).value());
      if (done()) return cells;
      const char separator = text_[at_++];
      if (separator == ',') {
        if (done()) {  // a trailing comma at the end of the file opens one last, empty cell
          cells.emplace_back();
          return cells;
        }
        continue;
      }
      if (separator == '\r' && !done() && text_[at_] == '\n') ++at_;
      ++line_;
      return cells;
    }
  }

 private:
  Outcome<std::string> cell() {
    if (at_ < text_.size() && text_[at_] == '"') return quoted_cell();
    const auto end = text_.find_first_of(",\r\n", at_);
    const auto stop = end == std::string_view::npos ? text_.size() : end;
    std::string cell(trimmed(text_.substr(at_, stop - at_)));
    at_ = stop;
    return cell;
  }

  Outcome<std::string> quoted_cell() {
    const std::int64_t opened = line_;
    std::string cell;
    for (++at_; at_ < text_.size(); ++at_) {
      if (text_[at_] == '\n') ++line_;
      if (text_[at_] != '"') {
        cell += text_[at_];
      } else if (at_ + 1 < text_.size() && text_[at_ + 1] == '"') {
        cell += text_[++at_];
      } else {
        ++at_;
        if (!done() && text_[at_] != ',' && text_[at_] != '\r' && text_[at_] != '\n') {
          return Problem{"csv.text_after_quote", fmt::format("{}:{}", path_, line_), "there is text after a closing quote",
                         "double every quote inside a quoted cell"};
        }
        return std::string(trimmed(cell));
      }
    }
    return Problem{"csv.open_quote", fmt::format("{}:{}", path_, opened), "a quoted cell is never closed",
                   "add the closing quote, or double the quotes inside the cell"};
  }

  std::string_view text_;
  const std::string path_;
  std::size_t at_ = 0;
  std::int64_t line_ = 1;
};

}  // namespace

std::optional<double> to_number(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) return std::nullopt;
  return value;
}

std::int64_t CsvRow::line() const { return table_->lines_[index_]; }

std::string_view CsvRow::text(std::string_view column) const {
  const auto position = table_->index_of(column);
  if (!position) return {};
  return table_->cells_[index_ * table_->columns_.size() + *position];
}

std::optional<double> CsvRow::number(std::string_view column) const { return to_number(text(column)); }

std::optional<std::int64_t> CsvRow::integer(std::string_view column) const {
  const auto value = number(column);
  if (!value || *value != std::floor(*value) || std::abs(*value) > 9e15) return std::nullopt;
  return static_cast<std::int64_t>(*value);
}

std::optional<std::size_t> CsvTable::index_of(std::string_view column) const {
  const auto found = position_.find(std::string(column));
  if (found == position_.end()) return std::nullopt;
  return found->second;
}

bool CsvTable::has_all(const std::vector<std::string_view>& columns) const {
  for (const auto column : columns) {
    if (!has(column)) return false;
  }
  return true;
}

Outcome<CsvTable> CsvTable::parse(std::string_view text, const std::string& path) {
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  if (text.find_first_not_of(" \t\r\n") == std::string_view::npos) {
    return Problem{"csv.empty", path, "the file is empty", "the first line must name the columns"};
  }
  CsvTable table;
  table.path_ = path;
  Splitter splitter(text, table.path_);
  auto header = splitter.record();
  if (!header) return header.problems();
  table.columns_ = std::move(header).value();
  for (std::size_t i = 0; i < table.columns_.size(); ++i) {
    if (!table.position_.emplace(table.columns_[i], i).second) {
      return Problem{"csv.duplicate_column", path + ":1", fmt::format("the column \"{}\" occurs twice", table.columns_[i]),
                     "give every column its own name"};
    }
  }
  while (!splitter.done()) {
    const std::int64_t line = splitter.line();
    auto record = splitter.record();
    if (!record) return record.problems();
    auto cells = std::move(record).value();
    if (cells.size() == 1 && cells[0].empty() && table.columns_.size() > 1) continue;  // an empty line
    if (cells.size() != table.columns_.size()) {
      return Problem{"csv.cell_count", fmt::format("{}:{}", path, line),
                     fmt::format("the line has {} cells and the header {} columns", cells.size(), table.columns_.size()),
                     "quote cells that hold commas, and leave blank what is unknown"};
    }
    table.lines_.push_back(line);
    for (auto& cell : cells) table.cells_.push_back(std::move(cell));
  }
  return table;
}

Outcome<CsvTable> CsvTable::load(const std::string& path) {
  const Outcome<std::string> text = read_text_file(path, kMostTableBytes, "csv.unreadable");
  if (!text) return text.problems();
  return parse(*text, path);
}

}  // namespace cpfit
