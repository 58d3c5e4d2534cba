#include "cli/terminal.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace cpfit::cli {

namespace {

bool colour_wanted() {
  static const bool wanted = isatty(STDOUT_FILENO) != 0 && std::getenv("NO_COLOR") == nullptr;
  return wanted;
}

/// Cells on screen: bytes that start a UTF-8 character, escape sequences not counted.
std::size_t width_of(const std::string& text) {
  std::size_t width = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\033') {
      while (i < text.size() && text[i] != 'm') ++i;
      continue;
    }
    if ((static_cast<unsigned char>(text[i]) & 0xC0U) != 0x80U) ++width;
  }
  return width;
}

const char* code_of(Style style) {
  switch (style) {
    case Style::kPlain:
      return "";
    case Style::kBold:
      return "\033[1m";
    case Style::kGood:
      return "\033[32m";
    case Style::kWarn:
      return "\033[33m";
    case Style::kBad:
      return "\033[31m";
    case Style::kFaint:
      return "\033[2m";
  }
  return "";
}

}  // namespace

std::string styled(const std::string& text, Style style) {
  if (style == Style::kPlain || !colour_wanted()) return text;
  return code_of(style) + text + "\033[0m";
}

std::string heading(const std::string& text) { return "\n" + styled(text, Style::kBold) + "\n"; }

int terminal_width() {
  winsize size{};
  if (isatty(STDOUT_FILENO) != 0 && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col >= 60) return size.ws_col;
  return 100;
}

std::string wrapped(const std::string& paragraph, int indent) {
  const std::size_t width = static_cast<std::size_t>(terminal_width());
  const std::string margin(static_cast<std::size_t>(indent), ' ');
  std::size_t begin = std::min(paragraph.find_first_not_of(' '), paragraph.size());
  std::string text, line(begin, ' ');
  bool fresh = true;  // nothing but blanks in the line so far
  while (begin < paragraph.size()) {
    std::size_t end = paragraph.find(' ', begin);
    if (end == std::string::npos) end = paragraph.size();
    const std::string word = paragraph.substr(begin, end - begin);
    begin = end + 1;
    if (!fresh && width_of(line) + 1 + width_of(word) > width) {
      text += line + "\n";
      line = margin + word;
    } else {
      line += (fresh ? "" : " ") + word;
    }
    fresh = false;
  }
  return text + line;
}

void write_result(const std::string& text) {
  const bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0;
  if (!written) throw Error(fmt::format("standard output could not be written: {}", std::strerror(errno)));
}

void Table::row(std::vector<std::string> cells, Style style) { rows_.push_back({std::move(cells), style}); }

std::string Table::text() const {
  std::vector<std::size_t> widths;
  for (std::size_t c = 0; c < columns_.size(); ++c) {
    std::size_t width = width_of(columns_[c].title);
    for (const Row& row : rows_) width = std::max(width, c < row.cells.size() ? width_of(row.cells[c]) : 0);
    widths.push_back(width);
  }
  const auto line = [&](const std::vector<std::string>& cells) {
    std::string out;
    for (std::size_t c = 0; c < columns_.size(); ++c) {
      const std::string& cell = c < cells.size() ? cells[c] : std::string();
      const std::string pad(widths[c] - width_of(cell), ' ');
      const bool last = c + 1 == columns_.size();
      out += columns_[c].right ? pad + cell : cell + (last ? "" : pad);
      if (!last) out += "  ";
    }
    out.erase(out.find_last_not_of(' ') + 1);
    return out;
  };
  std::vector<std::string> titles;
  for (const Column& column : columns_) titles.push_back(column.title);
  std::string out = styled(line(titles), Style::kFaint) + "\n";
  for (const Row& row : rows_) out += styled(line(row.cells), row.style) + "\n";
  return out;
}

ProgressBar::ProgressBar(std::string label)
    : label_(std::move(label)),
      on_terminal_(isatty(STDERR_FILENO) != 0),
      begin_(std::chrono::steady_clock::now()),
      drawn_(begin_) {}

ProgressBar::~ProgressBar() {
  if (shown_) std::fputs("\r\033[K", stderr);
}

void ProgressBar::update(double share) {
  const auto now = std::chrono::steady_clock::now();
  if (!on_terminal_ || now - drawn_ < std::chrono::milliseconds(100)) return;
  drawn_ = now;
  shown_ = true;
  const double elapsed = std::chrono::duration<double>(now - begin_).count();
  const double left = share > 0.0 ? elapsed * (1.0 - share) / share : 0.0;
  constexpr int kCells = 30;
  const int filled = static_cast<int>(share * kCells);
  fmt::print(stderr, "\r{} [{}{}] {:3.0f} %  {:.0f} s left\033[K", label_, std::string(static_cast<std::size_t>(filled), '#'),
             std::string(static_cast<std::size_t>(kCells - filled), '.'), share * 100.0, left);
  std::fflush(stderr);
}

void print_problems(const Problems& problems) {
  for (const Problem& problem : problems) {
    fmt::print(stderr, "cpfit: {}{}{}\n", problem.where.empty() ? "" : problem.where + ": ", problem.message,
               problem.repair.empty() ? "" : "\n       " + problem.repair);
  }
}

}  // namespace cpfit::cli
