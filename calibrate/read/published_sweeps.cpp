// Sweeps over layouts on one cluster: nanotron (Hugging Face), vTrain, InternEvo, llm-foundry.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "calibrate/read/published_adapters.h"

namespace cpfit::published {

namespace {

/// Job number in "... bench_final2_mod_add.csv @317a2cbd job 14113488"; 0 when the cell names none.
std::int64_t job_of(std::string_view location) {
  const auto at = location.find("job ");
  return at == std::string_view::npos ? 0 : std::atoll(std::string(location.substr(at + 4)).c_str());
}

/// The F that the printed parameter count leaves, rounded to a multiple of 1024: P = L (4 H^2 + 3 H F) + tables V H.
std::int64_t ffn_from_parameters(double parameters, std::int64_t layers, std::int64_t hidden, std::int64_t vocab, int tables) {
  const double h = static_cast<double>(hidden);
  const double per_layer = (parameters - tables * static_cast<double>(vocab) * h) / static_cast<double>(layers);
  return std::llround((per_layer - 4 * h * h) / (3 * h) / 1024) * 1024;
}

/// nanotron's split: layers go to a stage until its running cost passes its share of the whole; a layer costs 4 H^2 + 3 H F, the
/// head V H, the embedding nothing. Whether "passes" includes equality changed with the pipeline's repair (frameworks.md 2).
StageLayout cost_balanced(const Architecture& model, std::int32_t pp, bool inclusive) {
  const double h = static_cast<double>(model.hidden), f = static_cast<double>(model.ffn_hidden);
  const double layer = 4 * h * h + 3 * h * f;
  const double whole = layer * static_cast<double>(model.layers) + static_cast<double>(model.vocab) * h;
  StageLayout layout;
  layout.kind = LayoutKind::kExplicit;
  layout.layers.assign(static_cast<std::size_t>(pp), 0);
  std::int32_t stage = 0;
  double running = 0;
  for (std::int64_t i = 0; i < model.layers; ++i) {
    ++layout.layers[static_cast<std::size_t>(stage)];
    running += layer;
    while (stage < pp - 1 && (inclusive ? running >= whole * (stage + 1) / pp : running > whole * (stage + 1) / pp)) ++stage;
  }
  return layout;
}

/// Two states of that cluster, told apart by the all-reduce rate inside a node (accuracy_notes 0.3, 1.4): A about 455 GB/s,
/// B about 424. Rows that died print no rate; before this job only state A occurs among the rows that lived.
constexpr double kStateRate = 440;  // GB/s, between the two
constexpr std::int64_t kFirstJobOfB = 13848200;

}  // namespace

void read_nanotron_sweep(const Row& row, Reading& reading) {
  Draft draft = draft_of(row, reading, "nanotron", "hf-h100");
  MeasuredRun& run = draft.run;
  Recipe& recipe = draft.recipe();
  run.unknown.clear();  // the sweep fixes everything: no recompute, 1F1B, cost-balanced stages
  recipe.dp = static_cast<std::int32_t>(row.integer("dp").value_or(0));

  Architecture& model = draft.model();
  const std::int64_t layers = row.integer("layers").value_or(0), hidden = row.integer("hidden").value_or(0);
  const std::int64_t vocab = row.integer("vocab").value_or(0), heads = row.integer("heads").value_or(0);
  std::int64_t ffn = row.integer("ffn_hidden").value_or(0);
  if (ffn == 0 && row.text("n_params").ends_with("G")) {
    const auto printed = row.text("n_params");
    if (const auto billions = to_number(printed.substr(0, printed.size() - 1)); billions && layers > 0 && hidden > 0) {
      ffn =
          ffn_from_parameters(*billions * 1e9, layers, hidden, 131072, 2);  // the nominal size counts the sweep's own vocabulary
    }
  }
  model = llama_model(layers, hidden, ffn, heads, row.integer("kv_heads").value_or(heads), vocab);
  model.name = std::string(row.text("model"));
  // Rows that died do not print whether embeddings are tied; the generator ties them below F 10,000.
  model.tied_embeddings = row.blank("tied_embeddings") ? ffn < 10000 : row.says("tied_embeddings", "True");
  draft.training().vocab_divisor = 1;

  recipe.state_sharding = row.says("sharding", "ZeRO-1") ? StateSharding::kZero1 : StateSharding::kNone;
  recipe.overlap_tp = recipe.tp > 1;  // async tensor parallelism
  recipe.overlap_param_gather = false;
  recipe.overlap_p2p = false;

  // global_batch is in sequences for rows that lived and in tokens for rows that died: the three factors decide.
  const std::int64_t micro_batches = row.integer("grad_accum").value_or(0);
  const std::int64_t sequences = std::int64_t{recipe.micro_batch} * micro_batches * recipe.dp;
  const std::int64_t printed = draft.training().global_batch;
  if (printed != sequences && printed != sequences * draft.training().sequence.count()) {
    draft.refuse("the global batch is neither sequences nor tokens of micro_batch * grad_accum * dp");
  }
  draft.training().global_batch = sequences;

  const bool died = row.says("status", "OOM");
  run.died = died;
  run.memory_stage = died ? -1 : 0;  // the logged rank is global rank 0; any stage can die
  const auto rate = row.number("ar_intranode");
  const bool state_a = rate ? *rate > kStateRate : job_of(row.text("source_location")) < kFirstJobOfB;
  if (state_a && recipe.tp > 1) {
    recipe.framework = "nanotron-cached-tp";
    run.conditions.push_back("cluster state A: the collectives' stream keeps unsharded TP buffers");
  }
  if (const auto measured = row.number("allreduce_busbw_gbps")) {
    // The job's own collectives of 256 MiB over all its GPUs. Where NCCL took a tree for the all-reduce, it attains 160 to 205
    // GB/s on 4 to 64 nodes alike: the rate of rings too, whose gathers and scatters then fall behind it by some 70 us a node.
    // Where it did not, the all-reduce shows the ring's latency itself, some 300 us a node.
    constexpr double kRingRate = 180e9;
    const double all_reduce_rate = *measured * 1e9, scatter_rate = row.number("reducescatter_busbw_gbps").value_or(0) * 1e9;
    const double wire = 268435456.0 * static_cast<double>(run.gpus - 1) / static_cast<double>(run.gpus);
    const double nodes = std::max(1.0, static_cast<double>(run.gpus) / 8.0);
    const auto late = [&](double bus_rate) {  // per node, once round
      return bus_rate > 0 && bus_rate < kRingRate ? wire * (1.0 / bus_rate - 1.0 / kRingRate) / nodes : 0.0;
    };
    constexpr double kRing = 100e-6;  // s per node: between the two
    const double reduced = late(all_reduce_rate);
    run.bus_rate = BytesPerSecond(std::max(all_reduce_rate, kRingRate));
    run.border_latency_all_reduce = Seconds(2.0 * reduced);
    run.border_latency = Seconds(reduced > kRing ? reduced : late(scatter_rate));
    run.conditions.push_back(fmt::format("all-reduce bus rate of this job, measured: {:.0f} GB/s; {:.0f} us per node are latency",
                                         *measured, 1e6 * run.border_latency.value()));
  }
  const bool repaired = row.says("after_pp_fix", "True");
  recipe.stage_layout = cost_balanced(model, recipe.pp, repaired);
  run.rules = reading.rules(recipe.framework, "explicit stages",
                            [](RuleSet& rules) { rules.layout_kinds.push_back(LayoutKind::kExplicit); });
  constexpr double kSickRate = 100;  // GB/s: ten times below every other run of the sweep
  run.group = rate && *rate < kSickRate ? "sick node" : recipe.pp > 1 && !repaired ? "before pipeline repair" : "healthy";

  if (recipe.tp > 1) {
    // Measured on that cluster, read off the rows that compute least: the host's time per layer and micro-batch, half of it for
    // forward; in state B on several nodes more of it, and 0.215 ms within a node or 0.275 ms between nodes for every ring step
    // of ten collectives, four of them in forward (accuracy_notes 4 has the same with one latency).
    const bool slow_steps = !state_a && run.gpus > 8;
    const double host = slow_steps ? 6.1 : 4.6;
    const double ring = slow_steps ? (recipe.tp > 8 ? 0.275 : 0.215) * (recipe.tp - 1) : 0.0;
    run.forward_floor = milliseconds(host / 2 + 4 * ring);
    run.backward_floor = milliseconds(host / 2 + 6 * ring);
    run.conditions.push_back(fmt::format("measured floor of {:.1f} ms per layer and micro-batch", host + 10 * ring));
  }
  if (state_a && recipe.tp > 8) {
    // Tensor parallelism across nodes: ten ring collectives per layer, 0.7 of them exposed, 65 us per ring step between nodes
    // (accuracy_notes 4). State B's floor above contains its own.
    run.layer_latency = Seconds(10 * 0.7 * 65e-6 * (recipe.tp - 1));
    run.conditions.push_back(
        fmt::format("ring steps between nodes: {:.1f} ms per layer and micro-batch", run.layer_latency.value() * 1e3));
  }
  if (const auto gather = row.number("ag_intranode"); gather && recipe.tp > 1) {
    run.domain_rate = gb_per_s(*gather);
    run.conditions.push_back(fmt::format("all-gather bus rate within a node of this job, measured: {:.0f} GB/s", *gather));
  }
  if (recipe.pp > 1 && !repaired) {
    // The unrepaired pipeline polls its metadata messages every 0.1 s; measured per micro-batch (accuracy_notes 4).
    const double stall = recipe.pp == 2 ? 0.52 : recipe.pp == 4 ? 1.13 : 1.25;
    run.extra_seconds += stall * static_cast<double>(micro_batches);
    run.conditions.push_back(fmt::format("polling pipeline: {:.2f} s per micro-batch", stall));
  }
  if (!died) {
    measure_throughput(draft, row, {AttentionCount::kFull, true, false});
    // MFU of pp > 1 was recomputed by the authors with another count: only TFLOP/s and tokens/s compare.
    std::erase_if(run.measured, [](const auto& figure) { return figure.first == Metric::kMfu; });
    if (const auto resident = row.number("mem_alloc_gib")) draft.measure(Metric::kResidentBytes, *resident * kGiB);
    if (const auto reserved = row.number("mem_reserved_gib")) draft.measure(Metric::kReservedBytes, *reserved * kGiB);
  }
  file(std::move(draft), row, reading);
}

void read_playbook_figure(const Row& row, Reading& reading) {
  reading.skip(row, "figure whose micro-batch and global batch are not printed");
}

void read_vtrain(const Row& row, Reading& reading) {
  Draft draft = draft_of(row, reading, "megatron-2024");
  Recipe& recipe = draft.recipe();
  constexpr std::int64_t kPaddedGpt2 = 51200;  // vocabulary of the repository's Megatron configurations
  draft.model() =
      gpt_model(row.integer("layers").value_or(0), row.integer("hidden").value_or(0), row.integer("heads").value_or(0),
                row.integer("vocab").value_or(kPaddedGpt2), row.integer("seq_len").value_or(0));
  draft.model().name = std::string(row.text("model"));
  draft.model().hidden_dropout = draft.model().attention_dropout = 0.1;
  draft.run.unknown.clear();
  recipe.precision = Precision::kFp16;
  recipe.recompute = {RecomputeKind::kFull, 0};
  recipe.sequence_parallel = false;
  recipe.state_sharding = StateSharding::kNone;
  recipe.overlap_grad_reduce = recipe.overlap_param_gather = recipe.overlap_p2p = false;
  draft.run.conditions.push_back("Megatron-DeepSpeed: no gradient bucketing, no overlap, 1F1B, full recompute");
  draft.run.rules = reading.rules(recipe.framework, "unfused attention",
                                  [](RuleSet& rules) { rules.attention_backend_ampere = AttentionBackend::kUnfused; });
  draft.run.conditions.push_back("attention kernel: none fused, as in Megatron-DeepSpeed of that time");
  // With one sequence per micro-batch a layer takes the same time at hidden 1024 and 2048 and at tp 1, 2 and 4: host launches of
  // that eager software, forward, recompute and backward. Read off the table's own single-node rows.
  draft.run.forward_floor = milliseconds(3.5 / 4);  // as the work is: forward, its recompute and twice as much
  draft.run.backward_floor = milliseconds(3.5 * 3 / 4);
  draft.run.ends_wait_for_host =
      true;  // the slope over layers at equal micro-batches leaves 2 to 5 ms a micro-batch for the ends
  draft.run.conditions.push_back("measured floor of 3.5 ms per layer and micro-batch");
  draft.measure(Metric::kStepSeconds, row.number("step_time_s"));
  draft.run.group = std::string(row.text("set"));
  file(std::move(draft), row, reading);
}

void read_internevo(const Row& row, Reading& reading) {
  Draft draft = draft_of(row, reading, "internevo", row.says("gpu", "A800") ? "internevo-a800" : "internevo-a100");
  Recipe& recipe = draft.recipe();
  std::erase(draft.run.unknown, "pp");  // blank: no pipeline
  if (row.says("notes", "headline")) draft.refuse("tokens/s and TFLOP/s of one line come from different configurations");
  if (row.says("sharding", "fsdp")) recipe.state_sharding = StateSharding::kZero3;
  const std::int64_t group = std::int64_t{recipe.tp} * recipe.pp;
  const std::int64_t dp = group > 0 ? draft.run.gpus / group : 0;
  if (const auto micro_batches = row.integer("micro_num")) {
    draft.training().global_batch = dp * recipe.micro_batch * *micro_batches;
  }
  measure_throughput(draft, row, {AttentionCount::kFull, true, recipe.recompute.kind == RecomputeKind::kFull});
  if (const auto gigabytes = row.number("peak_mem_gb")) draft.measure(Metric::kReservedBytes, *gigabytes * 1e9);
  draft.run.group = std::string(row.text("gpu"));
  file(std::move(draft), row, reading);
}

void read_llm_foundry(const Row& row, Reading& reading) {
  const std::string cluster = row.says("gpu", "a100_40gb") ? "mosaic-a100-40gb" : row.says("gpu", "a100") ? "mosaic-a100" : "";
  Draft draft = draft_of(row, reading, "llm-foundry", cluster);
  Recipe& recipe = draft.recipe();
  draft.model().max_positions = draft.training().sequence.count();  // the parameter counts grow with max_seq_len
  recipe.state_sharding = row.says("sharding", "FULL_SHARD") ? StateSharding::kZero3 : StateSharding::kZero2;
  draft.training().vocab_divisor = 1;
  measure_throughput(draft, row, {AttentionCount::kFull, true, false});
  draft.run.peak_flops_for_mfu = dense_peak(draft.run.scenario.cluster.gpu, recipe.precision).value();
  draft.run.group = std::string(row.text("gpu"));
  file(std::move(draft), row, reading);
}

}  // namespace cpfit::published
