// What went wrong with a database file, in sentences a person can act on: the reason and the repair. Private to db.
#pragma once

#include <chrono>
#include <string>

namespace SQLite {
class Exception;
}

namespace cpfit {

struct Trouble {
  std::string text;          // reason and repair; empty: none
  bool of_the_path = false;  // the path names no database of cpfit (a folder, nothing, another file): a mistake of input
  [[nodiscard]] explicit operator bool() const { return !text.empty(); }
};

/// Throws InputError where the path is at fault, else Error: `what` ("cannot open the database 'a.db'") and the reason.
[[noreturn]] void throw_trouble(const std::string& what, const Trouble& trouble);

/// Reason and repair for what SQLite reports of the file at `path`; `patience` is how long a lock was waited for.
[[nodiscard]] Trouble explain(const SQLite::Exception& exception, const std::string& path, std::chrono::milliseconds patience);

/// Why the file system will not let us open `path`, as far as that can be told before trying; empty when nothing speaks against
/// it. `writes`: we mean to write, which needs the folder too (the write-ahead log lies beside the file).
[[nodiscard]] Trouble file_trouble(const std::string& path, bool writes);

}  // namespace cpfit
