#include "db/store/validation_store.h"

#include "db/store/binding.h"
#include "db/store/connection.h"

namespace cpfit {

namespace {

constexpr int kMetricCount = 10;

std::int64_t insert_run(SQLite::Database& database, const ValidationResult& result, const std::string& tool_version,
                        const std::string& rates_version) {
  SQLite::Statement insert(database,
                           "INSERT INTO validation_run (path, tool_version, rates_version, out_of_memory_rows, "
                           "out_of_memory_decided, out_of_memory_right, out_of_memory_at_risk, out_of_memory_dead_called_fits, "
                           "out_of_memory_live_called_oom, stored_unix_seconds) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, unixepoch())");
  Binder binder(insert);
  binder.text(result.path).text(tool_version).text(rates_version);
  const std::optional<OutOfMemoryScore>& score = result.out_of_memory;
  for (const auto count : {&OutOfMemoryScore::rows, &OutOfMemoryScore::decided, &OutOfMemoryScore::right,
                           &OutOfMemoryScore::at_risk, &OutOfMemoryScore::dead_called_fits, &OutOfMemoryScore::live_called_oom}) {
    score ? binder.integer((*score).*count) : binder.null();
  }
  binder.run();
  return database.getLastInsertRowid();
}

void insert_rows(SQLite::Database& database, std::int64_t id, const std::vector<ValidationRow>& rows) {
  SQLite::Statement insert(database,
                           "INSERT INTO validation_row (validation_run_id, ordinal, line, label, metric, measured, predicted, "
                           "low, high, error_share, scoring_group, searched) VALUES (" +
                               placeholders(12) + ")");
  std::int64_t ordinal = 0;
  for (const ValidationRow& row : rows) {
    Binder binder(insert);
    binder.integer(id).integer(ordinal++).integer(row.line).text(row.label).word(name_of(row.metric)).real(row.measured);
    binder.real(row.predicted).real(row.low).real(row.high).real(row.error).text(row.group).text(row.searched).run();
  }
}

void insert_summary(SQLite::Database& database, std::int64_t id, std::int64_t group_ordinal, const std::string& group,
                    const std::vector<MetricSummary>& summary) {
  SQLite::Statement insert(database,
                           "INSERT INTO validation_summary (validation_run_id, group_ordinal, ordinal, scoring_group, metric, "
                           "row_count, mape_share, median_abs_error_share, max_abs_error_share, bias_share, coverage_share) "
                           "VALUES (" +
                               placeholders(11) + ")");
  std::int64_t ordinal = 0;
  for (const MetricSummary& metric : summary) {
    Binder binder(insert);
    binder.integer(id).integer(group_ordinal).integer(ordinal++).text(group).word(name_of(metric.metric)).integer(metric.rows);
    binder.real(metric.mape).real(metric.median_abs_error).real(metric.max_abs_error).real(metric.bias);
    binder.real(metric.coverage).run();
  }
}

void insert_skipped(SQLite::Database& database, std::int64_t id, const std::vector<SkippedRow>& skipped) {
  SQLite::Statement insert(database,
                           "INSERT INTO validation_skip (validation_run_id, ordinal, line, reason) VALUES (?, ?, ?, ?)");
  std::int64_t ordinal = 0;
  for (const SkippedRow& row : skipped) Binder(insert).integer(id).integer(ordinal++).integer(row.line).text(row.reason).run();
}

bool read_run(const SQLite::Database& database, std::int64_t id, ValidationResult& result) {
  SQLite::Statement select(database,
                           "SELECT path, out_of_memory_rows, out_of_memory_decided, out_of_memory_right, out_of_memory_at_risk, "
                           "out_of_memory_dead_called_fits, out_of_memory_live_called_oom FROM validation_run WHERE id = ?");
  select.bind(1, id);
  if (!select.executeStep()) return false;
  RowReader row(select);
  result.path = row.text();
  if (row.next_is_null()) return true;
  OutOfMemoryScore score;
  for (std::int64_t* count :
       {&score.rows, &score.decided, &score.right, &score.at_risk, &score.dead_called_fits, &score.live_called_oom}) {
    *count = row.integer();
  }
  result.out_of_memory = score;
  return true;
}

void read_rows(const SQLite::Database& database, std::int64_t id, ValidationResult& result) {
  SQLite::Statement select(database,
                           "SELECT line, label, metric, measured, predicted, low, high, error_share, scoring_group, searched "
                           "FROM validation_row WHERE validation_run_id = ? ORDER BY ordinal");
  select.bind(1, id);
  while (select.executeStep()) {
    RowReader row(select);
    ValidationRow read{};
    read.line = row.integer();
    read.label = row.text();
    read.metric = row.named<Metric>(kMetricCount);
    for (double* figure : {&read.measured, &read.predicted, &read.low, &read.high, &read.error}) *figure = row.real();
    read.group = row.text();
    read.searched = row.text();
    result.rows.push_back(std::move(read));
  }
}

void read_summaries(const SQLite::Database& database, std::int64_t id, ValidationResult& result) {
  SQLite::Statement select(database,
                           "SELECT group_ordinal, scoring_group, metric, row_count, mape_share, median_abs_error_share, "
                           "max_abs_error_share, bias_share, coverage_share FROM validation_summary "
                           "WHERE validation_run_id = ? ORDER BY group_ordinal, ordinal");
  select.bind(1, id);
  while (select.executeStep()) {
    RowReader row(select);
    const std::int64_t group_ordinal = row.integer();
    std::string group = row.text();
    if (group_ordinal > static_cast<std::int64_t>(result.groups.size())) result.groups.push_back({std::move(group), {}});
    MetricSummary read{};
    read.metric = row.named<Metric>(kMetricCount);
    read.rows = row.integer();
    for (double* figure : {&read.mape, &read.median_abs_error, &read.max_abs_error, &read.bias, &read.coverage}) {
      *figure = row.real();
    }
    (group_ordinal <= 0 ? result.summary : result.groups.back().summary).push_back(read);
  }
}

void read_skipped(const SQLite::Database& database, std::int64_t id, ValidationResult& result) {
  SQLite::Statement select(database, "SELECT line, reason FROM validation_skip WHERE validation_run_id = ? ORDER BY ordinal");
  select.bind(1, id);
  while (select.executeStep()) {
    RowReader row(select);
    const std::int64_t line = row.integer();
    result.skipped.push_back({line, row.text()});
  }
}

}  // namespace

ValidationId save_validation(Store& store, const ValidationResult& result, const std::string& tool_version,
                             const std::string& rates_version) {
  Store::Connection& connection = store.connection();
  return guarded(connection, "store a validation in", [&] {
    SQLite::Database& database = connection.database;
    SQLite::Transaction transaction(database, SQLite::TransactionBehavior::IMMEDIATE);
    const std::int64_t id = insert_run(database, result, tool_version, rates_version);
    insert_rows(database, id, result.rows);
    insert_summary(database, id, 0, "", result.summary);
    std::int64_t group_ordinal = 0;
    for (const GroupSummary& group : result.groups) insert_summary(database, id, ++group_ordinal, group.group, group.summary);
    insert_skipped(database, id, result.skipped);
    transaction.commit();
    return ValidationId{id};
  });
}

std::vector<ValidationListing> list_validations(const Store& store) {
  Store::Connection& connection = store.connection();
  return guarded(connection, "list the validations of", [&] {
    SQLite::Statement select(connection.database,
                             "SELECT id, path, tool_version, rates_version, stored_unix_seconds, "
                             "(SELECT count(*) FROM validation_row WHERE validation_run_id = validation_run.id), "
                             "(SELECT count(*) FROM validation_skip WHERE validation_run_id = validation_run.id) "
                             "FROM validation_run ORDER BY id DESC");
    std::vector<ValidationListing> listings;
    while (select.executeStep()) {
      RowReader row(select);
      ValidationListing listing;
      listing.id = ValidationId{row.integer()};
      for (std::string* text : {&listing.path, &listing.tool_version, &listing.rates_version}) *text = row.text();
      for (std::int64_t* count : {&listing.stored_unix_seconds, &listing.rows, &listing.skipped}) *count = row.integer();
      listings.push_back(std::move(listing));
    }
    return listings;
  });
}

Outcome<ValidationResult> load_validation(const Store& store, ValidationId id) {
  Store::Connection& connection = store.connection();
  const auto number = static_cast<std::int64_t>(id);
  return guarded(connection, "read validation " + std::to_string(number) + " from", [&]() -> Outcome<ValidationResult> {
    const ReadSnapshot snapshot(connection);
    ValidationResult result;
    if (!read_run(connection.database, number, result)) {
      return Problem{"validation.unknown", connection.path, "there is no validation " + std::to_string(number),
                     "List what there is, or validate again with --db " + connection.path};
    }
    read_rows(connection.database, number, result);
    read_summaries(connection.database, number, result);
    read_skipped(connection.database, number, result);
    return result;
  });
}

}  // namespace cpfit
