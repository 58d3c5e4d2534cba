// Calibrations in a store: once each, found by name and by the first digits of the id.
#include <SQLiteCpp/SQLiteCpp.h>
#include <gtest/gtest.h>

#include "db/store/calibration_store.h"
#include "sample_records.h"

namespace cpfit {
namespace {

Calibration sample_calibration(const std::string& name, std::int64_t created) {
  Calibration c;
  c.name = name;
  c.created_unix_seconds = created;
  c.tool_version = "0.1";
  c.sources = {{"a.json", std::string(64, 'a'), "cpfit-bench measurement, backend host", 12, 3},
               {"b.txt", std::string(64, 'b'), "nccl-tests", 4, 0}};
  c.machine.hosts = {"n0", "n1"};
  c.machine.cpu = "CPU";
  c.machine.cores = 64;
  c.machine.memory_bytes = std::int64_t{1} << 40;
  c.machine.gpu = "NVIDIA H100 80GB HBM3";
  c.machine.gpus_per_host = 8;
  c.machine.driver = "570.10";
  c.machine.nccl = "2.28.9";
  c.machine.clocks_mhz = ClockRange{1410, 1700, 1980};
  c.machine.power_limit_watts = 700;
  c.groups = {"8 ranks on 1 node", "16 ranks on 2 nodes"};
  c.gaps = {{"attention backward", "no point"}};
  c.excluded = {{std::string(64, 'b'), 7, "send_recv of 4096 bytes on 2 ranks", "the machine was not quiet"}};
  c.rates_toml = "version = \"fit-" + name + "\"\n";
  c.id = calibration_id(c);
  return c;
}

std::vector<Surface> surfaces() {
  return {{"H100-SXM5-80GB", "gemm bf16", "m 1-2", {12, 4, 0.02, 0.05, 0.01, Evidence::kFitted, "s"}}};
}

TEST(CalibrationStore, KeepsAllOfItAndEachOnce) {
  const sample::TemporaryFolder folder;
  Store store = open_store(folder.file("c.cpfit"));
  const Calibration one = sample_calibration("one", 100);
  EXPECT_FALSE(save_calibration(store, one, surfaces()).known);
  Calibration renamed = one;
  renamed.name = "again";
  EXPECT_TRUE(save_calibration(store, renamed, surfaces()).known);
  ASSERT_EQ(list_calibrations(store).size(), 1u);
  EXPECT_EQ(list_calibrations(store)[0], one);
  Calibration bare;
  bare.name = "bare";
  bare.id = calibration_id(bare);
  (void)save_calibration(store, bare, {});
  EXPECT_EQ(find_calibration(store, "bare").value(), bare);  // nothing known: no clocks, no limit, no hosts
}

TEST(CalibrationStore, IsFoundByNameAndByDigits) {
  const sample::TemporaryFolder folder;
  Store store = open_store(folder.file("c.cpfit"));
  const Calibration old = sample_calibration("node", 100);
  Calibration young = sample_calibration("node", 200);
  young.machine.driver = "580";
  young.id = calibration_id(young);
  (void)save_calibration(store, young, {});
  (void)save_calibration(store, old, {});
  EXPECT_EQ(find_calibration(store, "node")->id, young.id);  // of several of one name the youngest
  EXPECT_EQ(find_calibration(store, old.id.substr(0, 12))->id, old.id);
  EXPECT_EQ(find_calibration(store, "nodr").problems().at(0).repair, "did you mean 'node'?");
  EXPECT_EQ(find_calibration(store, "fff").problems().at(0).code, "calibration.unknown");  // three digits are no id
}

TEST(CalibrationStore, AnOlderDatabaseHasNone) {
  const sample::TemporaryFolder folder;
  const std::string path = folder.file("c.cpfit");
  {
    const Store store = open_store(path);
  }
  SQLite::Database(path, SQLite::OPEN_READWRITE)
      .exec(
          "DROP TABLE calibration_exclusion; DROP TABLE calibration_surface; DROP TABLE calibration_gap; DROP TABLE "
          "calibration_source; DROP TABLE calibration;");
  EXPECT_TRUE(list_calibrations(open_store(path, {.access = StoreAccess::kRead})).empty());
}

}  // namespace
}  // namespace cpfit
