// What was measured, here or by others: measurement files, outputs of other tools, published tables, calibrations, traces.
#include <optional>
#include <sstream>

#include "calibrate/read/imported.h"
#include "calibrate/read/job_figures.h"
#include "calibrate/read/job_log.h"
#include "calibrate/read/memory_snapshot.h"
#include "calibrate/read/published.h"
#include "calibrate/read/trace.h"
#include "calibrate/read/trace_kernels.h"
#include "calibrate/read/trace_overlap.h"
#include "model/launch/argument_dump.h"
#include "model/launch/launch.h"
#include "model/rates/rate_tables.h"
#include "model/record/calibration.h"
#include "model/record/measurement.h"
#include "tests/fuzz/databases.h"
#include "tests/fuzz/targets.h"

namespace cpfit::fuzz {

namespace {

void look_at(const Outcome<RecordedTrace>& trace) {
  must(trace.ok() != !trace.problems().empty(), "a trace or problems");
  if (!trace.ok()) return;
  for (const TracedDevice& device : trace->devices) {
    const TraceOverlap overlap = overlap_of(device);
    must(overlap.exposed >= 0 && overlap.overlapped >= 0 && overlap.exposed + overlap.overlapped == overlap.communication,
         "communication is hidden or exposed");
    (void)overlap_remark(overlap);
  }
}

}  // namespace

void measurement(std::string_view bytes) {
  const Outcome<MeasurementFile> read = parse_measurement(std::string(bytes), "m.json");
  must(read.ok() != !read.problems().empty(), "a measurement or problems");
  if (!read.ok()) return;
  const Outcome<MeasurementFile> again = parse_measurement(measurement_json(*read), "again.json");
  must(again.ok() && *again == *read, "a measurement comes back from its text");
}

void calibrate_import(std::string_view bytes) {
  ImportHints hints;
  hints.gpu = "H100-SXM5-80GB";
  hints.network_rate = 400e9;
  const Outcome<ImportedFile> read = import_text(std::string(bytes), "f", hints);
  must(read.ok() != !read.problems().empty(), "measurements or problems");
}

void published(std::string_view bytes) {
  const Outcome<MeasuredTable> read = read_published_text(bytes, "t.csv");
  must(read.ok() != !read.problems().empty(), "a table or problems");
}

void calibration(std::string_view bytes) {
  const Outcome<Calibration> read = parse_calibration(std::string(bytes), "c.toml");
  must(read.ok() != !read.problems().empty(), "a calibration or problems");
  if (!read.ok()) return;
  const Outcome<RateTables> tables = tables_of(*read);
  if (tables.ok()) (void)RateSet::from_tables(*tables);
  const Outcome<Calibration> again = parse_calibration(calibration_toml(*read), "again.toml");
  must(again.ok() && calibration_id(*again) == calibration_id(*read), "a calibration comes back from its text");
}

void trace(std::string_view bytes) {
  const TemporaryFile file(bytes);
  look_at(read_trace(file.path()));
}

void trace_nsys(std::string_view bytes) {
  const TemporaryFile file(changed_database(nsys_database(), bytes));
  look_at(read_trace(file.path()));
}

void trace_kernels(std::string_view bytes) {
  const TemporaryFile file(bytes);
  const Outcome<KernelTrace> read = read_kernel_trace(file.path());
  must(read.ok() != !read.problems().empty(), "a trace or problems");
  if (!read.ok()) return;
  for (const auto& [name, kernels] : read->devices) {
    for (const TracedStep& step : read->steps) (void)axis_exposure(kernels, step.start, step.end);
  }
  JobFiles files;
  files.traces.push_back(*read);
  (void)measured_job(files, std::nullopt);
}

void job_log(std::string_view bytes) {
  std::istringstream stream{std::string(bytes)};
  const Outcome<JobLog> read = read_job_log(stream, "job.log");
  must(read.ok() != !read.problems().empty(), "a log or problems");
  if (!read.ok()) return;
  (void)read_launch(LaunchFormat::kMegatron, launch_text_of(read->facts.arguments), read->facts.world);
  JobFiles files;
  files.logs.push_back(*read);
  for (const std::optional<JobShape>& shape : {std::optional<JobShape>{}, std::optional<JobShape>{JobShape{}}})
    (void)measured_job(files, shape);
}

void memory_snapshot(std::string_view bytes) {
  const TemporaryFile file(bytes);
  const TreeLimits limits{.nodes = std::size_t{1} << 20U, .text_bytes = std::size_t{1} << 24U};
  const Outcome<MemorySnapshot> read = read_memory_snapshot(file.path(), limits);
  must(read.ok() != !read.problems().empty(), "a snapshot or problems");
  if (!read.ok()) return;
  JobFiles files;
  files.snapshots.push_back(*read);
  (void)measured_job(files, std::nullopt);
}

std::vector<std::string> measurement_seeds() {
  MeasurementFile file;
  file.tool_version = "1";
  file.started_at = "2026-01-31T23:59:59Z";
  file.backend = "host";
  file.ranks = 4;
  file.ranks_per_host = 2;
  file.machine.hosts = {"n1", "n2"};
  file.machine.gpu = "NVIDIA H100 80GB HBM3";
  file.machine.clocks_mhz = ClockRange{1200, 2400.5, 3000};
  const auto point = [&](const char* probe, std::vector<MeasuredAxis> axes) {
    MeasuredPoint made{probe, std::move(axes)};
    made.results = {{"seconds", 0.1, 0.09, 0.3, 0.02, 17, 2}};
    file.points.push_back(std::move(made));
  };
  using Int = std::int64_t;
  point("attention", {{"q", Int{128}},
                      {"kv", Int{256}},
                      {"heads", Int{8}},
                      {"kv_heads", Int{2}},
                      {"head_dim", Int{128}},
                      {"mask", "causal"},
                      {"pass", "forward"},
                      {"dtype", "bf16"},
                      {"kernel", "cudnn"}});
  point("gemm", {{"m", Int{128}}, {"n", Int{256}}, {"k", Int{64}}, {"dtype", "bf16"}});
  point("memory", {{"operation", "copy"}, {"bytes", Int{1} << 20}});
  point("launch", {{"mode", "eager"}});
  point("p2p", {{"bytes", Int{4096}}, {"pair", "0-1"}, {"direction", "both"}, {"link", "nvlink"}});
  point("collective", {{"kind", "all_gather"}, {"bytes", Int{4096}}, {"ranks", Int{4}}, {"stride", Int{1}}});
  point("ring_step", {{"method", "te_p2p"}, {"mask", "causal"}, {"cp", Int{4}}, {"length", Int{1024}}});
  file.points.back().windows = {{1, "compute", 0, 0, 0.05}, {1, "wait", 0, 0.05, 0.1}};
  return {measurement_json(file)};
}

std::vector<std::string> calibration_seeds() {
  Calibration made;
  made.name = "node";
  made.sources = {{"a.json", std::string(64, 'a'), "nccl-tests", 4, 0}};
  made.machine.hosts = {"n0"};
  made.groups = {"8 ranks on 1 node"};
  made.gaps = {{"attention backward", "no point"}};
  made.rates_toml = "version = \"fit\"\n[[launch]]\ngeneration = \"hopper\"\neager_us = 5.0\n";
  made.id = calibration_id(made);
  return {calibration_toml(made)};
}

}  // namespace cpfit::fuzz
