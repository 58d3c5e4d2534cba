// A store: one SQLite file that keeps planning runs and validations, opened by one process among several.
// A store is used by one thread at a time; another thread or process opens its own. Writers take turns by transaction
// (write-ahead log, which needs a local file system when several hosts are involved). Every function of db that fails on the file
// (locked, full, damaged, read-only ...) throws Error: what was tried, on which file, why it failed and what to do. What was
// committed before stays.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "model/quantity/problem.h"

namespace cpfit {

enum class StoreAccess : std::uint8_t {
  kWrite,  // creates the file where there is none, brings an older schema up to date
  kRead    // never writes; works in a read-only folder too
};

struct StoreOptions {
  StoreAccess access = StoreAccess::kWrite;
  std::chrono::milliseconds patience{10'000};  // how long to wait for another writer
  std::int64_t max_pages = 0;                  // upper bound of the file in pages of kStorePageBytes; 0 = none
};

inline constexpr std::int64_t kStorePageBytes = 8192;  // of files created here

class Store {
 public:
  struct Connection;  // db/store/connection.h; only db looks inside
  explicit Store(std::unique_ptr<Connection> connection);
  Store(Store&&) noexcept;
  Store& operator=(Store&&) noexcept;
  ~Store();

  [[nodiscard]] const std::string& path() const;
  [[nodiscard]] Connection& connection() const { return *connection_; }

 private:
  std::unique_ptr<Connection> connection_;
};

/// Opens or creates the store at `path`. Throws Error for: no such file or folder, no permission, not a database, damaged,
/// a database of another program, one written by a newer cpfit, locked for longer than `patience`, read-only, full. Where the
/// path is at fault (a folder, no such file or folder, no database of ours) it is an InputError.
[[nodiscard]] Store open_store(const std::string& path, const StoreOptions& options = {});

}  // namespace cpfit
