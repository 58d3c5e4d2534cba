#include "db/query/runs.h"

#include <cstdlib>
#include <map>

#include "db/query/read_result.h"
#include "db/store/candidate_row.h"
#include "db/store/connection.h"
#include "db/store/run_row.h"

namespace cpfit {

namespace {

std::int64_t number(RunId run) { return static_cast<std::int64_t>(run); }

RunStatus status_of(const std::string& stored, bool abandoned) {
  if (stored == "done") return RunStatus::kDone;
  return stored == "running" && !abandoned ? RunStatus::kRunning : RunStatus::kInterrupted;
}

RunSummary read_summary(SQLite::Statement& select) {
  RowReader row(select);
  RunSummary summary;
  summary.run = RunId{row.integer()};
  for (std::string* text :
       {&summary.scenario_name, &summary.scenario_path, &summary.tool_version, &summary.rule_set, &summary.rates_version}) {
    *text = row.text();
  }
  const std::string status = row.text();
  summary.status = status_of(status, read_abandoned(row));
  summary.started_unix_seconds = row.integer();
  const bool finished = !row.next_is_null();
  const std::int64_t at = row.integer();
  if (finished) summary.finished_unix_seconds = at;
  summary.stored_candidates = row.integer();
  summary.control = row.text();
  summary.ship = row.text();
  const bool ships = !row.next_is_null();
  const double step = row.real();
  if (ships) summary.ship_step_seconds = step;
  return summary;
}

const char* order_clause(CandidateOrder order) {
  switch (order) {
    case CandidateOrder::kStored:
      return "id";
    case CandidateOrder::kStepSeconds:
      return "step_seconds, recipe";
    case CandidateOrder::kTokensPerSecondPerGpu:
      return "tokens_per_second_per_gpu DESC, recipe";
    case CandidateOrder::kDeviceBytes:
      return "device_bytes, recipe";
    case CandidateOrder::kGpus:
      return "gpus, step_seconds, recipe";
  }
  std::abort();  // outside the enumeration: our own mistake
}

}  // namespace

std::string_view name_of(RunStatus status) {
  switch (status) {
    case RunStatus::kRunning:
      return "running";
    case RunStatus::kInterrupted:
      return "interrupted";
    case RunStatus::kDone:
      return "done";
  }
  std::abort();  // outside the enumeration: our own mistake
}

std::vector<RunSummary> list_runs(const Store& store) {
  Store::Connection& connection = store.connection();
  return guarded(connection, "list the runs of", [&] {
    SQLite::Statement select(connection.database,
                             "SELECT id, scenario_name, scenario_path, tool_version, rule_set, rates_version, status, " +
                                 std::string(kWriterColumns) +
                                 ", started_unix_seconds, finished_unix_seconds, "
                                 "(SELECT count(*) FROM candidate WHERE run_id = run.id AND origin = 'search'), "
                                 "coalesce((SELECT recipe FROM run_candidate JOIN candidate ON candidate.id = candidate_id "
                                 "WHERE run_candidate.run_id = run.id AND list = 'control'), ''), "
                                 "coalesce((SELECT recipe FROM run_candidate JOIN candidate ON candidate.id = candidate_id "
                                 "WHERE run_candidate.run_id = run.id AND list = 'ship'), ''), "
                                 "(SELECT step_seconds FROM run_candidate JOIN candidate ON candidate.id = candidate_id "
                                 "WHERE run_candidate.run_id = run.id AND list = 'ship') "
                                 "FROM run ORDER BY id DESC");
    std::vector<RunSummary> runs;
    while (select.executeStep()) runs.push_back(read_summary(select));
    return runs;
  });
}

Outcome<PlanResult> load_run(const Store& store, RunId run) {
  Store::Connection& connection = store.connection();
  return guarded(connection, "read run " + std::to_string(number(run)) + " from", [&]() -> Outcome<PlanResult> {
    const ReadSnapshot snapshot(connection);
    std::optional<PlanResult> result = read_result(connection, number(run));
    if (result) return std::move(*result);
    return Problem{"run.unknown", connection.path, "there is no run " + std::to_string(number(run)),
                   "List what there is: cpfit runs list --db " + connection.path};
  });
}

std::vector<Candidate> candidates_of(const Store& store, RunId run, const CandidateQuery& query) {
  Store::Connection& connection = store.connection();
  return guarded(connection, "read candidates of run " + std::to_string(number(run)) + " from", [&] {
    const ReadSnapshot snapshot(connection);
    const std::string where = std::string("run_id = ? AND origin = 'search'") + (query.fit ? " AND verdict = ?" : "");
    const std::string part = where + " ORDER BY " + order_clause(query.order) + " LIMIT ? OFFSET ?";
    const auto bind_part = [&](SQLite::Statement& statement) {
      Binder binder(statement);
      binder.integer(number(run));
      if (query.fit) binder.word(name_of(*query.fit));
      binder.integer(query.limit).integer(query.offset);
    };
    SQLite::Statement select(connection.database, "SELECT " + candidate_columns() + " FROM candidate WHERE " + part);
    bind_part(select);
    std::vector<Candidate> candidates;
    std::map<std::int64_t, std::size_t> position;
    while (select.executeStep()) {
      RowReader row(select);
      std::int64_t id = 0;
      candidates.push_back(read_candidate(row, id));
      position.emplace(id, candidates.size() - 1);
    }
    SQLite::Statement reasons(
        connection.database,
        "SELECT candidate_id, sentence FROM candidate_reason WHERE candidate_id IN (SELECT id FROM candidate "
        "WHERE " +
            part + ") ORDER BY candidate_id, ordinal");
    bind_part(reasons);
    while (reasons.executeStep()) {
      RowReader row(reasons);
      const std::int64_t id = row.integer();
      candidates[position.at(id)].reasons.push_back(row.text());
    }
    return candidates;
  });
}

}  // namespace cpfit
