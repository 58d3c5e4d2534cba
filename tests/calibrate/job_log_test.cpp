// Logs of training jobs. The fixtures are written by hand in the frameworks' line formats; what is expected is counted from them.
#include "calibrate/read/job_log.h"

#include <gtest/gtest.h>

#include <cmath>
#include <sstream>

#include "calibrate/read/job_steps.h"
#include "model/launch/argument_dump.h"
#include "model/launch/launch.h"

namespace cpfit {
namespace {

std::string fixture(const std::string& name) { return std::string(CPFIT_SOURCE_DIR) + "/tests/fixtures/logs/" + name; }

JobLog read(const std::string& name) {
  Outcome<JobLog> log = read_job_log(fixture(name));
  EXPECT_TRUE(log.ok()) << (log.ok() ? "" : to_text(log.problems().front()));
  return log.ok() ? std::move(log).value() : JobLog{};
}

Outcome<JobLog> read_text(const std::string& text) {
  std::istringstream stream(text);
  return read_job_log(stream, "job.log");
}

std::vector<std::string> reasons(const CountedSteps& counted) {
  std::vector<std::string> all;
  for (const LeftOutStep& step : counted.left_out) all.push_back(std::to_string(step.iteration) + " " + step.reason);
  return all;
}

TEST(JobLog, MegatronsStepsMemoryAndArguments) {
  const JobLog log = read("megatron.log");
  EXPECT_EQ(log.framework, JobFramework::kMegatron);
  ASSERT_EQ(log.attempts.size(), 2u);  // the block of arguments stands again before iteration 11
  EXPECT_EQ(log.attempts[0].steps.size(), 12u);
  EXPECT_EQ(log.attempts[1].steps.size(), 20u);
  EXPECT_EQ(log.attempts[1].steps.front().iteration, 11);
  EXPECT_DOUBLE_EQ(log.attempts[0].steps[0].seconds, 9.0);
  EXPECT_EQ(log.attempts[0].steps[3].global_batch, 16);
  EXPECT_DOUBLE_EQ(*log.attempts[0].steps[0].loss, 11.9);
  EXPECT_EQ(log.skipped, 1);
  EXPECT_EQ(log.nan, 1);
  // Ranks 0 and 1 wrote on one line. MB are 2^20 bytes.
  ASSERT_EQ(log.memory.size(), 4u);
  EXPECT_EQ(log.memory[1].rank, 1);
  EXPECT_DOUBLE_EQ(log.memory[1].allocated, 30001.25 * 1048576);
  EXPECT_DOUBLE_EQ(log.memory[1].peak_allocated, 45001.5 * 1048576);
  EXPECT_DOUBLE_EQ(log.memory[1].peak_reserved, 50101.0 * 1048576);
  EXPECT_EQ(log.facts.world, 8);
  EXPECT_EQ(log.facts.sequence, 8192);
  EXPECT_EQ(log.facts.cp, 2);
}

TEST(JobLog, TheRecipeStandsInMegatronsArguments) {
  const JobLog log = read("megatron.log");
  const Outcome<LaunchReading> reading =
      read_launch(LaunchFormat::kMegatron, launch_text_of(log.facts.arguments), log.facts.world);
  ASSERT_TRUE(reading.ok()) << to_text(reading.problems().front());
  Recipe expected;
  expected.tp = expected.cp = expected.dp = 2;
  EXPECT_EQ(to_complete_text(reading->recipe), to_complete_text(expected));
  EXPECT_EQ(reading->sequence, Tokens(8192));
  EXPECT_EQ(reading->global_batch, 16);
}

/// What write_launch says is read from a block that holds the same choices.
TEST(JobLog, ABlockWithInterleavingFp8AndRecompute) {
  const ArgumentDump dump = {{"tensor_model_parallel_size", "4"},
                             {"pipeline_model_parallel_size", "4"},
                             {"context_parallel_size", "2"},
                             {"cp_comm_type", "['a2a+p2p']"},
                             {"hierarchical_context_parallel_sizes", "[1, 2]"},
                             {"virtual_pipeline_model_parallel_size", "2"},
                             {"num_layers_per_virtual_pipeline_stage", "4"},
                             {"overlap_p2p_comm", "False"},
                             {"bf16", "True"},
                             {"fp8", "e4m3"},
                             {"fp8_recipe", "mxfp8"},
                             {"recompute_granularity", "full"},
                             {"recompute_method", "uniform"},
                             {"recompute_num_layers", "1"},
                             {"recompute_modules", "['core_attn']"},
                             {"sequence_parallel", "True"},
                             {"micro_batch_size", "2"},
                             {"use_distributed_optimizer", "False"},
                             {"overlap_grad_reduce", "False"},
                             {"num_layers", "32"}};
  ArgumentDump plain = dump;
  plain[3].second = "['p2p']";
  plain[4].second = "None";
  const Outcome<LaunchReading> reading = read_launch(LaunchFormat::kMegatron, launch_text_of(plain), 32);
  ASSERT_TRUE(reading.ok()) << to_text(reading.problems().front());
  EXPECT_EQ(
      to_complete_text(reading->recipe),
      to_complete_text(*parse_recipe("tp=4,cp=2,pp=4,dp=1,vpp=2,overlap_p2p=false,precision=mxfp8,recompute=full,micro_batch=2,"
                                     "state_sharding=none,overlap_grad_reduce=false",
                                     Recipe{})));
  // Sizes of 1 x 2 are no hierarchy: said as the launcher's own rule says it.
  EXPECT_NE(launch_text_of(dump).find("--hierarchical-context-parallel-sizes 1  2"), std::string::npos) << launch_text_of(dump);
}

TEST(JobLog, WhatIsLeftOutOfMegatronsLog) {
  const CountedSteps counted = count_steps(read("megatron.log"));
  EXPECT_EQ(counted.attempt, 1u);  // 17 steps count after the restart, 7 before
  EXPECT_EQ(counted.steps.size(), 17u);
  EXPECT_EQ(reasons(counted), (std::vector<std::string>{"11 warm-up", "12 warm-up", "13 warm-up"}));
  ASSERT_EQ(counted.remarks.size(), 1u);
  EXPECT_NE(counted.remarks[0].find("iterations 1 to 12"), std::string::npos);
  // 2000 + (3 i mod 7) - 3 ms for iterations 14 to 30: 0 to 6 each at least twice, so the middle is 2000 ms.
  std::vector<double> seconds;
  for (const JobStep& step : counted.steps) seconds.push_back(step.seconds);
  const MeasuredFigure step = figure_of(RunFigure::kStepSeconds, seconds, "");
  EXPECT_DOUBLE_EQ(step.median, 2.0);
  EXPECT_LE(step.low, step.median);
  EXPECT_GE(step.high, step.median);
}

TEST(JobLog, AStallAndASkippedUpdateAreListed) {
  JobLog log = read("megatron.log");
  log.attempts.pop_back();
  const CountedSteps counted = count_steps(log);
  EXPECT_EQ(reasons(counted), (std::vector<std::string>{"1 warm-up", "2 warm-up", "3 warm-up", "6 its update was skipped",
                                                        "9 took 2.50 times the median"}));
  EXPECT_EQ(counted.steps.size(), 7u);
}

TEST(JobLog, BridgePrintsItsRateBeforeTheLine) {
  const JobLog log = read("bridge.log");
  EXPECT_EQ(log.framework, JobFramework::kBridge);
  ASSERT_EQ(log.attempts.size(), 1u);
  const JobStep& last = log.attempts[0].steps.back();
  EXPECT_DOUBLE_EQ(last.seconds, 1.508);
  // 51.48 GFLOP per token, 16 sequences of 8192 tokens on 8 GPUs, printed to one decimal.
  EXPECT_NEAR(last.tflops_per_gpu, 51.48e9 * 16 * 8192 / 8 / 1e12 / 1.508, 0.051);
  ASSERT_EQ(log.memory.size(), 1u);
  EXPECT_DOUBLE_EQ(log.memory[0].peak_allocated, 52.25e9);  // GB of 10^9
  EXPECT_DOUBLE_EQ(log.memory[0].peak_reserved, 61.4e9);
}

TEST(JobLog, TorchtitanInColoursOfTwoRanks) {
  const JobLog log = read("torchtitan.log");
  EXPECT_EQ(log.framework, JobFramework::kTorchtitan);
  ASSERT_EQ(log.attempts.size(), 1u);
  ASSERT_EQ(log.attempts[0].steps.size(), 11u);  // 1, 10, 20 ... 100; the validation is none, the last line has no end
  EXPECT_EQ(log.attempts[0].steps[5].iteration, 50);
  EXPECT_DOUBLE_EQ(log.attempts[0].steps[5].tokens_per_second_per_gpu, 5857);  // rank 4, the slower, printed 5,857
  EXPECT_NEAR(log.attempts[0].steps[5].mfu, 0.4655, 5e-5);
  EXPECT_EQ(log.facts.world, 8);
  EXPECT_EQ(log.facts.cp, 2);
  EXPECT_EQ(log.facts.tp, 1);
  EXPECT_EQ(log.facts.global_batch, 4);
  EXPECT_EQ(log.facts.sequence, 32768);
  EXPECT_EQ(log.facts.gpu, "NVIDIA H100 80GB HBM3");
  EXPECT_DOUBLE_EQ(log.facts.peak_flops, 9.89e14);
  ASSERT_EQ(log.memory.size(), 2u);
  EXPECT_DOUBLE_EQ(log.memory[1].peak_reserved, 62.25 * 1073741824);
  ASSERT_EQ(log.remarks.size(), 1u);
  EXPECT_EQ(log.remarks[0].code, "log.last_line");
}

TEST(JobLog, DeepspeedsTimerAndMemory) {
  const JobLog log = read("deepspeed.log");
  EXPECT_EQ(log.framework, JobFramework::kDeepspeed);
  ASSERT_EQ(log.attempts.size(), 1u);
  ASSERT_EQ(log.attempts[0].steps.size(), 10u);
  EXPECT_DOUBLE_EQ(log.attempts[0].steps[1].samples_per_second, 8.02);
  EXPECT_EQ(log.facts.world, 8);
  EXPECT_EQ(log.facts.global_batch, 16);
  ASSERT_EQ(log.memory.size(), 1u);
  EXPECT_DOUBLE_EQ(log.memory[0].allocated, 21.5 * 1073741824);
  EXPECT_DOUBLE_EQ(log.memory[0].peak_allocated, 48.5 * 1073741824);
  EXPECT_DOUBLE_EQ(log.memory[0].peak_reserved, 60.0 * 1073741824);
}

TEST(JobLog, NanotronsThreeDigits) {
  const JobLog log = read("nanotron.log");
  EXPECT_EQ(log.framework, JobFramework::kNanotron);
  ASSERT_EQ(log.attempts.size(), 1u);
  EXPECT_DOUBLE_EQ(log.attempts[0].steps[0].seconds, 9.1);
  EXPECT_DOUBLE_EQ(log.attempts[0].steps[1].seconds, 1.24);
  EXPECT_DOUBLE_EQ(log.attempts[0].steps[1].tokens_per_second_per_gpu, 13300);
  // 1.23 and 1.24 s are what rounding leaves: neither is an outlier of the other.
  const CountedSteps counted = count_steps(log);
  EXPECT_EQ(counted.steps.size(), 5u);
}

std::string megatron_line(int iteration, double ms, const std::string& prefix = "") {
  return prefix + " iteration " + std::to_string(iteration) + "/ 100 | elapsed time per iteration (ms): " + std::to_string(ms) +
         " | global batch size: 16 | number of skipped iterations: 0 | number of nan iterations: 0 |\n";
}

TEST(JobLog, RanksAreToldApartByTheLaunchersPrefix) {
  std::string text;
  for (int i = 1; i <= 3; ++i) text += megatron_line(i, 100 + i, "0: ") + megatron_line(i, 200 + i, " 1: ");
  text += megatron_line(2, 500, "0: ");  // rank 0 went back: restarted, although only one line
  const Outcome<JobLog> log = read_text(text);
  ASSERT_TRUE(log.ok());
  ASSERT_EQ(log->attempts.size(), 2u);
  ASSERT_EQ(log->attempts[0].steps.size(), 3u);
  EXPECT_NEAR(log->attempts[0].steps[2].seconds, 0.203, 1e-9);  // the slower rank's
  EXPECT_EQ(log->attempts[1].steps.size(), 1u);
}

TEST(JobLog, WithoutAPrefixALateLineIsNoRestart) {
  std::string text =
      megatron_line(1, 100) + megatron_line(2, 100) + megatron_line(1, 120) + megatron_line(3, 100) + megatron_line(4, 100);
  Outcome<JobLog> log = read_text(text);
  ASSERT_TRUE(log.ok());
  EXPECT_EQ(log->attempts.size(), 1u);
  EXPECT_NEAR(log->attempts[0].steps[0].seconds, 0.12, 1e-9);
  log = read_text(text + megatron_line(1, 90));  // three steps back
  EXPECT_EQ(log->attempts.size(), 2u);
}

TEST(JobLog, OtherGlobalBatchesOfARampUpAreLeftOut) {
  std::string text;
  for (int i = 1; i <= 12; ++i) {
    std::string line = megatron_line(i, i <= 4 ? 50 : 100);
    if (i <= 4) line.replace(line.find("size: 16"), 8, "size: 8 ");
    text += line;
  }
  const CountedSteps counted = count_steps(*read_text(text));
  EXPECT_EQ(counted.global_batch, 16);
  EXPECT_EQ(counted.steps.size(), 8u);
  EXPECT_EQ(reasons(counted)[0], "1 global batch 8, most steps have 16");
}

TEST(JobLog, HostileTextIsAProblemOrHarmless) {
  EXPECT_EQ(read_text("hello\nworld\n").problems()[0].code, "log.unknown");
  EXPECT_EQ(read_text(std::string("elapsed\0time", 12)).problems()[0].code, "log.binary");
  EXPECT_EQ(read_job_log("/nowhere/job.log").problems()[0].code, "log.unreadable");
  EXPECT_EQ(read_job_log(CPFIT_SOURCE_DIR).problems()[0].code, "log.unreadable");
  // Enormous, endless, negative and absent figures.
  const std::string bad =
      " iteration 99999999999999999999/ 1 | elapsed time per iteration (ms): 1 |\n"
      " iteration 1/ 1 | elapsed time per iteration (ms): 1e999 |\n iteration 1/ 1 | elapsed time per iteration (ms): nan |\n"
      " iteration 1/ 1 | elapsed time per iteration (ms): -5 |\n elapsed time per iteration (ms)\n"
      "step: 3  loss: nan  memory: 1e300GiB(nan%)  tps: -1  tflops: inf  mfu: nan%\n";
  const Outcome<JobLog> none = read_text(bad);
  ASSERT_FALSE(none.ok());
  EXPECT_NE(none.problems()[0].message.find("6 lines"), std::string::npos) << none.problems()[0].message;
  const Outcome<JobLog> some = read_text(bad + megatron_line(1, 100));
  ASSERT_TRUE(some.ok());
  EXPECT_EQ(some->attempts[0].steps.size(), 1u);
  // A line of 10 MB, and a block of arguments that never ends.
  const Outcome<JobLog> wide = read_text(std::string(10'000'000, 'x') + megatron_line(1, 100) + megatron_line(2, 100));
  ASSERT_TRUE(wide.ok());
  EXPECT_EQ(wide->attempts[0].steps.size(), 1u);
  EXPECT_EQ(wide->remarks[0].code, "log.long_lines");
  const Outcome<JobLog> open = read_text("---- arguments ----\n  seq_length .... 128\nnoise\n" + megatron_line(1, 100));
  ASSERT_TRUE(open.ok());
  EXPECT_EQ(open->facts.sequence, 128);
}

/// The rule of measured_run.h, at its borders.
TEST(MeasuredJob, WhereAMeasurementStands) {
  // 90 % interval 80 to 125 around 100: 1.5 times as far in the logarithm is 71.55 and 139.75.
  EXPECT_EQ(standing_of(80, 100, 80, 125), Standing::kInside);
  EXPECT_EQ(standing_of(79, 100, 80, 125), Standing::kOutside);
  EXPECT_EQ(standing_of(71.4, 100, 80, 125), Standing::kOutlier);
  EXPECT_EQ(standing_of(139.5, 100, 80, 125), Standing::kOutside);
  EXPECT_EQ(standing_of(140, 100, 80, 125), Standing::kOutlier);
  // By difference: nothing was predicted, a step takes 10 s, 0.1 s is its hundredth.
  EXPECT_EQ(standing_of(0, 0, 0, 0, true, 10), Standing::kInside);
  EXPECT_EQ(standing_of(0.09, 0, 0, 0, true, 10), Standing::kOutside);
  EXPECT_EQ(standing_of(0.11, 0, 0, 0, true, 10), Standing::kOutlier);
}

}  // namespace
}  // namespace cpfit
