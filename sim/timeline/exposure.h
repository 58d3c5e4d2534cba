// Where a rank's step goes: every picosecond of [0, step) is charged once. Computed from the schedule (who waited for what),
// never from how busy a link was: a busy link beside computing kernels costs nothing, an idle one that a kernel waits for costs
// all.
//
// Rules, for one rank:
//   compute    a kernel runs on a compute lane. A kernel that takes longer than undisturbed gives its stretch to the
//   communication
//              that took from it: the axis posted first wherever several did; while two kernels of the rank run at once the
//              stretch stays compute. A stretch without such a taker is compute.
//   optimizer  the same for kernels of the optimizer.
//   gap        no kernel runs. From its end backward it goes to what the next kernel waited for last:
//                a transfer    while it ran: exposed, its axis. Before it began, though this rank had posted it: the peer was
//                              late, exposed too, but for a pipeline message: bubble (a stage that waits for work). Earlier
//                              still: what the transfer itself waited for on this rank, by the same rules.
//                              A transfer between other ranks that this rank waits for counts as such a wait throughout.
//                the launch    posted later than everything it waited for had ended: launch.
//                other         copies and other work off the compute lanes.
//              What is left over waits for other ranks: bubble where a pipeline exists, else other.
//   the end    after the rank's last kernel its last transfer is explained like a gap; after that it waits for other ranks.
#pragma once

#include <vector>

#include "model/record/candidate.h"
#include "model/record/lane.h"
#include "sim/timeline/history.h"

namespace cpfit::timeline {

/// Whole picoseconds; total() is the step exactly.
struct StepParts {
  Picoseconds compute = 0;
  Picoseconds exposed_cp = 0, exposed_tp = 0, exposed_pp = 0, exposed_dp = 0, exposed_foreign = 0;
  Picoseconds bubble = 0, launch = 0, optimizer = 0, other = 0;
  [[nodiscard]] Picoseconds total() const;
  [[nodiscard]] Picoseconds exposed() const;  // over all axes
  [[nodiscard]] Picoseconds& exposed(engine::TrafficAxis axis);
  friend bool operator==(const StepParts&, const StepParts&) = default;
};

/// Communication of one axis, layer and pass on one rank.
struct ExposureRow {
  engine::TrafficAxis axis = engine::TrafficAxis::kNone;
  engine::StepPass pass = engine::StepPass::kForward;
  std::int32_t layer = -1;
  std::int64_t transfers = 0;
  double bytes_sent = 0, bytes_received = 0;  // a collective's amount counts as both
  Picoseconds busy = 0;                       // union of the times during which one of them ran
  Picoseconds hidden = 0;                     // busy - running
  Picoseconds running = 0;                    // exposed: the rank waited while one ran
  Picoseconds waiting = 0;                    // exposed: the rank waited for the peer before one ran (a pipeline's is bubble)
  Picoseconds stretch = 0;                    // exposed: kernels ran slower
  [[nodiscard]] Picoseconds exposed() const { return running + waiting + stretch; }
  friend bool operator==(const ExposureRow&, const ExposureRow&) = default;
};

/// The exposed part of one transfer, for marking its span.
struct Charge {
  Instance transfer;
  Picoseconds end = 0;  // of the transfer
  Picoseconds running = 0, waiting = 0;
  friend bool operator==(const Charge&, const Charge&) = default;
};

struct RankAnswer {
  std::int32_t rank = 0;
  StepParts parts;
  Picoseconds last_kernel = 0;    // end of the last kernel on a compute lane
  Picoseconds last_activity = 0;  // end of anything on one of its lanes
  std::int64_t kernels = 0;
  std::vector<ExposureRow> rows;  // by axis, then layer, then pass; sums of exposed() over an axis are the parts'
  std::vector<Charge> charges;    // in order of time
};

struct StepAnswer {
  std::int32_t rank = 0;          // ends last: see last_rank
  TimeBreakdown time;             // of that rank; adds up to time.step() in any order; another job's share is in `other`
  std::vector<RankAnswer> ranks;  // one per rank
};

/// Cost: linear in the activities that the program holds, and in the rows and charges of skipped copies.
[[nodiscard]] RankAnswer rank_answer(const History& history, std::int32_t rank);

/// The rank whose last activity ends last; of several that end together (a collective over all of them closes the step) the one
/// that the others waited for, which posted last; of equals the lowest.
[[nodiscard]] std::int32_t last_rank(const History& history);

[[nodiscard]] StepAnswer step_answer(const History& history);

/// Seconds of parts, each rounded to a multiple of 2^-42 s (a quarter of a picosecond): sums of such numbers below 2048 s have no
/// error, whatever the order.
[[nodiscard]] TimeBreakdown time_breakdown(const StepParts& parts);

/// Writes each charge's running part into its span of the answer's rank.
void mark_exposed(Timeline& timeline, const RankAnswer& answer);

}  // namespace cpfit::timeline
