#include "db/store/calibration_store.h"

#include <algorithm>

#include "db/store/binding.h"
#include "db/store/connection.h"

namespace cpfit {

namespace {

bool there_are_calibrations(const SQLite::Database& database) { return database.tableExists("calibration"); }
/// Not in a database that no newer cpfit has written to.
bool there_are_exclusions(const SQLite::Database& database) { return database.tableExists("calibration_exclusion"); }

constexpr const char* kColumns =
    "sha256, name, tool_version, assumed, created_unix_seconds, hosts, cpu, core_count, memory_bytes, gpu, gpus_per_host, "
    "gpu_memory_bytes, driver, cuda, nccl, cudnn, mpi, blas, throttled, link, clock_min_mhz, clock_median_mhz, clock_max_mhz, "
    "power_limit_watts, member_groups, rates_toml";
constexpr int kColumnCount = 26;

constexpr std::string MeasuredMachine::* kVersions[] = {
    &MeasuredMachine::driver, &MeasuredMachine::cuda, &MeasuredMachine::nccl,      &MeasuredMachine::cudnn,
    &MeasuredMachine::mpi,    &MeasuredMachine::blas, &MeasuredMachine::throttled, &MeasuredMachine::link};

/// One text, a line each: names of hosts hold no line break.
std::string lines_of(const std::vector<std::string>& texts) {
  std::string lines;
  for (const std::string& text : texts) lines += (lines.empty() ? "" : "\n") + text;
  return lines;
}
std::vector<std::string> texts_of(const std::string& lines) {
  std::vector<std::string> texts;
  for (std::size_t at = 0; at < lines.size();) {
    const std::size_t end = std::min(lines.find('\n', at), lines.size());
    texts.push_back(lines.substr(at, end - at));
    at = end + 1;
  }
  return texts;
}

std::int64_t insert_head(SQLite::Database& database, const Calibration& c) {
  SQLite::Statement insert(database,
                           std::string("INSERT INTO calibration (") + kColumns + ") VALUES (" + placeholders(kColumnCount) + ")");
  const MeasuredMachine& machine = c.machine;
  Binder binder(insert);
  binder.text(c.id).text(c.name).text(c.tool_version).integer(c.assumed ? 1 : 0).integer(c.created_unix_seconds);
  binder.text(lines_of(machine.hosts)).text(machine.cpu).integer(machine.cores).integer(machine.memory_bytes);
  binder.text(machine.gpu).integer(machine.gpus_per_host).integer(machine.gpu_memory_bytes);
  for (const auto field : kVersions) binder.text(machine.*field);
  const auto& clocks = machine.clocks_mhz;
  for (const double ClockRange::* figure : {&ClockRange::min, &ClockRange::median, &ClockRange::max})
    clocks ? binder.real((*clocks).*figure) : binder.null();
  machine.power_limit_watts ? binder.real(*machine.power_limit_watts) : binder.null();
  binder.text(lines_of(c.groups)).text(c.rates_toml).run();
  return database.getLastInsertRowid();
}

void insert_lists(SQLite::Database& database, std::int64_t id, const Calibration& c, const std::vector<Surface>& surfaces) {
  SQLite::Statement source(database,
                           "INSERT INTO calibration_source (calibration_id, ordinal, path, sha256, format, point_count, "
                           "left_out_count) VALUES (?, ?, ?, ?, ?, ?, ?)");
  std::int64_t ordinal = 0;
  for (const CalibrationSource& one : c.sources) {
    Binder(source)
        .integer(id)
        .integer(ordinal++)
        .text(one.path)
        .text(one.sha256)
        .text(one.format)
        .integer(one.points)
        .integer(one.left_out)
        .run();
  }
  SQLite::Statement gap(database, "INSERT INTO calibration_gap (calibration_id, ordinal, surface, reason) VALUES (?, ?, ?, ?)");
  ordinal = 0;
  for (const CalibrationGap& one : c.gaps) Binder(gap).integer(id).integer(ordinal++).text(one.surface).text(one.reason).run();
  SQLite::Statement exclusion(database,
                              "INSERT INTO calibration_exclusion (calibration_id, ordinal, source_sha256, line, point, reason) "
                              "VALUES (?, ?, ?, ?, ?, ?)");
  ordinal = 0;
  for (const ExcludedPoint& one : c.excluded)
    Binder(exclusion).integer(id).integer(ordinal++).text(one.source).integer(one.line).text(one.point).text(one.reason).run();
  SQLite::Statement surface(database,
                            "INSERT INTO calibration_surface (calibration_id, ordinal, device, surface, fitted_range, row_count, "
                            "held_out_count, median_error_share, p90_error_share, noise_share, evidence, source) VALUES (" +
                                placeholders(12) + ")");
  ordinal = 0;
  for (const Surface& one : surfaces) {
    const FitQuality& q = one.quality;
    Binder(surface)
        .integer(id)
        .integer(ordinal++)
        .text(one.device)
        .text(one.name)
        .text(one.range)
        .integer(q.rows)
        .integer(q.held_out)
        .real(q.median_error)
        .real(q.p90_error)
        .real(q.noise)
        .text(name_of(q.evidence))
        .text(q.source)
        .run();
  }
}

Calibration read_head(SQLite::Statement& select, std::int64_t& id) {
  RowReader row(select);
  Calibration c;
  id = row.integer();
  for (std::string* text : {&c.id, &c.name, &c.tool_version}) *text = row.text();
  c.assumed = row.flag();
  c.created_unix_seconds = row.integer();
  MeasuredMachine& machine = c.machine;
  machine.hosts = texts_of(row.text());
  machine.cpu = row.text();
  machine.cores = row.small_integer();
  machine.memory_bytes = row.integer();
  machine.gpu = row.text();
  machine.gpus_per_host = row.small_integer();
  machine.gpu_memory_bytes = row.integer();
  for (const auto field : kVersions) machine.*field = row.text();
  const bool clocked = !row.next_is_null();
  ClockRange clocks;
  for (double ClockRange::* figure : {&ClockRange::min, &ClockRange::median, &ClockRange::max}) clocks.*figure = row.real();
  if (clocked) machine.clocks_mhz = clocks;
  const bool limited = !row.next_is_null();
  const double limit = row.real();
  if (limited) machine.power_limit_watts = limit;
  c.groups = texts_of(row.text());
  c.rates_toml = row.text();
  return c;
}

void read_lists(const SQLite::Database& database, std::int64_t id, Calibration& c) {
  SQLite::Statement source(
      database,
      "SELECT path, sha256, format, point_count, left_out_count FROM calibration_source WHERE calibration_id "
      "= ? ORDER BY ordinal");
  source.bind(1, id);
  while (source.executeStep()) {
    RowReader row(source);
    CalibrationSource one;
    for (std::string* text : {&one.path, &one.sha256, &one.format}) *text = row.text();
    one.points = row.integer();
    one.left_out = row.integer();
    c.sources.push_back(std::move(one));
  }
  SQLite::Statement gap(database, "SELECT surface, reason FROM calibration_gap WHERE calibration_id = ? ORDER BY ordinal");
  gap.bind(1, id);
  while (gap.executeStep()) {
    RowReader row(gap);
    CalibrationGap one;
    for (std::string* text : {&one.surface, &one.reason}) *text = row.text();
    c.gaps.push_back(std::move(one));
  }
  if (!there_are_exclusions(database)) return;
  SQLite::Statement exclusion(
      database, "SELECT source_sha256, line, point, reason FROM calibration_exclusion WHERE calibration_id = ? ORDER BY ordinal");
  exclusion.bind(1, id);
  while (exclusion.executeStep()) {
    RowReader row(exclusion);
    ExcludedPoint one;
    one.source = row.text();
    one.line = row.integer();
    for (std::string* text : {&one.point, &one.reason}) *text = row.text();
    c.excluded.push_back(std::move(one));
  }
}

}  // namespace

SavedCalibration save_calibration(Store& store, const Calibration& calibration, const std::vector<Surface>& surfaces) {
  Store::Connection& connection = store.connection();
  return guarded(connection, "store a calibration in", [&] {
    SQLite::Database& database = connection.database;
    SQLite::Transaction transaction(database, SQLite::TransactionBehavior::IMMEDIATE);
    SQLite::Statement same(database, "SELECT id FROM calibration WHERE sha256 = ?");
    same.bind(1, calibration.id);
    if (same.executeStep()) return SavedCalibration{same.getColumn(0).getInt64(), true};
    const std::int64_t id = insert_head(database, calibration);
    insert_lists(database, id, calibration, surfaces);
    transaction.commit();
    return SavedCalibration{id, false};
  });
}

std::vector<Calibration> list_calibrations(const Store& store) {
  Store::Connection& connection = store.connection();
  return guarded(connection, "list the calibrations of", [&] {
    std::vector<Calibration> found;
    const ReadSnapshot snapshot(connection);
    if (!there_are_calibrations(connection.database)) return found;
    SQLite::Statement select(connection.database, std::string("SELECT id, ") + kColumns +
                                                      " FROM calibration ORDER BY created_unix_seconds DESC, id DESC");
    while (select.executeStep()) {
      std::int64_t id = 0;
      Calibration c = read_head(select, id);
      read_lists(connection.database, id, c);
      found.push_back(std::move(c));
    }
    return found;
  });
}

Outcome<Calibration> find_calibration(const Store& store, const std::string& id_or_name) {
  constexpr std::size_t kFewestDigits = 4;
  const std::vector<Calibration> all = list_calibrations(store);
  for (const Calibration& one : all) {
    if (one.name == id_or_name || one.id == id_or_name) return one;
  }
  const bool digits = id_or_name.size() >= kFewestDigits && id_or_name.find_first_not_of("0123456789abcdef") == std::string::npos;
  std::vector<const Calibration*> matching;
  std::vector<std::string> names;
  for (const Calibration& one : all) {
    names.push_back(one.name);
    if (digits && one.id.starts_with(id_or_name)) matching.push_back(&one);
  }
  if (matching.size() == 1) return *matching.front();
  if (matching.size() > 1) {
    return Problem{"calibration.ambiguous", store.path(),
                   std::to_string(matching.size()) + " calibrations begin with " + id_or_name,
                   "give more digits: " + matching[0]->short_id() + ", " + matching[1]->short_id()};
  }
  const std::string nearest = nearest_name(id_or_name, names);
  return Problem{
      "calibration.unknown", store.path(), "there is no calibration '" + id_or_name + "'",
      nearest.empty() ? "list what there is: cpfit calibrate show --db " + store.path() : "did you mean '" + nearest + "'?"};
}

}  // namespace cpfit
