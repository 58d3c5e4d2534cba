#include "cli/json.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <tuple>

#include "cli/terminal.h"
#include "model/quantity/text.h"
#include "model/rates/dense_peak.h"
#include "model/transformer/parameters.h"

namespace cpfit::cli {

namespace {

/// Bytes are whole numbers for a reader; the model keeps fractions of a byte only on the way.
std::int64_t whole(Bytes bytes) { return std::llround(bytes.value()); }

/// Whole bytes that add up to `total` exactly: what rounding leaves over (at most half a byte a part) goes to the largest.
std::vector<std::int64_t> whole_parts(const std::vector<Bytes>& parts, std::int64_t total) {
  std::vector<std::int64_t> rounded;
  std::int64_t left = total;
  for (const Bytes part : parts) {
    rounded.push_back(whole(part));
    left -= rounded.back();
  }
  if (!rounded.empty() && std::abs(left) <= static_cast<std::int64_t>(parts.size()))
    *std::max_element(rounded.begin(), rounded.end()) += left;
  return rounded;
}

Json summary_json(const std::vector<MetricSummary>& metrics) {
  Json summary = Json::object();
  for (const MetricSummary& metric : metrics) {
    summary[std::string(name_of(metric.metric))] = {{"rows", metric.rows},
                                                    {"mape", metric.mape},
                                                    {"median_abs_error", metric.median_abs_error},
                                                    {"max_abs_error", metric.max_abs_error},
                                                    {"bias", metric.bias},
                                                    {"coverage", metric.coverage}};
  }
  return summary;
}

/// Recipes are keyed by their short text in a plan; people get the one with every key.
std::string complete(const std::string& short_text) {
  const Outcome<Recipe> recipe = parse_recipe(short_text, Recipe{});
  return recipe.ok() ? to_complete_text(*recipe) : short_text;
}

Json confirmation_json(const TimelineConfirmation& entry) {
  if (!entry.simulated()) return {{"skipped", entry.skipped}};
  return {{"step_seconds", entry.step.value()},
          {"ratio", entry.step / entry.screen_step},
          {"exposed_cp_seconds", entry.exposed_cp.value()},
          {"exposed_seconds_per_layer", entry.exposed_per_layer.value()},
          {"disagreement", entry.disagreement},
          {"activities", entry.activities}};
}

/// A plan's candidates with as much detail as there is: computed, or else the links that the plan kept.
class Detailed {
 public:
  Detailed(const PlanResult& result, const DetailSource& detail_of, const ProofSource& proof_of)
      : result_(result), detail_of_(detail_of), proof_of_(proof_of) {}
  [[nodiscard]] Json operator()(const Candidate& candidate) const {
    const std::optional<CandidateDetail> detail = detail_of_ ? detail_of_(candidate) : std::nullopt;
    Json json = to_json(candidate, detail ? &*detail : nullptr);
    if (proof_of_) std::tie(json["proof"], json["proof_of"]) = proof_of_(candidate.recipe);
    const std::string text = to_text(candidate.recipe);
    for (const TimelineConfirmation& entry : result_.confirmations) {
      if (entry.recipe == text) json["timeline"] = confirmation_json(entry);
    }
    if (detail) return json;
    for (const auto& [recipe, links] : result_.links) {
      if (recipe == text) json["links"] = to_json(links);
    }
    return json;
  }
  [[nodiscard]] Json operator()(const std::vector<Candidate>& candidates) const {
    Json list = Json::array();
    for (const Candidate& candidate : candidates) list.push_back((*this)(candidate));
    return list;
  }

 private:
  const PlanResult& result_;
  const DetailSource& detail_of_;
  const ProofSource& proof_of_;
};

}  // namespace

Json time_json(const TimeBreakdown& time) {
  Json json;
  json["step_seconds"] = time.step().value();
  json["compute"] = time.compute.value();
  json["exposed"] = {{"cp", time.exposed_cp.value()},
                     {"tp", time.exposed_tp.value()},
                     {"pp", time.exposed_pp.value()},
                     {"dp", time.exposed_dp.value()}};
  json["bubble"] = time.bubble.value();
  json["launch"] = time.launch.value();
  json["optimizer"] = time.optimizer.value();
  json["other"] = time.other.value();
  return json;
}

Json to_json(const StageMemory& memory, const MemoryVerdict* verdict) {
  Json json;
  if (verdict != nullptr) json["fits"] = name_of(verdict->fit);
  json["resident_bytes"] = whole(memory.resident);
  json["forward_peak_bytes"] = whole(memory.forward_peak);
  json["backward_peak_bytes"] = whole(memory.backward_peak);
  json["peak_bytes"] = whole(memory.peak);
  if (verdict != nullptr) json["peak_upper_bytes"] = whole(verdict->upper);
  json["reserved_bytes"] = whole(memory.reserved);
  json["device_bytes"] = whole(memory.device);
  if (verdict != nullptr) {
    json["capacity_bytes"] = whole(verdict->capacity);
    json["margin_bytes"] = whole(verdict->margin);
  }
  json["stage"] = memory.stage;
  json["cp_rank"] = memory.cp_rank;
  json["phase"] = name_of(memory.phase);
  const std::vector<std::int64_t> parts = whole_parts({memory.components.begin(), memory.components.end()}, whole(memory.device));
  Json components;
  for (std::size_t i = 0; i < parts.size(); ++i) components[std::string(name_of(static_cast<Component>(i)))] = parts[i];
  json["components"] = components;
  return json;
}

Json to_json(const std::vector<LinkLoad>& links) {
  Json list = Json::array();
  for (const LinkLoad& link : links) {
    list.push_back({{"from", link.from}, {"to", link.to}, {"bytes", whole(link.bytes)}, {"busy_seconds", link.busy.value()}});
  }
  return list;
}

Json to_json(const StageLedger& ledger) {
  Json json = to_json(ledger.summary, nullptr);
  std::vector<Bytes> bytes;
  for (const LedgerEntry& entry : ledger.entries) bytes.push_back(entry.bytes);
  const std::vector<std::int64_t> parts = whole_parts(bytes, whole(ledger.summary.device));
  json["entries"] = Json::array();
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const LedgerEntry& entry = ledger.entries[i];
    json["entries"].push_back({{"component", name_of(entry.component)},
                               {"tensor", entry.tensor},
                               {"formula", entry.formula},
                               {"source", entry.source},
                               {"bytes", parts[i]}});
  }
  return json;
}

Json to_json(const Candidate& candidate, const CandidateDetail* detail) {
  Json json;
  json["recipe"] = to_complete_text(candidate.recipe);
  json["degrees"] = {
      {"tp", candidate.recipe.tp}, {"cp", candidate.recipe.cp}, {"pp", candidate.recipe.pp}, {"dp", candidate.recipe.dp}};
  json["memory"] = to_json(candidate.memory, &candidate.verdict);
  json["step_seconds"] = candidate.time.step().value();
  json["step_seconds_low"] = candidate.step_low.value();
  json["step_seconds_high"] = candidate.step_high.value();
  json["tokens_per_second_per_gpu"] = candidate.tokens_per_second_per_gpu;
  json["mfu"] = candidate.mfu;
  json["hfu"] = candidate.hfu;
  json["flops_convention"] = "causal half of attention, head counted, recompute only in hfu, dense peak of the precision";
  json["time"] = time_json(candidate.time);
  json["exposed_seconds_per_layer"] = (candidate.cp.forward_exposed + candidate.cp.backward_exposed).value();
  json["cp"] = {{"forward_message_seconds", candidate.cp.forward_message.value()},
                {"backward_message_seconds", candidate.cp.backward_message.value()},
                {"forward_step_seconds", candidate.cp.forward_step_compute.value()},
                {"bytes_sent_per_layer", whole(candidate.cp.bytes_sent_per_layer)},
                {"crosses_node", candidate.cp.crosses_node}};
  if (detail != nullptr) {
    json["memory"]["stages"] = Json::array();
    for (std::size_t i = 0; i < detail->stages.size(); ++i)
      json["memory"]["stages"].push_back(to_json(detail->stages[i], &detail->verdicts[i]));
    json["shard"] = {{"tokens_per_rank", detail->shard.tokens_per_rank},
                     {"heads", detail->shard.heads},
                     {"kv_heads", detail->shard.kv_heads},
                     {"occupancy", detail->shard.occupancy},
                     {"q_len", detail->shard.q_len},
                     {"kv_len", detail->shard.kv_len}};
    json["links"] = to_json(detail->links);
    Json sources = Json::object();
    for (const auto& [what, evidence] : detail->sources) sources[what] = evidence;
    json["sources"] = sources;
  }
  json["in_range"] = candidate.in_range;
  json["status"] = name_of(candidate.status);
  json["reasons"] = candidate.reasons;
  json["differs"] = candidate.differs;
  json["proof"] = "none";
  return json;
}

Json to_json(const PlanResult& result, std::optional<std::int64_t> run, const DetailSource& detail_of,
             const ProofSource& proof_of) {
  const Detailed detailed(result, detail_of, proof_of);
  Json json;
  json["run"] = run ? Json(*run) : Json(nullptr);
  Json& verdict = json["verdict"];
  verdict["ship"] = result.ships ? detailed(result.ship) : Json(nullptr);
  verdict["control"] = result.has_control ? detailed(result.control) : Json(nullptr);
  verdict["answer"] = result.answer;
  json["neighbours"] = Json::array();
  for (const Neighbour& neighbour : result.neighbours) {
    json["neighbours"].push_back({{"recipe", to_complete_text(neighbour.candidate.recipe)},
                                  {"rule", neighbour.rule},
                                  {"amount", neighbour.amount},
                                  {"unit", neighbour.unit},
                                  {"sentence", neighbour.sentence},
                                  {"differs", neighbour.candidate.differs},
                                  {"reasons", neighbour.candidate.reasons}});
  }
  json["levers"] = Json::array();
  for (const Lever& lever : result.levers) {
    json["levers"].push_back({{"change", lever.change},
                              {"gains", lever.gains},
                              {"costs", lever.costs},
                              {"gain_share", lever.gain},
                              {"differs", lever.differs}});
  }
  json["crossover"] = {
      {"needed_at_tokens", result.crossover.needed_at_tokens > 0 ? Json(result.crossover.needed_at_tokens) : Json(nullptr)},
      {"faster_at_tokens", result.crossover.faster_at_tokens > 0 ? Json(result.crossover.faster_at_tokens) : Json(nullptr)},
      {"held_constant", result.crossover.held_constant}};
  json["candidates"] = detailed(result.candidates);
  json["front"] = detailed(result.front);
  json["controlled_sweep"] = Json::array();
  for (const SweepPoint& point : result.sweep) {
    Json entry = to_json(point.candidate);
    if (proof_of) std::tie(entry["proof"], entry["proof_of"]) = proof_of(point.candidate.recipe);
    entry["gpus"] = point.gpus;
    json["controlled_sweep"].push_back(entry);
  }
  json["ledgers"] = Json::array();
  for (const auto& [recipe, ledger] : result.ledgers) {
    Json entry = to_json(ledger);
    entry["recipe"] = complete(recipe);
    json["ledgers"].push_back(entry);
  }
  Json rejected = Json::object();
  for (const auto& [rule, count] : result.stats.rejected_by_rule) rejected[rule] = count;
  json["stats"] = {{"considered", result.stats.considered},
                   {"legal", result.stats.legal},
                   {"evaluated", result.stats.evaluated},
                   {"seconds", result.stats.seconds},
                   {"timeline_seconds", result.stats.timeline_seconds},
                   {"rejected_by_rule", rejected}};
  Json inputs = Json::object();
  for (const auto& [name, hash] : result.provenance.input_hashes) inputs[name] = hash;
  json["provenance"] = {{"tool_version", result.provenance.tool_version},
                        {"scenario", result.provenance.scenario_path},
                        {"rule_set", result.provenance.rule_set},
                        {"rates", result.provenance.rates_version},
                        {"input_sha256", inputs}};
  return json;
}

Json to_json(const ValidationResult& result) {
  Json json;
  json["file"] = result.path;
  json["rows"] = Json::array();
  for (const ValidationRow& row : result.rows) {
    json["rows"].push_back({{"line", row.line},
                            {"label", row.label},
                            {"metric", name_of(row.metric)},
                            {"measured", row.measured},
                            {"predicted", row.predicted},
                            {"low", row.low},
                            {"high", row.high},
                            {"error", row.error},
                            {"group", row.group},
                            {"searched", row.searched}});
  }
  Json summary = summary_json(result.summary);
  if (result.out_of_memory) {
    const OutOfMemoryScore& score = *result.out_of_memory;
    summary["out_of_memory"] = {{"rows", score.rows},
                                {"decided", score.decided},
                                {"right", score.right},
                                {"at_risk", score.at_risk},
                                {"dead_called_fits", score.dead_called_fits},
                                {"live_called_oom", score.live_called_oom}};
  }
  json["summary"] = summary;
  json["groups"] = Json::object();
  for (const GroupSummary& group : result.groups) json["groups"][group.group] = summary_json(group.summary);
  json["skipped"] = Json::array();
  for (const SkippedRow& row : result.skipped) json["skipped"].push_back({{"line", row.line}, {"reason", row.reason}});
  return json;
}

Json to_json(const MeasuredRun& run, const Candidate& taken) {
  const Architecture& model = run.scenario.model;
  const Training& training = run.scenario.training;
  Json json;
  json["line"] = run.line;
  json["conditions"] = run.conditions;
  json["model"] = model.name;
  json["parameters"] = count_parameters(model).total();
  json["layers"] = model.layers;
  json["hidden"] = model.hidden;
  json["heads"] = model.heads;
  json["sequence"] = training.sequence.count();
  json["global_batch"] = training.global_batch;
  json["gpus"] = run.gpus > 0 ? run.gpus : run.scenario.cluster.gpus();
  json["gpu"] = run.scenario.cluster.gpu.name;
  json["gpu_memory_bytes"] = run.scenario.cluster.gpu.memory.value();
  json["peak_flops_per_second"] = dense_peak(run.scenario.cluster.gpu, taken.recipe.precision).value();
  for (const auto& [key, degree] : {std::pair{"tp", taken.recipe.tp},
                                    {"cp", taken.recipe.cp},
                                    {"pp", taken.recipe.pp},
                                    {"dp", taken.recipe.dp},
                                    {"micro_batch", taken.recipe.micro_batch}})
    json[key] = degree;
  json["sequence_parallel"] = taken.recipe.sequence_parallel;
  json["state_sharding"] = std::string(name_of(taken.recipe.state_sharding));
  json["recompute"] = to_text(taken.recipe.recompute);
  json["precision"] = std::string(name_of(taken.recipe.precision));
  json["recipe"] = to_text(taken.recipe);
  json["unknown"] = run.unknown;
  json["group"] = run.group;
  json["died"] = run.died ? Json(*run.died) : Json();
  json["verdict"] = std::string(name_of(taken.verdict.fit));
  json["in_range"] = taken.in_range;
  json["time"] = time_json(taken.time);
  return json;
}

void print_json(Json body) {
  Json json;
  json["schema_version"] = kSchemaVersion;
  json.update(body);
  // Names and paths are bytes of a person's choosing; what is not UTF-8 in them must not keep the result back.
  write_result(json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n");
}

}  // namespace cpfit::cli
