// Recipes as arguments of every format and back. Expected texts are written by hand from the names of the frameworks.
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

Recipe recipe_of(LaunchFormat format, const std::string& text) {
  Recipe base;
  base.framework = std::string(framework_of(format));
  const Outcome<Recipe> recipe = parse_recipe(text, base);
  EXPECT_TRUE(recipe.ok()) << text;
  return recipe.ok() ? *recipe : base;
}

/// The text of a recipe that the format says wholly; what it cannot say, else.
std::string written(LaunchFormat format, const std::string& text) {
  const Outcome<Launch> launch = write_launch(format, case_of(recipe_of(format, text)));
  if (!launch.ok()) return launch.problems().front().code;
  if (launch->unexpressed.empty()) return to_text(*launch);
  return (launch->unexpressed.front().elsewhere ? "elsewhere: " : "no effect: ") + launch->unexpressed.front().recipe_key;
}

std::string code_of(LaunchFormat format, const std::string& text, std::optional<std::int64_t> gpus = 8) {
  const Outcome<LaunchReading> reading = read_launch(format, text, gpus);
  return reading.ok() ? "" : reading.problems().front().code;
}

/// Every recipe of a grid that a format says wholly comes back as it was, key by key.
TEST(Launch, RoundTripsOverAGrid) {
  int compared = 0;
  for (const LaunchFormat format :
       {LaunchFormat::kMegatron, LaunchFormat::kBridge, LaunchFormat::kTorchtitan, LaunchFormat::kDeepspeed}) {
    int here = 0;
    for (const char* axes :
         {"tp=1,cp=1,pp=1,dp=8", "tp=2,cp=4,pp=1,dp=2", "tp=1,cp=8,pp=4,dp=2", "tp=4,cp=2,pp=2,dp=1", "tp=1,cp=4,pp=1,dp=2"}) {
      for (const char* context : {"", ",cp_comm=all_gather", ",cp_comm=a2a", ",cp_comm=a2a+p2p,a2a_degree=2"}) {
        for (const char* rest : {"",
                                 ",recompute=full",
                                 ",recompute=selective",
                                 ",recompute=mlp",
                                 ",precision=fp8_current",
                                 ",precision=mxfp8",
                                 ",precision=fp16",
                                 ",state_sharding=zero3",
                                 ",state_sharding=zero2",
                                 ",state_sharding=none",
                                 ",micro_batch=2",
                                 ",state_shards=4",
                                 ",state_sharding=zero3,state_shards=8",
                                 ",stage_layout=embedding_loss",
                                 ",vpp=2",
                                 ",vpp=2,overlap_p2p=false",
                                 ",vpp=4",
                                 ",schedule=gpipe",
                                 ",overlap_grad_reduce=false",
                                 ",overlap_grad_reduce=false,overlap_param_gather=false",
                                 ",sequence_parallel=false",
                                 ",overlap_tp=true",
                                 ",shard_layout=contiguous"}) {
          Recipe base;
          base.framework = std::string(framework_of(format));
          if (format == LaunchFormat::kDeepspeed) base.shard_layout = ShardLayout::kContiguous;
          const Outcome<Recipe> recipe = parse_recipe(std::string(axes) + context + rest, base);
          if (!recipe.ok()) continue;
          const Outcome<Launch> launch = write_launch(format, case_of(*recipe));
          if (!launch.ok() || !launch->unexpressed.empty()) continue;
          SCOPED_TRACE(std::string(name_of(format)) + ": " + to_text(*recipe));
          const Outcome<LaunchReading> back = read_launch(format, to_text(*launch), recipe->world(), 32);
          ASSERT_TRUE(back.ok()) << to_text(back.problems().front()) << "\n" << to_text(*launch);
          EXPECT_EQ(to_complete_text(back->recipe), to_complete_text(*recipe)) << to_text(*launch);
          ++here;
        }
      }
    }
    EXPECT_GT(here, 10) << name_of(format);
    compared += here;
  }
  EXPECT_GT(compared, 200);
}

TEST(Launch, ListsWhatHasNoEffect) {
  for (const LaunchFormat format : {LaunchFormat::kMegatron, LaunchFormat::kBridge, LaunchFormat::kTorchtitan}) {
    const std::string rest = ",state_sharding=zero3";
    EXPECT_EQ(written(format, "tp=1,cp=1,pp=1,dp=8,shard_layout=contiguous" + rest), "no effect: shard_layout");
    EXPECT_EQ(written(format, "tp=1,cp=1,pp=1,dp=8,sequence_parallel=false" + rest), "no effect: sequence_parallel");
  }
  EXPECT_EQ(written(LaunchFormat::kDeepspeed, "tp=1,cp=1,pp=1,dp=8"), "no effect: shard_layout");
}

/// tp 2 x cp 4 x pp 2 x dp 1 = 16 processes; two chunks per rank.
TEST(LaunchBridge, WritesTheNamesOfItsGroups) {
  EXPECT_EQ(written(LaunchFormat::kBridge, "tp=2,cp=4,pp=2,dp=1,vpp=2,cp_comm=all_gather"),
            "export CUDA_DEVICE_MAX_CONNECTIONS=1\n"
            "torchrun --nnodes 2 --nproc-per-node 8 --node-rank ${NODE_RANK} --master-addr ${MASTER_ADDR} --master-port "
            "${MASTER_PORT:-6000} "
            "scripts/training/run_recipe.py \\\n"
            "  model.tensor_model_parallel_size=2 \\\n"
            "  model.context_parallel_size=4 \\\n"
            "  model.cp_comm_type=all_gather \\\n"
            "  model.pipeline_model_parallel_size=2 \\\n"
            "  model.virtual_pipeline_model_parallel_size=2 \\\n"
            "  model.overlap_p2p_comm=true \\\n"
            "  model.batch_p2p_comm=false \\\n"
            "  model.sequence_parallel=true \\\n"
            "  train.micro_batch_size=1 \\\n"
            "  train.global_batch_size=64 \\\n"
            "  model.seq_length=131072 \\\n"
            "  dataset.seq_length=131072 \\\n"
            "  mixed_precision=bf16_mixed \\\n"
            "  ddp.use_distributed_optimizer=true \\\n"
            "  optimizer.use_distributed_optimizer=true \\\n"
            "  ddp.overlap_grad_reduce=true \\\n"
            "  ddp.overlap_param_gather=true\n");
}

/// A job whose figures are another program's, or another schedule than was planned, is not written.
TEST(Launch, RefusesWhatTheFrameworkCannotFollow) {
  for (const LaunchFormat format : {LaunchFormat::kMegatron, LaunchFormat::kBridge, LaunchFormat::kTorchtitan}) {
    EXPECT_EQ(written(format, "tp=1,cp=1,pp=1,dp=8,framework=nanotron"), "launch.framework");
    EXPECT_EQ(written(format, "tp=1,cp=4,pp=1,dp=2,state_sharding=zero3,shard_layout=contiguous"), "launch.not_expressible");
    EXPECT_EQ(written(format, "tp=1,cp=1,pp=4,dp=2,state_sharding=zero3,stage_layout=cost_balanced"), "launch.not_expressible");
    EXPECT_EQ(written(format, "tp=1,cp=4,pp=2,dp=1,state_sharding=zero3,rank_order=cp-tp-dp-pp"), "launch.not_expressible");
  }
  EXPECT_EQ(written(LaunchFormat::kMegatron, "tp=1,cp=1,pp=4,dp=2,schedule=gpipe"), "launch.not_expressible");
  EXPECT_EQ(written(LaunchFormat::kTorchtitan, "tp=1,cp=1,pp=1,dp=8,state_sharding=zero1"), "launch.not_expressible");
  EXPECT_TRUE(starts(LaunchFormat::kMegatron, "megatron-2024"));
  EXPECT_FALSE(starts(LaunchFormat::kMegatron, "megatron-core-deterministic"));  // needs a flag that no recipe holds
  EXPECT_FALSE(starts(LaunchFormat::kBridge, "megatron-core"));
}

/// The comments of a file are passed over when it is read.
TEST(Launch, ReadsItsOwnAnnotatedFile) {
  for (const LaunchFormat format : {LaunchFormat::kMegatron, LaunchFormat::kBridge, LaunchFormat::kTorchtitan}) {
    const Recipe recipe = recipe_of(format, "tp=2,cp=4,pp=2,dp=2,state_sharding=zero3,recompute=full");
    const Outcome<Launch> launch = write_launch(format, case_of(recipe));
    ASSERT_TRUE(launch.ok()) << to_text(launch.problems().front());
    const std::string text = to_annotated_text(*launch);
    EXPECT_EQ(text.substr(0, 2), "# ");
    const Outcome<LaunchReading> back = read_launch(format, text, 32, 32);  // 2 * 4 * 2 * 2
    ASSERT_TRUE(back.ok()) << to_text(back.problems().front());
    EXPECT_EQ(to_complete_text(back->recipe), to_complete_text(recipe)) << text;
  }
}

/// What the training asks for and no argument holds is said, never dropped.
TEST(Launch, ListsWhatTheTrainingNeedsElsewhere) {
  for (const LaunchFormat format :
       {LaunchFormat::kMegatron, LaunchFormat::kBridge, LaunchFormat::kTorchtitan, LaunchFormat::kDeepspeed}) {
    Recipe recipe = recipe_of(format, "tp=1,cp=1,pp=1,dp=8,state_sharding=zero3");
    if (format == LaunchFormat::kDeepspeed) recipe.shard_layout = ShardLayout::kContiguous;
    LaunchCase what = case_of(recipe);
    what.training.mask = {MaskKind::kDocuments, 0, {{4096, 32}}};
    what.training.optimizer = OptimizerKind::kAdamPrecisionAware;
    const Outcome<Launch> launch = write_launch(format, what);
    ASSERT_TRUE(launch.ok()) << to_text(launch.problems().front());
    ASSERT_EQ(launch->unexpressed.size(), 2u) << name_of(format);
    for (const Unexpressed& row : launch->unexpressed) {
      EXPECT_TRUE(row.elsewhere);
      EXPECT_EQ(row.recipe_key, "training");
    }
    EXPECT_EQ(launch->unexpressed.front().value, "mask=documents");
  }
}

/// Whatever is pasted is answered: with a recipe, or with problems that say what to do. Bytes of good texts are changed, cut and
/// doubled, the same ones on every machine.
TEST(Launch, AnswersAnything) {
  std::vector<std::string> seeds = {
      "#!/bin/bash\nTP=2\nA=(--bf16 --tensor-model-parallel-size $TP --pipeline-model-parallel-layout 'Ett|(tt|)*14L')\n"
      "torchrun --nnodes 2 --nproc-per-node=8 p.py \"${A[@]}\" --seq-length ${S:-4096}\n",
      "model:\n  tensor_model_parallel_size: 2\n  hierarchical_context_parallel_sizes: [2, 4]\ntrain:\n  micro_batch_size: 1\n"};
  for (const LaunchFormat format : {LaunchFormat::kMegatron, LaunchFormat::kBridge, LaunchFormat::kTorchtitan}) {
    seeds.push_back(
        to_annotated_text(*write_launch(format, case_of(recipe_of(format, "tp=2,cp=4,pp=2,dp=2,state_sharding=zero3")))));
  }
  seeds.push_back(to_text(
      *write_launch(LaunchFormat::kDeepspeed,
                    case_of(recipe_of(LaunchFormat::kDeepspeed, "tp=1,cp=4,pp=1,dp=2,cp_comm=a2a,shard_layout=contiguous")))));
  std::uint64_t state = 1;
  const auto next = [&](std::uint64_t below) {  // Knuth's linear congruence
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (state >> 33) % below;
  };
  constexpr char kBytes[] = "-=|*()[]{}\"'\\\n\t $#:,.0129EtLé";
  for (int round = 0; round < 4000; ++round) {
    std::string text = seeds[next(seeds.size())];
    for (std::uint64_t edits = next(6) + 1; edits > 0 && !text.empty(); --edits) {
      const std::size_t at = next(text.size());
      switch (next(4)) {
        case 0:
          text[at] = kBytes[next(sizeof kBytes - 1)];
          break;
        case 1:
          text.erase(at, next(20));
          break;
        case 2:
          text.insert(at, text.substr(next(text.size()), next(60)));
          break;
        default:
          text.insert(at, 1, kBytes[next(sizeof kBytes - 1)]);
      }
    }
    for (const LaunchFormat format :
         {LaunchFormat::kMegatron, LaunchFormat::kBridge, LaunchFormat::kTorchtitan, LaunchFormat::kDeepspeed}) {
      const Outcome<LaunchReading> reading = read_launch(format, text, 32, 32);
      if (reading.ok()) {
        EXPECT_GE(reading->recipe.world(), 1);
        continue;
      }
      ASSERT_FALSE(reading.problems().empty()) << text;
      for (const Problem& problem : reading.problems()) {
        EXPECT_TRUE(problem.code.starts_with("launch.")) << problem.code;
        EXPECT_FALSE(problem.message.empty()) << text;
      }
    }
  }
  // Doubled eighty times a word would be 2^80 letters long; a repeated layout 10^5 times its length.
  std::string doubling = "A=xx\n";
  for (int i = 0; i < 80; ++i) doubling += "A=$A$A\n";
  EXPECT_TRUE(read_launch(LaunchFormat::kMegatron, doubling + "torchrun p.py --bf16 --lr $A\n", 8).ok());
  std::string layout = "'E";
  for (int i = 0; i < 1000; ++i) layout += "(t*99999|)";
  EXPECT_EQ(code_of(LaunchFormat::kMegatron,
                    "--bf16 --pipeline-model-parallel-size 2 --pipeline-model-parallel-layout " + layout + "L'"),
            "launch.stage_layout");
}

TEST(LaunchBridge, RefusesAndSaysWhatItCannot) {
  const LaunchFormat format = LaunchFormat::kBridge;
  EXPECT_EQ(code_of(format, "model.context_parallel_size=8 model.cp_comm_type=a2a+p2p"), "launch.hierarchical_sizes");
  EXPECT_EQ(code_of(format, "model.context_parallel_size=8 model.cp_comm_type=allgather"), "launch.cp_comm");
  EXPECT_EQ(code_of(format, "model.seq_length=4096 dataset.seq_length=8192"), "launch.sequence");
  EXPECT_EQ(code_of(format, "mixed_precision=bf16_mixedd"), "launch.precision");
  EXPECT_EQ(code_of(format, "model.context_parallel_size=8 model.cp_comm_type=p2p"), "");
  EXPECT_EQ(written(format, "tp=2,cp=4,pp=1,dp=1,overlap_tp=true"), "elsewhere: overlap_tp");
  LaunchCase bf16 = case_of(recipe_of(format, "tp=1,cp=4,pp=1,dp=2"));
  bf16.training.grad_dtype = GradDtype::kBf16;  // the preset would overwrite it
  const Outcome<Launch> launch = write_launch(format, bf16);
  ASSERT_TRUE(launch.ok());
  ASSERT_EQ(launch->unexpressed.size(), 1u);
  EXPECT_EQ(launch->unexpressed.front().value, "grad_dtype=bf16");
  // comm_overlap decides over ddp, in whatever order they stand.
  const Outcome<LaunchReading> reading =
      read_launch(format, "comm_overlap.overlap_grad_reduce=false ddp.overlap_grad_reduce=true", 8);
  ASSERT_TRUE(reading.ok());
  EXPECT_FALSE(reading->recipe.overlap_grad_reduce);
}

/// tp 2 x cp 4 x pp 2 x dp 2 = 32 processes; a data rank takes 128 / 2 = 64 sequences into its pipeline.
TEST(LaunchTorchtitan, WritesItsToml) {
  EXPECT_EQ(written(LaunchFormat::kTorchtitan, "tp=2,cp=4,pp=2,dp=2,state_sharding=zero3,stage_layout=embedding_loss"),
            "# torchrun --nnodes 4 --nproc-per-node 8 --node-rank ${NODE_RANK} --master-addr ${MASTER_ADDR} --master-port "
            "${MASTER_PORT:-6000}\n"
            "\n[training]\n"
            "seq_len = 131072\n"
            "global_batch_size = 128\n"
            "local_batch_size = 64\n"
            "\n[parallelism]\n"
            "data_parallel_replicate_degree = 1\n"
            "data_parallel_shard_degree = 2\n"
            "fsdp_reshard_after_forward = \"always\"\n"
            "tensor_parallel_degree = 2\n"
            "context_parallel_degree = 4\n"
            "context_parallel_rotate_method = \"allgather\"\n"
            "pipeline_parallel_degree = 2\n"
            "pipeline_parallel_microbatch_size = 1\n"
            "pipeline_parallel_schedule = \"1F1B\"\n"
            "pipeline_parallel_first_stage_less_layers = 1\n"
            "pipeline_parallel_last_stage_less_layers = 1\n"
            "\n[activation_checkpoint]\n"
            "mode = \"none\"\n");
}

/// dp 4 x cp 2 = 8 data ranks, 4 of them share the states: 2 replicas of (2 shards x cp 2).
TEST(LaunchTorchtitan, WritesReplicasOfShards) {
  const std::string text =
      written(LaunchFormat::kTorchtitan, "tp=1,cp=2,pp=1,dp=4,state_sharding=zero3,state_shards=4,sequence_parallel=true");
  EXPECT_NE(text.find("data_parallel_replicate_degree = 2\ndata_parallel_shard_degree = 2\n"), std::string::npos) << text;
  const Outcome<LaunchReading> back = read_launch(LaunchFormat::kTorchtitan,
                                                  "[parallelism]\ndata_parallel_replicate_degree = 2\ncontext_parallel_degree = "
                                                  "4\n[activation_checkpoint]\nmode = \"none\"\n",
                                                  8);
  ASSERT_TRUE(back.ok()) << to_text(back.problems().front());
  EXPECT_EQ(back->recipe.dp, 2);  // one shard x two replicas; the states lie on the context group
  EXPECT_EQ(back->recipe.state_shards, 4);
  EXPECT_EQ(back->recipe.state_sharding, StateSharding::kZero3);
  EXPECT_EQ(written(LaunchFormat::kTorchtitan, "tp=1,cp=4,pp=1,dp=2,state_sharding=zero3,state_shards=2"),
            "launch.not_expressible");  // half of a context group
}

TEST(Launch, RefusesZeroBubble) {
  EXPECT_EQ(written(LaunchFormat::kTorchtitan, "tp=1,cp=1,pp=4,dp=2,state_sharding=zero3,schedule=zb_h1"),
            "launch.not_expressible");
  EXPECT_EQ(written(LaunchFormat::kMegatron, "tp=1,cp=1,pp=4,dp=2,schedule=zb_h1"), "launch.not_expressible");
  EXPECT_EQ(written(LaunchFormat::kMegatron, "tp=1,cp=1,pp=4,dp=2,schedule=zb_h1,framework=primus"), "launch.framework");
}

TEST(LaunchDeepspeed, RefusesGroupsOfShards) {
  EXPECT_EQ(written(LaunchFormat::kDeepspeed, "tp=1,cp=1,pp=1,dp=8,state_sharding=zero3,state_shards=4"),
            "launch.not_expressible");
  const std::string head =
      "{\"train_batch_size\": 8, \"train_micro_batch_size_per_gpu\": 1, \"gradient_accumulation_steps\": 1, "
      "\"bf16\": {\"enabled\": true}, \"zero_optimization\": {\"stage\": 3";
  EXPECT_EQ(code_of(LaunchFormat::kDeepspeed, head + "}}"), "");
  EXPECT_EQ(code_of(LaunchFormat::kDeepspeed, head + ", \"mics_shard_size\": 4}}"), "launch.state_shards");
  EXPECT_EQ(code_of(LaunchFormat::kDeepspeed, head + ", \"zero_hpz_partition_size\": 4}}"), "launch.state_shards");
}

TEST(LaunchTorchtitan, NamesTheSizeOfItsModel) {
  const std::string head = "[model]\nname = \"llama3\"\nflavor = \"", whole = "[activation_checkpoint]\nmode = \"none\"\n";
  EXPECT_EQ(read_launch(LaunchFormat::kTorchtitan, head + "70B\"\n" + whole, 8)->model.parameters, 70e9);
  EXPECT_EQ(read_launch(LaunchFormat::kTorchtitan, head + "debugmodel\"\n" + whole, 8)->model.parameters, std::nullopt);
}

TEST(LaunchTorchtitan, RefusesWhatItWouldIgnore) {
  const LaunchFormat format = LaunchFormat::kTorchtitan;
  const std::string whole = "[activation_checkpoint]\nmode = \"none\"\n";
  EXPECT_EQ(code_of(format, whole), "");
  EXPECT_EQ(code_of(format, whole + "[float8]\nrecipe_name = \"tensorwise\"\n"), "launch.ignored_option");
  EXPECT_EQ(code_of(format, whole + "[parallelism]\ntensor_parallel_degree = 2\nenable_async_tensor_parallel = true\n"),
            "launch.ignored_option");
  EXPECT_EQ(code_of(format, whole + "[training]\ncompile = true\n[parallelism]\ntensor_parallel_degree = 2\n"
                                    "enable_async_tensor_parallel = true\n"),
            "");
  EXPECT_EQ(code_of(format, whole + "[parallelism]\ndata_parallel_shard_degree = 3\n"), "launch.world_size");  // 3 of 8
  EXPECT_EQ(written(format, "tp=1,cp=8,pp=1,dp=1,cp_comm=a2a,state_sharding=zero3"), "launch.cp_comm");
  // Left to its default, a pipeline keeps parameters gathered after forward: optimizer and gradients are sharded only.
  const Outcome<LaunchReading> reading = read_launch(format, whole + "[parallelism]\npipeline_parallel_degree = 2\n", 8);
  ASSERT_TRUE(reading.ok());
  EXPECT_EQ(reading->recipe.state_sharding, StateSharding::kZero2);
}

/// cp 4 x dp 2 = 8 processes; 128 sequences = micro-batch 1 x 64 steps x dp 2: sequence ranks do not count.
TEST(LaunchDeepspeed, WritesItsJson) {
  EXPECT_EQ(written(LaunchFormat::kDeepspeed, "tp=1,cp=4,pp=1,dp=2,cp_comm=a2a,shard_layout=contiguous,state_sharding=zero2"),
            R"({
  "sequence_parallel_size": 4,
  "train_batch_size": 128,
  "train_micro_batch_size_per_gpu": 1,
  "gradient_accumulation_steps": 64,
  "zero_optimization": {
    "stage": 2,
    "overlap_comm": true
  },
  "bf16": {
    "enabled": true
  }
}
)");
}

/// runtime/config.py: batch = micro-batch x accumulation x dp, dp = processes / sequence ranks; whichever is not there follows.
TEST(LaunchDeepspeed, FindsWhatTheBatchLeavesOut) {
  const char* batch = R"("train_batch_size": 64)";
  const char* micro = R"("train_micro_batch_size_per_gpu": 2)";
  const char* steps = R"("gradient_accumulation_steps": 8)";
  const char* ranks = R"("sequence_parallel_size": 4)";
  const auto with = [](std::initializer_list<const char*> words) {
    std::string text = R"({"bf16": {"enabled": true})";
    for (const char* word : words) text += std::string(", ") + word;
    return text + "}";
  };
  const auto expect = [&](const std::string& text, std::int64_t cp, std::int64_t dp, std::int64_t one, std::int64_t all) {
    SCOPED_TRACE(text);
    const Outcome<LaunchReading> reading = read_launch(LaunchFormat::kDeepspeed, text, 16);
    ASSERT_TRUE(reading.ok()) << to_text(reading.problems().front());
    EXPECT_EQ(reading->recipe.cp, cp);
    EXPECT_EQ(reading->recipe.dp, dp);
    EXPECT_EQ(reading->recipe.micro_batch, one);
    EXPECT_EQ(reading->global_batch, all);
  };
  expect(with({micro, steps, ranks}), 4, 4, 2, 64);                                   // 16 / 4; 2 * 8 * 4
  expect(with({micro, ranks}), 4, 4, 2, 8);                                           // one step: 2 * 4
  expect(with({batch, steps, ranks}), 4, 4, 2, 64);                                   // 64 / (8 * 4)
  expect(with({batch, micro, ranks}), 4, 4, 2, 64);                                   // 8 steps
  expect(with({batch, ranks}), 4, 4, 16, 64);                                         // one step of 64 / 4
  expect(with({batch, micro, steps}), 4, 4, 2, 64);                                   // dp 64 / 16, and 16 / 4 cut sequences
  expect(with({R"("train_batch_size": "auto")", micro, steps, ranks}), 4, 4, 2, 64);  // Hugging Face fills it in
  EXPECT_EQ(code_of(LaunchFormat::kDeepspeed, with({micro, steps}), 16), "launch.world_unknown");  // which ranks cut?
  EXPECT_EQ(code_of(LaunchFormat::kDeepspeed, with({micro, steps, ranks}), std::nullopt), "launch.world_unknown");
  EXPECT_EQ(code_of(LaunchFormat::kDeepspeed, with({micro, steps, ranks}), 18), "launch.world_size");  // 18 = 4 * 4 + 2
  EXPECT_EQ(code_of(LaunchFormat::kDeepspeed, with({R"("train_batch_size": 65)", ranks}), 16), "launch.global_batch");
  EXPECT_EQ(code_of(LaunchFormat::kDeepspeed, with({R"("train_batch_size": 0)", ranks}), 16), "launch.not_a_degree");
}

TEST(LaunchDeepspeed, RefusesWhatItCannotDo) {
  const LaunchFormat format = LaunchFormat::kDeepspeed;
  const std::string batch = R"("train_batch_size": 8, "train_micro_batch_size_per_gpu": 1, "gradient_accumulation_steps": 4)";
  EXPECT_EQ(code_of(format, "{" + batch + R"(, "bf16": {"enabled": true}})"), "");
  EXPECT_EQ(code_of(format, "{" + batch + R"(, "bf16": {"enabled": true}, "fp16": {"enabled": true}})"), "launch.precision");
  EXPECT_EQ(code_of(format, "{" + batch + R"(, "bf16": {"enabled": true}, "tensor_parallel": {"autotp_size": 2}})"),
            "launch.tensor_parallel");
  EXPECT_EQ(code_of(format, "{" + batch + R"(, "bf16": {"enabled": true}})", 7), "launch.world_size");  // dp 2 does not divide 7
  EXPECT_EQ(code_of(format, "{" + batch + R"(, "bf16": {"enabled": true}})", std::nullopt), "launch.world_unknown");
  EXPECT_EQ(code_of(format, "not json"), "launch.unreadable");
  // dp = 8 / (1 * 4) = 2; with 4 sequence ranks 8 processes, not 16.
  const std::string ranks = "{" + batch + R"(, "bf16": {"enabled": true}, "sequence_parallel_size": 4})";
  EXPECT_EQ(code_of(format, ranks, std::nullopt), "");
  EXPECT_EQ(code_of(format, ranks, 16), "launch.world_size");
  const Outcome<LaunchReading> reading = read_launch(format, ranks);
  ASSERT_TRUE(reading.ok());
  EXPECT_EQ(reading->recipe.cp, 4);
  EXPECT_EQ(reading->recipe.dp, 2);
  EXPECT_EQ(reading->recipe.cp_comm, CpComm::kA2a);
  const std::string cut = "tp=1,cp=4,pp=1,dp=2,cp_comm=a2a,shard_layout=contiguous";
  EXPECT_EQ(written(format, cut + ",recompute=full"), "elsewhere: recompute");
  EXPECT_EQ(written(format, cut + ",recompute=selective"), "launch.not_expressible");
  EXPECT_EQ(written(format, cut + ",precision=fp8_current"), "launch.not_expressible");
  EXPECT_EQ(written(format, "tp=2,cp=4,pp=1,dp=1,cp_comm=a2a,shard_layout=contiguous"), "launch.tensor_parallel");
  EXPECT_EQ(written(format, "tp=1,cp=4,pp=2,dp=1,cp_comm=a2a,shard_layout=contiguous"), "launch.pipeline");
  EXPECT_EQ(written(format, "tp=1,cp=4,pp=1,dp=2,shard_layout=contiguous"), "launch.cp_comm");  // p2p
}

}  // namespace
}  // namespace cpfit
