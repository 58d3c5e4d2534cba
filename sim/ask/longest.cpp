#include "sim/ask/longest.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "model/quantity/counted.h"
#include "model/quantity/text.h"
#include "sim/ask/fit_space.h"
#include "sim/plan/verdict.h"

namespace cpfit::ask {

namespace {

struct Longest {
  std::int64_t tokens = 0;
  Recipe recipe;
};

/// Longest multiple of 2 * cp * tp above `known` that fits; 0 when none does.
std::int64_t longest_of(const Workbench& bench, const Recipe& recipe, const ResolvedLayout& layout, std::int64_t known) {
  const std::int64_t unit = std::int64_t{2} * recipe.cp * recipe.tp;
  const auto fits = [&](std::int64_t units) {
    const Training training = with_length(bench.scenario().training, units * unit);
    return fit_of({bench.scenario(), training, bench.rules()}, recipe, layout).fit == Fit::kFits;
  };
  std::int64_t low = known / unit + 1, high = low;
  if (low * unit > kLongestTried || !fits(low)) return 0;
  while (high * unit <= kLongestTried && fits(high)) {
    low = high;
    high *= 2;
  }
  while (high - low > 1) {  // fits at low, not at high
    const std::int64_t middle = low + (high - low) / 2;
    (middle * unit <= kLongestTried && fits(middle) ? low : high) = middle;
  }
  return low * unit;
}

/// The length at which legality is asked: one that every cut divides.
Training divisible(const Training& training, std::int64_t unit) {
  return with_length(training, std::max<std::int64_t>(1, training.sequence.count() / unit) * unit);
}

Problems violations(const Workbench& bench, const Recipe& recipe) {
  const Training training = divisible(bench.scenario().training, std::int64_t{2} * recipe.cp * recipe.tp);
  return explain_violations(bench.legality(training, recipe));
}

}  // namespace

LongestAnswer longest_sequence(Workbench& bench, const std::optional<Recipe>& fixed) {
  const Scenario& scenario = bench.scenario();
  const Axes axes = leanest_axes(scenario, bench.rules());
  LongestAnswer answer;
  answer.gpus = scenario.cluster.gpus();
  answer.sequences_per_step = scenario.training.global_batch;
  answer.asked = scenario.training.sequence.count();

  std::map<std::pair<std::int32_t, Recompute>, Longest> found;
  const auto consider = [&](const Recipe& recipe, const ResolvedLayout& layout) {
    Longest& best = found[{recipe.cp, recipe.recompute}];
    if (const std::int64_t tokens = longest_of(bench, recipe, layout, best.tokens); tokens > best.tokens) best = {tokens, recipe};
    return true;
  };
  std::map<std::int32_t, std::string> reasons;
  std::vector<Recompute> policies = axes.recompute;
  if (fixed) {
    policies = {fixed->recompute};
    for (const std::int32_t cp : axes.cp) {
      const std::optional<Recipe> recipe = with_cp(*fixed, cp, answer.gpus);
      if (!recipe) {
        reasons[cp] = fmt::format("tp {} x cp {} x pp {} does not divide {} GPUs", fixed->tp, cp, fixed->pp, answer.gpus);
        continue;
      }
      const Outcome<ResolvedLayout> layout = resolve_layout(scenario.model, *recipe);
      if (const Problems broken = violations(bench, *recipe); !broken.empty() || !layout.ok()) {
        reasons[cp] = (broken.empty() ? layout.problems() : broken).front().message;
        continue;
      }
      (void)consider(*recipe, *layout);
    }
  } else {
    const Training training = divisible(scenario.training, std::int64_t{2} * answer.gpus);
    for_each_legal({scenario, training, bench.rules()}, axes, consider);
  }

  for (const std::int32_t cp : axes.cp) {
    LongestRow row;
    row.cp = cp;
    bool legal = false;
    for (const Recompute& policy : policies) {
      const auto best = found.find({cp, policy});
      legal = legal || best != found.end();
      const std::int64_t tokens = best == found.end() ? 0 : best->second.tokens;
      row.by_recompute.emplace_back(policy, tokens);
      if (tokens <= row.tokens) continue;
      row.tokens = tokens;
      Outcome<Candidate> candidate = bench.evaluate(with_length(scenario.training, tokens), best->second.recipe);
      if (candidate.ok()) row.candidate = std::move(candidate).value();
    }
    if (row.tokens == 0) {
      const auto reason = reasons.find(cp);
      row.reason = reason != reasons.end() ? reason->second
                   : legal                 ? "no length fits: what does not depend on the sequence fills the memory"
                                           : "no recipe of the search space is legal";
    } else if (!answer.best || row.tokens > answer.rows[*answer.best].tokens) {
      answer.best = answer.rows.size();
    }
    answer.rows.push_back(std::move(row));
  }
  return answer;
}

std::string sentence_of(const LongestAnswer& answer) {
  if (!answer.best) return fmt::format("No sequence fits {} with the margin asked for.", counted(answer.gpus, "GPU"));
  const LongestRow& row = answer.rows[*answer.best];
  std::string text =
      fmt::format("The longest sequence that fits {} with margin is {} tokens ({} times the {} asked for), at cp={}",
                  counted(answer.gpus, "GPU"), row.tokens,
                  fmt::format("{:.2f}", static_cast<double>(row.tokens) / static_cast<double>(answer.asked)),
                  print_tokens(Tokens(answer.asked)), row.cp);
  if (row.candidate) {
    const Recipe& recipe = row.candidate->recipe;
    text += fmt::format(", tp={}, pp={}, dp={}, recompute={}", recipe.tp, recipe.pp, recipe.dp, to_text(recipe.recompute));
    text += fmt::format("; {} of the step is exposed CP traffic", print_share(exposed_cp_share(*row.candidate)));
  }
  return text + fmt::format(". {} per step, as the scenario has {}.", counted(answer.sequences_per_step, "sequence"),
                            answer.sequences_per_step == 1 ? "it" : "them");
}

}  // namespace cpfit::ask
