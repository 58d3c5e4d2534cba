#include "sim/timeline/short_history.h"

#include <algorithm>

namespace cpfit::timeline {

namespace {

struct Cut {
  Picoseconds after = 0;  // times of activities outside the section that are later than this are behind the jump
  Picoseconds total = 0;  // what they move forward by, earlier cuts included
};

/// What is left out of a jump: all cycles but one.
Picoseconds cut_of(const engine::Jump& jump) { return (jump.skipped / jump.cycle - 1) * jump.period; }

/// When a held copy of a section began.
Picoseconds began_at(const engine::Run& run, const engine::Section& section, std::int32_t copy) {
  const ActivityId marker = section.first + copy * section.stride + section.marker;
  return run.start[static_cast<std::size_t>(marker)];
}

}  // namespace

ShortHistory::ShortHistory(const History& full) : full_(&full) {
  const engine::Program& program = full.program();
  const engine::Run& run = full.run();
  jump_of_.resize(program.sections.size());
  if (run.jumps.empty()) return;
  std::vector<Cut> cuts;
  for (const engine::Jump& jump : run.jumps) {
    jump_of_[static_cast<std::size_t>(jump.section)] = jump;
    const engine::Section& s = program.sections[static_cast<std::size_t>(jump.section)];
    const Picoseconds began = began_at(run, s, jump.after - jump.cycle + 1);
    // The engine jumped one period after the cycle's beginning; what it did later is at least
    // all skipped periods behind. Nothing outside the section happens in between: the skipped copies are alike.
    cuts.push_back({began + jump.period, cut_of(jump)});
  }
  std::sort(cuts.begin(), cuts.end(), [](const Cut& a, const Cut& b) { return a.after < b.after; });
  for (std::size_t i = 1; i < cuts.size(); ++i) cuts[i].total += cuts[i - 1].total;
  const auto cut_before = [&](Picoseconds time) -> Picoseconds {
    const auto next = std::partition_point(cuts.begin(), cuts.end(), [&](const Cut& cut) { return cut.after < time; });
    return next == cuts.begin() ? 0 : std::prev(next)->total;
  };

  run_.start = run.start;
  run_.end = run.end;
  run_.posted = run.posted;
  for (std::size_t a = 0; a < program.activities.size(); ++a) {
    const std::int32_t section = full.section_of(static_cast<ActivityId>(a));
    const engine::Jump jump = section == kNone ? engine::Jump{} : jump_of_[static_cast<std::size_t>(section)];
    const auto shorten = [&](Picoseconds& time) {
      if (jump.skipped == 0) {
        time -= cut_before(time);
        return;
      }
      // Within the section the copy decides, not the time: copies overlap.
      const engine::Section& s = program.sections[static_cast<std::size_t>(section)];
      const std::int32_t copy = (static_cast<ActivityId>(a) - s.first) / s.stride;
      const Picoseconds began = began_at(run, s, jump.after);
      time -= copy > jump.after ? cut_before(began) + cut_of(jump) : std::min(cut_before(time), cut_before(began));
    };
    shorten(run_.start[a]);
    shorten(run_.end[a]);
    const SlotId first = program.activities[a].first_slot;
    for (SlotId slot = first; slot < first + program.activities[a].slots; ++slot)
      shorten(run_.posted[static_cast<std::size_t>(slot)]);
  }
  run_.makespan = run.makespan - (cuts.empty() ? 0 : cuts.back().total);
  for (engine::Jump jump : run.jumps) {
    jump.skipped = std::min(jump.skipped, jump.cycle);
    run_.jumps.push_back(jump);
  }
  short_ = std::make_unique<const History>(program, run_);
}

std::int32_t ShortHistory::weight(const Instance& i) const {
  const std::int32_t section = full_->section_of(i.activity);
  if (section == kNone) return 1;
  const engine::Jump& jump = jump_of_[static_cast<std::size_t>(section)];
  const bool kept = i.copy > jump.after && i.copy <= jump.after + jump.cycle;
  return jump.skipped > 0 && kept ? jump.skipped / jump.cycle : 1;
}

Instance ShortHistory::full_instance(const Instance& i, std::int32_t n) const {
  const std::int32_t section = full_->section_of(i.activity);
  if (section == kNone) return i;
  const engine::Jump& jump = jump_of_[static_cast<std::size_t>(section)];
  const engine::Section& s = full_->program().sections[static_cast<std::size_t>(section)];
  const ActivityId in_first = s.first + (i.activity - s.first) % s.stride;
  const bool behind = jump.skipped > 0 && i.copy > jump.after + jump.cycle;
  return full_->copy_of(in_first, section, behind ? i.copy + jump.skipped - jump.cycle : i.copy + n * jump.cycle);
}

Instance ShortHistory::met_by(const Instance& from, std::int32_t n, const Instance& other) const {
  const std::int32_t section = full_->section_of(other.activity);
  if (section == kNone || full_->section_of(from.activity) != section) return full_instance(other, weight(other) - 1);
  const engine::Section& s = full_->program().sections[static_cast<std::size_t>(section)];
  const ActivityId in_first = s.first + (other.activity - s.first) % s.stride;
  return full_->copy_of(in_first, section, full_instance(from, n).copy - (from.copy - other.copy));
}

}  // namespace cpfit::timeline
