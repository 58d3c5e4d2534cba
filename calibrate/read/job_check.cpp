#include "calibrate/read/job_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <initializer_list>

#include "calibrate/read/kernel_table.h"
#include "model/launch/argument_dump.h"
#include "model/launch/launch.h"

namespace cpfit {

namespace {

/// Whether a key changes anything in one of the two recipes: a choice between CP kinds means nothing at cp 1.
bool matters(const std::string& key, const Recipe& a, const Recipe& b) {
  const auto either = [&](auto holds) { return holds(a) || holds(b); };
  if (key == "framework") return false;
  if (key == "cp_comm" || key == "a2a_degree" || key == "window" || key == "shard_layout")
    return either([](const Recipe& r) { return r.cp > 1; });
  if (key == "sequence_parallel" || key == "overlap_tp") return either([](const Recipe& r) { return r.tp > 1; });
  if (key == "overlap_p2p" || key == "schedule" || key == "vpp") return either([](const Recipe& r) { return r.vpp > 1; });
  if (key == "stage_layout") return either([](const Recipe& r) { return r.pp > 1; });
  if (key == "overlap_param_gather" || key == "state_sharding" || key == "overlap_grad_reduce") {
    return either([](const Recipe& r) { return r.dp * r.cp > 1; }) &&
           (key != "overlap_param_gather" || either([](const Recipe& r) { return r.state_sharding != StateSharding::kNone; }));
  }
  if (key == "rank_order") return either([](const Recipe& r) { return r.pp > 1 && r.dp > 1; });
  return true;
}

/// The value of one key as --recipe writes it.
std::string value_of(const Recipe& recipe, const std::string& key) {
  const std::string text = "," + to_complete_text(recipe) + ",";
  const std::size_t at = text.find("," + key + "=");
  if (at == std::string::npos) return "?";
  const std::size_t begin = at + key.size() + 2;
  return text.substr(begin, text.find(',', begin) - begin);
}

class Checker {
 public:
  Checker(const Scenario& scenario, const Recipe& recipe) : scenario_(scenario), recipe_(recipe) {}

  void same(const std::string& where, const char* code, const std::string& what, std::optional<std::int64_t> logged,
            std::int64_t given, const char* repair) {
    if (!logged || *logged == given) return;
    problems.push_back({code, where, fmt::format("the job has {} {}, the prediction {}", *logged, what, given), repair});
  }

  /// Rules of one framework say nothing of another's job. Forks print Megatron's and DeepSpeed's lines too: only what cannot be
  /// is refused.
  void framework(const JobLog& log) {
    const std::string& given = recipe_.framework;
    const auto one_of = [&](std::initializer_list<std::string_view> prefixes) {
      return std::any_of(prefixes.begin(), prefixes.end(), [&](std::string_view prefix) { return given.starts_with(prefix); });
    };
    bool possible = true;
    std::string_view name = "megatron-core";
    switch (log.framework) {
      case JobFramework::kTorchtitan:
        possible = one_of({"torchtitan"});
        name = "torchtitan";
        break;
      case JobFramework::kNanotron:
        possible = one_of({"nanotron"});
        name = "nanotron";
        break;
      case JobFramework::kDeepspeed:
        possible = !one_of({"torchtitan", "nanotron", "megatron-core", "megatron-bridge", "nemo", "maxtext"});
        name = "deepspeed-ulysses";
        break;
      case JobFramework::kBridge:
        name = "megatron-bridge";
        [[fallthrough]];
      case JobFramework::kMegatron:
        possible = !one_of({"torchtitan", "nanotron", "deepspeed", "maxtext", "llm-foundry"});
        break;
    }
    if (possible) return;
    problems.push_back({"ingest.other_framework", log.path,
                        fmt::format("it is a job of {}, the prediction follows the rules of {}", name_of(log.framework), given),
                        fmt::format("name them: --recipe \"...,framework={}\"", name)});
  }

  void facts(const JobLog& log) {
    const JobFacts& facts = log.facts;
    same(log.path, "ingest.other_world", "GPUs", facts.world, recipe_.world(), "name the recipe that ran: --recipe");
    same(log.path, "ingest.other_sequence", "tokens per sequence", facts.sequence, scenario_.training.sequence.count(),
         "set [training] sequence_length of the scenario to the job's");
    std::optional<std::int64_t> batch = facts.global_batch;
    if (!log.attempts.empty()) {
      if (const std::int64_t logged = count_steps(log).global_batch; logged > 0) batch = logged;
    }
    same(log.path, "ingest.other_batch", "sequences per step", batch, scenario_.training.global_batch,
         "set [training] global_batch of the scenario to the job's");
    if (!facts.arguments.empty()) return model(log);  // the recipe in it is compared key by key
    same(log.path, "ingest.other_recipe", "sequences per micro-batch", facts.micro_batch, recipe_.micro_batch,
         "name the recipe that ran: --recipe");
    same(log.path, "ingest.other_recipe", "tensor ranks (tp)", facts.tp, recipe_.tp, "name the recipe that ran: --recipe");
    same(log.path, "ingest.other_recipe", "context ranks (cp)", facts.cp, recipe_.cp, "name the recipe that ran: --recipe");
    same(log.path, "ingest.other_recipe", "pipeline stages (pp)", facts.pp, recipe_.pp, "name the recipe that ran: --recipe");
  }

  void gpu(const std::string& where, const std::string& printed) {
    const std::string preset = printed.empty() ? std::string() : gpu_preset_of(printed);
    if (preset.empty() || preset == scenario_.cluster.gpu.name) return;
    problems.push_back(
        {"ingest.other_gpu", where,
         fmt::format("it ran on {} ({}), the scenario's cluster has {}", printed, preset, scenario_.cluster.gpu.name),
         "name the cluster that it ran on"});
  }

  void recipe(const std::string& where, const Recipe& logged) {
    std::string differing;
    for (const std::string& key : differences(logged, recipe_)) {
      if (!matters(key, logged, recipe_)) continue;
      differing += fmt::format("{}{}={} in the job, {} given", differing.empty() ? "" : "; ", key, value_of(logged, key),
                               value_of(recipe_, key));
    }
    if (differing.empty()) return;
    problems.push_back({"ingest.other_recipe", where, "another recipe ran: " + differing,
                        "leave --recipe away to take the job's, or name the job that ran it"});
  }

  Problems problems;

 private:
  void model(const JobLog& log) {
    const auto number = [&](const char* name) -> std::optional<std::int64_t> {
      const std::string text = value_in(log.facts.arguments, name);
      std::int64_t value = 0;
      const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
      if (text.empty() || error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
      return value;
    };
    const Architecture& model = scenario_.model;
    const char* repair = "name the model that was trained in the scenario";
    same(log.path, "ingest.other_model", "layers", number("num_layers"), model.layers, repair);
    same(log.path, "ingest.other_model", "hidden units", number("hidden_size"), model.hidden, repair);
    same(log.path, "ingest.other_model", "MLP units", number("ffn_hidden_size"), model.ffn_hidden, repair);
    same(log.path, "ingest.other_model", "query heads", number("num_attention_heads"), model.heads, repair);
    const bool grouped = value_in(log.facts.arguments, "group_query_attention") == "True";
    same(log.path, "ingest.other_model", "KV heads", grouped ? number("num_query_groups") : number("num_attention_heads"),
         model.kv_heads, repair);
  }

  const Scenario& scenario_;
  const Recipe& recipe_;
};

}  // namespace

Outcome<std::optional<Recipe>> recipe_in(const JobFiles& files, const Recipe& base) {
  for (const JobLog& log : files.logs) {
    if (log.facts.arguments.empty()) continue;
    if (value_in(log.facts.arguments, "use_torch_fsdp2") == "True") {
      return Problem{"ingest.unread_argument", log.path,
                     "the job shards its states with PyTorch's FSDP2 (use_torch_fsdp2), which no rule set of Megatron follows",
                     "nothing of this job can be compared with a recipe of Megatron"};
    }
    Outcome<LaunchReading> reading = read_launch(LaunchFormat::kMegatron, launch_text_of(log.facts.arguments), log.facts.world);
    if (!reading.ok()) {
      Problems problems = reading.problems();
      for (Problem& problem : problems)
        problem.where = log.path + ": its block of arguments" + (problem.where.empty() ? "" : ", ") + problem.where;
      return problems;
    }
    Recipe recipe = reading->recipe;
    for (const LaunchFormat format : {LaunchFormat::kMegatron, LaunchFormat::kBridge}) {
      if (starts(format, base.framework)) recipe.framework = base.framework;
    }
    return std::optional(recipe);
  }
  return std::optional<Recipe>();
}

Problems contradictions(const JobFiles& files, const Scenario& scenario, const Recipe& recipe) {
  Checker checker(scenario, recipe);
  for (const JobLog& log : files.logs) {
    checker.framework(log);
    checker.facts(log);
    checker.gpu(log.path, log.facts.gpu);
  }
  for (const KernelTrace& trace : files.traces) checker.gpu(trace.path, trace.gpu);
  const Outcome<std::optional<Recipe>> logged = recipe_in(files, recipe);
  if (!logged.ok()) {
    checker.problems.insert(checker.problems.end(), logged.problems().begin(), logged.problems().end());
  } else if (*logged) {
    checker.recipe("--recipe", **logged);
  }
  return std::move(checker.problems);
}

}  // namespace cpfit
