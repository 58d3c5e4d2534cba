// The measurement file: what is written comes back; what is none is told apart.
#include "model/record/measurement.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <fstream>

namespace cpfit {
namespace {

MeasurementFile example() {
  MeasurementFile file;
  file.tool_version = "1.2.3";
  file.started_at = "2026-01-31T23:59:59Z";
  file.backend = "host";
  file.ranks = 4;
  file.ranks_per_host = 2;
  file.seed = 18446744073709551615U;
  file.smoke = true;
  file.machine.hosts = {"n1", "n2"};
  file.machine.cpu = "a \"quoted\" processor";
  file.machine.cores = 8;
  file.machine.memory_bytes = std::int64_t{1} << 40;
  file.machine.mpi = "Open MPI 4.1.4";
  file.machine.clocks_mhz = ClockRange{1200, 2400.5, 3000};
  file.machine.throttled = "clock at 61 % of its maximum";
  file.machine.link = "shared memory";
  MeasuredPoint ring{"ring_step", {{"method", "te_p2p"}, {"cp", std::int64_t{4}}}};
  ring.warm_ups = 3;
  ring.results = {{"seconds", 0.1, 0.09, 0.3, 1.0 / 3.0, 17, 2}, {"peak_allocated_bytes", 4096, 4096, 4096, 0, 1, 0}};
  ring.windows = {{1, "compute", 0, 0, 0.05}, {1, "wait", 0, 0.05, 0.1}};
  MeasuredPoint skipped{"gemm", {{"m", std::int64_t{16}}}};
  skipped.outcome = MeasuredOutcome::kSkipped;
  skipped.reason = "no BLAS";
  file.points = {ring, skipped};
  return file;
}

std::string code_of(const std::string& text) {
  const auto read = parse_measurement(text, "here.json");
  if (read.ok()) return "read";
  EXPECT_EQ(read.problems().front().where, "here.json");
  EXPECT_FALSE(read.problems().front().repair.empty());
  return read.problems().front().code;
}

std::string with(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(Measurement, ComesBackAsItWas) {
  const auto read = parse_measurement(measurement_json(example()), "x");
  ASSERT_TRUE(read.ok()) << to_text(read.problems().front());
  EXPECT_EQ(*read, example());
  EXPECT_EQ(measurement_json(*read), measurement_json(example()));
}

TEST(Measurement, WithoutPointsComesBackToo) {
  MeasurementFile file = example();
  file.points.clear();
  file.machine.power_limit_watts = 700;
  file.machine.clocks_mhz.reset();
  const auto read = parse_measurement(measurement_json(file), "x");
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(*read, file);
}

TEST(Measurement, NewerVersionIsNamed) {
  const std::string newer = with(measurement_json(example()), "\"format_version\":1", "\"format_version\":2");
  EXPECT_EQ(code_of(newer), "measurement.newer");
  EXPECT_NE(parse_measurement(newer, "x").problems().front().message.find("format_version 2"), std::string::npos);
}

TEST(Measurement, ForeignFilesAreToldApart) {
  EXPECT_EQ(code_of("{\"traceEvents\": []}"), "measurement.foreign");
  EXPECT_EQ(code_of("[1, 2]"), "measurement.foreign");
  EXPECT_EQ(code_of("# nThread 1 nGpus 8"), "measurement.foreign");
  EXPECT_EQ(code_of(""), "measurement.foreign");
  EXPECT_EQ(code_of("{\"format\": \"cpfit-measurement\"}"), "measurement.foreign");
}

TEST(Measurement, EveryTruncationIsAProblem) {
  const std::string whole = measurement_json(example());
  for (std::size_t length = 0; length + 2 < whole.size(); ++length) {
    EXPECT_NE(code_of(whole.substr(0, length)), "read") << length;
  }
  EXPECT_EQ(code_of(whole.substr(0, whole.size() / 2)), "measurement.not_json");
}

TEST(Measurement, DamagedContentSaysWhere) {
  const std::string whole = measurement_json(example());
  for (const auto& [from, to] : std::vector<std::pair<std::string, std::string>>{{"\"ranks\":4", "\"ranks\":4.5"},
                                                                                 {"\"ranks\":4", "\"ranks\":\"4\""},
                                                                                 {"\"seed\":18446744073709551615", "\"seed\":-1"},
                                                                                 {"\"spread\":0.0,", "\"spread\":null,"},
                                                                                 {"\"skipped\"", "\"gone\""},
                                                                                 {"\"m\":16", "\"m\":1.5"},
                                                                                 {"\"lane\":\"wait\",", ""}}) {
    EXPECT_EQ(code_of(with(whole, from, to)), "measurement.content") << to;
  }
  const auto read = parse_measurement(with(whole, "\"m\":16", "\"m\":1.5"), "x");
  EXPECT_NE(read.problems().front().message.find("point 2"), std::string::npos);
}

TEST(Measurement, FileAppearsWholeAndReplacesTheOldOne) {
  const auto folder = std::filesystem::path(testing::TempDir()) / ("measurement." + std::to_string(::getpid()));
  std::filesystem::create_directories(folder);
  const auto path = folder / "m.json";
  write_measurement(example(), path);
  MeasurementFile second = example();
  second.points.pop_back();
  write_measurement(second, path);
  const auto read = read_measurement(path);
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(*read, second);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder), {}), 1);  // nothing left beside it
  EXPECT_THROW(write_measurement(second, folder / "absent" / "m.json"), Error);
  EXPECT_EQ(read_measurement(folder / "absent.json").problems().front().code, "measurement.unreadable");
  std::filesystem::remove_all(folder);
}

TEST(Measurement, AxesAreLookedUpByNameAndType) {
  EXPECT_EQ(axes_text(example().points.front().axes), "method=te_p2p cp=4");
  const MeasuredPoint point = example().points.front();
  EXPECT_EQ(point.integer("cp"), 4);
  EXPECT_EQ(point.integer("method"), std::nullopt);
  EXPECT_EQ(point.text("method"), "te_p2p");
  EXPECT_EQ(point.text("cp"), "");
  ASSERT_NE(point.result("seconds"), nullptr);
  EXPECT_EQ(point.result("seconds")->samples, 17);
  EXPECT_EQ(point.result("minutes"), nullptr);
}

}  // namespace
}  // namespace cpfit
