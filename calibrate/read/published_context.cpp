// Training with context parallelism outside Megatron's own tables: torchtitan, Llama 3, USP, DistFlashAttention, BurstEngine,
// Ulysses with offload; and the tables of mixed origin.
#include <fmt/format.h>

#include <algorithm>

#include "calibrate/read/published_adapters.h"

namespace cpfit::published {

namespace {

constexpr FlopsConvention kFullAttention{AttentionCount::kFull, true, false};
constexpr FlopsConvention kCausalHalf{AttentionCount::kCausalHalf, true, false};

void all_said(Draft& draft, std::initializer_list<std::string_view> fields) {
  for (const auto field : fields) std::erase(draft.run.unknown, std::string(field));
}

/// DeepSpeed-Ulysses: one head exchange over all cp ranks, each with consecutive tokens.
void exchange_contiguous(Recipe& recipe) {
  recipe.cp_comm = CpComm::kA2a;
  recipe.a2a_degree = recipe.cp;
  recipe.shard_layout = ShardLayout::kContiguous;
}

/// cp = u * r: a head exchange over u ranks inside, a ring over r outside.
void exchange_and_ring(Recipe& recipe, std::int64_t exchange, std::int64_t ring) {
  recipe.cp = static_cast<std::int32_t>(exchange * ring);
  recipe.a2a_degree = static_cast<std::int32_t>(exchange);
  recipe.cp_comm = ring <= 1 ? CpComm::kA2a : exchange <= 1 ? CpComm::kP2p : CpComm::kA2aP2p;
  if (recipe.cp_comm == CpComm::kP2p) recipe.a2a_degree = 1;
}

}  // namespace

void read_torchtitan(const Row& row, Reading& reading) {
  const bool later = row.says("source", "2025");
  Draft draft =
      draft_of(row, reading, later ? "torchtitan" : "torchtitan-2412", row.says("gpu", "HBM2e") ? "torchtitan-h100" : "");
  Recipe& recipe = draft.recipe();
  recipe.state_sharding = StateSharding::kZero3;
  all_said(draft, {"tp", "pp"});  // blank: the table has no such axis
  const auto recompute = row.text("recompute");
  if (contains_word(recompute, "selective layer")) {  // every second layer fully (torchtitan selective_ac_option = 2)
    recipe.recompute = {RecomputeKind::kBlock, static_cast<std::int32_t>(draft.model().layers / 2)};
  }
  if (recompute.empty()) {  // train_configs: selective "op" at 8B, full at 70B and 405B (frameworks.md 4)
    recipe.recompute = {draft.model().layers <= 32 ? RecomputeKind::kSelective : RecomputeKind::kFull, 0};
    all_said(draft, {"recompute"});
    draft.run.conditions.push_back("recompute of the configuration file's default");
  }
  if (row.says("precision", "rowwise")) draft.refuse("row-wise scaled float8 products have no rate surface");
  const std::int64_t group = std::int64_t{recipe.tp} * recipe.pp * recipe.cp;
  const std::int64_t dp = group > 0 ? draft.run.gpus / group : 0;
  if (const auto local = row.integer("local_batch")) {
    if (draft.training().global_batch == 0) draft.training().global_batch = dp * *local;
    // With a pipeline the local batch is the whole pipeline's. In 2024 it was cut into as many micro-batches as there are stages
    // (config_manager.py pipeline_parallel_microbatches: "The default value will be the number of pipeline stages"), since 2025
    // into micro-batches of 1.
    const std::int64_t pieces = recipe.pp <= 1 ? 1 : later ? *local : recipe.pp;
    recipe.micro_batch = static_cast<std::int32_t>(std::max<std::int64_t>(1, *local / pieces));
    if (pieces > 1) draft.run.conditions.push_back("micro-batches by the configuration's default");
    all_said(draft, {"micro_batch"});
  }
  // The table of 4D parallelism names its schedule and the asynchronous TP in its caption, which the notes carry.
  const auto says = [&row](std::string_view word) { return row.says("variant", word) || row.says("notes", word); };
  if (says("1F1B") && !says("nterleaved")) all_said(draft, {"vpp"});
  recipe.overlap_tp = recipe.tp > 1 && (says("async tp") || says("asynctp"));
  draft.training().vocab_divisor = 1;
  const bool compiled = row.says("variant", "compile") || row.says("notes", "compile");
  if (compiled) {
    draft.run.rules = reading.rules(recipe.framework, "torch.compile", [later](RuleSet& rules) {
      rules.fused_elementwise = true;
      if (!later) return;
      // components/loss.py compiles the loss since 2025: bf16 logits and their gradient, no fp32 copies; logits read for the
      // maximum, for the sum and for the gradient, which is written.
      rules.loss_bytes_per_logit = rules.loss_backward_bytes_per_logit = 4.0;
      rules.loss_saved_bytes_per_logit = 2.0;
      rules.loss_traffic_bytes_per_logit = 8.0;
    });
    draft.run.conditions.push_back(later ? "torch.compile fuses element-wise operators and the loss"
                                         : "torch.compile fuses element-wise operators");
  }
  draft.run.died = row.says("notes", "OOM");
  measure_throughput(draft, row, kFullAttention);
  // The tables divide by the bf16 peak of the normal board, whatever the precision.
  if (const auto board = find_gpu(row.says("gpu", "A100") ? "A100-SXM4-80GB" : "H100-SXM5-80GB"); board.ok()) {
    draft.run.peak_flops_for_mfu = board->bf16.value();
  }
  if (const auto gib_reserved = row.number("peak_mem_gb")) draft.measure(Metric::kReservedBytes, *gib_reserved * kGiB);
  draft.run.group = recipe.cp > 1 ? "with CP" : recipe.pp > 1 || recipe.tp > 1 ? "TP or PP" : "FSDP";
  file(std::move(draft), row, reading);
}

void read_llama3_table(const Row& row, Reading& reading) {
  Draft draft = draft_of(row, reading, "llama3-meta", "llama3-h100");
  Recipe& recipe = draft.recipe();
  if (recipe.cp > 1) recipe.cp_comm = CpComm::kAllGather;
  recipe.state_sharding = StateSharding::kZero2;
  recipe.rank_order = RankOrder{{Axis::kTp, Axis::kCp, Axis::kPp, Axis::kDp}};
  recipe.stage_layout.kind = LayoutKind::kEmbeddingAndLossAsLayers;
  all_said(draft, {"recompute"});  // none at 8k tokens (section 3.3.2)
  if (recipe.cp > 1) draft.not_said("recompute");
  if (const auto per_group = row.integer("batch_per_dp")) {
    draft.training().global_batch = *per_group * row.integer("dp").value_or(0);
  }
  measure_throughput(draft, row, kCausalHalf);  // the source does not say; only the causal half agrees with its three rows
  draft.run.conditions.push_back("FLOPs convention not stated by the source: causal half assumed");
  file(std::move(draft), row, reading);
}

void read_usp_paper(const Row& row, Reading& reading) {
  if (!row.blank("fwd_iters_per_s") || row.says("model", "attention op")) {
    read_usp_operator(row, reading);
    return;
  }
  Draft draft = draft_of(row, reading, "usp-2404", "usp-a800");
  Recipe& recipe = draft.recipe();
  exchange_and_ring(recipe, row.integer("ulysses").value_or(1), row.integer("ring").value_or(1));
  if (recipe.cp == 1) recipe.cp_comm = CpComm::kP2p;
  recipe.overlap_grad_reduce = recipe.overlap_param_gather = false;  // Megatron's defaults; section 5.2 names neither
  draft.run.conditions.push_back("no overlap of gradients or parameters: Megatron's defaults, which the source does not change");
  all_said(draft, {"tp", "pp", "micro_batch", "recompute"});  // no pipeline, no accumulation, no recompute (section 5.2)
  // Read off the rows of tp 4, checked by those of tp 2: their groups reduce gradients at the rate of one NIC (20 of 25 GB/s; 13
  // to 19), where groups of all eight GPUs of a node have eight and those of one have one; NVIDIA/nccl#820 has 19 GB/s for a
  // group that is alone on a NIC of such nodes. A ring that must leave a node by the NIC it came in by closes only over two GPUs
  // of one PCIe switch, which groups of every second or fourth GPU do not have.
  draft.run.rails_of_part = 1;
  draft.run.conditions.push_back(
      "supposed: gradient groups with some of a node's GPUs send over one NIC, read off the rows of tp 4");
  const std::int64_t dp = std::max<std::int64_t>(1, row.integer("dp").value_or(1));
  recipe.micro_batch = static_cast<std::int32_t>(std::max<std::int64_t>(1, draft.training().global_batch / dp));
  measure_throughput(draft, row, {AttentionCount::kCausalHalf, true, false});
  draft.run.group = std::string(row.text("source_location").substr(0, 7));
  file(std::move(draft), row, reading);
}

void read_distflashattn(const Row& row, Reading& reading) {
  if (!row.blank("max_total_seq_k") || row.blank("step_time_s")) {
    reading.skip(row, "longest sequence that ran: no step time");
    return;
  }
  if (row.says("framework", "Ring Self-Attention")) {
    reading.skip(row, "Ring Self-Attention materialises the scores: no such strategy in cpfit");
    return;
  }
  const bool megatron = row.says("framework", "Megatron"), ulysses = row.says("framework", "Ulysses");
  Draft draft = draft_of(row, reading,
                         megatron  ? "megatron-2024"
                         : ulysses ? "deepspeed-ulysses"
                                   : "distflashattn",
                         "distflashattn-a100");
  Recipe& recipe = draft.recipe();
  Architecture& model = draft.model();
  // The paper's models vary Llama 7B: KV heads (GQA), or 33 query and KV heads of 128.
  model = llama_model(32, 4096, 11008, 32, 32, 32000);
  if (row.says("model", "GQA")) model.kv_heads = 8;
  if (row.says("model", "33H")) {
    model.heads = model.kv_heads = 33;
    model.hidden = 33 * 128;
  } else if (!row.says("model", "7B") && !row.says("model", "GQA")) {
    draft.refuse("the shape of this model is not printed");
  }
  model.head_dim = 128;
  model.name = std::string(row.text("model"));
  const std::int64_t share = megatron ? recipe.tp : ulysses ? recipe.cp : 1;
  if (model.heads % share != 0) {  // assumed: dummy heads up to the next multiple
    model.heads = model.kv_heads = (model.heads / share + 1) * share;
    draft.run.conditions.push_back(
        fmt::format("assumed: heads padded to {} so that {} ranks share them evenly", model.heads, share));
  }
  all_said(draft, {"tp", "pp", "micro_batch"});
  draft.training().global_batch = 1;
  if (ulysses) exchange_contiguous(recipe);
  if (!megatron) recipe.state_sharding = StateSharding::kZero3;
  if (!megatron && !ulysses) recipe.shard_layout = ShardLayout::kContiguous;
  if (row.says("recompute", "rematerialization-aware")) {
    recipe.recompute = {RecomputeKind::kFull, 0};
    all_said(draft, {"recompute"});
  } else if (row.says("recompute", "HF-style")) {
    recipe.recompute = {RecomputeKind::kFull, 0};
    all_said(draft, {"recompute"});
    draft.run.rules = reading.rules(recipe.framework, "checkpoints at layer boundaries",
                                    [](RuleSet& rules) { rules.checkpoint_kept_attention = 0.0; });
    draft.run.conditions.push_back("checkpoints at layer boundaries: attention's forward runs again");
  } else {
    // The method's own checkpoints; the baselines' longest rows fit with none but full recompute, and their shorter ones take the
    // time of it: one setting per method.
    recipe.recompute = {RecomputeKind::kFull, 0};
    all_said(draft, {"recompute"});
    if (megatron || ulysses) draft.run.conditions.push_back("assumed: full recompute, as this method's longest rows need");
  }
  draft.measure(Metric::kStepSeconds, row.number("step_time_s"));
  draft.run.group = std::string(row.text("framework"));
  file(std::move(draft), row, reading);
}

/// The sheet's method names say which checkpoints were on (frameworks.md 5.4): whole attention outputs, those of the second half
/// of the sequence, or none. "Burst-Ring" and "BurstEngine" have the cells and the memory of "whole_ckpt", "w/o sele-ckpt" takes
/// them away; a plain "burst" names none. LoongTrain's own rows of 32 and 64 GPUs keep attention's output (its selective
/// checkpoint) where nothing takes it away; of the rows of 8 GPUs "loong-train-cp-ckpt" does.
double kept_by_method(std::string_view method) {
  if (contains_word(method, "w/o sele-ckpt")) return 0.0;
  if (contains_word(method, "half-ckpt") || contains_word(method, "sl-ckpt") || contains_word(method, "sl_ckpt")) return 0.5;
  if (contains_word(method, "full-ckpt") || contains_word(method, "whole_ckpt")) return 1.0;
  if (contains_word(method, "loong") && contains_word(method, "-ckpt")) return 1.0;
  return method == "Burst-Ring" || method == "Burst-USP" || method == "BurstEngine" || method.starts_with("LoongTrain-") ? 1.0
                                                                                                                         : 0.0;
}

/// "-cp" is a ring alone. InternEvo/exp.sh: "32 is DoubleRing, 8 is USP", heads over what is left (HP_SIZE).
void loong_grid(Recipe& recipe, std::string_view method) {
  constexpr std::int64_t kRing = 8;
  const bool ring = contains_word(method, "-cp") || recipe.cp <= kRing;
  exchange_and_ring(recipe, ring ? 1 : recipe.cp / kRing, ring ? recipe.cp : kRing);
}

/// LoongTrain under InternEvo: weights and optimizer sharded over all ranks, layers recomputed but for attention where the row
/// keeps its output.
void loong_train(Draft& draft, std::string_view method, bool on_host, Reading& reading) {
  draft.recipe().state_sharding = StateSharding::kZero3;
  draft.recipe().recompute = {RecomputeKind::kFull, 0};
  all_said(draft, {"recompute"});
  const double kept = kept_by_method(method);
  const bool exchanged = draft.recipe().cp_comm != CpComm::kDoubleRing;
  draft.run.rules = reading.rules(draft.recipe().framework,
                                  fmt::format("attention kept over {} of the sequence, windows of {}, optimizer on the {}", kept,
                                              exchanged ? 1 : 8, on_host ? "host" : "GPU"),
                                  [kept, exchanged, on_host](RuleSet& rules) {
                                    rules.checkpoint_kept_attention = kept;
                                    rules.optimizer_on_host = on_host;
                                    // A ring of the outer places crosses a window at every hop.
                                    if (exchanged) rules.dkv_wire = DkvWire::kNominal;
                                  });
}

/// "sl_loss" names the fused head and loss; "Burst-Ring" and "BurstEngine" have the memory of the rows with it.
bool loss_fused_by_burst(std::string_view method) {
  return contains_word(method, "sl_loss") || method.starts_with("Burst-Ring") || method.starts_with("Burst-USP") ||
         method == "BurstEngine";
}

/// BMTrain's FusedCrossEntropy: 16-bit logits and their 16-bit gradient. The sheet's four rows without sl_loss that print memory,
/// 32k tokens of 120,000 logits each, agree with 4 bytes a logit.
void plain_loss_of_burst(RuleSet& rules) {
  rules.loss_bytes_per_logit = rules.loss_backward_bytes_per_logit = 4.0;
  rules.loss_saved_bytes_per_logit = 2.0;
}

/// The sheet's "13b" is its "14b": apps/llama/config/13b/config.json has 120,000 words, and both share rows (515.707 s).
constexpr std::int64_t kWordsOf13b = 120000;

/// Adam works on the host (burst.sh and multi.sh --offload, InternEvo configs/7B_llama2.py cpu_offload) with gradients of 16
/// bits; rows that say otherwise say so, and of the large groups' rows the scaling sheet's offload=0 is taken for all.
/// DeepSpeed's ds.json leaves a fifth of it on the GPU ("ratio": 0.8), which is not modelled: rows that died would be called
/// fitting.
bool adam_on_host(const Row& row, const Draft& draft) {
  return row.says("notes", "offload=1") || (!row.says("notes", "offload=0") && draft.run.gpus <= 8);
}

void read_burstengine(const Row& row, Reading& reading) {
  const auto method = row.text("cp_method");
  const bool burst = contains_word(method, "burst"), ulysses = contains_word(method, "ulysses") && !burst;
  const bool tensor = contains_word(method, "megatron-tp");
  const bool megatron = contains_word(method, "megatron-cp") || method == "Megatron";
  const bool loong = contains_word(method, "loong");
  Draft draft = draft_of(row, reading,
                         loong     ? "internevo"
                         : burst   ? "burstengine"
                         : ulysses ? "deepspeed-ulysses"
                                   : "megatron-2024",
                         "burstengine-a800");
  Recipe& recipe = draft.recipe();
  const bool degree_supposed = row.blank("cp") && row.blank("tp");
  if (degree_supposed) {
    // Where the sheet has both, its columns without a degree repeat those over all GPUs (933, 619.48, 1023.09, 533.88 tokens/s).
    (tensor ? recipe.tp : recipe.cp) = static_cast<std::int32_t>(draft.run.gpus);
    draft.run.conditions.push_back(
        "supposed: the degree is not printed; one sequence over all GPUs, as the sheet's other columns");
    if (row.says("raw", "OOM")) draft.refuse("the degree is not printed");
  }
  if (row.says("notes", "SUSPICIOUS")) draft.refuse("the table marks the cell as a suspicious copy");
  if (draft.model().layers == 0 && !row.blank("layers")) {
    draft.model() =
        llama_model(row.integer("layers").value_or(0), row.integer("hidden").value_or(0), row.integer("ffn_hidden").value_or(0),
                    row.integer("heads").value_or(0), row.integer("heads").value_or(0), row.integer("vocab").value_or(32000));
    draft.model().name = std::string(row.text("model"));
  }
  all_said(draft, {"tp", "pp", "micro_batch"});
  if (burst && row.says("model", "13b")) draft.model().vocab = kWordsOf13b;
  if (ulysses) exchange_contiguous(recipe);
  const bool on_host = (burst || loong) && adam_on_host(row, draft);
  if ((contains_word(method, "double") || contains_word(method, "LoongTrain-Ring")) && recipe.cp > 8) {
    recipe.cp_comm = CpComm::kDoubleRing;
    recipe.window = 8;
  } else if (loong) {
    loong_grid(recipe, method);
  } else if (burst && (contains_word(method, "ulysses") || contains_word(method, "usp"))) {
    draft.not_said("a2a_degree");
  }
  if (burst || ulysses || row.says("sharding", "ZeRO-3")) recipe.state_sharding = StateSharding::kZero3;
  if (burst || ulysses) {
    recipe.recompute = {RecomputeKind::kFull, 0};  // --ckpt of the run scripts
    all_said(draft, {"recompute"});
  }
  if (loong) loong_train(draft, method, on_host, reading);
  if (on_host) draft.training().grad_dtype = GradDtype::kBf16;
  if (burst) {
    const double kept = kept_by_method(method);
    const bool fused_loss = loss_fused_by_burst(method);
    draft.run.rules = reading.rules(recipe.framework,
                                    fmt::format("attention kept over {} of the sequence, {} loss, optimizer on the {}", kept,
                                                fused_loss ? "fused" : "plain", on_host ? "host" : "GPU"),
                                    [kept, fused_loss, on_host](RuleSet& rules) {
                                      rules.checkpoint_kept_attention = kept;
                                      rules.optimizer_on_host = on_host;
                                      if (!fused_loss) plain_loss_of_burst(rules);
                                    });
    if (kept > 0) {
      draft.run.conditions.push_back(
          fmt::format("checkpoints keep attention's output over {:.0f} % of the sequence", 100 * kept));
    }
    draft.run.conditions.push_back(fused_loss ? "head and loss fused, no logits" : "logits of the whole shard");
    draft.training().grad_dtype = GradDtype::kBf16;  // BMTrain: gradients in the 16 bits of the parameters
  }
  if (!tensor && !megatron && !burst && !ulysses && !loong) draft.refuse("a method cpfit has no rule set for");
  const std::int64_t dp = draft.run.gpus / std::max<std::int64_t>(1, std::int64_t{recipe.tp} * recipe.cp);
  draft.training().global_batch = dp;  // one sequence per data-parallel rank
  // Of 64k tokens a GPU some of LoongTrain's rows ran and some died; what its baseline kept in memory is not printed.
  if (loong && row.says("raw", "OOM")) draft.refuse("LoongTrain died of memory: what its baseline kept there is not printed");
  if (!loong && !degree_supposed) draft.run.died = row.says("raw", "OOM");
  draft.measure(Metric::kTokensPerSecondPerGpu, row.number("tokens_per_s_per_gpu"));
  draft.run.group = loong     ? "LoongTrain"
                    : burst   ? "BurstEngine"
                    : ulysses ? "DeepSpeed-Ulysses"
                    : tensor  ? "Megatron TP"
                              : "Megatron CP";
  file(std::move(draft), row, reading);
}

void read_fpdt(const Row& row, Reading& reading) {
  const auto strategy = row.text("strategy");
  if (contains_word(strategy, "OC") || contains_word(strategy, "FPDT")) {
    reading.skip(row, "activations or sequence chunks offloaded to the host in a way the row does not quantify");
    return;
  }
  // The device is not printed; memory does not depend on it, and 78.7 G on another row implies an 80 GB card.
  Draft draft = draft_of(row, reading, "deepspeed-ulysses", "dgx-a100");
  Recipe& recipe = draft.recipe();
  all_said(draft, {"tp", "pp", "micro_batch"});
  if (recipe.cp > 1) exchange_contiguous(recipe);
  recipe.state_sharding = contains_word(strategy, "ZeRO-1")   ? StateSharding::kZero1
                          : contains_word(strategy, "ZeRO-2") ? StateSharding::kZero2
                                                              : StateSharding::kNone;
  draft.training().global_batch = 1;
  draft.run.conditions.push_back("80 GB device assumed; one sequence per step");
  if (const auto giga = row.number("peak_mem_gb")) draft.measure(Metric::kReservedBytes, *giga * kGiB);
  file(std::move(draft), row, reading);
}

void read_ring_attention_paper(const Row& row, Reading& reading) {
  reading.skip(row, "longest context that ran, of a JAX code whose layout is not printed");
}

void read_architecture(const Row& row, Reading& reading) { reading.skip(row, "the shape of a model, not a measurement"); }

void read_galvatron(const Row& row, Reading& reading) {
  reading.skip(row, "neither the GPU nor the meaning of the layout key is printed");
}

void read_misc_training(const Row& row, Reading& reading) {
  const bool nemo = row.says("framework", "NeMo"), maxtext = row.says("framework", "MaxText");
  if (row.says("source", "Unsloth")) return reading.skip(row, "longest context that fits an adapter training");
  if (row.says("source", "Colossal")) return reading.skip(row, "the printed degrees do not multiply to the printed GPUs");
  if (row.says("source", "NeuSight")) return reading.skip(row, "model latency without an optimizer step; batch not printed");
  if (row.blank("model")) return reading.skip(row, "the model is not printed");
  if (!nemo && !maxtext) return reading.skip(row, "the layout is not printed");
  Draft draft = draft_of(row, reading, nemo ? "nemo-24" : "maxtext",
                         row.says("gpu", "A3 Mega")    ? "gcp-a3-mega"
                         : row.says("gpu", "A3 Ultra") ? "gcp-a3-ultra"
                                                       : "");
  Recipe& recipe = draft.recipe();
  if (nemo) {
    draft.training().grad_dtype = GradDtype::kBf16;
    recipe.overlap_tp = recipe.tp > 1;
    if (recipe.precision == Precision::kFp8Current) recipe.precision = Precision::kFp8Delayed;
  } else {
    recipe.state_sharding = StateSharding::kZero3;
    all_said(draft, {"tp", "pp"});
    if (row.blank("precision") && row.says("notes", "recipe default FP8")) {
      recipe.precision = Precision::kFp8Current;
      draft.run.conditions.push_back("precision not printed: FP8, the default of the recipe it is an example of");
    }
    const std::int64_t tokens = row.integer("tokens_per_step").value_or(0), sequence = draft.training().sequence.count();
    if (draft.training().global_batch == 0 && sequence > 0) draft.training().global_batch = tokens / sequence;
  }
  measure_throughput(draft, row, kFullAttention);
  draft.run.group = std::string(row.text("source"));
  file(std::move(draft), row, reading);
}

}  // namespace cpfit::published
