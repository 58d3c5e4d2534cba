#include "sim/plan/search_space.h"

#include <algorithm>

#include "model/cluster/group_network.h"
#include "model/recipe/data_ranks.h"
#include "model/recipe/stage_layout.h"

namespace cpfit {

namespace {

constexpr std::int32_t kMaxAutoCp = 1024;  // ranks of one ring
constexpr std::int32_t kMaxAutoVpp = 12;   // chunks per stage; published runs go up to 12
constexpr std::int32_t kAutoMicroBatches[] = {1, 2, 4, 8};

template <class T>
bool contains(const std::vector<T>& values, T value) {
  return std::find(values.begin(), values.end(), value) != values.end();
}

/// Layouts to try when the scenario leaves the choice open: even, else ends counted as layers, else explicit ends.
std::vector<StageLayout> auto_layouts(const Scenario& scenario, const RuleSet& rules, std::int32_t pp, std::int32_t vpp) {
  const std::int64_t layers = scenario.model.layers;
  const std::int64_t chunks = std::int64_t{pp} * vpp;
  if (contains(rules.layout_kinds, LayoutKind::kEven) && layers % chunks == 0) return {StageLayout{}};
  if (contains(rules.layout_kinds, LayoutKind::kEmbeddingAndLossAsLayers) && pp > 1 && (layers + 2) % chunks == 0) {
    StageLayout layout;
    layout.kind = LayoutKind::kEmbeddingAndLossAsLayers;
    return {layout};
  }
  if (contains(rules.layout_kinds, LayoutKind::kCostBalanced) && vpp == 1) {
    StageLayout layout;
    layout.kind = LayoutKind::kCostBalanced;
    return {layout};
  }
  if (contains(rules.layout_kinds, LayoutKind::kFirstLast) && vpp == 1 && pp > 2) {
    const std::int64_t middle = (layers + pp - 1) / pp;
    const std::int64_t rest = layers - middle * (pp - 2);
    if (rest >= 2 && rest <= 2 * middle) {
      StageLayout layout;
      layout.kind = LayoutKind::kFirstLast;
      layout.first = static_cast<std::int32_t>((rest + 1) / 2);
      layout.last = static_cast<std::int32_t>(rest / 2);
      return {layout};
    }
  }
  return {};
}

/// State shardings to try. States of a group of one rank cannot be sharded: all choices coincide, and the scenario's own stands
/// for them (else a recipe would seem to differ from its control by a sharding that is none).
std::vector<StateSharding> shardings_for(const Scenario& scenario, const Axes& axes, const Recipe& recipe) {
  if (std::int64_t{recipe.dp} * recipe.cp > 1) return axes.state_sharding;
  const bool offered = contains(axes.state_sharding, scenario.base.state_sharding);
  return {offered ? scenario.base.state_sharding : axes.state_sharding.front()};
}

/// Ranks that share one copy of the states to try: those asked for, else all, and where their group leaves the scale-up domain as
/// many as fill one (gathers stay inside it, one sum of the rank's own part leaves), where the framework has that.
std::vector<std::int32_t> shards_for(const Scenario& scenario, const RuleSet& rules, const Axes& axes, const Recipe& recipe) {
  const std::int64_t ranks = std::int64_t{recipe.dp} * recipe.cp;
  if (recipe.state_sharding == StateSharding::kNone || ranks == 1) return {0};
  std::vector<std::int32_t> shards;
  for (const std::int32_t asked : axes.state_shards) {
    const std::int32_t value = asked == ranks ? 0 : asked;
    if (!contains(shards, value)) shards.push_back(value);
  }
  if (!shards.empty()) return shards;
  shards = {0};
  if (!contains(rules.partial_shardings, recipe.state_sharding)) return shards;
  const std::int64_t domain = domain_ranks(scenario.cluster);
  const GroupShape first = group_shape(recipe, cp_before_dp(recipe) ? Axis::kCp : Axis::kDp);
  const std::int64_t inside = domain % first.stride == 0 ? domain / first.stride : 0;  // of neighbours
  if (inside > 1 && inside < ranks && ranks % inside == 0) shards.push_back(static_cast<std::int32_t>(inside));
  return shards;
}

void add_strategies(const Scenario& scenario, const Axes& axes, const Recipe& recipe, std::vector<Recipe>& out) {
  if (recipe.cp == 1) {
    Recipe plain = recipe;
    plain.cp_comm = axes.cp_comm.empty() ? CpComm::kP2p : axes.cp_comm.front();
    plain.a2a_degree = 1;
    plain.window = 1;
    out.push_back(plain);
    return;
  }
  for (const CpComm comm : axes.cp_comm) {
    Recipe with = recipe;
    with.cp_comm = comm;
    with.a2a_degree = comm == CpComm::kA2a ? recipe.cp : 1;
    with.window = 1;
    if (comm != CpComm::kA2aP2p && comm != CpComm::kDoubleRing) {
      out.push_back(with);
      continue;
    }
    const std::vector<std::int32_t>& asked = comm == CpComm::kA2aP2p ? scenario.search.a2a_degree : scenario.search.window;
    for (const std::int32_t inner : asked.empty() ? divisors(recipe.cp, recipe.cp - 1) : asked) {
      if (inner < 2 || inner >= recipe.cp || recipe.cp % inner != 0) continue;
      (comm == CpComm::kA2aP2p ? with.a2a_degree : with.window) = inner;
      out.push_back(with);
    }
  }
}

}  // namespace

std::vector<std::int32_t> divisors(std::int64_t n, std::int64_t limit) {
  std::vector<std::int32_t> result;
  for (std::int64_t d = 1; d <= std::min(n, limit); ++d) {
    if (n % d == 0) result.push_back(static_cast<std::int32_t>(d));
  }
  return result;
}

Axes resolve_axes(const Scenario& scenario, const RuleSet& rules) {
  const SearchSpace& search = scenario.search;
  const std::int64_t gpus = scenario.cluster.gpus();
  Axes axes;
  const auto degrees = [&](const std::vector<std::int32_t>& asked, Axis axis, std::int64_t most) {
    if (!asked.empty()) return asked;
    return divisors(gpus, contains(rules.axes, axis) ? most : 1);
  };
  axes.tp = degrees(search.tp, Axis::kTp, scenario.cluster.scale_up_domain);
  axes.cp = degrees(search.cp, Axis::kCp, kMaxAutoCp);
  axes.pp = degrees(search.pp, Axis::kPp, std::min<std::int64_t>(scenario.model.layers, kMaxStages));
  axes.vpp = search.vpp;
  axes.micro_batch = search.micro_batch;
  if (axes.micro_batch.empty()) axes.micro_batch.assign(std::begin(kAutoMicroBatches), std::end(kAutoMicroBatches));
  axes.recompute = search.recompute;
  if (axes.recompute.empty()) {
    axes.recompute = {{RecomputeKind::kNone, 0}, {RecomputeKind::kSelective, 0}};
    if (rules.recompute_mlp) axes.recompute.push_back({RecomputeKind::kMlp, 0});
    axes.recompute.push_back({RecomputeKind::kFull, 0});
  }
  axes.state_sharding = !search.state_sharding.empty() ? search.state_sharding : rules.state_shardings;
  axes.state_shards = search.state_shards;
  axes.cp_comm = !search.cp_comm.empty() ? search.cp_comm : rules.cp_comms;
  axes.shard_layout = !search.shard_layout.empty() ? search.shard_layout : rules.shard_layouts;
  return axes;
}

std::vector<Recipe> outer_recipes(const Scenario& scenario, const Axes& axes) {
  std::vector<Recipe> recipes;
  const bool want_sequence_parallel = scenario.search.sequence_parallel.value_or(scenario.base.sequence_parallel);
  for (const std::int32_t tp : axes.tp) {
    for (const std::int32_t cp : axes.cp) {
      if (scenario.cluster.gpus() % (std::int64_t{tp} * cp) != 0) continue;
      for (const ShardLayout shard_layout : axes.shard_layout) {
        if (cp == 1 && shard_layout != axes.shard_layout.front()) continue;  // one rank holds everything: layouts coincide
        for (const std::int32_t micro_batch : axes.micro_batch) {
          Recipe recipe = scenario.base;
          recipe.tp = tp;
          recipe.cp = cp;
          recipe.pp = recipe.dp = recipe.vpp = 1;
          recipe.shard_layout = shard_layout;
          recipe.micro_batch = micro_batch;
          recipe.sequence_parallel = want_sequence_parallel;  // without effect at tp = 1
          add_strategies(scenario, axes, recipe, recipes);
        }
      }
    }
  }
  return recipes;
}

void for_each_completion(const Scenario& scenario, const RuleSet& rules, const Axes& axes, const Recipe& outer,
                         const std::function<void(const Recipe&)>& visit) {
  const std::int64_t gpus = scenario.cluster.gpus();
  Recipe recipe = outer;
  for (const std::int32_t pp : axes.pp) {
    const std::int64_t used = std::int64_t{outer.tp} * outer.cp * pp;
    if (gpus % used != 0) continue;
    recipe.pp = pp;
    recipe.dp = static_cast<std::int32_t>(gpus / used);
    if (!scenario.search.dp.empty() && !contains(scenario.search.dp, recipe.dp)) continue;
    // Chunks per stage: what was asked, else every divisor of the layers a stage would hold.
    std::vector<std::int32_t> chunks = axes.vpp;
    if (chunks.empty()) {
      chunks = {1};
      const std::int64_t per_stage = (scenario.model.layers + 2) / pp;
      for (std::int32_t v = 2; pp > 1 && v <= std::min<std::int64_t>(kMaxAutoVpp, per_stage); ++v) chunks.push_back(v);
    }
    for (const std::int32_t vpp : chunks) {
      recipe.vpp = vpp;
      recipe.schedule = vpp > 1                                            ? Schedule::kInterleaved
                        : scenario.base.schedule == Schedule::kInterleaved ? Schedule::kOneFOneB
                                                                           : scenario.base.schedule;
      const std::vector<StageLayout> layouts =
          !scenario.search.stage_layout.empty() ? scenario.search.stage_layout : auto_layouts(scenario, rules, pp, vpp);
      for (const StageLayout& layout : layouts) {
        recipe.stage_layout = layout;
        for (const Recompute& recompute : axes.recompute) {
          recipe.recompute = recompute;
          for (const StateSharding sharding : shardings_for(scenario, axes, recipe)) {
            recipe.state_sharding = sharding;
            for (const std::int32_t shards : shards_for(scenario, rules, axes, recipe)) {
              recipe.state_shards = shards;
              visit(recipe);
            }
          }
        }
      }
    }
  }
}

}  // namespace cpfit
