#include "db/query/read_result.h"

#include <memory>

#include "db/store/candidate_row.h"

namespace cpfit {

namespace {

class ResultReader {
 public:
  ResultReader(const SQLite::Database& database, std::int64_t run)
      : database_(database),
        run_(run),
        candidate_(database, "SELECT " + candidate_columns() + " FROM candidate WHERE id = ?"),
        reasons_(database, "SELECT sentence FROM candidate_reason WHERE candidate_id = ? ORDER BY ordinal") {}

  [[nodiscard]] std::optional<PlanResult> read() {
    PlanResult result;
    if (!read_run(result)) return std::nullopt;
    each("SELECT name, sha256 FROM run_input WHERE run_id = ? ORDER BY ordinal", [&](RowReader row) {
      std::string name = row.text();
      result.provenance.input_hashes.emplace_back(std::move(name), row.text());
    });
    each("SELECT rule, count FROM rejection WHERE run_id = ? ORDER BY ordinal", [&](RowReader row) {
      std::string rule = row.text();
      result.stats.rejected_by_rule.emplace_back(std::move(rule), row.integer());
    });
    read_lists(result);
    read_neighbours(result);
    read_rest(result);
    read_ledgers(result);
    read_links(result);
    if (database_.tableExists("timeline_confirmation")) read_confirmations(result);  // since schema 2
    return result;
  }

 private:
  /// Calls `take` for each row that `sql` selects for this run.
  template <class Take>
  void each(const std::string& sql, Take take) {
    SQLite::Statement select(database_, sql);
    select.bind(1, run_);
    while (select.executeStep()) take(RowReader(select));
  }

  bool read_run(PlanResult& result) {
    bool found = false;
    each(
        "SELECT tool_version, scenario_name, scenario_path, scenario_text, rule_set, rates_version, considered, legal, "
        "evaluated, search_seconds, answer FROM run WHERE id = ?",
        [&](RowReader row) {
          found = true;
          Provenance& from = result.provenance;
          for (std::string* text : {&from.tool_version, &from.scenario_name, &from.scenario_path, &from.scenario_text,
                                    &from.rule_set, &from.rates_version}) {
            *text = row.text();
          }
          PlanStats& stats = result.stats;
          for (std::int64_t* count : {&stats.considered, &stats.legal, &stats.evaluated}) *count = row.integer();
          stats.seconds = row.real();
          result.answer = row.text();
        });
    return found;
  }

  Candidate candidate(std::int64_t id) {
    candidate_.reset();
    candidate_.bind(1, id);
    candidate_.executeStep();
    RowReader row(candidate_);
    Candidate found = read_candidate(row, id);
    reasons_.reset();
    reasons_.bind(1, id);
    while (reasons_.executeStep()) found.reasons.push_back(RowReader(reasons_).text());
    return found;
  }

  void read_lists(PlanResult& result) {
    each("SELECT list, candidate_id FROM run_candidate WHERE run_id = ? ORDER BY list, ordinal", [&](RowReader row) {
      const std::string list = row.text();
      Candidate found = candidate(row.integer());
      if (list == "ship") {
        result.ships = true;
        result.ship = std::move(found);
      } else if (list == "control") {
        result.has_control = true;
        result.control = std::move(found);
      } else {
        (list == "ranking" ? result.candidates : result.front).push_back(std::move(found));
      }
    });
  }

  void read_neighbours(PlanResult& result) {
    each("SELECT candidate_id, rule, amount, unit, sentence FROM neighbour WHERE run_id = ? ORDER BY ordinal",
         [&](RowReader row) {
           Neighbour neighbour;
           neighbour.candidate = candidate(row.integer());
           neighbour.rule = row.text();
           neighbour.amount = row.real();
           neighbour.unit = row.text();
           neighbour.sentence = row.text();
           result.neighbours.push_back(std::move(neighbour));
         });
  }

  void read_rest(PlanResult& result) {
    each("SELECT change, gains, costs, gain_share, differs FROM lever WHERE run_id = ? ORDER BY ordinal", [&](RowReader row) {
      Lever lever;
      for (std::string* text : {&lever.change, &lever.gains, &lever.costs}) *text = row.text();
      lever.gain = row.real();
      lever.differs = split_words(row.text());
      result.levers.push_back(std::move(lever));
    });
    each("SELECT needed_at_tokens, faster_at_tokens, held_constant FROM crossover WHERE run_id = ?", [&](RowReader row) {
      result.crossover.needed_at_tokens = row.integer();
      result.crossover.faster_at_tokens = row.integer();
      result.crossover.held_constant = row.text();
    });
    each("SELECT candidate_id, gpus FROM sweep_point WHERE run_id = ? ORDER BY ordinal", [&](RowReader row) {
      SweepPoint point;
      point.candidate = candidate(row.integer());
      point.gpus = row.integer();
      result.sweep.push_back(std::move(point));
    });
  }

  void read_ledgers(PlanResult& result) {
    each("SELECT id, recipe, " + stage_memory_columns() + " FROM ledger WHERE run_id = ? ORDER BY ordinal", [&](RowReader row) {
      const std::int64_t id = row.integer();
      std::string recipe = row.text();
      StageLedger ledger;
      ledger.summary = read_stage_memory(row);
      read_entries(id, ledger);
      result.ledgers.emplace_back(std::move(recipe), std::move(ledger));
    });
  }

  /// The entries show text that the ledger then owns: three pieces per entry, one after the other.
  void read_entries(std::int64_t ledger_id, StageLedger& ledger) {
    constexpr int kTexts = 3;
    SQLite::Statement select(database_,
                             "SELECT component, bytes, tensor, formula, source FROM ledger_entry WHERE ledger_id = ? "
                             "ORDER BY ordinal");
    select.bind(1, ledger_id);
    auto texts = std::make_shared<std::vector<std::string>>();
    while (select.executeStep()) {
      RowReader row(select);
      LedgerEntry entry{};
      entry.component = row.named<Component>(kComponentCount);
      entry.bytes = row.bytes();
      for (int i = 0; i < kTexts; ++i) texts->push_back(row.text());
      ledger.entries.push_back(entry);
    }
    for (std::size_t i = 0; i < ledger.entries.size(); ++i) {  // only now: a growing vector moves its strings
      ledger.entries[i].tensor = (*texts)[kTexts * i];
      ledger.entries[i].formula = (*texts)[kTexts * i + 1];
      ledger.entries[i].source = (*texts)[kTexts * i + 2];
    }
    ledger.texts = std::move(texts);
  }

  void read_links(PlanResult& result) {
    std::int64_t last = -1;
    each(
        "SELECT recipe_ordinal, recipe, from_node, to_node, step_bytes, busy_seconds FROM link_load WHERE run_id = ? "
        "ORDER BY recipe_ordinal, ordinal",
        [&](RowReader row) {
          const std::int64_t recipe_ordinal = row.integer();
          std::string recipe = row.text();
          if (result.links.empty() || recipe_ordinal != last)
            result.links.emplace_back(std::move(recipe), std::vector<LinkLoad>{});
          last = recipe_ordinal;
          LinkLoad load;
          load.from = row.text();
          load.to = row.text();
          load.bytes = row.bytes();
          load.busy = row.seconds();
          result.links.back().second.push_back(std::move(load));
        });
  }

  void read_confirmations(PlanResult& result) {
    each("SELECT timeline_seconds FROM run WHERE id = ?", [&](RowReader row) { result.stats.timeline_seconds = row.real(); });
    each(
        "SELECT recipe, screen_step_seconds, step_seconds, exposed_cp_seconds, exposed_cp_layer_seconds, activity_count, "
        "disagreement, skipped FROM timeline_confirmation WHERE run_id = ? ORDER BY ordinal",
        [&](RowReader row) {
          TimelineConfirmation read;
          read.recipe = row.text();
          for (Seconds* time : {&read.screen_step, &read.step, &read.exposed_cp, &read.exposed_per_layer}) *time = row.seconds();
          read.activities = row.integer();
          read.disagreement = row.text();
          read.skipped = row.text();
          result.confirmations.push_back(std::move(read));
        });
  }

  const SQLite::Database& database_;
  std::int64_t run_;
  SQLite::Statement candidate_;
  SQLite::Statement reasons_;
};

}  // namespace

std::optional<PlanResult> read_result(const Store::Connection& connection, std::int64_t run) {
  return ResultReader(connection.database, run).read();
}

}  // namespace cpfit
