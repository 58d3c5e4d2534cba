#include "db/store/store.h"

#include <sqlite3.h>

#include <unistd.h>

#include <filesystem>
#include <random>
#include <thread>

#include "db/schema/migrate.h"
#include "db/store/connection.h"

namespace cpfit {

Store::Store(std::unique_ptr<Connection> connection) : connection_(std::move(connection)) {}
Store::Store(Store&&) noexcept = default;
Store& Store::operator=(Store&&) noexcept = default;
Store::~Store() = default;
const std::string& Store::path() const { return connection_->path; }

namespace {

constexpr int kLogPages = 4096;  // the log is folded into the file when it holds this many pages (32 MiB)
constexpr int kCacheKibibytes = 16 * 1024;

[[noreturn]] void fail(const std::string& path, const Trouble& trouble) {
  throw_trouble("cannot open the database '" + path + "'", trouble);
}

/// A URI under which SQLite reads a file without a lock or a log: for folders that cannot be written.
std::string immutable_uri(const std::string& path) {
  constexpr char kHex[] = "0123456789ABCDEF";
  std::string uri = "file:";
  for (const char c : std::filesystem::absolute(path).string()) {
    const auto byte = static_cast<unsigned char>(c);
    const bool plain = (byte >= '0' && byte <= '9') || (byte >= 'A' && byte <= 'Z') || (byte >= 'a' && byte <= 'z') ||
                       byte == '/' || byte == '.' || byte == '-' || byte == '_';
    if (plain) {
      uri += c;
    } else {
      uri += {'%', kHex[byte >> 4], kHex[byte & 15]};
    }
  }
  return uri + "?immutable=1";
}

/// A log beside the file holds commits that an immutable read would not see.
bool has_log(const std::string& path) {
  std::error_code none;
  const auto size = std::filesystem::file_size(path + "-wal", none);
  return !none && size > 0;
}

SQLite::Database open_file(const std::string& path, const StoreOptions& options) {
  const int patience = static_cast<int>(options.patience.count());
  if (options.access == StoreAccess::kWrite) {
    return {path, SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE | SQLite::OPEN_NOMUTEX, patience};
  }
  try {
    SQLite::Database database(path, SQLite::OPEN_READONLY | SQLite::OPEN_NOMUTEX, patience);
    database.exec("SELECT count(*) FROM sqlite_schema");  // a database opens its log only when it is first read
    return database;
  } catch (const SQLite::Exception& exception) {
    const int code = exception.getErrorCode() & 0xff;
    // A full disk has no room for the memory that readers share: an error of the file system.
    if ((code != SQLITE_CANTOPEN && code != SQLITE_READONLY && code != SQLITE_IOERR) || has_log(path)) throw;
  }
  return {immutable_uri(path), SQLite::OPEN_READONLY | SQLite::OPEN_NOMUTEX | SQLite::OPEN_URI, patience};
}

/// The change to write-ahead logging needs the file alone for a moment, and SQLite does not always wait for that by itself.
void enter_log_mode(SQLite::Database& database, std::chrono::milliseconds patience) {
  constexpr std::chrono::milliseconds kPause{10};
  for (auto waited = std::chrono::milliseconds{0};; waited += kPause) {
    const int code = database.tryExec("PRAGMA journal_mode = WAL");
    if (code == SQLITE_OK) return;
    if ((code & 0xff) != SQLITE_BUSY || waited >= patience) throw SQLite::Exception(database.getHandle(), code);
    std::this_thread::sleep_for(kPause);
  }
}

void make_ready_to_write(SQLite::Database& database, const StoreOptions& options, DatabaseKind kind) {
  if (kind == DatabaseKind::kEmpty) database.exec("PRAGMA page_size = " + std::to_string(kStorePageBytes));
  enter_log_mode(database, options.patience);
  // A killed process loses nothing that was committed; a power failure may lose the last batches, never the file.
  database.exec("PRAGMA synchronous = NORMAL");
  database.exec("PRAGMA foreign_keys = ON");
  database.exec("PRAGMA wal_autocheckpoint = " + std::to_string(kLogPages));
  database.exec("PRAGMA cache_size = -" + std::to_string(kCacheKibibytes));
  migrate(database, schema_steps());
  if (options.max_pages > 0) database.exec("PRAGMA max_page_count = " + std::to_string(options.max_pages));
}

/// A file of its own beside the database, gone with this object.
class FileBeside {
 public:
  explicit FileBeside(const std::string& path)
      : path_(path + ".new-" + std::to_string(::getpid()) + "-" + std::to_string(std::random_device{}())) {}
  FileBeside(const FileBeside&) = delete;
  FileBeside& operator=(const FileBeside&) = delete;
  ~FileBeside() {
    std::error_code ignored;
    for (const char* part : {"", "-journal", "-wal", "-shm"}) std::filesystem::remove(path_ + part, ignored);
  }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

/// A new database appears with its schema or not at all: a reader that looks while a writer starts never finds an empty file, and
/// of two writers that start together one's file is taken by both. Where the file system has no hard links, the file grows in
/// place.
void make_new_file(const std::string& path, const StoreOptions& options) {
  const FileBeside beside(path);
  {
    SQLite::Database database = open_file(beside.path(), options);
    make_ready_to_write(database, {}, DatabaseKind::kEmpty);
  }
  std::error_code taken_or_no_links;
  std::filesystem::create_hard_link(beside.path(), path, taken_or_no_links);
}

/// From this version on a file can be read as it is: later steps only add what reading then finds empty.
constexpr std::int32_t kOldestRead = 1;

/// Only an empty file or one of ours, of a version we know, may go on.
void accept(const RecognisedDatabase& seen, const std::string& path, StoreAccess access) {
  const std::int32_t newest = schema_steps().back().version;
  const std::string versions = "schema " + std::to_string(seen.version) + ", this cpfit knows schema " + std::to_string(newest);
  if (seen.kind == DatabaseKind::kForeign) {
    fail(path, {"it is a database of another program, not of cpfit. Correct the path, or choose another file with --db", true});
  }
  if (seen.kind == DatabaseKind::kOurs && seen.version > newest) {
    fail(path, {"it was written by a newer cpfit (" + versions + "). Update cpfit, or choose another file with --db", true});
  }
  if (access == StoreAccess::kWrite) return;
  if (seen.kind == DatabaseKind::kEmpty) {
    fail(path, {"it is empty. Make a study first (cpfit plan SCENARIO --db FILE), or correct the path", true});
  }
  if (seen.version < kOldestRead) {
    fail(path,
         {"it was written by an older cpfit (" + versions + "). Open it once where it can be written, or copy it there", true});
  }
}

}  // namespace

Store open_store(const std::string& path, const StoreOptions& options) {
  if (const Trouble trouble = file_trouble(path, options.access == StoreAccess::kWrite)) fail(path, trouble);
  try {
    std::error_code unknown;
    if (options.access == StoreAccess::kWrite && !std::filesystem::exists(path, unknown)) make_new_file(path, options);
    auto connection = std::make_unique<Store::Connection>(Store::Connection{path, options.patience, open_file(path, options)});
    const RecognisedDatabase seen = recognise(connection->database);
    accept(seen, path, options.access);
    if (options.access == StoreAccess::kWrite) make_ready_to_write(connection->database, options, seen.kind);
    return Store(std::move(connection));
  } catch (const SQLite::Exception& exception) {
    fail(path, explain(exception, path, options.patience));
  }
}

}  // namespace cpfit
