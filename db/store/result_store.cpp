// finish_run: the result of a planning run into its tables, in one transaction.
#include "db/store/candidate_row.h"
#include "db/store/connection.h"
#include "db/store/run_row.h"
#include "db/store/run_store.h"

namespace cpfit {

namespace {

class ResultWriter {
 public:
  ResultWriter(SQLite::Database& database, std::int64_t run) : database_(database), run_(run), candidates_(database, run) {}

  void write(const PlanResult& result) {
    write_stats(result);
    if (result.ships) write_list("ship", {result.ship});
    if (result.has_control) write_list("control", {result.control});
    write_list("ranking", result.candidates);
    write_list("front", result.front);
    write_neighbours(result.neighbours);
    write_levers(result.levers);
    write_crossover(result.crossover);
    write_sweep(result.sweep);
    for (std::size_t i = 0; i < result.ledgers.size(); ++i) write_ledger(i, result.ledgers[i].first, result.ledgers[i].second);
    write_links(result.links);
    write_confirmations(result.confirmations);
    mark_evaluated(result);
  }

 private:
  SQLite::Statement into(const std::string& table, const std::string& columns, int count) {
    return {database_, "INSERT INTO " + table + " (" + columns + ") VALUES (" + placeholders(count) + ")"};
  }

  std::int64_t write_candidate(const Candidate& candidate) { return candidates_.write(candidate, "result"); }

  void write_stats(const PlanResult& result) {
    const PlanStats& stats = result.stats;
    SQLite::Statement update(database_,
                             "UPDATE run SET considered = ?, legal = ?, evaluated = ?, search_seconds = ?, timeline_seconds = ?, "
                             "answer = ? WHERE id = ?");
    Binder binder(update);
    binder.integer(stats.considered).integer(stats.legal).integer(stats.evaluated).real(stats.seconds);
    binder.real(stats.timeline_seconds);
    binder.text(result.answer).integer(run_).run();
    SQLite::Statement insert = into("rejection", "run_id, ordinal, rule, count", 4);
    std::int64_t ordinal = 0;
    for (const auto& [rule, count] : stats.rejected_by_rule) {
      Binder(insert).integer(run_).integer(ordinal++).text(rule).integer(count).run();
    }
  }

  void write_list(const char* list, const std::vector<Candidate>& candidates) {
    SQLite::Statement insert = into("run_candidate", "run_id, list, ordinal, candidate_id", 4);
    std::int64_t ordinal = 0;
    for (const Candidate& candidate : candidates) {
      Binder(insert).integer(run_).word(list).integer(ordinal++).integer(write_candidate(candidate)).run();
    }
  }

  void write_neighbours(const std::vector<Neighbour>& neighbours) {
    SQLite::Statement insert = into("neighbour", "run_id, ordinal, candidate_id, rule, amount, unit, sentence", 7);
    std::int64_t ordinal = 0;
    for (const Neighbour& neighbour : neighbours) {
      Binder binder(insert);
      binder.integer(run_).integer(ordinal++).integer(write_candidate(neighbour.candidate)).text(neighbour.rule);
      binder.real(neighbour.amount).text(neighbour.unit).text(neighbour.sentence).run();
    }
  }

  void write_levers(const std::vector<Lever>& levers) {
    SQLite::Statement insert = into("lever", "run_id, ordinal, change, gains, costs, gain_share, differs", 7);
    std::int64_t ordinal = 0;
    for (const Lever& lever : levers) {
      Binder binder(insert);
      binder.integer(run_).integer(ordinal++).text(lever.change).text(lever.gains).text(lever.costs);
      binder.real(lever.gain).text(join_words(lever.differs)).run();
    }
  }

  void write_crossover(const Crossover& crossover) {
    SQLite::Statement insert = into("crossover", "run_id, needed_at_tokens, faster_at_tokens, held_constant", 4);
    Binder binder(insert);
    binder.integer(run_).integer(crossover.needed_at_tokens).integer(crossover.faster_at_tokens);
    binder.text(crossover.held_constant).run();
  }

  void write_sweep(const std::vector<SweepPoint>& sweep) {
    SQLite::Statement insert = into("sweep_point", "run_id, ordinal, candidate_id, gpus", 4);
    std::int64_t ordinal = 0;
    for (const SweepPoint& point : sweep) {
      Binder(insert).integer(run_).integer(ordinal++).integer(write_candidate(point.candidate)).integer(point.gpus).run();
    }
  }

  void write_ledger(std::size_t ordinal, const std::string& recipe, const StageLedger& ledger) {
    SQLite::Statement insert = into("ledger", "run_id, ordinal, recipe, " + stage_memory_columns(), 3 + kStageMemoryColumnCount);
    Binder binder(insert);
    binder.integer(run_).integer(static_cast<std::int64_t>(ordinal)).text(recipe);
    bind_stage_memory(binder, ledger.summary);
    binder.run();
    const std::int64_t id = database_.getLastInsertRowid();
    SQLite::Statement entries = into("ledger_entry", "ledger_id, ordinal, component, tensor, formula, source, bytes", 7);
    std::int64_t line = 0;
    for (const LedgerEntry& entry : ledger.entries) {
      Binder row(entries);
      row.integer(id).integer(line++).word(name_of(entry.component)).text(entry.tensor).text(entry.formula);
      row.text(entry.source).bytes(entry.bytes).run();
    }
  }

  void write_links(const std::vector<std::pair<std::string, std::vector<LinkLoad>>>& links) {
    SQLite::Statement insert =
        into("link_load", "run_id, recipe_ordinal, ordinal, recipe, from_node, to_node, step_bytes, busy_seconds", 8);
    std::int64_t recipe_ordinal = 0;
    for (const auto& [recipe, loads] : links) {
      std::int64_t ordinal = 0;
      for (const LinkLoad& load : loads) {
        Binder binder(insert);
        binder.integer(run_).integer(recipe_ordinal).integer(ordinal++).text(recipe).text(load.from).text(load.to);
        binder.bytes(load.bytes).seconds(load.busy).run();
      }
      ++recipe_ordinal;
    }
  }

  void write_confirmations(const std::vector<TimelineConfirmation>& confirmations) {
    SQLite::Statement insert = into("timeline_confirmation",
                                    "run_id, ordinal, recipe, screen_step_seconds, step_seconds, exposed_cp_seconds, "
                                    "exposed_cp_layer_seconds, activity_count, disagreement, skipped",
                                    10);
    std::int64_t ordinal = 0;
    for (const TimelineConfirmation& confirmation : confirmations) {
      Binder binder(insert);
      binder.integer(run_).integer(ordinal++).text(confirmation.recipe).seconds(confirmation.screen_step);
      binder.seconds(confirmation.step).seconds(confirmation.exposed_cp).seconds(confirmation.exposed_per_layer);
      binder.integer(confirmation.activities).text(confirmation.disagreement).text(confirmation.skipped).run();
    }
  }

  /// A table of all evaluated candidates shows which of them shipped and which was the control.
  void mark_evaluated(const PlanResult& result) {
    SQLite::Statement update(database_, "UPDATE candidate SET status = ? WHERE run_id = ? AND origin = 'search' AND recipe = ?");
    const auto mark = [&](const Candidate& candidate, CandidateStatus status) {
      Binder(update).word(name_of(status)).integer(run_).text(to_text(candidate.recipe)).run();
    };
    if (result.has_control) mark(result.control, CandidateStatus::kControl);
    if (result.ships) mark(result.ship, CandidateStatus::kShip);
  }

  SQLite::Database& database_;
  std::int64_t run_;
  CandidateWriter candidates_;
};

}  // namespace

void finish_run(Store& store, RunId run, const PlanResult& result) {
  Store::Connection& connection = store.connection();
  const auto number = static_cast<std::int64_t>(run);
  guarded(connection, "finish run " + std::to_string(number) + " in", [&] {
    SQLite::Transaction transaction(connection.database, SQLite::TransactionBehavior::IMMEDIATE);
    OwnedRun(connection, run, "status = 'done', finished_unix_seconds = unixepoch()").update();
    ResultWriter(connection.database, number).write(result);
    transaction.commit();
    // Onto the disk now: from here on the result survives a power failure too. A reader may hold this back; it is no failure.
    (void)connection.database.tryExec("PRAGMA wal_checkpoint(PASSIVE)");
  });
}

}  // namespace cpfit
