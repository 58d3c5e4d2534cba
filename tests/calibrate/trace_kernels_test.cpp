// Kineto traces kernel by kernel: whose messages are exposed.
#include "calibrate/read/trace_kernels.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>

#include "calibrate/read/trace_overlap.h"
#include "tests/shared_folder.h"

namespace cpfit {
namespace {

constexpr std::int64_t kUs = 1'000'000;  // picoseconds

TEST(KernelTrace, GroupsSayForWhomAMessageIs) {
  EXPECT_EQ(axis_of_group("CONTEXT_PARALLEL_GROUP"), MessageAxis::kCp);
  EXPECT_EQ(axis_of_group("TENSOR_MODEL_PARALLEL_GROUP"), MessageAxis::kTp);
  EXPECT_EQ(axis_of_group("PIPELINE_MODEL_PARALLEL_GROUP"), MessageAxis::kPp);
  EXPECT_EQ(axis_of_group("DATA_PARALLEL_GROUP_WITH_CP"), MessageAxis::kDp);
  EXPECT_EQ(axis_of_group("TENSOR_AND_CONTEXT_PARALLEL_GROUP"), MessageAxis::kUnknown);
  EXPECT_EQ(axis_of_group("mesh_cp"), MessageAxis::kCp);
  EXPECT_EQ(axis_of_group("mesh_dp_shard_cp"), MessageAxis::kDp);
  EXPECT_EQ(axis_of_group("default_pg"), MessageAxis::kUnknown);
}

TracedKernel kernel(DeviceWork work, MessageAxis axis, std::int64_t from, std::int64_t to) {
  TracedKernel made;
  made.work = work;
  made.axis = axis;
  made.start = from;
  made.end = to;
  return made;
}

/// compute 10..20; cp 5..25; dp 15..40, begun later: 5 + 5 of cp, then 15 of dp.
TEST(KernelTrace, AMomentCountsToTheMessageThatBeganFirst) {
  const std::vector<TracedKernel> kernels = {kernel(DeviceWork::kCommunication, MessageAxis::kDp, 15, 40),
                                             kernel(DeviceWork::kCompute, MessageAxis::kUnknown, 10, 20),
                                             kernel(DeviceWork::kCommunication, MessageAxis::kCp, 5, 25)};
  const AxisExposure all = axis_exposure(kernels, 0, 100);
  EXPECT_EQ(all.exposed[static_cast<std::size_t>(MessageAxis::kCp)], 10);
  EXPECT_EQ(all.exposed[static_cast<std::size_t>(MessageAxis::kDp)], 15);
  EXPECT_EQ(all.total(), 25);
  EXPECT_EQ(all.communication, 35);
  EXPECT_EQ(all.compute, 10);
  const AxisExposure part = axis_exposure(kernels, 20, 30);
  EXPECT_EQ(part.exposed[static_cast<std::size_t>(MessageAxis::kCp)], 5);
  EXPECT_EQ(part.exposed[static_cast<std::size_t>(MessageAxis::kDp)], 5);
}

std::string written(const std::string& text) {
  const std::string path = testing::TempDir() + "cpfit_kernels.json";
  std::ofstream(path, std::ios::binary) << text;
  return path;
}

TEST(KernelTrace, SizesAndMessagesAreRead) {
  const std::string path =
      written(R"({"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "NVIDIA H100 80GB HBM3"}, {"id": 1, "name": "x"}],
    "distributedInfo": {"backend": "nccl", "rank": 3, "world_size": 8}, "traceEvents": [
    {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 90, "dur": 3,
     "args": {"External id": 7, "Input Dims": [[4096, 8192], [8192, 1024]], "Input type": ["c10::BFloat16", "c10::BFloat16"], "Concrete Inputs": ["", ""]}},
    {"ph": "X", "cat": "kernel", "name": "sm90_gemm", "pid": 0, "tid": 7, "ts": 100, "dur": 20.5, "args": {"External id": 7, "device": 0, "stream": 7}},
    {"ph": "X", "cat": "kernel", "name": "ncclDevKernel_AllGather", "pid": 0, "tid": 9, "ts": 110, "dur": 30,
     "args": {"device": 0, "stream": 9, "Collective name": "_allgather_base", "In msg nelems": 1024, "Out msg nelems": 4096, "Group size": 4,
              "dtype": "BFloat16", "Process Group Name": "3", "Process Group Description": "mesh_cp", "Process Group Ranks": "[0, 1, 2, 3]"}},
    {"ph": "X", "cat": "gpu_user_annotation", "name": "ProfilerStep#5", "pid": 0, "tid": 7, "ts": 100, "dur": 40}]})");
  const Outcome<KernelTrace> trace = read_kernel_trace(path);
  std::remove(path.c_str());
  ASSERT_TRUE(trace.ok()) << to_text(trace.problems().front());
  EXPECT_EQ(trace->gpu, "NVIDIA H100 80GB HBM3");
  EXPECT_EQ(trace->host_gpus, 2);
  EXPECT_EQ(trace->rank, 3);
  ASSERT_EQ(trace->devices.size(), 1u);
  ASSERT_EQ(trace->devices[0].second.size(), 2u);
  const TracedKernel& product = trace->devices[0].second[0];
  EXPECT_EQ(product.end - product.start, 20.5 * kUs);
  EXPECT_EQ(trace->operators.at(product.external).dims, "[[4096,8192],[8192,1024]]");
  EXPECT_EQ(trace->operators.at(7).types, R"(["c10::BFloat16","c10::BFloat16"])");
  const TracedKernel& gather = trace->devices[0].second[1];
  EXPECT_EQ(gather.axis, MessageAxis::kCp);
  ASSERT_EQ(trace->messages.size(), 1u);
  EXPECT_EQ(trace->messages[0].out_elements, 4096);
  EXPECT_EQ(trace->messages[0].ranks, 4);
  ASSERT_EQ(trace->steps.size(), 1u);
  const AxisExposure step = axis_exposure(trace->devices[0].second, trace->steps[0].start, trace->steps[0].end);
  EXPECT_EQ(step.total(), 19.5 * kUs);  // 120.5 to 140
}

TEST(KernelTrace, HostileTracesAreProblems) {
  const auto code = [](const std::string& text) {
    const std::string path = written(text);
    const Outcome<KernelTrace> trace = read_kernel_trace(path);
    std::remove(path.c_str());
    return trace.ok() ? std::string("ok") : trace.problems().front().code;
  };
  EXPECT_EQ(read_kernel_trace("/nowhere").problems()[0].code, "trace.unreadable");
  EXPECT_EQ(code("{\"traceEvents\": ["), "trace.syntax");
  EXPECT_EQ(code("{}"), "trace.no_events");
  EXPECT_EQ(code("SQLite format 3"), "trace.format");
  EXPECT_EQ(code("{\"traceEvents\": [" + std::string(200000, '[') + "]}"), "trace.syntax");
  EXPECT_EQ(
      code(
          R"({"traceEvents": [{"ph": "X", "cat": "kernel", "name": "k", "ts": 9223372036854775807, "dur": 9223372036854775807}]})"),
      "trace.no_events");
  EXPECT_EQ(
      code(
          R"({"traceEvents": [{"ph": "X", "cat": "kernel", "name": "k", "ts": 1, "dur": 1, "args": {"External id": 1e99, "stream": -1,
             "In msg nelems": "many", "Collective name": "x", "Input Dims": [[[[]]]]}}]})"),
      "ok");
}

/// The real traces: the axes together are what trace_overlap finds, which a test holds to independent figures.
TEST(KernelTrace, RealTracesAddUpToTheKnownExposure) {
  for (const char* name : {"hta_nccl_allreduce_meta.json.gz", "hta_sendrecv_a100_rank0.json.gz"}) {
    const std::string below = std::string("reference/hardware/traces/") + name;
    CPFIT_REQUIRE_SHARED(below);
    const Outcome<KernelTrace> trace = read_kernel_trace(test::shared_path(below));
    const Outcome<RecordedTrace> known = read_trace(test::shared_path(below));
    ASSERT_TRUE(trace.ok() && known.ok()) << name;
    ASSERT_EQ(trace->devices.size(), known->devices.size());
    for (std::size_t i = 0; i < trace->devices.size(); ++i) {
      const TraceOverlap overlap = overlap_of(known->devices[i]);
      const AxisExposure exposure = axis_exposure(trace->devices[i].second, INT64_MIN, INT64_MAX);
      EXPECT_EQ(exposure.total(), overlap.exposed) << name;
      EXPECT_EQ(exposure.communication, overlap.communication) << name;
      EXPECT_EQ(exposure.compute, overlap.compute) << name;
    }
    if (std::string_view(name).starts_with("hta_nccl")) {
      EXPECT_EQ(trace->gpu.substr(0, 11), "NVIDIA A100");
      EXPECT_FALSE(trace->messages.empty());
    }
  }
}

}  // namespace
}  // namespace cpfit
