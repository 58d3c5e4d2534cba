#include "gui/study/estimate.h"

#include <algorithm>
#include <array>
#include <utility>

#include "gui/study/recipe_values.h"

namespace cpfit::gui {

namespace {

/// Whether a workbench of one scenario serves another: all that it holds on to is equal. Training is passed by the call.
bool serves(const Scenario& a, const Scenario& b) {
  return a.cluster.topology == b.cluster.topology && a.cluster.nodes == b.cluster.nodes &&
         a.cluster.gpus_per_node == b.cluster.gpus_per_node && a.cluster.gpu.name == b.cluster.gpu.name &&
         a.cluster.gpu.memory_usable == b.cluster.gpu.memory_usable && a.base.framework == b.base.framework &&
         a.model == b.model && a.requirements.memory_margin_share == b.requirements.memory_margin_share &&
         a.requirements.exposed_budget_share == b.requirements.exposed_budget_share;
}

}  // namespace

Outcome<Workbench*> Estimator::bench(const Design& design) {
  if (!bench_ || !serves(*built_for_, *design.scenario)) {
    Outcome<Workbench> built = Workbench::build(*design.scenario, *rates_);
    if (!built.ok()) return built.problems();
    bench_.emplace(std::move(built).value());
    built_for_ = design.scenario;
  }
  return &*bench_;
}

Outcome<Candidate> Estimator::evaluate(const Design& design) {
  const Outcome<Workbench*> ready = bench(design);
  if (!ready.ok()) return ready.problems();
  return ready.value()->evaluate(design.training(), design.recipe);
}

Estimate Estimator::estimate(const Design& design, const std::optional<Candidate>& control) {
  Estimate estimate;
  estimate.design = design;
  const Outcome<Workbench*> ready = bench(design);
  if (!ready.ok()) {
    estimate.problems = ready.problems();
    return estimate;
  }
  Workbench& workbench = **ready;
  Outcome<Candidate> candidate = workbench.evaluate(design.training(), design.recipe);
  if (!candidate.ok()) {
    estimate.problems = candidate.problems();
    return estimate;
  }
  estimate.candidate = std::move(candidate).value();
  annotate(workbench, design.training(), control, *estimate.candidate);
  for (const std::string& reason : estimate.candidate->reasons) {
    if (reason.ends_with(kNotAGainOfCp)) estimate.not_of_cp = reason;
  }
  const ScreenContext context = workbench.context(design.training());
  estimate.sources = sources_of(context, design.recipe);
  const Outcome<ResolvedLayout> layout = resolve_layout(context.model, design.recipe);
  const MemoryCase at{context.model, design.training(), design.recipe, context.rules, context.cluster.gpu, *layout};
  for (std::int32_t stage = 0; stage < design.recipe.pp; ++stage) {
    estimate.stages.push_back(stage_memory(at, stage));
    estimate.verdicts.push_back(judge(estimate.stages.back(), context.cluster.gpu, context.requirements.memory_margin_share,
                                      context.rules.reserved_spread));
  }
  return estimate;
}

std::vector<Variation> Estimator::vary(const Design& design, std::string_view key, std::string_view derived) {
  std::vector<Variation> variations;
  const std::string now = value_of(design, key);
  for (const std::string& value : values_along(design, key)) {
    Variation variation;
    variation.value = value;
    variation.current = value == now;
    const Outcome<Design> with = variation.current ? Outcome<Design>(design) : with_value(design, key, value, derived);
    if (!with.ok()) {
      variation.rule = with.problems().front().message;
      variations.push_back(std::move(variation));
      continue;
    }
    // Another number of nodes is another network: it gets a bench of its own, so that the design's stays warm.
    Outcome<Candidate> candidate = Problems{};
    if (serves(*design.scenario, *with->scenario)) {
      candidate = evaluate(*with);
    } else {
      Outcome<Workbench> other = Workbench::build(*with->scenario, *rates_);
      candidate = other.ok() ? other.value().evaluate(with->training(), with->recipe) : Outcome<Candidate>(other.problems());
    }
    if (candidate.ok()) {
      variation.legal = true;
      variation.fit = candidate->verdict.fit;
      variation.step = candidate->time.step();
      variation.device = candidate->memory.device;
    } else {
      variation.rule = candidate.problems().front().message;
    }
    variations.push_back(std::move(variation));
  }
  return variations;
}

StageLedger Estimator::ledger(const Design& design, std::int32_t stage) {
  Candidate candidate;
  candidate.recipe = design.recipe;
  const Outcome<Workbench*> ready = bench(design);
  return ready.ok() ? ledger_of(**ready, design.training(), candidate, stage) : StageLedger{};
}

std::array<Bytes, kComponentCount> Estimator::allocated(const Design& design, std::int32_t stage, Moment moment) {
  const Outcome<Workbench*> ready = bench(design);
  if (!ready.ok()) return {};
  const ScreenContext context = (*ready)->context(design.training());
  const Outcome<ResolvedLayout> layout = resolve_layout(context.model, design.recipe);
  if (!layout.ok()) return {};
  return allocated_at({context.model, design.training(), design.recipe, context.rules, context.cluster.gpu, *layout}, stage,
                      moment);
}

std::vector<std::string> nearest_legal(const std::vector<Variation>& variations) {
  const auto current = std::ranges::find_if(variations, &Variation::current);
  if (current == variations.end()) return {};
  std::vector<std::string> found;
  for (auto at = current; at != variations.begin();) {
    if ((--at)->legal) {
      found.push_back(at->value);
      break;
    }
  }
  for (auto at = current + 1; at != variations.end(); ++at) {
    if (at->legal) {
      found.push_back(at->value);
      break;
    }
  }
  return found;
}

std::string parameter_of(const Problem& problem) {
  static constexpr std::pair<std::string_view, std::string_view> kRows[] = {
      {"recipe.world_size", "dp"},
      {"recipe.batch", "global_batch"},
      {"recipe.tp", "tp"},
      {"recipe.pp", "pp"},
      {"recipe.vpp", "vpp"},
      {"recipe.schedule", "vpp"},
      {"recipe.interleaving", "vpp"},
      {"recipe.pipeline", "pp"},
      {"recipe.layout", "stage_layout"},
      {"recipe.stage", "stage_layout"},
      {"recipe.recompute", "recompute"},
      {"recipe.zigzag", "cp"},
      {"recipe.a2a", "cp_comm"},
      {"recipe.window", "cp_comm"},
      {"recipe.double_ring", "window"},
      {"recipe.cp_comm", "cp_comm"},
      {"recipe.shard", "shard_layout"},
      {"recipe.state_shards", "state_shards"},
      {"recipe.state", "state_sharding"},
      {"recipe.zero", "state_sharding"},
      {"recipe.precision", "precision"},
      {"recipe.fp8", "precision"},
      {"recipe.sequence", "sequence_length"},
      {"recipe.cp", "cp"},
  };
  if (find_parameter(problem.where) != nullptr) return problem.where;
  for (const auto& [code, key] : kRows) {
    if (problem.code.starts_with(code)) return std::string(key);
  }
  // Else the parameter whose key the rule names first.
  std::size_t first = std::string::npos;
  std::string row;
  for (const Parameter& parameter : parameters()) {
    const std::size_t at = problem.message.find(parameter.key);
    if (at < first) {
      first = at;
      row = parameter.key;
    }
  }
  return row;
}

}  // namespace cpfit::gui
