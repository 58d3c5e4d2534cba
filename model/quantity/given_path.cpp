#include "model/quantity/given_path.h"

#include <filesystem>
#include <system_error>

namespace cpfit {

std::string given_path_trouble(const std::string& path) {
  namespace fs = std::filesystem;
  if (path.empty()) return "the path is empty";
  std::error_code ignored;
  if (fs::is_directory(path, ignored)) return "that is a folder; name a file in it";
  const fs::path folder = fs::path(path).parent_path();
  if (folder.empty() || fs::is_directory(folder, ignored)) return {};
  const fs::file_status found = fs::status(folder, ignored);
  if (found.type() == fs::file_type::not_found) {
    return "the folder '" + folder.string() + "' does not exist; create it first (mkdir -p), or correct the path";
  }
  return fs::exists(found) ? "'" + folder.string() + "' is a file, not a folder; correct the path" : std::string();
}

void throw_unwritable(const std::string& path, const std::string& reason) {
  if (const std::string trouble = given_path_trouble(path); !trouble.empty())
    throw InputError(path + " cannot be written: " + trouble);
  throw Error(path + " cannot be written: " + reason);
}

void make_given_folder(const std::string& path) {
  std::error_code failed;
  std::filesystem::create_directories(path, failed);
  if (!failed) return;
  const std::string what = "the folder '" + path + "' cannot be made: " + failed.message();
  if (failed == std::errc::not_a_directory || failed == std::errc::file_exists) throw InputError(what + "; name another");
  throw Error(what);
}

}  // namespace cpfit
