// Exposed communication of recorded traces: intervals worked out by hand, formats, damage, and real samples against figures that
// were computed independently.
#include "calibrate/read/trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>
#include <unistd.h>
#include <zlib.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>

#include "calibrate/read/csv.h"
#include "calibrate/read/trace_overlap.h"
#include "tests/shared_folder.h"

namespace cpfit {
namespace {

class TraceTest : public ::testing::Test {
 protected:
  TraceTest() { std::filesystem::create_directories(folder_); }
  ~TraceTest() override { std::filesystem::remove_all(folder_); }
  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name, std::ios::binary) << text;
    return (folder_ / name).string();
  }
  static std::string code_of(const std::string& path) {
    const Outcome<RecordedTrace> trace = read_trace(path);
    return trace.ok() ? "read" : trace.problems().front().code;
  }
  std::filesystem::path folder_ = std::filesystem::temp_directory_path() / ("cpfit_trace_" + std::to_string(::getpid()));
};

std::string kernel(const char* name, int stream, const std::string& ts, const std::string& dur) {
  return std::string(R"({"ph":"X","cat":"kernel","name":")") + name + R"(","pid":0,"tid":)" + std::to_string(stream) +
         R"(,"ts":)" + ts + R"(,"dur":)" + dur + R"(,"args":{"device":0,"stream":)" + std::to_string(stream) + "}}";
}

TEST_F(TraceTest, IntervalsByHand) {
  // Stream 7 computes 0-100 and 130-200 us, stream 13 sends 20-150 us; a second kernel on stream 8 from 90 to 110 us overlaps the
  // first. compute = 0-110 and 130-200 = 180, communication = 130, both = 20-110 and 130-150 = 110, exposed = 20, idle = 0.
  const std::string path =
      write("hand.json", R"({"schemaVersion":1,"distributedInfo":{"rank":3},"traceEvents":[)" +
                             kernel("flash_fwd", 7, "1690000000000000.000", "100") + "," +
                             kernel("gemm", 8, "1690000000000090", "20.000") + "," +
                             kernel("ncclDevKernel_SendRecv(args)", 13, "1690000000000020.000", "130.0") + "," +
                             kernel("flash_fwd", 7, "1690000000000130.000", "70.000") +
                             R"(,{"ph":"X","cat":"cpu_op","name":"aten::mm","pid":1,"tid":1,"ts":1,"dur":9}]})");
  const Outcome<RecordedTrace> trace = read_trace(path);
  ASSERT_TRUE(trace.ok()) << to_text(trace.problems().front());
  EXPECT_EQ(trace->format, "Kineto");
  EXPECT_EQ(trace->rank, 3);
  EXPECT_EQ(trace->events, 5);
  ASSERT_EQ(trace->devices.size(), 1U);
  EXPECT_EQ(trace->devices[0].streams, 3);
  const TraceOverlap overlap = overlap_of(trace->devices[0]);
  constexpr std::int64_t kMicro = 1'000'000;
  EXPECT_EQ(overlap.span, 200 * kMicro);
  EXPECT_EQ(overlap.compute, 180 * kMicro);
  EXPECT_EQ(overlap.communication, 130 * kMicro);
  EXPECT_EQ(overlap.overlapped, 110 * kMicro);
  EXPECT_EQ(overlap.exposed, 20 * kMicro);
  EXPECT_EQ(overlap.idle, 0);
}

TEST_F(TraceTest, NanosecondsOfAbsoluteStampsSurvive) {
  // 1690000000000000.001 us has 19 digits: a double would round it to 0.25 us.
  const std::string path = write("fine.json", "[" + kernel("a", 1, "1690000000000000.001", "0.002") + "," +
                                                  kernel("ncclKernel", 2, "1690000000000000.002", "0.003") + "]");
  const Outcome<RecordedTrace> trace = read_trace(path);
  ASSERT_TRUE(trace.ok());
  EXPECT_EQ(trace->format, "Chrome");
  const TraceOverlap overlap = overlap_of(trace->devices[0]);
  EXPECT_EQ(overlap.overlapped, 1000);  // 2 ns to 3 ns
  EXPECT_EQ(overlap.exposed, 2000);
}

TEST_F(TraceTest, UtilisationIsNotOverlapAndTheReverse) {
  // 50 us of compute, then 40 us of communication alone: busy all the time, nothing hidden.
  const std::string busy = write("busy.json", "[" + kernel("gemm", 1, "0", "50") + "," + kernel("ncclX", 2, "50", "40") + "]");
  const TraceOverlap apart = overlap_of(read_trace(busy)->devices[0]);
  EXPECT_EQ(apart.idle, 0);
  EXPECT_EQ(apart.exposed, apart.communication);
  EXPECT_THAT(overlap_remark(apart), testing::HasSubstr("high utilisation is not overlap"));
  // All communication under one kernel, then a long pause: low utilisation, everything hidden.
  const std::string idle = write("idle.json", "[" + kernel("gemm", 1, "0", "50") + "," + kernel("ncclX", 2, "5", "40") + "," +
                                                  kernel("gemm", 1, "500", "50") + "]");
  const TraceOverlap hidden = overlap_of(read_trace(idle)->devices[0]);
  EXPECT_EQ(hidden.exposed, 0);
  EXPECT_THAT(overlap_remark(hidden), testing::HasSubstr("idle"));
}

TEST_F(TraceTest, RandomIntervalsAgreeWithCountingEveryTick) {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    TracedDevice device;
    std::array<std::array<bool, 64>, 3> ticks{};
    const int count = std::uniform_int_distribution<>(1, 12)(random);
    for (int i = 0; i < count; ++i) {
      const int start = std::uniform_int_distribution<>(0, 60)(random);
      const int end = start + std::uniform_int_distribution<>(0, 3 + start % 20)(random);
      const auto work = static_cast<DeviceWork>(std::uniform_int_distribution<>(0, 2)(random));
      device.spans.push_back({start, std::min(end, 64), 0, work});
      for (int t = start; t < std::min(end, 64); ++t) ticks[static_cast<std::size_t>(work)][static_cast<std::size_t>(t)] = true;
    }
    std::int64_t compute = 0, communication = 0, both = 0;
    for (std::size_t t = 0; t < 64; ++t) {
      compute += ticks[0][t];
      communication += ticks[1][t];
      both += ticks[0][t] && ticks[1][t];
    }
    const TraceOverlap overlap = overlap_of(device);
    EXPECT_EQ(overlap.compute, compute);
    EXPECT_EQ(overlap.communication, communication);
    EXPECT_EQ(overlap.overlapped, both);
    EXPECT_EQ(overlap.exposed, communication - both);
  }
}

TEST_F(TraceTest, NamesOfCommunicationKernels) {
  for (const char* name :
       {"ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t(ncclWorkElem)", "ncclDevKernel_SendRecv", "ncclSymkDevKernel"})
    EXPECT_TRUE(communicates(name)) << name;
  for (const char* name : {"flash_fwd_kernel", "void cutlass::Kernel", "Memcpy PtoP", ""})
    EXPECT_FALSE(communicates(name)) << name;
}

TEST_F(TraceTest, DamageIsNamed) {
  EXPECT_EQ(code_of((folder_ / "none.json").string()), "trace.unreadable");
  EXPECT_EQ(code_of(folder_.string()), "trace.unreadable");
  EXPECT_EQ(code_of(write("empty.json", "")), "trace.unreadable");
  EXPECT_EQ(code_of(write("prose.json", "this is no trace")), "trace.syntax");
  EXPECT_EQ(code_of(write("cut.json", R"({"traceEvents":[)" + kernel("a", 1, "0", "5").substr(0, 40))), "trace.syntax");
  EXPECT_EQ(code_of(write("other.json", R"({"name":"config","layers":[1,2]})")), "trace.no_events");
  EXPECT_EQ(code_of(write("host.json", R"({"traceEvents":[{"ph":"X","cat":"cpu_op","name":"a","ts":1,"dur":2}]})")),
            "trace.no_events");
  EXPECT_EQ(code_of(write("deep.json", std::string(200000, '['))), "trace.syntax");  // no stack to overflow
  const Outcome<RecordedTrace> bad_time =
      read_trace(write("time.json", "[" + kernel("a", 1, "0", "5") + "," + kernel("b", 1, "1e3", "5") + "]"));
  ASSERT_TRUE(bad_time.ok());
  ASSERT_EQ(bad_time->remarks.size(), 1U);
  EXPECT_THAT(bad_time->remarks[0].message, testing::HasSubstr("1 events"));
}

TEST_F(TraceTest, TruncatedGzipIsNamed) {
  const std::string path = (folder_ / "trace.json.gz").string();
  std::string text = "[" + kernel("a", 1, "0", "5");
  for (int i = 1; i < 2000; ++i) text += "," + kernel("b", i % 5, std::to_string(i * 7919 % 100003), "5");
  gzFile file = gzopen(path.c_str(), "wb");
  gzwrite(file, text.data(), static_cast<unsigned>(text.size()));
  gzwrite(file, "]", 1);
  gzclose(file);
  ASSERT_EQ(code_of(path), "read");
  std::filesystem::resize_file(path, std::filesystem::file_size(path) / 2);
  EXPECT_EQ(code_of(path), "trace.syntax");
}

TEST_F(TraceTest, NsightExport) {
  const std::string path = (folder_ / "nsys.sqlite").string();
  sqlite3* database = nullptr;
  ASSERT_EQ(sqlite3_open(path.c_str(), &database), SQLITE_OK);
  const char* const kSetup =
      "CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT);"
      "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER, deviceId INTEGER, streamId INTEGER, demangledName "
      "INTEGER);"
      "INSERT INTO StringIds VALUES (1,'gemm'),(2,'ncclDevKernel_SendRecv(x)');"
      "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (1000,2000,0,7,1),(1500,2600,0,13,2),(0,500,1,7,1);";
  EXPECT_EQ(sqlite3_exec(database, kSetup, nullptr, nullptr, nullptr), SQLITE_OK);
  sqlite3_close(database);
  const Outcome<RecordedTrace> trace = read_trace(path);
  ASSERT_TRUE(trace.ok()) << to_text(trace.problems().front());
  ASSERT_EQ(trace->devices.size(), 2U);
  const TraceOverlap overlap = overlap_of(trace->devices[0]);
  EXPECT_EQ(overlap.overlapped, 500'000);  // 1500-2000 ns
  EXPECT_EQ(overlap.exposed, 600'000);     // 2000-2600 ns
  EXPECT_EQ(overlap_of(trace->devices[1]).communication, 0);
}

TEST_F(TraceTest, NsightExportWithoutKernelsIsNamed) {
  const std::string path = (folder_ / "host.sqlite").string();
  sqlite3* database = nullptr;
  ASSERT_EQ(sqlite3_open(path.c_str(), &database), SQLITE_OK);
  EXPECT_EQ(sqlite3_exec(database, "CREATE TABLE NVTX_EVENTS (start INTEGER)", nullptr, nullptr, nullptr), SQLITE_OK);
  sqlite3_close(database);
  EXPECT_EQ(code_of(path), "trace.table");
}

TEST(TraceSamples, ExpectedFiguresComeOut) {
  CPFIT_REQUIRE_SHARED("reference/hardware/traces/expected_overlap.csv");
  const std::string folder = test::shared_path("reference/hardware/traces/");
  const CsvTable table = CsvTable::load(folder + "expected_overlap.csv").value();
  for (std::size_t i = 0; i < table.size(); ++i) {
    const CsvRow row = table.row(i);
    const std::string file(row.text("file"));
    const Outcome<RecordedTrace> trace = read_trace(folder + file);
    ASSERT_TRUE(trace.ok()) << file << ": " << to_text(trace.problems().front());
    ASSERT_EQ(trace->devices.size(), 1U) << file;
    const TraceOverlap overlap = overlap_of(trace->devices[0]);
    const auto expect = [&](const char* column, std::int64_t picoseconds) {
      EXPECT_EQ(picoseconds, row.integer(column).value() * 1000) << file << " " << column;
    };
    EXPECT_EQ(trace->events, row.integer("events").value()) << file;
    EXPECT_EQ(overlap.works, row.integer("gpu_events").value()) << file;
    EXPECT_EQ(overlap.communication_kernels, row.integer("comm_kernels").value()) << file;
    EXPECT_EQ(trace->devices[0].streams, row.integer("streams").value()) << file;
    expect("gpu_span_ns", overlap.span);
    expect("compute_busy_ns", overlap.compute);
    expect("comm_busy_ns", overlap.communication);
    expect("memory_busy_ns", overlap.copy);
    expect("overlap_comm_compute_ns", overlap.overlapped);
    expect("exposed_comm_ns", overlap.exposed);
    expect("idle_ns", overlap.idle);
  }
}

}  // namespace
}  // namespace cpfit
