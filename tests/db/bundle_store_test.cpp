// Bundles and the inputs of runs in a store: each once, found by the first digits of their hash.
#include <SQLiteCpp/SQLiteCpp.h>
#include <gtest/gtest.h>

#include "db/store/bundle_store.h"
#include "model/quantity/hash.h"
#include "sample_records.h"

namespace cpfit {
namespace {

BundleListing listing(const std::string& sha256) { return {sha256, "a scenario", "tp=1", "0.1", "rates 1", 8, 1.5, 0}; }

TEST(BundleStore, KeepsEachFileOnceAndFindsItByItsDigits) {
  const sample::TemporaryFolder folder;
  Store store = open_store(folder.file("b.cpfit"));
  EXPECT_TRUE(save_bundle(store, listing("abcd01"), "first\n"));
  EXPECT_FALSE(save_bundle(store, listing("abcd01"), "never read"));
  EXPECT_TRUE(save_bundle(store, listing("abcd02"), "second"));
  const std::vector<BundleListing> listed = list_bundles(store);
  ASSERT_EQ(listed.size(), 2u);
  EXPECT_EQ(listed[0].sha256, "abcd02");  // youngest first
  EXPECT_EQ(listed[1].scenario_name, "a scenario");
  EXPECT_EQ(listed[1].gpus, 8);
  EXPECT_EQ(listed[1].step_seconds, 1.5);
  EXPECT_GT(listed[1].stored_unix_seconds, 0);
  EXPECT_EQ(*load_bundle(store, "abcd01"), "first\n");
  EXPECT_EQ(load_bundle(store, "abcd").problems().at(0).code, "bundle.ambiguous");
  for (const char* digits : {"abc", "ffff", "abcd011", "%", "____"})
    EXPECT_EQ(load_bundle(store, digits).problems().at(0).code, "bundle.unknown") << digits;
}

TEST(BundleStore, InputsOfRunsAreKeptByTheirContent) {
  const sample::TemporaryFolder folder;
  const std::string path = folder.file("b.cpfit"), text = "memory = \"80 GiB\"\n", binary("a\0b", 3);
  {
    Store store = open_store(path);
    save_inputs(store, {{"presets/gpus.toml", text}, {"config.json", binary}});
    save_inputs(store, {{"another name", text}});
    EXPECT_EQ(find_input(store, sha256_hex(text)), text);
    EXPECT_EQ(find_input(store, sha256_hex(binary)), binary);
    EXPECT_FALSE(find_input(store, sha256_hex("something else")));
  }
  SQLite::Database database(path, SQLite::OPEN_READWRITE);
  EXPECT_EQ(database.execAndGet("SELECT count(*) FROM input_text").getInt(), 2);
  database.exec("UPDATE input_text SET content = x'00'");
  EXPECT_FALSE(find_input(open_store(path), sha256_hex(text))) << "what was tampered with is not believed";
}

TEST(BundleStore, AnOlderDatabaseHasNone) {
  const sample::TemporaryFolder folder;
  const std::string path = folder.file("b.cpfit");
  {
    const Store store = open_store(path);
  }
  SQLite::Database(path, SQLite::OPEN_READWRITE).exec("DROP TABLE bundle; DROP TABLE input_text;");
  const Store older = open_store(path, {.access = StoreAccess::kRead});
  EXPECT_TRUE(list_bundles(older).empty());
  EXPECT_EQ(load_bundle(older, "abcd").problems().at(0).code, "bundle.unknown");
  EXPECT_FALSE(find_input(older, sha256_hex("x")));
}

}  // namespace
}  // namespace cpfit
