#include "sim/evaluate/possible_recipes.h"

#include <algorithm>
#include <string_view>

namespace cpfit {

namespace {

constexpr std::int32_t kLargestTp = 16;          // two nodes: no published dense run goes further without saying so
constexpr std::int32_t kLargestMicroBatch = 64;  // sequences

bool is_unknown(const MeasuredRun& run, std::string_view field) {
  return std::find(run.unknown.begin(), run.unknown.end(), field) != run.unknown.end();
}

std::vector<std::int32_t> powers_of_two(std::int64_t last) {
  std::vector<std::int32_t> values;
  for (std::int64_t value = 1; value <= last; value *= 2) values.push_back(static_cast<std::int32_t>(value));
  return values;
}

std::vector<std::int32_t> divisors(std::int64_t number) {
  std::vector<std::int32_t> values;
  for (std::int64_t value = 1; value <= number; ++value) {
    if (number % value == 0) values.push_back(static_cast<std::int32_t>(value));
  }
  return values;
}

bool offers(const RuleSet& rules, LayoutKind kind) {
  return std::find(rules.layout_kinds.begin(), rules.layout_kinds.end(), kind) != rules.layout_kinds.end();
}

/// Sets the layout that pp * vpp chunks allow; false when none does. Even where it divides, else embedding and loss counted as
/// layers, else split points as even as they can be with the longer chunks behind the first one.
bool lay_out(const MeasuredRun& run, const RuleSet& rules, Recipe& recipe) {
  if (recipe.stage_layout.kind != LayoutKind::kEven) return true;
  const std::int64_t chunks = std::int64_t{recipe.pp} * recipe.vpp, layers = run.scenario.model.layers;
  if (layers % chunks == 0) return true;
  if (offers(rules, LayoutKind::kEmbeddingAndLossAsLayers)) {
    recipe.stage_layout.kind = LayoutKind::kEmbeddingAndLossAsLayers;
    return (layers + 2) % chunks == 0;
  }
  if (!offers(rules, LayoutKind::kExplicit) || layers < chunks) return false;
  recipe.stage_layout.kind = LayoutKind::kExplicit;
  recipe.stage_layout.layers.assign(static_cast<std::size_t>(chunks), static_cast<std::int32_t>(layers / chunks));
  for (std::int64_t i = 0; i < layers % chunks; ++i) ++recipe.stage_layout.layers[static_cast<std::size_t>(i + 1)];
  return true;
}

/// Model chunks per stage: what divides the layers of a stage evenly, or with embedding and loss counted as layers.
std::vector<std::int32_t> chunk_counts(const MeasuredRun& run, std::int32_t pp) {
  if (pp == 1) return {1};
  if (!is_unknown(run, "vpp")) return {run.scenario.base.vpp};
  auto counts = divisors(std::max<std::int64_t>(1, run.scenario.model.layers / pp));
  for (const std::int32_t count : divisors(std::max<std::int64_t>(1, (run.scenario.model.layers + 2) / pp)))
    counts.push_back(count);
  std::sort(counts.begin(), counts.end());
  counts.erase(std::unique(counts.begin(), counts.end()), counts.end());
  return counts;
}

std::vector<Recompute> recomputes(const MeasuredRun& run, const RuleSet& rules) {
  if (!is_unknown(run, "recompute")) return {run.scenario.base.recompute};
  std::vector<Recompute> values = {Recompute{}};
  // Dropping the attention core changes nothing where a flash kernel keeps no scores.
  if (rules.selective_recompute != SelectiveRecompute::kCoreAttention) values.push_back({RecomputeKind::kSelective, 0});
  values.push_back({RecomputeKind::kFull, 0});
  return values;
}

/// Ways to split cp into a head exchange inside and a ring outside: what divides the ranks and the heads of one tensor rank.
std::vector<Recipe> exchanges(const MeasuredRun& run, const Recipe& recipe) {
  if (!is_unknown(run, "a2a_degree") || recipe.cp == 1) return {recipe};
  std::vector<Recipe> recipes;
  for (const std::int32_t degree : divisors(recipe.cp)) {
    if (run.scenario.model.heads / recipe.tp % degree != 0) continue;
    Recipe split = recipe;
    split.a2a_degree = degree;
    split.cp_comm = degree == recipe.cp ? CpComm::kA2a : degree == 1 ? CpComm::kP2p : CpComm::kA2aP2p;
    recipes.push_back(split);
  }
  return recipes;
}

}  // namespace

std::vector<Recipe> possible_recipes(const MeasuredRun& run, const RuleSet& rules) {
  const Recipe& base = run.scenario.base;
  const Training& training = run.scenario.training;
  const std::int64_t gpus = run.gpus > 0 ? run.gpus : run.scenario.cluster.gpus();
  std::vector<Recipe> recipes;
  const auto tps = is_unknown(run, "tp") ? powers_of_two(std::min<std::int64_t>({kLargestTp, gpus, run.scenario.model.heads}))
                                         : std::vector<std::int32_t>{base.tp};
  const auto pps = is_unknown(run, "pp") ? divisors(run.scenario.model.layers) : std::vector<std::int32_t>{base.pp};
  for (const std::int32_t tp : tps) {
    for (const std::int32_t pp : pps) {
      const std::int64_t group = std::int64_t{tp} * pp * base.cp;
      if (group > gpus || gpus % group != 0) continue;
      Recipe recipe = base;
      recipe.tp = tp;
      recipe.pp = pp;
      recipe.dp = static_cast<std::int32_t>(gpus / group);
      if (training.global_batch % recipe.dp != 0) continue;
      const std::int64_t per_rank = training.global_batch / recipe.dp;
      const auto vpps = chunk_counts(run, pp);
      const auto micro_batches = is_unknown(run, "micro_batch")
                                     ? powers_of_two(std::min<std::int64_t>(kLargestMicroBatch, per_rank))
                                     : std::vector<std::int32_t>{base.micro_batch};
      for (const std::int32_t vpp : vpps) {
        recipe.vpp = vpp;
        recipe.schedule = vpp > 1                             ? Schedule::kInterleaved
                          : base.schedule == Schedule::kGpipe ? Schedule::kGpipe
                                                              : Schedule::kOneFOneB;
        recipe.stage_layout = base.stage_layout;
        if (!lay_out(run, rules, recipe)) continue;
        for (const std::int32_t micro_batch : micro_batches) {
          if (per_rank % micro_batch != 0) continue;
          recipe.micro_batch = micro_batch;
          for (const Recompute& recompute : recomputes(run, rules)) {
            recipe.recompute = recompute;
            for (const Recipe& split : exchanges(run, recipe)) recipes.push_back(split);
          }
        }
      }
    }
  }
  return recipes;
}

}  // namespace cpfit
