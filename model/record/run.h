// A run: one planning study with its provenance. Made by sim/plan, stored by db through a sink, shown by cli and gui.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "model/memory/ledger.h"
#include "model/record/candidate.h"

namespace cpfit {

/// What a study was computed from: enough to say later whether it is stale and to repeat it.
struct Provenance {
  std::string tool_version;
  std::string scenario_name;
  std::string scenario_path;
  std::string scenario_text;
  std::vector<std::pair<std::string, std::string>> input_hashes;  // name -> SHA-256 of scenario, config.json, topology, presets
  std::string rule_set;                                           // framework and its version
  std::string rates_version;
  friend bool operator==(const Provenance&, const Provenance&) = default;
};

/// Bytes and busy time of one directed link class under a recipe, per optimizer step, busiest link of the class.
struct LinkLoad {
  std::string from, to;
  Bytes bytes;
  Seconds busy;
  friend bool operator==(const LinkLoad&, const LinkLoad&) = default;
};

/// Why a neighbour of the shipped recipe was not taken: the binding rule with its amount, and the sentence.
struct Neighbour {
  Candidate candidate;
  std::string rule;      // "memory", "exposed_cp", "throughput", "legality.<id>", "slower"
  double amount = 0;     // in `unit`
  std::string unit;      // "bytes", "share", "tokens_per_second_per_gpu", "seconds"
  std::string sentence;  // "cp=2 misses by 6.1 GiB on stage 0 in backward"
  friend bool operator==(const Neighbour&, const Neighbour&) = default;
};

/// Another way out when nothing fits or nothing hides, with what it gains and costs.
struct Lever {
  std::string change;  // "recompute=full"
  std::string gains;   // sentence with figures
  std::string costs;
  double gain = 0;  // for ranking: bytes freed or seconds saved, as a share of what is missing
  std::vector<std::string> differs;
  friend bool operator==(const Lever&, const Lever&) = default;
};

struct Crossover {
  std::int64_t needed_at_tokens = 0;  // shortest sequence at which CP > 1 is needed to fit; 0 = never within the range searched
  std::int64_t faster_at_tokens = 0;  // shortest sequence at which some CP > 1 is faster than CP = 1 at equal GPUs; 0 = never
  std::string held_constant;          // "tp=1, pp=1, recompute=none, tokens per step = 1048576 ..."
  friend bool operator==(const Crossover&, const Crossover&) = default;
};

/// One point of the controlled sweep: tp, pp, dp, recompute fixed; CP and so the GPUs grow.
struct SweepPoint {
  Candidate candidate;
  std::int64_t gpus = 0;
  friend bool operator==(const SweepPoint&, const SweepPoint&) = default;
};

/// What the timeline says of one recipe of the shortlist, beside the screen.
struct TimelineConfirmation {
  std::string recipe;           // to_text: the key
  Seconds screen_step, step;    // `step`: on the timeline
  Seconds exposed_cp;           // of `step`
  Seconds exposed_per_layer;    // CP only, one micro-batch, forward + backward
  std::string disagreement;     // a sentence where both differ by more than their bound
  std::string skipped;          // why it was not simulated; empty: it was
  std::int64_t activities = 0;  // of the program, folded; an estimate where it was skipped
  [[nodiscard]] bool simulated() const { return skipped.empty(); }
  friend bool operator==(const TimelineConfirmation&, const TimelineConfirmation&) = default;
};

struct PlanStats {
  std::int64_t considered = 0, legal = 0, evaluated = 0;
  double seconds = 0;
  std::vector<std::pair<std::string, std::int64_t>> rejected_by_rule;  // rule id -> count
  double timeline_seconds = 0;                                         // spent on the confirmations, beyond `seconds`
  friend bool operator==(const PlanStats&, const PlanStats&) = default;
};

struct PlanResult {
  Provenance provenance;
  bool ships = false;
  Candidate ship;  // valid when ships
  bool has_control = false;
  Candidate control;   // the best CP=1 recipe at the same recompute and precision, fitting or not
  std::string answer;  // one paragraph
  std::vector<Neighbour> neighbours;
  std::vector<Lever> levers;
  Crossover crossover;
  std::vector<Candidate> candidates;  // top of the ranking
  std::vector<Candidate> front;       // Pareto: step time against device memory
  std::vector<SweepPoint> sweep;      // controlled sweep
  std::vector<std::pair<std::string, StageLedger>>
      ledgers;  // recipe text -> worst stage's ledger, for ship, control, front, neighbours
  std::vector<std::pair<std::string, std::vector<LinkLoad>>> links;  // recipe text -> loads
  std::vector<TimelineConfirmation> confirmations;  // ship, control, then as ranked; empty when the timeline was not asked
  PlanStats stats;
};

/// Receives evaluated candidates as a search goes on, in batches, from one thread at a time. db, tables and tests are sinks.
using CandidateSink = std::function<void(const std::vector<Candidate>&)>;

}  // namespace cpfit
