// Every trouble with the file is one Error that says what was tried, on which file, why it failed and how to repair it; and what
// was stored before is still there.
#include <SQLiteCpp/SQLiteCpp.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>

#include "db/query/runs.h"
#include "db/schema/migrate.h"
#include "db/store/run_store.h"
#include "db/store/validation_store.h"
#include "db/store/verification_store.h"
#include "model/quantity/given_path.h"
#include "sample_records.h"

namespace cpfit {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

std::string error_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& error) {
    return error.what();
  }
  return "(no error)";
}

std::string error_of_opening(const std::string& path, StoreAccess access = StoreAccess::kWrite) {
  StoreOptions options;
  options.access = access;
  return error_of([&] { (void)open_store(path, options); });
}

/// The error that somebody who is not root gets, as root is refused nothing.
std::string error_as_nobody(const std::function<void()>& work) {
  if (::geteuid() != 0) return error_of(work);
  int ends[2];
  if (::pipe(ends) != 0) return "(no pipe)";
  const int child = sample::start_child([&] {
    constexpr uid_t kNobody = 65534;
    if (::setgid(kNobody) != 0 || ::setuid(kNobody) != 0) throw Error("cannot become nobody");
    const std::string said = error_of(work);
    if (::write(ends[1], said.data(), said.size()) < 0) throw Error("cannot tell");
  });
  ::close(ends[1]);
  std::string said(4096, '\0');
  const auto length = ::read(ends[0], said.data(), said.size());
  ::close(ends[0]);
  (void)sample::wait_for(child);
  said.resize(static_cast<std::size_t>(std::max<ssize_t>(length, 0)));
  return said;
}

class TroubleTest : public ::testing::Test {
 protected:
  void make_study() {
    Store store = open_store(path_);
    const RunId run = create_run(store, sample::provenance());
    candidate_sink(store, run)(sample::batch(0, 50));
    finish_run(store, run, sample::plan_result());
  }
  sample::TemporaryFolder folder_;
  std::string path_ = folder_.file("study.cpfit");
};

/// Programs end otherwise for a path that is no database than for a disk that fails: the type says which.
TEST_F(TroubleTest, AMisplacedPathIsAnErrorOfInput) {
  const std::string junk = folder_.file("junk.cpfit");
  std::ofstream(junk) << std::string(5000, 'x');
  for (const StoreAccess access : {StoreAccess::kWrite, StoreAccess::kRead}) {
    const StoreOptions options{.access = access};
    EXPECT_THROW((void)open_store(folder_.file("."), options), InputError);
    EXPECT_THROW((void)open_store(folder_.file("absent/study.cpfit"), options), InputError);
    EXPECT_THROW((void)open_store(junk, options), InputError);
  }
  EXPECT_THROW((void)open_store(path_, {.access = StoreAccess::kRead}), InputError);  // no such file
  make_study();
  fs::resize_file(path_, 20'000);  // damaged: nothing is wrong with the path
  try {
    (void)list_runs(open_store(path_, {.access = StoreAccess::kRead}));
    ADD_FAILURE() << "a damaged file was read";
  } catch (const InputError& error) {
    ADD_FAILURE() << error.what();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("damaged"));
  }
}

TEST_F(TroubleTest, PathsThatLeadNowhere) {
  EXPECT_THAT(error_of_opening(folder_.file("absent/study.cpfit")),
              AllOf(HasSubstr("cannot open the database '" + folder_.file("absent/study.cpfit")), HasSubstr("does not exist"),
                    HasSubstr("mkdir")));
  EXPECT_THAT(error_of_opening(folder_.path().string()), HasSubstr("that is a folder"));
  EXPECT_THAT(error_of_opening(""), HasSubstr("path is empty"));
  EXPECT_THAT(error_of_opening(path_, StoreAccess::kRead), AllOf(HasSubstr("no such file"), HasSubstr("cpfit plan")));
  EXPECT_FALSE(fs::exists(path_)) << "reading made a file";
}

TEST_F(TroubleTest, TextIsNotADatabase) {
  std::ofstream(path_) << "tp,cp,pp,dp\n2,4,1,2 and enough text to fill more than the hundred bytes of a header of SQLite, "
                          "which is read first of all\n";
  EXPECT_THAT(error_of_opening(path_), AllOf(HasSubstr(path_), HasSubstr("not a SQLite database"), HasSubstr("--db")));
}

TEST_F(TroubleTest, AForeignDatabaseIsRefusedAndUntouched) {
  {
    SQLite::Database foreign(path_, SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE);
    foreign.exec("CREATE TABLE bookmark (url TEXT)");
  }
  const auto before = fs::last_write_time(path_);
  EXPECT_THAT(error_of_opening(path_), AllOf(HasSubstr("another program"), HasSubstr("--db")));
  EXPECT_THAT(error_of_opening(path_, StoreAccess::kRead), HasSubstr("another program"));
  EXPECT_EQ(fs::last_write_time(path_), before);
  SQLite::Database foreign(path_, SQLite::OPEN_READONLY);
  EXPECT_EQ(foreign.execAndGet("PRAGMA journal_mode").getString(), "delete");
  EXPECT_EQ(foreign.execAndGet("SELECT count(*) FROM sqlite_schema").getInt(), 1);
}

TEST_F(TroubleTest, AnEmptyDatabaseOfAnotherApplicationIsForeignToo) {
  {
    SQLite::Database(path_, SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE).exec("PRAGMA application_id = 77");
  }
  EXPECT_THAT(error_of_opening(path_), HasSubstr("another program"));
}

TEST_F(TroubleTest, ANewerSchemaIsRefused) {
  make_study();
  {
    SQLite::Database(path_, SQLite::OPEN_READWRITE).exec("PRAGMA user_version = 99");
  }
  EXPECT_THAT(error_of_opening(path_), AllOf(HasSubstr("newer cpfit"), HasSubstr("schema 99"), HasSubstr("Update cpfit")));
}

TEST_F(TroubleTest, AnOlderSchemaCannotBeBroughtUpByAReader) {
  make_study();
  {
    SQLite::Database(path_, SQLite::OPEN_READWRITE).exec("PRAGMA user_version = 0");
  }
  EXPECT_THAT(error_of_opening(path_, StoreAccess::kRead), AllOf(HasSubstr("older cpfit"), HasSubstr("schema 0")));
}

TEST_F(TroubleTest, ADamagedFileIsToldFromAForeignOne) {
  make_study();
  {
    std::fstream file(path_, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(100);  // behind the header of 100 bytes, over the root page of the schema
    const std::string noise(4000, '\x5a');
    file.write(noise.data(), static_cast<std::streamsize>(noise.size()));
  }
  EXPECT_THAT(error_of_opening(path_), AllOf(HasSubstr("damaged"), HasSubstr(".recover")));
}

TEST_F(TroubleTest, DamageFoundWhileReadingIsAnErrorToo) {
  make_study();
  fs::resize_file(path_, kStorePageBytes * 5);  // the schema stays, most rows are gone
  EXPECT_THAT(error_of([&] {
                const Store store = open_store(path_);
                (void)candidates_of(store, RunId{1});
                (void)load_run(store, RunId{1});
              }),
              AllOf(HasSubstr(path_), HasSubstr("damaged")));
}

/// Whoever makes a file can number its rows as he likes.
TEST_F(TroubleTest, NumbersThatPointNowhereDoNoHarm) {
  make_study();
  {
    Store store = open_store(path_);
    (void)save_validation(store, sample::validation_result(), "1", "1");
    Verification verification;
    verification.cases.resize(1);
    (void)save_verification(store, verification);
  }
  {
    SQLite::Database database(path_, SQLite::OPEN_READWRITE);
    database.exec("PRAGMA ignore_check_constraints = ON");
    database.exec("UPDATE link_load SET recipe_ordinal = recipe_ordinal - 1");
    database.exec("UPDATE validation_summary SET group_ordinal = -group_ordinal");
    database.exec("UPDATE verification_error SET case_ordinal = 7");
  }
  const Store store = open_store(path_);
  EXPECT_EQ(load_run(store, RunId{1})->links, sample::plan_result().links);
  const Outcome<ValidationResult> validation = load_validation(store, ValidationId{1});
  EXPECT_TRUE(validation->groups.empty());
  EXPECT_EQ(validation->summary.size(), 5U) << "its 2, and those of its groups, 1 and 2";
  EXPECT_THAT(error_of([&] { (void)load_verification(store, VerificationId{1}); }),
              AllOf(HasSubstr("case 7"), HasSubstr("damaged")));
}

TEST_F(TroubleTest, ALockedDatabaseSaysWhoToWaitFor) {
  make_study();
  StoreOptions options;
  options.patience = std::chrono::milliseconds(50);
  Store store = open_store(path_, options);
  const RunId run = create_run(store, sample::provenance());
  SQLite::Database other(path_, SQLite::OPEN_READWRITE);
  other.exec("BEGIN IMMEDIATE");
  const CandidateSink sink = candidate_sink(store, run);
  EXPECT_THAT(error_of([&] { sink(sample::batch(0, 2)); }),
              AllOf(HasSubstr("cannot store candidates of run 2 in '" + path_), HasSubstr("locked"), HasSubstr("0.05 s"),
                    HasSubstr("Wait until")));
  EXPECT_EQ(candidates_of(store, RunId{1}).size(), 50U);  // reading goes on meanwhile
  other.exec("ROLLBACK");
  sink(sample::batch(0, 2));
  EXPECT_EQ(candidates_of(store, run).size(), 2U);
}

TEST_F(TroubleTest, AFullFileKeepsWhatItHolds) {
  StoreOptions options;
  options.max_pages = 150;  // 150 * 8 KiB = 1.2 MB; a row has about 0.4 kB
  Store store = open_store(path_, options);
  const RunId run = create_run(store, sample::provenance());
  const CandidateSink sink = candidate_sink(store, run);
  std::int32_t written = 0;
  const std::string said = error_of([&] {
    for (; written < 100'000; written += 100) sink(sample::batch(written, 100));
  });
  EXPECT_THAT(said, AllOf(HasSubstr("no space is left"), HasSubstr("Free space"), HasSubstr("kept")));
  EXPECT_GT(written, 0);
  EXPECT_EQ(candidates_of(store, run).size(), static_cast<std::size_t>(written));
}

TEST_F(TroubleTest, AFullDiskKeepsWhatItHolds) {
  const fs::path disk = folder_.path() / "disk";
  fs::create_directory(disk);
  if (::mount("tmpfs", disk.c_str(), "tmpfs", 0, "size=2m") != 0) {
    GTEST_SKIP() << "cannot mount a small file system here: " << std::strerror(errno) << "; AFullFileKeepsWhatItHolds ran";
  }
  std::int32_t written = 0;
  std::string said;
  std::size_t kept = 0;
  {
    Store store = open_store((disk / "study.cpfit").string());
    const RunId run = create_run(store, sample::provenance());
    const CandidateSink sink = candidate_sink(store, run);
    said = error_of([&] {
      for (; written < 100'000; written += 100) sink(sample::batch(written, 100));
    });
    kept = candidates_of(store, run).size();
  }
  EXPECT_EQ(::umount(disk.c_str()), 0);
  EXPECT_THAT(said, AllOf(HasSubstr("no space is left"), HasSubstr(disk.string())));
  EXPECT_GT(written, 0);
  EXPECT_EQ(kept, static_cast<std::size_t>(written));
}

TEST_F(TroubleTest, OnADiskWithoutAByteItSaysSoAndReads) {
  const fs::path disk = folder_.path() / "disk";
  fs::create_directory(disk);
  if (::mount("tmpfs", disk.c_str(), "tmpfs", 0, "size=2m") != 0)
    GTEST_SKIP() << "cannot mount a small file system here: " << std::strerror(errno);
  path_ = (disk / "study.cpfit").string();
  make_study();  // closed in order: no log is left beside it
  {
    std::ofstream rest(disk / "rest");
    while (rest << std::string(4096, 'x') << std::flush) continue;
  }
  const std::string said = error_of_opening(path_);
  const std::string read = error_of([&] {
    const Store store = open_store(path_, {.access = StoreAccess::kRead});
    if (load_run(store, RunId{1})->ship != sample::plan_result().ship) throw Error("read something else");
  });
  EXPECT_EQ(::umount(disk.c_str()), 0);
  EXPECT_THAT(said, AllOf(HasSubstr("no space is left"), HasSubstr(disk.string())));
  EXPECT_EQ(read, "(no error)");
}

TEST_F(TroubleTest, AReadOnlyFolderCanBeReadButNotWritten) {
  make_study();
  ::chmod(path_.c_str(), 0666);
  ::chmod(folder_.path().c_str(), 0555);
  EXPECT_THAT(error_as_nobody([&] { (void)open_store(path_); }), AllOf(HasSubstr(path_), HasSubstr("Copy")));
  EXPECT_THAT(error_as_nobody([&] { (void)open_store(folder_.file("new.cpfit")); }),
              AllOf(HasSubstr("cannot be written"), HasSubstr("write-ahead log")));
  EXPECT_EQ(error_as_nobody([&] {
              StoreOptions read;
              read.access = StoreAccess::kRead;
              const Store store = open_store(path_, read);
              if (load_run(store, RunId{1})->ship != sample::plan_result().ship) throw Error("read something else");
            }),
            "(no error)");
  ::chmod(folder_.path().c_str(), 0755);
}

TEST_F(TroubleTest, PermissionsAreNamed) {
  make_study();
  ::chmod(folder_.path().c_str(), 0777);
  ::chmod(path_.c_str(), 0000);
  EXPECT_THAT(error_as_nobody([&] { (void)open_store(path_); }), HasSubstr("no permission to read"));
  ::chmod(path_.c_str(), 0444);
  EXPECT_THAT(error_as_nobody([&] { (void)open_store(path_); }), AllOf(HasSubstr("read-only"), HasSubstr("chmod")));
}

TEST_F(TroubleTest, WritingThroughAReaderIsRefused) {
  make_study();
  StoreOptions read;
  read.access = StoreAccess::kRead;
  Store store = open_store(path_, read);
  EXPECT_THAT(error_of([&] { (void)create_run(store, sample::provenance()); }), HasSubstr("can only be read"));
}

}  // namespace
}  // namespace cpfit
