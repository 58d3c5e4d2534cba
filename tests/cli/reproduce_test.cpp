// cpfit runs reproduce: a verification repeated in processes and a run planned again say the same, or what differs.
#include <SQLiteCpp/SQLiteCpp.h>
#include <gmock/gmock.h>

#include <cstdlib>

#include "tests/cli/child.h"

namespace cpfit::cli_test {
namespace {

using nlohmann::json;
using testing::HasSubstr;

Words verify_words(const std::string& database) {
  return {"verify", "--method", "te_p2p", "--mask", "causal", "--cp", "2", "--dtype", "bf16", "--db", database};
}

TEST(Reproduce, AVerificationIsRepeatedCaseByCase) {
  const Folder folder;
  const std::string database = folder / "a.db";
  const json stored = cpfit_json(verify_words(database));
  const json threads = cpfit_json({"runs", "reproduce", "verification:1", "--backend", "reference", "--db", database});
  EXPECT_EQ(threads["reproduced"], true);
  EXPECT_EQ(threads["cases"], stored["cases"].size());
  EXPECT_EQ(threads["bit_for_bit"], stored["cases"].size());
  EXPECT_EQ(threads["fixture_hash_now"], stored["fixture_hash"]);

  const Said said = cpfit({"runs", "reproduce", "verification:1", "--db", database, "--json"});
  if (said.exit_code == 4) GTEST_SKIP() << said.err;
  ASSERT_EQ(said.exit_code, 0) << said.err;
  const json processes = json::parse(said.out);
  EXPECT_EQ(processes["backend"], "mpi");
  EXPECT_EQ(processes["bit_for_bit"], stored["cases"].size());
}

TEST(Reproduce, WhatDiffersIsNamed) {
  const Folder folder;
  const std::string database = folder / "a.db";
  const json stored = cpfit_json(verify_words(database));
  const Words again = {"runs", "reproduce", "verification:1", "--backend", "reference", "--db", database};
  const auto sql = [&](const std::string& statement) { SQLite::Database(database, SQLite::OPEN_READWRITE).exec(statement); };
  sql("UPDATE verification_error SET normwise_share = normwise_share / 2 WHERE case_ordinal = 1 AND tensor = 'dk'");
  json found = cpfit_json(again);
  EXPECT_EQ(found["reproduced"], true) << "another library's rounding is no other verdict";
  EXPECT_EQ(found["bit_for_bit"].get<std::size_t>() + 1, stored["cases"].size());
  ASSERT_EQ(found["differing"].size(), 1u);
  ASSERT_EQ(found["differing"][0]["errors"].size(), 1u);
  EXPECT_EQ(found["differing"][0]["errors"][0]["figure"], "dk");
  EXPECT_EQ(found["differing"][0]["errors"][0]["relative"], 1.0);

  sql("UPDATE verification_case SET passed = 0 WHERE ordinal = 1");
  found = cpfit_json(again, 1);
  EXPECT_EQ(found["reproduced"], false);
  EXPECT_EQ(found["differing"][0]["passed_now"], true);
  sql("UPDATE verification_case SET passed = 1");

  sql("UPDATE verification SET fixture_sha256 = 'another'");
  EXPECT_EQ(cpfit_json(again, 1)["fixture_hash_then"], "another");
  sql("UPDATE verification_case SET shape = 'of another suite' WHERE ordinal = 0");
  EXPECT_THAT(cpfit_json(again, 1)["unknown_cases"][0].get<std::string>(), HasSubstr("of another suite"));
}

TEST(Reproduce, IsWaivedWithAReasonWhereItCannotBeDone) {
  const Folder folder;
  const std::string database = folder / "a.db";
  (void)cpfit_json({"verify", "--method", "te_p2p", "--mask", "causal", "--cp", "2", "--dtype", "bf16", "--db", database});
  const std::string path = std::getenv("PATH") != nullptr ? std::getenv("PATH") : "";
  ASSERT_EQ(setenv("PATH", folder.file("nothing", "").c_str(), 1), 0);
  const Said said = cpfit({"runs", "reproduce", "verification:1", "--db", database});
  ASSERT_EQ(setenv("PATH", path.c_str(), 1), 0);
  EXPECT_EQ(said.exit_code, 4) << said.out << said.err;
  EXPECT_THAT(said.err, HasSubstr("cpfit: waived: there is no "));
  SQLite::Database(database, SQLite::OPEN_READWRITE)
      .exec("UPDATE verification SET suite = 'check', implementation = 'TransformerEngine'");
  const Said check = cpfit({"runs", "reproduce", "verification:1", "--backend", "reference", "--db", database});
  EXPECT_EQ(check.exit_code, 4);
  EXPECT_THAT(check.err, HasSubstr("judged tensors of TransformerEngine"));
  EXPECT_EQ(cpfit({"runs", "reproduce", "verification:7", "--db", database}).exit_code, 2);
  EXPECT_EQ(cpfit({"runs", "reproduce", "seven", "--db", database}).exit_code, 2);
}

TEST(Reproduce, ARunIsPlannedAgain) {
  const Folder folder;
  const std::string scenario = folder.file("s.toml", small_scenario("[search]\ntp = [2, 4]\ncp = [1, 2]\n")),
                    database = folder / "a.db";
  ASSERT_EQ(cpfit({"plan", scenario, "--db", database, "--no-candidates"}).exit_code, 0);
  EXPECT_EQ(cpfit_json({"runs", "reproduce", "1", "--db", database})["reproduced"], true);
  SQLite::Database(database, SQLite::OPEN_READWRITE)
      .exec("UPDATE candidate SET optimizer_seconds = 0 WHERE origin = 'result' AND status = 'ship'; UPDATE run SET legal = 7");
  const json found = cpfit_json({"runs", "reproduce", "1", "--db", database}, 1);
  EXPECT_EQ(found["reproduced"], false);
  EXPECT_THAT(found["parts_that_differ"].dump(), HasSubstr("figures of the shipped recipe"));
  EXPECT_THAT(found["parts_that_differ"].dump(), HasSubstr("counts of the search"));
  EXPECT_THAT(found["figures"].dump(), HasSubstr("time.optimizer_seconds"));
}

}  // namespace
}  // namespace cpfit::cli_test
