#include "db/store/run_store.h"

#include <algorithm>
#include <memory>

#include "db/store/candidate_row.h"
#include "db/store/connection.h"
#include "db/store/run_row.h"

namespace cpfit {

namespace {

std::int64_t number(RunId run) { return static_cast<std::int64_t>(run); }

std::string name(RunId run) { return "run " + std::to_string(number(run)); }

using Inputs = std::vector<std::pair<std::string, std::string>>;

void insert_inputs(SQLite::Database& database, std::int64_t run, const Inputs& inputs) {
  SQLite::Statement insert(database, "INSERT INTO run_input (run_id, ordinal, name, sha256) VALUES (?, ?, ?, ?)");
  std::int64_t ordinal = 0;
  for (const auto& [input, hash] : inputs) Binder(insert).integer(run).integer(ordinal++).text(input).text(hash).run();
}

/// Holds what a sink keeps between batches.
struct BatchWriter {
  BatchWriter(Store::Connection& at, RunId to)
      : connection(at), run(to), touch(at, to, "last_batch_unix_seconds = unixepoch()"), candidates(at.database, number(to)) {}

  void write(const std::vector<Candidate>& batch) {
    guarded(connection, "store candidates of " + name(run) + " in", [&] {
      SQLite::Transaction transaction(connection.database, SQLite::TransactionBehavior::IMMEDIATE);
      touch.update();
      for (const Candidate& candidate : batch) candidates.write(candidate, "search");
      transaction.commit();
    });
  }

  Store::Connection& connection;
  RunId run;
  OwnedRun touch;
  CandidateWriter candidates;
};

/// Inputs in an order of their own: two runs used the same ones whatever the order they were listed in.
bool same_inputs(const Store::Connection& connection, std::int64_t run, Inputs wanted) {
  SQLite::Statement select(connection.database, "SELECT name, sha256 FROM run_input WHERE run_id = ?");
  select.bind(1, run);
  Inputs stored;
  while (select.executeStep()) {
    RowReader row(select);
    std::string input = row.text();
    stored.emplace_back(std::move(input), row.text());
  }
  std::sort(stored.begin(), stored.end());
  std::sort(wanted.begin(), wanted.end());
  return stored == wanted;
}

std::unordered_set<std::string> stored_recipes(const Store::Connection& connection, std::int64_t run) {
  SQLite::Statement select(connection.database, "SELECT recipe FROM candidate WHERE run_id = ? AND origin = 'search'");
  select.bind(1, run);
  std::unordered_set<std::string> recipes;
  while (select.executeStep()) recipes.insert(RowReader(select).text());
  return recipes;
}

}  // namespace

RunId create_run(Store& store, const Provenance& provenance) {
  Store::Connection& connection = store.connection();
  return guarded(connection, "create a run in", [&] {
    SQLite::Transaction transaction(connection.database, SQLite::TransactionBehavior::IMMEDIATE);
    const WriterProcess writer = this_process();
    SQLite::Statement insert(connection.database,
                             "INSERT INTO run (scenario_name, scenario_path, scenario_text, tool_version, rule_set, "
                             "rates_version, writer_host, writer_process, writer_start_ticks, status, "
                             "started_unix_seconds, last_batch_unix_seconds) "
                             "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, 'running', unixepoch(), unixepoch())");
    Binder binder(insert);
    binder.text(provenance.scenario_name).text(provenance.scenario_path).text(provenance.scenario_text);
    binder.text(provenance.tool_version).text(provenance.rule_set).text(provenance.rates_version);
    binder.text(writer.host).integer(writer.process).integer(writer.start_ticks).run();
    const std::int64_t run = connection.database.getLastInsertRowid();
    insert_inputs(connection.database, run, provenance.input_hashes);
    transaction.commit();
    return RunId{run};
  });
}

// finish_run: db/store/result_store.cpp

CandidateSink candidate_sink(Store& store, RunId run) {
  return guarded(store.connection(), "store candidates of " + name(run) + " in", [&]() -> CandidateSink {
    return [writer = std::make_shared<BatchWriter>(store.connection(), run)](const std::vector<Candidate>& batch) {
      writer->write(batch);
    };
  });
}

void interrupt_run(Store& store, RunId run) {
  guarded(store.connection(), "interrupt " + name(run) + " in",
          [&] { OwnedRun(store.connection(), run, "status = 'interrupted'").update(); });
}

std::optional<ResumableRun> find_resumable(const Store& store, const Provenance& provenance) {
  const Store::Connection& connection = store.connection();
  return guarded(connection, "look for an unfinished run in", [&]() -> std::optional<ResumableRun> {
    SQLite::Statement select(connection.database,
                             "SELECT id, status, " + std::string(kWriterColumns) +
                                 " FROM run WHERE status <> 'done' AND scenario_text = ? AND tool_version = ? "
                                 "AND rule_set = ? AND rates_version = ? ORDER BY id DESC");
    Binder binder(select);
    binder.text(provenance.scenario_text).text(provenance.tool_version);
    binder.text(provenance.rule_set).text(provenance.rates_version);
    while (select.executeStep()) {
      RowReader row(select);
      const std::int64_t run = row.integer();
      const bool interrupted = row.text() == "interrupted";
      const bool free = read_abandoned(row) || interrupted;
      if (free && same_inputs(connection, run, provenance.input_hashes)) {
        return ResumableRun{RunId{run}, stored_recipes(connection, run)};
      }
    }
    return std::nullopt;
  });
}

bool resume_run(Store& store, RunId run) {
  Store::Connection& connection = store.connection();
  return guarded(connection, "continue " + name(run) + " in", [&] {
    SQLite::Transaction transaction(connection.database, SQLite::TransactionBehavior::IMMEDIATE);
    SQLite::Statement select(connection.database,
                             "SELECT status, " + std::string(kWriterColumns) + " FROM run WHERE id = ? AND status <> 'done'");
    select.bind(1, number(run));
    if (!select.executeStep()) return false;
    RowReader row(select);
    const bool interrupted = row.text() == "interrupted";
    if (!read_abandoned(row) && !interrupted) return false;
    const WriterProcess writer = this_process();
    SQLite::Statement update(connection.database,
                             "UPDATE run SET status = 'running', last_batch_unix_seconds = unixepoch(), writer_host = ?, "
                             "writer_process = ?, writer_start_ticks = ? WHERE id = ?");
    Binder(update).text(writer.host).integer(writer.process).integer(writer.start_ticks).integer(number(run)).run();
    select.reset();
    transaction.commit();
    return true;
  });
}

}  // namespace cpfit
