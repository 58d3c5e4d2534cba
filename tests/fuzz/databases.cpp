#include "tests/fuzz/databases.h"

#include <SQLiteCpp/SQLiteCpp.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

#include "db/store/calibration_store.h"
#include "db/store/run_store.h"
#include "db/store/timeline_store.h"
#include "db/store/validation_store.h"
#include "db/store/verification_store.h"
#include "tests/db/sample_records.h"

namespace cpfit::fuzz {

namespace {

std::string content_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

Timeline small_timeline() {
  Timeline timeline;
  timeline.step = 3000;
  timeline.names = {"attention", "send"};
  for (const std::int32_t rank : {0, 1}) {
    SpanLane lane{rank, "compute", {}};
    for (int i = 0; i < 3; ++i) {
      LaneSpan span;
      span.start = span.posted = 1000 * i;
      span.end = span.start + 500;
      span.name = i % 2;
      span.kind = static_cast<SpanKind>(i);
      lane.spans.push_back(span);
    }
    timeline.lanes.push_back(std::move(lane));
  }
  return timeline;
}

Verification small_verification() {
  Verification verification;
  verification.suite = "quick";
  verification.backend = "reference";
  verification.implementation = "cpfit";
  VerifiedCase one;
  one.method = "te_p2p";
  one.cp = 2;
  one.passed = true;
  verification.cases = {one, one};
  verification.blocks = {{"te_p2p", "two layers", 4, true, 4.5, 4.25, "layer1.key", 1e-15, 1e-11, "slow"}};
  VerifiedControl control;
  control.name = "kv_of_step_zero";
  control.caught = true;
  verification.controls = {control};
  return verification;
}

Calibration small_calibration() {
  Calibration calibration;
  calibration.name = "node";
  calibration.sources = {{"a.json", std::string(64, 'a'), "nccl-tests", 4, 0}};
  calibration.machine.hosts = {"n0", "n1"};
  calibration.gaps = {{"attention backward", "no point"}};
  calibration.rates_toml = "version = \"fit\"\n";
  calibration.id = calibration_id(calibration);
  return calibration;
}

void fill(const std::string& path, const Provenance& provenance) {
  Store store = open_store(path);
  for (const bool done : {true, false}) {
    const RunId run = create_run(store, provenance);
    std::vector<Candidate> batch = sample::batch(0, 3);
    batch[1].reasons = {"a reason"};
    candidate_sink(store, run)(batch);
    if (done) {
      PlanResult result = sample::plan_result();
      result.provenance = provenance;
      finish_run(store, run, result);
    } else {
      interrupt_run(store, run);
    }
  }
  (void)save_validation(store, sample::validation_result(), "1", "1");
  (void)save_timeline(store, small_timeline(), {"a.toml", "", "tp=1", "1", "1"});
  (void)save_verification(store, small_verification());
  (void)save_calibration(store, small_calibration(), {{"H100-SXM5-80GB", "gemm bf16", "m 1-2", {}}});
}

constexpr const char* kNsys =
    "CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT);"
    "CREATE TABLE TARGET_INFO_GPU (id INTEGER PRIMARY KEY, name TEXT);"
    "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER, deviceId INTEGER, streamId INTEGER, "
    "demangledName INTEGER, shortName INTEGER);"
    "CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INTEGER, end INTEGER, deviceId INTEGER, streamId INTEGER, copyKind INTEGER);"
    "CREATE TABLE NVTX_EVENTS (start INTEGER, end INTEGER, eventType INTEGER, text TEXT, textId INTEGER);"
    "INSERT INTO StringIds VALUES (1,'gemm'),(2,'ncclDevKernel_SendRecv(x)');"
    "INSERT INTO TARGET_INFO_GPU VALUES (0,'NVIDIA H100 80GB HBM3');"
    "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (1000,2000,0,7,1,1),(1500,2600,0,13,2,2),(0,500,1,7,1,1);"
    "INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (100,300,0,7,1);"
    "INSERT INTO NVTX_EVENTS VALUES (0,3000,59,'ProfilerStep#3',NULL);";

/// What a person's sqlite3 could do to a file: the rules of the schema go, so that every cell may hold anything.
void loosen(SQLite::Database& database) {
  database.exec("PRAGMA journal_mode = DELETE; PRAGMA foreign_keys = OFF; PRAGMA writable_schema = ON");
  database.exec("UPDATE sqlite_schema SET sql = replace(replace(sql, 'STRICT', ''), 'NOT NULL', '')");
  database.exec("PRAGMA writable_schema = RESET");
}

/// The bytes from left to right; zeros when they have run out.
class Choices {
 public:
  explicit Choices(std::string_view bytes) : bytes_(bytes) {}
  [[nodiscard]] bool empty() const { return at_ >= bytes_.size(); }
  [[nodiscard]] unsigned next() { return empty() ? 0U : static_cast<unsigned char>(bytes_[at_++]); }
  [[nodiscard]] std::int64_t number() {
    std::uint64_t value = 0;
    for (int i = 0; i < 8; ++i) value = value << 8 | next();
    return static_cast<std::int64_t>(value);
  }
  [[nodiscard]] std::string_view text() {
    const std::size_t size = std::min<std::size_t>(next(), bytes_.size() - std::min(at_, bytes_.size()));
    const std::string_view taken = bytes_.substr(std::min(at_, bytes_.size()), size);
    at_ += size;
    return taken;
  }

 private:
  std::string_view bytes_;
  std::size_t at_ = 0;
};

struct Column {
  std::string table, name;
  bool numbered = true;  // its rows have numbers
};

std::vector<Column> columns_of(SQLite::Database& database) {
  std::vector<Column> columns;
  SQLite::Statement select(database,
                           "SELECT m.name, c.name, m.sql NOT LIKE '%WITHOUT ROWID%' FROM sqlite_schema m, "
                           "pragma_table_info(m.name) c WHERE m.type = 'table' AND "
                           "m.name NOT LIKE 'sqlite_%'");
  while (select.executeStep())
    columns.push_back({select.getColumn(0).getString(), select.getColumn(1).getString(), select.getColumn(2).getInt() != 0});
  return columns;
}

void change_cell(SQLite::Database& database, const std::vector<Column>& columns, Choices& choices) {
  const std::size_t which = choices.next() << 8 | choices.next();
  const Column& column = columns[which % columns.size()];
  // Tables without row numbers: all of their rows.
  const std::string rows =
      column.numbered ? "rowid IN (SELECT rowid FROM \"" + column.table + "\" LIMIT 1 OFFSET ?2)" : "?2 >= 0";
  SQLite::Statement update(database, "UPDATE OR IGNORE \"" + column.table + "\" SET \"" + column.name + "\" = ?1 WHERE " + rows);
  switch (choices.next() % 8) {
    case 0:
      update.bind(1);
      break;
    case 1:
      update.bind(1, choices.number());
      break;
    case 2:
      update.bind(1, static_cast<std::int64_t>(choices.next()) - 128);
      break;
    case 3:
      update.bind(1, 1e308 * (static_cast<double>(choices.next()) - 128));
      break;
    case 4:
    case 5:
      update.bind(1, std::string(choices.text()));
      break;
    default: {
      const std::string_view blob = choices.text();
      update.bind(1, blob.data(), static_cast<int>(blob.size()));
    }
  }
  update.bind(2, static_cast<std::int64_t>(choices.next() % 8));
  (void)update.tryExecuteStep();
}

}  // namespace

TemporaryFile::TemporaryFile(std::string_view content) {
  static const std::string folder =
      ::access("/dev/shm", W_OK) == 0 ? "/dev/shm" : std::filesystem::temp_directory_path().string();
  path_ = folder + "/cpfit_fuzz_" + std::to_string(::getpid());
  std::FILE* file = std::fopen(path_.c_str(), "wb");
  if (file == nullptr) {
    std::perror(path_.c_str());
    std::abort();
  }
  std::fwrite(content.data(), 1, content.size(), file);
  std::fclose(file);
}

TemporaryFile::~TemporaryFile() {
  for (const char* end : {"", "-wal", "-shm", "-journal"}) ::unlink((path_ + end).c_str());
}

std::string database_of(const std::string& scenario_text) {
  const sample::TemporaryFolder folder;
  fill(folder.file("r.sqlite"), sample::provenance(scenario_text));
  return content_of(folder.file("r.sqlite"));
}

const std::string& result_database() {
  static const std::string bytes = database_of("[model]\npreset = \"llama-3-8b\"\n");
  return bytes;
}

const std::string& nsys_database() {
  static const std::string bytes = [] {
    const sample::TemporaryFolder folder;
    SQLite::Database(folder.file("n.sqlite"), SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE).exec(kNsys);
    return content_of(folder.file("n.sqlite"));
  }();
  return bytes;
}

std::string changed_database(const std::string& from, std::string_view bytes) {
  if (bytes.starts_with("SQLite format 3")) return std::string(bytes);
  std::string changed = from;
  Choices choices(bytes);
  while (!choices.empty()) {
    std::size_t place = choices.next() << 16 | choices.next() << 8;
    place = (place | choices.next()) % from.size();
    const std::size_t count = std::min<std::size_t>(choices.next() + 1, from.size() - place);
    const auto what = static_cast<char>(choices.next());
    const bool cut = choices.next() < 4;
    if (place + count <= changed.size()) std::fill_n(changed.begin() + static_cast<std::ptrdiff_t>(place), count, what);
    if (cut) changed.resize(std::min(changed.size(), place));
  }
  return changed;
}

std::string with_changed_cells(const std::string& from, std::string_view bytes) {
  const TemporaryFile file(from);
  {
    SQLite::Database database(file.path(), SQLite::OPEN_READWRITE);
    database.exec("PRAGMA synchronous = OFF; PRAGMA journal_mode = MEMORY; PRAGMA ignore_check_constraints = ON; BEGIN");
    const std::vector<Column> columns = columns_of(database);
    Choices choices(bytes);
    for (int i = 0; i < 16 && !choices.empty(); ++i) change_cell(database, columns, choices);
    database.exec("COMMIT");
  }
  return content_of(file.path());
}

std::string loosened(const std::string& bytes) {
  const TemporaryFile file(bytes);
  {
    SQLite::Database database(file.path(), SQLite::OPEN_READWRITE);
    loosen(database);
  }
  return content_of(file.path());
}

}  // namespace cpfit::fuzz
