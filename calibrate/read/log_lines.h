// Lines of a job's log as its readers want them, one at a time: without colours, carriage returns and the rank that a launcher
// puts in front. A line longer than kLongestLine is cut. Memory does not grow with the file.
#pragma once

#include <cstdint>
#include <istream>
#include <string>
#include <string_view>
#include <vector>

namespace cpfit {

struct LogLine {
  std::string_view text;    // valid until the next line is read
  std::int64_t number = 0;  // from 1
  std::int64_t rank = -1;   // by the launcher's prefix; -1: none
  bool local = false;       // `rank` counts within a node only ("[default3]:")
  bool complete = true;     // false: the file ends without a line break here
};

inline constexpr std::size_t kLongestLine = std::size_t{1} << 16U;

class LogLines {
 public:
  explicit LogLines(std::istream& stream);
  /// False at the end.
  bool next(LogLine& line);
  [[nodiscard]] bool binary() const { return binary_; }    // a zero byte was met: no text
  [[nodiscard]] std::int64_t cut() const { return cut_; }  // lines that were too long

 private:
  bool read_raw();
  std::istream& stream_;
  std::vector<char> buffer_;
  std::size_t at_ = 0, end_ = 0;
  std::string raw_, clean_;
  std::int64_t number_ = 0, cut_ = 0;
  bool binary_ = false, complete_ = true;
};

/// "[rank3]:", "[default3]:" (torchrun), "3: " (srun --label), "[1,3]<stdout>:" (mpirun --tag-output): taken away, and the rank
/// said.
[[nodiscard]] std::string_view without_rank(std::string_view line, std::int64_t& rank, bool& local);

}  // namespace cpfit
