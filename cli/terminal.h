// Output for people: aligned tables, colour on a terminal, a progress bar on standard error. Results go to standard output,
// progress and trouble to standard error; nothing here is printed in --json mode.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "model/quantity/percent.h"
#include "model/quantity/problem.h"

namespace cpfit::cli {

enum class Style { kPlain, kBold, kGood, kWarn, kBad, kFaint };

/// Wraps text in the style's escape codes when standard output is a terminal and NO_COLOR is not set.
[[nodiscard]] std::string styled(const std::string& text, Style style);
/// The title of a section of printed results, after an empty line.
[[nodiscard]] std::string heading(const std::string& text);

/// Columns of a terminal, 100 when standard output is none.
[[nodiscard]] int terminal_width();

/// Breaks a paragraph at blanks to the terminal's width, each line after the first indented; blanks in front of it stay.
[[nodiscard]] std::string wrapped(const std::string& paragraph, int indent);

/// A result on standard output, through to the file or pipe behind it; throws Error with the reason when that fails.
void write_result(const std::string& text);

/// A table whose columns are as wide as their longest cell; numbers are right-aligned by the caller's choice of column.
class Table {
 public:
  struct Column {
    std::string title;
    bool right = true;
  };
  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}
  void row(std::vector<std::string> cells, Style style = Style::kPlain);
  [[nodiscard]] std::string text() const;

 private:
  struct Row {
    std::vector<std::string> cells;
    Style style;
  };
  std::vector<Column> columns_;
  std::vector<Row> rows_;
};

/// A bar on standard error, drawn at most ten times a second and only on a terminal; erased when destroyed.
class ProgressBar {
 public:
  explicit ProgressBar(std::string label);
  ~ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;
  void update(double share);

 private:
  std::string label_;
  bool shown_ = false;
  bool on_terminal_;
  std::chrono::steady_clock::time_point begin_, drawn_;
};

/// Problems on standard error, one a line, with what to do about each.
void print_problems(const Problems& problems);

}  // namespace cpfit::cli
