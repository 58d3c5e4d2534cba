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

std::string code_of(const std::string& text, std::optional<std::int64_t> gpus = 8) {
  const Outcome<LaunchReading> reading = read_launch(LaunchFormat::kMegatron, text, gpus);
  return reading.ok() ? "" : reading.problems().front().code;
}

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

TEST(LaunchMegatron, GivesTheOrderOfTheDevices) {
  Recipe recipe;
  recipe.cp = 8;
  LaunchCase what = case_of(recipe);
  what.device_orders = {"0,3,2,1,5,6,7,4"};
  const Outcome<Launch> one = write_launch(LaunchFormat::kMegatron, what);
  ASSERT_TRUE(one.ok());
  EXPECT_NE(to_text(*one).find("export CUDA_VISIBLE_DEVICES=0,3,2,1,5,6,7,4\n"), std::string::npos);
  what.device_orders.emplace_back("0,1,2,3,4,5,6,7");  // one environment cannot hold both
  const Outcome<Launch> two = write_launch(LaunchFormat::kMegatron, what);
  ASSERT_TRUE(two.ok());
  EXPECT_EQ(to_text(*two).find("CUDA_VISIBLE_DEVICES"), std::string::npos);
  ASSERT_EQ(two->unexpressed.size(), 1u);
  EXPECT_TRUE(two->unexpressed[0].elsewhere);
  EXPECT_EQ(two->unexpressed[0].value,
            "node 0: CUDA_VISIBLE_DEVICES=0,3,2,1,5,6,7,4; node 1: CUDA_VISIBLE_DEVICES=0,1,2,3,4,5,6,7");
}

/// dp 8 x cp 2 = 16 data ranks in instances of 4: four of them. Bridge has the same argument in its group ddp.
TEST(LaunchMegatron, WritesAndReadsInstancesOfTheOptimizer) {
  const Recipe recipe = parse_recipe("cp=2,pp=1,dp=8,state_shards=4", Recipe{}).value();
  const Outcome<Launch> launch = write_launch(LaunchFormat::kMegatron, case_of(recipe));
  ASSERT_TRUE(launch.ok());
  const std::string text = to_text(*launch);
  EXPECT_NE(text.find("--num-distributed-optimizer-instances 4"), std::string::npos) << text;
  const Outcome<LaunchReading> back = read_launch(LaunchFormat::kMegatron, text, 16);
  ASSERT_TRUE(back.ok());
  EXPECT_EQ(to_complete_text(back->recipe), to_complete_text(recipe));
  Recipe bridge = recipe;
  bridge.framework = "megatron-bridge";
  EXPECT_NE(
      to_text(write_launch(LaunchFormat::kBridge, case_of(bridge)).value()).find("ddp.num_distributed_optimizer_instances=4"),
      std::string::npos);
  EXPECT_EQ(code_of("--bf16 --num-distributed-optimizer-instances 2"), "launch.ignored_option");  // nothing is sharded
  EXPECT_EQ(code_of("--bf16 --use-distributed-optimizer --num-distributed-optimizer-instances 3"), "launch.instances");  // of 8
  EXPECT_EQ(code_of("--bf16 --use-megatron-fsdp --data-parallel-sharding-strategy optim_grads_params "
                    "--num-distributed-optimizer-instances 2"),
            "launch.instances");
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
  EXPECT_EQ(code_of("--bf16", std::nullopt), "launch.world_unknown");
  EXPECT_EQ(code_of("--bf16 --context-parallel-size 8 --cp-comm-type a2a+p2p --hierarchical-context-parallel-sizes 2 4"), "");
}

/// The grammar of the layout text: "(..)*n" and "x*n" written out, E first, L last, commas for the eye. 16 chunks over pp 4 are
/// vpp 4: E with 2 layers, 14 times 2, L with none.
TEST(LaunchMegatron, ReadsALayoutText) {
  const std::string head = "--bf16 --pipeline-model-parallel-size 4 --pipeline-model-parallel-layout ";
  const Outcome<LaunchReading> reading = read_launch(LaunchFormat::kMegatron, head + "'Ett,|(tt|)*14L'", 8);
  ASSERT_TRUE(reading.ok()) << to_text(reading.problems().front());
  EXPECT_EQ(reading->recipe.vpp, 4);
  ASSERT_EQ(reading->recipe.stage_layout.layers.size(), 16u);
  EXPECT_EQ(reading->recipe.stage_layout.layers.front(), 2);
  EXPECT_EQ(reading->recipe.stage_layout.layers.back(), 0);
  EXPECT_EQ(code_of(head + "'Et*4|t*4|L'"), "launch.stage_layout");       // 3 chunks over 4 stages
  EXPECT_EQ(code_of(head + "'t*4|t*4|t*4|t*4'"), "launch.stage_layout");  // neither embedding nor loss
  EXPECT_EQ(code_of(head + "'Et|t|m|L'"), "launch.stage_layout");         // a layer of multi-token prediction
}

/// Recompute by blocks counts layers of a model chunk: 8 layers of a rank with 2 chunks are 4 of each.
TEST(LaunchMegatron, CountsRecomputedLayersPerChunk) {
  const Outcome<Recipe> recipe = parse_recipe("tp=1,cp=1,pp=2,dp=4,vpp=2,recompute=block-8", Recipe{});
  ASSERT_TRUE(recipe.ok());
  const Outcome<Launch> launch = write_launch(LaunchFormat::kMegatron, case_of(*recipe));
  ASSERT_TRUE(launch.ok());
  const std::string text = to_text(*launch);
  EXPECT_NE(text.find("--recompute-method block \\\n  --recompute-num-layers 4 "), std::string::npos) << text;
}

/// Two interleaved stages exchange with each other in both directions: only overlapped messages may do that.
TEST(LaunchMegatron, TwoInterleavedStagesNeedOverlappedMessages) {
  const std::string stages = "--bf16 --num-virtual-stages-per-pipeline-rank 2 --no-overlap-p2p-communication ";
  EXPECT_EQ(code_of(stages + "--pipeline-model-parallel-size 2"), "launch.interleaving");
  EXPECT_EQ(code_of(stages + "--pipeline-model-parallel-size 4"), "");
  EXPECT_EQ(code_of("--bf16 --num-virtual-stages-per-pipeline-rank 2 --pipeline-model-parallel-size 2 "
                    "--pipeline-model-parallel-layout 'Et|t|t|tL'"),
            "launch.stage_layout");  // stated twice
}

/// With fp16 Megatron reduces in fp16 unless told otherwise; bf16 gradients there are none.
TEST(LaunchMegatron, StatesTheGradientsOfFp16) {
  const Outcome<Recipe> recipe = parse_recipe("tp=1,cp=1,pp=1,dp=8,precision=fp16", Recipe{});
  ASSERT_TRUE(recipe.ok());
  LaunchCase what = case_of(*recipe);
  const Outcome<Launch> launch = write_launch(LaunchFormat::kMegatron, what);
  ASSERT_TRUE(launch.ok());
  EXPECT_NE(to_text(*launch).find("--accumulate-allreduce-grads-in-fp32"), std::string::npos);
  what.training.grad_dtype = GradDtype::kBf16;
  const Outcome<Launch> refused = write_launch(LaunchFormat::kMegatron, what);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.problems().front().where, "grad_dtype");
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
