// Recipes as Megatron-LM arguments and back. Expected lists are written by hand from the documented names.
#include <gtest/gtest.h>

#include <algorithm>

#include "model/launch/launch.h"

namespace cpfit {
namespace {

LaunchCase case_of(const Recipe& recipe) {
  LaunchCase what;
  what.recipe = recipe;
  what.training.sequence = Tokens(131072);
  what.training.global_batch = std::int64_t{64} * recipe.dp * recipe.micro_batch;
  what.layers = 32;
  what.generation = "hopper";
  return what;
}

std::string code_of(LaunchFormat format, const std::string& text, std::optional<std::int64_t> gpus = 8) {
  const Outcome<LaunchReading> reading = read_launch(format, text, gpus);
  return reading.ok() ? "" : reading.problems().front().code;
}
std::string code_of(const std::string& text) { return code_of(LaunchFormat::kMegatron, text); }

/// 2 x 4 ranks of context on 16 GPUs: tp 2 x cp 8 x pp 1 x dp 1.
TEST(LaunchMegatron, WritesTheDocumentedNames) {
  Recipe recipe;
  recipe.tp = 2;
  recipe.cp = 8;
  recipe.cp_comm = CpComm::kA2aP2p;
  recipe.a2a_degree = 4;
  recipe.recompute.kind = RecomputeKind::kFull;
  const Outcome<Launch> launch = write_launch(LaunchFormat::kMegatron, case_of(recipe));
  ASSERT_TRUE(launch.ok());
  EXPECT_TRUE(launch->unexpressed.empty());
  EXPECT_EQ(to_text(*launch),
            "export CUDA_DEVICE_MAX_CONNECTIONS=1\n"
            "torchrun --nnodes 2 --nproc-per-node 8 pretrain_gpt.py \\\n"
            "  --tensor-model-parallel-size 2 \\\n"
            "  --context-parallel-size 8 \\\n"
            "  --cp-comm-type a2a+p2p \\\n"
            "  --hierarchical-context-parallel-sizes 4 2 \\\n"
            "  --pipeline-model-parallel-size 1 \\\n"
            "  --sequence-parallel \\\n"
            "  --micro-batch-size 1 \\\n"
            "  --global-batch-size 64 \\\n"
            "  --seq-length 131072 \\\n"
            "  --recompute-granularity full \\\n"
            "  --recompute-method uniform \\\n"
            "  --recompute-num-layers 1 \\\n"
            "  --bf16 \\\n"
            "  --use-distributed-optimizer \\\n"
            "  --overlap-grad-reduce \\\n"
            "  --overlap-param-gather\n");
  for (const LaunchArgument& argument : launch->arguments) EXPECT_FALSE(argument.reason.empty()) << argument.name;
}

/// Every recipe of a grid that a format says wholly comes back as it was.
TEST(Launch, RoundTripsOverAGrid) {
  int compared = 0;
  for (const LaunchFormat format :
       {LaunchFormat::kMegatron, LaunchFormat::kBridge, LaunchFormat::kTorchtitan, LaunchFormat::kDeepspeed}) {
    int here = 0;
    for (const char* axes : {"tp=1,cp=1,pp=1,dp=8", "tp=2,cp=4,pp=1,dp=2", "tp=1,cp=8,pp=4,dp=2", "tp=4,cp=2,pp=2,dp=1"}) {
      for (const char* context : {"", ",cp_comm=all_gather", ",cp_comm=a2a", ",cp_comm=a2a+p2p,a2a_degree=2"}) {
        for (const char* rest :
             {"", ",recompute=full", ",recompute=selective", ",precision=fp8_current", ",precision=mxfp8",
              ",state_sharding=zero3", ",state_sharding=none", ",micro_batch=2", ",stage_layout=embedding_loss", ",vpp=2",
              ",overlap_grad_reduce=false", ",sequence_parallel=false", ",shard_layout=contiguous,sequence_parallel=false"}) {
          Recipe base;
          base.framework = std::string(framework_of(format));
          const Outcome<Recipe> recipe = parse_recipe(std::string(axes) + context + rest, base);
          if (!recipe.ok()) continue;
          const Outcome<Launch> launch = write_launch(format, case_of(*recipe));
          if (!launch.ok() || !launch->unexpressed.empty()) continue;
          SCOPED_TRACE(std::string(name_of(format)) + ": " + to_text(*recipe));
          const Outcome<LaunchReading> back = read_launch(format, to_text(*launch), recipe->world(), 32);
          ASSERT_TRUE(back.ok()) << to_text(back.problems().front()) << "\n" << to_text(*launch);
          Recipe wanted = *recipe;  // what has no effect comes back as the default
          if (wanted.tp == 1) wanted.sequence_parallel = true;
          if (wanted.cp == 1) {
            wanted.shard_layout = back->recipe.shard_layout;
            wanted.cp_comm = back->recipe.cp_comm;
            wanted.a2a_degree = back->recipe.a2a_degree;
          }
          EXPECT_EQ(to_text(back->recipe), to_text(wanted)) << to_text(*launch);
          ++here;
        }
      }
    }
    EXPECT_GT(here, 3) << name_of(format);
    compared += here;
  }
  EXPECT_GT(compared, 100);
}

TEST(LaunchMegatron, RefusesWhatWouldBeSilentlyWrong) {
  EXPECT_EQ(code_of("--bf16 --context-parallel-size 8 --cp-comm-type a2a+p2p"), "launch.hierarchical_sizes");
  EXPECT_EQ(code_of("--bf16 --context-parallel-size 8 --cp-comm-type a2a+p2p --hierarchical-context-parallel-sizes 2 2"),
            "launch.hierarchical_sizes");  // 2 * 2 = 4, not 8
  EXPECT_EQ(code_of("--bf16 --context-parallel-size 8 --hierarchical-context-parallel-sizes 2 4"), "launch.ignored_option");
  EXPECT_EQ(code_of("--bf16 --context-parallel-size 8 --cp-comm-type allgather"), "launch.cp_comm");
  EXPECT_EQ(code_of("--bf16 --tensor-model-parallel-size 3"), "launch.world_size");  // 8 = 3 * 2 + 2
  EXPECT_EQ(code_of("--bf16 --fp8-recipe tensorwise"), "launch.ignored_option");
  EXPECT_EQ(code_of("--bf16 --overlap-param-gather"), "launch.overlap_param_gather");
  EXPECT_EQ(code_of("CUDA_DEVICE_MAX_CONNECTIONS=1 torchrun p.py --bf16 --overlap-grad-reduce"), "launch.one_queue");
  EXPECT_EQ(code_of("--bf16 --context-parallel-size 2 --use-tp-pp-dp-mapping"), "launch.rank_order");
  EXPECT_EQ(code_of("--bf16 --context-parallel-size 4 --seq-length 1001"), "launch.sequence");  // 1001 % 8 = 1
  EXPECT_EQ(code_of(LaunchFormat::kMegatron, "--bf16", std::nullopt), "launch.world_unknown");
  EXPECT_EQ(code_of("--bf16 --context-parallel-size 8 --cp-comm-type a2a+p2p --hierarchical-context-parallel-sizes 2 4"), "");
}

TEST(LaunchMegatron, ReadsAScriptWithVariablesAndArrays) {
  const Outcome<LaunchReading> reading = read_launch(LaunchFormat::kMegatron, R"(#!/bin/bash
# --context-parallel-size 64
TP=2
CP=${CP:-4}
export CUDA_DEVICE_MAX_CONNECTIONS=1
ARGS=(
  --tensor-model-parallel-size $TP   # inside a node
  --context-parallel-size=${CP}
  --bf16 --micro-batch-size 2 --lr 1e-4
)
torchrun --nproc_per_node 8 --nnodes 2 pretrain_gpt.py "${ARGS[@]}"
)");
  ASSERT_TRUE(reading.ok()) << to_text(reading.problems().front());
  EXPECT_EQ(reading->recipe.tp, 2);
  EXPECT_EQ(reading->recipe.cp, 4);
  EXPECT_EQ(reading->recipe.dp, 2);  // 16 / (2 * 4)
  EXPECT_EQ(reading->recipe.micro_batch, 2);
  EXPECT_EQ(reading->recipe.state_sharding, StateSharding::kNone);
  EXPECT_EQ(std::count(reading->passed_over.begin(), reading->passed_over.end(), "--lr"), 1);
}

}  // namespace
}  // namespace cpfit
