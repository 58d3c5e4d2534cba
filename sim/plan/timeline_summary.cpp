#include "sim/plan/timeline_summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "model/quantity/text.h"
#include "sim/timeline/lanes.h"

namespace cpfit {

namespace {

using engine::TrafficAxis;

/// "attention 3" -> "attention": the number of a ring step is no kind of its own.
std::string without_number(const std::string& name) {
  const std::size_t letter = name.find_last_not_of("0123456789");
  if (letter == std::string::npos || letter + 1 == name.size() || name[letter] != ' ') return name;
  return name.substr(0, letter);
}

std::string pass_name(engine::StepPass pass) {
  switch (pass) {
    case engine::StepPass::kForward:
      return "forward";
    case engine::StepPass::kBackward:
      return "backward";
    case engine::StepPass::kUpdate:
      break;
  }
  return "update";
}

Seconds exposed_of(const timeline::StepParts& parts, TrafficAxis axis) {
  timeline::StepParts copy = parts;
  return engine::to_seconds(copy.exposed(axis));
}

}  // namespace

std::vector<timeline::ExposureRow> by_axis_and_pass(const timeline::RankAnswer& answer) {
  std::map<std::pair<TrafficAxis, engine::StepPass>, timeline::ExposureRow> sums;
  for (const timeline::ExposureRow& row : answer.rows) {
    timeline::ExposureRow& sum = sums[{row.axis, row.pass}];
    sum.axis = row.axis;
    sum.pass = row.pass;
    sum.transfers += row.transfers;
    sum.bytes_sent += row.bytes_sent;
    sum.bytes_received += row.bytes_received;
    sum.busy += row.busy;
    sum.hidden += row.hidden;
    sum.running += row.running;
    sum.waiting += row.waiting;
    sum.stretch += row.stretch;
  }
  std::vector<timeline::ExposureRow> rows;
  for (const auto& [key, row] : sums) rows.push_back(row);
  return rows;
}

std::vector<AxisSpan> axis_spans(const timeline::StepAnswer& answer) {
  std::vector<AxisSpan> spans;
  for (const TrafficAxis axis : {TrafficAxis::kCp, TrafficAxis::kTp, TrafficAxis::kPp, TrafficAxis::kDp}) {
    AxisSpan span;
    span.axis = axis;
    bool occurs = false, first = true;
    for (const timeline::RankAnswer& rank : answer.ranks) {
      occurs = occurs || std::any_of(rank.rows.begin(), rank.rows.end(), [&](const auto& row) { return row.axis == axis; });
      const Seconds exposed = exposed_of(rank.parts, axis);
      if (first || exposed < span.least) span.least_rank = rank.rank, span.least = exposed;
      if (first || exposed > span.most) span.most_rank = rank.rank, span.most = exposed;
      first = false;
    }
    if (occurs) spans.push_back(span);
  }
  return spans;
}

std::vector<PathPart> path_parts(const timeline::History& history, const timeline::CriticalPath& path) {
  std::map<std::string, PathPart> parts;
  for (const timeline::CriticalSum& sum : path.sums) {
    const engine::Tag& tag = history.program().tags[sum.tag];
    const std::string_view axis = timeline::name_of(tag.axis);
    const std::string name =
        fmt::format("{}{}{}, {}", axis, axis.empty() ? "" : " ", without_number(tag.name), pass_name(tag.pass));
    PathPart& part = parts[name];
    part.name = name;
    part.communication = timeline::is_communication(tag);
    part.links += sum.links;
    part.time += engine::to_seconds(sum.time);
    part.stretch += engine::to_seconds(sum.stretch);
  }
  if (path.launch > 0) parts["host launches"] = {"host launches", false, 1, engine::to_seconds(path.launch), Seconds()};
  std::vector<PathPart> sorted;
  for (auto& [name, part] : parts) sorted.push_back(std::move(part));
  std::stable_sort(sorted.begin(), sorted.end(), [](const PathPart& a, const PathPart& b) { return a.time > b.time; });
  return sorted;
}

std::string path_sentence(const std::vector<PathPart>& parts) {
  Seconds step, communication, slowed;
  for (const PathPart& part : parts) {
    step += part.time;
    (part.communication ? communication : slowed) += part.communication ? part.time : part.stretch;
  }
  if (parts.empty() || step.value() <= 0.0) return {};
  const auto share = [&](Seconds time) { return fmt::format("{:.1f} %", 100.0 * (time / step)); };
  std::string text =
      fmt::format("To shorten the step, shorten \"{}\" first: it is {} of it.", parts.front().name, share(parts.front().time));
  const auto transfer = std::find_if(parts.begin(), parts.end(), [](const PathPart& part) { return part.communication; });
  if (transfer == parts.end() && slowed.value() <= 0.0)
    return text + " No communication lies on the path: a faster network gains nothing.";
  text += fmt::format(" Communication is {} of the path", share(communication));
  if (transfer != parts.end()) text += fmt::format(", most of it \"{}\"", transfer->name);
  return text + fmt::format(", and what slowed its kernels {}: a network of any speed gains no more than {}.", share(slowed),
                            share(communication + slowed));
}

StepPhases step_phases(const timeline::History& history) {
  engine::Picoseconds updated = history.step(), filled = 0, first_done = history.step(), last_done = 0;
  for (std::int32_t rank = 0; rank < history.ranks(); ++rank) {
    engine::Picoseconds first = history.step(), backward = 0;
    for (const timeline::LaneId lane : history.lanes_of(rank)) {
      if (!timeline::is_compute_lane(history.program().lanes[static_cast<std::size_t>(lane)].kind)) continue;
      history.visit_lane(lane, [&](timeline::SlotId, const timeline::Instance& here) {
        const engine::StepPass pass = history.tag(here).pass;
        if (pass == engine::StepPass::kForward) first = std::min(first, history.start(here));
        if (pass == engine::StepPass::kBackward) backward = std::max(backward, history.end(here));
      });
    }
    updated = std::min(updated, first);
    filled = std::max(filled, first);
    first_done = std::min(first_done, backward);
    last_done = std::max(last_done, backward);
  }
  filled = std::max(filled, updated);
  first_done = std::max(first_done, filled);
  last_done = std::max(last_done, first_done);
  return {engine::to_seconds(filled - updated), engine::to_seconds(first_done - filled),
          engine::to_seconds(last_done - first_done), engine::to_seconds(history.step() - last_done + updated)};
}

std::vector<StagePeak> stage_peaks(const StepMemory& memory, const schedule::SimulatedRanks& ranks) {
  std::map<std::int32_t, const timeline::MemoryTrack*> highest;  // by stage
  for (const timeline::MemoryTrack& track : memory.tracks) {
    const timeline::MemoryTrack*& best = highest[ranks.coordinate(track.rank).pp];
    if (best == nullptr || track.peak > best->peak) best = &track;
  }
  std::vector<StagePeak> peaks;
  for (const auto& [stage, track] : highest) {
    StagePeak peak{stage,
                   track->rank,
                   Bytes(static_cast<double>(track->peak)),
                   Bytes(static_cast<double>(track->resident)),
                   engine::to_seconds(track->peak_time),
                   {}};
    std::map<std::int32_t, std::pair<StagePeak::Part, std::set<std::int32_t>>> parts;  // by name
    for (const timeline::LiveTensor& tensor : track->alive_at_peak) {
      auto& [part, micro_batches] = parts[tensor.name];
      part.name = memory.names[static_cast<std::size_t>(tensor.name)];
      part.bytes += Bytes(static_cast<double>(tensor.bytes));
      ++part.tensors;
      micro_batches.insert(tensor.micro_batch);
      part.micro_batches = static_cast<std::int64_t>(micro_batches.size());
    }
    for (auto& [name, part] : parts) peak.parts.push_back(std::move(part.first));
    std::stable_sort(peak.parts.begin(), peak.parts.end(),
                     [](const StagePeak::Part& a, const StagePeak::Part& b) { return a.bytes > b.bytes; });
    peaks.push_back(std::move(peak));
  }
  return peaks;
}

std::vector<LinkShift> link_shifts(const std::vector<LinkLoad>& before, const std::vector<LinkLoad>& after) {
  std::map<std::pair<std::string, std::string>, LinkShift> links;
  const auto of = [&](const LinkLoad& load) -> LinkShift& {
    LinkShift& shift = links[{load.from, load.to}];
    shift.from = load.from;
    shift.to = load.to;
    return shift;
  };
  for (const LinkLoad& load : before) of(load).before = load;
  for (const LinkLoad& load : after) of(load).after = load;
  std::vector<LinkShift> shifts;
  constexpr double kPicosecond = 1e-12;
  const auto change = [](const LinkShift& shift) { return std::abs((shift.after.busy - shift.before.busy).value()); };
  for (auto& [ends, shift] : links) {
    if (change(shift) > kPicosecond) shifts.push_back(std::move(shift));
  }
  std::stable_sort(shifts.begin(), shifts.end(), [&](const LinkShift& a, const LinkShift& b) { return change(a) > change(b); });
  return shifts;
}

}  // namespace cpfit
