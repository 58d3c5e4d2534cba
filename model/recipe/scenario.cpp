#include "model/recipe/scenario.h"

#include <algorithm>
#include <cstring>
#include <filesystem>

#include "model/quantity/text.h"
#include "model/quantity/text_file.h"
#include "model/recipe/legality.h"
#include "model/recipe/scenario_files.h"
#include "model/recipe/scenario_sections.h"

namespace cpfit {

namespace {

using scenario::Reading;
using scenario::Section;

Outcome<toml::table> parsed(const std::string& text, const std::string& path) {
  try {
    return toml::parse(text, path);
  } catch (const toml::parse_error& error) {
    const toml::source_position at = error.source().begin;
    return Problem{"scenario.syntax", at ? fmt::format("{}:{}:{}", path, at.line, at.column) : path,
                   std::string(error.description()), "see docs/scenario.md for the format"};
  }
}

const toml::node* required(Section& top, std::string_view key, std::string_view example) {
  const toml::node* node = top.node(key);
  if (node == nullptr) {
    top.reading().problems.push_back(
        {"scenario.missing_key", top.reading().path, fmt::format("the scenario has no {}", key), fmt::format("add {}", example)});
  }
  return node;
}

/// What no recipe of this scenario could repair.
void check_together(const Scenario& read, const RuleSet& rules, const toml::node* training, Reading& reading) {
  const LegalityCase at = legality_case(read, rules, read.base);
  for (const LegalityRule& rule : legality_rules()) {
    if (rule.id != "precision_on_gpu" && rule.id != "positions") continue;
    if (rule.holds(at)) continue;
    const std::string nearest = rule.nearest(at);
    reading.report(*training, fmt::format("recipe.{}", rule.id), fmt::format("{}: {}", rule.what, rule.values(at)),
                   nearest.empty() ? std::string(rule.repair) : fmt::format("{}; {}", rule.repair, nearest));
  }
}

/// `files`: the only ones that the scenario can name; null: those of the file system.
Outcome<Scenario> read(const std::string& text, const std::string& path, const std::vector<ScenarioInput>* files) {
  Outcome<toml::table> document = parsed(text, path);
  if (!document) return document.problems();

  Reading reading{path, {}, {}, files};
  Section top(*document, "", reading);
  Scenario result;
  result.text = text;
  result.path = path;
  result.name = top.text("name").value_or(std::filesystem::path(path).stem().string());

  const toml::node* model_node = required(top, "model", "model = \"llama3-8b\"");
  const toml::node* cluster_node = required(top, "cluster", "cluster = {preset = \"dgx-h100\", nodes = 2}");
  const toml::node* training_node = required(top, "training", "a [training] table with sequence_length and global_batch");
  std::optional<Architecture> model;
  std::optional<Cluster> cluster;
  scenario::TrainingChoice choice;
  if (model_node != nullptr) model = scenario::read_model(*model_node, reading);
  if (cluster_node != nullptr) cluster = scenario::read_cluster(*cluster_node, reading);
  if (training_node != nullptr) {
    if (const toml::table* table = top.table("training")) choice = scenario::read_training(*table, reading);
  }
  result.base.precision = choice.precision;
  if (const toml::table* table = top.table("search")) result.search = scenario::read_search(*table, reading);
  if (choice.rules) {
    result.base.framework = choice.rules->name;
    scenario::take_offered(*choice.rules, result.base);
  }
  bool dp_named = result.search.dp.size() == 1;
  if (const toml::table* table = top.table("recipe")) {
    scenario::read_recipe_section(*table, result.base, reading);
    dp_named = dp_named || table->contains("dp");
  }
  scenario::take_singles(result.search, result.base);
  if (const toml::table* table = top.table("requirements")) {
    result.requirements = scenario::read_requirements(*table, cluster, reading);
  }
  if (const toml::table* table = top.table("software")) {
    Section section(*table, "software", reading);
    StatedSoftware& software = result.software;
    for (const auto& [key, version] :
         {std::pair("driver", &software.driver), std::pair("cuda", &software.cuda), std::pair("nccl", &software.nccl),
          std::pair("cudnn", &software.cudnn), std::pair("mpi", &software.mpi)}) {
      *version = section.text(key).value_or("");
    }
    section.finish();
  }
  top.finish();
  if (!reading.problems.empty()) return reading.problems;

  result.model = std::move(*model);
  result.cluster = std::move(*cluster);
  result.training = std::move(choice.training);
  for (auto& [file, content] : reading.inputs) result.inputs.push_back({std::move(file), std::move(content)});
  scenario::settle(result.cluster.gpus(), dp_named, result.base);
  check_together(result, *choice.rules, training_node, reading);
  if (!reading.problems.empty()) return reading.problems;
  return result;
}

}  // namespace

LegalityCase legality_case(const Scenario& scenario, const RuleSet& rules, const Recipe& recipe) {
  const Cluster& cluster = scenario.cluster;
  return {scenario.model, scenario.training, recipe,
          rules,          cluster.gpus(),    std::max(cluster.gpus_per_node, cluster.scale_up_domain),
          &cluster.gpu};
}

Outcome<Scenario> read_scenario(const std::string& text, const std::string& path) { return read(text, path, nullptr); }

Outcome<Scenario> read_scenario(const std::string& text, const std::string& path, const std::vector<ScenarioInput>& files) {
  return read(text, path, &files);
}

Outcome<Scenario> load_scenario(const std::string& path) {
  const Outcome<std::string> text = read_text_file(path, kMostWrittenBytes, "scenario.unreadable");
  if (!text) return text.problems();
  return read_scenario(*text, path);
}

}  // namespace cpfit
