#include "db/store/verification_store.h"

#include <array>
#include <cmath>
#include <limits>
#include <map>

#include "db/store/binding.h"
#include "db/store/connection.h"

namespace cpfit {

namespace {

/// SQLite keeps no NaN: an error that is none is infinite.
double stored_share(double share) { return std::isnan(share) ? std::numeric_limits<double>::infinity() : share; }

void bind_loss(Binder& binder, double loss) { std::isfinite(loss) ? binder.real(loss) : binder.null(); }

double read_loss(RowReader& row) {
  const bool absent = row.next_is_null();
  const double loss = row.real();
  return absent ? std::numeric_limits<double>::quiet_NaN() : loss;
}

bool there_are_verifications(const SQLite::Database& database) { return database.tableExists("verification"); }

std::int64_t insert_verification(SQLite::Database& database, const Verification& verification) {
  SQLite::Statement insert(database,
                           "INSERT INTO verification (suite, backend, implementation, implementation_version, tool_version, "
                           "fixture_sha256, suite_seconds, all_caught, stored_unix_seconds) VALUES (?, ?, ?, ?, ?, ?, ?, ?, "
                           "unixepoch())");
  Binder binder(insert);
  binder.text(verification.suite).text(verification.backend).text(verification.implementation);
  binder.text(verification.implementation_version).text(verification.tool_version).text(verification.fixture_hash);
  binder.real(verification.seconds).integer(verification.all_caught() ? 1 : 0).run();
  return database.getLastInsertRowid();
}

void insert_cases(SQLite::Database& database, std::int64_t id, const std::vector<VerifiedCase>& cases) {
  SQLite::Statement insert(
      database,
      "INSERT INTO verification_case (verification_id, ordinal, method, mask, shape, layout, dtype, cp, "
      "inner_ranks, length_tokens, passed, pad_checked, pad_invariant, covered, occupancy_share, trouble) VALUES (" +
          placeholders(16) + ")");
  SQLite::Statement insert_error(database,
                                 "INSERT INTO verification_error (verification_id, case_ordinal, tensor, judged, "
                                 "normwise_share, largest_share, kernel_normwise_share, kernel_largest_share, "
                                 "normwise_limit_share, largest_limit_share) VALUES (" +
                                     placeholders(10) + ")");
  std::int64_t ordinal = 0;
  for (const VerifiedCase& one : cases) {
    Binder binder(insert);
    binder.integer(id).integer(ordinal).text(one.method).text(one.mask).text(one.shape).text(one.layout).text(one.dtype);
    binder.integer(one.cp).integer(one.inner).integer(one.length).integer(one.passed ? 1 : 0);
    binder.integer(one.pad_checked ? 1 : 0).integer(one.pad_invariant ? 1 : 0);
    binder.integer(one.covered ? 1 : 0).real(one.occupancy).text(one.trouble).run();
    for (int tensor = 0; tensor < kVerifiedTensors; ++tensor) {
      const TensorError& error = one.errors[static_cast<std::size_t>(tensor)];
      Binder figures(insert_error);
      figures.integer(id).integer(ordinal).word(name_of(static_cast<VerifiedTensor>(tensor))).integer(error.judged ? 1 : 0);
      for (const double share : {error.normwise, error.largest, error.kernel_normwise, error.kernel_largest, error.normwise_limit,
                                 error.largest_limit}) {
        figures.real(stored_share(share));
      }
      figures.run();
    }
    ++ordinal;
  }
}

void insert_controls(SQLite::Database& database, std::int64_t id, const std::vector<VerifiedControl>& controls) {
  SQLite::Statement insert(
      database,
      "INSERT INTO verification_control (verification_id, ordinal, name, meaning, planted_in, caught, tensor, "
      "error_share, limit_share, loss_truth_nats, loss_faulty_nats, gradient, gradient_error_share, "
      "loss_looks_alike, trouble) VALUES (" +
          placeholders(15) + ")");
  std::int64_t ordinal = 0;
  for (const VerifiedControl& control : controls) {
    Binder binder(insert);
    binder.integer(id).integer(ordinal++).text(control.name).text(control.meaning).text(control.planted_in);
    binder.integer(control.caught ? 1 : 0);
    binder.text(control.tensor).real(stored_share(control.error)).real(stored_share(control.limit));
    bind_loss(binder, control.loss_truth);
    bind_loss(binder, control.loss_faulty);
    binder.text(control.gradient).real(stored_share(control.gradient_error)).integer(control.loss_looks_alike ? 1 : 0);
    binder.text(control.trouble).run();
  }
}

void insert_blocks(SQLite::Database& database, std::int64_t id, const std::vector<VerifiedBlock>& blocks) {
  SQLite::Statement insert(database,
                           "INSERT INTO verification_block (verification_id, ordinal, method, shape, cp, passed, "
                           "loss_truth_nats, loss_nats, parameter, error_share, limit_share, trouble) VALUES (" +
                               placeholders(12) + ")");
  std::int64_t ordinal = 0;
  for (const VerifiedBlock& block : blocks) {
    Binder binder(insert);
    binder.integer(id).integer(ordinal++).text(block.method).text(block.shape).integer(block.cp).integer(block.passed ? 1 : 0);
    bind_loss(binder, block.loss_truth);
    bind_loss(binder, block.loss);
    binder.text(block.parameter).real(stored_share(block.error)).real(block.limit).text(block.trouble).run();
  }
}

void insert_left_out(SQLite::Database& database, std::int64_t id, const std::vector<LeftOutCases>& left_out) {
  SQLite::Statement insert(
      database, "INSERT INTO verification_left_out (verification_id, ordinal, reason, case_count) VALUES (?, ?, ?, ?)");
  std::int64_t ordinal = 0;
  for (const LeftOutCases& entry : left_out)
    Binder(insert).integer(id).integer(ordinal++).text(entry.reason).integer(entry.count).run();
}

bool read_head(const SQLite::Database& database, std::int64_t id, Verification& read) {
  SQLite::Statement select(database,
                           "SELECT suite, backend, implementation, implementation_version, tool_version, fixture_sha256, "
                           "suite_seconds FROM verification WHERE id = ?");
  select.bind(1, id);
  if (!select.executeStep()) return false;
  RowReader row(select);
  for (std::string* text :
       {&read.suite, &read.backend, &read.implementation, &read.implementation_version, &read.tool_version, &read.fixture_hash}) {
    *text = row.text();
  }
  read.seconds = row.real();
  return true;
}

void read_cases(const SQLite::Database& database, std::int64_t id, Verification& read) {
  SQLite::Statement select(
      database,
      "SELECT method, mask, shape, layout, dtype, cp, inner_ranks, length_tokens, passed, pad_checked, pad_invariant, covered, "
      "occupancy_share, trouble FROM verification_case WHERE verification_id = ? ORDER BY ordinal");
  select.bind(1, id);
  while (select.executeStep()) {
    RowReader row(select);
    VerifiedCase one;
    for (std::string* text : {&one.method, &one.mask, &one.shape, &one.layout, &one.dtype}) *text = row.text();
    one.cp = row.small_integer();
    one.inner = row.small_integer();
    one.length = row.integer();
    for (bool* flag : {&one.passed, &one.pad_checked, &one.pad_invariant, &one.covered}) *flag = row.flag();
    one.occupancy = row.real();
    one.trouble = row.text();
    read.cases.push_back(std::move(one));
  }
}

void read_errors(const SQLite::Database& database, std::int64_t id, Verification& read) {
  SQLite::Statement select(database,
                           "SELECT case_ordinal, tensor, judged, normwise_share, largest_share, kernel_normwise_share, "
                           "kernel_largest_share, normwise_limit_share, largest_limit_share FROM verification_error "
                           "WHERE verification_id = ?");
  select.bind(1, id);
  while (select.executeStep()) {
    RowReader row(select);
    const auto ordinal = static_cast<std::size_t>(row.integer());
    const auto tensor = static_cast<std::size_t>(row.named<VerifiedTensor>(kVerifiedTensors));
    if (ordinal >= read.cases.size())
      throw Error("the file is damaged: an error belongs to case " + std::to_string(ordinal) + ", of which there is none");
    TensorError& error = read.cases[ordinal].errors.at(tensor);
    error.judged = row.flag();
    for (double* share : {&error.normwise, &error.largest, &error.kernel_normwise, &error.kernel_largest, &error.normwise_limit,
                          &error.largest_limit}) {
      *share = row.real();
    }
  }
}

void read_controls(const SQLite::Database& database, std::int64_t id, Verification& read) {
  SQLite::Statement select(database,
                           "SELECT name, meaning, planted_in, caught, tensor, error_share, limit_share, loss_truth_nats, "
                           "loss_faulty_nats, gradient, gradient_error_share, loss_looks_alike, trouble FROM "
                           "verification_control WHERE verification_id = ? "
                           "ORDER BY ordinal");
  select.bind(1, id);
  while (select.executeStep()) {
    RowReader row(select);
    VerifiedControl control;
    control.name = row.text();
    control.meaning = row.text();
    control.planted_in = row.text();
    control.caught = row.flag();
    control.tensor = row.text();
    control.error = row.real();
    control.limit = row.real();
    control.loss_truth = read_loss(row);
    control.loss_faulty = read_loss(row);
    control.gradient = row.text();
    control.gradient_error = row.real();
    control.loss_looks_alike = row.flag();
    control.trouble = row.text();
    read.controls.push_back(std::move(control));
  }
}

void read_blocks(const SQLite::Database& database, std::int64_t id, Verification& read) {
  SQLite::Statement select(database,
                           "SELECT method, shape, cp, passed, loss_truth_nats, loss_nats, parameter, error_share, limit_share, "
                           "trouble FROM verification_block WHERE verification_id = ? ORDER BY ordinal");
  select.bind(1, id);
  while (select.executeStep()) {
    RowReader row(select);
    VerifiedBlock block;
    block.method = row.text();
    block.shape = row.text();
    block.cp = row.small_integer();
    block.passed = row.flag();
    block.loss_truth = read_loss(row);
    block.loss = read_loss(row);
    block.parameter = row.text();
    block.error = row.real();
    block.limit = row.real();
    block.trouble = row.text();
    read.blocks.push_back(std::move(block));
  }
}

void read_left_out(const SQLite::Database& database, std::int64_t id, Verification& read) {
  SQLite::Statement select(database,
                           "SELECT reason, case_count FROM verification_left_out WHERE verification_id = ? ORDER BY ordinal");
  select.bind(1, id);
  while (select.executeStep()) {
    RowReader row(select);
    LeftOutCases entry;
    entry.reason = row.text();
    entry.count = row.integer();
    read.left_out.push_back(std::move(entry));
  }
}

}  // namespace

VerificationId save_verification(Store& store, const Verification& verification) {
  Store::Connection& connection = store.connection();
  return guarded(connection, "store a verification in", [&] {
    SQLite::Database& database = connection.database;
    SQLite::Transaction transaction(database, SQLite::TransactionBehavior::IMMEDIATE);
    const std::int64_t id = insert_verification(database, verification);
    insert_cases(database, id, verification.cases);
    insert_blocks(database, id, verification.blocks);
    insert_controls(database, id, verification.controls);
    insert_left_out(database, id, verification.left_out);
    transaction.commit();
    return VerificationId{id};
  });
}

std::vector<VerificationListing> list_verifications(const Store& store) {
  Store::Connection& connection = store.connection();
  return guarded(connection, "list the verifications of", [&] {
    std::vector<VerificationListing> listings;
    const ReadSnapshot snapshot(connection);
    if (!there_are_verifications(connection.database)) return listings;
    SQLite::Statement select(connection.database,
                             "SELECT id, suite, backend, implementation, implementation_version, tool_version, fixture_sha256, "
                             "stored_unix_seconds, "
                             "(SELECT count(*) FROM verification_case WHERE verification_id = verification.id), "
                             "(SELECT count(*) FROM verification_case WHERE verification_id = verification.id AND passed = 0), "
                             "(SELECT count(*) FROM verification_control WHERE verification_id = verification.id), "
                             "(SELECT count(*) FROM verification_control WHERE verification_id = verification.id AND caught = 1) "
                             "FROM verification ORDER BY id DESC");
    while (select.executeStep()) {
      RowReader row(select);
      VerificationListing listing;
      listing.id = VerificationId{row.integer()};
      for (std::string* text : {&listing.suite, &listing.backend, &listing.implementation, &listing.implementation_version,
                                &listing.tool_version, &listing.fixture_hash}) {
        *text = row.text();
      }
      for (std::int64_t* count :
           {&listing.stored_unix_seconds, &listing.cases, &listing.failed, &listing.controls, &listing.caught}) {
        *count = row.integer();
      }
      listings.push_back(std::move(listing));
    }
    return listings;
  });
}

Outcome<Verification> load_verification(const Store& store, VerificationId id) {
  Store::Connection& connection = store.connection();
  const auto number = static_cast<std::int64_t>(id);
  return guarded(connection, "read verification " + std::to_string(number) + " from", [&]() -> Outcome<Verification> {
    const ReadSnapshot snapshot(connection);
    Verification read;
    if (!there_are_verifications(connection.database) || !read_head(connection.database, number, read)) {
      return Problem{"verification.unknown", connection.path, "there is no verification " + std::to_string(number),
                     "List what there is (cpfit runs list --db " + connection.path + "), or verify again with --db"};
    }
    read_cases(connection.database, number, read);
    read_errors(connection.database, number, read);
    read_blocks(connection.database, number, read);
    read_controls(connection.database, number, read);
    read_left_out(connection.database, number, read);
    return read;
  });
}

std::vector<AttentionProof> proofs_of(const Store& store) {
  Store::Connection& connection = store.connection();
  return guarded(connection, "read the proofs of", [&] {
    std::vector<AttentionProof> proofs;
    const ReadSnapshot snapshot(connection);
    if (!there_are_verifications(connection.database)) return proofs;
    // Of each key the youngest verification decides.
    SQLite::Statement select(
        connection.database,
        "SELECT implementation, implementation_version, backend, method, mask, layout, dtype, cp, fixture_sha256, "
        "stored_unix_seconds, all_caught AND min(passed), max(verification.id) FROM verification "
        "JOIN verification_case ON verification_id = verification.id "
        "GROUP BY implementation, implementation_version, backend, method, mask, layout, dtype, cp, verification.id "
        "ORDER BY implementation, implementation_version, backend, method, mask, layout, dtype, cp, verification.id");
    using Key = std::array<std::string, 7>;
    struct Verdict {
      std::string hash;
      std::int64_t unix_seconds = 0;
      bool passed = false;
    };
    std::map<Key, std::map<std::int32_t, Verdict>> latest;
    while (select.executeStep()) {
      RowReader row(select);
      Key key;
      for (std::string& word : key) word = row.text();
      const std::int32_t cp = row.small_integer();
      Verdict verdict;
      verdict.hash = row.text();
      verdict.unix_seconds = row.integer();
      verdict.passed = row.flag();
      latest[key][cp] = verdict;  // a later row is a younger one
    }
    for (const auto& [key, by_cp] : latest) {
      AttentionProof proof;
      std::size_t word = 0;
      for (std::string* text : {&proof.implementation, &proof.implementation_version, &proof.backend, &proof.method, &proof.mask,
                                &proof.layout, &proof.dtype}) {
        *text = key[word++];
      }
      for (const auto& [cp, verdict] : by_cp) {
        if (!verdict.passed) continue;
        proof.cp.push_back(cp);
        if (verdict.unix_seconds < proof.unix_seconds) continue;
        proof.unix_seconds = verdict.unix_seconds;
        proof.fixture_hash = verdict.hash;
      }
      if (!proof.cp.empty()) proofs.push_back(std::move(proof));
    }
    return proofs;
  });
}

}  // namespace cpfit
