#include "db/store/bundle_store.h"

#include "db/store/binding.h"
#include "db/store/connection.h"
#include "model/quantity/hash.h"

namespace cpfit {

namespace {

constexpr std::size_t kFewestDigits = 4;

std::span<const unsigned char> bytes_of(const std::string& text) {
  return {reinterpret_cast<const unsigned char*>(text.data()), text.size()};
}

}  // namespace

bool save_bundle(Store& store, const BundleListing& listing, const std::string& text) {
  Store::Connection& connection = store.connection();
  return guarded(connection, "store a bundle in", [&] {
    SQLite::Database& database = connection.database;
    SQLite::Transaction transaction(database, SQLite::TransactionBehavior::IMMEDIATE);
    SQLite::Statement same(database, "SELECT 1 FROM bundle WHERE sha256 = ?");
    same.bind(1, listing.sha256);
    if (same.executeStep()) return false;
    SQLite::Statement insert(
        database,
        "INSERT INTO bundle (sha256, scenario_name, recipe, tool_version, rates_version, gpus, step_seconds, "
        "content, stored_unix_seconds) VALUES (?, ?, ?, ?, ?, ?, ?, ?, unixepoch())");
    Binder binder(insert);
    binder.text(listing.sha256).text(listing.scenario_name).text(listing.recipe).text(listing.tool_version);
    binder.text(listing.rates_version).integer(listing.gpus).real(listing.step_seconds).text(text).run();
    transaction.commit();
    return true;
  });
}

std::vector<BundleListing> list_bundles(const Store& store) {
  Store::Connection& connection = store.connection();
  return guarded(connection, "list the bundles of", [&] {
    std::vector<BundleListing> listings;
    const ReadSnapshot snapshot(connection);
    if (!connection.database.tableExists("bundle")) return listings;
    SQLite::Statement select(connection.database,
                             "SELECT sha256, scenario_name, recipe, tool_version, rates_version, gpus, step_seconds, "
                             "stored_unix_seconds FROM bundle ORDER BY id DESC");
    while (select.executeStep()) {
      RowReader row(select);
      BundleListing listing;
      for (std::string* text :
           {&listing.sha256, &listing.scenario_name, &listing.recipe, &listing.tool_version, &listing.rates_version}) {
        *text = row.text();
      }
      listing.gpus = row.integer();
      listing.step_seconds = row.real();
      listing.stored_unix_seconds = row.integer();
      listings.push_back(std::move(listing));
    }
    return listings;
  });
}

Outcome<std::string> load_bundle(const Store& store, const std::string& digits) {
  Store::Connection& connection = store.connection();
  return guarded(connection, "read a bundle from", [&]() -> Outcome<std::string> {
    const std::string list = "list what there is: cpfit runs list --db " + connection.path;
    const ReadSnapshot snapshot(connection);
    const Problem unknown{"bundle.unknown", connection.path, "there is no bundle '" + digits + "'", list};
    if (!connection.database.tableExists("bundle") || digits.size() < kFewestDigits) return unknown;
    SQLite::Statement select(connection.database, "SELECT sha256, content FROM bundle WHERE substr(sha256, 1, ?) = ? LIMIT 2");
    select.bind(1, static_cast<std::int64_t>(digits.size()));
    select.bind(2, digits);
    if (!select.executeStep()) return unknown;
    RowReader row(select);
    const std::string first = row.text();
    std::string content = row.text();
    if (select.executeStep())
      return Problem{"bundle.ambiguous", connection.path, "several bundles begin with " + digits, "give more digits: " + list};
    return content;
  });
}

void save_inputs(Store& store, const std::vector<InputText>& texts) {
  Store::Connection& connection = store.connection();
  guarded(connection, "keep inputs of a run in", [&] {
    SQLite::Transaction transaction(connection.database, SQLite::TransactionBehavior::IMMEDIATE);
    SQLite::Statement insert(connection.database, "INSERT OR IGNORE INTO input_text (sha256, name, content) VALUES (?, ?, ?)");
    for (const InputText& text : texts)
      Binder(insert).text(sha256_hex(text.content)).text(text.name).blob(bytes_of(text.content)).run();
    transaction.commit();
  });
}

std::optional<std::string> find_input(const Store& store, const std::string& sha256) {
  Store::Connection& connection = store.connection();
  return guarded(connection, "read an input of a run from", [&]() -> std::optional<std::string> {
    const ReadSnapshot snapshot(connection);
    if (!connection.database.tableExists("input_text")) return std::nullopt;
    SQLite::Statement select(connection.database, "SELECT content FROM input_text WHERE sha256 = ?");
    select.bind(1, sha256);
    if (!select.executeStep()) return std::nullopt;
    const std::span<const unsigned char> content = RowReader(select).blob();
    std::string text(content.begin(), content.end());
    if (sha256_hex(text) != sha256) return std::nullopt;  // a database that was tampered with is not believed
    return text;
  });
}

}  // namespace cpfit
