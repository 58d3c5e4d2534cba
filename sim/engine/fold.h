// Jumps over the copies of a section that only repeat (Section in program.h). Private to the engine.
//
// At the end of the instant in which a copy's marker starts, the state is written down relative to the copy and to the time: what
// is posted since when, what is left of it, who waits for how many ends. The same twice in a row means that the copies between
// repeat for ever, because the engine's next step depends on nothing else. Three things are outside of that state and are looked
// at by themselves:
//   launches   the host's thread runs on its own clock. A rank where launches were waited for during the period must launch a
//   copy
//              in exactly one period; the others must not launch slower than that.
//   counters   a slot outside the section that waits for all its copies only counts them: it was not posted and will not be
//   before
//              the last copy, whose ends are in the program. How far it has counted does not matter.
//   leaders    what ranks ahead had done of this copy before the period began is past, not state. Its times must be one period
//              after those of the copy before, or the copy before cannot speak for those that are skipped.
//   the end    ranks that run ahead meet what follows the section while others are copies behind. The times of copies that had
//   not
//              ended at the jump are therefore those of the period, and if the end of the section then changed the last of them,
//              the jump came too late to speak for all skipped copies: without_period().
#pragma once

#include <cstdint>
#include <vector>

#include "sim/engine/state.h"

namespace cpfit::engine {

class Fold {
 public:
  /// Prepares `state` (markers, lists) if any section stands for more copies than it holds. Aborts where copies differ.
  explicit Fold(State& state);
  /// To be called at the end of an instant in which markers started, all rates solved.
  void at_markers();
  /// After the last event: writes the times of copies that were under way at a jump. The sections that found no period.
  [[nodiscard]] Problems finish();

 private:
  struct Past {  // a snapshot at a marker
    std::int32_t copy = kNone;
    Picoseconds time = 0;
    std::vector<std::int64_t> state;
    std::vector<Picoseconds> busy;  // (resources)
  };
  struct Watch {  // of one section that is to be folded
    std::size_t section = 0;
    std::vector<std::int64_t> launches;  // (ranks) per copy; kUneven where copies differ: never folded
    std::vector<Past> past;              // (longest_cycle) of the last copies, copy c at c % longest_cycle
    std::vector<std::int64_t> current;
    bool jumped = false;
  };
  struct Late {  // a time that the jump foretold
    std::vector<Picoseconds>* times;
    std::size_t index;
    Picoseconds time;   // as it is in the program of stands_for copies
    Picoseconds shift;  // of the clock when the event happens here
    std::size_t section;
  };

  void snapshot(const Section& section, std::int32_t copy, std::vector<std::int64_t>& out);
  [[nodiscard]] std::vector<Picoseconds> busy_now() const;
  [[nodiscard]] bool launches_keep_pace(const Watch& watch, const Past& past, std::int32_t cycle) const;
  [[nodiscard]] bool leaders_repeat(const Section& section, std::int32_t copy, std::int32_t cycle, Picoseconds period) const;
  bool foretell(const Watch& watch, std::int32_t copy, std::int32_t cycle, Picoseconds period, Picoseconds skipped_time);
  void jump(Watch& watch, const Past& past, std::int32_t copy);

  State& state_;
  std::vector<Watch> watches_;
  std::vector<Late> late_;
  std::vector<ActivityId> order_;
};

}  // namespace cpfit::engine
