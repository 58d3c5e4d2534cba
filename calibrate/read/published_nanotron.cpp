// The nanotron sweep of Hugging Face's Ultrascale Playbook: one cluster in two states, one software before and after a repair.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "calibrate/read/published_adapters.h"
#include "model/transformer/flops.h"

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

/// Whether rank 0 prints the parameters of the embedding alone ("101M"). Of 28 layers over 32 stages the first layer costs 1.4 %
/// more than a stage's share, and lies on the second stage.
bool embedding_alone(const Row& row, const Architecture& model, std::int32_t tp) {
  const auto printed = row.text("local_params_reported");
  if (!printed.ends_with("M")) return false;
  const auto millions = to_number(printed.substr(0, printed.size() - 1));
  constexpr double kRounding = 0.01;  // three digits
  const double embedding = static_cast<double>(model.vocab) * static_cast<double>(model.hidden) / tp;
  return millions && std::abs(*millions * 1e6 / embedding - 1) < kRounding;
}

/// Two states of that cluster, told apart by the all-reduce rate inside a node (accuracy_notes 0.3, 1.4): A about 455 GB/s,
/// B about 424; over eight nodes and more also by the rate over all of them, where NCCL takes a tree in A (above 150) and a ring
/// in B (below 105). Rows that died print no rate; before this job only state A occurs among the rows that lived.
constexpr double kStateRate = 440, kStateRateOverNodes = 130;  // GB/s
constexpr std::int64_t kFirstJobOfB = 13848200;

bool in_state_a(const Row& row, std::int64_t gpus) {
  const auto rate = row.number("ar_intranode");
  if (!rate) return job_of(row.text("source_location")) < kFirstJobOfB;
  return *rate > kStateRate || (gpus >= 64 && row.number("allreduce_busbw_gbps").value_or(0) > kStateRateOverNodes);
}

/// The pipeline's repair began with this job. The column says so from four jobs later; these two follow the last ones before
/// the repair by 68,000 numbers and the first one after it at once.
constexpr std::int64_t kFirstRepairedJob = 14097146;

/// The unrepaired pipeline polls its metadata messages every 0.1 s: seconds a micro-batch, measured (accuracy_notes 4).
double polling_stall(std::int32_t pp) { return pp == 2 ? 0.52 : pp == 4 ? 1.13 : 1.25; }

/// What the job measured of its own network.
void use_measured_network(const Row& row, MeasuredRun& run) {
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
  if (const auto gather = row.number("ag_intranode"); gather && run.scenario.base.tp > 1) {
    run.domain_rate = gb_per_s(*gather);
    run.conditions.push_back(fmt::format("all-gather bus rate within a node of this job, measured: {:.0f} GB/s", *gather));
  }
}

/// What a layer of a tensor-parallel rank takes at least beyond the host's time that the rule set has, read off the rows that
/// compute least (state A's figures and kSlowerNode off those of even line). In state B on several nodes the host takes 6.1 ms
/// per layer and micro-batch, half of it for forward, and every ring step of ten collectives, four of them in forward, 0.215 ms
/// within a node or 0.275 ms between nodes (accuracy_notes 4 has the same with one latency). In state A ring steps between nodes
/// take 34 us, at tp 16 as at tp 32, and have the products to hide behind. A group waits for its slowest node, by kSlowerNode
/// slower with every doubling of their number; state B's ring steps between nodes were read off many nodes and do not grow.
void use_measured_floors(bool state_a, MeasuredRun& run) {
  const std::int32_t tp = run.scenario.base.tp;
  if (tp <= 1) return;
  const bool several = run.gpus > 8, slow_steps = !state_a && several;
  constexpr double kSlowerNode = 0.02;
  const double pairs = static_cast<double>(run.gpus) / 16.0;  // of nodes
  const double slowest = several && (state_a || tp <= 8) ? 1.0 + kSlowerNode * std::log2(pairs) : 1.0;
  if (slow_steps) {
    const double host = 6.1 * slowest, ring = (tp > 8 ? 0.275 : 0.215) * (tp - 1) * slowest;
    run.forward_floor = milliseconds(host / 2 + 4 * ring);
    run.backward_floor = milliseconds(host / 2 + 6 * ring);
    run.conditions.push_back(fmt::format("measured floor of {:.1f} ms per layer and micro-batch", host + 10 * ring));
  }
  if (state_a && tp > 8) {
    constexpr double kRingStep = 34e-6;  // s
    run.layer_latency = Seconds(10 * kRingStep * (tp - 1) * slowest);
    run.conditions.push_back(
        fmt::format("ring steps between nodes: {:.2f} ms per collective", run.layer_latency.value() * 1e3 / 10));
  }
}

/// Host work between two steps (data, clipping tensor by tensor, logging, a barrier), with an idle GPU. Fitted on rows of even
/// line.
constexpr double kBetweenSteps = 0.02;  // s

/// Whether a run of the repaired campaign ran the unrepaired pipeline all the same, by its own speed: the step took at least
/// twice what its work takes at a third of the peak or at the measured floor, and the excess is 0.75 to 1.5 times the stall that
/// the unrepaired pipeline shows per micro-batch. Runs of fewer micro-batches than stages, which no steady pipeline reaches, are
/// left out. Runs that the rule finds lie at 0.83 to 1.47 stalls and 2.0 to 72 times their work, the next that is twice its work
/// at 0.54. Two columns that tell nothing of speed agree: where the parameters of rank 0 show which code split the layers (the
/// repair changed the tie rule), the three found were split by the old one, of the 99 others six; and at tp >= 4 and pp >= 8,
/// where 56 of 61 repaired runs reserve 10 to 63 hidden tensors more than runs before the repair did, the 11 found reserve no
/// more than those.
bool polled_after_repair(const Row& row, const MeasuredRun& run, std::int64_t micro_batches) {
  const Recipe& recipe = run.scenario.base;
  const auto rate = row.number("tokens_per_s_per_gpu");
  if (recipe.pp <= 1 || micro_batches < recipe.pp || !rate || *rate <= 0) return false;
  const double tokens = static_cast<double>(run.scenario.training.sequence.count()) * recipe.micro_batch;
  const double step = tokens * static_cast<double>(micro_batches) * recipe.dp / (*rate * static_cast<double>(run.gpus));
  constexpr double kSpeed = 330e12;  // FLOP/s, a third of the peak
  const Flops per_token = training_flops_per_token(run.scenario.model, run.scenario.training.sequence, FlopsConvention{});
  const double compute = tokens * per_token.value() / (static_cast<double>(recipe.tp) * recipe.pp * kSpeed);
  const auto& layers = recipe.stage_layout.layers;
  const double most = layers.empty() ? 0.0 : *std::max_element(layers.begin(), layers.end());
  const double floor = most * (run.forward_floor + run.backward_floor + run.layer_latency).value();
  const double work = std::max(compute, floor) * static_cast<double>(micro_batches + recipe.pp - 1);
  const double stalls = (step - work) / (static_cast<double>(micro_batches) * polling_stall(recipe.pp));
  return step >= 2.0 * work && stalls >= 0.75 && stalls <= 1.5;
}

/// Since the repair the host runs ahead of the GPU, and blocks that the collectives' stream has not passed cannot be given out
/// again: in state B reserved memory of rows of even line grows by 28 hidden tensors of two bytes at pp 4 and by 41 from pp 8 on,
/// unsharded and whatever the depth. State A's rule set has them anyway. Given back under pressure: no part of the verdict.
void use_held_blocks(bool state_a, MeasuredRun& run) {
  const Recipe& recipe = run.scenario.base;
  if (state_a || recipe.tp <= 1 || recipe.pp < 4) return;
  run.held_hidden_bytes = 2.0 * (recipe.pp < 8 ? 28 : 41);
  run.conditions.push_back("repaired pipeline: the collectives' stream keeps unsharded TP buffers");
}

/// Which of the three groups the run belongs to, the stall that goes with it, and what else the pipeline's state says.
void use_pipeline_state(const Row& row, std::int64_t micro_batches, bool state_a, bool repaired, MeasuredRun& run) {
  const std::int32_t pp = run.scenario.base.pp;
  constexpr double kSickRate = 100;  // GB/s: ten times below every other run of the sweep
  const auto rate = row.number("ar_intranode");
  const bool polled = repaired && polled_after_repair(row, run, micro_batches);
  run.group = polled || (rate && *rate < kSickRate) ? "stalled or sick node"
              : pp > 1 && !repaired                 ? "before pipeline repair"
                                                    : "healthy";
  run.extra_seconds += kBetweenSteps;
  if (rate && *rate < kSickRate) run.conditions.push_back(fmt::format("sick node: {:.0f} GB/s within it", *rate));
  if (repaired && !polled) use_held_blocks(state_a, run);
  if (pp <= 1 || (repaired && !polled)) return;
  const double stall = polling_stall(pp);
  run.extra_seconds += stall * static_cast<double>(micro_batches);
  run.conditions.push_back(
      fmt::format("polling pipeline{}: {:.2f} s per micro-batch", polled ? ", recognised by the measured step" : "", stall));
}

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
  const bool state_a = in_state_a(row, run.gpus);
  if (state_a && recipe.tp > 1) {
    recipe.framework = "nanotron-cached-tp";
    run.conditions.push_back("cluster state A: the collectives' stream keeps unsharded TP buffers");
  }
  const bool repaired = row.says("after_pp_fix", "True") || job_of(row.text("source_location")) >= kFirstRepairedJob;
  recipe.stage_layout = cost_balanced(model, recipe.pp, repaired);
  if (auto& stages = recipe.stage_layout.layers; stages.back() == 0 && embedding_alone(row, model, recipe.tp)) {
    std::rotate(stages.begin(), stages.end() - 1, stages.end());
    run.conditions.push_back("the first stage holds the embedding alone, as its printed parameters say");
  }
  run.rules = reading.rules(recipe.framework, "explicit stages",
                            [](RuleSet& rules) { rules.layout_kinds.push_back(LayoutKind::kExplicit); });
  use_measured_network(row, run);
  use_measured_floors(state_a, run);
  use_pipeline_state(row, micro_batches, state_a, repaired, run);
  if (!died) {
    measure_throughput(draft, row, {AttentionCount::kFull, true, false});
    // MFU of pp > 1 was recomputed by the authors with another count: only TFLOP/s and tokens/s compare.
    std::erase_if(run.measured, [](const auto& figure) { return figure.first == Metric::kMfu; });
    if (const auto resident = row.number("mem_alloc_gib")) draft.measure(Metric::kResidentBytes, *resident * kGiB);
    if (const auto reserved = row.number("mem_reserved_gib")) draft.measure(Metric::kReservedBytes, *reserved * kGiB);
  }
  file(std::move(draft), row, reading);
}

}  // namespace cpfit::published
