// From files of a job to figures, to points of measurement, and to what contradicts a prediction.
#include "calibrate/read/job_figures.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <sstream>

#include "calibrate/read/imported.h"
#include "calibrate/read/job_check.h"
#include "calibrate/read/trace_points.h"

namespace cpfit {
namespace {

using ::testing::HasSubstr;

JobFiles logs(const std::string& name) {
  JobFiles files;
  files.logs.push_back(*read_job_log(std::string(CPFIT_SOURCE_DIR) + "/tests/fixtures/logs/" + name));
  return files;
}

Scenario scenario(const std::string& training) {
  Outcome<Scenario> read = read_scenario(
      "name = \"s\"\nmodel = {preset = \"llama3-8b\"}\ncluster = {preset = \"dgx-h100\", nodes = 1}\n[training]\n" + training,
      "s.toml");
  EXPECT_TRUE(read.ok()) << to_text(read.problems().front());
  return std::move(read).value();
}

const MeasuredFigure* figure(const MeasuredJob& job, RunFigure which, std::int32_t stage = -1) {
  for (const ComparedFigure& row : job.figures) {
    if (row.measured.figure == which && row.measured.stage == stage) return &row.measured;
  }
  return nullptr;
}

TEST(JobFigures, MegatronsLogAlone) {
  const MeasuredJob job = measured_job(logs("megatron.log"), std::nullopt);
  EXPECT_EQ(job.framework, "Megatron-LM");
  EXPECT_EQ(job.gpus, 8);
  EXPECT_EQ(job.attempts, 2);
  EXPECT_EQ(job.skipped_updates, 1);
  EXPECT_DOUBLE_EQ(figure(job, RunFigure::kStepSeconds)->median, 2.0);
  // 16 sequences of 8192 tokens in 2 s on 8 GPUs.
  EXPECT_DOUBLE_EQ(figure(job, RunFigure::kTokensPerSecondPerGpu)->median, 16 * 8192 / 2.0 / 8);
  EXPECT_DOUBLE_EQ(figure(job, RunFigure::kPeakBytes)->median, 45003.5 * 1048576);  // rank 3's
  EXPECT_EQ(figure(job, RunFigure::kStepSeconds)->left_out, 3);
}

TEST(JobFigures, MemoryBelongsToThePipelineStageOfItsRank) {
  const JobFiles files = logs("megatron.log");
  JobShape shape{*parse_recipe("tp=1,cp=2,pp=2,dp=2", Recipe{}), {}};
  shape.training.sequence = Tokens(8192);
  shape.training.global_batch = 16;
  // tp, cp, dp, pp: ranks 0 to 3 are stage 0, the log has no others.
  const MeasuredJob job = measured_job(files, shape);
  ASSERT_NE(figure(job, RunFigure::kPeakBytes, 0), nullptr);
  EXPECT_EQ(figure(job, RunFigure::kPeakBytes, 1), nullptr);
  shape.recipe = *parse_recipe("tp=1,cp=1,pp=4,dp=2", Recipe{});
  const MeasuredJob four = measured_job(files, shape);
  EXPECT_DOUBLE_EQ(figure(four, RunFigure::kPeakBytes, 0)->median, 45001.5 * 1048576);
  EXPECT_DOUBLE_EQ(figure(four, RunFigure::kPeakBytes, 1)->median, 45003.5 * 1048576);
}

TEST(JobFigures, RatesBecomeTimesWhereTokensAreKnown) {
  const MeasuredJob titan = measured_job(logs("torchtitan.log"), std::nullopt);
  // Of iterations 30 to 100 (step mod 3 is 0, 1, 2, 0, 1, 2, 0, 1) rank 4 logged 5855, 5856, 5857, 5855, 5856, 5857, 5855, 5856.
  EXPECT_DOUBLE_EQ(figure(titan, RunFigure::kTokensPerSecondPerGpu)->median, 5856);
  EXPECT_NEAR(figure(titan, RunFigure::kStepSeconds)->median, 4 * 32768 / (5856.0 * 8), 1e-12);
  EXPECT_NEAR(figure(titan, RunFigure::kReservedBytes)->median, 62.25 * 1073741824, 1);
  const MeasuredJob deepspeed = measured_job(logs("deepspeed.log"), std::nullopt);
  EXPECT_NEAR(figure(deepspeed, RunFigure::kStepSeconds)->median, 16 / 8.01, 0.01);
  EXPECT_THAT(figure(deepspeed, RunFigure::kStepSeconds)->basis, HasSubstr("without data loading"));
  EXPECT_EQ(figure(deepspeed, RunFigure::kTokensPerSecondPerGpu), nullptr);  // its log says no sequence length
}

TEST(JobFigures, ASnapshotsRankStandsInItsName) {
  const std::string path = testing::TempDir() + "mem_rank_6_step_3.pickle";
  {
    std::ifstream from(std::string(CPFIT_SOURCE_DIR) + "/tests/fixtures/snapshots/protocol4.pickle", std::ios::binary);
    std::ofstream(path, std::ios::binary) << from.rdbuf();
  }
  JobFiles files;
  files.snapshots.push_back(*read_memory_snapshot(path));
  std::remove(path.c_str());
  const MeasuredJob job = measured_job(files, JobShape{*parse_recipe("tp=1,cp=1,pp=4,dp=2", Recipe{}), {}});
  ASSERT_NE(figure(job, RunFigure::kPeakBytes, 3), nullptr);  // ranks 6 and 7 are the last stage
  EXPECT_DOUBLE_EQ(figure(job, RunFigure::kPeakBytes, 3)->median, 133.0 * 1048576);
  EXPECT_DOUBLE_EQ(figure(job, RunFigure::kReservedBytes, 3)->median, 192.0 * 1048576);
}

std::string codes(const Problems& problems) {
  std::string all;
  for (const Problem& problem : problems) all += (all.empty() ? "" : " ") + problem.code;
  return all;
}

constexpr const char* kJobsTraining = "sequence_length = 8192\nglobal_batch = 16\n";

TEST(JobCheck, TheRecipeOfTheBlockIsTaken) {
  const JobFiles files = logs("megatron.log");
  const Scenario same = scenario(kJobsTraining);
  const Outcome<std::optional<Recipe>> recipe = recipe_in(files, same.base);
  ASSERT_TRUE(recipe.ok() && recipe->has_value());
  EXPECT_EQ((*recipe)->tp, 2);
  EXPECT_EQ((*recipe)->cp, 2);
  EXPECT_EQ((*recipe)->dp, 2);
  EXPECT_EQ(codes(contradictions(files, same, **recipe)), "");
  // What makes no difference is no difference: another framework of the same arguments, a stage layout without stages.
  Recipe alike = **recipe;
  alike.framework = "megatron-2024";
  alike.stage_layout.kind = LayoutKind::kCostBalanced;
  EXPECT_EQ(codes(contradictions(files, same, alike)), "");
  EXPECT_FALSE(recipe_in(logs("torchtitan.log"), same.base)->has_value());
}

TEST(JobCheck, EveryContradictionIsNamed) {
  const JobFiles files = logs("megatron.log");
  const Recipe right = **recipe_in(files, Recipe{});
  EXPECT_EQ(codes(contradictions(files, scenario("sequence_length = 4096\nglobal_batch = 16\n"), right)),
            "ingest.other_sequence");
  EXPECT_EQ(codes(contradictions(files, scenario("sequence_length = 8192\nglobal_batch = 32\n"), right)), "ingest.other_batch");
  Recipe other = right;
  other.recompute.kind = RecomputeKind::kFull;
  other.cp_comm = CpComm::kAllGather;
  const Problems problems = contradictions(files, scenario(kJobsTraining), other);
  ASSERT_EQ(codes(problems), "ingest.other_recipe");
  EXPECT_THAT(problems[0].message, HasSubstr("recompute=none in the job, full given"));
  EXPECT_THAT(problems[0].message, HasSubstr("cp_comm=p2p in the job, all_gather given"));
  other = right;
  other.dp = 4;
  EXPECT_EQ(codes(contradictions(files, scenario(kJobsTraining), other)), "ingest.other_world ingest.other_recipe");
  Scenario model = scenario(kJobsTraining);
  model.model.layers = 31;
  model.model.kv_heads = 4;
  EXPECT_EQ(codes(contradictions(files, model, right)), "ingest.other_model ingest.other_model");
}

TEST(JobCheck, TorchtitansMeshAndGpuAreHeldAgainstTheRecipe) {
  const JobFiles files = logs("torchtitan.log");
  Scenario titan = scenario("sequence_length = 32768\nglobal_batch = 4\n");
  const Recipe right = *parse_recipe("tp=1,cp=2,pp=1,dp=4,framework=torchtitan,state_sharding=zero3", Recipe{});
  EXPECT_EQ(codes(contradictions(files, titan, right)), "");
  Recipe rules = right;
  rules.framework = "megatron-core";
  EXPECT_EQ(codes(contradictions(files, titan, rules)), "ingest.other_framework");
  EXPECT_EQ(codes(contradictions(logs("deepspeed.log"), titan, rules)).substr(0, 22), "ingest.other_framework");
  Recipe other = right;
  other.cp = 4;
  other.dp = 2;
  EXPECT_EQ(codes(contradictions(files, titan, other)), "ingest.other_recipe");
  titan.cluster.gpu.name = "B200-SXM";
  EXPECT_EQ(codes(contradictions(files, titan, right)), "ingest.other_gpu");
}

/// Two ranks, three steps: products with sizes, one beside a message; the gather of each step once per rank.
KernelTrace traced_rank(std::int64_t rank, double late_us) {
  std::ostringstream text;
  text
      << R"({"schemaVersion": 1, "deviceProperties": [{"name": "NVIDIA H100 80GB HBM3"}, {"name": "x"}], "distributedInfo": {"rank": )"
      << rank << R"(}, "traceEvents": [)";
  int id = 1;
  for (int step = 0; step < 3; ++step) {
    const double t = 1000.0 * step;
    const auto product = [&](double at, double us) {
      text << R"({"ph":"X","cat":"cpu_op","name":"aten::mm","pid":1,"tid":1,"ts":)" << t + at - 5
           << R"(,"dur":1,"args":{"External id":)" << id
           << R"(,"Input Dims":[[4096,8192],[8192,1024]],"Input type":["c10::BFloat16","c10::BFloat16"]}},)"
           << R"({"ph":"X","cat":"kernel","name":"gemm","pid":0,"tid":7,"ts":)" << t + at << R"(,"dur":)" << us
           << R"(,"args":{"External id":)" << id << R"(,"device":0,"stream":7}},)";
      ++id;
    };
    product(10, 100 + step);
    product(210, 150);  // beside the gather: 200 to 300
    text
        << R"({"ph":"X","cat":"kernel","name":"ncclDevKernel_AllGather","pid":0,"tid":9,"ts":)" << t + 200 - late_us
        << R"(,"dur":)" << 100 + late_us
        << R"(,"args":{"device":0,"stream":9,"Collective name":"_allgather_base","In msg nelems":1048576,"Out msg nelems":2097152,"Group size":2,)"
        << R"("dtype":"BFloat16","Process Group Name":"4","Process Group Description":"CONTEXT_PARALLEL_GROUP","Process Group Ranks":"[0, 1]"}},)"
        << R"({"ph":"X","cat":"gpu_user_annotation","name":"ProfilerStep#)" << step << R"(","pid":0,"tid":7,"ts":)" << t
        << R"(,"dur":400},)";
  }
  text << R"({"ph":"X","cat":"kernel","name":"elementwise","pid":0,"tid":7,"ts":5000,"dur":1,"args":{"device":0,"stream":7}}]})";
  const std::string path = testing::TempDir() + "cpfit_rank.json";
  std::ofstream(path) << text.str();
  Outcome<KernelTrace> trace = read_kernel_trace(path);
  std::remove(path.c_str());
  EXPECT_TRUE(trace.ok()) << to_text(trace.problems().front());
  return std::move(trace).value();
}

TEST(JobFigures, ExposedCommunicationPerProfiledStep) {
  JobFiles files;
  files.traces.push_back(traced_rank(0, 0));
  const MeasuredJob job = measured_job(files, JobShape{*parse_recipe("tp=1,cp=2,pp=1,dp=4", Recipe{}), {}});
  // Gather 200 to 300 us, beside the product from 210 on: 10 us a step.
  EXPECT_NEAR(figure(job, RunFigure::kExposedSeconds)->median, 10e-6, 1e-15);
  EXPECT_NEAR(figure(job, RunFigure::kExposedCpSeconds)->median, 10e-6, 1e-15);
  EXPECT_EQ(figure(job, RunFigure::kExposedCpSeconds)->samples, 2);        // the first step is the profiler's warm-up
  EXPECT_DOUBLE_EQ(figure(job, RunFigure::kExposedDpSeconds)->median, 0);  // dp has four ranks, and nothing of it is exposed
  EXPECT_EQ(figure(job, RunFigure::kExposedTpSeconds), nullptr);
  EXPECT_NEAR(figure(job, RunFigure::kStepSeconds)->median, 400e-6, 1e-15);
}

TEST(TracePoints, KernelsThatRanAloneAndCollectivesOfTheLastRank) {
  // Rank 0 enters each gather 60 us early and waits: 160 us there, 100 us on rank 1.
  const Outcome<TracePoints> points = points_of({traced_rank(0, 60), traced_rank(1, 0)}, "test");
  ASSERT_TRUE(points.ok()) << to_text(points.problems().front());
  ASSERT_EQ(points->file.points.size(), 2u);
  const MeasuredPoint& product = points->file.points[0];
  EXPECT_EQ(product.probe, "gemm");
  EXPECT_EQ(axes_text(product.axes), "m=4096 n=1024 k=8192 dtype=bf16");
  EXPECT_NEAR(product.result("seconds")->median, 101e-6, 1e-12);  // 100, 101, 102 us of both ranks
  EXPECT_EQ(product.result("seconds")->samples, 6);
  const MeasuredPoint& gather = points->file.points[1];
  EXPECT_EQ(axes_text(gather.axes), "kind=all_gather bytes=4194304 ranks=2 stride=consecutive");
  EXPECT_NEAR(gather.result("seconds")->median, 100e-6, 1e-12);
  EXPECT_THAT(points->left_out, ::testing::ElementsAre(HasSubstr("6 x aten::mm: beside another kernel")));
  // What is written is what the fit reads.
  const Outcome<ImportedFile> imported = import_text(measurement_json(points->file), "points.json");
  ASSERT_TRUE(imported.ok()) << to_text(imported.problems().front());
  ASSERT_EQ(imported->table.rows.size(), 2u);
  EXPECT_EQ(imported->table.rows[0].gpu, "H100-SXM5-80GB");
  EXPECT_EQ(std::get<GemmMeasurement>(imported->table.rows[0].what).shape.k, 8192);
}

TEST(TracePoints, OneRankCannotTellWaitingFromMoving) {
  const Outcome<TracePoints> points = points_of({traced_rank(0, 60)}, "test");
  ASSERT_TRUE(points.ok());
  EXPECT_EQ(points->file.points.size(), 1u);  // three gathers are too few
  EXPECT_THAT(points->left_out, ::testing::Contains(HasSubstr("too few calls")));
  EXPECT_EQ(points_of({}, "test").problems()[0].code, "ingest.no_points");
}

TEST(TracePoints, AttentionWithItsMask) {
  KernelTrace trace;
  trace.format = "Kineto";
  trace.gpu = "NVIDIA H100 80GB HBM3";
  trace.operators[1] = {"aten::_scaled_dot_product_flash_attention",
                        "[[2,32,4096,128],[2,8,4096,128],[2,8,4096,128],[],[],[],[]]",
                        R"(["c10::BFloat16","c10::BFloat16","c10::BFloat16","Scalar","Scalar","Scalar",""])",
                        R"(["","","","0.0","True","False",""])"};
  trace.operators[2] = {"aten::_scaled_dot_product_cudnn_attention_backward",
                        "[[1,8,64,128],[1,8,64,128],[1,8,64,128],[1,8,64,128]]",
                        R"(["c10::Half","c10::Half","c10::Half","c10::Half"])", R"(["","","",""])"};  // cut short: no mask
  TracedKernel kernel;
  kernel.start = 0;
  kernel.end = 5'000'000;
  kernel.external = 1;
  TracedKernel second = kernel;
  second.start = 6'000'000;
  second.end = 8'000'000;
  TracedKernel third = second;
  third.start = 9'000'000;
  third.end = 9'500'000;
  third.external = 2;
  trace.devices.push_back({"0", {kernel, second, third}});
  const Outcome<TracePoints> points = points_of({trace}, "test");
  ASSERT_TRUE(points.ok());
  ASSERT_EQ(points->file.points.size(), 1u);
  EXPECT_EQ(axes_text(points->file.points[0].axes),
            "q=4096 kv=4096 heads=64 kv_heads=16 head_dim=128 head_dim_v=128 mask=causal pass=forward dtype=bf16 kernel=flash2");
  EXPECT_NEAR(points->file.points[0].result("seconds")->median, 7e-6, 1e-15);  // both kernels of the call
}

}  // namespace
}  // namespace cpfit
