#include "sim/timeline/exposure.h"

#include <tbb/parallel_for.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "sim/timeline/exposure_rows.h"
#include "sim/timeline/kernel_stretch.h"

namespace cpfit::timeline {

using engine::TrafficAxis;
using engine::Work;

namespace {

/// Charges one rank's time, from its beginning to the end of the step, on the clock of the shortened history: all members but the
/// answer speak of that one.
class RankCharger {
 public:
  RankCharger(const ShortHistory& short_history, std::int32_t rank)
      : short_(short_history), history_(short_history.history()), rank_(rank), takers_(history_) {
    answer_.rank = rank;
    for (const engine::Tag& tag : history_.program().tags) pipelined_ = pipelined_ || tag.axis == TrafficAxis::kPp;
  }

  RankAnswer take() {
    collect();
    Picoseconds covered = 0;
    for (std::size_t k = 0; k < kernels_.size(); ++k) {
      const RankSpan& kernel = kernels_[k];
      charged_ = kernel.instance;
      weight_ = short_.weight(kernel.instance);
      answer_.kernels += weight_;
      if (kernel.start > covered) {
        explain_from(covered, kernel.start, kernel.instance, kernel.slot);
        covered = kernel.start;
      }
      if (kernel.end > covered) {
        charge_kernel(k, kernel.end - covered);
        covered = kernel.end;
        answer_.last_kernel = full_end(kernel.instance);
      }
      remember(k);
    }
    charged_ = last_;
    weight_ = 1;
    explain_end(covered);
    answer_.rows = rows_.take(std::move(transfers_), short_, rank_);
    const auto by_end = [](const Charge& a, const Charge& b) {
      return a.end != b.end ? a.end < b.end : a.transfer.activity < b.transfer.activity;
    };
    std::sort(answer_.charges.begin(), answer_.charges.end(), by_end);
    return std::move(answer_);
  }

 private:
  [[nodiscard]] bool is_transfer(const Instance& i) const { return is_communication(history_.tag(i)); }

  template <class Less>
  static void join(std::vector<RankSpan>& spans, std::size_t first_of_lane, Less less) {
    const auto middle = spans.begin() + static_cast<std::ptrdiff_t>(first_of_lane);
    if (middle != spans.begin() && middle != spans.end()) std::inplace_merge(spans.begin(), middle, spans.end(), less);
  }

  void collect() {
    const auto in_time = [](const RankSpan& a, const RankSpan& b) {
      if (a.start != b.start) return a.start < b.start;
      return a.end != b.end ? a.end < b.end : a.instance.activity < b.instance.activity;
    };
    for (const LaneId lane : history_.lanes_of(rank_)) {
      const bool computes = is_compute_lane(history_.program().lanes[static_cast<std::size_t>(lane)].kind);
      std::vector<RankSpan> communication;
      const std::size_t kernels_before = kernels_.size();
      history_.visit_lane(lane, [&](SlotId slot, const Instance& i) {
        const RankSpan span{i, slot, history_.posted(i, slot), history_.start(i), history_.end(i)};
        if (span.end > last_end_ || last_.activity == kNone) {
          last_end_ = span.end;
          last_ = i;
        }
        if (is_transfer(i)) {
          communication.push_back(span);
        } else if (computes) {
          kernels_.push_back(span);
        }
      });
      const std::size_t transfers_before = transfers_.size();
      transfers_.insert(transfers_.end(), communication.begin(), communication.end());
      if (!communication.empty()) takers_.add_lane(std::move(communication));
      // A lane is in order already, so that sorting afterwards finds nothing to do.
      join(kernels_, kernels_before, in_time);
      join(transfers_, transfers_before, ExposureRows::in_time);
    }
    if (last_.activity != kNone) answer_.last_activity = full_end(last_);
    if (!std::is_sorted(kernels_.begin(), kernels_.end(), in_time)) std::sort(kernels_.begin(), kernels_.end(), in_time);
  }

  /// The kernel covers `own` picoseconds that no earlier kernel covers.
  void charge_kernel(std::size_t index, Picoseconds own) {
    const RankSpan& kernel = kernels_[index];
    Picoseconds stretch = 0;
    if (kernel.end - kernel.start > history_.undisturbed(kernel.instance)) {
      for (const StretchPart& part : takers_.split(kernel, beside(index))) {
        const Picoseconds time = std::min(part.time, own - stretch);
        charge_axis(part.taker, time);
        for (std::int32_t n = 0; n < weight_; ++n)
          rows_.row(short_.full(), short_.met_by(charged_, n, part.taker)).stretch += time;
        stretch += time;
      }
    }
    const bool optimizer = history_.tag(kernel.instance).work == Work::kOptimizer;
    charge(optimizer ? answer_.parts.optimizer : answer_.parts.compute, own - stretch);
  }

  /// Kernels that overlap it: those that began later stand behind it, of those that began earlier only the last one of each
  /// other lane can still run.
  [[nodiscard]] std::vector<RankSpan> beside(std::size_t index) {
    std::vector<RankSpan> others;
    const RankSpan& kernel = kernels_[index];
    for (std::size_t k = index + 1; k < kernels_.size() && kernels_[k].start < kernel.end; ++k) others.push_back(kernels_[k]);
    for (const std::size_t k : latest_) {
      if (lane_of(kernels_[k]) != lane_of(kernel) && kernels_[k].end > kernel.start) others.push_back(kernels_[k]);
    }
    return others;
  }
  [[nodiscard]] LaneId lane_of(const RankSpan& span) const {
    return history_.program().slots[static_cast<std::size_t>(span.slot)].lane;
  }
  void remember(std::size_t index) {
    for (std::size_t& k : latest_) {
      if (lane_of(kernels_[k]) != lane_of(kernels_[index])) continue;
      k = index;
      return;
    }
    latest_.push_back(index);
  }

  [[nodiscard]] Picoseconds full_end(const Instance& i) const {
    return short_.full().end(short_.full_instance(i, short_.weight(i) - 1));
  }

  void charge(Picoseconds& part, Picoseconds time) { part += time * weight_; }
  void charge_axis(const Instance& transfer, Picoseconds time) {
    charge(answer_.parts.exposed(history_.tag(transfer).axis), time);
  }
  void charge_idle(Picoseconds time) { charge(pipelined_ ? answer_.parts.bubble : answer_.parts.other, time); }
  void charge_transfer(const Instance& transfer, Picoseconds running, Picoseconds waiting) {
    if (running + waiting == 0) return;
    for (std::int32_t n = 0; n < weight_; ++n) {
      const Instance full = short_.met_by(charged_, n, transfer);
      answer_.charges.push_back({full, short_.full().end(full), running, waiting});
      ExposureRow& row = rows_.row(short_.full(), full);
      row.running += running;
      row.waiting += waiting;
    }
  }

  /// [from, to) is idle because `waiting` was posted on `slot` at `to`.
  void explain_from(Picoseconds from, Picoseconds to, Instance waiting, SlotId slot) {
    // A kernel with slots elsewhere may start later than it was posted here.
    const Picoseconds posted = std::clamp(history_.posted(waiting, slot), from, to);
    charge_idle(to - posted);
    explain_posting(from, posted, waiting, slot);
  }

  /// Walks back along what each slot waited for last, charging [from, to), `to` being when `slot` was posted.
  void explain_posting(Picoseconds from, Picoseconds to, Instance waiting, SlotId slot) {
    while (to > from) {
      const Cause cause = history_.cause(waiting, slot);
      const Picoseconds ready = cause.before.activity == kNone ? from : std::clamp(cause.end, from, to);
      if (ready < to) {
        const bool launched = history_.program().slots[static_cast<std::size_t>(slot)].launch > 0;
        if (launched) {
          charge(answer_.parts.launch, to - ready);
        } else {
          charge_idle(to - ready);
        }
        to = ready;
      }
      if (to == from) return;
      const SlotId next = explain_running(from, to, cause.before);
      if (next == kNone) return;
      waiting = cause.before;
      slot = next;
    }
  }

  /// Charges [from, to) to `before`, which ended at `to`, as far as it ran or waited for its peer; a transfer
  /// between other ranks is all waiting. `to` becomes what remains
  /// unexplained; the result is the slot of `before` that was posted then, kNone when all is explained.
  SlotId explain_running(Picoseconds from, Picoseconds& to, const Instance& before) {
    const SlotId here = history_.last_posted(before, rank_);
    const Picoseconds began = here == kNone ? to : std::clamp(history_.start(before), from, to);
    const bool transfer = is_transfer(before);
    if (!transfer && here == kNone) {  // another rank's kernel
      charge_idle(to - from);
      to = from;
      return kNone;
    }
    const Picoseconds posted = here == kNone ? from : std::clamp(history_.posted(before, here), from, began);
    const bool waits_exposed = transfer && history_.tag(before).axis != TrafficAxis::kPp;
    if (transfer) {
      charge_axis(before, to - began);
      charge_transfer(before, to - began, waits_exposed ? began - posted : 0);
    } else {
      charge(answer_.parts.other, to - began);
    }
    if (waits_exposed) {
      charge_axis(before, began - posted);
    } else {
      charge_idle(began - posted);
    }
    to = posted;
    return to > from ? here : kNone;
  }

  void explain_end(Picoseconds last_kernel) {
    Picoseconds to = std::max(last_kernel, last_end_);
    charge_idle(history_.step() - to);
    if (to == last_kernel) return;
    const SlotId slot = explain_running(last_kernel, to, last_);
    if (slot != kNone) explain_posting(last_kernel, to, last_, slot);
  }

  const ShortHistory& short_;
  const History& history_;
  std::int32_t rank_;
  Instance charged_;         // whose time is being charged: a kernel with the gap before it, at last the end of the step
  std::int32_t weight_ = 1;  // how many executions it stands for
  bool pipelined_ = false;
  Takers takers_;
  std::vector<RankSpan> kernels_;    // in order of time
  std::vector<std::size_t> latest_;  // of those charged, the last one on each compute lane
  std::vector<RankSpan> transfers_;  // one per slot
  ExposureRows rows_;
  Instance last_;  // of the rank's activities the one that ends last
  Picoseconds last_end_ = 0;
  RankAnswer answer_;
};

RankAnswer checked_answer(const ShortHistory& history, std::int32_t rank) {
  RankAnswer answer = RankCharger(history, rank).take();
  if (answer.parts.total() != history.full().step()) {
    std::fprintf(stderr, "cpfit: internal error: rank %d: parts add up to %lld ps of a step of %lld ps\n", rank,
                 static_cast<long long>(answer.parts.total()), static_cast<long long>(history.full().step()));
    std::abort();
  }
  return answer;
}

}  // namespace

Picoseconds StepParts::exposed() const { return exposed_cp + exposed_tp + exposed_pp + exposed_dp + exposed_foreign; }
Picoseconds StepParts::total() const { return compute + exposed() + bubble + launch + optimizer + other; }

Picoseconds& StepParts::exposed(TrafficAxis axis) {
  switch (axis) {
    case TrafficAxis::kCp:
      return exposed_cp;
    case TrafficAxis::kTp:
      return exposed_tp;
    case TrafficAxis::kPp:
      return exposed_pp;
    case TrafficAxis::kDp:
      return exposed_dp;
    case TrafficAxis::kForeign:
      return exposed_foreign;
    case TrafficAxis::kNone:
      break;
  }
  return other;
}

RankAnswer rank_answer(const History& history, std::int32_t rank) { return checked_answer(ShortHistory(history), rank); }

std::int32_t last_rank(const History& history) {
  // Skipped copies need no look: a held copy follows them on every lane that they use.
  const std::vector<engine::Activity>& activities = history.program().activities;
  std::pair<Picoseconds, Picoseconds> latest{-1, -1};  // end, posted
  std::int32_t last = 0;
  for (std::size_t activity = activities.size(); activity-- > 0;) {  // the last to end are among the last
    const Picoseconds end = history.run().end[activity];
    if (end < latest.first) continue;
    const SlotId first = activities[activity].first_slot;
    for (SlotId slot = first; slot < first + activities[activity].slots; ++slot) {
      const std::pair<Picoseconds, Picoseconds> here{end, history.run().posted[static_cast<std::size_t>(slot)]};
      const std::int32_t rank = history.rank_of(slot);
      if (here > latest || (here == latest && rank < last)) {
        latest = here;
        last = rank;
      }
    }
  }
  return last;
}

StepAnswer step_answer(const History& history) {
  StepAnswer answer;
  const ShortHistory short_history(history);
  answer.ranks.resize(static_cast<std::size_t>(history.ranks()));
  tbb::parallel_for(std::int32_t{0}, history.ranks(), [&](std::int32_t rank) {
    answer.ranks[static_cast<std::size_t>(rank)] = checked_answer(short_history, rank);
  });
  if (answer.ranks.empty()) return answer;
  answer.rank = last_rank(history);
  answer.time = time_breakdown(answer.ranks[static_cast<std::size_t>(answer.rank)].parts);
  return answer;
}

TimeBreakdown time_breakdown(const StepParts& parts) {
  const auto seconds = [](Picoseconds time) {
    return Seconds(std::ldexp(std::nearbyint(std::ldexp(engine::to_seconds(time).value(), 42)), -42));
  };
  TimeBreakdown result;
  result.compute = seconds(parts.compute);
  result.exposed_cp = seconds(parts.exposed_cp);
  result.exposed_tp = seconds(parts.exposed_tp);
  result.exposed_pp = seconds(parts.exposed_pp);
  result.exposed_dp = seconds(parts.exposed_dp);
  result.bubble = seconds(parts.bubble);
  result.launch = seconds(parts.launch);
  result.optimizer = seconds(parts.optimizer);
  result.other = seconds(parts.other + parts.exposed_foreign);
  return result;
}

void mark_exposed(Timeline& timeline, const RankAnswer& answer) {
  for (SpanLane& lane : timeline.lanes) {
    if (lane.rank != answer.rank) continue;
    for (const Charge& charge : answer.charges) {
      for (std::size_t i = first_span_after(lane, charge.end - 1); i < lane.spans.size() && lane.spans[i].end == charge.end;
           ++i) {
        LaneSpan& span = lane.spans[i];
        if (span.activity == charge.transfer.activity && span.copy == charge.transfer.copy) span.exposed += charge.running;
      }
    }
  }
}

}  // namespace cpfit::timeline
