#include "db/store/trouble.h"

#include <SQLiteCpp/Exception.h>
#include <fmt/format.h>
#include <sqlite3.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <system_error>

#include "model/quantity/given_path.h"

namespace cpfit {

namespace {

namespace fs = std::filesystem;

std::string folder_of(const std::string& path) {
  const std::string folder = fs::path(path).parent_path().string();
  return folder.empty() ? "." : folder;
}

std::string seconds(std::chrono::milliseconds time) { return fmt::format("{:g} s", static_cast<double>(time.count()) / 1000); }

std::string read_only_folder(const std::string& path) {
  return "the folder '" + folder_of(path) +
         "' cannot be written, and the write-ahead log lies beside the file. Copy the file to a folder that can be written, or "
         "choose another with --db";
}

std::string no_space(const std::string& path) {
  return "no space is left (the disk is full, or the file has reached its size limit). Free space on the file system of '" +
         folder_of(path) + "', then run the same command again: batches stored before are kept and are not computed twice";
}

/// Memory that processes share lies in a file beside the database; where that cannot grow, SQLite speaks of an error of the disk.
bool is_full(const std::string& path) {
  constexpr std::uintmax_t kSharedBytes = 32768;
  std::error_code failed;
  const fs::space_info space = fs::space(folder_of(path), failed);
  return !failed && space.available < kSharedBytes;
}

}  // namespace

void throw_trouble(const std::string& what, const Trouble& trouble) {
  if (trouble.of_the_path) throw InputError(what + ": " + trouble.text);
  throw Error(what + ": " + trouble.text);
}

Trouble file_trouble(const std::string& path, bool writes) {
  constexpr bool kOfThePath = true;
  if (path.empty()) return {"the path is empty. Name a file with --db", kOfThePath};
  std::error_code ignored;
  if (fs::is_directory(path, ignored))
    return {"that is a folder. Name a file in it, for instance '" + path + "/study.cpfit'", kOfThePath};
  const std::string folder = folder_of(path);
  if (!fs::is_directory(folder, ignored)) {
    return {"the folder '" + folder + "' does not exist. Create it first (mkdir -p), or correct the path", kOfThePath};
  }
  const bool exists = ::access(path.c_str(), F_OK) == 0;
  if (!exists && ::access(folder.c_str(), X_OK) != 0) {
    return {"no permission to enter the folder '" + folder + "'. Ask its owner, or choose another file with --db"};
  }
  if (!exists && !writes) {
    return {"there is no such file. Correct the path, or make a study first (cpfit plan SCENARIO --db FILE)", kOfThePath};
  }
  if (exists && ::access(path.c_str(), R_OK) != 0) {
    return {"no permission to read the file. Ask its owner (chmod u+rw), or choose another file with --db"};
  }
  if (writes && exists && ::access(path.c_str(), W_OK) != 0) {
    return {"the file is read-only. Make it writable (chmod u+w), or copy it and name the copy with --db"};
  }
  if (writes && ::access(folder.c_str(), W_OK) != 0) return {read_only_folder(path)};
  return {};
}

Trouble explain(const SQLite::Exception& exception, const std::string& path, std::chrono::milliseconds patience) {
  const std::string said = std::string(" (SQLite: ") + exception.what() + ")";
  switch (exception.getErrorCode() & 0xff) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return {"another process kept it locked for more than " + seconds(patience) +
              ". Wait until that process is done (cpfit, cpfit-gui, sqlite3 ...), then do this again"};
    case SQLITE_FULL:
      return {no_space(path)};
    case SQLITE_READONLY: {
      if (exception.getExtendedErrorCode() == SQLITE_READONLY_DBMOVED) {
        return {"the file was moved or deleted while it was open. Put it back, then do this again"};
      }
      const Trouble reason = file_trouble(path, true);
      return reason ? reason : Trouble{"it can only be read" + said + ". Copy the file and name the copy with --db"};
    }
    case SQLITE_NOTADB:
      return {"the file is not a SQLite database (or is encrypted). Correct the path, or choose another file with --db", true};
    case SQLITE_CORRUPT:
      return {"the file is damaged" + said + ". Restore a copy, or save what can be read: sqlite3 FILE .recover | sqlite3 NEW"};
    case SQLITE_CANTOPEN:
    case SQLITE_PERM: {
      const Trouble reason = file_trouble(path, true);
      return reason ? reason : Trouble{"it cannot be opened" + said + ". Check the permissions of the file and of its folder"};
    }
    case SQLITE_IOERR:
      if (is_full(path)) return {no_space(path)};
      return {"the file system reported an error" + said + ". Check the disk, the quota and the mount of '" + folder_of(path) +
              "', then do this again"};
    case SQLITE_CONSTRAINT:
      return {std::string("a value breaks a rule of the schema: ") + exception.what() +
              ". This is a mistake in cpfit; please report it with this sentence"};
    default:
      return {std::string(exception.what()) + " (SQLite error " + std::to_string(exception.getExtendedErrorCode()) + ")"};
  }
}

}  // namespace cpfit
