#include "sim/evaluate/predict_run.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <string_view>

#include "model/rates/curves.h"
#include "model/recipe/legality.h"
#include "model/transformer/flops.h"
#include "sim/evaluate/possible_recipes.h"
#include "sim/screen/composition.h"
#include "sim/screen/layer_cost.h"
#include "sim/screen/screen.h"

namespace cpfit {

namespace {

std::int64_t gpus_of(const MeasuredRun& run) { return run.gpus > 0 ? run.gpus : run.scenario.cluster.gpus(); }

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ",") + word;
  return text;
}

void prepare_groups(NetworkView& network, const Recipe& recipe) {
  const GroupShapes shapes = group_shapes(recipe);
  for (const GroupShape& shape : {shapes.tp, shapes.cp_ring, shapes.cp_inner, shapes.pp, shapes.dp, shapes.dp_replica})
    network.prepare(shape);
}

/// Gives the data-parallel group the bus rate that the job itself measured over all its GPUs: a group with k members per node
/// has k of the node's rails. The surface's own share of a raw rate is undone, so that it returns the measured rate at 1 GiB.
/// Once round its ring a message passes the border of every node that the group spans.
void use_measured_bus_rate(const MeasuredRun& run, const GpuRates& rates, const Recipe& recipe, NetworkView& network) {
  const GroupShape shape = group_shapes(recipe).dp;
  GroupNetwork group = network.at(shape);
  if (group.domains <= 1) return;
  const Bytes buffer = gib(1);
  const double wire = buffer.value() * bus_factor(CollectiveKind::kAllReduce, static_cast<double>(shape.size));
  const Seconds time = collective_time(rates, CollectiveKind::kAllReduce, group.collective_link, group.collective_rate,
                                       group.ring.latency, shape.size, buffer, form_of_stride(shape.stride))
                           .time;
  const double attained = wire / time.value();
  const double rails = static_cast<double>(group.members_per_domain) / run.scenario.cluster.scale_up_domain;
  group.collective_rate *= run.bus_rate.value() * rails / attained;
  group.measured = true;
  const double borders = static_cast<double>(shape.size) / group.members_per_domain;
  group.all_reduce_latency = run.border_latency_all_reduce * borders;
  group.round_latency = run.border_latency * borders;
  network.set(group);
}

/// Gives a tensor-parallel group the rate that the job itself measured within a node: the surface's own figure at that size and
/// over as many GPUs is what the group would have had.
void use_measured_domain_rate(const MeasuredRun& run, const GpuRates& rates, const Recipe& recipe, NetworkView& network) {
  GroupNetwork group = network.at(group_shapes(recipe).tp);
  if (recipe.tp <= 1 || group.domains > 1) return;
  const std::int32_t ranks = run.scenario.cluster.scale_up_domain;
  const Bytes buffer = mib(256);
  const double wire = buffer.value() * bus_factor(CollectiveKind::kAllGather, ranks);
  const Seconds time = collective_time(rates, CollectiveKind::kAllGather, group.collective_link, group.collective_rate,
                                       group.ring.latency, ranks, buffer)
                           .time;
  group.collective_rate *= run.domain_rate.value() * time.value() / wire;
  network.set(group);
}

/// Latency that the job showed for a layer's ten collectives of tensor parallelism, beyond their rate: a tenth each. An
/// all-reduce goes round twice.
void use_measured_layer_latency(const MeasuredRun& run, const Recipe& recipe, NetworkView& network) {
  GroupNetwork group = network.at(group_shapes(recipe).tp);
  group.round_latency = run.layer_latency / 10.0;
  group.all_reduce_latency = group.round_latency * 2.0;
  network.set(group);
}

/// Gradient groups that have several but not all GPUs of a node send over fewer NICs than they have members.
void use_rails_of_part(const MeasuredRun& run, const Recipe& recipe, NetworkView& network) {
  GroupNetwork group = network.at(group_shapes(recipe).dp);
  const std::int32_t members = group.members_per_domain;
  const bool part = group.domains > 1 && members > run.rails_of_part && members < run.scenario.cluster.scale_up_domain;
  if (!part || group.collective_link != LinkClass::kNic) return;
  group.collective_rate *= static_cast<double>(run.rails_of_part) / members;
  network.set(group);
}

/// Chunks of saved activations alive at the peak of a stage: 1F1B pp - p, interleaved (vpp-1) pp + 2 (pp-p-1) + 1.
double chunks_in_flight(const Recipe& recipe, std::int32_t stage, double micro_batches) {
  const double behind = recipe.pp - stage - 1;
  const double chunks = recipe.vpp > 1 ? (recipe.vpp - 1.0) * recipe.pp + 2 * behind + 1 : behind + 1;
  return std::min(chunks, micro_batches * recipe.vpp);
}

/// Saved activations of all chunks but two lie in host memory to the offloaded share; two stay, one going out and one coming
/// back.
void offload_activations(const MeasuredRun& run, const Recipe& recipe, StageMemory& memory) {
  if (run.activation_offload <= 0) return;
  const double micro_batches =
      static_cast<double>(run.scenario.training.global_batch) / (static_cast<double>(recipe.dp) * recipe.micro_batch);
  const double chunks = chunks_in_flight(recipe, memory.stage, micro_batches);
  if (chunks <= 2) return;
  const Bytes saved = memory.components[static_cast<std::size_t>(Component::kActivations)];
  const Bytes away = saved * (run.activation_offload * (1.0 - 2.0 / chunks));
  const double slack = memory.peak.value() > 0 ? memory.reserved / memory.peak : 1.0;
  memory.peak -= away;
  memory.reserved -= away * slack;
  memory.device -= away * slack;
}

/// What a measured floor per layer and micro-batch adds to a step: to the busiest stage's layers in every micro-batch, and to the
/// other stages' work once while the pipeline fills.
/// Forward and backward have floors of their own, for a host that is late in forward does not catch up by a backward that waits
/// for the GPU: backward holds two thirds of the products, three quarters with full recompute.
double seconds_below_floor(const MeasuredRun& run, const Candidate& candidate, const ResolvedLayout& layout) {
  if (run.forward_floor.value() + run.backward_floor.value() <= 0) return 0;
  const Recipe& recipe = candidate.recipe;
  const double most = *std::max_element(layout.layers_of_stage.begin(), layout.layers_of_stage.end());
  const double all = std::accumulate(layout.layers_of_stage.begin(), layout.layers_of_stage.end(), 0.0);
  const double micro_batches =
      static_cast<double>(run.scenario.training.global_batch) / (static_cast<double>(recipe.dp) * recipe.micro_batch);
  const double forward_share = recipe.recompute.kind == RecomputeKind::kFull ? 1.0 / 4.0 : 1.0 / 3.0;
  const auto added = [&](double layers, double busy) {
    const double forward = std::max(run.forward_floor.value() * layers, forward_share * busy);
    return forward + std::max(run.backward_floor.value() * layers, (1.0 - forward_share) * busy) - busy;
  };
  const TimeBreakdown& time = candidate.time;
  const double busy = (time.compute + time.exposed_cp + time.exposed_tp + time.launch).value();
  return added(most * micro_batches, busy) + added((all - most) / recipe.vpp, time.bubble.value());
}

bool is_printed(const MeasuredRun& run, std::string_view field) {
  return std::find(run.unknown.begin(), run.unknown.end(), field) == run.unknown.end();
}

/// A measured floor or stall is a mean over runs that scatter: relative standard deviation, from the residuals of the rows that
/// have one.
constexpr double kStallSigma = 0.2;

/// What the caching allocator holds scatters more than what it hands out, for it gives nothing back before it must: the 5th and
/// 95th percentile of measured over predicted bytes. The verdict has the rule set's own spread (reserved_spread).
constexpr double kReservedBelow = 0.10, kReservedAbove = 0.25;

/// Blocks that another stream holds, as measured: as many as tokens and hidden elements of a micro-batch say.
double held_bytes(const MeasuredRun& run, const Recipe& recipe) {
  return run.held_hidden_bytes * static_cast<double>(run.scenario.training.sequence.count()) / recipe.cp * recipe.micro_batch *
         static_cast<double>(run.scenario.model.hidden);
}

/// Reserved bytes. The allocator cannot take more than the device has left: when a request fails it gives back every block that
/// nobody uses and starts anew (PyTorch CUDACachingAllocator.cpp release_cached_blocks). What is reserved at the end of such a
/// step lies anywhere between what is allocated and what the device has.
Predicted predicted_reserved(const MeasuredRun& run, const RunPrediction& prediction) {
  const StageMemory& memory = prediction.memory;
  const double reserved = memory.reserved.value() + held_bytes(run, prediction.candidate.recipe);
  const Bytes around = memory.components[static_cast<std::size_t>(Component::kCommunicators)] +
                       memory.components[static_cast<std::size_t>(Component::kContext)];
  const double room = (run.scenario.cluster.gpu.memory_usable - around).value();
  if (reserved <= room) return {reserved, reserved / (1 + kReservedBelow), reserved * (1 + kReservedAbove)};
  const double least = std::min(memory.peak.value(), room);
  return {(least + room) / 2, least / (1 + kReservedBelow), std::max(room, memory.peak.value())};
}

/// A layout that a source does not print is searched; its authors may have run another. Relative standard deviation of such
/// runs: root mean square of the logarithmic errors of NeMo's eight runs without CP on lines of even number.
constexpr double kSearchedLayoutSigma = 0.22;

Predicted step_with_stall(const Candidate& candidate, double stall, bool layout_searched) {
  const double step = candidate.time.step().value();
  const double searched = layout_searched ? kSearchedLayoutSigma * step : 0.0;
  const double spread =
      kNinetyPercent * std::hypot(candidate.relative_sigma * step, kStallSigma * stall, searched) / (step + stall);
  return {step + stall, (step + stall) / (1 + spread), (step + stall) * (1 + spread)};
}

/// Rules that guard a search against recipes nobody would ship or a framework does not offer. A published run did run, whatever
/// these say; they bind only the fields that are searched for.
bool binds_measured_runs(std::string_view rule) {
  constexpr std::array<std::string_view, 14> kAdvice{"tp_in_domain",
                                                     "axis_offered",
                                                     "overlap_tp",
                                                     "pipeline_filled",
                                                     "pp_within_layers",
                                                     "layout_offered",
                                                     "stage_layout",
                                                     "shard_layout_offered",
                                                     "cp_comm_offered",
                                                     "state_sharding_offered",
                                                     "gradient_sharding_with_pp",
                                                     "interleaving_micro_batches",
                                                     "interleaving_messages",
                                                     "sequence_framework"};
  return std::find(kAdvice.begin(), kAdvice.end(), rule) == kAdvice.end();
}

/// The first rule that makes a recipe unacceptable; empty when none does.
std::string_view objection(const MeasuredRun& run, const LegalityCase& at, bool searched) {
  if (first_violation(at) < 0) return {};
  for (const LegalityRule& rule : legality_rules()) {
    if (rule.holds(at)) continue;
    // Whatever else is searched. Not even of a search for tp itself: authors who could not cut the sequence otherwise went beyond
    // a node.
    if (rule.id == "tp_in_domain") continue;
    if (rule.id == "axis_offered" && is_printed(run, "tp")) continue;
    if (searched || binds_measured_runs(rule.id)) return rule.id;
  }
  return {};
}

/// Whether `a` is what authors would rather have run than `b`.
bool better(const RunPrediction& a, const RunPrediction& b) {
  const bool a_runs = a.candidate.verdict.fit != Fit::kOom, b_runs = b.candidate.verdict.fit != Fit::kOom;
  if (a_runs != b_runs) return a_runs;
  if (!a_runs) return a.candidate.memory.device < b.candidate.memory.device;
  return a.step_seconds.value < b.step_seconds.value;
}

/// Training FLOPs per token under a convention. The screen's masks are causal or dense over the whole sequence here.
double flops_per_token(const MeasuredRun& run, const FlopsConvention& convention) {
  return training_flops_per_token(run.scenario.model, run.scenario.training.sequence, convention).value();
}

double tokens_per_step(const MeasuredRun& run) {
  return static_cast<double>(run.scenario.training.sequence.count()) * static_cast<double>(run.scenario.training.global_batch);
}

Predicted around(Bytes bytes) {
  return {bytes.value(), bytes.value() / (1 + kLedgerUncertainty), bytes.value() * (1 + kLedgerUncertainty)};
}

}  // namespace

NetworkView& Predictor::network(const Cluster& cluster) {
  const auto key = std::pair(cluster.topology.get(), cluster.gpus());
  const auto found = networks_.find(key);
  if (found != networks_.end()) return found->second;
  return networks_.emplace(key, NetworkView(cluster)).first->second;
}

std::shared_ptr<const RuleSet> Predictor::rules(const std::string& framework) {
  if (const auto found = rules_.find(framework); found != rules_.end()) return found->second;
  auto preset = find_framework(framework);
  std::shared_ptr<const RuleSet> rules;
  if (preset.ok()) rules = std::make_shared<const RuleSet>(std::move(preset).value());
  rules_.emplace(framework, rules);
  return rules;
}

std::variant<RunPrediction, Unpredictable> predict(const MeasuredRun& run, Predictor& predictor) {
  const Scenario& scenario = run.scenario;
  const auto rules = run.rules ? run.rules : predictor.rules(scenario.base.framework);
  if (!rules) return Unpredictable{"no rule set \"" + scenario.base.framework + "\""};
  NetworkView& shared = predictor.network(scenario.cluster);
  const GpuRates& rates = predictor.rates().of(scenario.cluster.gpu);

  const auto recipes = possible_recipes(run, *rules);
  if (recipes.empty()) return Unpredictable{"no layout divides the GPUs, layers and batch of the row"};
  std::string first_reason;
  std::optional<RunPrediction> best;
  for (const Recipe& recipe : recipes) {
    const LegalityCase legality{scenario.model, scenario.training, recipe,
                                *rules,         gpus_of(run),      scenario.cluster.scale_up_domain};
    if (const auto rule = objection(run, legality, recipes.size() > 1); !rule.empty()) {
      if (first_reason.empty()) first_reason = "illegal: " + std::string(rule);
      continue;
    }
    const auto layout = resolve_layout(scenario.model, recipe);
    if (!layout) {
      if (first_reason.empty()) first_reason = "stage layout: " + layout.problems().front().message;
      continue;
    }
    prepare_groups(shared, recipe);
    std::optional<NetworkView> own;
    if (run.bus_rate.value() > 0 || run.domain_rate.value() > 0 || run.layer_latency.value() > 0 || run.rails_of_part > 0)
      own.emplace(shared);
    if (run.bus_rate.value() > 0) use_measured_bus_rate(run, rates, recipe, *own);
    if (run.domain_rate.value() > 0) use_measured_domain_rate(run, rates, recipe, *own);
    if (run.layer_latency.value() > 0) use_measured_layer_latency(run, recipe, *own);
    if (run.rails_of_part > 0) use_rails_of_part(run, recipe, *own);
    const ScreenContext context{scenario.model, scenario.cluster,   scenario.training, scenario.requirements, *rules,
                                rates,          own ? *own : shared};
    RunPrediction prediction;
    prediction.candidate = screen(context, recipe, *layout);
    const MemoryCase at{scenario.model, scenario.training, recipe, *rules, scenario.cluster.gpu, *layout};
    prediction.memory =
        run.memory_stage >= 0 && run.memory_stage < recipe.pp ? stage_memory(at, run.memory_stage) : prediction.candidate.memory;
    offload_activations(run, recipe, prediction.memory);
    if (run.activation_offload > 0) {
      offload_activations(run, recipe, prediction.candidate.memory);
      prediction.candidate.verdict = judge(prediction.candidate.memory, scenario.cluster.gpu,
                                           scenario.requirements.memory_margin_share, rules->reserved_spread);
    }
    const double more = seconds_below_floor(run, prediction.candidate, *layout) + run.extra_seconds;
    prediction.step_seconds = step_with_stall(prediction.candidate, more, !is_printed(run, "tp"));
    if (!best || better(prediction, *best)) best = std::move(prediction);
  }
  if (!best) return Unpredictable{first_reason};
  best->searched = joined(run.unknown);
  return *std::move(best);
}

Predicted predicted_metric(const MeasuredRun& run, const RunPrediction& prediction, Metric metric) {
  const Predicted& step = prediction.step_seconds;
  // A rate falls as the time grows: the interval's ends change places.
  const auto rate = [&](double amount) { return Predicted{amount / step.value, amount / step.high, amount / step.low}; };
  const double tokens_per_gpu = tokens_per_step(run) / static_cast<double>(gpus_of(run));
  switch (metric) {
    case Metric::kStepSeconds:
      return step;
    case Metric::kTokensPerSecondPerGpu:
      return rate(tokens_per_gpu);
    case Metric::kTflopsPerGpu:
      return rate(tokens_per_gpu * flops_per_token(run, run.flops) / 1e12);
    case Metric::kMfu:
      return rate(tokens_per_gpu * flops_per_token(run, run.flops) / run.peak_flops_for_mfu);
    case Metric::kPeakBytes:
      return around(prediction.memory.peak);
    case Metric::kResidentBytes:
      return around(prediction.memory.resident);
    case Metric::kReservedBytes:
      return predicted_reserved(run, prediction);
    case Metric::kKernelSeconds:
    case Metric::kCollectiveSeconds:
    case Metric::kExposedSeconds:
      break;
  }
  return {};
}

double implied_flops_per_second(const MeasuredRun& run, Metric metric, double measured) {
  const double model = flops_per_token(run, FlopsConvention{});
  const double counted = flops_per_token(run, run.flops);
  const double gpus = static_cast<double>(gpus_of(run));
  if (metric == Metric::kStepSeconds) return measured > 0 ? tokens_per_step(run) * model / measured / gpus : 0;
  if (metric == Metric::kTokensPerSecondPerGpu) return measured * model;
  if (metric == Metric::kTflopsPerGpu) return counted > 0 ? measured * 1e12 * model / counted : 0;
  if (metric == Metric::kMfu) return counted > 0 ? measured * run.peak_flops_for_mfu * model / counted : 0;
  return 0;
}

}  // namespace cpfit
