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
            "torchrun --nnodes 2 --nproc-per-node 8 --node-rank ${NODE_RANK} --master-addr ${MASTER_ADDR} --master-port "
            "${MASTER_PORT:-6000} "
            "pretrain_gpt.py \\\n"
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
  EXPECT_EQ(read_launch(LaunchFormat::kMegatron, to_text(*one))->device_orders, what.device_orders);
  what.device_orders.emplace_back("0,1,2,3,4,5,6,7");
  const Outcome<Launch> alone = write_launch(LaunchFormat::kMegatron, what);  // the second order is of a node that is not there
  EXPECT_NE(to_text(*alone).find("export CUDA_VISIBLE_DEVICES=0,3,2,1,5,6,7,4\n"), std::string::npos);
  what.recipe.tp = 2;  // 16 processes: two nodes, one order each
  const Outcome<Launch> two = write_launch(LaunchFormat::kMegatron, what);
  ASSERT_TRUE(two.ok());
  EXPECT_TRUE(two->unexpressed.empty());
  EXPECT_NE(to_text(*two).find("case $((NODE_RANK % 2)) in\n"
                               "  0) export CUDA_VISIBLE_DEVICES=0,3,2,1,5,6,7,4 ;;\n"
                               "  1) export CUDA_VISIBLE_DEVICES=0,1,2,3,4,5,6,7 ;;\n"
                               "esac\n"),
            std::string::npos)
      << to_text(*two);
  const Outcome<LaunchReading> back = read_launch(LaunchFormat::kMegatron, to_text(*two));
  ASSERT_TRUE(back.ok()) << to_text(back.problems().front());
  EXPECT_EQ(back->device_orders, what.device_orders);
  EXPECT_EQ(to_complete_text(back->recipe), to_complete_text(what.recipe));
  EXPECT_EQ(std::count(back->passed_over.begin(), back->passed_over.end(), "CUDA_VISIBLE_DEVICES"), 0);
}

/// However the nodes of a job meet, its size is nnodes x nproc-per-node = 16, and nothing of it is called unread.
TEST(LaunchMegatron, ReadsEveryMeetingOfTheNodes) {
  const std::string model = " p.py --bf16 --tensor-model-parallel-size 8";
  for (const char* meeting :
       {"--node-rank 1 --master-addr host --master-port 6000", "--node_rank=$SLURM_NODEID --master_addr=$HEAD --master_port=6000",
        "--node-rank ${NODE_RANK} --master-addr ${MASTER_ADDR} --master-port ${MASTER_PORT:-6000}",
        "--rdzv-backend c10d --rdzv-endpoint $HEAD:29500 --rdzv-id $JOB --rdzv-conf timeout=900",
        "--rdzv_backend=c10d --rdzv_endpoint=host:29500 --rdzv_id=7 --max-restarts=0 --monitor-interval 5",
        "--standalone --log-dir logs --redirects 3 --tee 3 --local-ranks-filter 0 --role trainer"}) {
    SCOPED_TRACE(meeting);
    const std::string text = std::string("torchrun --nnodes 2 --nproc-per-node 8 ") + meeting + model;
    const Outcome<LaunchReading> reading = read_launch(LaunchFormat::kMegatron, text);
    ASSERT_TRUE(reading.ok()) << to_text(reading.problems().front());
    EXPECT_EQ(reading->world, 16);
    EXPECT_EQ(reading->recipe.dp, 2);
    EXPECT_TRUE(reading->passed_over.empty()) << reading->passed_over.front();
  }
  EXPECT_EQ(read_launch(LaunchFormat::kMegatron, "torchrun --nnodes 2:2 --nproc-per-node 8" + model)->world, 16);
  EXPECT_EQ(read_launch(LaunchFormat::kMegatron, "torchrun --nproc-per-node gpu" + model, 8)->world, 8);
  EXPECT_EQ(code_of("torchrun --nnodes 1:4 --nproc-per-node 8" + model, std::nullopt), "launch.world_size");  // how many?
  EXPECT_EQ(code_of("torchrun --nnodes 2:x --nproc-per-node 8" + model, std::nullopt), "launch.world_size");
}

/// The model's own arguments are read, so that another model than was planned does not pass unseen.
TEST(LaunchMegatron, ReadsTheModel) {
  const std::string shape =
      "--num-layers 80 --hidden-size 8192 --ffn-hidden-size 28672 --num-attention-heads 64 --vocab-size 128256";
  const Outcome<LaunchReading> grouped =
      read_launch(LaunchFormat::kMegatron, "--bf16 --group-query-attention --num-query-groups 8 --kv-channels 128 " + shape, 8);
  ASSERT_TRUE(grouped.ok());
  EXPECT_EQ(grouped->model.layers, 80);
  EXPECT_EQ(grouped->model.hidden, 8192);
  EXPECT_EQ(grouped->model.ffn_hidden, 28672);
  EXPECT_EQ(grouped->model.heads, 64);
  EXPECT_EQ(grouped->model.kv_heads, 8);
  EXPECT_EQ(grouped->model.head_dim, 128);
  EXPECT_EQ(grouped->model.vocab, 128256);
  EXPECT_TRUE(grouped->passed_over.empty()) << grouped->passed_over.front();
  // Groups without the switch: Megatron gives every head keys of its own.
  EXPECT_EQ(read_launch(LaunchFormat::kMegatron, "--bf16 --num-query-groups 8 " + shape, 8)->model.kv_heads, 64);
  EXPECT_EQ(read_launch(LaunchFormat::kBridge, "model.num_attention_heads=64 model.num_query_groups=8", 8)->model.kv_heads, 8);
  EXPECT_EQ(read_launch(LaunchFormat::kMegatron, "--bf16", 8)->model.layers, std::nullopt);
  const Outcome<LaunchReading> offloaded = read_launch(LaunchFormat::kMegatron, "--bf16 --optimizer-cpu-offload", 8);
  ASSERT_EQ(std::count_if(offloaded->notes.begin(), offloaded->notes.end(),
                          [](const Problem& note) { return note.code == "launch.offload"; }),
            1);
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
