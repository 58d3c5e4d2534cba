#include "sim/plan/detail.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "model/quantity/text.h"
#include "sim/plan/link_loads.h"
#include "sim/plan/sources.h"
#include "sim/screen/attention_cost.h"
#include "sim/screen/real_tokens.h"

namespace cpfit {

namespace {

constexpr std::size_t kLinksShown = 24;

std::string name_of_evidence(Evidence evidence) {
  switch (evidence) {
    case Evidence::kMeasured:
      return "measured";
    case Evidence::kFitted:
      return "fitted";
    case Evidence::kAssumed:
      return "assumed";
  }
  return "assumed";
}

}  // namespace

std::vector<std::pair<std::string, std::string>> sources_of(const ScreenContext& context, const Recipe& recipe) {
  const operators::RankShape shape = operators::rank_shape(context, recipe);
  const auto tokens = static_cast<std::int64_t>(shape.tokens);
  const double h = static_cast<double>(context.model.hidden);
  std::vector<std::pair<std::string, std::string>> sources;
  const auto add = [&](const char* what, Evidence evidence) { sources.emplace_back(what, name_of_evidence(evidence)); };
  add("gemm", operators::linear_forward(context, shape, h, h, shape.math).evidence);
  AttentionShape attention;
  attention.q_len = attention.kv_len = std::max<std::int64_t>(1, tokens / recipe.micro_batch);
  attention.pairs = 0.5 * static_cast<double>(attention.q_len) * static_cast<double>(attention.q_len);
  attention.heads = std::max<std::int64_t>(1, static_cast<std::int64_t>(shape.heads));
  attention.kv_heads = std::max<std::int64_t>(1, static_cast<std::int64_t>(shape.kv_heads));
  attention.head_dim = context.model.head_dim;
  add("attention", attention_time(context.rates, attention, AttentionPass::kForward, shape.library).evidence);
  add("memory_bound", memory_time(context.rates, Bytes(1e9), 1).evidence);
  const GroupShapes groups = group_shapes(recipe);
  if (recipe.cp > 1) {
    const GroupNetwork& net = context.network.at(groups.cp_ring.size > 1 ? groups.cp_ring : groups.cp_inner);
    add("cp_links", message_time(context.rates, net.ring.slowest, net.ring.rate, net.ring.latency, Bytes(1e8)).evidence);
  }
  if (recipe.tp > 1) {
    const GroupNetwork& net = context.network.at(groups.tp);
    add("tp_links", collective_time(context.rates, CollectiveKind::kAllGather, net.collective_link, net.collective_rate,
                                    net.ring.latency, recipe.tp, Bytes(1e8))
                        .evidence);
  }
  return sources;
}

std::vector<std::string> remarks_on(const ScreenContext& context, const Recipe& recipe) {
  std::vector<std::string> remarks, assumed;
  for (const auto& [what, evidence] : sources_of(context, recipe)) {
    if (evidence != name_of_evidence(Evidence::kAssumed)) continue;
    if (what == "gemm") assumed.emplace_back("matrix products");
    if (what == "attention") assumed.emplace_back("attention");
    if (what == "memory_bound" && !assumed.empty()) assumed.emplace_back("memory-bound operators");  // alone they are little
  }
  if (!assumed.empty()) {
    remarks.push_back(
        fmt::format("rates of {} on {} are assumed, scaled from another GPU's by the data sheets: measure them with cpfit-bench",
                    fmt::join(assumed, ", "), context.cluster.gpu.name));
  }
  if (recipe.cp > 1 && recipe.cp_comm == CpComm::kP2p && context.rules.kv_exchange == KvExchange::kAllGatherOnce)
    remarks.push_back(fmt::format("{} gathers K and V of all ranks at once where its name says p2p: a trace shows all-gathers",
                                  context.rules.name));
  constexpr double kMostlyPadding = 0.5;
  if (const double real = occupancy(context.training); real < kMostlyPadding)
    remarks.push_back(
        fmt::format("documents fill {} of a sequence: the rest is padding, computed all the same", print_share(real)));
  return remarks;
}

CandidateDetail detail_of(Workbench& bench, const Training& training, const Candidate& candidate) {
  CandidateDetail detail;
  const Recipe& recipe = candidate.recipe;
  bench.prepare(recipe);
  const ScreenContext context = bench.context(training);
  const Outcome<ResolvedLayout> layout = resolve_layout(context.model, recipe);
  if (!layout.ok()) return detail;
  const MemoryCase at{context.model, training, recipe, context.rules, context.cluster.gpu, *layout};
  for (std::int32_t stage = 0; stage < recipe.pp; ++stage) {
    detail.stages.push_back(stage_memory(at, stage));
    detail.verdicts.push_back(judge(detail.stages.back(), context.cluster.gpu, context.requirements.memory_margin_share,
                                    context.rules.reserved_spread));
  }

  const operators::RankShape shape = operators::rank_shape(context, recipe);
  detail.shard.tokens_per_rank = training.sequence.count() / recipe.cp;
  detail.shard.heads = shape.heads / a2a_ranks(recipe);
  detail.shard.kv_heads = std::max(1.0, shape.kv_heads / a2a_ranks(recipe));
  detail.shard.occupancy = occupancy(training);
  for (const operators::StepRectangle& step : operators::attention_rectangles(context, recipe)) {
    detail.shard.q_len.push_back(step.q_len);
    detail.shard.kv_len.push_back(step.kv_len);
  }
  detail.links = link_loads(context, recipe, kLinksShown);
  detail.sources = sources_of(context, recipe);
  return detail;
}

StageLedger ledger_of(Workbench& bench, const Training& training, const Candidate& candidate, std::int32_t stage) {
  const ScreenContext context = bench.context(training);
  const Outcome<ResolvedLayout> layout = resolve_layout(context.model, candidate.recipe);
  if (!layout.ok()) return {};
  return stage_ledger({context.model, training, candidate.recipe, context.rules, context.cluster.gpu, *layout}, stage);
}

}  // namespace cpfit
