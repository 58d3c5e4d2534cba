#include "db/store/measured_job_store.h"

#include "db/store/binding.h"
#include "db/store/connection.h"

namespace cpfit {

namespace {

std::int64_t insert_job(SQLite::Database& database, const MeasuredJob& job) {
  SQLite::Statement insert(
      database,
      "INSERT INTO measured_job (framework, scenario_name, recipe, run_id, tool_version, rates_version, gpus, "
      "sequence_tokens, global_batch, logged_step_count, skipped_update_count, nan_step_count, attempt_count, "
      "stored_unix_seconds) VALUES (" +
          placeholders(13) + ", unixepoch())");
  Binder binder(insert);
  binder.text(job.framework).text(job.scenario_name).text(job.recipe);
  job.run > 0 ? binder.integer(job.run) : binder.null();
  binder.text(job.tool_version).text(job.rates_version).integer(job.gpus).integer(job.sequence_tokens).integer(job.global_batch);
  binder.integer(job.logged_steps).integer(job.skipped_updates).integer(job.nan_steps).integer(job.attempts).run();
  return database.getLastInsertRowid();
}

void insert_figures(SQLite::Database& database, std::int64_t id, const std::vector<ComparedFigure>& figures) {
  SQLite::Statement insert(database,
                           "INSERT INTO measured_figure (measured_job_id, ordinal, figure, stage, rank, measured, measured_low, "
                           "measured_high, sample_count, left_out_count, basis, predicted, low, high, standing, note) VALUES (" +
                               placeholders(16) + ")");
  std::int64_t ordinal = 0;
  for (const ComparedFigure& row : figures) {
    const MeasuredFigure& measured = row.measured;
    Binder binder(insert);
    binder.integer(id).integer(ordinal++).word(name_of(measured.figure)).integer(measured.stage).integer(measured.rank);
    binder.real(measured.median);
    binder.real(measured.low).real(measured.high).integer(measured.samples).integer(measured.left_out).text(measured.basis);
    binder.real(row.predicted).real(row.low).real(row.high).word(name_of(row.standing)).text(row.note).run();
  }
}

void insert_rest(SQLite::Database& database, std::int64_t id, const MeasuredJob& job) {
  SQLite::Statement source(database, "INSERT INTO measured_source (measured_job_id, ordinal, path, format) VALUES (?, ?, ?, ?)");
  std::int64_t ordinal = 0;
  for (const RunSource& row : job.sources) Binder(source).integer(id).integer(ordinal++).text(row.path).text(row.format).run();
  SQLite::Statement left_out(database,
                             "INSERT INTO measured_left_out (measured_job_id, ordinal, iteration, line, step_seconds, reason) "
                             "VALUES (?, ?, ?, ?, ?, ?)");
  ordinal = 0;
  for (const LeftOutStep& row : job.left_out)
    Binder(left_out)
        .integer(id)
        .integer(ordinal++)
        .integer(row.iteration)
        .integer(row.line)
        .real(row.seconds)
        .text(row.reason)
        .run();
  SQLite::Statement remark(database, "INSERT INTO measured_remark (measured_job_id, ordinal, remark) VALUES (?, ?, ?)");
  ordinal = 0;
  for (const std::string& row : job.remarks) Binder(remark).integer(id).integer(ordinal++).text(row).run();
}

bool read_job(const SQLite::Database& database, std::int64_t id, MeasuredJob& job) {
  SQLite::Statement select(
      database,
      "SELECT framework, scenario_name, recipe, coalesce(run_id, 0), tool_version, rates_version, gpus, "
      "sequence_tokens, global_batch, logged_step_count, skipped_update_count, nan_step_count, attempt_count "
      "FROM measured_job WHERE id = ?");
  select.bind(1, id);
  if (!select.executeStep()) return false;
  RowReader row(select);
  job.framework = row.text();
  job.scenario_name = row.text();
  job.recipe = row.text();
  job.run = row.integer();
  job.tool_version = row.text();
  job.rates_version = row.text();
  for (std::int64_t* count : {&job.gpus, &job.sequence_tokens, &job.global_batch, &job.logged_steps, &job.skipped_updates,
                              &job.nan_steps, &job.attempts})
    *count = row.integer();
  return true;
}

void read_figures(const SQLite::Database& database, std::int64_t id, MeasuredJob& job) {
  SQLite::Statement select(
      database,
      "SELECT figure, stage, rank, measured, measured_low, measured_high, sample_count, left_out_count, basis, "
      "predicted, low, high, standing, note FROM measured_figure WHERE measured_job_id = ? ORDER BY ordinal");
  select.bind(1, id);
  while (select.executeStep()) {
    RowReader row(select);
    ComparedFigure read;
    MeasuredFigure& measured = read.measured;
    measured.figure = row.named<RunFigure>(kRunFigureCount);
    measured.stage = row.small_integer();
    measured.rank = row.integer();
    for (double* figure : {&measured.median, &measured.low, &measured.high}) *figure = row.real();
    for (std::int64_t* count : {&measured.samples, &measured.left_out}) *count = row.integer();
    measured.basis = row.text();
    for (double* figure : {&read.predicted, &read.low, &read.high}) *figure = row.real();
    read.standing = row.named<Standing>(kStandingCount);
    read.note = row.text();
    job.figures.push_back(std::move(read));
  }
}

void read_rest(const SQLite::Database& database, std::int64_t id, MeasuredJob& job) {
  SQLite::Statement source(database, "SELECT path, format FROM measured_source WHERE measured_job_id = ? ORDER BY ordinal");
  source.bind(1, id);
  while (source.executeStep()) {
    RowReader row(source);
    std::string path = row.text();
    job.sources.push_back({std::move(path), row.text()});
  }
  SQLite::Statement left_out(
      database, "SELECT iteration, line, step_seconds, reason FROM measured_left_out WHERE measured_job_id = ? ORDER BY ordinal");
  left_out.bind(1, id);
  while (left_out.executeStep()) {
    RowReader row(left_out);
    LeftOutStep read;
    read.iteration = row.integer();
    read.line = row.integer();
    read.seconds = row.real();
    read.reason = row.text();
    job.left_out.push_back(std::move(read));
  }
  SQLite::Statement remark(database, "SELECT remark FROM measured_remark WHERE measured_job_id = ? ORDER BY ordinal");
  remark.bind(1, id);
  while (remark.executeStep()) job.remarks.push_back(RowReader(remark).text());
}

/// A file of an older version that may not be written has none.
bool has_jobs(const SQLite::Database& database) { return database.tableExists("measured_job"); }

}  // namespace

MeasuredJobId save_measured_job(Store& store, const MeasuredJob& job) {
  Store::Connection& connection = store.connection();
  return guarded(connection, "store a measured job in", [&] {
    SQLite::Database& database = connection.database;
    SQLite::Transaction transaction(database, SQLite::TransactionBehavior::IMMEDIATE);
    const std::int64_t id = insert_job(database, job);
    insert_figures(database, id, job.figures);
    insert_rest(database, id, job);
    transaction.commit();
    return MeasuredJobId{id};
  });
}

std::vector<MeasuredJobListing> list_measured_jobs(const Store& store) {
  Store::Connection& connection = store.connection();
  return guarded(connection, "list the measured jobs of", [&] {
    const ReadSnapshot snapshot(connection);
    std::vector<MeasuredJobListing> listings;
    if (!has_jobs(connection.database)) return listings;
    SQLite::Statement select(
        connection.database,
        "SELECT id, coalesce((SELECT path FROM measured_source WHERE measured_job_id = job.id AND ordinal = 0), ''), "
        "(SELECT count(*) FROM measured_source WHERE measured_job_id = job.id), framework, scenario_name, recipe, "
        "coalesce(run_id, 0), stored_unix_seconds, count(figure), count(CASE WHEN standing <> 'not predicted' THEN 1 END), "
        "count(CASE WHEN standing = 'inside' THEN 1 END), count(CASE WHEN standing = 'outlier' THEN 1 END) "
        "FROM measured_job AS job LEFT JOIN measured_figure ON measured_job_id = job.id GROUP BY job.id ORDER BY job.id DESC");
    while (select.executeStep()) {
      RowReader row(select);
      MeasuredJobListing listing;
      listing.id = MeasuredJobId{row.integer()};
      listing.source = row.text();
      listing.sources = row.integer();
      for (std::string* text : {&listing.framework, &listing.scenario_name, &listing.recipe}) *text = row.text();
      for (std::int64_t* count :
           {&listing.run, &listing.stored_unix_seconds, &listing.figures, &listing.compared, &listing.inside, &listing.outliers})
        *count = row.integer();
      listings.push_back(std::move(listing));
    }
    return listings;
  });
}

Outcome<MeasuredJob> load_measured_job(const Store& store, MeasuredJobId id) {
  Store::Connection& connection = store.connection();
  const auto number = static_cast<std::int64_t>(id);
  return guarded(connection, "read measured job " + std::to_string(number) + " from", [&]() -> Outcome<MeasuredJob> {
    const ReadSnapshot snapshot(connection);
    MeasuredJob job;
    if (!has_jobs(connection.database) || !read_job(connection.database, number, job)) {
      return Problem{"measured_job.unknown", connection.path, "there is no measured job " + std::to_string(number),
                     "list what there is: cpfit ingest --list --db " + connection.path};
    }
    read_figures(connection.database, number, job);
    read_rest(connection.database, number, job);
    return job;
  });
}

}  // namespace cpfit
