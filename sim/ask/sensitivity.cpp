#include "sim/ask/sensitivity.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "model/quantity/percent.h"
#include "model/quantity/text.h"
#include "model/recipe/recipe_names.h"
#include "sim/ask/fit_space.h"
#include "sim/plan/search.h"
#include "sim/plan/uncertainty.h"
#include "sim/plan/verdict.h"

namespace cpfit::ask {

namespace {

constexpr double kSlower = 0.1;    // a rate is asked 10 % slower
constexpr double kNothing = 5e-5;  // a relative change below this prints as none
constexpr std::string_view kRates = "rates.";
const std::vector<std::string> kTrainingKeys = {"sequence_length", "global_batch", "grad_dtype"};
const std::vector<std::string> kRequirementKeys = {"memory_margin", "exposed_budget"};

bool holds(const std::vector<std::string>& keys, std::string_view key) {
  return std::find(keys.begin(), keys.end(), key) != keys.end();
}

std::string value_of(const Recipe& recipe, std::string_view key) {
  const std::string complete = "," + to_complete_text(recipe) + ",";
  const std::string wanted = fmt::format(",{}=", key);
  const std::size_t at = complete.find(wanted);
  if (at == std::string::npos) return {};
  const std::size_t begin = at + wanted.size();
  return complete.substr(begin, complete.find(',', begin) - begin);
}

/// Why a key has no effect whatever its value, at this recipe; empty when it may have one.
std::string why_without_effect(const Recipe& recipe, std::string_view key) {
  struct Row {
    std::string_view keys;
    bool idle;
    const char* because;
  };
  const std::int64_t shards = std::int64_t{recipe.dp} * recipe.cp;
  const Row rows[] = {
      {" dp ", true, "dp is what tp, cp and pp leave of the GPUs; vary one of them"},
      {" cp_comm shard_layout a2a_degree window ", recipe.cp == 1, "cp is 1: no rank exchanges keys and values"},
      {" a2a_degree ", recipe.cp_comm != CpComm::kA2aP2p, "only a2a+p2p has an inner all-to-all to size"},
      {" window ", recipe.cp_comm != CpComm::kDoubleRing, "only double_ring has an inner ring"},
      {" sequence_parallel overlap_tp ", recipe.tp == 1, "tp is 1: there are no tensor ranks to cut over"},
      {" overlap_tp ", !recipe.sequence_parallel, "it hides the gathers of sequence_parallel, which is off"},
      {" vpp stage_layout schedule overlap_p2p ", recipe.pp == 1, "pp is 1: there is one stage"},
      {" overlap_p2p ", recipe.vpp == 1 && recipe.schedule != Schedule::kZeroBubble,
       "only the interleaved schedule and zb_h1 overlap their messages"},
      {" schedule ", recipe.vpp > 1, "vpp above 1 is the interleaved schedule"},
      {" state_sharding state_shards overlap_grad_reduce overlap_param_gather ", shards == 1,
       "dp * cp is 1: no other rank shares states or gradients"},
      {" state_shards ", recipe.state_sharding == StateSharding::kNone, "whole states: no rank shares them with another"},
      {" overlap_param_gather ", recipe.state_sharding == StateSharding::kNone, "whole states: nothing is gathered"},
      {" rank_order ", recipe.world() <= 1, "there is one rank"},
  };
  const std::string wanted = fmt::format(" {} ", key);
  for (const Row& row : rows) {
    if (row.idle && row.keys.find(wanted) != std::string_view::npos) return row.because;
  }
  return {};
}

/// Other values worth trying: neighbours of a number, every name of a choice.
std::vector<std::string> values_to_try(const Recipe& recipe, std::string_view key) {
  const std::string now = value_of(recipe, key);
  std::vector<std::string> values;
  const auto names = [&](const std::vector<std::string>& all) { values = all; };
  if (key == "cp_comm") names(names_of<CpComm>());
  if (key == "shard_layout") names(names_of<ShardLayout>());
  if (key == "state_sharding") names(names_of<StateSharding>());
  if (key == "state_shards") {
    const std::int64_t shards = shard_ranks(recipe);
    if (shards % 2 == 0) values.push_back(std::to_string(shards / 2));
    if (shard_replicas(recipe) > 2 && shard_replicas(recipe) % 2 == 0) values.push_back(std::to_string(shards * 2));
    values.emplace_back("all");
  }
  if (key == "precision") names(names_of<Precision>());
  if (key == "schedule") names({"1f1b", "gpipe", "zb_h1"});
  if (key == "recompute") names({"none", "selective", "mlp", "full"});
  if (key == "stage_layout") names({"even", "embedding_loss", "cost_balanced"});
  if (key == "rank_order") names({"tp-cp-dp-pp", "tp-cp-pp-dp", "tp-dp-cp-pp", "cp-tp-dp-pp", "tp-pp-cp-dp"});
  if (key == "framework") {
    for (const RuleSet& rules : framework_presets()) values.push_back(rules.name);
  }
  for (const std::string_view flag :
       {"sequence_parallel", "overlap_tp", "overlap_grad_reduce", "overlap_param_gather", "overlap_p2p"}) {
    if (key == flag) names({"true", "false"});
  }
  if (values.empty()) {
    const std::int64_t number = std::strtoll(now.c_str(), nullptr, 10);
    if (number > 1 && number % 2 == 0) values.push_back(std::to_string(number / 2));
    if (number > 0) values.push_back(std::to_string(number * 2));
  }
  std::erase(values, now);
  return values;
}

void compare(const Candidate& base, Candidate candidate, Variation& variation) {
  variation.speed_change = candidate.tokens_per_second_per_gpu / base.tokens_per_second_per_gpu - 1.0;
  variation.memory_change = candidate.memory.device - base.memory.device;
  variation.fit_changes = candidate.verdict.fit != base.verdict.fit;
  variation.candidate = std::move(candidate);
}

Variation tried(Workbench& bench, const Training& training, const Candidate& base, const Recipe& recipe, std::string value) {
  Variation variation;
  variation.value = std::move(value);
  Outcome<Candidate> candidate = bench.evaluate(training, recipe);
  if (candidate.ok()) {
    compare(base, std::move(candidate).value(), variation);
  } else {
    variation.reason = candidate.problems().front().message;
  }
  return variation;
}

void vary_recipe(Workbench& bench, const RateSet& rates, Sensitivity& answer) {
  const Scenario& scenario = bench.scenario();
  for (const std::string& value : values_to_try(answer.base.recipe, answer.key)) {
    const Outcome<Recipe> parsed = parse_recipe(fmt::format("{}={}", answer.key, value), answer.base.recipe);
    if (!parsed.ok()) {
      answer.variations.push_back(
          {fmt::format("{}={}", answer.key, value), std::nullopt, parsed.problems().front().message, 0, {}, false});
      continue;
    }
    Recipe recipe = *parsed;
    std::string name = fmt::format("{}={}", answer.key, value);
    if (answer.key == "tp" || answer.key == "cp" || answer.key == "pp") {
      if (const std::optional<Recipe> filled = with_cp(recipe, recipe.cp, scenario.cluster.gpus())) recipe = *filled;
      if (answer.key == "pp" && recipe.pp == 1) recipe.vpp = 1;
      if (recipe.dp != answer.base.recipe.dp) name += fmt::format(" (dp={})", recipe.dp);
    }
    if (answer.key != "framework") {
      answer.variations.push_back(tried(bench, scenario.training, answer.base, recipe, name));
      continue;
    }
    Scenario other = scenario;
    other.base = recipe;
    Outcome<Workbench> built = Workbench::build(other, rates);
    if (built.ok()) answer.variations.push_back(tried(built.value(), scenario.training, answer.base, recipe, name));
  }
}

void vary_training(Workbench& bench, Sensitivity& answer) {
  const Training& now = bench.scenario().training;
  const auto add = [&](const Training& training, const std::string& value) {
    answer.variations.push_back(tried(bench, training, answer.base, answer.base.recipe, value));
  };
  if (answer.key == "grad_dtype") {
    answer.now = name_of(now.grad_dtype);
    Training other = now;
    other.grad_dtype = now.grad_dtype == GradDtype::kFp32 ? GradDtype::kBf16 : GradDtype::kFp32;
    add(other, fmt::format("grad_dtype={}", name_of(other.grad_dtype)));
  } else if (answer.key == "sequence_length") {
    answer.now = print_tokens(now.sequence);
    for (const std::int64_t tokens : {now.sequence.count() / 2, now.sequence.count() * 2})
      add(with_length(now, tokens), fmt::format("sequence_length={}", print_tokens(Tokens(tokens))));
  } else {
    answer.now = std::to_string(now.global_batch);
    for (const std::int64_t batch : {now.global_batch / 2, now.global_batch * 2}) {
      if (batch < 1) continue;
      Training other = now;
      other.global_batch = batch;
      add(other, fmt::format("global_batch={}", batch));
    }
  }
}

/// Requirements do not change a recipe's figures but which recipe ships.
void vary_requirement(const Workbench& bench, Sensitivity& answer) {
  const Scenario& scenario = bench.scenario();
  const bool margin = answer.key == "memory_margin";
  const double now = margin ? scenario.requirements.memory_margin_share : scenario.requirements.exposed_budget_share;
  answer.now = given_share_text(now);
  const auto ship_at = [&](double share) -> std::optional<Candidate> {
    Scenario changed = scenario;
    (margin ? changed.requirements.memory_margin_share : changed.requirements.exposed_budget_share) = share;
    Workbench other = bench.with(changed);
    SearchResult found = search(other, scenario.training, resolve_axes(changed, other.rules()), {});
    const std::optional<std::size_t> ship = choose_ship(found.candidates, changed.requirements);
    if (!ship) return std::nullopt;
    return found.candidates[*ship];
  };
  const std::optional<Candidate> ships = ship_at(now);
  bool same = true;
  for (const double share : {0.0, now / 2, now * 2, now * 4}) {
    if (share == now || share > 1.0) continue;
    Variation variation;
    variation.value = fmt::format("{}={}", answer.key, given_share_text(share));
    if (std::optional<Candidate> ship = ship_at(share)) {
      same = same && ships && ship->recipe == ships->recipe;
      compare(ships ? *ships : answer.base, std::move(*ship), variation);
    } else {
      same = same && !ships;
      variation.reason = "nothing ships";
    }
    answer.variations.push_back(std::move(variation));
  }
  if (ships) answer.base = *ships;
  if (!same) return;
  answer.because =
      !ships   ? std::string("nothing ships at any of these values")
      : margin ? fmt::format("the same recipe ships: its upper bound leaves {} of the device", print_bytes(ships->verdict.margin))
               : fmt::format("the same recipe ships: it exposes {} of its step", print_share(exposed_cp_share(*ships)));
}

Problems vary_rate(Workbench& bench, Sensitivity& answer) {
  const std::string_view probe = std::string_view(answer.key).substr(kRates.size());
  const Outcome<StepUncertainty> uncertainty = step_uncertainty(bench, answer.base.recipe);
  if (!uncertainty.ok()) return uncertainty.problems();
  for (const UncertainSurface& surface : uncertainty->surfaces) {
    if (name_of(surface.probe) != probe) continue;
    Variation variation;
    variation.value = fmt::format("{} 10 % slower", surface.surface);
    variation.reason = fmt::format("{} and known to {}",
                                   surface.evidence == Evidence::kMeasured ? "measured"
                                   : surface.evidence == Evidence::kFitted ? "fitted"
                                                                           : "assumed",
                                   print_share(surface.sigma));
    variation.speed_change = 1.0 / (1.0 + kSlower * surface.sensitivity) - 1.0;
    answer.variations.push_back(std::move(variation));
  }
  return {};
}

bool moves(const Variation& variation) {
  return std::abs(variation.speed_change) > kNothing || variation.memory_change.value() != 0.0 || variation.fit_changes;
}

}  // namespace

std::vector<std::string> sensitivity_keys() {
  std::vector<std::string> keys = recipe_keys();
  keys.insert(keys.end(), kTrainingKeys.begin(), kTrainingKeys.end());
  keys.insert(keys.end(), kRequirementKeys.begin(), kRequirementKeys.end());
  for (const ProbeKind probe : {ProbeKind::kAttention, ProbeKind::kGemm, ProbeKind::kMemory, ProbeKind::kLaunch,
                                ProbeKind::kMessages, ProbeKind::kCollectives, ProbeKind::kOverlap}) {
    keys.push_back(fmt::format("{}{}", kRates, name_of(probe)));
  }
  return keys;
}

Outcome<Sensitivity> sensitivity(Workbench& bench, const RateSet& rates, const Recipe& base, std::string_view key) {
  if (!holds(sensitivity_keys(), key)) return unknown_word("ask.unknown_key", "", key, sensitivity_keys());
  Outcome<Candidate> evaluated = bench.evaluate(bench.scenario().training, base);
  if (!evaluated.ok()) return evaluated.problems();
  Sensitivity answer;
  answer.key = key;
  answer.base = std::move(evaluated).value();
  answer.now = value_of(base, key);
  if (holds(kRequirementKeys, key)) {
    vary_requirement(bench, answer);
    return answer;
  }
  if (key.starts_with(kRates)) {
    if (Problems problems = vary_rate(bench, answer); !problems.empty()) return problems;
    if (answer.variations.empty()) answer.because = "the step does not feel any surface of this kind";
    return answer;
  }
  if (holds(kTrainingKeys, key)) {
    vary_training(bench, answer);
  } else if (answer.because = why_without_effect(base, key); answer.because.empty()) {
    vary_recipe(bench, rates, answer);
  }
  if (!answer.because.empty()) return answer;
  if (std::none_of(answer.variations.begin(), answer.variations.end(), moves)) {
    const bool legal = std::any_of(answer.variations.begin(), answer.variations.end(),
                                   [](const Variation& v) { return v.candidate.has_value(); });
    answer.because = legal ? "its figures are the same at every value tried: everything it moves is hidden or absent here"
                           : "no other value is legal here";
  }
  return answer;
}

std::string sentence_of(const Sensitivity& answer) {
  if (!answer.matters()) return fmt::format("{} changes nothing because {}.", answer.key, answer.because);
  const Variation* fastest = nullptr;
  const Variation* heaviest = nullptr;
  for (const Variation& variation : answer.variations) {
    if (fastest == nullptr || std::abs(variation.speed_change) > std::abs(fastest->speed_change)) fastest = &variation;
    if (heaviest == nullptr || std::abs(variation.memory_change.value()) > std::abs(heaviest->memory_change.value()))
      heaviest = &variation;
  }
  std::string text = fmt::format("{} matters", answer.key);
  const char* before = ": ";
  if (std::abs(fastest->speed_change) >= 0.001) {
    text += fmt::format("{}{} changes tokens/s per GPU by {}{}", before, fastest->value, fastest->speed_change < 0 ? "-" : "+",
                        print_share(std::abs(fastest->speed_change)));
    before = "; ";
  }
  if (heaviest->memory_change.value() != 0.0) {
    text += fmt::format("{}{} changes the memory of the worst stage by {}{}", before, heaviest->value,
                        heaviest->memory_change.value() < 0 ? "-" : "+",
                        print_bytes(Bytes(std::abs(heaviest->memory_change.value()))));
  }
  const auto refused = std::find_if(answer.variations.begin(), answer.variations.end(),
                                    [](const Variation& v) { return !v.candidate && !v.reason.empty(); });
  if (std::string_view(before) == ": " && heaviest->memory_change.value() == 0.0 && refused != answer.variations.end())
    text += fmt::format(": at {} {}", refused->value, refused->reason);
  const bool turns =
      std::any_of(answer.variations.begin(), answer.variations.end(), [](const Variation& v) { return v.fit_changes; });
  return text + (turns ? "; whether it fits depends on it." : ".");
}

}  // namespace cpfit::ask
