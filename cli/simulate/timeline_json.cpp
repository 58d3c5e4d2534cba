#include "cli/simulate/timeline_json.h"

#include <algorithm>
#include <cmath>

#include "sim/plan/timeline_summary.h"
#include "sim/timeline/lanes.h"

namespace cpfit::cli {

namespace {

double seconds(engine::Picoseconds time) { return engine::to_seconds(time).value(); }

Json row_json(const timeline::ExposureRow& row) {
  Json json;
  json["axis"] = row.axis == engine::TrafficAxis::kForeign ? "other job" : std::string(timeline::name_of(row.axis));
  json["pass"] = name_of(static_cast<SpanPass>(row.pass));
  json["layer"] = row.layer;
  json["transfers"] = row.transfers;
  json["bytes"] = std::llround(std::max(row.bytes_sent, row.bytes_received));
  json["bytes_sent"] = std::llround(row.bytes_sent);
  json["bytes_received"] = std::llround(row.bytes_received);
  json["busy_seconds"] = seconds(row.busy);
  json["hidden_seconds"] = seconds(row.hidden);
  json["exposed_seconds"] = seconds(row.exposed());
  json["running_seconds"] = seconds(row.running);
  json["waiting_seconds"] = seconds(row.waiting);
  json["slowed_kernel_seconds"] = seconds(row.stretch);
  return json;
}

Json ranks_json(const SimulatedStep& step, const StepTimeline& timeline) {
  Json list = Json::array();
  for (const timeline::RankAnswer& answer : timeline.answer.ranks) {
    const timeline::RankPlace& place = step.places[static_cast<std::size_t>(answer.rank)];
    list.push_back({{"rank", place.rank},
                    {"node", place.node},
                    {"stage", place.stage},
                    {"last_kernel_seconds", seconds(answer.last_kernel)},
                    {"last_activity_seconds", seconds(answer.last_activity)},
                    {"kernels", answer.kernels},
                    {"time", time_json(timeline::time_breakdown(answer.parts))}});
  }
  return list;
}

Json edges_json(const SimulatedStep& step, const timeline::History& history) {
  Json list = Json::array();
  for (const timeline::EdgeLoad& edge : timeline::edge_loads(history)) {
    list.push_back({{"axis", timeline::name_of(edge.axis)},
                    {"from_rank", step.places[static_cast<std::size_t>(edge.from)].rank},
                    {"to_rank", step.places[static_cast<std::size_t>(edge.to)].rank},
                    {"messages", edge.messages},
                    {"bytes", std::llround(edge.bytes)},
                    {"busy_seconds", seconds(edge.busy)}});
  }
  return list;
}

Json phases_json(const timeline::History& history) {
  const StepPhases phases = step_phases(history);
  return {{"filling_seconds", phases.filling.value()},
          {"steady_seconds", phases.steady.value()},
          {"draining_seconds", phases.draining.value()},
          {"update_seconds", phases.update.value()}};
}

/// The highest allocated peak of each stage; empty where memory was not followed.
Json memory_json(const SimulatedStep& step) {
  Json list = Json::array();
  for (const StagePeak& peak : stage_peaks(step.memory, step.now.step->ranks)) {
    Json parts = Json::array();
    for (const StagePeak::Part& part : peak.parts) {
      parts.push_back({{"name", part.name},
                       {"bytes", std::llround(part.bytes.value())},
                       {"tensors", part.tensors},
                       {"micro_batches", part.micro_batches}});
    }
    list.push_back({{"stage", peak.stage},
                    {"rank", step.places[static_cast<std::size_t>(peak.rank)].rank},
                    {"peak_bytes", std::llround(peak.peak.value())},
                    {"resident_bytes", std::llround(peak.resident.value())},
                    {"at_seconds", peak.time.value()},
                    {"alive", parts}});
  }
  return list;
}

Json path_json(const timeline::History& history) {
  Json list = Json::array();
  for (const PathPart& part : path_parts(history, timeline::critical_path(history))) {
    list.push_back({{"kind", part.name},
                    {"communication", part.communication},
                    {"links", part.links},
                    {"seconds", part.time.value()},
                    {"stretch_seconds", part.stretch.value()}});
  }
  return list;
}

}  // namespace

void add_timeline(Json& candidate, const SimulatedStep& step) {
  const StepTimeline& now = step.now;
  const timeline::History history = now.history();
  candidate["links"] = to_json(now.links);
  Json& json = candidate["timeline"];
  json["screen_step_seconds"] = now.screened.time.step().value();
  json["ratio"] = now.ratio();
  json["disagreement"] = step.quiet ? "" : disagreement(now, kAgreement);
  json["last_rank"] = step.places[static_cast<std::size_t>(now.answer.rank)].rank;
  json["notes"] = step.notes;
  json["ranks"] = ranks_json(step, now);
  json["axes"] = Json::array();
  for (const timeline::ExposureRow& row : now.answer.ranks[static_cast<std::size_t>(now.answer.rank)].rows)
    json["axes"].push_back(row_json(row));
  json["edges"] = edges_json(step, history);
  json["critical_path"] = path_json(history);
  json["phases"] = phases_json(history);
  if (step.first) {
    json["first_step"] = {{"step_seconds", step.first->step().value()},
                          {"time", time_json(*step.first)},
                          {"more_than_steady_seconds", (step.first->step() - now.candidate.time.step()).value()}};
  }
  json["memory"] = memory_json(step);
  json["simulated_ranks"] = now.step->ranks.count();
  json["micro_batches"] = now.step->micro_batches;
  json["folded"] = now.folded;
  json["activities"] = now.step->program.activities.size();
  json["events"] = now.run->events;
  if (!step.quiet) return;
  const StepTimeline& quiet = *step.quiet;
  candidate["disturbances"] = step.disturbances;
  Json& before = candidate["quiet"];
  before["step_seconds"] = quiet.candidate.time.step().value();
  before["time"] = time_json(quiet.candidate.time);
  before["exposed_seconds_per_layer"] = (quiet.candidate.cp.forward_exposed + quiet.candidate.cp.backward_exposed).value();
  before["links"] = to_json(quiet.links);
  before["ranks"] = ranks_json(step, quiet);
  candidate["link_changes"] = Json::array();
  for (const LinkShift& shift : link_shifts(quiet.links, now.links)) {
    candidate["link_changes"].push_back({{"from", shift.from},
                                         {"to", shift.to},
                                         {"quiet_bytes", std::llround(shift.before.bytes.value())},
                                         {"bytes", std::llround(shift.after.bytes.value())},
                                         {"quiet_busy_seconds", shift.before.busy.value()},
                                         {"busy_seconds", shift.after.busy.value()}});
  }
}

}  // namespace cpfit::cli
