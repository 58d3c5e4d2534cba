// Max-min fair sharing of resources by flows, kept up as flows come and go.
//
// All flows' rates grow together; a flow stops at its cap, or when a resource that it uses is exhausted (progressive filling,
// Bertsekas and Gallager, Data Networks, 2nd ed., section 6.5.2; SimGrid's lmm system with equal sharing weights). A flow of rate
// x takes weight * x from each resource of its pattern.
//
// The rates are a function of the present set of flows and holds, bit for bit, however it came about: what a resource has given
// away is summed in whole units (2^-52 of its capacity), and sums of whole numbers do not remember their order. So the same state
// at another time has the same future, which folding relies on, and which flows are solved for may be chosen for speed:
//   loose      a resource whose flows all fit at their caps. It never matters, whoever comes within that bound;
//   contended  the others. Flows connected by contended resources are solved together; nobody else is looked at.
//   binding    a contended resource that stopped somebody. A flow that leaves none, or comes and fits, changes nobody.
//   slower     filling rises from below: whoever stopped at a rate below those that came, left or may be reached now, stays.
//   alone      a flow that shares no contended resource with another needs no filling: the one it has to itself says its rate.
//              Most changes are of this kind (a kernel and the SMs that a message beside it holds).
// Bounds: up to 65,536 flows at a time on one resource.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "sim/engine/program.h"

namespace cpfit::engine {

using FlowId = std::int32_t;

/// The share of a resource that holds leave to flows at least: kernels beside communication that wants all SMs still creep on.
inline constexpr double kLeastShare = 0.02;

class FairShare {
 public:
  /// Patterns as in Program: uses[pattern_begin[p] .. pattern_begin[p + 1]). Uses of one resource in a pattern are added, those
  /// of weight zero dropped.
  FairShare(std::span<const Resource> resources, std::span<const Use> uses, std::span<const std::uint32_t> pattern_begin);
  FairShare(const FairShare&) = delete;  // what patterns draw on is known by its place in memory
  FairShare& operator=(const FairShare&) = delete;
  FairShare(FairShare&&) = default;
  FairShare& operator=(FairShare&&) = default;
  ~FairShare() = default;

  /// Whether a flow of the pattern would draw on anything.
  [[nodiscard]] bool draws(PatternId pattern) const {
    const Pattern& drawn = patterns_[static_cast<std::size_t>(pattern)];
    return drawn.begin != drawn.end;
  }

  /// A new flow, `now`. Its rate holds after settle(). Ids are small and used again. cap > 0.
  FlowId add(PatternId pattern, double cap, Picoseconds now);
  void remove(FlowId flow, Picoseconds now);
  /// Takes `amount` (>= 0) of a resource from its flows, or gives it back. Holds add up; see kLeastShare.
  void take(ResourceId resource, double amount) { change_held(resource, amount, 1); }
  void give_back(ResourceId resource, double amount) { change_held(resource, amount, -1); }

  /// Solves for everything that changed since the last call. Answers the flows whose rate is another one now, valid until the
  /// next call; flows added since the last call are among them only if they are slower than their cap.
  std::span<const FlowId> settle();

  [[nodiscard]] double rate(FlowId flow) const { return flows_[static_cast<std::size_t>(flow)].rate; }
  [[nodiscard]] std::size_t flows_on(ResourceId resource) const {
    return loads_[static_cast<std::size_t>(resource)].members.size();
  }
  /// The time until `now` in which at least one flow drew on the resource.
  [[nodiscard]] Picoseconds busy(ResourceId resource, Picoseconds now) const {
    const Load& load = loads_[static_cast<std::size_t>(resource)];
    return load.members.empty() ? load.busy : load.busy + (now - load.busy_since);
  }
  /// Adds time to busy() that nobody lived through.
  void add_busy(ResourceId resource, Picoseconds time) { loads_[static_cast<std::size_t>(resource)].busy += time; }
  /// One more than the largest flow id ever given.
  [[nodiscard]] std::size_t ids() const { return flows_.size(); }

 private:
  struct Flow {
    double rate = 0;
    double cap = 0;
    std::uint32_t first_place = 0;  // into places_, one per use
    PatternId pattern = 0;
    std::uint32_t mark = 0;  // of the solve that has seen it; frozen ones have mark + 1
  };
  struct Member {
    FlowId flow;
    std::uint32_t use;  // place in the flow's pattern
  };
  // Demand, which may be many times the capacity, is counted in 256 units.
  static constexpr std::int64_t kDemandStep = 256;
  static constexpr std::size_t kMostFlows = 65536;
  // A flow whose cap is within this of the level stops at its cap: the level carries the rounding of the units.
  static constexpr double kCapSlack = 1.0 + 1e-13;
  [[nodiscard]] static std::int64_t whole(double positive) { return static_cast<std::int64_t>(positive + 0.5); }
  // A demand above the capacity by less than this part (2^-34, 6e-11) counts as fitting: caps that add up to the capacity but for
  // the rounding of each, on up to 2^10 flows.
  static constexpr int kSlackBits = 34;
  struct Load;
  struct Drawn {              // a use, compiled
    Load* load = nullptr;     // of its resource
    double units = 0;         // per rate
    std::int64_t weight = 0;  // in weight units
    // At the cap of Pattern::cap:
    std::int64_t demand = 0;  // min(units * cap, twice everything) / kDemandStep
    std::int64_t drawn = 0;   // units
  };
  /// Flows of a pattern mostly have the cap of the one before them: what they ask of each resource is kept.
  struct Pattern {
    std::uint32_t begin = 0, end = 0;  // into uses_
    double cap = 0;                    // of the numbers in uses_; 0: of none
  };
  /// At least a unit is shared: rounding never stops a flow for ever.
  [[nodiscard]] static double level_of(std::int64_t spare, std::int64_t open, double level_per) {
    return static_cast<double>(spare > 0 ? spare : 1) / static_cast<double>(open) * level_per;
  }
  struct alignas(64) Load {     // of a resource; three lines of the cache
    std::int64_t limit = 0;     // of what flows may demand before they contend
    std::int64_t demand = 0;    // sum over flows of min(weight * cap, twice everything)
    std::int64_t weight = 0;    // sum of the flows' weights
    std::int64_t spare = 0;     // capacity less what the flows draw at their present rates
    std::int64_t capacity = 0;  // units left by holds
    std::vector<Member> members;
    std::int64_t open = 0;   // while solving: weight of the flows that still grow
    double level_per = 0;    // level = spare / open * level_per
    std::uint32_t mark = 0;  // of the solve that looks at it
    std::int32_t place = 0;  // in resources_, while solving
    bool binding = false;
    bool dirty = false;
    std::int64_t whole = 0;  // capacity without holds, units
    std::int64_t least = 0;  // that holds leave, units
    std::int64_t held = 0;   // units
    double hold = 0;         // the last amount taken or given back: mostly the same one
    std::int64_t hold_units = 0;
    // The level of a flow that has the resource to itself, at this capacity.
    std::int64_t level_capacity = -1;
    std::int64_t level_weight = 0;
    double level_alone = 0;
    Picoseconds busy = 0;  // until the last flow left
    Picoseconds busy_since = 0;
    // Since the last solve, while dirty: the least capacity and the most weight that a change met.
    std::int64_t lowest_capacity = 0;
    std::int64_t highest_weight = 0;
    [[nodiscard]] std::int64_t slack() const { return capacity >> kSlackBits; }
    void hold_back(std::int64_t left) {
      capacity = left;
      limit = (left + slack()) / kDemandStep + 1;
    }
    [[nodiscard]] bool contended() const { return demand > limit; }
    [[nodiscard]] double level() const { return level_of(spare, open, level_per); }
    /// If all flows grew to the end: none stopped or stops below that because of this resource.
    [[nodiscard]] double least_level() const {
      return static_cast<double>(lowest_capacity) / static_cast<double>(highest_weight) * level_per;
    }
  };

  [[nodiscard]] static std::int64_t demand_of(const Drawn& use, const Load& load, double cap);
  void compile(Pattern& pattern, double cap);
  void compile_hold(Load& load, double amount) const;
  FlowId new_flow(std::uint32_t uses);
  FlowId next_flow(std::uint32_t uses);
  FlowId add_to_many(const Pattern& pattern, FlowId id, Picoseconds now);
  void remove_from_many(const Pattern& pattern, FlowId id, Picoseconds now);
  void join(const Drawn& use, std::uint32_t number, FlowId id, std::uint32_t place, Picoseconds now);
  void leave(const Drawn& use, FlowId id, std::uint32_t place, Picoseconds now);
  void give_up(const Drawn& use, const Flow& flow);
  [[nodiscard]] static bool spares(const Load& load, std::int64_t spare, const Drawn& use, double cap);
  [[noreturn]] static void too_many(ResourceId resource);
  void solve();
  void change_held(ResourceId resource, double amount, int sign);
  bool settle_alone(Load& load);
  void soil(Load& load, std::int64_t capacity);
  [[nodiscard]] ResourceId id_of(const Load& load) const { return static_cast<ResourceId>(&load - loads_.data()); }
  void changes_from(double level) { changes_from_ = level < changes_from_ ? level : changes_from_; }
  void gather(double from);
  void fill();
  void freeze(FlowId flow, double rate, double level);
  void raise_touched();
  [[nodiscard]] std::size_t lowest();

  std::vector<Pattern> patterns_;
  std::vector<Drawn> uses_;    // one per resource of a pattern
  std::vector<Load> loads_;    // (resources)
  std::vector<double> units_;  // (resources) per amount
  // Per flow; the places of equal pattern lengths are used again.
  std::vector<Flow> flows_;
  std::vector<std::uint32_t> places_;      // where the flow stands in its resources' members
  std::vector<std::vector<FlowId>> idle_;  // by pattern length
  // Of the solve at hand.
  std::vector<ResourceId> dirty_;
  double changes_from_ = std::numeric_limits<double>::infinity();  // rates below stay
  std::vector<ResourceId> resources_;
  std::vector<FlowId> component_;
  std::vector<FlowId> changed_;
  std::vector<double> level_, floor_;   // (resources_)
  std::vector<double> least_of_block_;  // (blocks of level_); negative: not known
  std::vector<std::uint32_t> touched_;  // places in resources_
  std::uint32_t mark_ = 0;
};

}  // namespace cpfit::engine

#include "sim/engine/fair_share_events.h"
