#include "cli/write_file.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <fstream>

#include "model/quantity/problem.h"

namespace cpfit::cli {

void write_file(const std::string& path, const std::function<void(std::ostream&)>& write) {
  if (path.empty()) return;
  errno = 0;
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  const auto failed = [&] { return Error(fmt::format("{} cannot be written: {}", path, std::strerror(errno))); };
  if (!file) throw failed();
  try {
    write(file);
  } catch (const Error&) {
    throw failed();
  }
  file.flush();
  if (!file) throw failed();
}

}  // namespace cpfit::cli
