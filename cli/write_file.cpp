#include "cli/write_file.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "model/quantity/given_path.h"

namespace cpfit::cli {

namespace {

namespace fs = std::filesystem;

/// The file that is written first and takes the other's place then; removed when it did not come to that.
class Draft {
 public:
  explicit Draft(const std::string& path) : path_(path) {
    if (!given_path_trouble(path).empty()) throw_unwritable(path, "");
    std::error_code ignored;
    target_ = fs::is_symlink(path, ignored) ? fs::weakly_canonical(path, ignored).string() : path;
    if (target_.empty()) target_ = path;
    exists_ = fs::exists(target_, ignored);
    if (exists_ && ::access(target_.c_str(), W_OK) != 0) throw failed();
    if (!exists_ || fs::is_regular_file(target_, ignored)) {
      draft_ = target_ + fmt::format(".new-{}", ::getpid());
      errno = 0;
      file_.open(draft_, std::ios::binary | std::ios::trunc);
      if (file_ || !exists_) return;
      draft_.clear();
      file_.clear();
    }
    errno = 0;
    file_.open(target_, std::ios::binary | std::ios::trunc);
  }
  ~Draft() {
    std::error_code ignored;
    if (!draft_.empty()) fs::remove(draft_, ignored);
  }
  Draft(const Draft&) = delete;
  Draft& operator=(const Draft&) = delete;

  [[nodiscard]] std::ofstream& file() { return file_; }
  [[nodiscard]] Error failed() const { return Error(fmt::format("{} cannot be written: {}", path_, std::strerror(errno))); }

  void finish() {
    file_.close();
    if (!file_) throw failed();
    if (draft_.empty()) return;
    std::error_code reason;
    if (exists_) fs::permissions(draft_, fs::status(target_, reason).permissions(), reason);
    fs::rename(draft_, target_, reason);
    if (reason) throw Error(fmt::format("{} cannot be written: {}", path_, reason.message()));
    draft_.clear();
  }

 private:
  std::string path_, target_, draft_;
  bool exists_ = false;
  std::ofstream file_;
};

}  // namespace

void write_file(const std::string& path, const std::function<void(std::ostream&)>& write) {
  if (path.empty()) return;
  Draft draft(path);
  if (!draft.file()) throw draft.failed();
  try {
    write(draft.file());
  } catch (const Error&) {
    throw draft.failed();
  }
  if (!draft.file()) throw draft.failed();
  draft.finish();
}

}  // namespace cpfit::cli
