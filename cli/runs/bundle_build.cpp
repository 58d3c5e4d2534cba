#include "cli/runs/bundle_build.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "cli/terminal.h"
#include "cli/verify/proof.h"
#include "model/cluster/topology_text.h"
#include "model/presets/embedded.h"
#include "model/presets/entries.h"
#include "model/quantity/counted.h"
#include "model/quantity/hash.h"
#include "model/quantity/text.h"
#include "model/rates/overlay.h"
#include "model/recipe/rank_grid.h"
#include "sim/plan/lengths.h"
#include "sim/plan/link_loads.h"
#include "sim/plan/placement.h"
#include "sim/plan/verdict.h"

namespace cpfit::cli {

namespace {

constexpr std::size_t kLinksKept = 24;  // busiest, as a plan keeps them

template <class Number>
std::string number(Number value) {
  return fmt::format("{}", value);
}

std::string yes_no(bool value) { return value ? "yes" : "no"; }

std::string degrees_text(const Recipe& recipe) {
  return fmt::format("cp={} tp={} pp={} dp={}", recipe.cp, recipe.tp, recipe.pp, recipe.dp);
}

NamedTexts model_texts(const Architecture& model) {
  return {{"name", model.name},
          {"layers", number(model.layers)},
          {"hidden", number(model.hidden)},
          {"ffn_hidden", number(model.ffn_hidden)},
          {"heads", number(model.heads)},
          {"kv_heads", number(model.kv_heads)},
          {"head_dim", number(model.head_dim)},
          {"vocab", number(model.vocab)},
          {"max_positions", number(model.max_positions)},
          {"gated_mlp", yes_no(model.gated())},
          {"tied_embeddings", yes_no(model.tied_embeddings)},
          {"biases", fmt::format("qkv {}, attention output {}, mlp {}", yes_no(model.qkv_bias),
                                 yes_no(model.attention_output_bias), yes_no(model.mlp_bias))},
          {"norms_per_layer", number(model.norms_per_layer)},
          {"sliding_window_tokens", number(model.sliding_window)},
          {"window_period", number(model.window_period)},
          {"source", model.source}};
}

std::string mask_text(const Mask& mask) {
  switch (mask.kind) {
    case MaskKind::kCausal:
      return "causal";
    case MaskKind::kFull:
      return "full";
    case MaskKind::kSlidingWindow:
      return fmt::format("window of {} tokens", mask.window);
    case MaskKind::kDocuments:
      break;
  }
  std::string text = "documents:";
  for (const DocumentClass& one : mask.documents) text += fmt::format(" {} of {} tokens;", one.count, one.length);
  text.pop_back();
  return text;
}

NamedTexts sequence_texts(const Training& training) {
  return {{"sequence_tokens", number(training.sequence.count())},
          {"global_batch_sequences", number(training.global_batch)},
          {"tokens_per_step", number(training.sequence.count() * training.global_batch)},
          {"mask", mask_text(training.mask)},
          {"cuda_graphs", training.cuda_graphs ? "yes" : "no"},
          {"vocab_divisor", number(training.vocab_divisor)},
          {"gradients", training.grad_dtype == GradDtype::kFp32 ? "fp32" : "bf16"}};
}

NamedTexts implementation_texts(const Recipe& recipe, const RuleSet& rules, const ProofNeed& need) {
  return {{"cp_comm", std::string(name_of(recipe.cp_comm))},
          {"a2a_ranks", number(a2a_ranks(recipe))},
          {"window_ranks", number(recipe.window)},
          {"shard_layout", std::string(name_of(recipe.shard_layout))},
          {"order_of_sums", need.method.empty() ? "attention is not cut" : need.method},
          {"rule_set", rules.name},
          {"rule_set_version", rules.version},
          {"rule_set_source", rules.source}};
}

std::string known(const std::string& version) { return version.empty() ? "unknown" : version; }

NamedTexts software_texts(const Calibration& calibration, const StatedSoftware& stated, const BundledEquivalence& equivalence,
                          const std::string& tool_version) {
  const MeasuredMachine& machine = calibration.machine;
  NamedTexts texts = {{"cpfit", tool_version}};
  for (const auto& [name, version] :
       {std::pair("driver", &machine.driver), std::pair("cuda", &machine.cuda), std::pair("nccl", &machine.nccl),
        std::pair("cudnn", &machine.cudnn), std::pair("mpi", &machine.mpi), std::pair("blas", &machine.blas)}) {
    texts.emplace_back(fmt::format("calibration {}", name), known(*version));
  }
  for (const auto& [name, version] :
       {std::pair("driver", &stated.driver), std::pair("cuda", &stated.cuda), std::pair("nccl", &stated.nccl),
        std::pair("cudnn", &stated.cudnn), std::pair("mpi", &stated.mpi)}) {
    texts.emplace_back(fmt::format("stated {}", name), known(*version));
  }
  texts.emplace_back("verified implementation", equivalence.proofs.empty()
                                                    ? "unknown"
                                                    : fmt::format("{} {}", equivalence.proofs.front().implementation,
                                                                  known(equivalence.proofs.front().implementation_version)));
  return texts;
}

NamedTexts cluster_texts(const Cluster& cluster) {
  return {{"name", cluster.name},
          {"gpu", cluster.gpu.name},
          {"gpu_memory_usable_bytes", number(cluster.gpu.memory_usable.value())},
          {"gpus", number(cluster.gpus())},
          {"nodes", number(cluster.nodes)},
          {"gpus_per_node", number(cluster.gpus_per_node)},
          {"scale_up_domain_gpus", number(cluster.scale_up_domain)},
          {"source", cluster.source}};
}

std::vector<std::string> topology_lines(const Cluster& cluster) {
  std::vector<std::string> lines;
  const std::string text = print_links(link_table(*cluster.topology));
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    lines.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return lines;
}

std::vector<BundledRank> mesh_of(const Recipe& recipe, const Cluster& cluster) {
  const std::int64_t domain = std::max(cluster.gpus_per_node, cluster.scale_up_domain);
  const Placement as_numbered{recipe.rank_order, {}, ""};
  std::vector<BundledRank> mesh;
  mesh.reserve(static_cast<std::size_t>(recipe.world()));
  for (std::int64_t rank = 0; rank < recipe.world(); ++rank) {
    const Coordinate at = coordinate_of(recipe, rank);
    const std::int64_t gpu = gpu_of(as_numbered, domain, rank);
    mesh.push_back(
        {rank, at.tp, at.cp, at.dp, at.pp, gpu / cluster.gpus_per_node, static_cast<std::int32_t>(gpu % cluster.gpus_per_node)});
  }
  return mesh;
}

BundledRecipe bundled(const std::string& role, const Candidate& candidate, std::int64_t gpus, const std::string& sentence) {
  return {role,     to_complete_text(candidate.recipe),
          gpus,     std::string(name_of(candidate.verdict.fit)),
          sentence, figures_of(candidate)};
}

Scenario with_base(const Scenario& scenario, const Recipe& recipe) {
  Scenario changed = scenario;
  changed.base = recipe;  // its framework decides which rules hold
  return changed;
}

}  // namespace

Outcome<Candidate> evaluate_recipe(const Scenario& scenario, const RateSet& rates, const Recipe& recipe) {
  const Scenario question = with_base(scenario, recipe);
  Outcome<Workbench> bench = Workbench::build(question, rates);
  if (!bench.ok()) return bench.problems();
  return bench.value().evaluate(scenario.training, recipe);
}

Outcome<Candidate> evaluate_control(const Scenario& scenario, const RateSet& rates, const Recipe& recipe) {
  if (recipe.world() == scenario.cluster.gpus()) return evaluate_recipe(scenario, rates, recipe);
  std::string reason = "the controlled sweep does not lead to it";
  const std::vector<std::int64_t> length = {scenario.training.sequence.count()};
  for (SweepPointOrReason& point : controlled_sweep(with_base(scenario, recipe), rates, recipe, {recipe.cp}, length)) {
    if (point.candidate && point.candidate->recipe == recipe) return std::move(*point.candidate);
    if (!point.reason.empty()) reason = point.reason;
  }
  return Problem{"recipe.sweep", to_text(recipe), reason, "choose another recipe"};
}

std::string figures_sentence(const Candidate& candidate) {
  return fmt::format("{}: needs {} of {} on stage {} in {}; {} per step ({} to {})", degrees_text(candidate.recipe),
                     print_bytes(candidate.memory.device), print_bytes(candidate.verdict.capacity), candidate.memory.stage,
                     name_of(candidate.memory.phase), print_time(candidate.time.step()), print_time(candidate.step_low),
                     print_time(candidate.step_high));
}

std::string control_sentence(const std::string& role, const Candidate& control, const Candidate& beside,
                             const Requirements& requirements) {
  const bool other_cluster = control.recipe.world() != beside.recipe.world();  // a point of the controlled sweep
  const std::string name =
      degrees_text(control.recipe) + (other_cluster ? " on " + counted(control.recipe.world(), "GPU") : std::string());
  if (role == "out_of_memory") {
    return fmt::format("{} needs {} of {}: it misses by {} on stage {} in {}", name, print_bytes(control.memory.device),
                       print_bytes(control.verdict.capacity), print_bytes(control.memory.device - control.verdict.capacity),
                       control.memory.stage, name_of(control.memory.phase));
  }
  if (role == "no_margin") {
    const Verdict verdict = judge_candidate(control, requirements);
    return fmt::format("{} needs {} of {}: it is short of its margin by {} on stage {} in {}", name,
                       print_bytes(control.memory.device), print_bytes(control.verdict.capacity),
                       print_bytes(Bytes(verdict.amount)), control.memory.stage, name_of(control.memory.phase));
  }
  if (role == "without_cp") {
    const double longer = control.time.step() / beside.time.step() - 1.0;
    return fmt::format("{} fits as well: it needs {} of {}, and its step is {} {}", name, print_bytes(control.memory.device),
                       print_bytes(control.verdict.capacity), print_share(std::abs(longer)), longer >= 0 ? "longer" : "shorter");
  }
  // Controls of the sweep have other GPUs: what each GPU gets done is compared, which is the step at equal GPUs.
  const double less = 1.0 - control.tokens_per_second_per_gpu / beside.tokens_per_second_per_gpu;
  return fmt::format("{} exposes {} of its step to CP traffic ({} with cp={}) and does {} {} tokens per second and GPU", name,
                     percent(exposed_cp_share(control)), percent(exposed_cp_share(beside)), beside.recipe.cp,
                     percent(std::abs(less)), less >= 0 ? "fewer" : "more");
}

std::set<std::string> preset_names(const Scenario& scenario, const std::string& framework) {
  const Gpu& gpu = scenario.cluster.gpu;
  std::set<std::string> names = {gpu.name, gpu.generation, scenario.cluster.name, scenario.model.name};
  for (const std::string& link : links_of(gpu)) {
    names.insert(link);
    names.insert(link.substr(0, link.find_last_not_of("0123456789") + 1));  // slowdowns are kept by family
  }
  const auto follow = [&](const char* file, const std::string& path) {
    const Outcome<std::vector<TextEntry>> entries = toml_entries(embedded_file(file));
    if (!entries.ok()) return std::string();
    const auto found = std::ranges::find(*entries, path, &TextEntry::path);
    if (found == entries->end()) return std::string();
    std::string value = found->value;  // in quotes, as TOML writes it
    std::erase_if(value, [](char c) { return c == '\'' || c == '"'; });
    return value;
  };
  for (std::string rules = framework; !rules.empty() && names.insert(rules).second;)
    rules = follow("presets/frameworks.toml", "framework[" + rules + "].base");
  for (const char* part : {"host", "fabric"}) {
    const std::string name = follow("presets/clusters.toml", fmt::format("cluster[{}].{}", scenario.cluster.name, part));
    if (!name.empty()) names.insert(name);
  }
  return names;
}

NamedTexts preset_entries(const Scenario& scenario, const Recipe& recipe) {
  const std::set<std::string> names = preset_names(scenario, recipe.framework);
  NamedTexts texts;
  for (const char* file : {"models", "gpus", "clusters", "frameworks"}) {
    const std::string path = fmt::format("presets/{}.toml", file);
    const Outcome<std::vector<TextEntry>> entries = toml_entries(embedded_file(path));
    if (!entries.ok()) continue;
    for (const TextEntry& entry : *entries) {
      if (speaks_of(entry.path, names)) texts.emplace_back(path + ": " + entry.path, entry.value);
    }
  }
  return texts;
}

Outcome<Bundle> make_bundle(BundleMaterial material) {
  const Scenario& scenario = material.scenario;
  const Recipe& recipe = material.recipe;
  const Outcome<RuleSet> rules = find_framework(recipe.framework);
  if (!rules.ok()) return rules.problems();
  if (recipe.world() > kMaxBundledRanks)
    return Problem{"bundle.mesh", "", fmt::format("{} ranks are too many to list one by one", recipe.world()),
                   fmt::format("a bundle holds at most {}", kMaxBundledRanks)};
  const Scenario question = with_base(scenario, recipe);
  Outcome<Workbench> bench = Workbench::build(question, material.rates);
  if (!bench.ok()) return bench.problems();
  const Outcome<Candidate> candidate = bench.value().evaluate(scenario.training, recipe);
  if (!candidate.ok()) return candidate.problems();

  const ProofNeed need = proof_need(recipe, *rules, scenario.model, scenario.training);
  Bundle bundle;
  bundle.tool_version = material.tool_version;
  bundle.scenario_name = scenario.name;
  bundle.scenario = {scenario.path, scenario.text};
  for (const ScenarioInput& input : scenario.inputs) bundle.files.push_back({input.path, input.text});
  bundle.equivalence = std::move(material.equivalence);
  bundle.equivalence.method = need.method;
  bundle.equivalence.layout = need.layout;
  bundle.equivalence.dtype = need.dtype;
  bundle.equivalence.masks = need.masks;
  bundle.model = model_texts(scenario.model);
  bundle.sequence = sequence_texts(scenario.training);
  bundle.implementation = implementation_texts(recipe, *rules, need);
  bundle.software = software_texts(material.calibration, scenario.software, bundle.equivalence, material.tool_version);
  bundle.cluster = cluster_texts(scenario.cluster);
  bundle.topology = topology_lines(scenario.cluster);
  bundle.inputs = std::move(material.inputs);
  bundle.entries = preset_entries(scenario, recipe);
  bundle.rates_version = material.rates.version();
  bundle.calibration_name = material.calibration.name;
  bundle.calibration_id = material.calibration.id;
  bundle.calibration = calibration_toml(material.calibration);
  bundle.placement = fmt::format("GPUs as numbered, rank order {}", to_text(recipe.rank_order));
  bundle.mesh = mesh_of(recipe, scenario.cluster);
  bundle.predicted = bundled(material.role, *candidate, scenario.cluster.gpus(), figures_sentence(*candidate));
  for (const auto& [role, control] : material.controls) {
    const Outcome<Candidate> evaluated = evaluate_control(scenario, material.rates, control);
    if (!evaluated.ok()) return evaluated.problems();
    bundle.controls.push_back(
        bundled(role, *evaluated, control.world(), control_sentence(role, *evaluated, *candidate, scenario.requirements)));
  }
  bundle.missing_controls = std::move(material.missing_controls);
  bundle.links = link_loads(bench.value().context(scenario.training), recipe, kLinksKept);
  return bundle;
}

}  // namespace cpfit::cli
